/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration with live queue pairs.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "migrate-test.h"

static void stay(Trip *t, unsigned round)
{

}

static void leave_by_many_channels(Trip *t, unsigned round)
{
    trip_move(t, round / 2 % 2, "multifd");
}

typedef struct Journey {
    const char *lossy;
    unsigned rounds;
    void (*leave)(Trip *t, unsigned round);
} Journey;

static void test_journey(const void *data)
{
    const Journey *j = data;

    trip_travel(j->lossy, j->rounds, j->leave);
}

static void test_live_with_loss(void)
{
    unsigned rounds = trip_number("MIGRATE_LOSSY", 4);

    trip_travel("drop=300,dup=200,reorder=300", rounds, trip_leave_in_turns);
}

static void set_parameter(QTestState *qts, const char *name, int64_t value)
{
    g_autofree char *command = g_strdup_printf(
        "{'execute': 'migrate-set-parameters', 'arguments': "
        "{'%s': %" PRId64 "}}", name, value);

    qtest_qmp_assert_success(qts, command, NULL);
}

/*
 * Postcopy: the destination works before its memory is there, and requests the
 * pages that the device touches.
 */
static void test_postcopy(void)
{
    for (unsigned side = 0; side < 2; side++) {
        g_autoptr(Trip) t = trip_connected("drop=300");
        g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
        g_autofree char *uri = g_strdup_printf("unix:%s", path);
        QTestState *from = t->net.host[side]->qts;
        QTestState *to;

        trip_receive_both(t, 0);
        trip_post_both(t, 0);

        to = trip_start_destination(t, side, MIGRATE_DEVICE, "");
        trip_set_capability(from, "postcopy-ram");
        trip_set_capability(to, "postcopy-ram");
        set_parameter(from, "max-bandwidth", 100000);
        set_parameter(from, "max-postcopy-bandwidth", 20000);
        trip_migrate_from(to, uri);
        trip_migrate_to(t, side, uri);
        trip_wait_status(from, "active");
        qtest_qmp_assert_success(from,
                                 "{'execute': 'migrate-start-postcopy'}");
        trip_wait_status(from, "postcopy-active");
        g_assert_true(trip_go_on(t, side, to) == from);

        trip_check_both(t, 0);
        trip_wait_status(from, "postcopy-active");
        set_parameter(from, "max-postcopy-bandwidth", 0);
        g_assert_true(qrdma_migration_done(from));
        qtest_quit(from);
        trip_check_silence(t);
        g_unlink(path);
    }
}

/*
 * Pages that the device writes after RAM was sent for the first time are sent
 * again, whatever path it writes by.
 */
static void test_written_during_precopy(void)
{
    for (int side = 0; side < 2; side++) {
        g_autoptr(Trip) t = trip_connected(NULL);

        trip_write_during_precopy(t, side);
    }
}

/* The source goes on: after a cancel, and when the destination has died */

void trip_cancel(Trip *t, unsigned round)
{
    int side = round / 2 % 2;
    g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
    g_autofree char *uri = g_strdup_printf("unix:%s", path);
    QTestState *from = t->net.host[side]->qts;
    QTestState *to = trip_start_destination(t, side, t->device[side], "");

    qtest_set_expected_status(to, 1);
    trip_slow_start(t, side, to, uri);
    qtest_qmp_assert_success(from, "{'execute': 'migrate_cancel'}");
    trip_wait_status(from, "cancelled");
    qtest_wait_qemu(to);
    qtest_quit(to);
    trip_forget_destination(t, side);
    g_unlink(path);
}

/* A device plugged into the source is on the destination's command line. */
static void test_hot_plugged(void)
{
    g_autoptr(Trip) t = trip_new(NULL);

    trip_hot_plug(t, 0);
    trip_connect(t);
    trip_post_both(t, 0);
    trip_move(t, 0, NULL);
    trip_receive_both(t, 0);
    trip_check_both(t, 0);
    trip_check_silence(t);
}

/* Armed CQs and a registration on its way go along */

