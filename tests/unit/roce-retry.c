/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Retries of RC: when a requester waits, for how long, and when it fails.
 */
#include <string.h>
#include "roce-link.h"

#define BTH_OFF (14 + 20 + 8)       /* IPv4 */

static uint8_t opcode_of(const uint8_t *frame)
{
    return frame[BTH_OFF];
}

static uint32_t psn_of(const uint8_t *frame)
{
    return frame[BTH_OFF + 9] << 16 | frame[BTH_OFF + 10] << 8 |
           frame[BTH_OFF + 11];
}

/* A log of the frames of node a, and which frames to lose */
typedef struct Log {
    int64_t when[512];
    uint32_t psn[512];
    uint8_t opcode[512];
    unsigned n;
    unsigned acks;                  /* of node b */
    uint32_t acked;                 /* by the last of them */
    bool lose_all;                  /* of node a */
    unsigned lose_nth;              /* the one with this number, from 1 */
    bool lose_acks;
    bool lose_responses;            /* all that node b sends */
    bool block;                     /* node a's wire, after each frame */
    int64_t last_rnr_nak;
} Log;

static bool log_frame(RoceLink *l, unsigned from, const uint8_t *frame,
                      size_t len, void *opaque)
{
    Log *log = opaque;

    if (from == 1) {
        if (opcode_of(frame) == 0x11) {
            log->acks++;
            log->acked = psn_of(frame);
            if ((frame[BTH_OFF + 12] & 0x60) == 0x20) {
                log->last_rnr_nak = l->now;
            }
            if (log->lose_acks) {
                return false;
            }
        }
        return !log->lose_responses;
    }
    g_assert_cmpuint(log->n, <, G_N_ELEMENTS(log->when));
    log->when[log->n] = l->now;
    log->opcode[log->n] = opcode_of(frame);
    log->psn[log->n] = psn_of(frame);
    log->n++;
    if (log->block) {
        roce_set_tx_blocked(l->node[0].e, true);
    }
    return !log->lose_all && log->n != log->lose_nth;
}

static LinkPair logged_pair(const LinkQpSpec *spec, Log *log)
{
    LinkPair p = link_pair(spec);

    memset(log, 0, sizeof(*log));
    p.l->filter = log_frame;
    p.l->filter_opaque = log;
    return p;
}

/* Half a second, the longest wait that retries lead to */
#define LONGEST_BACKOFF INT64_C(500000000)

/* How long a QP with timeout code @code waits for an ACK after @used retries */
static int64_t ack_wait(unsigned code, unsigned used)
{
    int64_t timeout = INT64_C(4096) << code;

    return MIN(timeout << MIN(used, 2), MAX(timeout, LONGEST_BACKOFF));
}

static void test_retry_exhausted(gconstpointer data)
{
    unsigned retry_cnt = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    int64_t waited = 0;
    LinkPair p;
    unsigned i;
    Log log;

    spec.retry_cnt = retry_cnt;
    spec.timeout = 8;
    p = logged_pair(&spec, &log);
    log.lose_all = true;
    link_pair_recv(&p, 50, 0, 100);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 10);
    link_pair_post(&p, RDMA_WR_SEND, 2, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));

    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    link_expect(p.a, 2, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_ERR);
    /* Each time two packets: first, and in retry_cnt retries */
    g_assert_cmpuint(log.n, ==, 2 * (retry_cnt + 1));
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, retry_cnt);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, retry_cnt + 1);
    for (i = 0; i <= retry_cnt; i++) {
        g_assert_cmpint(log.when[2 * i] - log.when[0], ==, waited);
        g_assert_cmpuint(log.psn[2 * i], ==, spec.psn[0]);
        g_assert_cmpuint(log.psn[2 * i + 1], ==, spec.psn[0] + 1);
        waited += ack_wait(8, i);
    }
    g_assert_cmpint(p.l->now - log.when[0], ==, waited);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    link_pair_free(&p);
}

