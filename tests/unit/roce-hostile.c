/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Broken or malicious peers: frames with a right ICRC and invalid contents.
 */
#include <string.h>
#include "roce-link.h"
#include "../../backends/rdma/roce/wire/wire.h"

/* Write a frame from the QP of node a to the QP of node b. */
static size_t make_frame(LinkPair *p, const RoceBth *bth, const void *payload,
                         size_t len, uint8_t *frame)
{
    struct iovec iov = { (void *)payload, len };
    RocePath path = { .is_ipv4 = true, .udp_sport = 0xc001 };
    uint8_t hdr[ROCE_MAX_HDR];
    size_t hdr_len;

    memcpy(path.dmac, p->b->mac, 6);
    memcpy(path.smac, p->a->mac, 6);
    memcpy(path.sgid, p->a->gid4, 16);
    memcpy(path.dgid, p->b->gid4, 16);
    hdr_len = roce_build(hdr, &path, bth, len);
    memcpy(frame, hdr, hdr_len);
    memcpy(frame + hdr_len, payload, len);
    return hdr_len + len +
           roce_icrc_trailer(hdr, hdr_len, true, &iov, 1,
                             frame + hdr_len + len);
}

static void inject(LinkPair *p, const RoceBth *bth, const void *payload,
                   size_t len)
{
    uint8_t frame[ROCE_MAX_FRAME];

    len = make_frame(p, bth, payload, len, frame);
    link_inject(p->l, 1, frame, len);
}

static RoceBth bth_to(LinkPair *p, uint8_t opcode, uint32_t psn)
{
    return (RoceBth) {
        .opcode = opcode,
        .pkey = RDMA_DEFAULT_PKEY,
        .dqpn = p->bq,
        .psn = psn & 0xffffff,
        .ack_req = true,
    };
}

static uint8_t junk[ROCE_MAX_PAYLOAD];

/* The QP of node b still works: it executes a WRITE. */
static void check_alive(LinkPair *p)
{
    link_fill(p->amr, 12);
    link_pair_post(p, RDMA_WR_RDMA_WRITE, 1, 0, 5000);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    link_expect(p->a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p->amr, 0, p->bmr, 0, 5000));
    g_assert_cmpuint(link_wcs(p->b), ==, 0);
    g_assert_cmpuint(p->b->events->len, ==, 0);
}

static void test_wrong_destination(void)
{
    static const uint32_t qpns[] = { 0, 1, 2, 4, LINK_MAX_QP, 0x800000,
                                     0xfffffe, 0xffffff };
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i, opcode;

    for (i = 0; i < G_N_ELEMENTS(qpns); i++) {
        for (opcode = 0; opcode < 256; opcode++) {
            RoceBth bth = bth_to(&p, opcode, spec.psn[0]);

            if (!roce_opcode_info(opcode)) {
                continue;
            }
            bth.dqpn = qpns[i];
            inject(&p, &bth, junk, 0);
        }
    }
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==,
                     roce_stats(p.b->e)->rx_frames);
    check_alive(&p);
    link_pair_free(&p);
}

static void test_wrong_service_pkey_or_peer(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceBth bth = bth_to(&p, ROCE_SEND_ONLY, spec.psn[0]);
    uint8_t gid[16];

    bth.opcode = ROCE_UC | ROCE_SEND_ONLY;
    inject(&p, &bth, junk, 4);
    bth.opcode = ROCE_UD | ROCE_SEND_ONLY;
    inject(&p, &bth, junk, 4);
    bth.opcode = ROCE_SEND_ONLY;
    bth.pkey = 0x8001;
    inject(&p, &bth, junk, 4);
    g_assert_cmpuint(roce_stats(p.b->e)->bad_pkey, ==, 1);
    bth.pkey = RDMA_DEFAULT_PKEY;
    memcpy(gid, p.a->gid4, 16);
    p.a->gid4[15] = 77;
    inject(&p, &bth, junk, 4);
    memcpy(p.a->gid4, gid, 16);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 4);
    check_alive(&p);

    /* A limited member may send to a full one. */
    bth = bth_to(&p, ROCE_WRITE_ONLY, spec.psn[0] + 5);
    bth.pkey = 0x7fff;
    inject(&p, &bth, junk, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 4);
    link_pair_free(&p);
}

