/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Devices that migrate from process to process, and traffic between them.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "migrate-test.h"

/* Turns of main loops in which a frame reaches the other side, and an answer */
#define TURNS 20

/* Regions of each side's memory; a region has one use. */
#define LEN 16000
#define SRC 0
#define RECV 16384
#define TARGET 32768
#define READ_TO 49152
#define READ_FROM 65536
#define OLD 81920
#define COUNTER 90112

unsigned trip_number(const char *variable, unsigned otherwise)
{
    const char *asked = g_getenv(variable);

    return asked ? atoi(asked) : otherwise;
}

/*
 * Wait until both ends of a link are connected. Until then it is down for a
 * device.
 */
static void wait_connected(Trip *t, QTestState *end)
{
    qtest_qmp_eventwait(t->hub, "NETDEV_STREAM_CONNECTED");
    for (int i = 0; ; i++) {
        g_autofree char *text = qtest_hmp(end, "info network");

        g_assert_cmpint(i, <, 60000);
        if (!strstr(text, "type=stream,connecting")) {
            return;
        }
        g_usleep(1000);
    }
}

static char *netdev_args(Trip *t, int side)
{
    /* Source and destination take turns; the hub may not listen yet */
    return g_strdup_printf(
        "-netdev stream,id=n0,server=off,addr.type=unix,addr.path=%s/port%u,"
        "reconnect-ms=50", t->net.dir, 2 * side + t->moves[side] % 2);
}

static bool is_served(const char *device)
{
    return g_str_has_prefix(device, "virtio-rdma-vhost-user");
}

/* Start a server. Return the arguments of its front end. */
static char *served_args(Trip *t, int side, const char *device)
{
    g_autofree char *netdev = netdev_args(t, side);
    g_autofree char *path = g_strdup_printf("%s/served%u", t->net.dir,
                                            2 * side + t->moves[side] % 2);

    t->other_server[side] = qtest_initf(
        "-machine none -nodefaults %s "
        "-object rdma-roce,id=roce0,netdev=n0,mac=52:54:00:12:34:%02d "
        "-device %s,id=d0,path=%s,rdmadev=roce0,ring-reset=on %s", netdev,
        side + 1, device, path, t->server_more ?: "");
    return g_strdup_printf(
        "-object memory-backend-memfd,id=ram,size=64M,share=on "
        "-machine memory-backend=ram -chardev socket,id=c0,path=%s "
        "-device vhost-user-rdma-pci,id=d0,chardev=c0,addr=4,num_vqs=%d",
        path, MIGRATE_SERVED_QUEUES);
}

static char *host_args(Trip *t, int side, const char *device)
{
    g_autofree char *netdev = NULL;

    if (is_served(device)) {
        return served_args(t, side, device);
    }
    netdev = netdev_args(t, side);
    /* A fixed seed, because tests search the stream for these numbers */
    return g_strdup_printf("%s -seed 1 -device %s,id=d0,netdev=n0,addr=4,"
                           "mac=52:54:00:12:34:%02d", netdev, device,
                           side + 1);
}

void trip_hot_plug(Trip *t, int side)
{
    g_autofree char *args = netdev_args(t, side);
    g_autofree char *mac = g_strdup_printf("52:54:00:12:34:%02d", side + 1);

    qrdma_host_stop(t->net.host[side]);
    t->net.host[side] = qrdma_host_start("-seed 1 %s", args);
    qtest_qmp_assert_success(t->net.host[side]->qts,
        "{'execute': 'device_add', 'arguments': {"
        "'driver': 'virtio-rdma-pci', 'id': 'plugged', 'netdev': 'n0', "
        "'addr': '4', 'max-qp': 8, 'max-cq': 7, 'max-mr': 32, 'max-pd': 8, "
        "'mac': %s}}", mac);
    t->net.dev[side] = qrdma_open(t->net.host[side], QPCI_DEVFN(4, 0));
    t->net.dev[side]->direct = side == 0;
    wait_connected(t, t->net.host[side]->qts);
}

