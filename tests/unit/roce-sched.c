/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The order of packets: fairness, fences, windows, loopback, and the calls that
 * the owner makes.
 */
#include <string.h>
#include "roce-link.h"

#define BTH_OFF (14 + 20 + 8)       /* IPv4 */
#define BIG (64 * 1024)

static uint32_t dqpn_of(const uint8_t *frame)
{
    return frame[BTH_OFF + 5] << 16 | frame[BTH_OFF + 6] << 8 |
           frame[BTH_OFF + 7];
}

/* The number of frames of node a until the first one to @dqpn */
typedef struct Watch {
    uint32_t dqpn;
    unsigned frames;
    unsigned first;
    unsigned count[LINK_MAX_QP];
} Watch;

static bool watch_frame(RoceLink *l, unsigned from, const uint8_t *frame,
                        size_t len, void *opaque)
{
    Watch *w = opaque;

    if (from == 0) {
        w->frames++;
        w->count[dqpn_of(frame)]++;
        if (!w->first && dqpn_of(frame) == w->dqpn) {
            w->first = w->frames;
        }
    }
    return true;
}

static void connect_more(LinkPair *p, uint32_t aq, uint32_t bq)
{
    LinkQpSpec spec = link_spec();

    spec.qpn[0] = aq;
    spec.qpn[1] = bq;
    link_connect(p->l, &spec);
}

static void post_write(LinkPair *p, uint32_t qpn, uint64_t wr_id,
                       uint32_t len)
{
    RdmaSge sge = link_sge(p->amr, 0, len);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge);

    wr.wr.rdma.remote_addr = p->bmr->attr.iova;
    wr.wr.rdma.rkey = p->bmr->attr.rkey;
    link_post(p->a, qpn, &wr);
}

static void test_short_message_passes_long_ones(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    Watch w = { .dqpn = 31 };
    unsigned i;

    connect_more(&p, 10, 20);
    connect_more(&p, 11, 21);
    connect_more(&p, 30, 31);
    p.l->filter = watch_frame;
    p.l->filter_opaque = &w;
    for (i = 0; i < 30; i++) {
        post_write(&p, 10, 1, 2 * BIG);
        post_write(&p, 11, 1, 2 * BIG);
    }
    post_write(&p, 30, 99, 64);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    /* One turn of each other QP comes first. */
    g_assert_cmpuint(w.first, <=, 2 * 16 + 1);
    link_pair_free(&p);
}

static void test_equal_shares(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    Watch w = { .dqpn = 0 };
    unsigned i, q;

    for (q = 0; q < 8; q++) {
        connect_more(&p, 10 + q, 30 + q);
        for (i = 0; i < 8; i++) {
            post_write(&p, 10 + q, 1, 2 * BIG);
        }
    }
    p.l->filter = watch_frame;
    p.l->filter_opaque = &w;
    /* Of 64 MiB posted, check some frames in the middle. */
    link_run(p.l, 7 * LINK_DELAY);
    for (q = 0; q < 8; q++) {
        g_assert_cmpuint(w.count[30 + q], >=, w.frames / 8 - 32);
        g_assert_cmpuint(w.count[30 + q], <=, w.frames / 8 + 32);
    }
    link_run(p.l, LINK_FOREVER);
    link_pair_free(&p);
}

static void test_read_responses_share_with_requests(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.bmr, 0, 2 * BIG);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_READ, 1, &sge);
    RoceTxFrame *frame = g_new(RoceTxFrame, 1);
    unsigned responses = 0, requests = 0;

    /* On the same pair, b reads from a while a writes to b. */
    wr.wr.rdma.remote_addr = p.amr->attr.iova;
    wr.wr.rdma.rkey = p.amr->attr.rkey;
    link_post(p.b, p.bq, &wr);
    link_run(p.l, LINK_DELAY / 2);
    p.l->hold = true;
    link_run(p.l, LINK_DELAY);
    post_write(&p, p.aq, 2, 2 * BIG);
    while (responses + requests < 40) {
        uint8_t opcode;

        g_assert_true(roce_poll_tx(p.a->e, p.l->now, frame));
        opcode = ((uint8_t *)frame->iov[0].iov_base)[BTH_OFF];
        if (opcode >= 0x0d && opcode <= 0x10) {
            responses++;
        } else {
            requests++;
        }
        roce_tx_done(p.a->e, frame);
    }
    g_assert_cmpuint(responses, >=, 18);
    g_assert_cmpuint(requests, >=, 18);
    g_free(frame);
    link_pair_free(&p);
}