static void test_malformed_frames(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceBth bth = bth_to(&p, ROCE_WRITE_ONLY, spec.psn[0]);
    uint8_t frame[ROCE_MAX_FRAME];
    uint8_t *exact;
    size_t len, i;
    unsigned bit;

    bth.reth.va = p.bmr->attr.iova;
    bth.reth.rkey = p.bmr->attr.rkey;
    bth.reth.len = 7;
    memset(junk, 0x55, sizeof(junk));
    len = make_frame(&p, &bth, junk, 7, frame);

    /* Cut the frame at any length; each copy is an allocation, for ASan. */
    for (i = 0; i < len; i++) {
        exact = g_memdup2(frame, i);
        link_inject(p.l, 1, exact, i);
        g_free(exact);
    }
    /* Flip any one bit from the IP header on. */
    for (i = 14 * 8; i < len * 8; i++) {
        bit = 1u << i % 8;
        frame[i / 8] ^= bit;
        link_inject(p.l, 1, frame, len);
        frame[i / 8] ^= bit;
    }
    /* Bits in fields that routers may change (TOS, TTL and so on) may pass. */
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    link_pair_free(&p);
}

static void test_unknown_opcodes(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceBth bth = bth_to(&p, ROCE_SEND_ONLY, spec.psn[0]);
    uint8_t frame[ROCE_MAX_FRAME];
    unsigned opcode, n = 0;
    size_t len;

    for (opcode = 0; opcode < 256; opcode++) {
        if (roce_opcode_info(opcode)) {
            continue;
        }
        len = make_frame(&p, &bth, junk, 64, frame);
        frame[42] = opcode;
        link_inject(p.l, 1, frame, len);
        n++;
    }
    g_assert_cmpuint(roce_stats(p.b->e)->rx_malformed, ==, n);
    check_alive(&p);
    link_pair_free(&p);
}

/* A sequence of packets that violates a rule of IBTA 9.7.4 */
typedef struct BadSequence {
    const char *name;
    struct {
        uint8_t opcode;
        uint32_t len;               /* bytes of payload */
        uint32_t reth_len;
    } pkts[3];                      /* up to the first opcode 0xff */
} BadSequence;

#define END { 0xff }

