/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: devices that work in an iothread.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "disk.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_pci.h"

#define FEATURES QRDMA_DIRECT
#define NEXT VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
#define DEPTH 64
#define LEN 9000                    /* three packets */
#define AT_ONCE 16

/* Two devices of one machine on a hub; the second one's slot is the next. */
#define DEVICE(n, more) \
    "-netdev hubport,id=n" #n ",hubid=0 " \
    "-object rdma-roce,id=r" #n ",netdev=n" #n more " " \
    "-device virtio-rdma-pci,id=d" #n ",rdmadev=r" #n ",iothread=io" #n \
    ",max-qp=8,max-cq=9,max-mr=8,max-pd=4,addr=" #n " "

/* One device, and its objects for the traffic with the other */
typedef struct End {
    QRdma *d;
    QRdmaPd *pd;
    QRdmaMr *mr;
    QRdmaEq *eq;
    QRdmaCq *cq;
    QRdmaQp *qp;
} End;

typedef struct Two {
    QRdmaHost *host;
    char *dir;                      /* for shared memory, or NULL */
    End a, b;
} Two;

static void end_start(End *e)
{
    qrdma_start(e->d, QRDMA_FEATURES | FEATURES, 0);
    qrdma_add_event_buffers(e->d, 8);
    e->pd = qrdma_alloc_pd(e->d);
    e->mr = qrdma_reg_mr(e->pd, TEST_IOVA_A, TEST_MR_SIZE, TEST_ACCESS_ALL);
    e->eq = qrdma_create_eq(e->d, 16);
    e->cq = qrdma_create_direct_cq(e->d, DEPTH, e->eq);
    e->qp = qrdma_create_qp(e->pd, e->cq, e->cq, RDMA_QPT_RC);
}

static void two_connect(Two *t)
{
    qrdma_setup_gids(t->a.d, 1);
    qrdma_setup_gids(t->b.d, 2);
    qrdma_connect(t->a.qp, t->b.qp, NULL);
}

/*
 * @disk: NULL, or a disk beside them whose requests take half a second. It is
 * set up first, as that changes the memory map, which the iothreads read under
 * RCU: ThreadSanitizer would take it for a race.
 */
static Two *two_start_with(bool shm, TestDisk *disk)
{
    Two *t = g_new0(Two, 1);
    g_autofree char *how = NULL;

    if (shm) {
        t->dir = g_dir_make_tmp("rdma-iothread-XXXXXX", NULL);
        how = g_strdup_printf(",shm-dir=%s", t->dir);
    }
    t->host = qrdma_host_start("-object iothread,id=io4 "
                               "-object iothread,id=io5 "
                               DEVICE(4, "%s") DEVICE(5, "%s") "%s",
                               how ?: "", how ?: "",
                               disk ? TEST_DISK(6, "500000000") : "");
    if (disk) {
        *disk = test_disk_open(t->host, 6);
    }
    t->a.d = qrdma_open(t->host, QPCI_DEVFN(4, 0));
    t->b.d = qrdma_open(t->host, QPCI_DEVFN(5, 0));
    end_start(&t->a);
    end_start(&t->b);
    two_connect(t);
    return t;
}

static Two *two_start(bool shm)
{
    return two_start_with(shm, NULL);
}

static void two_stop(Two *t)
{
    qrdma_host_stop(t->host);
    if (t->dir) {
        g_assert_cmpint(rmdir(t->dir), ==, 0);
        g_free(t->dir);
    }
    g_free(t);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Two, two_stop)

/* A WRITE of @len bytes at the start of @from to the same place in @to */
static void put_len(QRdmaQp *qp, QRdmaMr *from, QRdmaMr *to, uint32_t len,
                    uint64_t wr_id)
{
    RdmaSge sge = qrdma_sge(from, 0, len);

    qrdma_post(qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge, to, 0));
}

static void put(End *from, End *to, uint64_t wr_id)
{
    put_len(from->qp, from->mr, to->mr, LEN, wr_id);
}

static void put_many(Two *t)
{
    for (int i = 0; i < AT_ONCE; i++) {
        put(&t->a, &t->b, i);
        put(&t->b, &t->a, i);
    }
}

static void expect_many(End *e)
{
    qrdma_expect_many(e->cq, 0, AT_ONCE, RDMA_WC_SUCCESS);
}

/*
 * The same for a completion when frames may be lost, so that time has to pass.
 */