static void test_window(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    spec.mtu = RDMA_MTU_256;
    connect_more(&p, 10, 11);
    post_write(&p, 10, 1, 2 * BIG);
    post_write(&p, 10, 2, 2 * BIG);
    link_pump(p.l);
    /* No more packets than the window are unacknowledged. */
    g_assert_cmpuint(p.l->sent[0], ==, 128);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    /* ACKs are coalesced. */
    g_assert_cmpuint(p.l->sent[1], <=, 2 * 128 / 32 + 2);
    link_pair_free(&p);
}

/* roce_waits_for_acks() reports whether requests wait for acknowledgements. */
static void test_waits_for_acks(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 100);
    link_pump(p.l);
    g_assert_false(roce_waits_for_acks(p.a->e));
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, LINK_PAIR_MEM);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 3, 0, LINK_PAIR_MEM);
    link_pump(p.l);
    g_assert_true(roce_waits_for_acks(p.a->e));
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_false(roce_waits_for_acks(p.a->e));

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 4, 0, LINK_PAIR_MEM);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 5, 0, LINK_PAIR_MEM);
    link_pump(p.l);
    g_assert_true(roce_waits_for_acks(p.a->e));
    roce_reset(p.a->e);
    g_assert_false(roce_waits_for_acks(p.a->e));
    link_pair_free(&p);
}

static void test_acks_are_coalesced(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i;

    for (i = 0; i < 50; i++) {
        post_write(&p, p.aq, i, 64);
    }
    /* All requests arrive before b has a turn to send. */
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 50; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(p.l->sent[1], ==, 1);
    link_pair_free(&p);
}

/* A WRITE with a fence has the data that the READ before it has fetched. */
static void test_fence(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, 5000);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 2, &sge);
    uint64_t sent;

    link_fill(p.bmr, 4);
    link_set(p.amr, 0);
    link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 0, 5000);
    wr.send_flags |= RDMA_SEND_FENCE;
    wr.wr.rdma.remote_addr = p.bmr->attr.iova + 50000;
    wr.wr.rdma.rkey = p.bmr->attr.rkey;
    link_post(p.a, p.aq, &wr);
    link_pump(p.l);
    sent = p.l->sent[0];
    g_assert_cmpuint(sent, ==, 1);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.bmr, 0, p.bmr, 50000, 5000));
    link_pair_free(&p);
}

static void test_read_limit(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    unsigned i;

    spec.rd_atomic[0] = 2;
    p = link_pair(&spec);
    for (i = 0; i < 5; i++) {
        link_pair_post(&p, i & 1 ? RDMA_WR_RDMA_READ
                                 : RDMA_WR_ATOMIC_FETCH_AND_ADD, i,
                       8 - p.bmr->attr.iova % 8 + 64 * i, 8);
    }
    link_pump(p.l);
    g_assert_cmpuint(p.l->sent[0], ==, 2);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    for (i = 0; i < 5; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    link_pair_free(&p);
}

static void test_unsignalled(void)
{
    LinkQpSpec spec = link_spec();
    unsigned sig_all, i;

    for (sig_all = 0; sig_all < 2; sig_all++) {
        LinkPair p;

        spec.sig_all = sig_all;
        p = link_pair(&spec);
        for (i = 0; i < 10; i++) {
            RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, i, NULL);

            wr.send_flags = i == 4 ? RDMA_SEND_SIGNALED : 0;
            link_post(p.a, p.aq, &wr);
        }
        g_assert_true(link_run(p.l, LINK_FOREVER));
        g_assert_cmpuint(link_wcs(p.a), ==, sig_all ? 10 : 1);
        g_assert_cmpuint(link_wc(p.a).wc.wr_id, ==, sig_all ? 0 : 4);
        g_assert_cmpuint(p.a->retired[p.aq][RDMA_SQ], ==, 10);
        link_pair_free(&p);
    }
}

