/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: work requests that must not reach a library of the host, even if
 * it would take them, and other differences of guest and host.
 */
#include "qemu/osdep.h"
#include "verbs-test.h"

#define WINDOWED 0x40000000ull

/* Assert that the host gets only a request that names no memory. */
static void expect_refused(Verbs *v, RdmaQpType type, RdmaSendWr wr,
                           RdmaQpState state)
{
    VerbsPair p = verbs_pair(v, type);
    RdmaSge sge = qrdma_sge(p.mr_a, 0, 8);

    if (!(wr.send_flags & RDMA_SEND_INLINE)) {
        wr.sg_list = &sge;
        wr.num_sge = 1;
    }
    qrdma_mr_fill(p.mr_a, 0, 100, 1);
    qrdma_mr_fill(p.mr_b, 0, 100, 2);
    wr.wr.rdma.remote_addr = p.mr_b->iova;
    wr.wr.rdma.rkey = p.mr_b->rkey;
    qrdma_post_expect(p.a, wr, RDMA_WC_LOC_QP_OP_ERR);
    g_assert_cmpint(qrdma_qp_state(p.a), ==, state);
    qrdma_mr_check(p.mr_a, 0, 100, 1);
    qrdma_mr_check(p.mr_b, 0, 100, 2);
    verbs_restart(v);
}

static void test_opcodes_that_uc_does_not_have(void)
{
    static const RdmaWrOpcode bad[] = {
        RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_CMP_AND_SWP,
        RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_WR_SEND_WITH_INV,
        RDMA_WR_RDMA_READ_WITH_INV,
    };
    g_autoptr(Verbs) v = verbs_new(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        expect_refused(v, RDMA_QPT_UC, qrdma_wr(bad[i], i, NULL), RDMA_QPS_SQE);
    }
}

/* A library may take the pointer of inline data for memory to write to. */
static void test_inline_data_is_only_sent(void)
{
    static const RdmaWrOpcode bad[] = {
        RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_CMP_AND_SWP,
        RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_WR_LOCAL_INV, RDMA_WR_BIND_MW,
    };
    static const uint8_t data[8];
    g_autoptr(Verbs) v = verbs_new(NULL);

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        RdmaSendWr wr = qrdma_wr(bad[i], i, NULL);

        wr.send_flags |= RDMA_SEND_INLINE;
        wr.inline_data = data;
        wr.inline_len = sizeof(data);
        expect_refused(v, RDMA_QPT_RC, wr, RDMA_QPS_ERR);
    }
}

/* A connected pair with a window of @type, and a region that has windows. */
typedef struct Window {
    VerbsPair p;
    QRdmaMr *mr;
    QRdmaMw mw;
} Window;

static Window window_new(Verbs *v, RdmaMwType type)
{
    Window w = { .p = verbs_pair(v, RDMA_QPT_RC) };

    w.mr = qrdma_reg_mr(w.p.pd, WINDOWED, 4096,
                        VERBS_ACCESS_ALL | RDMA_ACCESS_MW_BIND);
    assert_ok(qrdma_alloc_mw(w.p.pd, type, &w.mw));
    return w;
}

static RdmaSendWr bind_wr(const Window *w)
{
    return qrdma_bind_wr(&w->mw, w->mr, 0, 100, RDMA_ACCESS_REMOTE_READ);
}

/* A bind that failed leaves the key of the window unchanged. */
static void test_window_after_a_bind_that_failed(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);

    for (RdmaMwType type = RDMA_MW_TYPE_1; type <= RDMA_MW_TYPE_2; type++) {
        Window w = window_new(v, type);
        RdmaSendWr wr = qrdma_bind_wr(&w.mw, w.p.mr_a, 0, 100,
                                      RDMA_ACCESS_REMOTE_READ);

        qrdma_post_expect(w.p.a, wr, RDMA_WC_MW_BIND_ERR);
        qrdma_reconnect(w.p.a, w.p.b, NULL);
        qrdma_post_expect(w.p.a, bind_wr(&w), RDMA_WC_SUCCESS);
        verbs_restart(v);
    }
}

