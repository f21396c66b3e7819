/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: the guest uses GIDs of the host's port, at any index of its
 * table. An event reports GIDs that are missing.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qnum.h"
#include "verbs-test.h"

#define EVENT "RDMA_GID_STATUS_CHANGED"
#define SECOND 1000000000ll

static const uint8_t missing[RDMA_GID_LEN] = {
    [10] = 0xff, 0xff, 10, 0, 0, 99,
};

static uint64_t number(QDict *data, const char *key)
{
    return qnum_get_uint(qobject_to(QNum, qdict_get(data, key)));
}

/* Wait for the next event of an entry, and check it. */
static void expect_status(Verbs *v, uint32_t index, const uint8_t *gid,
                          bool status)
{
    g_autoptr(QDict) rsp = qtest_qmp_eventwait_ref(v->host->qts, EVENT);
    QDict *data = qdict_get_qdict(rsp, "data");

    g_assert_cmpstr(qdict_get_str(data, "id"), ==, "/objects/r0");
    g_assert_cmpint(qdict_get_int(data, "index"), ==, index);
    g_assert_cmpstr(qdict_get_str(data, "netdev"), ==, "lo");
    g_assert_cmpint(qdict_get_bool(data, "gid-status"), ==, status);
    g_assert_cmphex(number(data, "subnet-prefix"), ==, ldq_le_p(gid));
    g_assert_cmphex(number(data, "interface-id"), ==, ldq_le_p(gid + 8));
    g_assert_false(qdict_haskey(data, "vlan"));
}

/* Number of events so far */
static unsigned count_events(Verbs *v)
{
    unsigned n = 0;
    QDict *rsp;

    qtest_qmp_assert_success(v->host->qts, "{'execute': 'query-status'}");
    while ((rsp = qtest_qmp_event_ref(v->host->qts, EVENT))) {
        qobject_unref(rsp);
        n++;
    }
    return n;
}

/* A device after the events of its start, so that no later event is delayed */
static Verbs *verbs_quiet(void)
{
    Verbs *v = verbs_new(NULL);

    g_assert_cmpint(count_events(v), ==, 2);
    qrdma_clock_step(v->dev, 2 * SECOND);
    return v;
}

static void test_refused(void)
{
    g_autoptr(Verbs) v = verbs_quiet();

    assert_status(qrdma_add_gid(v->dev, 5, missing), PERM);
    expect_status(v, 5, missing, false);
    assert_status(qrdma_del_gid(v->dev, 5, 1), NOENT);
    g_assert_cmpint(count_events(v), ==, 0);
}

/* RoCEv1, and a net device of a VLAN, make other GIDs of the same address. */
static void test_other_types(void)
{
    g_autoptr(Verbs) v = verbs_new("gid 2 10.0.0.99 v1; gid 3 10.0.0.99 ib");

    assert_status(qrdma_add_gid(v->dev, 5, missing), PERM);
    fake_verbs_tell(v->fake, "gid 4 10.0.0.99 v2");
    assert_ok(qrdma_add_gid(v->dev, 5, missing));
}

static void test_multicast(void)
{
    static const uint8_t group[RDMA_GID_LEN] = { 0xff, 0x02, [15] = 1 };
    g_autoptr(Verbs) v = verbs_new("gid 2 ff02::1");

    assert_status(qrdma_add_gid(v->dev, 5, group), INVAL);
}

static void test_events(void)
{
    g_autoptr(Verbs) v = verbs_quiet();
    uint8_t gid[RDMA_GID_LEN];

    memcpy(gid, v->dev->gid[1], RDMA_GID_LEN);
    assert_ok(qrdma_add_gid(v->dev, 5, gid));
    expect_status(v, 5, gid, true);
    qrdma_clock_step(v->dev, 2 * SECOND);
    assert_ok(qrdma_del_gid(v->dev, 5, 1));
    expect_status(v, 5, gid, false);
    qrdma_clock_step(v->dev, 2 * SECOND);
    assert_ok(qrdma_del_gid(v->dev, 0, 1));
    g_assert_cmpint(count_events(v), ==, 1);
    /* A reset deletes the last one */
    qrdma_reset(v->dev);
    expect_status(v, 1, gid, false);
    g_assert_cmpint(count_events(v), ==, 0);
    verbs_restart(v);
}

static void test_events_are_limited(void)
{
    g_autoptr(Verbs) v = verbs_quiet();

    for (int i = 0; i < 50; i++) {
        assert_ok(qrdma_add_gid(v->dev, 5, v->dev->gid[1]));
        assert_ok(qrdma_del_gid(v->dev, 5, 1));
        assert_status(qrdma_add_gid(v->dev, 6, missing), PERM);
    }
    assert_ok(qrdma_add_gid(v->dev, 5, v->dev->gid[1]));
    /* One for each of the two entries */
    g_assert_cmpint(count_events(v), ==, 2);
    qrdma_clock_step(v->dev, SECOND);
    g_assert_cmpint(count_events(v), ==, 2);
    qrdma_clock_step(v->dev, 2 * SECOND);
    g_assert_cmpint(count_events(v), ==, 0);
}

/*
 * Report a change of the host's table, and wait until the backend has read it.
 */
static void tell_change(Verbs *v)
{
    unsigned calls = fake_verbs_calls(v->fake, "query_gid_table");

    fake_verbs_tell(v->fake, "event GID_CHANGE");
    qrdma_wait_until(v->dev, fake_verbs_calls(v->fake, "query_gid_table") >
                             calls);
    /* Wait for a job after that one. */
    qrdma_alloc_pd(v->dev);
}

