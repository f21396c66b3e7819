/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Handles of pvrdma: those of other contexts, those that are gone, and each
 * command twice.
 */
#include "qemu/osdep.h"
#include "pvrdma-test.h"

typedef struct Handle {
    uint32_t cmd;                   /* that destroys the object */
    uint32_t handle;
} Handle;

/* A QP of one context may not use objects of another. */
static void test_other_contexts(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    QPvrdma *d = p.a.dev;
    QPvrdmaCq kernel = qpvrdma_create_cq(d, 0, 64);
    PvrdmaCmdCreateSrq create = {};
    QPvrdmaSrq srq;
    QPvrdmaCq foreign;
    QPvrdmaQp qp;

    qpvrdma_create_uc(d, 4);
    foreign = qpvrdma_create_cq(d, 4, 64);
    create.pd = qpvrdma_create_pd(d, 4);
    assert_done(qpvrdma_try_create_srq(d, 4, &create, &srq));
    for (int i = 0; i < 6; i++) {
        PvrdmaCmdCreateQp req = {
            .pd = i == 4 ? create.pd : p.a.pd,
            .send_cq = i == 0 ? foreign.handle :
                       i == 1 ? kernel.handle : p.a.scq.handle,
            .recv_cq = i == 2 ? foreign.handle : p.a.rcq.handle,
            .srq = srq.handle,
            .is_srq = i == 3,
            .qp_type = RDMA_QPT_RC,
        };

        /* The last case is valid. */
        g_assert_cmpint(!qpvrdma_try_create_qp(d, 3, &req, &qp), ==, i == 5);
    }
}

/* No context, or one that is gone */
static void test_no_context(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    QPvrdma *d = p.a.dev;
    static const uint32_t contexts[] = { 4, 511, 512, 0x80000000, UINT32_MAX };

    for (size_t i = 0; i < ARRAY_SIZE(contexts); i++) {
        PvrdmaCmdHandle req = { .handle = contexts[i] };
        PvrdmaRspHandle rsp;

        assert_fails(qpvrdma_call(d, CREATE_PD, &req, &rsp));
        assert_fails(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_UC, contexts[i]));
    }
    assert_fails(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_UC, 0));
}

/* UAR pages: the first and the last of a context */
static void test_pages(void)
{
    g_autoptr(QPvrdma) d = pv_alone();

    qpvrdma_create_uc(d, 1);
    qpvrdma_create_uc(d, 511);
}

/* UAR pages: that of the kernel, one in use, and none */
static void test_bad_pages(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    static const uint64_t offsets[] = {
        0, 5, 512, (uint64_t)-1, 1ull << 32, 1ull << 52, UINT64_MAX >> 1,
    };
    uint64_t base;

    qpvrdma_create_uc(d, 5);
    qpvrdma_create_pd(d, 5);
    base = qpvrdma_uar_pfn(d);
    for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
        PvrdmaCmdCreateUc req = { .pfn = base + offsets[i] };
        PvrdmaRspHandle rsp;

        assert_fails(qpvrdma_call(d, CREATE_UC, &req, &rsp));
    }
}

/*
 * A signal interrupts the driver while it waits for a context. The driver frees
 * the page, and gives it to another process later.
 */
static void test_page_of_unknown_context(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    uint64_t base = qpvrdma_uar_pfn(d);
    PvrdmaCmdCreateUc req = { .pfn = base + 5 };
    PvrdmaRspHandle rsp;

    assert_done(qpvrdma_begin(d, CREATE_UC, &req));
    qpvrdma_await_reply(d);
    qpvrdma_create_uc(d, 5);
    qpvrdma_create_cq(d, 5, 64);
    assert_fails(qpvrdma_call(d, CREATE_UC, &req, &rsp));
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_UC, 5));
    qpvrdma_create_uc(d, 5);
}

/* All objects of a context go with it, and no others. */
static void test_many_pds(void)
{
    enum { PDS = 100 };
    g_autoptr(QPvrdma) d = pv_alone();
    uint32_t other = qpvrdma_create_pd(d, 0), pd = 0;
    uint32_t kept = qpvrdma_get_dma_mr(d, other).handle;

    for (int round = 0; round < 2; round++) {
        qpvrdma_create_uc(d, 3);
        for (int i = 0; i < PDS; i++) {
            pd = qpvrdma_create_pd(d, 3);
            qpvrdma_reg_mr(d, pd, 0x1000, 1, 1);
        }
        assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_UC, 3));
        assert_fails(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_PD, pd));
    }
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_MR, kept));
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_PD, other));
}

