/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * End-to-end credits: a requester starts no more messages than its peer has
 * receives (IBTA 9.7.7.2).
 */
#include "roce-link.h"
#include "../../backends/rdma/roce/wire/wire.h"

#define LEN 100

/* A log of the frames on the wire, and which of them to lose */
typedef struct Log {
    unsigned sends;                 /* packets of SENDs and WRITEs */
    unsigned acks;                  /* positive ones */
    uint8_t syndrome;               /* of the last of them */
    bool lose_acks;
    bool lose_last;                 /* the last packets of READ responses */
} Log;

static bool log_frame(RoceLink *l, unsigned from, const uint8_t *frame,
                      size_t len, void *opaque)
{
    Log *log = opaque;
    RocePacket pkt;

    g_assert_cmpint(roce_parse(frame, len, &pkt), ==, ROCE_PARSE_OK);
    if (!(pkt.info->flags & ROCE_OP_ACK)) {
        log->sends++;
        return !(log->lose_last && pkt.bth.opcode == ROCE_READ_RESP_LAST);
    }
    if (pkt.bth.aeth.syndrome & ~ROCE_AETH_VALUE_MASK) {
        return true;
    }
    log->acks++;
    log->syndrome = pkt.bth.aeth.syndrome;
    return !log->lose_acks;
}

static LinkPair logged_pair(const LinkQpSpec *spec, Log *log)
{
    LinkPair p = link_pair(spec);

    *log = (Log) { };
    p.l->filter = log_frame;
    p.l->filter_opaque = log;
    return p;
}

static void send_to(LinkPair *p, uint64_t wr_id)
{
    link_pair_post(p, RDMA_WR_SEND, wr_id, 0, LEN);
}

static void post_recv(LinkPair *p, uint64_t wr_id)
{
    link_pair_recv(p, wr_id, 0, LEN);
}

/* Post a receive without a kick. */
static void post_recv_silently(LinkPair *p, uint64_t wr_id)
{
    link_post_recv_silently(p->b, p->bq, wr_id, link_sge(p->bmr, 0, LEN));
}

static void expect(LinkPair *p, uint64_t wr_id)
{
    link_expect(p->a, wr_id, RDMA_WC_SUCCESS);
    link_expect(p->b, wr_id, RDMA_WC_SUCCESS);
}

/* Send the first message, whose ACK reports the remaining receives. */
static void send_first_message(LinkPair *p)
{
    post_recv(p, 0);
    send_to(p, 0);
    link_run(p->l, LINK_MS);
    expect(p, 0);
}

static LinkPair plain_pair(Log *log)
{
    LinkQpSpec spec = link_spec();

    return logged_pair(&spec, log);
}

/* A pair whose requester knows that the peer has no more receives */
static LinkPair pair_without_credits(Log *log)
{
    LinkPair p = plain_pair(log);

    send_first_message(&p);
    g_assert_cmpuint(log->syndrome, ==, ROCE_AETH_ACK);
    return p;
}

static void send_all(LinkPair *p, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        send_to(p, i);
    }
}

static void post_recvs_silently(LinkPair *p, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        post_recv_silently(p, i);
    }
}

static void expect_all(LinkPair *p, unsigned first, unsigned last)
{
    for (unsigned i = first; i <= last; i++) {
        expect(p, i);
    }
}

static void assert_no_naks(LinkPair *p)
{
    g_assert_cmpuint(roce_stats(p->b->e)->rnr_naks_sent, ==, 0);
    g_assert_cmpuint(roce_stats(p->a->e)->retransmits, ==, 0);
    g_assert_cmpuint(roce_stats(p->a->e)->timeouts, ==, 0);
}

static unsigned count_naks(const LinkPair *p)
{
    return roce_stats(p->b->e)->rnr_naks_sent;
}

/*
 * An idle requester starts one message without a credit. The peer answers with
 * RNR NAKs, each time that the RNR timer runs out, until there is a receive. No
 * other message gets an RNR NAK.
 */