static void test_inline_data_is_copied(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, NULL);
    uint8_t data[3000], back[3000];
    unsigned i;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = i * 7;
    }
    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = data;
    wr.inline_len = sizeof(data);
    link_pair_recv(&p, 50, 0, sizeof(data));
    link_post(p.a, p.aq, &wr);
    memset(data, 0, sizeof(data));
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_read(p.bmr, 0, back, sizeof(back));
    for (i = 0; i < sizeof(back); i++) {
        g_assert_cmphex(back[i], ==, (uint8_t)(i * 7));
    }
    link_pair_free(&p);
}

/*
 * A frame belongs to the owner until roce_tx_done(), even if the guest destroys
 * the QP while the owner sends.
 */
static void test_frame_outlives_its_qp(gconstpointer data)
{
    static RoceTxFrame frame;
    LinkQpSpec spec = link_spec();
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, NULL);
    uint8_t msg[100];
    LinkPair p;
    unsigned i;

    spec.type = GPOINTER_TO_UINT(data);
    p = link_pair(&spec);
    memset(msg, 0x5a, sizeof(msg));
    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = msg;
    wr.inline_len = sizeof(msg);
    wr.wr.ud.remote_qpn = p.bq;
    wr.wr.ud.av = link_av(p.a, p.b, false);
    link_post(p.a, p.aq, &wr);
    g_assert_true(roce_poll_tx(p.a->e, p.l->now, &frame));
    for (i = 0; i < frame.iovcnt; i++) {
        const uint8_t *piece = frame.iov[i].iov_base;

        g_assert_true(piece >= (uint8_t *)&frame &&
                      piece + frame.iov[i].iov_len <=
                      (uint8_t *)(&frame + 1));
    }
    g_assert_cmpint(roce_qp_destroy(p.a->e, p.aq), ==, 0);
    g_assert_cmpmem(frame.iov[1].iov_base, frame.iov[1].iov_len, msg,
                    sizeof(msg));
    roce_tx_done(p.a->e, &frame);
    link_pair_free(&p);
}

/*
 * Packets with as many pieces as a frame has room for besides headers and
 * trailer, and with more. Pieces of the previous packet in the same RoceTxFrame
 * do not count.
 */