static const BadSequence bad_sequences[] = {
    { "middle-first", { { ROCE_SEND_MIDDLE, 1024 }, END } },
    { "last-first", { { ROCE_SEND_LAST, 10 }, END } },
    { "write-middle-first", { { ROCE_WRITE_MIDDLE, 1024 }, END } },
    { "write-last-first", { { ROCE_WRITE_LAST, 10 }, END } },
    { "first-twice", { { ROCE_SEND_FIRST, 1024 },
                       { ROCE_SEND_FIRST, 1024 }, END } },
    { "only-in-message", { { ROCE_SEND_FIRST, 1024 },
                           { ROCE_SEND_ONLY, 10 }, END } },
    { "read-in-message", { { ROCE_SEND_FIRST, 1024 },
                           { ROCE_READ_REQUEST, 0, 10 }, END } },
    { "write-ends-send", { { ROCE_SEND_FIRST, 1024 },
                           { ROCE_WRITE_LAST, 10 }, END } },
    { "send-ends-write", { { ROCE_WRITE_FIRST, 1024, 2000 },
                           { ROCE_SEND_LAST, 976 }, END } },
    { "first-short", { { ROCE_SEND_FIRST, 1020 }, END } },
    { "first-long", { { ROCE_SEND_FIRST, 1028 }, END } },
    { "first-empty", { { ROCE_SEND_FIRST, 0 }, END } },
    { "middle-short", { { ROCE_SEND_FIRST, 1024 },
                        { ROCE_SEND_MIDDLE, 1023 }, END } },
    { "last-empty", { { ROCE_SEND_FIRST, 1024 },
                      { ROCE_SEND_LAST, 0 }, END } },
    { "last-long", { { ROCE_SEND_FIRST, 1024 },
                     { ROCE_SEND_LAST, 1025 }, END } },
    { "only-long", { { ROCE_SEND_ONLY, 1025 }, END } },
    { "write-only-short", { { ROCE_WRITE_ONLY, 99, 100 }, END } },
    { "write-only-long", { { ROCE_WRITE_ONLY, 101, 100 }, END } },
    { "write-only-of-two", { { ROCE_WRITE_ONLY, 1024, 2000 }, END } },
    { "write-first-of-one", { { ROCE_WRITE_FIRST, 1024, 1024 }, END } },
    { "write-first-of-none", { { ROCE_WRITE_FIRST, 1024, 0 }, END } },
    { "write-runs-over", { { ROCE_WRITE_FIRST, 1024, 2048 },
                           { ROCE_WRITE_MIDDLE, 1024 }, END } },
    { "write-last-too-long", { { ROCE_WRITE_FIRST, 1024, 1030 },
                               { ROCE_WRITE_LAST, 7 }, END } },
    { "write-last-too-short", { { ROCE_WRITE_FIRST, 1024, 1030 },
                                { ROCE_WRITE_LAST, 5 }, END } },
    { "write-too-large", { { ROCE_WRITE_FIRST, 1024, 0x80000001 }, END } },
    { "read-too-large", { { ROCE_READ_REQUEST, 0, 0x80000001 }, END } },
    { "atomic-write-short", { { ROCE_ATOMIC_WRITE, 7, 8 }, END } },
    { "atomic-write-long", { { ROCE_ATOMIC_WRITE, 9, 8 }, END } },
    { "atomic-write-of-less", { { ROCE_ATOMIC_WRITE, 8, 7 }, END } },
    { "atomic-write-of-more", { { ROCE_ATOMIC_WRITE, 8, 16 }, END } },
};

static void test_bad_sequence(gconstpointer data)
{
    const BadSequence *s = data;
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned i;

    link_pair_recv(&p, 50, 65536, 10000);
    link_pair_recv(&p, 51, 65536, 10000);
    for (i = 0; s->pkts[i].opcode != 0xff; i++) {
        RoceBth bth = bth_to(&p, s->pkts[i].opcode, spec.psn[0] + i);

        g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
        bth.reth.va = p.bmr->attr.iova;
        bth.reth.rkey = p.bmr->attr.rkey;
        bth.reth.len = s->pkts[i].reth_len;
        inject(&p, &bth, junk, s->pkts[i].len);
    }
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    g_assert_cmpuint(roce_stats(p.b->e)->naks_sent, ==, 1);
    g_assert_cmpuint(p.b->events->len, ==, 1);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_QP_REQ_ERR), ==, 1);
    link_expect(p.b, 50, RDMA_WC_WR_FLUSH_ERR);
    link_expect(p.b, 51, RDMA_WC_WR_FLUSH_ERR);

    /* The QP is in ERR and ignores the same packet again. */
    {
        RoceBth bth = bth_to(&p, ROCE_WRITE_ONLY, spec.psn[0] + i - 1);
        uint64_t sent = p.l->sent[1];

        bth.reth.va = p.bmr->attr.iova;
        bth.reth.rkey = p.bmr->attr.rkey;
        bth.reth.len = 8;
        link_set(p.bmr, 0);
        inject(&p, &bth, "12345678", 8);
        link_read(p.bmr, 0, junk, 8);
        g_assert_cmpmem(junk, 8, "\0\0\0\0\0\0\0\0", 8);
        g_assert_cmpuint(p.l->sent[1], ==, sent);
    }
    link_pair_free(&p);
}

static void test_range_is_checked_before_the_first_byte(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceBth bth = bth_to(&p, ROCE_WRITE_FIRST, spec.psn[0]);

    /* The first packet is in the range of the region, the message is not. */
    link_set(p.bmr, 0);
    memset(junk, 0xff, sizeof(junk));
    bth.reth.va = p.bmr->attr.iova + LINK_PAIR_MEM - 2000;
    bth.reth.rkey = p.bmr->attr.rkey;
    bth.reth.len = 2001;
    inject(&p, &bth, junk, 1024);
    link_read(p.bmr, LINK_PAIR_MEM - 2000, junk, 1);
    g_assert_cmphex(junk[0], ==, 0);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    link_pair_free(&p);
}