static void check_no_blocker(QTestState *qts)
{
    g_autoptr(QDict) rsp = qtest_qmp_assert_success_ref(
        qts, "{'execute': 'query-migrate'}");

    g_assert_false(qdict_haskey(rsp, "blocked-reasons"));
}

static Trip *new_trip(const char *lossy, const char *device,
                      const char *other)
{
    g_autoptr(GString) ports = g_string_new(NULL);
    Trip *t = g_new0(Trip, 1);

    t->net.kind = NET_STREAM;
    t->net.dir = g_dir_make_tmp("rdma-migrate-XXXXXX", NULL);
    g_assert_nonnull(t->net.dir);
    for (int i = 0; i < 4; i++) {
        g_string_append_printf(ports,
            "-netdev stream,id=s%d,server=on,addr.type=unix,"
            "addr.path=%s/port%d "
            "-netdev hubport,id=h%d,hubid=0,netdev=s%d ",
            i, t->net.dir, i, i, i);
        if (lossy) {
            g_string_append_printf(ports,
                "-object filter-impair,id=l%d,netdev=h%d,seed=%d,%s ",
                i, i, i + 1, lossy);
        }
    }
    t->hub = qtest_initf("-machine none -nodefaults %s", ports->str);
    for (int i = 0; i < 2; i++) {
        g_autofree char *args = NULL;

        t->device[i] = i == 0 ? device : other;
        args = host_args(t, i, t->device[i]);
        t->net.host[i] = qrdma_host_start("%s", args);
        t->net.dev[i] = qrdma_open(t->net.host[i], QPCI_DEVFN(4, 0));
        t->server[i] = g_steal_pointer(&t->other_server[i]);
        wait_connected(t, t->server[i] ?: t->net.host[i]->qts);
        check_no_blocker(t->net.host[i]->qts);
    }
    /* One side has direct queues, the other one virtqueues. */
    t->net.dev[0]->direct = !t->server[0];
    return t;
}

Trip *trip_new(const char *lossy)
{
    return trip_new_with(lossy, MIGRATE_DEVICE);
}

Trip *trip_new_with(const char *lossy, const char *device)
{
    return new_trip(lossy, device, MIGRATE_DEVICE);
}

Trip *trip_new_served(const char *lossy)
{
    return new_trip(lossy, MIGRATE_SERVED, MIGRATE_SERVED);
}

void trip_free(Trip *t)
{
    for (int i = 0; i < 2; i++) {
        qrdma_host_stop(t->net.host[i]);
        g_clear_pointer(&t->server[i], qtest_quit);
    }
    qtest_quit(t->hub);
    for (int i = 0; i < 4; i++) {
        g_autofree char *path = g_strdup_printf("%s/port%d", t->net.dir, i);

        g_unlink(path);
    }
    g_rmdir(t->net.dir);
    g_free(t->net.dir);
    g_free(t);
}

void trip_wait_status(QTestState *qts, const char *wanted)
{
    for (int i = 0; ; i++) {
        g_autofree char *status = qrdma_migration_status(qts);

        g_assert_cmpint(i, <, 60000);
        if (g_str_equal(status, wanted)) {
            return;
        }
        g_assert_cmpstr(status, !=, "completed");
        g_assert_cmpstr(status, !=, "failed");
        g_usleep(1000);
    }
}

void trip_set_capability(QTestState *qts, const char *name)
{
    if (name) {
        qtest_qmp_assert_success(qts,
            "{'execute': 'migrate-set-capabilities', 'arguments': "
            "{'capabilities': [{'capability': %s, 'state': true}]}}", name);
    }
}

void trip_wait_loaded(QTestState *qts)
{
    for (int i = 0; ; i++) {
        g_autoptr(QDict) rsp = NULL;

        g_assert_cmpint(i, <, 60000);
        rsp = qtest_qmp_assert_success_ref(qts, "{'execute': 'query-status'}");
        if (!g_str_equal(qdict_get_str(rsp, "status"), "inmigrate")) {
            return;
        }
        g_usleep(1000);
    }
}

