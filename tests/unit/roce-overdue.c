/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Answers that arrived before a timer ran out, and that the owner has not read:
 * node a reads no frames until the test lets it.
 */
#include "roce-link.h"

#define TIMEOUT_CODE 8
#define TIMEOUT_NS (INT64_C(4096) << TIMEOUT_CODE)
#define LEN 3000

/* Frames that node b has sent and node a has not read */
typedef struct Unread {
    LinkPair p;
    bool keep;                      /* keep frames of node b */
    GQueue frames;                  /* of GBytes */
} Unread;

static bool keep_frame(RoceLink *l, unsigned from, const uint8_t *frame,
                       size_t len, void *opaque)
{
    Unread *u = opaque;

    if (from == 0 || !u->keep) {
        return true;
    }
    g_queue_push_tail(&u->frames, g_bytes_new(frame, len));
    return false;
}

static void stop_reading(Unread *u)
{
    u->keep = true;
    u->p.a->heard = u->p.l->now;
}

static void resume_reading(Unread *u)
{
    u->keep = false;
    u->p.a->heard = ROCE_NO_DEADLINE;
}

static void unread_init(Unread *u, unsigned retry_cnt)
{
    LinkQpSpec spec = link_spec();

    spec.timeout = TIMEOUT_CODE;
    spec.retry_cnt = retry_cnt;
    u->p = link_pair(&spec);
    u->p.l->moves = 0;
    u->p.l->filter = keep_frame;
    u->p.l->filter_opaque = u;
    g_queue_init(&u->frames);
    stop_reading(u);
}

static void unread_free(Unread *u)
{
    g_queue_clear_full(&u->frames, (GDestroyNotify)g_bytes_unref);
    link_pair_free(&u->p);
}

/* Post a request of @len bytes, and read no answer until it is overdue. */
static void post_overdue(Unread *u, uint32_t opcode, uint32_t len)
{
    link_pair_post(&u->p, opcode, 1, 0, len);
    g_assert_true(link_run(u->p.l, 10 * TIMEOUT_NS));
    g_assert_true(roce_any_overdue(u->p.a->e));
}

/* Let node a read all frames that have arrived. */
static void read_all(Unread *u)
{
    LinkPair *p = &u->p;
    GBytes *frame;

    while ((frame = g_queue_pop_head(&u->frames))) {
        size_t len;
        const void *data = g_bytes_get_data(frame, &len);

        roce_rx(p->a->e, data, len, p->l->now);
        g_bytes_unref(frame);
    }
    p->a->heard = p->l->now;
    roce_expire(p->a->e, p->l->now, p->a->heard);
    link_pump(p->l);
}

static uint64_t timeouts(Unread *u)
{
    return roce_stats(u->p.a->e)->timeouts;
}

/* Each kind of answer, read long after the timer */
static void test_answer_is_read_late(gconstpointer data)
{
    uint32_t opcode = GPOINTER_TO_UINT(data);
    LinkPair *p;
    Unread u;

    unread_init(&u, 0);
    p = &u.p;
    link_fill(p->amr, 1);
    link_fill(p->bmr, 2);
    link_pair_recv(p, 50, 0, LEN);
    post_overdue(&u, opcode, opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD ? 8 : LEN);
    g_assert_cmpuint(link_wcs(p->a), ==, 0);
    g_assert_cmpuint(roce_timeouts_late(p->a->e), ==, 0);

    read_all(&u);
    link_expect(p->a, 1, RDMA_WC_SUCCESS);
    g_assert_false(roce_any_overdue(p->a->e));
    g_assert_cmpuint(timeouts(&u), ==, 0);
    g_assert_cmpuint(roce_stats(p->a->e)->retransmits, ==, 0);
    g_assert_cmpuint(roce_timeouts_late(p->a->e), ==, 1);
    unread_free(&u);
}