/* After invalidation of the region, packets of a WRITE write nothing. */
static void test_key_gone_during_write(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkMr *mr = link_mr(p.b, 8192, LINK_ALL_ACCESS);
    RoceBth bth = bth_to(&p, ROCE_WRITE_FIRST, spec.psn[0]);

    bth.reth.va = mr->attr.iova;
    bth.reth.rkey = mr->attr.rkey;
    bth.reth.len = 2000;
    inject(&p, &bth, junk, 1024);
    link_mr_free(mr);
    bth = bth_to(&p, ROCE_WRITE_LAST, spec.psn[0] + 1);
    inject(&p, &bth, junk, 976);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    g_assert_cmpuint(link_events(p.b, RDMA_EVENT_QP_ACCESS_ERR), ==, 1);
    link_pair_free(&p);
}

/* A duplicate request must match the original one. */
static void test_forged_replays(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    RoceBth bth;
    uint64_t sent;
    size_t off;

    spec.psn[0] = 100;
    p = link_pair(&spec);
    off = 8 - p.bmr->attr.iova % 8;
    /* PSN 100: atomic, 101..104: READ, 105: WRITE, 106: ATOMIC WRITE */
    link_pair_post(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, 1, off, 8);
    link_pair_post(&p, RDMA_WR_RDMA_READ, 2, 100, 4000);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 3, 8192, 10);
    link_pair_post(&p, RDMA_WR_ATOMIC_WRITE, 4, off, 8);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(link_wcs(p.a), ==, 4);
    sent = p.l->sent[1];

    /* A READ with the PSN of an ATOMIC, and the reverse */
    bth = bth_to(&p, ROCE_READ_REQUEST, 100);
    bth.reth.va = p.bmr->attr.iova;
    bth.reth.rkey = p.bmr->attr.rkey;
    bth.reth.len = 8;
    inject(&p, &bth, junk, 0);
    bth.psn = 106;
    bth.reth.va += off;
    inject(&p, &bth, junk, 0);
    bth = bth_to(&p, ROCE_FETCH_ADD, 101);
    bth.atomiceth.va = p.bmr->attr.iova + off;
    bth.atomiceth.rkey = p.bmr->attr.rkey;
    inject(&p, &bth, junk, 0);
    /* The other kind of ATOMIC, another address */
    bth.opcode = ROCE_COMPARE_SWAP;
    bth.psn = 100;
    inject(&p, &bth, junk, 0);
    bth.opcode = ROCE_FETCH_ADD;
    bth.atomiceth.va += 8;
    inject(&p, &bth, junk, 0);
    /* READs of another range, of a longer one, or with another key */
    bth = bth_to(&p, ROCE_READ_REQUEST, 101);
    bth.reth.va = p.bmr->attr.iova + 101;
    bth.reth.rkey = p.bmr->attr.rkey;
    bth.reth.len = 3999;
    inject(&p, &bth, junk, 0);
    bth.reth.va = p.bmr->attr.iova + 100;
    bth.reth.len = 4001;
    inject(&p, &bth, junk, 0);
    bth.psn = 102;
    bth.reth.va = p.bmr->attr.iova + 100 + 1024;
    bth.reth.len = 4000 - 1023;
    inject(&p, &bth, junk, 0);
    bth.reth.len = 4000 - 1024;
    bth.reth.rkey ^= 0x100;
    inject(&p, &bth, junk, 0);
    bth.reth.rkey ^= 0x100;
    /* PSNs of no READ */
    bth.psn = 105;
    inject(&p, &bth, junk, 0);
    bth.psn = 99;
    inject(&p, &bth, junk, 0);
    g_assert_cmpuint(p.l->sent[1], ==, sent);
    g_assert_cmpuint(p.b->atomics, ==, 2);

    /* Duplicates that match get a response. */
    bth.psn = 102;
    inject(&p, &bth, junk, 0);
    g_assert_cmpuint(p.l->sent[1], ==, sent + 3);
    bth = bth_to(&p, ROCE_FETCH_ADD, 100);
    bth.atomiceth.va = p.bmr->attr.iova + off;
    bth.atomiceth.rkey = p.bmr->attr.rkey;
    inject(&p, &bth, junk, 0);
    g_assert_cmpuint(p.l->sent[1], ==, sent + 4);
    g_assert_cmpuint(p.b->atomics, ==, 2);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    link_pair_free(&p);
}

