/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU that does not run for a while. When it goes on, time has passed. The
 * answer to a request waits after more frames than a turn of the main loop
 * reads. The test holds the far ends of both netdevs, which are streams, and
 * may be the sender of a ring.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <sys/wait.h>
#include "qemu/atomic.h"
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "rdma/shm-test.h"

/* An iothread serves direct queues only. */
#define FEATURES (QRDMA_FEATURES | QRDMA_DIRECT_QPS | QRDMA_DIRECT_CQS)

#define MAC "52:54:00:00:00:0%d"
#define RDMA_SLOT 4
#define MR_SIZE (64 * 1024)
#define LEN 1000
/*
 * A wire that is not read holds less than a message of LONG_LEN, and the
 * iothread has room for each retransmission of that.
 */
#define WIRE_SIZE 4096
#define LONG_LEN (16 * 1024)
/* More timeouts than a request has retries */
#define MANY_TIMEOUTS 12
#define TIMEOUT_CODE 14
#define TIMEOUT_NS (4096ll << TIMEOUT_CODE)
/* Frames to no QP: a read takes 69632 bytes, and a turn of the ring */
/* 393216. */
#define OTHER_LEN 4000
#define OTHERS_ON_WIRE 35
#define OTHERS_IN_RING 200

/* The path of frames, and the thread of the engine */
typedef struct Way {
    const char *name;
    bool shm;
    bool iothread;
} Way;

static const Way ways[] = {
    { "netdev" },
    { "netdev-iothread", .iothread = true },
    { "shm", .shm = true },
    { "shm-iothread", .shm = true, .iothread = true },
};

typedef struct Port {
    QRdmaHost *host;
    QRdma *dev;
    QRdmaMr *mr;
    QRdmaCq *cq;
    QRdmaQp *qp;
    int fd;                         /* far end of its netdev */
} Port;

typedef struct Stall {
    const Way *way;
    Port a, b;
    ShmRing ring;                   /* to a */
    bool enough;                    /* atomic: send no more frames */
} Stall;

static void port_start(Port *p, int id, const char *backend, const char *more,
                       const char *device)
{
    int fds[2], room = 1024 * 1024, wire = WIRE_SIZE;
    QRdmaPd *pd;

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    p->fd = fds[0];
    setsockopt(p->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &wire, sizeof(wire));
    p->host = qrdma_host_start(
        "-netdev socket,id=n0,fd=%d %s -object rdma-roce,id=r0,netdev=n0,"
        "mac=" MAC "%s -device virtio-rdma-pci,max-qp=4,max-cq=4,max-mr=8,"
        "max-pd=4,rdmadev=r0,addr=%d%s", fds[1], more, id, backend, RDMA_SLOT,
        device);
    close(fds[1]);
    p->dev = qrdma_open(p->host, QPCI_DEVFN(RDMA_SLOT, 0));
    qrdma_start(p->dev, FEATURES, 0);
    qrdma_add_event_buffers(p->dev, 8);
    qrdma_setup_gids(p->dev, id);
    pd = qrdma_alloc_pd(p->dev);
    p->mr = qrdma_reg_mr(pd, 0x100000, MR_SIZE,
                         RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE);
    p->cq = qrdma_create_direct_cq(p->dev, 40, NULL);
    p->qp = qrdma_create_qp(pd, p->cq, p->cq, RDMA_QPT_RC);
}

static void port_stop(Port *p)
{
    qrdma_host_stop(p->host);
    close(p->fd);
}

static void stall_start(Stall *s, const Way *way, bool retries)
{
    QRdmaPath path = { .timeout = TIMEOUT_CODE, .no_retry = !retries };
    g_autofree char *dir = way->shm ? g_strdup_printf(",shm-dir=%s", shm_dir)
                                    : g_strdup("");

    *s = (Stall) { .way = way };
    port_start(&s->a, 1, dir, way->iothread ? "-object iothread,id=io" : "",
               way->iothread ? ",iothread=io" : "");
    port_start(&s->b, 2, "", "", "");
    qrdma_connect(s->a.qp, s->b.qp, &path);
    if (way->shm) {
        s->ring = shm_sender_new(1);
        /*
         * No wake-ups, so that the timer reads the ring first, also in an
         * iothread
         */
        s->ring.silent = true;
    }
}