/* Half of the answer has arrived; its other half gets a new timeout. */
static void test_part_of_an_answer(void)
{
    LinkPair *p;
    Unread u;

    unread_init(&u, 0);
    p = &u.p;
    post_overdue(&u, RDMA_WR_RDMA_READ, LEN);
    g_bytes_unref(g_queue_pop_tail(&u.frames));
    read_all(&u);
    g_assert_cmpuint(link_wcs(p->a), ==, 0);
    g_assert_cmpuint(roce_timeouts_late(p->a->e), ==, 1);
    resume_reading(&u);
    g_assert_false(link_run(p->l, TIMEOUT_NS - 1));
    g_assert_cmpuint(timeouts(&u), ==, 0);
    link_run(p->l, 1);
    g_assert_cmpuint(timeouts(&u), ==, 1);
    link_expect(p->a, 1, RDMA_WC_RETRY_EXC_ERR);
    unread_free(&u);
}

/* No answer has arrived: the request fails as soon as this is known. */
static void test_loss_is_detected(void)
{
    int64_t due;
    LinkPair *p;
    Unread u;

    unread_init(&u, 1);
    p = &u.p;
    link_pair_post(p, RDMA_WR_RDMA_WRITE, 1, 0, LEN);
    link_pump(p->l);
    due = p->l->now + TIMEOUT_NS;
    g_assert_true(link_run(p->l, 5 * TIMEOUT_NS));
    roce_expire(p->a->e, p->l->now, due - 1);
    g_assert_cmpuint(timeouts(&u), ==, 0);
    roce_expire(p->a->e, p->l->now, due);
    g_assert_cmpuint(timeouts(&u), ==, 1);
    g_assert_false(roce_any_overdue(p->a->e));

    /* The retry has twice the timeout, counted from its sending. */
    g_assert_cmpint(roce_next_deadline(p->a->e), ==,
                    p->l->now + 2 * TIMEOUT_NS);
    resume_reading(&u);
    u.keep = true;
    g_assert_true(link_run(p->l, LINK_FOREVER));
    link_expect(p->a, 1, RDMA_WC_RETRY_EXC_ERR);
    g_assert_cmpuint(timeouts(&u), ==, 2);
    g_assert_cmpuint(roce_timeouts_late(p->a->e), ==, 0);
    unread_free(&u);
}

/*
 * A message waits for credits, which have arrived unread. If they were ignored,
 * the message would be sent at the end of the wait and get an RNR NAK.
 */
static void test_credits_are_read_late(void)
{
    uint64_t sent;
    LinkPair *p;
    Unread u;

    unread_init(&u, 7);
    p = &u.p;
    resume_reading(&u);
    for (unsigned i = 0; i < 2; i++) {
        link_pair_post(p, RDMA_WR_SEND, i, 0, LEN);
        link_run(p->l, LINK_MS / 4);
        link_pair_recv(p, i, 0, LEN);
        link_run(p->l, LINK_MS);
        link_expect(p->a, i, RDMA_WC_SUCCESS);
        link_expect(p->b, i, RDMA_WC_SUCCESS);
    }

    stop_reading(&u);
    sent = p->l->sent[0];
    link_pair_post(p, RDMA_WR_SEND, 2, 0, LEN);
    link_run(p->l, LINK_MS / 4);
    link_pair_recv(p, 2, 0, LEN);
    g_assert_true(link_run(p->l, 10 * TIMEOUT_NS));
    g_assert_true(roce_any_overdue(p->a->e));
    g_assert_cmpuint(p->l->sent[0], ==, sent);
    read_all(&u);
    g_assert_false(roce_any_overdue(p->a->e));
    resume_reading(&u);
    g_assert_false(link_run(p->l, TIMEOUT_NS / 2));
    link_expect(p->a, 2, RDMA_WC_SUCCESS);
    unread_free(&u);
}

typedef enum End {
    END_BY_ERR,
    END_BY_RESET,
    END_BY_DESTROY,
    END_BY_MOVE,
} End;