/* Retries make short timeouts longer. Long ones stay as they are. */
static void test_longest_wait(gconstpointer data)
{
    LinkQpSpec spec = link_spec();
    unsigned i;
    LinkPair p;
    Log log;

    spec.retry_cnt = 3;
    spec.timeout = GPOINTER_TO_UINT(data);
    p = logged_pair(&spec, &log);
    log.lose_all = true;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    g_assert_cmpuint(log.n, ==, 1 + spec.retry_cnt);
    for (i = 0; i < spec.retry_cnt; i++) {
        g_assert_cmpint(log.when[i + 1] - log.when[i], ==,
                        ack_wait(spec.timeout, i));
    }
    link_pair_free(&p);
}

static void test_no_timeout_waits_for_ever(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    spec.timeout = 0;
    p = logged_pair(&spec, &log);
    log.lose_all = true;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(log.n, ==, 1);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_RTS);
    link_pair_free(&p);
}

/*
 * The wire takes a packet each quarter of the timeout, as one that many QPs
 * share. Packets that request an ACK must not be farther apart than the
 * timeout.
 */
static void test_slow_wire_loses_nothing(void)
{
    LinkQpSpec spec = link_spec();
    const int64_t period = (4096 << 8) / 4;
    const unsigned packets = 100;
    LinkPair p;
    Log log;

    spec.retry_cnt = 0;
    spec.timeout = 8;
    p = logged_pair(&spec, &log);
    p.l->moves = 0;
    log.block = true;
    link_fill(p.amr, 1);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, packets * 1024);
    for (unsigned i = 0; i < packets; i++) {
        g_assert_cmpuint(link_wcs(p.a), ==, 0);
        roce_set_tx_blocked(p.a->e, false);
        link_run(p.l, period);
    }
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, packets * 1024));
    g_assert_cmpuint(p.l->sent[0], ==, packets);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
    link_pair_free(&p);
}

#define STALL_TIMEOUT_CODE 8
#define STALL_LEN 1500              /* two packets */
/* Timeouts that use one retry if nothing is sent again */
#define STALLED_TIMEOUTS 16

/* The reason why a requester cannot send again, and its retries */
typedef struct StallCase {
    const char *name;
    uint32_t opcode;
    bool paused;                    /* by a rate limit, not by the wire */
    unsigned retry_cnt;
} StallCase;

static const StallCase stall_cases[] = {
    { "wire/write", RDMA_WR_RDMA_WRITE, false, 1 },
    { "wire/read", RDMA_WR_RDMA_READ, false, 1 },
    { "wire/most-retries", RDMA_WR_RDMA_WRITE, false, 7 },
    { "rate/write", RDMA_WR_RDMA_WRITE, true, 1 },
    { "rate/read", RDMA_WR_RDMA_READ, true, 1 },
};

/* Packets that were sent are lost, and then the requester can send nothing. */
static LinkPair stalled_pair(const StallCase *c, Log *log)
{
    LinkQpSpec spec = link_spec();
    RdmaQpAttr attr = { .rate_limit = 1 };
    LinkPair p;

    spec.retry_cnt = c->retry_cnt;
    spec.timeout = STALL_TIMEOUT_CODE;
    p = logged_pair(&spec, log);
    p.l->moves = 0;
    log->lose_all = true;
    if (c->paused) {
        g_assert_cmpint(roce_qp_modify(p.a->e, p.aq, RDMA_QP_RATE_LIMIT,
                                       &attr), ==, 0);
    }
    link_fill(p.amr, 1);
    link_fill(p.bmr, 2);
    link_pair_post(&p, c->opcode, 1, 0, STALL_LEN);
    link_pump(p.l);
    g_assert_cmpuint(log->n, >, 0);
    roce_set_tx_blocked(p.a->e, !c->paused);
    return p;
}

/* The requester cannot send until it fails. */
static void test_stall_has_an_end(gconstpointer data)
{
    const StallCase *c = data;
    const unsigned timeouts = 1 + c->retry_cnt * STALLED_TIMEOUTS;
    int64_t wait = ack_wait(STALL_TIMEOUT_CODE, 0);
    unsigned i, sent;
    LinkPair p;
    Log log;

    for (i = 1; i <= c->retry_cnt; i++) {
        wait += STALLED_TIMEOUTS * ack_wait(STALL_TIMEOUT_CODE, i);
    }
    p = stalled_pair(c, &log);
    sent = log.n;
    g_assert_false(link_run(p.l, wait - 1));
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    link_run(p.l, 1);
    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    g_assert_cmpuint(log.n, ==, sent);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, timeouts);
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, c->retry_cnt);
    link_pair_free(&p);
}

