/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a pvrdma device: stops, resets and hot-unplug, with work. */
#include "qemu/osdep.h"
#include "pvrdma-test.h"
#include "standard-headers/linux/pci_regs.h"

#define LEN 100

static void write_to(PvPair *p, uint64_t wr_id)
{
    pv_post(&p->a, RDMA_WR_RDMA_WRITE, wr_id, LEN, &p->b.mr);
}

static void set_command(QPvrdma *d, uint16_t set, uint16_t clear)
{
    uint16_t command = qpci_config_readw(d->pci, PCI_COMMAND);

    qpci_config_writew(d->pci, PCI_COMMAND, (command | set) & ~clear);
}

/*
 * Without bus master the device reads and writes nothing. It does posted work
 * afterwards.
 */
static void test_bus_master(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCqe cqe;

    set_command(p.a.dev, 0, PCI_COMMAND_MASTER);
    write_to(&p, 1);
    qpvrdma_write(p.a.dev, PVRDMA_REG_REQUEST, 0);
    assert_fails(qpvrdma_read(p.a.dev, PVRDMA_REG_ERR));
    g_assert_false(qpvrdma_poll_cq(p.a.dev, &p.a.scq, &cqe));
    assert_done(qpvrdma_ring_head(p.a.dev, &p.a.qp.sq));
    set_command(p.a.dev, PCI_COMMAND_MASTER, 0);
    /*
     * The device may take the cleared bit for the end of the driver, and flush.
     */
    cqe = qpvrdma_wait_cq(p.a.dev, &p.a.scq);
    g_assert_cmpint(cqe.wr_id, ==, 1);
}

static void test_stop(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCqe cqe;

    qtest_qmp_assert_success(p.host->qts, "{'execute': 'stop'}");
    write_to(&p, 1);
    g_assert_false(qpvrdma_poll_cq(p.a.dev, &p.a.scq, &cqe));
    qtest_qmp_assert_success(p.host->qts, "{'execute': 'cont'}");
    pv_expect(&p.a, &p.a.scq, 1, RDMA_WC_SUCCESS, RDMA_WC_RDMA_WRITE);
}

static void test_system_reset(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdma *d;

    qtest_system_reset(p.host->qts);
    g_assert_cmpint(qpvrdma_read(p.b.dev, PVRDMA_REG_ERR), !=, 0xffff);
    d = pv_start(p.host, 4);
    assert_fails(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_QP, p.a.qp.handle));
    qpvrdma_close(d);
}

/* Requests that are not done, and a command that is in progress */
static void keep_busy(PvPair *p)
{
    PvrdmaCmdHandle req = {};

    qtest_qmp_assert_success(p->host->qts, "{'execute': 'rdma-fault-add', "
                             "'arguments': {'device': 'd0', 'id': 'f', "
                             "'kind': 'command-delay', 'command': "
                             "'create-pd', 'delay': 500}}");
    pv_arm(&p->a, &p->a.scq);
    for (int i = 0; i < 8; i++) {
        /* The peer has no receives. */
        pv_post(&p->a, RDMA_WR_SEND, 0, LEN, NULL);
        pv_recv(&p->a, i, 0, LEN);
    }
    assert_done(qpvrdma_begin(p->a.dev, CREATE_PD, &req));
}

/* The device is set up again after @p.a.dev was reset, or is new. */
static void start_again(PvPair *p)
{
    qpvrdma_close(p->a.dev);
    p->a = pv_end_new(pv_start(p->host, 4), 0, RDMA_QPT_RC);
    p->b.qp = qpvrdma_create_qp(p->b.dev, 0, p->b.pd, &p->b.scq, &p->b.rcq,
                                RDMA_QPT_RC);
    pv_connect(&p->a, &p->b);
    write_to(p, 1);
    pv_expect(&p->a, &p->a.scq, 1, RDMA_WC_SUCCESS, RDMA_WC_RDMA_WRITE);
}

/* Nothing is written after RESET: the driver has freed the memory. */
static void test_reset_while_busy(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t state = p.a.qp.sq.state & ~(uint64_t)(RDMA_PAGE_SIZE - 1);
    uint64_t word;

    keep_busy(&p);
    qpvrdma_write(p.a.dev, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
    qtest_memset(p.host->qts, state, 0x5a, RDMA_PAGE_SIZE);
    qtest_memset(p.host->qts, p.a.dev->response, 0x5a, 8);
    qtest_clock_step(p.host->qts, 1000 * QRDMA_MS);
    for (unsigned at = 0; at < sizeof(PvrdmaStatePage); at += 8) {
        word = qtest_readq(p.host->qts, state + at);
        g_assert_cmphex(word, ==, 0x5a5a5a5a5a5a5a5a);
    }
    word = qtest_readq(p.host->qts, p.a.dev->response);
    g_assert_cmphex(word, ==, 0x5a5a5a5a5a5a5a5a);
    g_assert_false(qpvrdma_interrupted(p.a.dev, PVRDMA_VECTOR_RESPONSE));
    start_again(&p);
}

/* The slot is ejected with both functions, and plugged in again. */
static void test_unplug_while_busy(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    keep_busy(&p);
    qpci_unplug_acpi_device_test(p.host->qts, "d0", 4);
    qtest_clock_step(p.host->qts, 1000 * QRDMA_MS);
    qrdma_qmp_refused(p.host->qts, "{'execute': 'query-rdma', 'arguments': "
                      "{'device': 'd0'}}", "d0");
    /* Function 0 last: it announces the slot. */
    qtest_qmp_device_add(p.host->qts, "pvrdma", "d0", "{'netdev': 'n0', "
                         "'addr': '4.1', 'mac': '52:54:00:12:34:01'}");
    qtest_qmp_device_add(p.host->qts, "vmxnet3", "nic0",
                         "{'addr': '4.0', 'multifunction': true}");
    start_again(&p);
}

const QRdmaTest pvrdma_life_tests[] = {
    { "bus-master", test_bus_master },
    { "stop", test_stop },
    { "system-reset", test_system_reset },
    { "reset-while-busy", test_reset_while_busy },
    { "unplug-while-busy", test_unplug_while_busy },
    { }
};