/* The QP leaves RTS, is destroyed or moves while it is overdue. */
static void test_end_while_overdue(gconstpointer data)
{
    End end = GPOINTER_TO_UINT(data);
    LinkPair *p;
    Unread u;

    unread_init(&u, 0);
    p = &u.p;
    post_overdue(&u, RDMA_WR_RDMA_WRITE, LEN);
    switch (end) {
    case END_BY_ERR:
        link_modify(p->a, p->aq, RDMA_QPS_ERR);
        break;
    case END_BY_RESET:
        link_modify(p->a, p->aq, RDMA_QPS_RESET);
        break;
    case END_BY_DESTROY:
        g_assert_cmpint(roce_qp_destroy(p->a->e, p->aq), ==, 0);
        break;
    case END_BY_MOVE:
        link_move(p->a);
        break;
    }
    g_assert_false(roce_any_overdue(p->a->e));
    g_assert_true(link_run(p->l, LINK_FOREVER));
    g_assert_cmpint(roce_any_overdue(p->a->e), ==, end == END_BY_MOVE);
    read_all(&u);
    g_assert_cmpuint(timeouts(&u), ==, 0);
    if (end == END_BY_MOVE) {
        link_expect(p->a, 1, RDMA_WC_SUCCESS);
    } else if (end == END_BY_ERR) {
        link_expect(p->a, 1, RDMA_WC_WR_FLUSH_ERR);
    }
    unread_free(&u);
}

/* While one QP is overdue, the timers of another one run as usual. */
static void test_others_do_not_wait(void)
{
    LinkQpSpec other = link_spec();
    RdmaQpAttr attr = { .rate_limit = 1000 };
    LinkPair *p;
    Unread u;

    unread_init(&u, 0);
    p = &u.p;
    other.qpn[0] = 5;
    other.qpn[1] = 6;
    other.timeout = 14;
    link_connect(p->l, &other);
    g_assert_cmpint(roce_qp_modify(p->a->e, other.qpn[0], RDMA_QP_RATE_LIMIT,
                                   &attr), ==, 0);
    post_overdue(&u, RDMA_WR_RDMA_WRITE, LEN);

    /* 8 ms for each packet */
    p->aq = other.qpn[0];
    link_pair_post(p, RDMA_WR_RDMA_WRITE, 2, 0, 3 * 1024);
    link_run(p->l, 20 * LINK_MS);
    g_assert_cmpuint(p->l->sent[0], ==, 3 + 3);
    read_all(&u);
    link_expect(p->a, 1, RDMA_WC_SUCCESS);
    link_expect(p->a, 2, RDMA_WC_SUCCESS);
    g_assert_cmpuint(timeouts(&u), ==, 0);
    g_assert_cmpuint(roce_timeouts_late(p->a->e), ==, 1);
    unread_free(&u);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        uint32_t opcode;
    } answers[] = {
        { "write", RDMA_WR_RDMA_WRITE },
        { "send", RDMA_WR_SEND },
        { "read", RDMA_WR_RDMA_READ },
        { "atomic", RDMA_WR_ATOMIC_FETCH_AND_ADD },
    };
    static const char *const ends[] = {
        [END_BY_ERR] = "err", [END_BY_RESET] = "reset",
        [END_BY_DESTROY] = "destroy", [END_BY_MOVE] = "move",
    };

    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(answers); i++) {
        g_autofree char *path =
            g_strdup_printf("/roce/overdue/answer-is-read-late/%s",
                            answers[i].name);

        g_test_add_data_func(path, GUINT_TO_POINTER(answers[i].opcode),
                             test_answer_is_read_late);
    }
    g_test_add_func("/roce/overdue/part-of-an-answer", test_part_of_an_answer);
    g_test_add_func("/roce/overdue/loss-is-detected", test_loss_is_detected);
    g_test_add_func("/roce/overdue/credits-are-read-late",
                    test_credits_are_read_late);
    for (unsigned i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *path =
            g_strdup_printf("/roce/overdue/end-while-overdue/%s", ends[i]);

        g_test_add_data_func(path, GUINT_TO_POINTER(i),
                             test_end_while_overdue);
    }
    g_test_add_func("/roce/overdue/others-do-not-wait",
                    test_others_do_not_wait);
    return g_test_run();
}
