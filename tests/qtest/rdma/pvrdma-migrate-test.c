/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of pvrdma: both devices of a pair move to another QEMU, with work
 * in progress.
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "qemu/bswap.h"
#include "move.h"
#include "pvrdma-test.h"

#define LEN 3000
/* Virtual time between two looks at a CQ: more than the RNR timer of a QP */
#define STEP_NS (10 * 1000 * 1000)

static void move(const PvPair *p)
{
    g_autofree char *args = pv_host_args("");

    move_host(p->host, args);
}

static void post_send(PvEnd *e, uint64_t wr_id, uint8_t seed)
{
    pv_fill(e, 0, LEN, seed);
    pv_post(e, RDMA_WR_SEND, wr_id, LEN, NULL);
}

/* Step virtual time until the completion is there. */
static void wait_for(PvPair *p, PvEnd *e, QPvrdmaCq *cq, uint64_t wr_id,
                     uint32_t opcode)
{
    PvrdmaCqe cqe;

    qrdma_wait_until(e->dev, qpvrdma_poll_cq(e->dev, cq, &cqe) ||
                     (qtest_clock_step(p->host->qts, STEP_NS), false));
    g_assert_cmpint(cqe.status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpint(cqe.wr_id, ==, wr_id);
    g_assert_cmpint(cqe.opcode, ==, opcode);
}

static void expect_fired(PvEnd *e, const QPvrdmaCq *cq)
{
    uint32_t handle;

    qrdma_wait_until(e->dev, qpvrdma_interrupted(e->dev,
                                                 PVRDMA_VECTOR_COMPLETION));
    g_assert_true(qpvrdma_ring_pop(e->dev, &e->dev->completions, &handle));
    g_assert_cmpint(handle, ==, cq->handle);
}

/*
 * WQEs that are in flight and that wait, and an armed CQ, go along. Indices of
 * rings wrap around during the moves.
 */
static void test_live(const void *data)
{
    uint32_t page = GPOINTER_TO_UINT(data);
    g_auto(PvPair) p = pv_pair_new(page, RDMA_QPT_RC);
    QPvrdmaCq more;

    for (int i = 0; i < 40; i++) {
        pv_arm(&p.b, &p.b.rcq);
        post_send(&p.a, i, i);
        if (i % 10 == 0) {
            move(&p);
        }
        pv_recv(&p.b, 100 + i, LEN, LEN);
        wait_for(&p, &p.b, &p.b.rcq, 100 + i, RDMA_WC_RECV);
        wait_for(&p, &p.a, &p.a.scq, i, RDMA_WC_SEND);
        pv_assert_filled(&p.b, LEN, LEN, i);
        expect_fired(&p.b, &p.b.rcq);
    }
    /* Receives that wait in their ring */
    pv_recv(&p.a, 7, LEN, LEN);
    move(&p);
    post_send(&p.b, 8, 99);
    wait_for(&p, &p.a, &p.a.rcq, 7, RDMA_WC_RECV);
    wait_for(&p, &p.b, &p.b.scq, 8, RDMA_WC_SEND);
    pv_assert_filled(&p.a, LEN, LEN, 99);
    /* Commands, and contexts, of which objects exist */
    more = qpvrdma_create_cq(p.a.dev, page, 64);
    g_assert_cmpint(more.handle, !=, p.a.scq.handle);
    g_assert_cmpint(more.handle, !=, p.a.rcq.handle);
    assert_done(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_QP, p.a.qp.handle));
    if (page) {
        assert_done(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_UC, page));
        g_assert_cmpint(qpvrdma_destroy(p.a.dev, PVRDMA_CMD_DESTROY_CQ,
                                        more.handle), ==, ENOENT);
    }
}

/*
 * A command that is in progress goes along. The driver has read ERR, so the
 * destination fails the command by its reply.
 */
static void test_command(void)
{
    for (int bad = 0; bad < 2; bad++) {
        g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
        uint64_t table;
        PvrdmaCmdCreateMr req = pv_long_region(&p.a, &table);

        if (bad) {
            qtest_writeq(p.host->qts, req.dir + 8 * 511, 0x123000000000);
        }
        assert_done(qpvrdma_begin(p.a.dev, CREATE_MR, &req));
        qtest_qmp_assert_success(p.host->qts, "{'execute': 'stop'}");
        move(&p);
        g_assert_cmpint(qpvrdma_await_reply(p.a.dev) ==
                        (PVRDMA_ACK | PVRDMA_CMD_CREATE_MR), ==, !bad);
    }
}

/* The destination has the netdev of one device down. */
static void test_other_link(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    g_autofree char *args = pv_host_args("");
    PvrdmaEvent event;

    move_host_unplugged(p.host, args, "n0");
    pv_expect_event(p.a.dev, RDMA_EVENT_PORT_ERR, 1);
    g_assert_false(qpvrdma_ring_pop(p.a.dev, &p.a.dev->events, &event));
    g_assert_false(qpvrdma_ring_pop(p.b.dev, &p.b.dev->events, &event));
}