void trip_migrate_to(Trip *t, int side, const char *uri)
{
    QTestState *from = t->net.host[side]->qts;

    /* The smallest step returns the time */
    t->now[side] = qtest_clock_step(from, 1);
    qtest_qmp_assert_success(from, "{'execute': 'migrate', "
                             "'arguments': {'uri': %s}}", uri);
}

void trip_migrate_from(QTestState *to, const char *uri)
{
    qtest_qmp_assert_success(to, "{'execute': 'migrate-incoming', "
                             "'arguments': {'uri': %s}}", uri);
}

QTestState *trip_start_destination(Trip *t, int side, const char *device,
                                   const char *more)
{
    g_autofree char *args = NULL;
    QTestState *qts;

    t->moves[side]++;
    args = host_args(t, side, device);
    qts = qtest_initf("-machine pc -nodefaults -m 64 %s -S -incoming defer "
                      "%s", args, more);
    wait_connected(t, t->other_server[side] ?: qts);
    return qts;
}

QTestState *trip_go_on(Trip *t, int side, QTestState *to)
{
    QRdmaHost *host = t->net.host[side];
    QTestState *from = host->qts;
    QTestState *server = t->server[side];

    if (server) {
        qtest_clock_set(t->other_server[side], qtest_clock_step(server, 1));
    }
    t->server[side] = t->other_server[side];
    t->other_server[side] = server;
    trip_wait_loaded(to);
    qtest_clock_set(to, t->now[side]);
    host->qts = to;
    host->bus->qts = to;
    qtest_qmp_assert_success(to, "{'execute': 'cont'}");
    return from;
}

void trip_take_over(Trip *t, int side, QTestState *to)
{
    qtest_quit(trip_go_on(t, side, to));
    g_clear_pointer(&t->other_server[side], qtest_quit);
}

void trip_move(Trip *t, int side, const char *capability)
{
    g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
    g_autofree char *uri = g_strdup_printf("unix:%s", path);
    QTestState *to = trip_start_destination(t, side, t->device[side], "");

    trip_set_capability(t->net.host[side]->qts, capability);
    trip_set_capability(to, capability);
    trip_migrate_from(to, uri);
    trip_migrate_to(t, side, uri);
    g_assert_true(qrdma_migration_done(t->net.host[side]->qts));
    trip_take_over(t, side, to);
    g_unlink(path);
}

void trip_move_both(Trip *t)
{
    QTestState *to[2];
    char *path[2];

    for (int i = 0; i < 2; i++) {
        g_autofree char *uri = NULL;

        path[i] = g_strdup_printf("%s/migrate%d", t->net.dir, i);
        uri = g_strdup_printf("unix:%s", path[i]);
        to[i] = trip_start_destination(t, i, t->device[i], "");
        trip_migrate_from(to[i], uri);
        trip_migrate_to(t, i, uri);
    }
    for (int i = 0; i < 2; i++) {
        g_assert_true(qrdma_migration_done(t->net.host[i]->qts));
    }
    for (int i = 0; i < 2; i++) {
        trip_take_over(t, i, to[i]);
        g_unlink(path[i]);
        g_free(path[i]);
    }
}

char *trip_save(Trip *t, int side)
{
    char *path = g_strdup_printf("%s/state", t->net.dir);
    g_autofree char *uri = g_strdup_printf("file:%s", path);

    trip_migrate_to(t, side, uri);
    g_assert_true(qrdma_migration_done(t->net.host[side]->qts));
    return path;
}

void trip_move_by_file(Trip *t, int side)
{
    trip_move_spoilt(t, side, NULL, 0);
}

