/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices, seen from the host: query-rdma, and the event of
 * an error.
 */
#include "qemu/osdep.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "net-test.h"

#define EVENT "RDMA_QP_ERROR"
#define SECOND (1000 * QRDMA_MS)
#define PSN_A 0x123456
#define PSN_B 0x654321
#define TIMEOUT_CODE 8
#define TIMEOUT_NS (4096ll << TIMEOUT_CODE)
#define ALL "['pd', 'cq', 'srq', 'qp', 'mr', 'gid']"

/* The device of @p.a; @args are more arguments. The caller unrefs it. */
static QDict *query_with(NetPair *p, const char *args)
{
    g_autofree char *all = g_strdup_printf("'device': 'd0', %s", args);

    return qrdma_query(p->a.dev->host->qts, all);
}

/* The queue pair of @p.a, with all details */
static QDict *query_qp(NetPair *p)
{
    g_autofree char *args = g_strdup_printf("'qpn': %u", p->a.qp->qpn);
    g_autoptr(QDict) info = query_with(p, args);
    QList *list = qdict_get_qlist(info, "qps");
    QDict *qp;

    g_assert_cmpuint(qlist_size(list), ==, 1);
    qp = qobject_to(QDict, qlist_pop(list));
    return qp;
}

/* The entry of @list whose @key is @n; it belongs to @info. */
static QDict *find(QDict *info, const char *list, const char *key, uint32_t n)
{
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(info, list), e) {
        QDict *d = qobject_to(QDict, qlist_entry_obj(e));

        if (qdict_get_int(d, key) == n) {
            return d;
        }
    }
    g_assert_not_reached();
}

static uint64_t get_uint(QDict *d, const char *key)
{
    return qnum_get_uint(qobject_to(QNum, qdict_get(d, key)));
}

static void expect_count(QDict *info, const char *kind, uint32_t used)
{
    QDict *count = qdict_get_qdict(qdict_get_qdict(info, "count"), kind);

    g_assert_cmpint(qdict_get_int(count, "used"), ==, used);
    g_assert_cmpint(qdict_get_int(count, "max"), >=, used);
}

static void expect_str(QDict *d, const char *key, const char *want)
{
    g_assert_cmpstr(qdict_get_str(d, key), ==, want);
}

static void expect_int(QDict *d, const char *key, int64_t want)
{
    g_assert_cmpint(qdict_get_int(d, key), ==, want);
}

static void check_qp(NetPair *p, QDict *qp, const char *state)
{
    expect_str(qp, "type", "rc");
    expect_str(qp, "state", state);
    expect_int(qp, "pdn", p->a.pd->pdn);
    expect_int(qp, "send-cqn", p->a.scq->cqn);
    expect_int(qp, "recv-cqn", p->a.rcq->cqn);
    expect_int(qp, "errors", 0);
    g_assert_false(qdict_haskey(qp, "last-error"));
    g_assert_false(qdict_haskey(qp, "srqn"));
}

static void test_objects(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    g_autoptr(QDict) info = query_with(&p, "'objects': " ALL);
    QDict *d;

    expect_count(info, "pd", 1);
    expect_count(info, "cq", 2);
    expect_count(info, "srq", 0);
    expect_count(info, "qp", 1);
    expect_count(info, "mr", 1);
    expect_count(info, "mw", 0);
    g_assert_true(qdict_get_bool(info, "driver"));

    expect_int(find(info, "pds", "pdn", p.a.pd->pdn), "users", 2);
    d = find(info, "cqs", "cqn", p.a.scq->cqn);
    expect_int(d, "cqe", p.a.scq->cqe);
    expect_int(d, "users", 1);
    g_assert_false(qdict_get_bool(d, "failed"));
    check_qp(&p, find(info, "qps", "qpn", p.a.qp->qpn), "reset");
    d = find(info, "mrs", "mrn", p.a.mr->mrn);
    expect_str(d, "type", "user");
    expect_int(d, "lkey", p.a.mr->lkey);
    expect_int(d, "rkey", p.a.mr->rkey);
    g_assert_true(qdict_get_bool(d, "valid"));
    g_assert_cmpuint(get_uint(d, "iova"), ==, p.a.mr->iova);
    expect_int(d, "length", p.a.mr->length);
    g_assert_true(qlist_empty(qdict_get_qlist(info, "srqs")));
    d = find(info, "gids", "index", 1);
    expect_str(d, "gid", "::ffff:10.0.0.1");
}