/* A bind that the library refuses leaves the key unchanged, too. */
static void test_window_after_a_bind_that_was_refused(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Window w = window_new(v, RDMA_MW_TYPE_1);
    RdmaSendWr wr = bind_wr(&w);

    fake_verbs_tell(v->fake, "fail bind_mw ENOMEM");
    qrdma_post_expect(w.p.a, wr, RDMA_WC_MW_BIND_ERR);
    qrdma_reconnect(w.p.a, w.p.b, NULL);
    /* the key is not the next one */
    wr.wr.bind.new_rkey = w.mw.rkey;
    qrdma_post_expect(w.p.a, wr, RDMA_WC_MW_BIND_ERR);
    qrdma_reconnect(w.p.a, w.p.b, NULL);
    qrdma_post_expect(w.p.a, bind_wr(&w), RDMA_WC_SUCCESS);
}

/* The guest chooses only the last 8 bits of a window's key. */
static void test_key_of_another_window(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    Window w = window_new(v, RDMA_MW_TYPE_2);
    RdmaSendWr wr = bind_wr(&w);

    wr.wr.bind.new_rkey += 0x100;
    qrdma_post_expect(w.p.a, wr, RDMA_WC_MW_BIND_ERR);
    qrdma_reconnect(w.p.a, w.p.b, NULL);
    assert_ok(qrdma_dealloc_mw(&w.mw));
    qrdma_post_expect(w.p.a, bind_wr(&w), RDMA_WC_MW_BIND_ERR);
}

/* A bind without a length names the window, and needs no region. */
static void test_unbind_without_a_region(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);

    for (RdmaMwType type = RDMA_MW_TYPE_1; type <= RDMA_MW_TYPE_2; type++) {
        Window w = window_new(v, type);
        RdmaSendWr wr = bind_wr(&w);
        uint32_t rkey;

        qrdma_post_expect(w.p.a, wr, RDMA_WC_SUCCESS);
        w.mw.rkey = wr.wr.bind.new_rkey;
        wr = bind_wr(&w);
        wr.wr.bind.lkey = 0;
        wr.wr.bind.addr = 0;
        wr.wr.bind.length = 0;
        qrdma_post_expect(w.p.a, wr, RDMA_WC_SUCCESS);
        assert_ok(qrdma_dereg_mr(w.mr));
        /* The window is bound to a region that is gone */
        rkey = wr.wr.bind.new_rkey;
        wr.wr.bind.rkey = rkey;
        wr.wr.bind.new_rkey = (rkey & ~0xffu) | ((rkey + 1) & 0xff);
        qrdma_post_expect(w.p.a, wr, RDMA_WC_MW_BIND_ERR);
        verbs_restart(v);
    }
}

/*
 * The host does not report which receives were solicited. So all receives count
 * as solicited, and no sends.
 */
static void test_sends_are_not_solicited(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    assert_ok(qrdma_req_notify_cq(p.cq_a, VIRTIO_RDMA_NOTIFY_SOLICITED));
    assert_ok(qrdma_req_notify_cq(p.cq_b, VIRTIO_RDMA_NOTIFY_SOLICITED));
    qrdma_ring_irq(p.cq_a->ring);
    qrdma_ring_irq(p.cq_b->ring);
    verbs_check_works(&p, 1);
    g_assert_true(qrdma_ring_irq(p.cq_b->ring));
    g_assert_false(qrdma_ring_irq(p.cq_a->ring));
}

const QRdmaTest verbs_wqe_tests[] = {
    { "opcodes-that-uc-does-not-have", test_opcodes_that_uc_does_not_have },
    { "inline-data-is-only-sent", test_inline_data_is_only_sent },
    { "window-after-a-bind-that-failed", test_window_after_a_bind_that_failed },
    { "key-of-another-window", test_key_of_another_window },
    { "unbind-without-a-region", test_unbind_without_a_region },
    { "window-after-a-bind-that-was-refused",
      test_window_after_a_bind_that_was_refused },
    { "sends-are-not-solicited", test_sends_are_not_solicited },
    {}
};
