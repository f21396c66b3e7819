/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Commands of pvrdma: when they are done, how they fail, and what becomes of
 * one that the driver does not wait for any longer.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"

static void add_fault(PvPair *p, const char *kind, const char *command,
                      const char *more)
{
    g_autofree char *cmd = g_strdup_printf(
        "{'execute': 'rdma-fault-add', 'arguments': {'device': 'd0', "
        "'id': '%s', 'kind': '%s', 'command': '%s', %s}}", command, kind,
        command, more);

    qtest_qmp_assert_success(p->host->qts, cmd, NULL);
}

/* The reply comes after the driver has read ERR. */
static void test_late_reply(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t table;
    PvrdmaCmdCreateMr req = pv_long_region(&p.a, &table);

    assert_done(qpvrdma_begin(p.a.dev, CREATE_MR, &req));
    g_assert_cmphex(qpvrdma_await_reply(p.a.dev), ==,
                    PVRDMA_ACK | PVRDMA_CMD_CREATE_MR);
}

/* The driver has read ERR already: the reply acknowledges nothing. */
static void test_late_failure(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t table;
    PvrdmaCmdCreateMr req = pv_long_region(&p.a, &table);
    uint64_t bad = qpvrdma_dir(p.a.dev, 1).mem;

    qtest_writeq(p.host->qts, bad + 8 * 511, 0x123);
    qtest_writeq(p.host->qts, req.dir + 8 * 511, bad);
    assert_done(qpvrdma_begin(p.a.dev, CREATE_MR, &req));
    g_assert_cmphex(qpvrdma_await_reply(p.a.dev), !=,
                    PVRDMA_ACK | PVRDMA_CMD_CREATE_MR);
}

/* A list that changes while it is read has the old or the new entries. */
static void test_rewritten_list(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t table;
    PvrdmaCmdCreateMr req = pv_long_region(&p.a, &table);

    for (int i = 0; i < 3; i++) {
        uint64_t entry = i ? 0xffffffffffff0000 : 0x123;

        assert_done(qpvrdma_begin(p.a.dev, CREATE_MR, &req));
        for (unsigned j = 0; j < 512; j++) {
            qtest_writeq(p.host->qts, table + 8 * j, entry);
        }
        qpvrdma_await_reply(p.a.dev);
        req.nchunks -= 512;
        req.length -= 512 * RDMA_PAGE_SIZE;
        qtest_memset(p.host->qts, table, 0, RDMA_PAGE_SIZE);
    }
    qpvrdma_create_pd(p.a.dev, 0);
}

/*
 * A signal interrupts the driver while it waits. The device answers the next
 * command only, and the PD of the first one destroys what that has left.
 */
static void test_given_up(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t table;
    PvrdmaCmdCreateMr req = pv_long_region(&p.a, &table);

    add_fault(&p, "command-delay", "reg-user-mr", "'delay': 10000, "
              "'times': 4");
    for (int i = 0; i < 3; i++) {
        assert_done(qpvrdma_begin(p.a.dev, CREATE_MR, &req));
        qpvrdma_create_pd(p.a.dev, 0);
    }
    assert_done(qpvrdma_begin(p.a.dev, CREATE_MR, &req));
    assert_done(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_PD, p.a.pd));
    assert_fails(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_PD, p.a.pd));
    g_assert_false(qpvrdma_interrupted(p.a.dev, PVRDMA_VECTOR_RESPONSE));
}

/* A reset ends the command, too. */
static void test_reset_meanwhile(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t table;
    PvrdmaCmdCreateMr req = pv_long_region(&p.a, &table);
    QPvrdma *d;

    add_fault(&p, "command-delay", "reg-user-mr", "'delay': 100");
    assert_done(qpvrdma_begin(p.a.dev, CREATE_MR, &req));
    qpvrdma_write(p.a.dev, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
    d = pv_start(p.host, 4);
    qtest_clock_step(p.host->qts, 200 * QRDMA_MS);
    g_assert_false(qpvrdma_interrupted(d, PVRDMA_VECTOR_RESPONSE));
    qpvrdma_close(d);
}

/* A command that the driver waits for may be delayed. */
static void test_delay(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCmdHandle req = {};

    add_fault(&p, "command-delay", "create-pd", "'delay': 100");
    assert_done(qpvrdma_begin(p.a.dev, CREATE_PD, &req));
    qtest_clock_step(p.host->qts, 50 * QRDMA_MS);
    g_assert_false(qpvrdma_interrupted(p.a.dev, PVRDMA_VECTOR_RESPONSE));
    qtest_clock_step(p.host->qts, 60 * QRDMA_MS);
    g_assert_cmphex(qpvrdma_await_reply(p.a.dev), ==,
                    PVRDMA_ACK | PVRDMA_CMD_CREATE_PD);
}

/* A delay would stop the vCPU: synchronous commands are not delayed. */
static void test_no_delay(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint8_t gid[RDMA_GID_LEN];

    add_fault(&p, "command-delay", "destroy-qp", "'delay': 10000");
    add_fault(&p, "command-delay", "add-gid", "'delay': 10000");
    assert_done(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_QP, p.a.qp.handle));
    qrdma_ipv4_gid(gid, 9);
    assert_done(qpvrdma_create_bind(p.a.dev, 1, gid));
}