static void test_only_what_is_asked_for(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    QDict *info = query_with(&p, "'objects': ['pd']"), *qp;

    g_assert_true(qdict_haskey(info, "pds"));
    g_assert_false(qdict_haskey(info, "qps"));
    qobject_unref(info);
    info = query_with(&p, "'detail': true");
    g_assert_false(qdict_haskey(info, "pds"));
    qobject_unref(info);
    info = query_with(&p, "'objects': ['qp']");
    qp = find(info, "qps", "qpn", p.a.qp->qpn);
    g_assert_true(qdict_haskey(qp, "sends"));
    g_assert_false(qdict_haskey(qp, "sends-waiting"));
    g_assert_false(qdict_haskey(qp, "recvs-waiting"));
    g_assert_false(qdict_haskey(qp, "detail"));
    qobject_unref(info);
}

static void test_part_of_a_list(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);
    uint32_t cqns[] = { p.a.scq->cqn, p.a.rcq->cqn };
    bool swap = cqns[0] > cqns[1];
    g_autofree char *args = g_strdup_printf("'objects': ['cq'], 'first': %u",
                                            cqns[swap] + 1);
    QDict *info = query_with(&p, "'objects': ['cq'], 'max': 1");

    g_assert_cmpuint(qlist_size(qdict_get_qlist(info, "cqs")), ==, 1);
    find(info, "cqs", "cqn", cqns[swap]);
    qobject_unref(info);
    info = query_with(&p, args);
    g_assert_cmpuint(qlist_size(qdict_get_qlist(info, "cqs")), ==, 1);
    find(info, "cqs", "cqn", cqns[!swap]);
    qobject_unref(info);
    info = query_with(&p, "'objects': ['cq'], 'first': 4294967295");
    g_assert_true(qlist_empty(qdict_get_qlist(info, "cqs")));
    qobject_unref(info);
}

static void test_attributes(NetKind kind)
{
    static const char *const unset[] = {
        "dest-qpn", "sq-psn", "rq-psn", "path-mtu", "dgid", "sgid-index",
        "timeout", "retry-cnt", "rnr-retry", "max-rd-atomic",
        "max-dest-rd-atomic", "rate-limit",
    };
    QRdmaPath path = {
        .psn_a = PSN_A, .psn_b = PSN_B, .timeout = 17, .retry_cnt = 5,
        .rnr_retry = 3, .mtu = RDMA_MTU_512,
    };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    QDict *qp = query_qp(&p), *detail = qdict_get_qdict(qp, "detail");

    check_qp(&p, qp, "rts");
    expect_int(qp, "dest-qpn", p.b.qp->wire_qpn);
    expect_int(detail, "path-mtu", 512);
    expect_int(detail, "timeout", 17);
    expect_int(detail, "retry-cnt", 5);
    expect_int(detail, "rnr-retry", 3);
    g_assert_true(qdict_get_bool(detail, "direct") == p.a.dev->direct);
    g_assert_true(qdict_haskey(detail, "dgid"));
    if (qrdma_ibdev()) {
        /* Numbers that only the host knows are left out. */
        g_assert_false(qdict_haskey(qp, "sq-psn"));
        g_assert_false(qdict_haskey(detail, "progress"));
    } else {
        expect_int(qp, "sq-psn", PSN_A);
        expect_int(qp, "rq-psn", PSN_B);
    }
    qobject_unref(qp);
    /* Attributes that are not set any more are left out. */
    assert_ok(qrdma_modify_qp_state(p.a.qp, RDMA_QPS_RESET));
    qp = query_qp(&p);
    detail = qdict_get_qdict(qp, "detail");
    expect_str(qp, "state", "reset");
    for (int i = 0; i < ARRAY_SIZE(unset); i++) {
        g_assert_false(qdict_haskey(qp, unset[i]));
        g_assert_false(qdict_haskey(detail, unset[i]));
    }
    qobject_unref(qp);
}

static void test_receives_that_are_posted(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    int64_t n;
    QDict *qp;

    for (int i = 0; i < 5; i++) {
        net_post_recv(&p.a, i, 0, 8);
    }
    qrdma_post_expect(p.b.qp, qrdma_wr(RDMA_WR_SEND, 1, NULL), RDMA_WC_SUCCESS);
    qrdma_expect(p.a.rcq, 0, RDMA_WC_SUCCESS);
    qp = query_qp(&p);
    n = qdict_get_int(qp, "recvs") + qdict_get_int(qp, "recvs-waiting");
    g_assert_cmpint(n, ==, 4);
    expect_int(qp, "sends", 0);
    expect_int(qp, "sends-waiting", 0);
    qobject_unref(qp);
}