/* A path from entry @index of the guest to itself. */
static uint8_t try_path(VerbsPair *p, uint8_t index)
{
    QRdmaQp *qp = qrdma_create_qp(p->pd, p->cq_a, p->cq_a, RDMA_QPT_RC);
    QRdmaPath path = {
        .mtu = RDMA_MTU_1024, .gid_index = index, .min_rnr_timer = 12,
    };
    uint8_t status;

    assert_ok(qrdma_modify_init(qp, 0));
    status = qrdma_modify_rtr(qp, qp, &path, 0);
    assert_ok(qrdma_destroy_qp(qp));
    return status;
}

static void test_entry_moves(void)
{
    g_autoptr(Verbs) v = verbs_quiet();
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    assert_ok(try_path(&p, 1));
    fake_verbs_tell(v->fake, "gid 1 none");
    fake_verbs_tell(v->fake, "gid 7 10.0.0.1");
    tell_change(v);
    assert_ok(try_path(&p, 1));
    verbs_check_works(&p, 1);
    g_assert_cmpint(count_events(v), ==, 0);
}

/* Datagrams take the new entry, and no address handle keeps the old one. */
static void test_entry_of_datagrams_moves(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_UD);

    verbs_check_works(&p, 1);
    g_assert_cmpint(fake_verbs_count(v->fake, "ah"), ==, 1);
    fake_verbs_tell(v->fake, "gid 0 none");
    fake_verbs_tell(v->fake, "gid 9 fe80::5054:ff:fe12:3401");
    tell_change(v);
    verbs_await_count(v, "ah", 0);
    verbs_check_works(&p, 2);
}

static void test_entry_vanishes_and_comes_back(void)
{
    g_autoptr(Verbs) v = verbs_quiet();
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);

    fake_verbs_tell(v->fake, "gid 1 none");
    tell_change(v);
    expect_status(v, 1, v->dev->gid[1], false);
    assert_status(try_path(&p, 1), INVAL);
    qrdma_clock_step(v->dev, 2 * SECOND);
    fake_verbs_tell(v->fake, "gid 3 10.0.0.1");
    tell_change(v);
    expect_status(v, 1, v->dev->gid[1], true);
    assert_ok(try_path(&p, 1));
}

/* The driver gets an event when it may try again, if it negotiated events. */
static void test_refused_comes_later(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);

    tell_change(v);
    qrdma_expect_no_event(v->dev);
    assert_status(qrdma_add_gid(v->dev, 5, missing), PERM);
    fake_verbs_tell(v->fake, "gid 3 10.0.0.99");
    tell_change(v);
    qrdma_expect_event(v->dev, RDMA_EVENT_GID_CHANGE, 1);
    assert_ok(qrdma_add_gid(v->dev, 5, missing));
    tell_change(v);
    qrdma_expect_no_event(v->dev);
}

static VerbsWaiting late_add(Verbs *v, uint16_t index)
{
    struct virtio_rdma_add_gid_req req = {
        .gid_type = cpu_to_le32(VIRTIO_RDMA_GID_TYPE_ROCE_V2),
        .index = cpu_to_le16(index),
        .port_num = cpu_to_le32(1),
    };
    VerbsWaiting w;

    memcpy(req.gid, v->dev->gid[1], RDMA_GID_LEN);
    w = verbs_hold_cmd(v, "query_gid_table", VIRTIO_RDMA_CMD_ADD_GID, &req,
                       sizeof(req), 0);
    return w;
}

/* A host may take long to read its table; the guest runs meanwhile. */
static void test_late(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    VerbsWaiting w = late_add(v, 5);

    for (int i = 0; i < 10; i++) {
        verbs_check_works(&p, i + 1);
    }
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    assert_ok(verbs_release_cmd(&w));
    assert_ok(try_path(&p, 5));
}

static void test_late_and_reset(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);

    late_add(v, 5);
    qrdma_reset(v->dev);
    fake_verbs_tell(v->fake, "release");
    verbs_restart(v);
    assert_status(qrdma_del_gid(v->dev, 5, 1), NOENT);
}

/* An event that comes while the backend reads the table is not lost. */
static void test_changes_while_the_table_is_read(void)
{
    g_autoptr(Verbs) v = verbs_quiet();
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    VerbsWaiting w = late_add(v, 5);

    fake_verbs_tell(v->fake, "event GID_CHANGE");
    fake_verbs_tell(v->fake, "event GID_CHANGE");
    fake_verbs_tell(v->fake, "gid 1 none");
    fake_verbs_tell(v->fake, "gid 8 10.0.0.1");
    fake_verbs_tell(v->fake, "event GID_CHANGE");
    assert_ok(verbs_release_cmd(&w));
    tell_change(v);
    assert_ok(try_path(&p, 1));
    assert_ok(try_path(&p, 5));
}

static void test_add_needs_allowed_gids(void)
{
    g_autoptr(Verbs) v = verbs_host(NULL);

    verbs_refused(v, "'ibdev': '" FAKE_IBVERBS_DEVICE "', 'gid-mode': 'add'",
                  "any address");
}

const QRdmaTest verbs_gid_tests[] = {
    { "refused-with-an-event", test_refused },
    { "other-types", test_other_types },
    { "multicast", test_multicast },
    { "events", test_events },
    { "events-are-limited", test_events_are_limited },
    { "entry-moves", test_entry_moves },
    { "entry-of-datagrams-moves", test_entry_of_datagrams_moves },
    { "entry-vanishes-and-comes-back", test_entry_vanishes_and_comes_back },
    { "refused-comes-later", test_refused_comes_later },
    { "late", test_late },
    { "late-and-reset", test_late_and_reset },
    { "changes-while-the-table-is-read", test_changes_while_the_table_is_read },
    { "add-needs-allowed-gids", test_add_needs_allowed_gids },
    {}
};