/* A duplicate READ of an invalidated region gets no response. */
static void test_replay_after_the_key_has_gone(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkMr *mr = link_mr(p.b, 4096, LINK_ALL_ACCESS);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_READ, 1, &sge);
    RoceBth bth = bth_to(&p, ROCE_READ_REQUEST, spec.psn[0]);
    uint64_t sent;

    wr.wr.rdma.remote_addr = bth.reth.va = mr->attr.iova;
    wr.wr.rdma.rkey = bth.reth.rkey = mr->attr.rkey;
    bth.reth.len = 100;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_mr_free(mr);
    sent = p.l->sent[1];
    inject(&p, &bth, junk, 0);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(p.l->sent[1], ==, sent);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    link_pair_free(&p);
}

/* Responses: node b is the requester, and answers of node a are forged. */

static bool lose_from_a(RoceLink *l, unsigned from, const uint8_t *frame,
                        size_t len, void *opaque)
{
    return from == 1;
}

static LinkPair requester(uint32_t opcode, uint32_t len)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    RdmaSge sge;
    RdmaSendWr wr;

    spec.psn[1] = 1000;
    p = link_pair(&spec);
    p.l->filter = lose_from_a;
    sge = link_sge(p.bmr, 0, len);
    wr = link_wr(opcode, 9, &sge);
    wr.wr.rdma.remote_addr = p.amr->attr.iova;
    wr.wr.rdma.rkey = p.amr->attr.rkey;
    if (opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = p.amr->attr.iova & ~7ull;
        wr.wr.atomic.rkey = p.amr->attr.rkey;
    }
    if (opcode == RDMA_WR_FLUSH) {
        wr.num_sge = 0;
        wr.wr.flush.remote_addr = p.amr->attr.iova;
        wr.wr.flush.rkey = p.amr->attr.rkey;
        wr.wr.flush.length = 8;
        wr.wr.flush.type = RDMA_FLUSH_GLOBAL;
        wr.wr.flush.level = RDMA_FLUSH_RANGE;
    }
    link_post(p.b, p.bq, &wr);
    link_pump(p.l);
    return p;
}