/* A destination that differs is named. */
static void test_refuse(void)
{
    static const char *const cases[][2] = {
        { ",max-cq=17", "this device has 17" },
        { ",max-qp=33", "this device has 33" },
        { ",max-qp-wr=1024", "max-qp-wr" },
        { ",max-uar=256", "max-uar" },
    };
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    Move m = move_save(p.host);

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *args = pv_host_args(cases[i][0]);

        move_expect_refused(&m, args, cases[i][1]);
    }
    move_end(&m);
}

static void test_spoilt(void)
{
    enum { PAGE = 5 };
    g_auto(PvPair) p = pv_pair_new(PAGE, RDMA_QPT_RC);
    /* The last page of each object, and what follows */
    const uint32_t cq = p.a.rcq.ring.elements;
    const uint32_t scq = p.a.scq.ring.elements;
    const uint32_t qp = p.a.qp.rq.elements;
    const uint32_t send_pages =
        (p.a.qp.rq.elements - p.a.qp.sq.elements) / RDMA_PAGE_SIZE;
    /* After the number of PDs: each PD, and its context */
    const uint32_t pd = p.a.pd;
    const uint32_t unused_pd = qpvrdma_create_pd(p.a.dev, PAGE);
    const MoveSpoilt cases[] = {
        { { cq, PAGE, 0, 0 }, 4, 0, cq + 8, "address of a page" },
        { { cq, PAGE, 0, 0 }, 4, 1, PAGE + 1,
          "has ctx=6, which must be a context that exists" },
        { { cq, PAGE, 0, 0 }, 4, 1, UINT32_MAX,
          "has ctx=4294967295, which must be a context that exists" },
        { { cq, PAGE, 0, 0 }, 4, 1, 0, "which must be of the context of its" },
        { { scq, PAGE, 0, 0 }, 4, 1, 0, "which must be of the context of its" },
        { { cq, PAGE, 0, 0 }, 4, 2, 3, "has arm=3, but at most 2" },
        { { cq, PAGE, 0, 0 }, 4, 3, 65,
          "has CQEs that are not consumed=65, but at most 64" },
        { { qp, send_pages, 0, 0 }, 4, 1, 0,
          "has pages of the SQ=0, which must be" },
        { { qp, send_pages, 0, 0 }, 4, 1, UINT32_MAX,
          "which must be as many as its queues need" },
        { { qp, send_pages, 0, 0 }, 4, 2, 1,
          "has WQEs that are posted=4294967295, but at most 16" },
        { { qp, send_pages, 0, 0 }, 4, 3, 17,
          "has WQEs that are posted=17, but at most 16" },
        { { 2, pd, PAGE }, 3, 0, UINT32_MAX,
          "4294967295 objects of kind PD in the migration stream" },
        { { 2, pd, PAGE }, 3, 1, UINT32_MAX, "has number=4294967295" },
        { { pd, PAGE, unused_pd, PAGE }, 4, 3, PAGE + 1,
          "has context=6, which must be one that exists" },
        { { 2, pd, PAGE }, 3, 2, 0, "which must be of the context of its" },
        /* The interrupt pin in the PCI configuration, from its vendor ID on */
        { { 0xad152008 }, 1, PCI_INTERRUPT_LINE / 4, 0,
          "Bad config data: i=0x3d read: 0 device: 1" },
    };
    g_autofree char *args = pv_host_args("");

    move_refuse_spoilt(p.host, args, cases, ARRAY_SIZE(cases));
}

/*
 * After the fields of a CQ comes the name of a subsection that it does not
 * have. The core then frees a CQ that has @fired, but is not in the list.
 */
static void test_half_loaded(void)
{
    enum { PAGE = 5 };
    static const char fired[] = "\x01" "\x05\x0b" "pvrdma/cq/x";
    g_auto(PvPair) p = pv_pair_new(PAGE, RDMA_QPT_RC);
    /* The last page of a CQ, its context, and whether it is armed */
    const uint32_t cq[] = { cpu_to_be32(p.a.rcq.ring.elements),
                            cpu_to_be32(PAGE), 0 };
    g_autofree char *args = pv_host_args("");
    Move m = move_save(p.host);
    g_autofree char *data = NULL;
    size_t size;
    char *at;

    g_assert_true(g_file_get_contents(m.state, &data, &size, NULL));
    at = memmem(data, size, cq, sizeof(cq));
    g_assert_nonnull(at);
    /* After two indices */
    memcpy(at + sizeof(cq) + 8, fired, sizeof(fired) - 1);
    g_assert_true(g_file_set_contents(m.state, data, size, NULL));
    move_expect_refused(&m, args, "Failed to load ");
    move_end(&m);
}

const QRdmaTest pvrdma_migrate_tests[] = {
    { "kernel", .run_case = test_live, .data = GUINT_TO_POINTER(0) },
    { "process", .run_case = test_live, .data = GUINT_TO_POINTER(3) },
    { "command", test_command },
    { "other-link", test_other_link },
    { "refuse", test_refuse },
    { "spoilt", test_spoilt },
    { "half-loaded", test_half_loaded },
    { }
};
