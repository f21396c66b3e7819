/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of devices that vhost-user servers have. Each destination has a
 * server of its own.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "migrate-test.h"

/* Words of the state: what it begins with, "\x16vir", and what it ends with */
#define STATE_BEGIN 0x56555331
#define STATE_NAME 0x16766972
#define STATE_END 0x454e4431

typedef struct Journey {
    const char *lossy;
    void (*leave)(Trip *t, unsigned round);
} Journey;

static void test_journey(const void *data)
{
    const Journey *j = data;
    g_autoptr(Trip) t = trip_new_served(j->lossy);

    trip_connect(t);
    trip_travel_on(t, 0, g_test_slow() ? 4 : 2, j->leave);
}

static void test_written_during_precopy(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);

    trip_connect(t);
    trip_write_during_precopy(t, 0);
}

static void test_refuse(void)
{
    static const char *const cases[][2] = {
        { "max-pd=4", "max-pd=8" },
        { "max-qp-wr=1024", "max-qp-wr=32768" },
        { "max-mr=16", "max-mr=32" },
        /* The front end refuses. */
        { "version-1=off", "unsupported. Allowed features" },
    };
    g_autoptr(Trip) t = trip_new_served(NULL);

    trip_connect(t);
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *device = g_strdup_printf("%s,%s", MIGRATE_SERVED,
                                                  cases[i][0]);

        trip_refuse_device(t, 0, device, "", cases[i][1]);
        qtest_qmp_assert_success(t->net.host[0]->qts, "{'execute': 'cont'}");
    }
    trip_travel_on(t, 0, 2, trip_leave_in_turns);
}

static void test_spoilt(void)
{
    static const TripSpoilt cases[] = {
        { "the magic number", { STATE_BEGIN, STATE_NAME }, 2, 0, 1,
          "not that of virtio-rdma-vhost-user, version 1" },
        { "the name", { STATE_BEGIN, STATE_NAME }, 2, 1, STATE_NAME + 1,
          "not that of virtio-rdma-vhost-user, version 1" },
        { "the end", { STATE_END }, 1, 0, 1, "damaged, cut short" },
    };
    g_autoptr(Trip) t = trip_new_served(NULL);

    trip_connect(t);
    trip_refuse_spoilt(t, 0, cases, ARRAY_SIZE(cases));
}

/* The state is gone. */
static void test_refuse_without_server(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    g_autofree char *path = g_strdup_printf("%s/state", t->net.dir);
    g_autofree char *uri = g_strdup_printf("file:%s", path);

    trip_connect(t);
    g_clear_pointer(&t->server[0], qtest_quit);
    trip_migrate_to(t, 0, uri);
    g_assert_false(qrdma_migration_done(t->net.host[0]->qts));
    g_unlink(path);
}

/* The server would have to wait for pages. */
static void test_refuse_postcopy(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    QTestState *to = trip_start_destination(t, 0, MIGRATE_SERVED, "");

    qrdma_qmp_refused(to, "{'execute': 'migrate-set-capabilities', "
                      "'arguments': {'capabilities': [{'capability': "
                      "'postcopy-ram', 'state': true}]}}",
                      "not capable of postcopy");
    qtest_quit(to);
    trip_forget_destination(t, 0);
}

/* Faults do not migrate. */
static void test_refuse_faults(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    g_autofree char *path = g_strdup_printf("%s/state", t->net.dir);
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    QTestState *from = t->net.host[0]->qts;

    trip_connect(t);
    qtest_qmp_assert_success(t->server[0], "{'execute': 'rdma-fault-add', "
                             "'arguments': {'device': 'd0', 'id': 'f0', "
                             "'kind': 'qp-fatal', 'qpn': 7}}");
    trip_migrate_to(t, 0, uri);
    g_assert_false(qrdma_migration_done(from));
    qtest_qmp_assert_success(from, "{'execute': 'cont'}");
    qtest_qmp_assert_success(t->server[0], "{'execute': 'rdma-fault-remove', "
                             "'arguments': {'device': 'd0', 'id': 'f0'}}");
    trip_travel_on(t, 0, 2, trip_leave_in_turns);
    g_unlink(path);
}

/*
 * While the VM of a front end is paused, its server runs. The driver gets the
 * event afterwards.
 */
static void test_event_of_a_pause(void)
{
    g_autoptr(Trip) t = trip_new_served(NULL);
    QTestState *qts = t->net.host[0]->qts;

    trip_connect(t);
    qrdma_add_event_buffers(t->p.a.dev, 4);
    qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
    qtest_qmp_assert_success(t->server[0], "{'execute': 'rdma-fault-add', "
                             "'arguments': {'device': 'd0', 'id': 'f0', "
                             "'kind': 'port-down'}}");
    qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
    qrdma_expect_event(t->p.a.dev, RDMA_EVENT_PORT_ERR, 1);
}

const QRdmaTest migrate_served_tests[] = {
    { "served/event-of-a-pause", test_event_of_a_pause },
    { "served/live", .run_case = test_journey,
      .data = &(const Journey) { NULL, trip_leave_in_turns } },
    { "served/live-with-loss", .run_case = test_journey,
      .data = &(const Journey) { "drop=300,dup=200", trip_leave_in_turns } },
    { "served/both", .run_case = test_journey,
      .data = &(const Journey) { "drop=300", trip_leave_together } },
    { "served/file", .run_case = test_journey,
      .data = &(const Journey) { NULL, trip_leave_by_file } },
    { "served/stay", .run_case = test_journey,
      .data = &(const Journey) { NULL, trip_leave_in_vain } },
    { "served/cancel", .run_case = test_journey,
      .data = &(const Journey) { NULL, trip_cancel } },
    { "served/written-during-precopy", test_written_during_precopy },
    { "served/refuse", test_refuse },
    { "served/refuse-postcopy", test_refuse_postcopy },
    { "served/refuse-faults", test_refuse_faults },
    { "served/refuse-without-server", test_refuse_without_server },
    { "served/spoilt", test_spoilt },
    {}
};