static void expect_later(End *e, uint64_t wr_id)
{
    gint64 end = g_get_monotonic_time() + qrdma_patience();
    unsigned polls = 0;
    RdmaWc wc;

    while (!qrdma_poll_cq(e->cq, &wc)) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        /* Timeouts are for lost frames, not for a thread that has to wait. */
        if (++polls % 200 == 0) {
            qrdma_clock_step(e->d, 100 * QRDMA_MS);
        }
        g_usleep(100);
    }
    g_assert_cmpuint(wc.wr_id, ==, wr_id);
    g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
}

static void expect_many_later(End *e)
{
    for (int i = 0; i < AT_ONCE; i++) {
        expect_later(e, i);
    }
}

static void check_works(Two *t, uint8_t seed)
{
    qrdma_mr_fill(t->a.mr, 0, LEN, seed);
    put(&t->a, &t->b, seed);
    qrdma_expect(t->a.cq, seed, RDMA_WC_SUCCESS);
    qrdma_mr_check(t->b.mr, 0, LEN, seed);
}

static uint64_t frames_by_memory(Two *t)
{
    return qrdma_qom_get(t->host->qts, "/objects/r4", "shm-tx-frames");
}

static void test_messages(const void *data)
{
    bool shm = GPOINTER_TO_INT(data);
    g_autoptr(Two) t = two_start(shm);

    for (int i = 1; i < 20; i++) {
        check_works(t, i);
        put_many(t);
        expect_many(&t->a);
        expect_many(&t->b);
    }
    if (shm) {
        g_assert_cmpuint(frames_by_memory(t), >, 0);
    }
}

#define PAIRS 5

/*
 * More frames than may wait for the main loop, in small packets, and no
 * acknowledgements that would make the engine run again.
 */
static void test_many_frames_wait_for_the_main_loop(void)
{
    static const QRdmaPath path = { .mtu = RDMA_MTU_256 };
    g_autoptr(Two) t = two_start(false);
    End a[PAIRS], b[PAIRS];

    for (int i = 0; i < PAIRS; i++) {
        a[i] = t->a;
        b[i] = t->b;
        a[i].qp = qrdma_create_qp(t->a.pd, t->a.cq, t->a.cq, RDMA_QPT_UC);
        b[i].qp = qrdma_create_qp(t->b.pd, t->b.cq, t->b.cq, RDMA_QPT_UC);
        qrdma_connect(a[i].qp, b[i].qp, &path);
    }
    for (int round = 0; round < 10; round++) {
        RdmaWc wc;

        for (int n = 0; n < DEPTH / PAIRS; n++) {
            for (int i = 0; i < PAIRS; i++) {
                put(&a[i], &b[i], n);
            }
        }
        for (int n = 0; n < DEPTH / PAIRS * PAIRS; n++) {
            qrdma_wait_cq(t->a.cq, &wc);
            g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        }
    }
}

/*
 * A thread that has the lock when the iothread comes must wake the iothread
 * afterwards.
 */
static void test_counters_are_read_under_traffic(void)
{
    g_autoptr(Two) t = two_start(true);

    for (int i = 1; i < 40; i++) {
        put_many(t);
        for (int n = 0; n < 10; n++) {
            frames_by_memory(t);
        }
        expect_many(&t->a);
        expect_many(&t->b);
    }
}

/* A query takes the lock, and reads objects of QPs that are at work. */
static void test_query_under_traffic(void)
{
    g_autoptr(Two) t = two_start(true);

    for (int i = 1; i < 40; i++) {
        put_many(t);
        for (int n = 0; n < 5; n++) {
            g_autoptr(QDict) info = qrdma_query(t->host->qts,
                "'device': 'd4', 'detail': true, "
                "'objects': ['pd', 'cq', 'qp', 'mr', 'gid']");
            QDict *qp = qobject_to(QDict, qlist_peek(
                qdict_get_qlist(info, "qps")));

            g_assert_cmpint(qdict_get_int(qp, "qpn"), ==, t->a.qp->qpn);
            g_assert_cmpstr(qdict_get_str(qp, "state"), ==, "rts");
            g_assert_cmpint(qdict_get_int(qp, "sends") +
                            qdict_get_int(qp, "sends-waiting"), <=, AT_ONCE);
        }
        expect_many(&t->a);
        expect_many(&t->b);
    }
}

/* A thread of QEMU, and how often it was seen in which state */
typedef struct Watched {
    char *path;                     /* of its file in /proc */
    bool stop;
    unsigned sleeps, runs;
} Watched;

static void *watch(void *opaque)
{
    Watched *w = opaque;

    while (!qatomic_read(&w->stop)) {
        g_autofree char *stat = NULL;

        g_assert_true(g_file_get_contents(w->path, &stat, NULL, NULL));
        /* The state follows the name in parentheses. */
        if (strrchr(stat, ')')[2] == 'S') {
            qatomic_inc(&w->sleeps);
        } else {
            w->runs++;
        }
        g_usleep(1000);
    }
    return NULL;
}