static void check_armed(bool rfc)
{
    QRdmaPath path = { .timeout = MIGRATE_TIMEOUT_CODE };
    g_autoptr(Trip) t = trip_new(NULL);
    RdmaWc wc;

    t->p = rfc ? net_pair_rfc(&t->net, RDMA_QPT_RC, 0)
               : net_pair_new(&t->net, RDMA_QPT_RC);
    qrdma_connect(t->p.a.qp, t->p.b.qp, &path);
    for (int i = 0; i < 3; i++) {
        RdmaSge sge = net_sge(&t->p.a, 0, 10);

        net_post_recv(&t->p.b, i, 0, 10);
        qrdma_ring_irq(t->p.b.rcq->ring);
        if (i != 2) {
            assert_ok(qrdma_req_notify_cq(t->p.b.rcq,
                                          VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION));
        } else if (!rfc) {
            assert_ok(qrdma_req_notify_cq(t->p.b.rcq,
                                          VIRTIO_RDMA_NOTIFY_SOLICITED));
        }
        trip_move(t, 1, NULL);
        g_assert_false(qrdma_ring_irq(t->p.b.rcq->ring));
        qrdma_post(t->p.a.qp, qrdma_wr(RDMA_WR_SEND, i, &sge));
        trip_wait_wc(t, t->p.b.rcq, i, &wc);
        g_assert_cmpint(qrdma_ring_irq(t->p.b.rcq->ring), ==, i != 2);
        trip_wait_wc(t, t->p.a.scq, i, &wc);
    }
}

/* CQs that may interrupt; for a driver of the RFC, whether the next CQE does */
static void test_armed(void)
{
    check_armed(false);
    check_armed(true);
}

static void try_write(Trip *t, QRdmaMr *mr, uint8_t pattern)
{
    RdmaSge sge = net_sge(&t->p.a, 0, 3000);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_RDMA_WRITE, pattern, &sge);
    RdmaWc wc;

    wr.wr.rdma.remote_addr = mr->iova;
    wr.wr.rdma.rkey = mr->rkey;
    qrdma_mr_fill(t->p.a.mr, 0, 3000, pattern);
    qrdma_post_send(t->p.a.qp, &wr);
    trip_wait_wc(t, t->p.a.scq, pattern, &wc);
    qrdma_mr_check(mr, 0, 3000, pattern);
}

static void test_fast_registration(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);
    RdmaSendWr wr;
    RdmaWc wc;
    QRdmaMr *mr = qrdma_alloc_mr(t->p.b.pd, NET_ACCESS_ALL, 16);

    trip_move(t, 1, NULL);
    for (int i = 0; i < 2; i++) {
        uint32_t key = (mr->lkey & ~0xffu) | ((mr->lkey + 1) & 0xff);

        assert_ok(qrdma_map_mr_sg(mr, 0x7000100 + i * 0x10000, 3000));
        trip_move(t, 1, NULL);
        wr = qrdma_wr(RDMA_WR_REG_MR, 1, NULL);
        wr.wr.reg.mrn = mr->mrn;
        wr.wr.reg.key = key;
        wr.wr.reg.access = NET_ACCESS_ALL;
        qrdma_post_send(t->p.b.qp, &wr);
        trip_move(t, 1, NULL);
        trip_wait_wc(t, t->p.b.scq, 1, &wc);
        mr->lkey = key;
        mr->rkey = key;
        try_write(t, mr, 2 * i + 1);
        trip_move(t, 1, NULL);
        try_write(t, mr, 2 * i + 2);
        qrdma_post(t->p.b.qp, qrdma_invalidate_wr(2, key));
        trip_wait_wc(t, t->p.b.scq, 2, &wc);
        trip_move(t, 1, NULL);
    }
}

/*
 * Unreliable messages may be lost during a migration, and are whole otherwise
 */

#define DATAGRAMS 8

static void send_numbers(Trip *t, uint32_t from, uint32_t to)
{
    RdmaWc wc;

    for (uint32_t i = from; i < to; i++) {
        RdmaSge sge = net_sge(&t->p.a, i * 1000, 1000);
        RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND_WITH_IMM, i, &sge);

        if (t->p.a.qp->type == RDMA_QPT_UD) {
            wr.wr.ud = qrdma_ud_wr(i, &sge, t->p.b.qp, 0).wr.ud;
        }
        memcpy(wr.ex.imm_data, &i, sizeof(i));
        qrdma_mr_fill(t->p.a.mr, i * 1000, 1000, i);
        qrdma_post_send(t->p.a.qp, &wr);
        trip_wait_wc(t, t->p.a.scq, i, &wc);
    }
}