/* @n timeouts pass after @used retries in a row, @retransmits in all. */
static void run_timeouts(LinkPair *p, unsigned n, unsigned used,
                         uint64_t retransmits)
{
    g_assert_false(link_run(p->l, n * ack_wait(STALL_TIMEOUT_CODE, used)));
    g_assert_cmpuint(link_wcs(p->a), ==, 0);
    g_assert_cmpuint(roce_stats(p->a->e)->retransmits, ==, retransmits);
}

static void finish_stalled(LinkPair *p, Log *log)
{
    RdmaQpAttr attr = { };

    log->lose_all = false;
    log->block = false;
    roce_set_tx_blocked(p->a->e, false);
    g_assert_cmpint(roce_qp_modify(p->a->e, p->aq, RDMA_QP_RATE_LIMIT, &attr),
                    ==, 0);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    link_expect(p->a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p->amr, 0, p->bmr, 0, STALL_LEN));
    link_pair_free(p);
}

/*
 * The requester cannot send for longer than its retries last, and then it can.
 */
static void test_stall_uses_one_retry(gconstpointer data)
{
    LinkPair p;
    Log log;

    p = stalled_pair(data, &log);
    run_timeouts(&p, 1, 0, 1);
    run_timeouts(&p, STALLED_TIMEOUTS - 1, 1, 1);
    finish_stalled(&p, &log);
}

/* A retransmission or an acknowledgement starts the count again. */
static void test_stalls_are_counted_in_a_row(void)
{
    const StallCase c = { .opcode = RDMA_WR_RDMA_WRITE, .retry_cnt = 2 };
    LinkPair p;
    Log log;

    p = stalled_pair(&c, &log);
    run_timeouts(&p, 1, 0, 1);
    run_timeouts(&p, STALLED_TIMEOUTS - 1, 1, 1);
    log.block = true;
    roce_set_tx_blocked(p.a->e, false);
    run_timeouts(&p, 1, 1, 2);
    run_timeouts(&p, STALLED_TIMEOUTS - 1, 2, 2);

    log.lose_all = false;
    roce_set_tx_blocked(p.a->e, false);
    run_timeouts(&p, STALLED_TIMEOUTS, 0, 2);
    g_assert_cmpuint(p.l->sent[1], ==, 1);
    run_timeouts(&p, 1, 0, 3);
    finish_stalled(&p, &log);
}

/* Half of the time on the link is for ACKs, one for each of these packets. */
static void test_few_acks_of_a_long_message(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    p.l->moves = 0;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 100 * 1024);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(log.n, ==, 100);
    g_assert_cmpuint(log.acks, <=, 1 + 4);
    link_pair_free(&p);
}

static void test_progress_gives_new_retries(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    unsigned i;
    Log log;

    /*
     * More packets are lost than there are retries, but each loss follows
     * progress.
     */
    spec.retry_cnt = 1;
    p = logged_pair(&spec, &log);
    for (i = 0; i < 10; i++) {
        log.lose_nth = log.n + 1;
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, i, 0, 10);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 10);
    link_pair_free(&p);
}

static void test_gap_is_filled_without_timeout(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    log.lose_nth = 3;
    link_fill(p.amr, 1);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10 * 1024);
    g_assert_true(link_run(p.l, 10 * LINK_DELAY) ||
                  link_wcs(p.a) == 1);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, 10 * 1024));
    /* 10 packets, and 8 of them again, from the lost one on */
    g_assert_cmpuint(log.n, ==, 18);
    g_assert_cmpuint(log.psn[10], ==, log.psn[2]);
    g_assert_cmpuint(roce_stats(p.b->e)->naks_sent, ==, 1);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
    link_pair_free(&p);
}