/* The first iothread, of the device in slot 4 */
static char *path_of_iothread(QTestState *qts)
{
    g_autoptr(QDict) rsp = qtest_qmp(qts, "{'execute': 'query-iothreads'}");
    QDict *first = qobject_to(QDict,
                              qlist_peek(qdict_get_qlist(rsp, "return")));
    char *path;

    g_assert_cmpstr(qdict_get_str(first, "id"), ==, "io4");
    path = g_strdup_printf("/proc/%d/task/%" PRId64 "/stat", qtest_pid(qts),
                           qdict_get_int(first, "thread-id"));
    return path;
}

/* A message that takes the iothreads several milliseconds */
#define LONG (16 * 1024 * 1024u)

/*
 * The interrupt of a command resets a disk, so the main loop has the lock for
 * half a second while the peer sends. The iothread must sleep while it waits.
 * If it spun with a higher priority on the main loop's processor, neither would
 * finish.
 */
static void test_sleeps_while_the_main_loop_has_the_lock(void)
{
    TestDisk disk;
    g_autoptr(Two) t = two_start_with(true, &disk);
    QRdmaRing *ctrl = qrdma_ring(t->a.d, VIRTIO_RDMA_CTRL_VQ);
    Watched w = { .path = path_of_iothread(t->host->qts) };
    QRdmaMr *from = qrdma_reg_mr(t->b.pd, 0, LONG, 0);
    QRdmaMr *to = qrdma_reg_mr(t->a.pd, 0, LONG, TEST_ACCESS_ALL);
    struct virtio_rdma_query_pkey_req query = { .port = cpu_to_le32(1) };
    QRdmaWaiting waiting;
    GThread *thread;

    check_works(t, 1);
    test_disk_aim(&disk, ctrl);
    waiting = qrdma_enqueue(t->a.d, VIRTIO_RDMA_CMD_QUERY_PKEY, &query,
                            sizeof(query),
                            sizeof(struct virtio_rdma_query_pkey_rsp));
    thread = g_thread_new("watch", watch, &w);
    while (!qatomic_read(&w.sleeps)) {
        g_usleep(1000);
    }
    test_disk_busy(&disk);
    put_len(t->b.qp, from, to, LONG, 2);
    qrdma_ring_kick(ctrl);
    qrdma_reap_commands(t->a.d, 1);
    qatomic_set(&w.stop, true);
    g_thread_join(thread);
    assert_ok(qrdma_status_of(&waiting));
    g_assert_cmphex(test_disk_status(&disk), ==, 0);
    g_assert_cmpuint(w.sleeps, >, w.runs);

    expect_later(&t->b, 2);
    g_free(w.path);
    test_disk_close(&disk);
}

/* A command whose response goes to @in, which the device may write anywhere */
static void enqueue_to(QRdma *d, uint8_t cmd, const void *req, size_t len,
                       const QRdmaDesc *in, unsigned n)
{
    uint64_t mem = qrdma_alloc(d, 4096);
    QRdmaDesc desc[8] = { { mem, 1 }, { mem + 1, len } };

    qtest_writeb(d->host->qts, mem, cmd);
    qrdma_write(d, mem + 1, req, len);
    for (unsigned i = 0; i < n; i++) {
        desc[2 + i] = in[i];
    }
    qrdma_ring_add(qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ), desc, 2 + n);
}

static bool is_asleep(const End *e)
{
    return !qrdma_direct_awake(e->d, &e->qp->sq);
}

/*
 * The main loop has the lock of a when a frame wakes a's socket, and runs the
 * engine of a before it leaves. The iothread must poll that socket again.
 */