static void check_unreliable(RdmaQpType type, int side)
{
    uint32_t head = type == RDMA_QPT_UD ? 40 : 0, next = 0, number;
    g_autoptr(Trip) t = trip_new(NULL);
    RdmaWc wc;

    t->p = net_pair_new(&t->net, type);
    qrdma_bring_up(t->p.a.qp, t->p.b.qp, NULL);
    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        net_post_recv(&t->p.b, i, i * 2048, 2048);
    }
    send_numbers(t, 0, DATAGRAMS / 2);
    trip_move(t, side, NULL);
    send_numbers(t, DATAGRAMS / 2, DATAGRAMS);
    for (uint32_t i = 0; next < DATAGRAMS; i++) {
        trip_wait_wc(t, t->p.b.rcq, i, &wc);
        g_assert_cmpuint(wc.byte_len, ==, 1000 + head);
        memcpy(&number, wc.ex.imm_data, sizeof(number));
        /* Only messages on their way while no side ran can be missing. */
        g_assert_cmpuint(number, >=, next);
        g_assert_cmpuint(number, <=, MAX(next, DATAGRAMS / 2));
        qrdma_mr_check(t->p.b.mr, i * 2048 + head, 1000, number);
        next = number + 1;
    }
    trip_check_silence(t);
}

static void test_unreliable(const void *data)
{
    check_unreliable(GPOINTER_TO_INT(data), 0);
    check_unreliable(GPOINTER_TO_INT(data), 1);
}

/* Refusals: the source has not even stopped */

static void refuse(Trip *t, unsigned round, const char *device,
                   const char *text)
{
    g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
    g_autofree char *uri = g_strdup_printf("unix:%s", path);
    QTestState *from = t->net.host[0]->qts;
    QTestState *to;

    trip_post_all(&t->p.a, &t->p.b, round);
    to = trip_start_refusing(t, 0, device, "");
    trip_migrate_from(to, uri);
    trip_migrate_to(t, 0, uri);
    g_assert_false(qrdma_migration_done(from));
    g_assert_null(qtest_qmp_event_ref(from, "STOP"));
    trip_expect_refusal(t, to, text);
    trip_receive_both(t, round);
    trip_post_all(&t->p.b, &t->p.a, round);
    trip_check_both(t, round);
    trip_check_silence(t);
    g_unlink(path);
}

/* A destination that does not allow an address of the guest names it. */
static void test_refuse_a_gid(void)
{
    g_autoptr(Trip) t = trip_connected(NULL);

    trip_refuse_device(t, 0, MIGRATE_DEVICE ",allowed-gids=fe80::/10", "",
                       "GID 1 in the migration stream is not in allowed-gids");
}

/* An iothread serves no virtqueues. */
static void test_refuse_virtqueues(void)
{
    g_autoptr(Trip) t = trip_new(NULL);

    t->net.dev[0]->direct = false;
    trip_connect(t);
    trip_refuse_device(t, 0, MIGRATE_DEVICE ",iothread=io",
                       "-object iothread,id=io",
                       "leave iothread out at the destination");
}

static void test_refuse(void)
{
    static const char *const cases[][2] = {
        { "max-pd=4", "max-pd=8" },
        { "max-mr=16", "max-mr=32" },
        { "max-rd-atomic=8", "max-rd-atomic=16" },
        { "gid-table-len=64", "gid-table-len=128" },
        { "max-sge=16", "max-sge=32" },
        { "max-inline=256", "max-inline=512" },
        { "max-cqe=1000", "max-cqe=32768" },
        { "max-qp-wr=1024", "max-qp-wr=32768" },
        { "max-qp=9", "max-qp=8" },
        { "max-cq=8", "max-cq=7" },
        { "max-srq=65", "max-srq=64" },
        { "max-srq=63", "max-srq=64" },
        { "max-srq=0", "max-srq=64" },
        { "max-srq-wr=1024", "max-srq-wr=16384" },
        { "max-mw=100", "max-mw=16384" },
        { "max-mw=0", "max-mw=16384" },
        { "max-mcast-grp=1", "max-mcast-grp=128" },
        { "max-mcast-grp=0", "max-mcast-grp=128" },
        { "layout=demo", "layout=spec, but this device has layout=demo" },
        { "version-1=off", "version-1=on, but this device has version-1=off" },
        { "direct=off", "direct=on, but this device has direct=off" },
    };
    g_autoptr(Trip) t = trip_connected(NULL);

    set_parameter(t->net.host[0]->qts, "max-bandwidth", 100000);
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *device = g_strdup_printf("%s,%s", MIGRATE_DEVICE,
                                                  cases[i][0]);

        refuse(t, i, device, cases[i][1]);
    }
}

/*
 * The guest has seen all offered features, even those its driver did not take.
 */
static void test_refuse_features(void)
{
    g_autoptr(Trip) t = trip_new(NULL);

    t->net.dev[0]->direct = false;
    trip_connect(t);
    set_parameter(t->net.host[0]->qts, "max-bandwidth", 100000);
    refuse(t, 0, MIGRATE_DEVICE ",direct=off",
           "direct=on, but this device has direct=off");
    refuse(t, 1, MIGRATE_DEVICE ",version-1=off",
           "version-1=on, but this device has version-1=off");
}