static void test_lost_ack_is_repeated(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    log.lose_acks = true;
    link_pair_recv(&p, 50, 0, 100);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 10);
    link_run(p.l, 20 * LINK_MS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    log.lose_acks = false;
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    /* The message is not received twice. */
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_duplicates, ==, 1);
    link_pair_free(&p);
}

/* IBTA table 45, in microseconds. */
static const unsigned rnr_us[32] = {
    655360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280,
    1920, 2560, 3840, 5120, 7680, 10240, 15360, 20480, 30720, 40960, 61440,
    81920, 122880, 163840, 245760, 327680, 491520,
};

static void test_rnr_timer_is_honoured(void)
{
    unsigned code;

    for (code = 0; code < 32; code++) {
        LinkQpSpec spec = link_spec();
        unsigned sent;
        int64_t nak_seen;
        LinkPair p;
        Log log;

        spec.min_rnr_timer = code;
        p = logged_pair(&spec, &log);
        link_pair_post(&p, RDMA_WR_SEND, 1, 0, 3000);
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 10);
        while (!log.last_rnr_nak) {
            link_run(p.l, LINK_DELAY / 2);
        }
        nak_seen = log.last_rnr_nak + LINK_DELAY;
        link_run(p.l, nak_seen - p.l->now);
        sent = log.n;
        g_assert_cmpuint(sent, ==, 4);

        /* More WRs and a receive do not end the wait after an RNR NAK early. */
        link_post_recv_silently(p.b, p.bq, 50, link_sge(p.bmr, 4096, 3000));
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 3, 0, 10);
        g_assert_false(link_run(p.l, nak_seen + rnr_us[code] * 1000 - 1 -
                                     p.l->now));
        g_assert_cmpuint(log.n, ==, sent);
        link_run(p.l, 1);
        g_assert_cmpuint(log.n, ==, sent + 5);
        g_assert_cmpuint(log.psn[sent], ==, log.psn[0]);

        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        link_expect(p.a, 2, RDMA_WC_SUCCESS);
        link_expect(p.a, 3, RDMA_WC_SUCCESS);
        link_expect(p.b, 50, RDMA_WC_SUCCESS);
        g_assert_cmpuint(roce_stats(p.b->e)->rnr_naks_sent, ==, 1);
        g_assert_cmpuint(roce_stats(p.a->e)->rnr_naks_received, ==, 1);
        g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);
        link_pair_free(&p);
    }
}

static void test_rnr_retry_exhausted(gconstpointer data)
{
    unsigned rnr_retry = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    spec.rnr_retry = rnr_retry;
    p = logged_pair(&spec, &log);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10);
    link_pair_post(&p, RDMA_WR_SEND, 2, 0, 10);
    link_pair_post(&p, RDMA_WR_SEND, 3, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_RNR_RETRY_EXC_ERR);
    link_expect(p.a, 3, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(roce_stats(p.b->e)->rnr_naks_sent, ==, rnr_retry + 1);
    g_assert_cmpuint(log.n, ==, 1 + 2 * (rnr_retry + 1));
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_ERR);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    link_pair_free(&p);
}

static void test_rnr_endless(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    spec.rnr_retry = 7;
    spec.min_rnr_timer = 14;
    p = logged_pair(&spec, &log);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 10);
    g_assert_false(link_run(p.l, 100 * LINK_MS));
    g_assert_cmpuint(roce_stats(p.b->e)->rnr_naks_sent, >, 60);
    link_pair_recv(&p, 50, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_rnr_before_write_with_imm(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    link_fill(p.amr, 3);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE_WITH_IMM, 1, 0, 2500);
    g_assert_false(link_run(p.l, 3 * LINK_DELAY));
    g_assert_cmpuint(roce_stats(p.b->e)->rnr_naks_sent, ==, 1);
    link_pair_recv(&p, 50, 0, 0);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_expect(p.b, 50, RDMA_WC_SUCCESS).byte_len, ==,
                     2500);
    /* Only the last packet, which needs the receive, was sent again. */
    g_assert_cmpuint(log.n, ==, 4);
    g_assert_cmpuint(log.psn[3], ==, log.psn[2]);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, 2500));
    link_pair_free(&p);
}