static void spoil(const char *path, const TripSpoilt *c)
{
    g_autofree char *data = NULL;
    uint32_t find[4];
    uint32_t by = cpu_to_be32(c->by);
    size_t size, bytes = c->words * sizeof(find[0]);
    unsigned found = 0;

    for (unsigned i = 0; i < c->words; i++) {
        find[i] = cpu_to_be32(c->find[i]);
    }
    g_assert_true(g_file_get_contents(path, &data, &size, NULL));
    for (size_t at = 0; at + bytes <= size; at++) {
        if (!memcmp(data + at, find, bytes) && found++ == 0) {
            memcpy(data + at + c->word * sizeof(by), &by, sizeof(by));
        }
    }
    g_assert_cmpuint(found, ==, 1 + c->copies);
    g_assert_true(g_file_set_contents(path, data, size, NULL));
}

static char *log_path(Trip *t)
{
    return g_strdup_printf("%s/log", t->net.dir);
}

QTestState *trip_start_refusing(Trip *t, int side, const char *device,
                                const char *more)
{
    g_autofree char *log = log_path(t);
    g_autofree char *server_more = g_strdup_printf("2>> %s", log);
    g_autofree char *args = g_strdup_printf("%s %s", more, server_more);
    QTestState *to;

    t->server_more = server_more;
    to = trip_start_destination(t, side, device, args);
    t->server_more = NULL;
    t->moves[side]--;
    qtest_set_expected_status(to, 1);
    return to;
}

static void quit_other_servers(Trip *t)
{
    for (int side = 0; side < 2; side++) {
        g_clear_pointer(&t->other_server[side], qtest_quit);
    }
}

void trip_forget_destination(Trip *t, int side)
{
    t->moves[side]--;
    quit_other_servers(t);
}

void trip_expect_refusal(Trip *t, QTestState *to, const char *text)
{
    g_autofree char *log = log_path(t);
    g_autofree char *said = NULL;

    qtest_wait_qemu(to);
    qtest_quit(to);
    quit_other_servers(t);
    g_assert_true(g_file_get_contents(log, &said, NULL, NULL));
    if (!strstr(said, text)) {
        g_test_message("%s", said);
        g_assert_not_reached();
    }
    g_unlink(log);
}

/* A destination with that device refuses the stream in the file @path. */
static void expect_text(Trip *t, int side, const char *path, const char *device,
                        const char *more, const char *text)
{
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    QTestState *to = trip_start_refusing(t, side, device, more);

    trip_migrate_from(to, uri);
    trip_expect_refusal(t, to, text);
}

void trip_refuse_device(Trip *t, int side, const char *device,
                        const char *more, const char *text)
{
    g_autofree char *path = trip_save(t, side);

    expect_text(t, side, path, device, more, text);
    g_unlink(path);
}

TripSpoilt trip_without_feature(QRdma *d, unsigned feature, const char *text)
{
    const uint32_t high = d->features >> 32, low = d->features;

    /* "virtio/64bit_features", its version, and what the driver accepted */
    return (TripSpoilt) {
        "features", { 0x75726573, 1, high, low }, 4, 3, low & ~(1u << feature),
        text,
    };
}

void trip_refuse_spoilt(Trip *t, int side, const TripSpoilt *cases,
                        unsigned n)
{
    g_autofree char *path = trip_save(t, side);
    g_autofree char *copy = g_strdup_printf("%s/copy", t->net.dir);

    for (unsigned i = 0; i < n; i++) {
        g_autofree char *data = NULL;
        size_t size;

        g_test_message("%s becomes %u", cases[i].what, cases[i].by);
        g_assert_true(g_file_get_contents(path, &data, &size, NULL));
        g_assert_true(g_file_set_contents(copy, data, size, NULL));
        spoil(copy, &cases[i]);
        expect_text(t, side, copy, t->device[side], "", cases[i].text);
    }
    g_unlink(path);
    g_unlink(copy);
}