static void test_bad_read_responses(void)
{
    static const struct {
        uint8_t opcode;
        uint32_t len;
    } bad[] = {
        { ROCE_READ_RESP_ONLY, 1024 },      /* two packets were requested */
        { ROCE_READ_RESP_ONLY, 1500 },
        { ROCE_READ_RESP_LAST, 1024 },
        { ROCE_READ_RESP_FIRST, 1020 },
        { ROCE_READ_RESP_FIRST, 1028 },
        { ROCE_READ_RESP_FIRST, 0 },
        { ROCE_READ_RESP_MIDDLE, 4096 },
        { ROCE_ATOMIC_ACKNOWLEDGE, 0 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        LinkPair p = requester(RDMA_WR_RDMA_READ, 1500);
        RoceBth bth = bth_to(&p, bad[i].opcode, 1000);

        inject(&p, &bth, junk, bad[i].len);
        link_expect(p.b, 9, RDMA_WC_BAD_RESP_ERR);
        g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
        link_pair_free(&p);
    }
}

static void test_read_response_longer_than_asked(void)
{
    LinkPair p = requester(RDMA_WR_RDMA_READ, 1500);
    RoceBth bth = bth_to(&p, ROCE_READ_RESP_FIRST, 1000);
    uint8_t byte;

    link_set(p.bmr, 0);
    memset(junk, 0xff, sizeof(junk));
    inject(&p, &bth, junk, 1024);
    bth = bth_to(&p, ROCE_READ_RESP_LAST, 1001);
    inject(&p, &bth, junk, 477);
    link_expect(p.b, 9, RDMA_WC_BAD_RESP_ERR);
    link_read(p.bmr, 1023, &byte, 1);
    g_assert_cmphex(byte, ==, 0xff);
    link_read(p.bmr, 1500, &byte, 1);
    g_assert_cmphex(byte, ==, 0);
    link_pair_free(&p);
}

/* The response to a FLUSH is one packet without data. */
static void test_bad_flush_responses(void)
{
    static const struct {
        uint8_t opcode;
        uint32_t len;
    } bad[] = {
        { ROCE_READ_RESP_FIRST, 1024 },
        { ROCE_READ_RESP_MIDDLE, 1024 },
        { ROCE_READ_RESP_LAST, 4 },
        { ROCE_READ_RESP_ONLY, 4 },
        { ROCE_ATOMIC_ACKNOWLEDGE, 0 },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(bad); i++) {
        LinkPair p = requester(RDMA_WR_FLUSH, 0);
        RoceBth bth = bth_to(&p, bad[i].opcode, 1000);

        inject(&p, &bth, junk, bad[i].len);
        link_expect(p.b, 9, RDMA_WC_BAD_RESP_ERR);
        g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
        link_pair_free(&p);
    }
}

/* The region for the result is invalidated while the request is outstanding. */
static void test_atomic_response_without_memory(void)
{
    LinkPair p = requester(RDMA_WR_ATOMIC_FETCH_AND_ADD, 8);
    RoceBth bth = bth_to(&p, ROCE_ATOMIC_ACKNOWLEDGE, 1000);
    uint64_t value = 0;

    g_assert_cmpint(roce_mr_destroy(p.b->e, p.bmr->attr.mrn), ==, 0);
    bth.atomic_ack = UINT64_MAX;
    inject(&p, &bth, junk, 0);
    link_expect(p.b, 9, RDMA_WC_LOC_PROT_ERR);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    link_read(p.bmr, 0, &value, sizeof(value));
    g_assert_cmphex(value, ==, 0);
    link_pair_free(&p);
}

/* The data of a READ arrives, but its key to invalidate does not exist. */
static void test_read_with_inv_of_no_key(void)
{
    LinkPair p = requester(RDMA_WR_RDMA_READ_WITH_INV, 100);
    RoceBth bth = bth_to(&p, ROCE_READ_RESP_ONLY, 1000);

    inject(&p, &bth, junk, 100);
    link_expect(p.b, 9, RDMA_WC_MW_BIND_ERR);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    link_pair_free(&p);
}

static void test_unrequested_responses(void)
{
    static const uint8_t opcodes[] = {
        ROCE_READ_RESP_FIRST, ROCE_READ_RESP_ONLY, ROCE_ACKNOWLEDGE,
        ROCE_ATOMIC_ACKNOWLEDGE,
    };
    static const uint32_t psns[] = { 0, 999, 1000, 1001, 2000, 0xffffff };
    static const uint8_t syndromes[] = { 0x1f, 0x20, 0x60, 0x61, 0x62, 0x63 };
    LinkQpSpec spec = link_spec();
    LinkPair p;
    unsigned i, j, k;

    spec.psn[1] = 1000;
    p = link_pair(&spec);
    for (i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        for (j = 0; j < G_N_ELEMENTS(psns); j++) {
            for (k = 0; k < G_N_ELEMENTS(syndromes); k++) {
                RoceBth bth = bth_to(&p, opcodes[i], psns[j]);

                bth.aeth.syndrome = syndromes[k];
                inject(&p, &bth, junk, 0);
            }
        }
    }
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    check_alive(&p);
    link_pair_free(&p);
}

static void test_acks_of_bad_psns(void)
{
    static const uint32_t psns[] = { 999, 1003, 1004, 5000, 1000 + (1 << 23),
                                     0xffffff };
    static const uint8_t syndromes[] = { 0x1f, 0x20, 0x60, 0x61, 0x62, 0x63 };
    LinkPair p = requester(RDMA_WR_RDMA_WRITE, 3000);
    unsigned j, k;
    RoceBth bth;

    for (j = 0; j < G_N_ELEMENTS(psns); j++) {
        for (k = 0; k < G_N_ELEMENTS(syndromes); k++) {
            bth = bth_to(&p, ROCE_ACKNOWLEDGE, psns[j]);
            bth.aeth.syndrome = syndromes[k];
            inject(&p, &bth, junk, 0);
        }
    }
    /* ACKs of the last PSN with reserved syndromes complete nothing. */
    bth.psn = 1002;
    for (k = 0; k < 256; k++) {
        if ((k & 0xe0) == 0x40 || k >= 0x80 || (k > 0x63 && k < 0x80)) {
            bth.aeth.syndrome = k;
            inject(&p, &bth, junk, 0);
        }
    }
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    bth.psn = 1002;
    bth.aeth.syndrome = 0x1f;
    inject(&p, &bth, junk, 0);
    link_expect(p.b, 9, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* An ACK of a READ completes nothing. The READ is sent again, once. */
static void test_ack_of_a_read(void)
{
    LinkPair p = requester(RDMA_WR_RDMA_READ, 1500);
    RoceBth bth = bth_to(&p, ROCE_ACKNOWLEDGE, 1001);
    unsigned i;

    bth.aeth.syndrome = 0x1f;
    for (i = 0; i < 20; i++) {
        inject(&p, &bth, junk, 0);
    }
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(p.l->sent[1], ==, 2);
    p.l->filter = NULL;
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 9, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.bmr, 0, p.amr, 0, 1500));
    link_pair_free(&p);
}

static void test_naks_of_the_peer(void)
{
    static const struct {
        uint8_t syndrome;
        RdmaWcStatus status;
    } naks[] = {
        { 0x61, RDMA_WC_REM_INV_REQ_ERR },
        { 0x62, RDMA_WC_REM_ACCESS_ERR },
        { 0x63, RDMA_WC_REM_OP_ERR },
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(naks); i++) {
        LinkPair p = requester(RDMA_WR_RDMA_WRITE, 3000);
        RoceBth bth = bth_to(&p, ROCE_ACKNOWLEDGE, 1001);

        bth.aeth.syndrome = naks[i].syndrome;
        inject(&p, &bth, junk, 0);
        link_expect(p.b, 9, naks[i].status);
        g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 0);
        g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
        link_pair_free(&p);
    }
}