static bool lose_read_response(RoceLink *l, unsigned from,
                               const uint8_t *frame, size_t len, void *opaque)
{
    unsigned *nth = opaque;

    return from == 0 || --*nth;
}

static void test_read_goes_on_at_the_missing_packet(void)
{
    unsigned lost;

    for (lost = 1; lost <= 8; lost++) {
        LinkQpSpec spec = link_spec();
        unsigned nth = lost;
        LinkPair p = link_pair(&spec);

        p.l->filter = lose_read_response;
        p.l->filter_opaque = &nth;
        link_fill(p.bmr, lost);
        link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 100, 8000);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        g_assert_true(link_same(p.amr, 100, p.bmr, 100, 8000));
        g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 1);
        /* Responses from before the lost packet are not sent again. */
        g_assert_cmpuint(p.l->sent[1], ==, 8 + (8 - lost + 1));
        link_pair_free(&p);
    }
}

static void test_duplicate_atomic_is_not_executed(void)
{
    static const uint32_t opcodes[] = {
        RDMA_WR_ATOMIC_FETCH_AND_ADD, RDMA_WR_ATOMIC_CMP_AND_SWP,
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        LinkQpSpec spec = link_spec();
        uint64_t value = GUINT64_TO_LE(1);
        LinkPair p;
        Log log;

        p = logged_pair(&spec, &log);
        /* CMP_AND_SWP compares with 1 and swaps in 0; FETCH_AND_ADD adds 1. */
        link_write(p.bmr, 64 - p.bmr->attr.iova % 8, &value, 8);
        log.lose_responses = true;
        link_pair_post(&p, opcodes[i], 1, 64 - p.bmr->attr.iova % 8, 8);
        link_run(p.l, 500 * LINK_MS);
        g_assert_cmpuint(p.b->atomics, ==, 1);
        g_assert_cmpuint(log.n, >, 3);
        log.lose_responses = false;
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        g_assert_cmpuint(p.b->atomics, ==, 1);
        link_read(p.amr, 64 - p.bmr->attr.iova % 8, &value, 8);
        g_assert_cmpuint(GUINT64_FROM_LE(value), ==, 1);
        link_read(p.bmr, 64 - p.bmr->attr.iova % 8, &value, 8);
        g_assert_cmpuint(GUINT64_FROM_LE(value), ==, i == 0 ? 2 : 0);
        link_pair_free(&p);
    }
}

/*
 * The response to the second request is lost, and the first request is
 * repeated. An ACK with the PSN of the second one would complete it without its
 * response.
 */
static void test_ack_does_not_complete_a_response(gconstpointer data)
{
    uint32_t opcode = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    link_fill(p.bmr, 1);
    log.lose_responses = true;
    link_pair_recv(&p, 50, 100, 100);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 10);
    link_pair_post(&p, opcode, 2, 64 - p.bmr->attr.iova % 8, 8);
    link_run(p.l, 20 * LINK_MS);
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);
    log.acks = 0;
    while (!roce_stats(p.b->e)->rx_duplicates) {
        link_run(p.l, LINK_MS);
    }
    g_assert_cmpuint(log.acks, >, 0);
    g_assert_cmpuint(log.acked, ==, spec.psn[0]);
    log.lose_responses = false;
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_link_down_ends_in_retry_exceeded(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    link_set_up(p.a, false);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(log.n, ==, 0);
    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    link_pair_free(&p);
}

static void test_link_back_up_in_time(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    link_set_up(p.b, false);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10);
    link_run(p.l, 100 * LINK_MS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, >, 0);
    link_set_up(p.b, true);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/*
 * A request was lost while the QP had no timeout; the next one has a timeout.
 */
static void test_timeout_that_is_set_later(void)
{
    RdmaQpAttr attr = { .qp_state = RDMA_QPS_SQD, .timeout = 8 };
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.timeout = 0;
    p = link_pair(&spec);
    p.l->moves = 0;
    link_set_up(p.b, false);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10);
    link_run(p.l, LINK_MS);
    link_modify(p.a, p.aq, RDMA_QPS_SQD);
    g_assert_cmpint(roce_qp_modify(p.a->e, p.aq,
                                   RDMA_QP_STATE | RDMA_QP_TIMEOUT, &attr),
                    ==, 0);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    link_pair_free(&p);
}