/*
 * The driver frees the memory of an object whatever ERR says. So a fault sets
 * ERR, but the object is gone.
 */
static void test_fault_at_destroy(void)
{
    static const struct {
        const char *fault;
        uint32_t cmd;
    } cases[] = {
        { "destroy-qp", PVRDMA_CMD_DESTROY_QP },
        { "destroy-cq", PVRDMA_CMD_DESTROY_CQ },
        { "dereg-mr", PVRDMA_CMD_DESTROY_MR },
        { "destroy-pd", PVRDMA_CMD_DESTROY_PD },
    };
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    const uint32_t handles[] = {
        p.a.qp.handle, p.a.rcq.handle, p.a.mr.handle, p.a.pd,
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        add_fault(&p, "command-error", cases[i].fault, "'status': 'busy'");
        g_assert_cmpint(qpvrdma_destroy(p.a.dev, cases[i].cmd, handles[i]),
                        ==, EBUSY);
        g_assert_cmpint(qpvrdma_destroy(p.a.dev, cases[i].cmd, handles[i]),
                        ==, ENOENT);
    }
}

/* The command has no directory: the ring stays as it is. */
static void test_resize_cq(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCmdResizeCq req = { .handle = p.a.rcq.handle };
    PvrdmaRspResizeCq rsp;

    req.cqe = p.a.rcq.ring.size / 2;
    assert_done(qpvrdma_call(p.a.dev, RESIZE_CQ, &req, &rsp));
    g_assert_cmpint(rsp.cqe, ==, p.a.rcq.ring.size);
    req.cqe = p.a.rcq.ring.size + 1;
    g_assert_cmpint(qpvrdma_call(p.a.dev, RESIZE_CQ, &req, &rsp), ==, EINVAL);
    req.handle = 999;
    g_assert_cmpint(qpvrdma_call(p.a.dev, RESIZE_CQ, &req, &rsp), ==, ENOENT);
}

/* Only GIDs of RoCEv2, and only indices that the table has */
static void test_bad_gids(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    PvrdmaCmdCreateBind req = { .index = 1 };
    PvrdmaCmdDestroyBind del = {};
    static const uint8_t types[] = { 0, 1, 3, 4, 255 };

    qrdma_ipv4_gid(req.gid, 7);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        req.gid_type = types[i];
        assert_fails(qpvrdma_cmd(d, PVRDMA_CMD_CREATE_BIND, &req, sizeof(req),
                                 NULL, 0));
    }
    for (int i = 0; i < 2; i++) {
        uint32_t index = i ? UINT32_MAX : d->caps.gid_tbl_len;

        assert_fails(qpvrdma_create_bind(d, index, req.gid));
        del.index = index;
        assert_fails(qpvrdma_cmd(d, PVRDMA_CMD_DESTROY_BIND, &del, sizeof(del),
                                 NULL, 0));
    }
}

/*
 * Without MSI-X, the driver takes a reply only if ICR has no other cause: the
 * next read has those.
 */
static void test_causes(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaSge sge = pv_sge(&p.b, 0, 8);
    PvrdmaSendWqe wqe = { .num_sge = 1, .opcode = RDMA_WR_SEND };
    PvrdmaCmdHandle req = {};

    qpci_msix_disable(p.b.dev->pci);
    qpvrdma_ring_doorbell(p.b.dev, 0, PVRDMA_UAR_CQ,
                          p.b.rcq.handle | PVRDMA_UAR_CQ_ARM);
    qpvrdma_post_recv(p.b.dev, &p.b.qp, 2, &sge);
    sge = pv_sge(&p.a, 0, 8);
    qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, &sge);
    pv_expect(&p.b, &p.b.rcq, 2, RDMA_WC_SUCCESS, RDMA_WC_RECV);
    assert_done(qpvrdma_begin(p.b.dev, CREATE_PD, &req));
    g_assert_cmphex(qpvrdma_read(p.b.dev, PVRDMA_REG_ICR), ==,
                    1u << PVRDMA_VECTOR_RESPONSE);
    g_assert_cmphex(qpvrdma_read(p.b.dev, PVRDMA_REG_ICR), ==,
                    1u << PVRDMA_VECTOR_COMPLETION);
    assert_done(qpvrdma_read(p.b.dev, PVRDMA_REG_ICR));
}

const QRdmaTest pvrdma_command_tests[] = {
    { "late-reply", test_late_reply },
    { "late-failure", test_late_failure },
    { "rewritten-list", test_rewritten_list },
    { "given-up", test_given_up },
    { "reset-meanwhile", test_reset_meanwhile },
    { "delay", test_delay },
    { "no-delay", test_no_delay },
    { "fault-at-destroy", test_fault_at_destroy },
    { "resize-cq", test_resize_cq },
    { "bad-gids", test_bad_gids },
    { "causes", test_causes },
    { }
};