static void expect_no_objects(QTestState *qts)
{
    static const char *const kinds[] = { "cqs", "srqs", "qps", "mrs" };
    g_autoptr(QDict) rsp = qtest_qmp(
        qts, "{'execute': 'query-rdma', 'arguments': {'objects': "
        "['cq', 'srq', 'qp', 'mr'], 'detail': true}}");
    const QListEntry *e;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(rsp, "return"), e) {
        QDict *dev = qobject_to(QDict, qlist_entry_obj(e));

        for (int i = 0; i < ARRAY_SIZE(kinds); i++) {
            g_assert_cmpuint(qlist_size(qdict_get_qlist(dev, kinds[i])), ==, 0);
        }
    }
}

/* A destination refuses the stream in the file @path, and has no objects. */
static void expect_refused(Trip *t, int side, const char *path)
{
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    QTestState *to = trip_start_destination(t, side, t->device[side], "");

    qtest_qmp_assert_success(to, "{'execute': 'migrate-incoming', "
                             "'arguments': {'uri': %s, "
                             "'exit-on-error': false}}", uri);
    for (;;) {
        g_autofree char *status = qrdma_migration_status(to);

        if (g_str_equal(status, "failed")) {
            break;
        }
        g_assert_cmpstr(status, !=, "completed");
        g_usleep(1000);
    }
    expect_no_objects(to);
    qtest_qmp_assert_success(to, "{'execute': 'system_reset'}");
    expect_no_objects(to);
    qtest_quit(to);
    trip_forget_destination(t, side);
}

void trip_look_at_refused(Trip *t, int side, const TripSpoilt *c)
{
    g_autofree char *path = trip_save(t, side);

    spoil(path, c);
    expect_refused(t, side, path);
    g_unlink(path);
}

void trip_look_at_cut(Trip *t, int side, const TripCut *cuts, unsigned n)
{
    g_autofree char *path = trip_save(t, side);
    g_autofree char *data = NULL;
    size_t size;

    g_assert_true(g_file_get_contents(path, &data, &size, NULL));
    for (unsigned i = 0; i < n; i++) {
        char *name = memmem(data, size, cuts[i].name, strlen(cuts[i].name));

        g_test_message("cut at %s %+d", cuts[i].name, cuts[i].bytes);
        g_assert_nonnull(name);
        g_assert_true(g_file_set_contents(path, data, name - data +
                                          cuts[i].bytes, NULL));
        expect_refused(t, side, path);
    }
    g_unlink(path);
}

void trip_move_spoilt(Trip *t, int side, const TripSpoilt *cases, unsigned n)
{
    g_autofree char *path = trip_save(t, side);
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    QTestState *to;

    for (unsigned i = 0; i < n; i++) {
        spoil(path, &cases[i]);
    }
    to = trip_start_destination(t, side, t->device[side], "");
    trip_migrate_from(to, uri);
    trip_take_over(t, side, to);
    g_unlink(path);
}

/* Traffic */

void trip_connect(Trip *t)
{
    QRdmaPath path = { .timeout = MIGRATE_TIMEOUT_CODE };

    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    qrdma_connect(t->p.a.qp, t->p.b.qp, &path);
}

Trip *trip_connected(const char *lossy)
{
    Trip *t = trip_new(lossy);

    trip_connect(t);
    return t;
}

void trip_post_all(NetEnd *from, NetEnd *to, unsigned round)
{
    static const uint8_t note[16] = "written inline";
    RdmaSge src = net_sge(from, SRC, LEN);
    RdmaSge read_to = net_sge(from, READ_TO, LEN);
    RdmaSge old = net_sge(from, OLD, 8);
    RdmaSendWr wr;

    qrdma_mr_fill(from->mr, SRC, LEN, round);
    qrdma_mr_fill(to->mr, READ_FROM, LEN, round + 100);

    wr = qrdma_wr(RDMA_WR_SEND_WITH_IMM, 1, &src);
    memcpy(wr.ex.imm_data, &round, sizeof(wr.ex.imm_data));
    qrdma_post_send(from->qp, &wr);
    wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &src, to->mr, TARGET);
    wr.send_flags = 0;
    qrdma_post_send(from->qp, &wr);
    qrdma_post(from->qp, qrdma_rdma_wr(RDMA_WR_RDMA_READ, 3, &read_to, to->mr,
                                       READ_FROM));
    wr = qrdma_rdma_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 4, &old, to->mr, COUNTER);
    wr.wr.atomic.compare_add = 3;
    qrdma_post_send(from->qp, &wr);
    wr = qrdma_wr(RDMA_WR_SEND, 5, NULL);
    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = note;
    wr.inline_len = sizeof(note);
    qrdma_post_send(from->qp, &wr);
}