static void test_slow_receiver_costs_no_naks(void)
{
    const int64_t rnr_ns = 640000;  /* min_rnr_timer 12 */
    unsigned first = 0;
    LinkPair p;
    Log log;

    p = pair_without_credits(&log);
    send_all(&p, 1, 20);
    for (int i = 1; i <= 20; i++) {
        /* The wait is shorter than the timeout of a lost ACK. */
        link_run(p.l, 10 * LINK_MS);
        g_assert_cmpuint(link_wcs(p.a), ==, 0);
        if (i == 1) {
            first = count_naks(&p);
            g_assert_cmpuint(first, >, 0);
            g_assert_cmpuint(first, <=, 10 * LINK_MS / rnr_ns + 1);
        }
        post_recv(&p, i);
        link_run(p.l, 10 * LINK_MS);
        expect(&p, i);
    }
    log.sends = 0;
    for (int i = 21; i <= 40; i++) {
        send_to(&p, i);
        link_run(p.l, 10 * LINK_MS);
        post_recv(&p, i);
        link_run(p.l, 10 * LINK_MS);
        expect(&p, i);
    }
    g_assert_cmpuint(log.sends, ==, 20);
    g_assert_cmpuint(count_naks(&p), ==, first);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
    link_pair_free(&p);
}

/* Sends to a single receive continue as soon as the receive is posted again. */
static void test_single_receive_is_reported_at_once(void)
{
    LinkPair p;
    Log log;

    p = pair_without_credits(&log);
    send_all(&p, 1, 20);
    link_run(p.l, 5 * LINK_MS);
    for (int i = 1; i <= 20; i++) {
        post_recv(&p, i);
        link_run(p.l, LINK_MS / 10);
        expect(&p, i);
    }
    link_pair_free(&p);
}