static void test_gid_removed_ends_in_retry_exceeded(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    p = logged_pair(&spec, &log);
    g_assert_cmpint(roce_del_gid(p.a->e, 0), ==, 0);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(log.n, ==, 0);
    link_expect(p.a, 1, RDMA_WC_RETRY_EXC_ERR);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i <= 7; i++) {
        g_autofree char *path =
            g_strdup_printf("/roce/retry/exhausted/%u", i);

        g_test_add_data_func(path, GUINT_TO_POINTER(i),
                             test_retry_exhausted);
    }
    for (i = 0; i < 7; i++) {
        g_autofree char *path =
            g_strdup_printf("/roce/retry/rnr-exhausted/%u", i);

        g_test_add_data_func(path, GUINT_TO_POINTER(i),
                             test_rnr_retry_exhausted);
    }
    g_test_add_data_func("/roce/retry/longest-wait/short-timeout",
                         GUINT_TO_POINTER(16), test_longest_wait);
    g_test_add_data_func("/roce/retry/longest-wait/long-timeout",
                         GUINT_TO_POINTER(18), test_longest_wait);
    g_test_add_func("/roce/retry/no-timeout-waits-for-ever",
                    test_no_timeout_waits_for_ever);
    g_test_add_func("/roce/retry/slow-wire-loses-nothing",
                    test_slow_wire_loses_nothing);
    for (i = 0; i < G_N_ELEMENTS(stall_cases); i++) {
        const StallCase *c = &stall_cases[i];
        g_autofree char *uses =
            g_strdup_printf("/roce/retry/stall-uses-one-retry/%s", c->name);
        g_autofree char *ends =
            g_strdup_printf("/roce/retry/stall-has-an-end/%s", c->name);

        g_test_add_data_func(uses, c, test_stall_uses_one_retry);
        g_test_add_data_func(ends, c, test_stall_has_an_end);
    }
    g_test_add_func("/roce/retry/stalls-are-counted-in-a-row",
                    test_stalls_are_counted_in_a_row);
    g_test_add_func("/roce/retry/few-acks-of-a-long-message",
                    test_few_acks_of_a_long_message);
    g_test_add_func("/roce/retry/progress-gives-new-retries",
                    test_progress_gives_new_retries);
    g_test_add_func("/roce/retry/gap-is-filled-without-timeout",
                    test_gap_is_filled_without_timeout);
    g_test_add_func("/roce/retry/lost-ack-is-repeated",
                    test_lost_ack_is_repeated);
    g_test_add_func("/roce/retry/rnr-timer-is-honoured",
                    test_rnr_timer_is_honoured);
    g_test_add_func("/roce/retry/rnr-endless", test_rnr_endless);
    g_test_add_func("/roce/retry/rnr-before-write-with-imm",
                    test_rnr_before_write_with_imm);
    g_test_add_func("/roce/retry/read-goes-on-at-the-missing-packet",
                    test_read_goes_on_at_the_missing_packet);
    g_test_add_func("/roce/retry/duplicate-atomic-is-not-executed",
                    test_duplicate_atomic_is_not_executed);
    g_test_add_data_func("/roce/retry/ack-does-not-complete/atomic",
                         GUINT_TO_POINTER(RDMA_WR_ATOMIC_FETCH_AND_ADD),
                         test_ack_does_not_complete_a_response);
    g_test_add_data_func("/roce/retry/ack-does-not-complete/read",
                         GUINT_TO_POINTER(RDMA_WR_RDMA_READ),
                         test_ack_does_not_complete_a_response);
    g_test_add_func("/roce/retry/link-down-ends-in-retry-exceeded",
                    test_link_down_ends_in_retry_exceeded);
    g_test_add_func("/roce/retry/link-back-up-in-time",
                    test_link_back_up_in_time);
    g_test_add_func("/roce/retry/timeout-that-is-set-later",
                    test_timeout_that_is_set_later);
    g_test_add_func("/roce/retry/gid-removed-ends-in-retry-exceeded",
                    test_gid_removed_ends_in_retry_exceeded);
    return g_test_run();
}