void trip_post_receives(NetEnd *to, unsigned round)
{
    net_post_recv(to, 2 * round, RECV, LEN);
    net_post_recv(to, 2 * round + 1, TARGET + LEN, 64);
}

void trip_post_both(Trip *t, unsigned round)
{
    trip_post_all(&t->p.a, &t->p.b, round);
    trip_post_all(&t->p.b, &t->p.a, round);
}

void trip_receive_both(Trip *t, unsigned round)
{
    trip_post_receives(&t->p.a, round);
    trip_post_receives(&t->p.b, round);
}

/*
 * On a busy machine one of the processes may not run for long. Timeouts are for
 * lost frames, not for frames that a process has not read yet.
 */
static void let_all_run(Trip *t)
{
    for (int i = 0; i < TURNS; i++) {
        /* The hub has no CPU, so no memory to read */
        qtest_clock_step(t->hub, 1);
        for (int side = 0; side < 2; side++) {
            qtest_readb(t->net.host[side]->qts, 0);
            if (t->server[side]) {
                qtest_clock_step(t->server[side], 1);
            }
        }
    }
}

static void step(Trip *t, int64_t ns)
{
    net_clock_step(&t->net, ns);
    for (int side = 0; side < 2; side++) {
        if (t->server[side]) {
            qtest_clock_step(t->server[side], ns);
        }
    }
}

void trip_wait_wc(Trip *t, QRdmaCq *cq, uint64_t wr_id, RdmaWc *wc)
{
    gint64 end = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;

    while (!qrdma_poll_cq(cq, wc)) {
        let_all_run(t);
        if (qrdma_poll_cq(cq, wc)) {
            break;
        }
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        step(t, MIGRATE_TIMEOUT_NS / 2);
    }
    g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
    g_assert_cmphex(wc->wr_id, ==, wr_id);
}

void trip_check_all(Trip *t, NetEnd *from, NetEnd *to, unsigned round)
{
    static const int sent[] = { 1, 3, 4, 5 };
    RdmaWc wc;

    for (int i = 0; i < ARRAY_SIZE(sent); i++) {
        trip_wait_wc(t, from->scq, sent[i], &wc);
    }
    trip_wait_wc(t, to->rcq, 2 * round, &wc);
    g_assert_cmpuint(wc.byte_len, ==, LEN);
    g_assert_cmpmem(wc.ex.imm_data, 4, &round, 4);
    trip_wait_wc(t, to->rcq, 2 * round + 1, &wc);
    g_assert_cmpuint(wc.byte_len, ==, 16);
    trip_check_memory(from, to, round);
}

void trip_check_both(Trip *t, unsigned round)
{
    trip_check_all(t, &t->p.a, &t->p.b, round);
    trip_check_all(t, &t->p.b, &t->p.a, round);
}

void trip_check_memory(NetEnd *from, NetEnd *to, unsigned round)
{
    uint64_t count = 0;
    uint8_t note[16];

    qrdma_mr_check(to->mr, RECV, LEN, round);
    qrdma_mr_check(to->mr, TARGET, LEN, round);
    qrdma_mr_check(from->mr, READ_TO, LEN, round + 100);
    qrdma_mr_read(to->mr, TARGET + LEN, note, sizeof(note));
    g_assert_cmpmem(note, sizeof(note), "written inline\0", sizeof(note));
    qrdma_mr_read(from->mr, OLD, &count, 8);
    g_assert_cmpuint(le64_to_cpu(count), ==, 3 * round);
    qrdma_mr_read(to->mr, COUNTER, &count, 8);
    g_assert_cmpuint(le64_to_cpu(count), ==, 3 * (round + 1));
}