static void check_last_error(QDict *qp, const char *status, uint64_t wr_id)
{
    QDict *error = qdict_get_qdict(qp, "last-error");

    expect_str(qp, "state", "err");
    expect_int(qp, "errors", 1);
    expect_str(error, "source", "completion");
    expect_str(error, "status", status);
    expect_str(error, "opcode", "rdma-write");
    g_assert_cmpuint(get_uint(error, "wr-id"), ==, wr_id);
    g_assert_cmpuint(get_uint(error, "time"), >, 0);
}

/* The peer does not answer: the work is outstanding, and then fails. */
static void test_silent_peer(NetKind kind)
{
    QRdmaPath path = {
        .timeout = TIMEOUT_CODE, .retry_cnt = 2, .no_retry = true,
        .psn_a = PSN_A, .psn_b = PSN_B, .mtu = RDMA_MTU_512,
    };
    NetPair p = net_pair(kind, RDMA_QPT_RC, &path);
    RdmaSge sge = net_sge(&p.a, 0, 3000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, UINT64_MAX, &sge, p.b.mr,
                                  0);
    uint32_t npsn = DIV_ROUND_UP(3000, 512);
    QDict *qp, *d;

    assert_ok(qrdma_destroy_qp(p.b.qp));
    qrdma_post_send(p.a.qp, &wr);
    wr.wr_id = 2;
    qrdma_post_send(p.a.qp, &wr);
    qrdma_settle(p.a.dev);

    qp = query_qp(&p);
    check_qp(&p, qp, "rts");
    expect_int(qp, "sends", 2);
    expect_int(qp, "sends-waiting", 0);
    expect_int(qp, "sq-psn", PSN_A + 2 * npsn);
    d = qdict_get_qdict(qdict_get_qdict(qp, "detail"), "progress");
    expect_int(d, "una-psn", PSN_A);
    expect_int(d, "next-psn", PSN_A + 2 * npsn);
    expect_int(d, "retries", 2);
    qobject_unref(qp);

    for (int i = 0; i < 200 && !qrdma_cq_has_cqe(p.a.scq); i++) {
        net_clock_step(p.net, TIMEOUT_NS);
        g_usleep(500);
    }
    qrdma_expect(p.a.scq, UINT64_MAX, RDMA_WC_RETRY_EXC_ERR);
    qrdma_expect(p.a.scq, 2, RDMA_WC_WR_FLUSH_ERR);
    qp = query_qp(&p);
    check_last_error(qp, "retry-exc-err", UINT64_MAX);
    expect_int(qp, "sends", 0);
    d = qdict_get_qdict(qdict_get_qdict(qp, "detail"), "stats");
    expect_int(d, "timeouts", 3);
    expect_int(d, "retransmits", 2);
    qobject_unref(qp);
}

/* The peer refuses the request, and the QP goes to ERR. */
static void make_error(NetPair *p, uint64_t wr_id)
{
    RdmaSge sge = net_sge(&p->a, 0, 8);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge, p->b.mr, 0);

    wr.wr.rdma.rkey ^= 1;
    qrdma_post_expect(p->a.qp, wr, RDMA_WC_REM_ACCESS_ERR);
}

static void test_last_error(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QDict *qp, *info;
    int64_t before;

    info = query_with(&p, "'objects': []");
    before = qdict_get_int(info, "qp-errors");
    qobject_unref(info);
    net_post_recv(&p.a, 9, 0, 8);
    make_error(&p, 7);
    qrdma_expect(p.a.rcq, 9, RDMA_WC_WR_FLUSH_ERR);
    qp = query_qp(&p);
    check_last_error(qp, "rem-access-err", 7);
    qobject_unref(qp);
    info = query_with(&p, "'objects': []");
    expect_int(info, "qp-errors", before + 1);
    qobject_unref(info);
}

/* Take all events of @p.a; the last one is for the caller, or NULL. */
static QDict *take_events(NetPair *p, int *n)
{
    QTestState *qts = p->a.dev->host->qts;
    QDict *last = NULL, *event;

    /* All events from before the answer are there after this command. */
    qtest_qmp_assert_success(qts, "{'execute': 'query-status'}");
    *n = 0;
    while ((event = qtest_qmp_event_ref(qts, EVENT))) {
        if (strcmp(qdict_get_str(qdict_get_qdict(event, "data"), "device"),
                   "d0")) {
            qobject_unref(event);
            continue;
        }
        qobject_unref(last);
        last = event;
        ++*n;
    }
    return last;
}

static NetPair quiet_pair(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    int n;

    /* Late events of earlier tests, and then the pause after them */
    for (int i = 0; i < 2; i++) {
        net_clock_step(p.net, 2 * SECOND);
        qobject_unref(take_events(&p, &n));
    }
    return p;
}