/* A random frame with a right ICRC */
static void random_frame(LinkPair *p, GRand *r, uint32_t psn)
{
    RoceBth bth = {
        .pkey = RDMA_DEFAULT_PKEY,
        .dqpn = p->bq,
        .se = g_rand_boolean(r),
        .ack_req = g_rand_boolean(r),
        .psn = (psn + g_rand_int_range(r, -3, 4)) & 0xffffff,
        .reth = {
            .va = p->bmr->attr.iova + g_rand_int_range(r, -10, 3000),
            .rkey = p->bmr->attr.rkey,
            .len = g_rand_int_range(r, 0, 5000),
        },
        .atomiceth = {
            .va = (p->bmr->attr.iova + g_rand_int_range(r, 0, 3000)) & ~7ull,
            .rkey = p->bmr->attr.rkey,
            .swap_add = g_rand_int(r),
        },
        .aeth = { .syndrome = g_rand_int(r) },
        .ieth = p->bmr->attr.rkey,
    };
    static const uint32_t lens[] = { 0, 1, 1023, 1024, 1024, 1024, 1025 };

    do {
        bth.opcode = g_rand_int_range(r, 0, 0x18);
    } while (!roce_opcode_info(bth.opcode));
    if (g_rand_int_range(r, 0, 4) && bth.opcode == ROCE_WRITE_ONLY) {
        bth.reth.len = 1024;
    }
    inject(p, &bth, junk,
           roce_opcode_info(bth.opcode)->flags & ROCE_OP_PAYLOAD ?
           lens[g_rand_int_range(r, 0, G_N_ELEMENTS(lens))] : 0);
}

