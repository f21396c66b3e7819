/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory of queues: how many WQEs the engine holds at a time, and its
 * behaviour if there is no memory for them.
 */
#include <errno.h>
#include <sys/resource.h>
#include "rdma/roce-state.h"
#include "roce-link.h"

#define MAX_WR 1000
#define NUM_WRS 2500
#define MIB 1048576ull

/*
 * However deep a queue is, the engine holds a limited number of WRs at a time,
 * so that its memory is limited. The other WRs follow in order.
 */
static void test_depth_is_bounded(void)
{
    LinkQpSpec spec = link_spec();
    unsigned sent = 0, received = 0;
    RdmaInspection in;
    LinkPair p;

    spec.cap.max_send_wr = spec.cap.max_recv_wr = MAX_WR;
    p = link_pair(&spec);
    while (sent < NUM_WRS || received < NUM_WRS) {
        for (unsigned i = 0; received < NUM_WRS && i < 64; i++) {
            link_pair_recv(&p, received++, 0, 8);
        }
        while (sent < NUM_WRS && link_send_room(p.a, p.aq)) {
            link_pair_post(&p, RDMA_WR_SEND, sent++, 0, 8);
        }
        /* At times the sender finds no receive. */
        link_run(p.l, LINK_MS);
        roce_inspect(p.a->e, RDMA_OBJECT_QP, p.aq, &in);
        g_assert_cmpuint(in.qp.sends, <=, 256);
        roce_inspect(p.b->e, RDMA_OBJECT_QP, p.bq, &in);
        g_assert_cmpuint(in.qp.recvs, <=, 1);
    }
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (unsigned i = 0; i < NUM_WRS; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
        link_expect(p.b, i, RDMA_WC_SUCCESS);
    }
    link_pair_free(&p);
}

/* A list and inline data use the same slot of the ring in turn. */
static void test_lists_and_inline_data_share_memory(void)
{
    LinkQpSpec spec = link_spec();
    uint8_t want[24], got[24];
    uint8_t data[sizeof(want)];
    LinkPair p;

    spec.cap.max_send_wr = 2;
    spec.cap.max_send_sge = 1;
    spec.cap.max_inline_data = sizeof(data);
    p = link_pair(&spec);
    link_read(p.amr, 0, want, sizeof(want));
    memset(data, 0x5a, sizeof(data));
    for (unsigned i = 0; i < 9; i++) {
        RdmaSge sge = link_sge(p.amr, 0, sizeof(want));
        RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, i, &sge);
        bool is_inline = i % 3 == 1;

        if (is_inline) {
            wr.num_sge = 0;
            wr.send_flags |= RDMA_SEND_INLINE;
            wr.inline_data = data;
            wr.inline_len = sizeof(data);
        }
        wr.wr.rdma.remote_addr = p.bmr->attr.iova + 32 * i;
        wr.wr.rdma.rkey = p.bmr->attr.rkey;
        link_post(p.a, p.aq, &wr);
        if (i % 2) {
            g_assert_true(link_run(p.l, LINK_FOREVER));
        }
    }
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (unsigned i = 0; i < 9; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
        link_read(p.bmr, 32 * i, got, sizeof(got));
        g_assert_cmpmem(got, sizeof(got), i % 3 == 1 ? data : want,
                        sizeof(want));
    }
    link_pair_free(&p);
}

#define BURST_LEN 24

/* Post a send with number @i: a list of two parts, or inline data. */
static void post_in_parts(LinkPair *p, unsigned i, const uint8_t *data)
{
    RdmaSge sges[2] = {
        link_sge(p->amr, 32 * i, BURST_LEN / 2),
        link_sge(p->amr, 32 * i + BURST_LEN / 2, BURST_LEN / 2),
    };
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, i, sges);

    wr.num_sge = 2;
    if (i % 3 == 1) {
        wr.num_sge = 0;
        wr.send_flags |= RDMA_SEND_INLINE;
        wr.inline_data = data;
        wr.inline_len = BURST_LEN;
    }
    link_post(p->a, p->aq, &wr);
}

/* Rings grow wherever their oldest WQE is. */
static void test_bursts_that_grow(void)
{
    static const unsigned bursts[] = { 1, 2, 1, 3, 5, 4, 9, 17, 33 };
    LinkQpSpec spec = link_spec();
    uint8_t want[BURST_LEN], got[BURST_LEN];
    unsigned at = 0;
    LinkPair p;

    spec.cap.max_send_wr = spec.cap.max_recv_wr = 64;
    spec.cap.max_send_sge = 2;
    spec.cap.max_inline_data = BURST_LEN;
    p = link_pair(&spec);
    for (unsigned b = 0; b < G_N_ELEMENTS(bursts); b++) {
        for (unsigned i = at; i < at + bursts[b]; i++) {
            link_read(p.amr, 32 * i, want, sizeof(want));
            link_pair_recv(&p, i, 32 * i, sizeof(got));
            post_in_parts(&p, i, want);
        }
        g_assert_true(link_run(p.l, LINK_FOREVER));
        for (unsigned end = at + bursts[b]; at < end; at++) {
            link_expect(p.a, at, RDMA_WC_SUCCESS);
            link_expect(p.b, at, RDMA_WC_SUCCESS);
            link_read(p.amr, 32 * at, want, sizeof(want));
            link_read(p.bmr, 32 * at, got, sizeof(got));
            g_assert_cmpmem(got, sizeof(got), want, sizeof(want));
        }
    }
    link_pair_free(&p);
}