static void test_engine_runs_while_the_iothread_is_put_off(void)
{
    TestDisk disk;
    g_autoptr(Two) t = two_start_with(true, &disk);
    QRdma *d = t->a.d;
    QRdmaRing *ctrl = qrdma_ring(d, VIRTIO_RDMA_CTRL_VQ);
    /*
     * The response to QUERY_SRQ starts with max_wr, which is the doorbell of
     * b's QP.
     */
    QRdmaSrq *srq = qrdma_create_srq(t->a.pd, t->b.qp->qpn, 1);
    QRdmaQp *spare = qrdma_create_qp(t->a.pd, t->a.cq, t->a.cq, RDMA_QPT_RC);
    uint64_t mem = qrdma_alloc(d, 4096);
    uint64_t status = disk.pci->bar.addr + disk.pci->common_cfg_offset +
                      VIRTIO_PCI_COMMON_STATUS;
    uint32_t srqn = cpu_to_le32(srq->srqn);
    uint32_t qpn = cpu_to_le32(spare->qpn);
    uint32_t modify[2] = { srqn, 0 };
    RdmaSge sge = qrdma_sge(t->b.mr, 0, 100);
    uint64_t bell;

    check_works(t, 1);
    put(&t->b, &t->a, 2);
    qrdma_expect(t->b.cq, 2, RDMA_WC_SUCCESS);
    bell = t->b.d->doorbells.addr +
           QRDMA_DIRECT_DOORBELL * VIRTIO_RDMA_DOORBELL_SIZE;
    for (int i = 0; i < 20; i++) {
        g_usleep(10000);
        qrdma_settle(d);
    }
    qrdma_wait_until(t->b.d, is_asleep(&t->b));

    /* A send of b without a doorbell */
    qrdma_put_send(t->b.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 3, &sge, t->a.mr,
                                          0));

    enqueue_to(d, VIRTIO_RDMA_CMD_QUERY_SRQ, &srqn, sizeof(srqn),
               (QRdmaDesc[]) { { mem, 1, true }, { bell, 4, true },
                               { mem + 8, 8, true } }, 3);
    enqueue_to(d, VIRTIO_RDMA_CMD_MODIFY_SRQ, modify, sizeof(modify),
               (QRdmaDesc[]) { { status, 1, true } }, 1);
    enqueue_to(d, VIRTIO_RDMA_CMD_DESTROY_QP, &qpn, sizeof(qpn),
               (QRdmaDesc[]) { { mem + 32, 1, true } }, 1);
    qtest_writeb(d->host->qts, mem + 32, 0xff);
    test_disk_busy(&disk);
    qrdma_ring_kick(ctrl);
    qrdma_reap_commands(d, 3);
    g_assert_cmphex(test_disk_status(&disk), ==, 0);
    g_assert_cmpuint(qtest_readb(d->host->qts, mem + 32), ==, 0);
    qrdma_expect(t->b.cq, 3, RDMA_WC_SUCCESS);

    g_test_message("the first one is there");
    for (int i = 4; i < 10; i++) {
        for (int n = 0; n < 30; n++) {
            g_usleep(5000);
            qrdma_settle(d);
        }
        put(&t->b, &t->a, i);
        qrdma_expect(t->b.cq, i, RDMA_WC_SUCCESS);
    }
    test_disk_close(&disk);
}

static void test_events(void)
{
    g_autoptr(Two) t = two_start(false);
    uint32_t cqn;

    for (int i = 1; i < 30; i++) {
        qrdma_arm_direct_cq(t->a.cq, NEXT);
        check_works(t, i);
        qrdma_wait_until(t->a.d, qrdma_eq_get(t->a.eq, &cqn));
        g_assert_cmpuint(cqn, ==, t->a.cq->cqn);
        qrdma_wait_until(t->a.d, qrdma_ring_irq(t->a.eq->ring));
        qrdma_refill_eq(t->a.eq, 1);
    }
}

static void test_error_of_the_peer_raises_an_event(void)
{
    g_autoptr(Two) t = two_start(false);
    RdmaSge sge = qrdma_sge(t->a.mr, 0, LEN);

    qrdma_post_send(t->a.qp, &(RdmaSendWr) {
        .opcode = RDMA_WR_RDMA_WRITE,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.rdma = { t->b.mr->iova, t->b.mr->rkey + 1 },
    });
    qrdma_expect(t->a.cq, 0, RDMA_WC_REM_ACCESS_ERR);
    /* The main loop reports errors that the iothread has found. */
    qtest_qmp_eventwait(t->host->qts, "RDMA_QP_ERROR");
    qrdma_expect_event(t->b.d, RDMA_EVENT_QP_ACCESS_ERR, t->b.qp->qpn);
}

static void test_reset_under_traffic(void)
{
    g_autoptr(Two) t = two_start(false);

    for (int i = 1; i < 20; i++) {
        put_many(t);
        end_start(&t->a);
        end_start(&t->b);
        two_connect(t);
        check_works(t, i);
    }
}

static void test_stop_under_traffic(void)
{
    g_autoptr(Two) t = two_start(true);
    QTestState *qts = t->host->qts;

    for (int i = 1; i < 20; i++) {
        put_many(t);
        qtest_qmp_assert_success(qts, "{'execute': 'stop'}");
        qtest_qmp_assert_success(qts, "{'execute': 'cont'}");
        expect_many_later(&t->a);
        expect_many_later(&t->b);
        check_works(t, i);
    }
}