/* Each side has one receive, which it posts again before it answers. */
static void test_turns_need_no_more_acks(void)
{
    LinkPair p;
    Log log;

    p = plain_pair(&log);
    post_recv_silently(&p, 1);
    for (int i = 1; i <= 20; i++) {
        bool forth = i % 2;
        LinkNode *from = forth ? p.a : p.b, *to = forth ? p.b : p.a;
        RdmaSge sge = link_sge(forth ? p.amr : p.bmr, 0, LEN);
        RdmaSendWr wr = link_wr(RDMA_WR_SEND, i, &sge);

        /* The receive for the answer */
        link_post_recv_silently(from, forth ? p.aq : p.bq, i + 1, sge);
        link_post(from, forth ? p.aq : p.bq, &wr);
        link_run(p.l, 3 * LINK_MS / 2);
        link_expect(from, i, RDMA_WC_SUCCESS);
        link_expect(to, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpuint(log.acks, ==, 20);
    g_assert_cmpuint(p.a->kick_requests[p.aq] + p.b->kick_requests[p.bq],
                     ==, 0);
    g_assert_cmpuint(count_naks(&p), ==, 0);
    link_pair_free(&p);
}

/*
 * A peer that was told of 0 credits learns of a receive 2 ms later if it was
 * posted since, or as soon as the next receive is posted.
 */
static void test_starved_peer_learns(gconstpointer data)
{
    bool posted = GPOINTER_TO_UINT(data);
    LinkPair p;
    Log log;

    p = pair_without_credits(&log);
    if (posted) {
        post_recv_silently(&p, 1);
    }
    link_run(p.l, LINK_MS / 2);
    g_assert_cmpuint(log.acks, ==, 1);
    g_assert_cmpuint(p.b->kick_requests[p.bq], ==, 0);
    link_run(p.l, LINK_MS);
    g_assert_cmpuint(log.acks, ==, posted ? 2 : 1);
    g_assert_cmpuint(p.b->kick_requests[p.bq], ==, !posted);
    if (!posted) {
        post_recv(&p, 1);
        link_run(p.l, LINK_MS);
        g_assert_cmpuint(log.acks, ==, 2);
    }
    g_assert_cmpuint(log.syndrome, ==, ROCE_AETH_ACK | 1);
    send_to(&p, 1);
    link_run(p.l, LINK_MS);
    expect(&p, 1);
    assert_no_naks(&p);
    link_pair_free(&p);
}

/*
 * A receive is posted after the engine has counted receives, and before it asks
 * the consumer for a kick. So no kick follows.
 */
static void test_receive_before_kick_request(gconstpointer data)
{
    unsigned messages = GPOINTER_TO_UINT(data);
    LinkPair p;
    Log log;

    p = plain_pair(&log);
    post_recvs_silently(&p, 0, messages);
    p.b->uncounted = 1;
    send_all(&p, 0, messages - 1);
    link_run(p.l, LINK_MS);
    expect_all(&p, 0, messages - 1);
    if (messages == 1) {
        /* The engine counts again after 2 ms. */
        g_assert_cmpuint(log.syndrome, ==, ROCE_AETH_ACK);
        p.b->uncounted = 1;
        link_run(p.l, 3 * LINK_MS / 2);
    }
    g_assert_cmpuint(p.b->kick_requests[p.bq], ==, 1);
    g_assert_cmpuint(p.b->uncounted, ==, 0);
    g_assert_cmpuint(log.syndrome, ==, ROCE_AETH_ACK | 1);
    send_to(&p, messages);
    link_run(p.l, LINK_MS);
    expect(&p, messages);
    assert_no_naks(&p);
    link_pair_free(&p);
}

/* Responses to READs and ATOMICs report credits as ACKs do. */
static void test_responses_report_credits(gconstpointer data)
{
    LinkPair p;
    Log log;

    p = pair_without_credits(&log);
    post_recvs_silently(&p, 1, 3);
    link_pair_post(&p, GPOINTER_TO_UINT(data), 100,
                   8 - p.bmr->attr.iova % 8, 8);
    link_run(p.l, LINK_MS / 10);
    link_expect(p.a, 100, RDMA_WC_SUCCESS);
    g_assert_cmpuint(log.acks, ==, 1);
    log.sends = 0;
    send_all(&p, 1, 4);
    link_pump(p.l);
    g_assert_cmpuint(log.sends, ==, 3);
    link_run(p.l, LINK_MS);
    expect_all(&p, 1, 3);
    assert_no_naks(&p);
    link_pair_free(&p);
}

/* Middle packets of a response report no credits. */
static void test_middle_packets_report_no_credits(void)
{
    LinkPair p;
    Log log;

    p = pair_without_credits(&log);
    post_recvs_silently(&p, 1, 3);
    log.lose_last = true;
    link_pair_post(&p, RDMA_WR_RDMA_READ, 100, 0, 3000);
    link_run(p.l, 3 * LINK_DELAY);
    log.sends = 0;
    send_all(&p, 1, 3);
    link_pump(p.l);
    g_assert_cmpuint(log.sends, ==, 3);
    log.lose_last = false;
    link_run(p.l, LINK_MS);
    link_expect(p.a, 100, RDMA_WC_SUCCESS);
    expect_all(&p, 1, 3);
    link_pair_free(&p);
}

/* Receives that the consumer holds count as credits. Codes are rounded down. */
static void test_credits_count_posted_receives(void)
{
    static const struct {
        unsigned posted, credits;
    } cases[] = {
        { 1, 1 }, { 2, 2 }, { 3, 3 }, { 4, 4 }, { 5, 4 }, { 6, 6 }, { 7, 6 },
        { 8, 8 }, { 11, 8 }, { 12, 12 }, { 17, 16 }, { 31, 24 },
    };

    for (unsigned c = 0; c < G_N_ELEMENTS(cases); c++) {
        LinkPair p;
        Log log;

        p = plain_pair(&log);
        post_recv(&p, 0);
        for (unsigned i = 1; i <= cases[c].posted; i++) {
            if (i % 2) {
                post_recv_silently(&p, i);
            } else {
                post_recv(&p, i);
            }
        }
        send_to(&p, 0);
        link_run(p.l, LINK_MS);
        send_all(&p, 1, 40);
        log.sends = 0;
        link_pump(p.l);
        g_assert_cmpuint(log.sends, ==, cases[c].credits);
        /* The requester uses all credits in the end. */
        link_run(p.l, LINK_MS);
        g_assert_cmpuint(log.sends, ==, cases[c].posted);
        assert_no_naks(&p);
        link_pair_free(&p);
    }
}

/*
 * Each code of IBTA table 46, and the number before it, which has the code
 * before
 */
static void test_codes_of_credits(void)
{
    static const uint32_t numbers[] = {
        0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
        512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
        24576, 32768,
    };

    for (unsigned code = 1; code < G_N_ELEMENTS(numbers); code++) {
        for (unsigned less = 0; less < 2; less++) {
            LinkPair p;
            Log log;

            p = plain_pair(&log);
            post_recv(&p, 0);
            for (uint32_t i = less; i < numbers[code]; i++) {
                post_recv_silently(&p, 1);
            }
            send_to(&p, 0);
            link_run(p.l, LINK_MS);
            g_assert_cmphex(log.syndrome, ==, ROCE_AETH_ACK | (code - less));
            link_pair_free(&p);
        }
    }
}

static void test_others_need_no_credits(void)
{
    LinkPair p;
    Log log;

    p = pair_without_credits(&log);
    for (int i = 1; i <= 10; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, i, 0, LEN);
        link_pair_post(&p, RDMA_WR_RDMA_READ, 100 + i, 0, LEN);
    }
    link_run(p.l, LINK_MS);
    for (int i = 1; i <= 10; i++) {
        link_expect(p.a, i, RDMA_WC_SUCCESS);
        link_expect(p.a, 100 + i, RDMA_WC_SUCCESS);
    }
    /* A WRITE with immediate data takes a credit in its turn. */
    link_pair_post(&p, RDMA_WR_RDMA_WRITE_WITH_IMM, 200, 0, LEN);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 201, 0, LEN);
    link_run(p.l, LINK_MS);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    post_recv(&p, 200);
    link_run(p.l, LINK_MS);
    link_expect(p.a, 200, RDMA_WC_SUCCESS);
    link_expect(p.a, 201, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* Before its first ACK, a requester has no limit. */
static void test_receive_ends_rnr_wait(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    spec.min_rnr_timer = 0;         /* 655 ms */
    p = logged_pair(&spec, &log);
    send_to(&p, 1);
    link_run(p.l, LINK_MS);
    g_assert_cmpuint(roce_stats(p.b->e)->rnr_naks_sent, ==, 1);
    post_recv(&p, 1);
    link_run(p.l, LINK_MS);
    expect(&p, 1);
    g_assert_cmpuint(roce_stats(p.b->e)->rnr_naks_sent, ==, 1);
    link_pair_free(&p);
}

/* A receive is posted before the RNR NAK is sent. */
static void test_receive_before_rnr_nak_is_sent(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    spec.min_rnr_timer = 0;
    p = logged_pair(&spec, &log);
    send_to(&p, 1);
    link_pump(p.l);
    p.l->hold = true;
    link_run(p.l, LINK_DELAY);
    post_recv(&p, 1);
    p.l->hold = false;
    link_run(p.l, LINK_MS);
    expect(&p, 1);
    g_assert_cmpuint(roce_stats(p.b->e)->rnr_naks_sent, ==, 1);
    link_pair_free(&p);
}

/* Let an idle requester send a message without credits, and get an RNR NAK. */
static void get_rnr_nak(LinkPair *p)
{
    send_to(p, 1);
    link_run(p->l, LINK_MS / 4);
    g_assert_cmpuint(count_naks(p), ==, 1);
    post_recv(p, 1);
    link_run(p->l, LINK_MS);
    expect(p, 1);
}

static void test_lost_credits_time_out_like_acks(void)
{
    LinkPair p;
    Log log;

    p = pair_without_credits(&log);
    get_rnr_nak(&p);
    log.sends = 0;
    send_to(&p, 2);
    link_run(p.l, 2 * LINK_MS);
    log.lose_acks = true;
    post_recv(&p, 2);
    link_run(p.l, LINK_MS);
    log.lose_acks = false;
    link_run(p.l, 60 * LINK_MS);
    g_assert_cmpuint(log.sends, ==, 0);
    link_run(p.l, 10 * LINK_MS);
    expect(&p, 2);
    g_assert_cmpuint(count_naks(&p), ==, 1);
    link_pair_free(&p);
}

/* A requester waits once for a responder that does not report new credits. */
static void test_silent_responder_gets_one_message(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;
    Log log;

    spec.timeout = 0;
    spec.min_rnr_timer = 1;
    p = logged_pair(&spec, &log);
    send_first_message(&p);
    send_to(&p, 1);
    link_run(p.l, LINK_MS);
    g_assert_cmpuint(count_naks(&p), >, 0);
    post_recv_silently(&p, 1);
    link_run(p.l, LINK_MS);
    expect(&p, 1);
    for (int i = 2; i <= 10; i++) {
        send_to(&p, i);
        post_recv_silently(&p, i);
        link_run(p.l, 50 * LINK_MS);
        g_assert_cmpuint(link_wcs(p.a), ==, i > 2);
        link_run(p.l, 60 * LINK_MS);
        expect(&p, i);
    }
    link_pair_free(&p);
}

static void test_shared_receives_are_no_credits(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = { .l = link_new(1), .aq = spec.qpn[0], .bq = spec.qpn[1] };
    Log log = { };

    p.a = &p.l->node[0];
    p.b = &p.l->node[1];
    p.l->filter = log_frame;
    p.l->filter_opaque = &log;
    spec.srq[1] = true;
    link_srq(p.b, 8, LINK_PDN);
    link_connect(p.l, &spec);
    p.amr = link_mr(p.a, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    p.bmr = link_mr(p.b, LINK_PAIR_MEM, LINK_ALL_ACCESS);
    link_post_srq_silently(p.b, 1, link_sge(p.bmr, 0, LEN));
    send_to(&p, 1);
    link_run(p.l, LINK_MS);
    expect(&p, 1);
    g_assert_cmpuint(log.syndrome, ==, ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS);
    send_to(&p, 2);
    send_to(&p, 3);
    log.sends = 0;
    link_pump(p.l);
    g_assert_cmpuint(log.sends, ==, 2);
    g_assert_cmpuint(p.b->kick_requests[p.bq], ==, 0);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/credit/slow-receiver-costs-no-naks",
                    test_slow_receiver_costs_no_naks);
    g_test_add_func("/roce/credit/single-receive-is-reported-at-once",
                    test_single_receive_is_reported_at_once);
    g_test_add_func("/roce/credit/turns-need-no-more-acks",
                    test_turns_need_no_more_acks);
    g_test_add_data_func("/roce/credit/starved-peer-learns/of-a-posted-receive",
                         GUINT_TO_POINTER(true), test_starved_peer_learns);
    g_test_add_data_func("/roce/credit/starved-peer-learns/of-the-next-receive",
                         GUINT_TO_POINTER(false), test_starved_peer_learns);
    g_test_add_data_func("/roce/credit/receive-before-kick-request/turns",
                         GUINT_TO_POINTER(1), test_receive_before_kick_request);
    g_test_add_data_func("/roce/credit/receive-before-kick-request/queue",
                         GUINT_TO_POINTER(3), test_receive_before_kick_request);
    g_test_add_data_func("/roce/credit/responses-report-credits/read",
                         GUINT_TO_POINTER(RDMA_WR_RDMA_READ),
                         test_responses_report_credits);
    g_test_add_data_func("/roce/credit/responses-report-credits/atomic",
                         GUINT_TO_POINTER(RDMA_WR_ATOMIC_FETCH_AND_ADD),
                         test_responses_report_credits);
    g_test_add_func("/roce/credit/middle-packets-report-no-credits",
                    test_middle_packets_report_no_credits);
    g_test_add_func("/roce/credit/credits-count-posted-receives",
                    test_credits_count_posted_receives);
    g_test_add_func("/roce/credit/codes-of-credits", test_codes_of_credits);
    g_test_add_func("/roce/credit/others-need-no-credits",
                    test_others_need_no_credits);
    g_test_add_func("/roce/credit/receive-ends-rnr-wait",
                    test_receive_ends_rnr_wait);
    g_test_add_func("/roce/credit/receive-before-rnr-nak-is-sent",
                    test_receive_before_rnr_nak_is_sent);
    g_test_add_func("/roce/credit/lost-credits-time-out-like-acks",
                    test_lost_credits_time_out_like_acks);
    g_test_add_func("/roce/credit/silent-responder-gets-one-message",
                    test_silent_responder_gets_one_message);
    g_test_add_func("/roce/credit/shared-receives-are-no-credits",
                    test_shared_receives_are_no_credits);
    return g_test_run();
}