static void stall_end(Stall *s)
{
    if (s->way->shm) {
        shm_ring_free(&s->ring);
    }
    port_stop(&s->a);
    port_stop(&s->b);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Stall, stall_end)

/* Stream netdevs: each frame follows its length. */
static void send_frame(Port *to, const uint8_t *frame, size_t size)
{
    uint8_t record[4 + FRAME_MAX];

    stl_be_p(record, size);
    memcpy(record + 4, frame, size);
    g_assert_cmpint(send(to->fd, record, 4 + size, MSG_NOSIGNAL), ==,
                    4 + size);
}

static size_t recv_frame(Port *from, uint8_t frame[FRAME_MAX])
{
    GPollFD pfd = { .fd = from->fd, .events = G_IO_IN };
    uint8_t head[4];
    size_t size;

    g_assert_cmpint(g_poll(&pfd, 1, SOON_MS), ==, 1);
    g_assert_cmpint(recv(from->fd, head, 4, MSG_WAITALL), ==, 4);
    size = ldl_be_p(head);
    g_assert_cmpuint(size, <=, FRAME_MAX);
    g_assert_cmpint(recv(from->fd, frame, size, MSG_WAITALL), ==, size);
    return size;
}

/* A frame for port a */
static void bring(Stall *s, const uint8_t *frame, size_t size)
{
    if (s->way->shm) {
        shm_ring_frame(&s->ring, SHM_RECORD_CHECKED, frame, size);
    } else {
        send_frame(&s->a, frame, size);
    }
}

static void bring_others(Stall *s, unsigned n)
{
    uint8_t frame[OTHER_LEN] = { };

    make_udp(frame, 0);
    while (n--) {
        bring(s, frame, sizeof(frame));
    }
}

static void post_write(Stall *s, uint32_t len)
{
    RdmaSge sge = qrdma_sge(s->a.mr, 0, len);

    qrdma_post(s->a.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 1, &sge, s->b.mr, 0));
}

/* Port a sends a request. Store the answer of port b in @ack. */
static size_t ask(Stall *s, uint8_t ack[FRAME_MAX])
{
    uint8_t frame[FRAME_MAX];
    size_t size;

    post_write(s, LEN);
    size = recv_frame(&s->a, frame);
    g_assert_cmpuint(size, >, LEN);
    send_frame(&s->b, frame, size);
    return recv_frame(&s->b, ack);
}

static void stop(Port *p)
{
    int status;

    g_assert_cmpint(kill(qtest_pid(p->host->qts), SIGSTOP), ==, 0);
    g_assert_cmpint(waitpid(qtest_pid(p->host->qts), &status, WUNTRACED), ==,
                    qtest_pid(p->host->qts));
    g_assert_true(WIFSTOPPED(status));
}

/* QEMU goes on, and finds that the timeout is over. */
static void go_on(Port *p)
{
    qtest_clock_step_send(p->host->qts, 2 * TIMEOUT_NS);
    g_assert_cmpint(kill(qtest_pid(p->host->qts), SIGCONT), ==, 0);
    qtest_clock_step_done(p->host->qts);
}

static void expect_timeouts(Port *p, uint64_t timeouts, uint64_t late)
{
    g_assert_cmpuint(qrdma_counter(p->dev, VIRTIO_RDMA_TIMEOUTS), ==, timeouts);
    /* An iothread may count after it has completed the request. */
    qrdma_wait_until(p->dev, qrdma_qom_get(p->host->qts, "/objects/r0",
                                           "timeouts-late") == late);
}

static void test_answer_waits(gconstpointer way)
{
    uint8_t ack[FRAME_MAX];
    size_t size;
    g_auto(Stall) s;

    stall_start(&s, way, false);
    size = ask(&s, ack);
    stop(&s.a);
    bring_others(&s, s.way->shm ? OTHERS_IN_RING : OTHERS_ON_WIRE);
    bring(&s, ack, size);
    go_on(&s.a);
    qrdma_expect(s.a.cq, 1, RDMA_WC_SUCCESS);
    expect_timeouts(&s.a, 0, 1);
}

static void test_no_answer_waits(gconstpointer way)
{
    uint8_t ack[FRAME_MAX];
    g_auto(Stall) s;

    stall_start(&s, way, false);
    ask(&s, ack);
    stop(&s.a);
    bring_others(&s, s.way->shm ? OTHERS_IN_RING : OTHERS_ON_WIRE);
    go_on(&s.a);
    qrdma_expect(s.a.cq, 1, RDMA_WC_RETRY_EXC_ERR);
    expect_timeouts(&s.a, 1, 0);
}