/* Returns the number of errors in the event. */
static int64_t check_event(NetPair *p, QDict *event, uint64_t wr_id)
{
    QDict *data = qdict_get_qdict(event, "data");
    QDict *error = qdict_get_qdict(data, "error");
    int64_t errors = qdict_get_int(data, "qp-errors");

    expect_str(data, "path", "/machine/peripheral/d0");
    expect_int(data, "qpn", p->a.qp->qpn);
    expect_str(error, "source", "completion");
    expect_str(error, "status", "rem-access-err");
    g_assert_cmpuint(get_uint(error, "wr-id"), ==, wr_id);
    qobject_unref(event);
    return errors;
}

static void test_events_are_limited(NetKind kind)
{
    NetPair p = quiet_pair(kind);
    int64_t errors = 0;
    QDict *event;
    int n;

    for (int i = 1; i <= 5; i++) {
        make_error(&p, i);
        event = take_events(&p, &n);
        if (i == 1) {
            g_assert_cmpint(n, ==, 1);
            errors = check_event(&p, event, 1);
        } else {
            g_assert_cmpint(n, ==, 0);
        }
        if (i < 5) {
            qrdma_reconnect(p.a.qp, p.b.qp, NULL);
        }
    }
    /* The last event comes after the pause, and counts the other errors. */
    net_clock_step(p.net, SECOND);
    event = take_events(&p, &n);
    g_assert_cmpint(n, ==, 1);
    g_assert_cmpint(check_event(&p, event, 5), ==, errors + 4);
    net_clock_step(p.net, 2 * SECOND);
    g_assert_null(take_events(&p, &n));
}

/* Errors name what is wrong, and what to do about it. */
static void test_refusals(NetKind kind)
{
    static const struct {
        const char *args;
        const char *in_message[2];
    } bad[] = {
        { "'device': 'nosuch'", { "'nosuch'", "'d0'" } },
        { "'device': 'n0'", { "'n0'", "'d0'" } },
        { "'device': '/machine'", { "'/machine'", "'d0'" } },
        { "'device': ''", { "''", "'d0'" } },
        /* max-qp=8: the last one is 7 */
        { "'device': 'd0', 'qpn': 8", { "8", "'d0'" } },
        { "'device': 'd0', 'qpn': 4294967295", { "4294967295", "'d0'" } },
        { "'qpn': 2", { "qpn", "device" } },
        { "'device': 'd0', 'qpn': 2, 'max': 1", { "qpn", "max" } },
        { "'objects': ['ah']", { "ah", "" } },
    };
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        g_autofree char *cmd = g_strdup_printf(
            "{'execute': 'query-rdma', 'arguments': {%s}}", bad[i].args);
        g_autoptr(QDict) rsp = qtest_qmp(p.a.dev->host->qts, cmd, NULL);
        const char *desc = qdict_get_str(qdict_get_qdict(rsp, "error"),
                                         "desc");

        for (int n = 0; n < 2; n++) {
            g_assert_nonnull(strstr(desc, bad[i].in_message[n]));
        }
    }
}

static void test_a_device_by_its_path(NetKind kind)
{
    NetPair p = net_pair_new(net_shared(kind), RDMA_QPT_RC);

    qobject_unref(qrdma_query(p.a.dev->host->qts,
                              "'device': '/machine/peripheral/d0'"));
}

static void test_info_for_people(NetKind kind)
{
    NetPair p = net_pair(kind, RDMA_QPT_RC, NULL);
    QTestState *qts = p.a.dev->host->qts;
    g_autofree char *qp = g_strdup_printf("qp %u: rc err", p.a.qp->qpn);
    g_autofree char *text = NULL, *all = NULL;

    make_error(&p, 7);
    text = qtest_hmp(qts, "info rdma d0 %u", p.a.qp->qpn);
    g_assert_nonnull(strstr(text, qp));
    g_assert_nonnull(strstr(text, "the last: rem-access-err of rdma-write, "
                            "wr-id 0x7"));
    all = qtest_hmp(qts, "info rdma");
    g_assert_nonnull(strstr(all, "qp 1/"));
    g_assert_null(strstr(all, qp));
}

const NetTest net_query_tests[] = {
    { "query/objects", test_objects },
    { "query/only-what-is-asked-for", test_only_what_is_asked_for },
    { "query/part-of-a-list", test_part_of_a_list },
    { "query/attributes", test_attributes },
    { "query/receives-that-are-posted", test_receives_that_are_posted },
    { "query/last-error", test_last_error },
    { "query/events-are-limited", test_events_are_limited },
    { "query/refusals", test_refusals },
    { "query/a-device-by-its-path", test_a_device_by_its_path },
    { "query/info-for-people", test_info_for_people },
    { "query/silent-peer", test_silent_peer },
    {}
};