static void test_many_sges(void)
{
    static const struct {
        unsigned num;
        unsigned times, modulo;     /* lengths: i % modulo * times, or times */
    } cases[] = {
        { 80, 50 }, { 80, 17, 3 }, { 80, 1 }, { 62, 50 }, { 80, 50 },
        { 62, 1 }, { 63, 50 }, { 62, 50 }, { 64, 17, 3 },
    };
    LinkQpSpec spec = link_spec();
    LinkPair p;
    RdmaSge out[80], in[80];
    RdmaSendWr wr;
    RdmaRecvWr recv = { .wr_id = 50, .sg_list = in };
    unsigned i;

    spec.mtu = RDMA_MTU_4096;
    p = link_pair(&spec);
    for (unsigned c = 0; c < G_N_ELEMENTS(cases); c++) {
        const unsigned n = cases[c].num;
        size_t total = 0;

        link_fill(p.amr, c);
        link_set(p.bmr, 0);
        for (i = 0; i < n; i++) {
            uint32_t len = cases[c].times;

            if (cases[c].modulo) {
                len *= i % cases[c].modulo;
            }
            /* In b, the pieces are in reverse order. */
            out[i] = link_sge(p.amr, 1500 * i, len);
            in[i] = link_sge(p.bmr, 1500 * (n - 1 - i), len);
            total += len;
        }
        wr = link_wr(RDMA_WR_SEND, 1, out);
        wr.num_sge = recv.num_sge = n;
        consumer_post_recv(p.b->consumer, p.bq, &recv);
        link_post(p.a, p.aq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        g_assert_cmpuint(link_expect(p.b, 50, RDMA_WC_SUCCESS).byte_len, ==,
                         total);
        for (i = 0; i < n; i++) {
            g_assert_true(link_same(p.amr, 1500 * i, p.bmr,
                                    1500 * (n - 1 - i), out[i].length));
        }
    }
    link_pair_free(&p);
}

/* Neighbouring pages are mapped by one call, also the last two of a region. */
static void test_pages_are_merged(void)
{
    static const struct {
        RdmaMrType type;
        uint32_t off, len;
        unsigned maps;
    } cases[] = {
        { RDMA_MR_DMA, 0, 40960, 10 },
        { RDMA_MR_USER, 2048, 4096, 1 },
    };
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.mtu = RDMA_MTU_4096;
    p = link_pair(&spec);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint32_t mrn = 200 + i;
        uint64_t first = link_dma(p.amr, 0) & ~65535ull;
        RdmaMrAttr attr = {
            .type = cases[i].type, .mrn = mrn, .pdn = LINK_PDN,
            .lkey = mrn << 8, .access = RDMA_ACCESS_LOCAL_WRITE,
        };
        RdmaSge sge = { first + cases[i].off, cases[i].len, mrn << 8 };
        RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);
        unsigned before = p.a->map_calls;

        if (attr.type == RDMA_MR_USER) {
            attr.iova = first;
            attr.length = 2 * RDMA_PAGE_SIZE;
            attr.npages = 2;
            attr.pages = g_new(uint64_t, 2);
            attr.pages[0] = first;
            attr.pages[1] = first + RDMA_PAGE_SIZE;
        }
        g_assert_cmpint(roce_mr_create(p.a->e, &attr), ==, 0);
        wr.wr.rdma.remote_addr = p.bmr->attr.iova;
        wr.wr.rdma.rkey = p.bmr->attr.rkey;
        link_post(p.a, p.aq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        g_assert_cmpuint(p.a->map_calls - before, ==, cases[i].maps);
    }
    link_pair_free(&p);
}

