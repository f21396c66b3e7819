/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The life of a pvrdma device: stops, resets, and queries from the host. */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "pvrdma-test.h"
#include "standard-headers/linux/pci_regs.h"

#define LEN 100

static void write_to(PvPair *p, uint64_t wr_id)
{
    PvrdmaSge sge = pv_sge(&p->a, 0, LEN);

    qpvrdma_post_send(p->a.dev, &p->a.qp,
                      &(PvrdmaSendWqe) {
                          .wr_id = wr_id,
                          .num_sge = 1,
                          .opcode = RDMA_WR_RDMA_WRITE,
                          .send_flags = RDMA_SEND_SIGNALED,
                          .wr.rdma = {
                              .remote_addr = p->b.mr.addr,
                              .rkey = p->b.mr.rkey,
                          },
                      }, &sge);
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
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCqe cqe;

    set_command(p.a.dev, 0, PCI_COMMAND_MASTER);
    write_to(&p, 1);
    qpvrdma_write(p.a.dev, PVRDMA_REG_REQUEST, 0);
    g_assert_cmpint(qpvrdma_read(p.a.dev, PVRDMA_REG_ERR), !=, 0);
    g_assert_false(qpvrdma_poll_cq(p.a.dev, &p.a.scq, &cqe));
    g_assert_cmpint(qpvrdma_ring_head(p.a.dev, &p.a.qp.sq), ==, 0);
    set_command(p.a.dev, PCI_COMMAND_MASTER, 0);
    /*
     * The device may take the cleared bit for the end of the driver, and flush.
     */
    cqe = qpvrdma_wait_cq(p.a.dev, &p.a.scq);
    g_assert_cmpint(cqe.wr_id, ==, 1);
    pv_pair_free(&p);
}

static void test_stop(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCqe cqe;

    qtest_qmp_assert_success(p.host->qts, "{'execute': 'stop'}");
    write_to(&p, 1);
    g_assert_false(qpvrdma_poll_cq(p.a.dev, &p.a.scq, &cqe));
    qtest_qmp_assert_success(p.host->qts, "{'execute': 'cont'}");
    pv_expect(&p.a, &p.a.scq, 1, RDMA_WC_SUCCESS, RDMA_WC_RDMA_WRITE);
    pv_pair_free(&p);
}

static void test_system_reset(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdma *d;

    qtest_system_reset(p.host->qts);
    g_assert_cmpint(qpvrdma_read(p.b.dev, PVRDMA_REG_ERR), !=, 0xffff);
    d = pv_start(p.host, 4);
    g_assert_cmpint(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_QP, p.a.qp.handle),
                    !=, 0);
    qpvrdma_close(d);
    pv_pair_free(&p);
}

/* query-rdma shows its objects as those of any device. */
static void test_query(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    g_autoptr(QDict) rsp = qtest_qmp(p.host->qts,
        "{'execute': 'query-rdma', 'arguments': {'device': 'd0'}}");
    QDict *info, *counts;

    g_assert_true(qdict_haskey(rsp, "return"));
    info = qobject_to(QDict, qlist_peek(qdict_get_qlist(rsp, "return")));
    g_assert_true(qdict_get_bool(info, "driver"));
    counts = qdict_get_qdict(qdict_get_qdict(info, "count"), "qp");
    g_assert_cmpint(qdict_get_int(counts, "used"), ==, 1);
    pv_pair_free(&p);
}

/* A fault of a command: the driver sees ERR. */
static void test_fault(void)
{
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCmdHandle req = {};
    PvrdmaRspHandle rsp;

    qtest_qmp_assert_success(p.host->qts, "{'execute': 'rdma-fault-add', "
                             "'arguments': {'device': 'd0', 'id': 'f', "
                             "'kind': 'command-error', 'command': "
                             "'create-pd', 'status': 'nomem', "
                             "'times': 1}}");
    g_assert_cmpint(qpvrdma_cmd(p.a.dev, PVRDMA_CMD_CREATE_PD, &req,
                                sizeof(req), &rsp, sizeof(rsp)), ==, ENOMEM);
    qpvrdma_create_pd(p.a.dev, 0);
    pv_pair_free(&p);
}

const QRdmaTest pvrdma_life_tests[] = {
    { "bus-master", test_bus_master },
    { "stop", test_stop },
    { "system-reset", test_system_reset },
    { "query", test_query },
    { "fault", test_fault },
    { }
};