/* Each object is destroyed once, and its doorbells have no effect then. */
static void test_twice(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    QPvrdma *d = p.a.dev;
    PvrdmaCmdCreateSrq create = { .pd = p.a.pd };
    QPvrdmaSrq srq;

    assert_done(qpvrdma_try_create_srq(d, 3, &create, &srq));

    const Handle objects[] = {
        { PVRDMA_CMD_DESTROY_QP, p.a.qp.handle },
        { PVRDMA_CMD_DESTROY_SRQ, srq.handle },
        { PVRDMA_CMD_DESTROY_MR, p.a.mr.handle },
        { PVRDMA_CMD_DESTROY_CQ, p.a.scq.handle },
        { PVRDMA_CMD_DESTROY_CQ, p.a.rcq.handle },
        { PVRDMA_CMD_DESTROY_PD, p.a.pd },
        { PVRDMA_CMD_DESTROY_UC, 3 },
    };

    for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
        for (int again = 0; again < 3; again++) {
            g_assert_cmpint(!qpvrdma_destroy(d, objects[i].cmd,
                                             objects[i].handle), ==, !again);
        }
        for (uint32_t at = 0; at <= PVRDMA_UAR_SRQ; at += 4) {
            qpvrdma_ring_doorbell(d, 3, at, objects[i].handle | 7u << 29);
        }
    }
}

/*
 * A driver clears the slot of a handle after the command, so that a handle that
 * is used again at once would be lost.
 */
static void test_round_robin(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QPvrdma *d = p.a.dev;
    uint32_t last_cq = UINT32_MAX, last_qp = UINT32_MAX, last_pd = UINT32_MAX;

    for (int i = 0; i < 4; i++) {
        QPvrdmaCq cq = qpvrdma_create_cq(d, 0, 64);
        uint32_t pd = qpvrdma_create_pd(d, 0);
        QPvrdmaQp qp = qpvrdma_create_qp(d, 0, pd, &cq, &cq, RDMA_QPT_RC);

        g_assert_cmpint(cq.handle, !=, last_cq);
        g_assert_cmpint(qp.handle, !=, last_qp);
        g_assert_cmpint(pd, !=, last_pd);
        g_assert_cmpint(qp.handle, <, d->caps.max_qp);
        g_assert_cmpint(cq.handle, <, d->caps.max_cq);
        assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_QP, qp.handle));
        assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_PD, pd));
        assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_CQ, cq.handle));
        last_cq = cq.handle;
        last_qp = qp.handle;
        last_pd = pd;
    }
}

/* Steps of the probe and of removal, each twice and in any order */
static void test_steps_twice(void)
{
    g_autoptr(QPvrdma) d = pv_alone();
    static const uint32_t ctl[] = {
        PVRDMA_CTL_ACTIVATE, PVRDMA_CTL_ACTIVATE, PVRDMA_CTL_UNQUIESCE,
        PVRDMA_CTL_UNQUIESCE,
    };
    uint32_t pd = qpvrdma_create_pd(d, 0);

    qpvrdma_create_uc(d, 3);
    for (size_t i = 0; i < ARRAY_SIZE(ctl); i++) {
        qpvrdma_write(d, PVRDMA_REG_CTL, ctl[i]);
        assert_done(qpvrdma_read(d, PVRDMA_REG_ERR));
    }
    /* The objects are still there. */
    assert_done(qpvrdma_destroy(d, PVRDMA_CMD_DESTROY_PD, pd));
    qpvrdma_write(d, PVRDMA_REG_CTL, 3);
    assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
    for (int i = 0; i < 2; i++) {
        qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
        qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_UNQUIESCE);
        assert_fails(qpvrdma_read(d, PVRDMA_REG_ERR));
    }
    /* The region is written twice before ACTIVATE. */
    qpvrdma_set_dsr(d);
    qpvrdma_set_dsr(d);
    qpvrdma_write(d, PVRDMA_REG_CTL, PVRDMA_CTL_ACTIVATE);
    assert_done(qpvrdma_read(d, PVRDMA_REG_ERR));
    qpvrdma_create_pd(d, 0);
    /* RESET has ended the context. */
    qpvrdma_create_uc(d, 3);
}

const QRdmaTest pvrdma_handle_tests[] = {
    { "other-contexts", test_other_contexts },
    { "no-context", test_no_context },
    { "pages", test_pages },
    { "bad-pages", test_bad_pages },
    { "page-of-unknown-context", test_page_of_unknown_context },
    { "many-pds", test_many_pds },
    { "twice", test_twice },
    { "round-robin", test_round_robin },
    { "steps-twice", test_steps_twice },
    { }
};