void trip_check_silence(Trip *t)
{
    step(t, 100 * MIGRATE_TIMEOUT_NS);
    qrdma_expect_none(t->p.a.scq);
    qrdma_expect_none(t->p.a.rcq);
    qrdma_expect_none(t->p.b.scq);
    qrdma_expect_none(t->p.b.rcq);
}

void trip_leave_in_turns(Trip *t, unsigned round)
{
    trip_move(t, round / 2 % 2, NULL);
}

void trip_leave_together(Trip *t, unsigned round)
{
    trip_move_both(t);
}

void trip_leave_by_file(Trip *t, unsigned round)
{
    trip_move_by_file(t, round / 2 % 2);
}

void trip_leave_in_vain(Trip *t, unsigned round)
{
    int side = round / 2 % 2;
    g_autofree char *path = trip_save(t, side);

    qtest_qmp_assert_success(t->net.host[side]->qts, "{'execute': 'cont'}");
    g_unlink(path);
}

void trip_travel(const char *lossy, unsigned rounds,
                 void (*journey)(Trip *t, unsigned round))
{
    g_autoptr(Trip) t = trip_connected(lossy);

    trip_travel_on(t, 0, rounds, journey);
}

void trip_travel_on(Trip *t, unsigned first, unsigned end,
                    void (*journey)(Trip *t, unsigned round))
{
    for (unsigned round = first; round < end; round++) {
        /* In turns: receives before the sends, and after them */
        if (round % 2) {
            trip_receive_both(t, round);
        }
        trip_post_both(t, round);
        journey(t, round);
        if (round % 2 == 0) {
            trip_receive_both(t, round);
        }
        trip_check_both(t, round);
        trip_check_silence(t);
    }
}


static void set_bandwidth(QTestState *qts, int64_t bandwidth)
{
    qtest_qmp_assert_success(qts, "{'execute': 'migrate-set-parameters', "
                             "'arguments': {'max-bandwidth': %" PRId64 "}}",
                             bandwidth);
}

void trip_slow_start(Trip *t, int side, QTestState *to, const char *uri)
{
    set_bandwidth(t->net.host[side]->qts, 100000);
    trip_migrate_from(to, uri);
    trip_migrate_to(t, side, uri);
    trip_wait_status(t->net.host[side]->qts, "active");
}

void trip_write_during_precopy(Trip *t, int side)
{
    g_autofree char *path = g_strdup_printf("%s/migrate", t->net.dir);
    g_autofree char *uri = g_strdup_printf("unix:%s", path);
    QTestState *from = t->net.host[side]->qts;
    QTestState *to = trip_start_destination(t, side, t->device[side], "");
    int64_t sent = 0;

    trip_receive_both(t, 0);
    trip_slow_start(t, side, to, uri);
    /* A page of zeros takes 9 bytes: more than a half of RAM */
    while (sent < 9 * (40 << 20) / 4096) {
        g_autoptr(QDict) rsp = qtest_qmp_assert_success_ref(
            from, "{'execute': 'query-migrate'}");

        sent = qdict_get_int(qdict_get_qdict(rsp, "ram"), "transferred");
        g_usleep(1000);
    }
    trip_post_both(t, 0);
    trip_check_both(t, 0);
    trip_wait_status(from, "active");
    /* Virtual time passes. */
    t->now[side] = qtest_clock_step(from, 1);
    set_bandwidth(from, 1 << 30);
    g_assert_true(qrdma_migration_done(from));
    trip_take_over(t, side, to);
    trip_check_memory(&t->p.a, &t->p.b, 0);
    trip_check_memory(&t->p.b, &t->p.a, 0);
    trip_check_silence(t);
    g_unlink(path);
}