static void test_refuse_direct_queues_of_the_destination(void)
{
    g_autoptr(Trip) t = trip_new_with(NULL, MIGRATE_DEVICE ",direct=off");

    trip_connect(t);
    refuse(t, 0, MIGRATE_DEVICE, "direct=off, but this device has direct=on");
}

/* A device with the layout of the demo, on side 0 */
static Trip *new_demo(const char *lossy)
{
    Trip *t = trip_new_with(lossy, MIGRATE_DEVICE ",layout=demo");

    qrdma_use_demo(t->net.dev[0]);
    trip_connect(t);
    return t;
}

static void test_demo(void)
{
    g_autoptr(Trip) t = new_demo("drop=300");

    trip_travel_on(t, 0, 6, trip_leave_in_turns);
}

/* Queues are rewound after a migration, too. */
static void test_demo_rewinds(void)
{
    g_autoptr(Trip) t = new_demo(NULL);
    NetEnd *a = &t->p.a;
    QRdmaRing *sq = a->qp->sq.ring;
    QRdmaRing *cq = a->scq->ring;

    trip_travel_on(t, 0, 2, trip_leave_in_turns);
    trip_move(t, 0, NULL);
    assert_ok(qrdma_destroy_qp(a->qp));
    assert_ok(qrdma_destroy_cq(a->scq));
    assert_ok(qrdma_destroy_cq(a->rcq));
    /* A driver that starts the rings again only when it uses them */
    qrdma_ring_set_avail_idx(sq, 5000);
    qrdma_ring_set_avail_idx(cq, 5000);
    trip_move(t, 0, NULL);
    qrdma_ring_set_avail_idx(sq, 0);
    qrdma_ring_set_avail_idx(cq, 0);
    a->scq = qrdma_create_cq(a->dev, 64);
    a->rcq = qrdma_create_cq(a->dev, 64);
    a->qp = qrdma_create_qp(a->pd, a->scq, a->rcq, RDMA_QPT_RC);
    assert_ok(qrdma_modify_qp_state(t->p.b.qp, RDMA_QPS_RESET));
    qrdma_connect(a->qp, t->p.b.qp, NULL);
    trip_travel_on(t, 2, 4, trip_leave_in_turns);
}

static void test_refuse_layout(void)
{
    g_autoptr(Trip) t = new_demo(NULL);

    refuse(t, 0, MIGRATE_DEVICE,
           "layout=demo, but this device has layout=spec");
    refuse(t, 1, MIGRATE_DEVICE ",version-1=off",
           "layout=demo, but this device has layout=spec");
}

const QRdmaTest migrate_tests[] = {
    { "stay", .run_case = test_journey,
      .data = &(const Journey) { "drop=300", 3, stay } },
    { "live", .run_case = test_journey,
      .data = &(const Journey) { NULL, 4, trip_leave_in_turns } },
    { "live-with-loss", test_live_with_loss },
    { "both", .run_case = test_journey,
      .data = &(const Journey) { "drop=300", 4, trip_leave_together } },
    { "file", .run_case = test_journey,
      .data = &(const Journey) { "drop=300", 4, trip_leave_by_file } },
    { "multifd", .run_case = test_journey,
      .data = &(const Journey) { "drop=300", 4, leave_by_many_channels } },
    { "postcopy", test_postcopy },
    { "written-during-precopy", test_written_during_precopy },
    { "cancel", .run_case = test_journey,
      .data = &(const Journey) { "drop=300", 4, trip_cancel } },
    { "fail-back", .run_case = test_journey,
      .data = &(const Journey) { "drop=300", 4, trip_leave_in_vain } },
    { "hot-plugged", test_hot_plugged },
    { "armed", test_armed },
    { "fast-registration", test_fast_registration },
    { "unreliable-connection", .run_case = test_unreliable,
      .data = GINT_TO_POINTER(RDMA_QPT_UC) },
    { "datagrams", .run_case = test_unreliable,
      .data = GINT_TO_POINTER(RDMA_QPT_UD) },
    { "demo", test_demo },
    { "demo-rewinds", test_demo_rewinds },
    { "refuse-layout", test_refuse_layout },
    { "refuse", test_refuse },
    { "refuse-a-gid", test_refuse_a_gid },
    { "refuse-virtqueues", test_refuse_virtqueues },
    { "refuse-direct-queues", test_refuse_direct_queues_of_the_destination },
    { "refuse-features", test_refuse_features },
    {}
};