/* Check that b's WQEs complete once, in order; returns messages received. */
static unsigned check_completions(LinkPair *p, unsigned n)
{
    unsigned sends = 0, recvs = 0, messages = 0;

    link_modify(p->b, p->bq, RDMA_QPS_ERR);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    while (link_wcs(p->b)) {
        LinkWc entry = link_wc(p->b);

        if (entry.cqn == LINK_SEND_CQ(p->bq)) {
            g_assert_cmpuint(entry.wc.wr_id, ==, 9);
            sends++;
        } else {
            g_assert_cmpuint(entry.wc.wr_id, ==, recvs);
            recvs++;
            messages += entry.wc.status == RDMA_WC_SUCCESS;
        }
    }
    g_assert_cmpuint(sends, ==, 1);
    g_assert_cmpuint(recvs, ==, n);
    return messages;
}

static void test_random_frames(void)
{
    unsigned seed, i, messages = 0, refused = 0;

    for (seed = 0; seed < 150; seed++) {
        GRand *r = g_rand_new_with_seed(seed);
        LinkPair p = requester(seed & 1 ? RDMA_WR_RDMA_READ
                                        : RDMA_WR_RDMA_WRITE, 20000);

        for (i = 0; i < 10; i++) {
            link_pair_recv(&p, i, 4096 * i, 4096);
        }
        for (i = 0; i < 100; i++) {
            RdmaQpAttr attr;

            roce_qp_query(p.b->e, p.bq, &attr);
            random_frame(&p, r, g_rand_boolean(r) ? attr.rq_psn : 1005);
        }
        link_run(p.l, LINK_FOREVER);
        g_assert_cmpuint(roce_stats(p.b->e)->rx_malformed, ==, 0);
        g_assert_cmpuint(roce_stats(p.b->e)->rx_icrc_errors, ==, 0);
        refused += link_state(p.b, p.bq) == RDMA_QPS_ERR;
        messages += check_completions(&p, 10);
        g_rand_free(r);
        link_pair_free(&p);
    }
    /* Some frames were accepted, and some requests refused. */
    g_assert_cmpuint(messages, >, 0);
    g_assert_cmpuint(refused, >, 0);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/hostile/wrong-destination",
                    test_wrong_destination);
    g_test_add_func("/roce/hostile/wrong-service-pkey-or-peer",
                    test_wrong_service_pkey_or_peer);
    g_test_add_func("/roce/hostile/malformed-frames", test_malformed_frames);
    g_test_add_func("/roce/hostile/unknown-opcodes", test_unknown_opcodes);
    for (i = 0; i < G_N_ELEMENTS(bad_sequences); i++) {
        g_autofree char *path = g_strdup_printf("/roce/hostile/sequence/%s",
                                                bad_sequences[i].name);

        g_test_add_data_func(path, &bad_sequences[i], test_bad_sequence);
    }
    g_test_add_func("/roce/hostile/range-is-checked-before-the-first-byte",
                    test_range_is_checked_before_the_first_byte);
    g_test_add_func("/roce/hostile/key-gone-during-write",
                    test_key_gone_during_write);
    g_test_add_func("/roce/hostile/forged-replays", test_forged_replays);
    g_test_add_func("/roce/hostile/replay-after-the-key-has-gone",
                    test_replay_after_the_key_has_gone);
    g_test_add_func("/roce/hostile/bad-read-responses",
                    test_bad_read_responses);
    g_test_add_func("/roce/hostile/read-response-longer-than-asked",
                    test_read_response_longer_than_asked);
    g_test_add_func("/roce/hostile/bad-flush-responses",
                    test_bad_flush_responses);
    g_test_add_func("/roce/hostile/atomic-response-without-memory",
                    test_atomic_response_without_memory);
    g_test_add_func("/roce/hostile/read-with-inv-of-no-key",
                    test_read_with_inv_of_no_key);
    g_test_add_func("/roce/hostile/unrequested-responses",
                    test_unrequested_responses);
    g_test_add_func("/roce/hostile/acks-of-bad-psns", test_acks_of_bad_psns);
    g_test_add_func("/roce/hostile/ack-of-a-read", test_ack_of_a_read);
    g_test_add_func("/roce/hostile/naks-of-the-peer", test_naks_of_the_peer);
    g_test_add_func("/roce/hostile/random-frames", test_random_frames);
    return g_test_run();
}