/* Loopback: two QPs of one node, or a QP with itself */
static void loopback(RdmaQpType type, bool ipv6, bool self)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkQpSpec spec = link_spec();
    LinkMr *mr = link_mr(n, 2 * BIG, LINK_ALL_ACCESS);
    RdmaSge sge = link_sge(mr, 0, 3000);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, &sge);
    RdmaQpAttr attr;
    unsigned side, s;
    uint32_t mask;

    spec.type = type;
    spec.psn[0] = spec.psn[1] = 5;
    if (self) {
        spec.qpn[1] = spec.qpn[0];
    }
    for (side = 0; side < (self ? 1 : 2); side++) {
        link_create(n, &spec, side);
        for (s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            mask = link_attr(l, &spec, side, s, &attr);
            attr.ah_attr = link_av(n, n, ipv6);
            g_assert_cmpint(roce_qp_modify(n->e, spec.qpn[side], mask, &attr),
                            ==, 0);
        }
    }
    wr.wr.ud.remote_qpn = spec.qpn[1];
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(n, n, ipv6);
    if (type != RDMA_QPT_UD) {
        memset(&wr.wr, 0, sizeof(wr.wr));
    }
    link_fill(mr, 6);
    link_post_recv(n, spec.qpn[1], 50, link_sge(mr, BIG, 4000));
    link_post(n, spec.qpn[0], &wr);
    g_assert_true(link_run(l, LINK_FOREVER));
    /* The order of the two depends on the service. */
    g_assert_cmpuint(link_wcs(n), ==, 2);
    g_assert_true(link_same(mr, 0, mr, BIG + (type == RDMA_QPT_UD ? 40 : 0),
                            3000));
    g_assert_cmpint(link_wc(n).wc.status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpint(link_wc(n).wc.status, ==, RDMA_WC_SUCCESS);

    if (type == RDMA_QPT_RC) {
        wr = link_wr(RDMA_WR_RDMA_READ, 2, &sge);
        wr.wr.rdma.remote_addr = mr->attr.iova + BIG + 50;
        wr.wr.rdma.rkey = mr->attr.rkey;
        link_post(n, spec.qpn[0], &wr);
        sge = link_sge(mr, 8192, 8);
        wr = link_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 3, &sge);
        wr.wr.atomic.remote_addr = (mr->attr.iova + 8) & ~7ull;
        wr.wr.atomic.rkey = mr->attr.rkey;
        link_post(n, spec.qpn[0], &wr);
        g_assert_true(link_run(l, LINK_FOREVER));
        link_expect(n, 2, RDMA_WC_SUCCESS);
        link_expect(n, 3, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(l->sent[0], ==, 0);
    g_assert_cmpuint(roce_stats(n->e)->loopback_frames, >, 0);
    g_assert_cmpuint(roce_stats(n->e)->tx_frames, ==, 0);
    link_mr_free(mr);
    link_free(l);
}

static void test_loopback(void)
{
    unsigned ipv6;

    for (ipv6 = 0; ipv6 < 2; ipv6++) {
        loopback(RDMA_QPT_RC, ipv6, false);
        loopback(RDMA_QPT_RC, ipv6, true);
        loopback(RDMA_QPT_UC, ipv6, false);
        loopback(RDMA_QPT_UD, ipv6, false);
        loopback(RDMA_QPT_UD, ipv6, true);
    }
}

static void test_loopback_limits_work_per_call(void)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkQpSpec spec = link_spec();
    LinkMr *mr = link_mr(n, 2 * BIG, LINK_ALL_ACCESS);
    RdmaSge sge = link_sge(mr, 0, 2 * BIG);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);
    RoceTxFrame *frame = g_new(RoceTxFrame, 1);
    unsigned i, side, s, calls = 0;
    RdmaQpAttr attr;
    uint32_t mask;

    for (side = 0; side < 2; side++) {
        link_create(n, &spec, side);
        for (s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            mask = link_attr(l, &spec, side, s, &attr);
            attr.ah_attr = link_av(n, n, false);
            roce_qp_modify(n->e, spec.qpn[side], mask, &attr);
        }
    }
    wr.wr.rdma.remote_addr = mr->attr.iova;
    wr.wr.rdma.rkey = mr->attr.rkey;
    for (i = 0; i < 64; i++) {
        link_post(n, 2, &wr);
    }
    /* 8 MiB in 8192 frames take several calls, and the engine asks for them. */
    do {
        uint64_t before = roce_stats(n->e)->loopback_frames;

        n->woken = false;
        g_assert_false(roce_poll_tx(n->e, 1, frame));
        g_assert_cmpuint(roce_stats(n->e)->loopback_frames - before, <=,
                         256);
        g_assert_true(!n->woken || roce_next_deadline(n->e) == 1);
        calls++;
    } while (n->woken);
    g_assert_cmpuint(calls, >, 30);
    g_assert_cmpuint(link_wcs(n), ==, 64);
    g_free(frame);
    link_mr_free(mr);
    link_free(l);
}

static void test_udp_source_ports(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceTxFrame *frame = g_new(RoceTxFrame, 1);
    GHashTable *ports = g_hash_table_new(NULL, NULL);
    unsigned q;

    for (q = 10; q < 50; q++) {
        const uint8_t *hdr;
        unsigned port;

        connect_more(&p, q, q);
        post_write(&p, q, 1, 10);
        g_assert_true(roce_poll_tx(p.a->e, 0, frame));
        hdr = frame->iov[0].iov_base;
        port = hdr[34] << 8 | hdr[35];
        g_assert_cmpuint(port, >=, 0xc000);
        g_hash_table_add(ports, GUINT_TO_POINTER(port));
        roce_tx_done(p.a->e, frame);
    }
    g_assert_cmpuint(g_hash_table_size(ports), >, 35);
    g_hash_table_destroy(ports);
    g_free(frame);
    link_pair_free(&p);
}