/* If there is no memory, no QP is created and nothing leaks (LeakSanitizer). */
static void refuse(uint32_t max_send_sge, uint32_t max_recv_sge, bool has_srq)
{
    RoceLink *l = link_new(1);
    RoceEngine *e = l->node[0].e;
    const RdmaSrqAttr srq = { .srqn = LINK_SRQ, .max_wr = 4, .max_sge = 1 };
    RdmaQpInitAttr init = {
        .qpn = 2,
        .qp_type = RDMA_QPT_RC,
        .has_srq = has_srq,
        .srqn = LINK_SRQ,
        .cap = {
            .max_send_wr = ROCE_MAX_WR,
            .max_recv_wr = ROCE_MAX_WR,
            .max_send_sge = max_send_sge,
            .max_recv_sge = max_recv_sge,
        },
    };

    g_assert_cmpint(roce_srq_create(e, &srq), ==, 0);
    g_assert_cmpint(roce_qp_create(e, &init), ==, -ENOMEM);
    g_assert_false(roce_has_qp(e, init.qpn));
    g_assert_cmpint(roce_srq_destroy(e, LINK_SRQ), ==, 0);

    init.has_srq = false;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    g_assert_cmpint(roce_qp_create(e, &init), ==, 0);
    link_free(l);
}

static void test_no_memory(void)
{
    refuse(1, UINT32_MAX, false);
    refuse(UINT32_MAX, 1, false);
    refuse(UINT32_MAX, 1, true);
}

static void test_no_memory_in_an_import(void)
{
    RoceLink *l = link_new(1);
    const RdmaQpCap max = {
        .max_send_wr = ROCE_MAX_WR,
        .max_recv_wr = ROCE_MAX_WR,
        .max_send_sge = UINT32_MAX,
        .max_recv_sge = UINT32_MAX,
    };
    RoceQpImage image = {
        .init = { .qpn = 2, .qp_type = RDMA_QPT_RC, .cap = max },
        .s.sq = {
            .ack_deadline = ROCE_NO_DEADLINE,
            .rnr_deadline = ROCE_NO_DEADLINE,
        },
    };
    g_autofree char *why = NULL;

    g_assert_cmpint(roce_import_qp(l->node[0].e, &image, &max, &why), ==,
                    -EINVAL);
    g_assert_cmpstr(why, ==, "no memory for queues with max_send_sge "
                    "4294967295, max_inline_data 0 and max_recv_sge "
                    "4294967295");
    link_free(l);
}

/*
 * There is memory for one list, also when the QP moves to a new engine, but not
 * for more. So requests go one at a time.
 */
static void test_no_memory_to_grow(void)
{
    LinkQpSpec spec = link_spec();
    RdmaSendWr wr;
    RdmaSge sge;
    LinkPair p;

    spec.cap.max_send_wr = 8;
    spec.cap.max_send_sge = 256 * MIB / sizeof(sge);
    p = link_pair(&spec);
    sge = link_sge(p.amr, 0, 8);
    for (unsigned i = 0; i < 3; i++) {
        link_pair_recv(&p, i, 0, 8);
        wr = link_wr(RDMA_WR_SEND, i, &sge);
        link_post(p.a, p.aq, &wr);
    }
    link_pump(p.l);
    g_assert_cmpuint(p.l->sent[0], ==, 1);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (unsigned i = 0; i < 3; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
        link_expect(p.b, i, RDMA_WC_SUCCESS);
    }
    link_pair_free(&p);
}

/* ASan, if the program uses it, whose allocator has its own limit */
void __asan_init(void) __attribute__((weak));
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=512";
}

static void limit_memory(void)
{
    const struct rlimit limit = { 1400 * MIB, RLIM_INFINITY };

    if (!__asan_init) {
        g_assert_cmpint(setrlimit(RLIMIT_AS, &limit), ==, 0);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    limit_memory();
    g_test_add_func("/roce/depth/is-bounded", test_depth_is_bounded);
    g_test_add_func("/roce/depth/lists-and-inline-data-share-memory",
                    test_lists_and_inline_data_share_memory);
    g_test_add_func("/roce/depth/bursts-that-grow", test_bursts_that_grow);
    g_test_add_func("/roce/depth/no-memory", test_no_memory);
    g_test_add_func("/roce/depth/no-memory-to-grow", test_no_memory_to_grow);
    g_test_add_func("/roce/depth/no-memory-in-an-import",
                    test_no_memory_in_an_import);
    return g_test_run();
}