static void test_unplug_under_traffic(void)
{
    g_autoptr(Two) t = two_start(true);

    put_many(t);
    qpci_unplug_acpi_device_test(t->host->qts, "d5", 5);
    qtest_qmp_assert_success(t->host->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'r5'}}");
    qtest_qmp_assert_success(t->host->qts, "{'execute': 'object-del', "
                             "'arguments': {'id': 'io5'}}");
}

static void test_virtqueues_of_work_are_refused(void)
{
    g_autoptr(Two) t = two_start(false);
    RdmaSrqAttr srq = { .pdn = t->a.pd->pdn, .max_wr = 4, .max_sge = 1 };
    RdmaQpInitAttr qp = {
        .pdn = t->a.pd->pdn,
        .send_cqn = t->a.cq->cqn,
        .recv_cqn = t->a.cq->cqn,
        .qp_type = RDMA_QPT_RC,
        .cap = { .max_send_wr = 4, .max_recv_wr = 4 },
    };
    uint32_t id;

    assert_status(qrdma_try_create_cq(t->a.d, 4, &id), INVAL);
    assert_status(qrdma_try_create_srq(t->a.d, &srq, &id), INVAL);
    assert_status(qrdma_try_create_qp(t->a.d, &qp, &id), INVAL);
    check_works(t, 1);
}

static void test_driver_without_direct_queues_is_refused(void)
{
    g_autoptr(QRdmaHost) host = qrdma_host_start("-object iothread,id=io4 "
                                                 DEVICE(4, ""));
    QRdma *d = qrdma_open(host, QPCI_DEVFN(4, 0));
    QVirtioDevice *vdev = &d->pci->vdev;

    qrdma_reset(d);
    qvirtio_set_acknowledge(vdev);
    qvirtio_set_driver(vdev);
    vdev->bus->set_features(vdev, QRDMA_FEATURES);
    vdev->bus->set_status(vdev, VIRTIO_CONFIG_S_FEATURES_OK |
                                vdev->bus->get_status(vdev));
    g_assert_false(vdev->bus->get_status(vdev) & VIRTIO_CONFIG_S_FEATURES_OK);
}

static void test_incompatible_options_are_refused(void)
{
    static const struct {
        const char *props;
        const char *in_message;
    } bad[] = {
        { "'direct': 'off'", "direct" },
        { "'version-1': 'off'", "version-1" },
        { "'modern-pio-notify': 'on'", "modern-pio-notify" },
        { "'iothread': 'r0'", "iothread" },
        { "'iothread': 'nosuch'", "nosuch" },
    };
    g_autoptr(QRdmaHost) host = qrdma_host_start(
        "-object iothread,id=io0 -netdev hubport,id=n0,hubid=0 "
        "-object rdma-roce,id=r0,netdev=n0");

    for (int i = 0; i < ARRAY_SIZE(bad); i++) {
        g_autofree char *cmd = g_strdup_printf(
            "{'execute': 'device_add', 'arguments': {"
            "'driver': 'virtio-rdma-pci', 'rdmadev': 'r0', %s%s}}",
            strstr(bad[i].props, "'iothread'") ? "" : "'iothread': 'io0', ",
            bad[i].props);

        qrdma_qmp_refused(host->qts, cmd, bad[i].in_message);
    }
}

const QRdmaTest iothread_tests[] = {
    { "messages-by-the-netdev", .run_case = test_messages,
      .data = GINT_TO_POINTER(false) },
    { "messages-by-memory", .run_case = test_messages,
      .data = GINT_TO_POINTER(true) },
    { "many-frames-wait-for-the-main-loop",
      test_many_frames_wait_for_the_main_loop },
    { "counters-are-read-under-traffic", test_counters_are_read_under_traffic },
    { "query-under-traffic", test_query_under_traffic },
    { "sleeps-while-the-main-loop-has-the-lock",
      test_sleeps_while_the_main_loop_has_the_lock },
    { "engine-runs-while-the-iothread-is-put-off",
      test_engine_runs_while_the_iothread_is_put_off },
    { "events", test_events },
    { "error-of-the-peer-raises-an-event",
      test_error_of_the_peer_raises_an_event },
    { "reset-under-traffic", test_reset_under_traffic },
    { "stop-under-traffic", test_stop_under_traffic },
    { "unplug-under-traffic", test_unplug_under_traffic },
    { "virtqueues-of-work-are-refused", test_virtqueues_of_work_are_refused },
    { "driver-without-direct-queues-is-refused",
      test_driver_without_direct_queues_is_refused },
    { "incompatible-options-are-refused",
      test_incompatible_options_are_refused },
    {}
};