/*
 * The owner is woken once, and again only after roce_poll_tx() returned false.
 */
static void test_wake(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    link_run(p.l, LINK_FOREVER);
    p.a->woken = false;
    post_write(&p, p.aq, 1, 10);
    g_assert_true(p.a->woken);
    p.a->woken = false;
    post_write(&p, p.aq, 2, 10);
    g_assert_false(p.a->woken);
    link_run(p.l, LINK_FOREVER);
    p.a->woken = false;
    post_write(&p, p.aq, 3, 10);
    g_assert_true(p.a->woken);
    link_run(p.l, LINK_FOREVER);
    link_pair_free(&p);
}

/* The timers of many QPs run in order, each at its time. */
static void test_timers(void)
{
    RoceLink *l = link_new(1);
    LinkNode *n = &l->node[0];
    LinkQpSpec spec = link_spec();
    int64_t last = 0;
    unsigned q;

    spec.retry_cnt = 0;
    for (q = 0; q < 40; q++) {
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, q, NULL);

        spec.qpn[0] = spec.qpn[1] = 10 + q;
        spec.timeout = 1 + (q * 7) % 20;
        link_connect(l, &spec);
        link_post(n, 10 + q, &wr);
    }
    link_set_up(n, false);
    while (!link_run(l, 1000)) {
        while (link_wcs(n)) {
            LinkWc entry = link_wc(n);
            int64_t due = 1 + (INT64_C(4096) <<
                               (1 + (entry.wc.wr_id * 7) % 20));

            g_assert_cmpint(entry.wc.status, ==, RDMA_WC_RETRY_EXC_ERR);
            g_assert_cmpint(due, >=, last);
            g_assert_cmpint(l->now, >=, due);
            g_assert_cmpint(l->now, <, due + 1000);
            last = due;
        }
    }
    g_assert_cmpuint(n->completed, ==, 40);
    link_free(l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/sched/short-message-passes-long-ones",
                    test_short_message_passes_long_ones);
    g_test_add_func("/roce/sched/equal-shares", test_equal_shares);
    g_test_add_func("/roce/sched/read-responses-share-with-requests",
                    test_read_responses_share_with_requests);
    g_test_add_func("/roce/sched/window", test_window);
    g_test_add_func("/roce/sched/acks-are-coalesced",
                    test_acks_are_coalesced);
    g_test_add_func("/roce/sched/fence", test_fence);
    g_test_add_func("/roce/sched/read-limit", test_read_limit);
    g_test_add_func("/roce/sched/unsignalled", test_unsignalled);
    g_test_add_func("/roce/sched/inline-data-is-copied",
                    test_inline_data_is_copied);
    g_test_add_data_func("/roce/sched/frame-outlives-its-qp/rc",
                         GUINT_TO_POINTER(RDMA_QPT_RC),
                         test_frame_outlives_its_qp);
    g_test_add_data_func("/roce/sched/frame-outlives-its-qp/uc",
                         GUINT_TO_POINTER(RDMA_QPT_UC),
                         test_frame_outlives_its_qp);
    g_test_add_data_func("/roce/sched/frame-outlives-its-qp/ud",
                         GUINT_TO_POINTER(RDMA_QPT_UD),
                         test_frame_outlives_its_qp);
    g_test_add_func("/roce/sched/many-sges", test_many_sges);
    g_test_add_func("/roce/sched/pages-are-merged", test_pages_are_merged);
    g_test_add_func("/roce/sched/udp-source-ports", test_udp_source_ports);
    g_test_add_func("/roce/sched/wake", test_wake);
    g_test_add_func("/roce/sched/timers", test_timers);
    g_test_add_func("/roce/loopback/services", test_loopback);
    g_test_add_func("/roce/loopback/limits-work-per-call",
                    test_loopback_limits_work_per_call);
    g_test_add_func("/roce/sched/waits-for-acks", test_waits_for_acks);
    return g_test_run();
}