static bool has_room(Stall *s)
{
    GPollFD pfd = { .fd = s->a.fd, .events = G_IO_OUT };

    if (s->way->shm) {
        return s->ring.pos - ldl_le_p(s->ring.mem + SHM_RING_TAIL) <
               SHM_RING_SIZE / 2;
    }
    return g_poll(&pfd, 1, 1) == 1;
}

static gpointer flood(gpointer opaque)
{
    Stall *s = opaque;

    while (!qatomic_read(&s->enough)) {
        if (has_room(s)) {
            bring_others(s, 1);
        }
    }
    return NULL;
}

/* The loss is found even if frames come without end. */
static void test_frames_without_end(gconstpointer way)
{
    uint8_t ack[FRAME_MAX];
    GThread *thread;
    g_auto(Stall) s;

    stall_start(&s, way, false);
    ask(&s, ack);
    stop(&s.a);
    s.ring.silent = false;
    thread = g_thread_new("flood", flood, &s);
    go_on(&s.a);
    qrdma_expect(s.a.cq, 1, RDMA_WC_RETRY_EXC_ERR);
    qatomic_set(&s.enough, true);
    g_thread_join(thread);
    expect_timeouts(&s.a, 1, 0);
}

/* Join the wires of both ports. */
static gpointer join(gpointer opaque)
{
    Stall *s = opaque;
    GPollFD fds[] = {
        { .fd = s->a.fd, .events = G_IO_IN },
        { .fd = s->b.fd, .events = G_IO_IN },
    };
    uint8_t bytes[4096];
    ssize_t size;

    while (!qatomic_read(&s->enough)) {
        g_poll(fds, ARRAY_SIZE(fds), 1);
        for (int i = 0; i < ARRAY_SIZE(fds); i++) {
            if (fds[i].revents) {
                size = read(fds[i].fd, bytes, sizeof(bytes));
                g_assert_cmpint(write(fds[!i].fd, bytes, size), ==, size);
            }
        }
    }
    return NULL;
}

/*
 * No one reads from the wire, so that nothing leaves: the request waits for
 * longer than its retries last.
 */
static void test_blocked_wire(gconstpointer way)
{
    GThread *thread;
    g_auto(Stall) s;

    stall_start(&s, way, true);
    post_write(&s, LONG_LEN);
    for (int i = 0; i < MANY_TIMEOUTS; i++) {
        gint64 end = g_get_monotonic_time() + SOON_MS * 1000;

        /* After the first, the QP has used a retry, and waits twice as long. */
        qtest_clock_step(s.a.host->qts, i ? 2 * TIMEOUT_NS : TIMEOUT_NS);
        while (qrdma_counter(s.a.dev, VIRTIO_RDMA_TIMEOUTS) <= i) {
            g_assert_cmpint(g_get_monotonic_time(), <, end);
            g_usleep(1000);
        }
    }
    g_assert_cmpuint(qrdma_counter(s.a.dev, VIRTIO_RDMA_RETRANSMITS), ==, 1);
    thread = g_thread_new("join", join, &s);
    qrdma_expect(s.a.cq, 1, RDMA_WC_SUCCESS);
    qatomic_set(&s.enough, true);
    g_thread_join(thread);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        GTestDataFunc test;
    } tests[] = {
        { "answer-waits", test_answer_waits },
        { "no-answer-waits", test_no_answer_waits },
        { "frames-without-end", test_frames_without_end },
        { "blocked-wire", test_blocked_wire },
    };
    int ret;

    g_test_init(&argc, &argv, NULL);
    shm_dir = g_dir_make_tmp("rdma-stall-XXXXXX", NULL);
    g_assert_nonnull(shm_dir);
    for (int i = 0; i < ARRAY_SIZE(tests); i++) {
        for (int j = 0; j < ARRAY_SIZE(ways); j++) {
            g_autofree char *path = g_strdup_printf(
                "/rdma-roce-stall/%s/%s", tests[i].name, ways[j].name);

            qtest_add_data_func(path, &ways[j], tests[i].test);
        }
    }
    ret = g_test_run();
    g_rmdir(shm_dir);
    g_free(shm_dir);
    return ret;
}
