/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Netdevs that are datagram sockets: one system call sends or receives many
 * frames. The tests check the order of frames, full sockets, sockets that
 * refuse a frame, and that frames of one call are acknowledged together. The
 * test holds the other end, and decides what the system calls do.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <sys/wait.h>
#include "qemu/bswap.h"
#include "qemu/atomic.h"
#include "libqos/virtio-rdma.h"
#include "rdma/net-calls.h"
#include "rdma/nic.h"
#include "rdma/wire.h"

#define DEVICE "virtio-rdma-pci,max-qp=4,max-cq=4,max-mr=8,max-pd=4," \
               "netdev=n0,addr=4"
#define NIC "virtio-net-pci,netdev=n0,addr=3,mac=52:54:00:aa:bb:01"
#define NIC_SLOT 3
#define RDMA_SLOT 4

/* Frames of one message, fewer than a Unix socket's queue has room for */
#define BATCH 8
#define PAYLOAD 256
/* More frames than the queue has room for */
#define MANY 30
#define ROUNDS 10
#define FIRST_PSN 5

/* Ethernet, IPv4, UDP; then the BTH: opcode, and the PSN at its end */
#define BTH (14 + 20 + 8)
#define RC_ACK 0x11

typedef struct Node {
    Wire wire;                      /* of a dgram netdev */
    int fd;                         /* the test's end */
    QRdmaHost *host;
    QRdma *dev;
    QRdmaMr *mr;
    QRdmaCq *cq;
    QRdmaQp *qp;
    uint32_t psn;                   /* the next on the wire */
    uint32_t rkey;                  /* of the receiver */
} Node;

static NetCalls *calls;

/* A machine with one port on @netdev; @args: more options */
static void node_start(Node *n, int id, RdmaQpType type, const char *netdev,
                       const char *args)
{
    QRdmaPd *pd;

    n->host = qrdma_host_start("-netdev %s,id=n0 %s -device " DEVICE, netdev,
                               args);
    n->dev = qrdma_open(n->host, QPCI_DEVFN(RDMA_SLOT, 0));
    qrdma_start(n->dev, 0, 0);
    qrdma_setup_gids(n->dev, id);
    pd = qrdma_alloc_pd(n->dev);
    n->mr = qrdma_reg_mr(pd, 0x100000, MANY * PAYLOAD,
                         RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE);
    n->cq = qrdma_create_cq(n->dev, 64);
    n->qp = qrdma_create_qp(pd, n->cq, n->cq, type);
    n->psn = FIRST_PSN;
}

/* With a Unix socket, as "dgram" has it */
static Node node_start_dgram(int id, RdmaQpType type, const char *args)
{
    Node n = {};

    wire_open(&n.wire);
    n.fd = n.wire.fd;
    node_start(&n, id, type, n.wire.netdev, args);
    return n;
}

static int udp_socket(struct sockaddr_in *addr)
{
    socklen_t len = sizeof(*addr);
    int reuse = 1, fd = socket(AF_INET, SOCK_DGRAM, 0);

    *addr = (struct sockaddr_in) {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse,
                               sizeof(reuse)), ==, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)addr, len), ==, 0);
    g_assert_cmpint(getsockname(fd, (struct sockaddr *)addr, &len), ==, 0);
    return fd;
}

/* With a UDP socket, as "socket" has it */
static Node node_start_udp(int id, RdmaQpType type)
{
    Node n = {};
    g_autofree char *netdev = NULL;
    struct sockaddr_in here, there;
    int other = udp_socket(&there);

    n.fd = udp_socket(&here);
    netdev = g_strdup_printf("socket,udp=127.0.0.1:%u,localaddr=127.0.0.1:%u",
                             ntohs(here.sin_port), ntohs(there.sin_port));
    node_start(&n, id, type, netdev, "");
    close(other);
    return n;
}

static void node_stop(Node *n)
{
    qrdma_host_stop(n->host);
    if (n->wire.dir) {
        wire_close(&n->wire);
    } else {
        close(n->fd);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Node, node_stop)

/* Connect to a peer that is not there. */
static void node_to_absent(Node *n)
{
    QRdmaPath path = { .mtu = RDMA_MTU_256, .gid_index = 1 };

    qrdma_connect_absent(n->qp, &path, FIRST_PSN);
}

/* One message; its frames are sent together. */
static void node_post(Node *n, uint64_t wr_id, unsigned frames)
{
    RdmaSge sge = qrdma_sge(n->mr, 0, frames * PAYLOAD);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, wr_id, &sge, n->mr, 0);

    wr.wr.rdma.rkey = n->rkey;
    qrdma_post_send(n->qp, &wr);
}

static size_t node_recv(Node *n, uint8_t frame[FRAME_MAX], int timeout_ms)
{
    Wire wire = { .fd = n->fd };

    return wire_recv(&wire, frame, timeout_ms);
}

/* The next frame's size, or 0 if QEMU sends no more now that there is room. */
static size_t node_drain(Node *n, uint8_t frame[FRAME_MAX])
{
    size_t size = node_recv(n, frame, 0);

    if (!size) {
        qrdma_settle(n->dev);
        size = node_recv(n, frame, 0);
    }
    return size;
}

static uint32_t psn_of(const uint8_t *frame)
{
    return ldl_be_p(frame + BTH + 8) & 0xffffff;
}

/* The next frames, except the one with PSN @lost. */
static void node_expect(Node *n, unsigned count, uint32_t lost)
{
    uint8_t frame[FRAME_MAX];

    for (unsigned i = 0; i < count; i++, n->psn++) {
        if (n->psn != lost) {
            g_assert_cmpuint(node_recv(n, frame, SOON_MS), >, PAYLOAD);
            g_assert_cmpuint(psn_of(frame), ==, n->psn);
        }
    }
    g_assert_cmpuint(node_recv(n, frame, NEVER_MS), ==, 0);
}

/* Stop the node's process until node_thaw(). */
static void node_freeze(Node *n)
{
    pid_t pid = qtest_pid(n->host->qts);
    int status;

    g_assert_cmpint(kill(pid, SIGSTOP), ==, 0);
    g_assert_cmpint(waitpid(pid, &status, WUNTRACED), ==, pid);
    g_assert_true(WIFSTOPPED(status));
}

static void node_thaw(Node *n)
{
    g_assert_cmpint(kill(qtest_pid(n->host->qts), SIGCONT), ==, 0);
}

/* Sending */

static void check_one_call(Node *n)
{
    node_to_absent(n);
    for (int i = 0; i < ROUNDS; i++) {
        net_calls_reset(0, 0);
        node_post(n, i, BATCH);
        node_expect(n, BATCH, 0);
        qrdma_expect(n->cq, i, RDMA_WC_SUCCESS);
        g_assert_cmpuint(qatomic_read(&calls->sends), ==, 1);
        g_assert_cmpuint(qatomic_read(&calls->frames_sent), ==, BATCH);
    }
    node_stop(n);
}

static void test_a_message_is_sent_by_one_call(void)
{
    Node n, udp;

    calls = net_calls_begin();
    n = node_start_dgram(1, RDMA_QPT_UC, "");
    check_one_call(&n);
    udp = node_start_udp(1, RDMA_QPT_UC);
    check_one_call(&udp);
    net_calls_end();
}

/* The socket takes only some frames of a message until the peer reads them. */
static void test_order_while_the_peer_does_not_read(void)
{
    g_auto(Node) n = node_start_dgram(1, RDMA_QPT_UC, "");

    node_to_absent(&n);
    for (int i = 0; i < ROUNDS; i++) {
        node_post(&n, 2 * i, MANY);
        node_post(&n, 2 * i + 1, MANY);
        qrdma_settle(n.dev);
        node_expect(&n, 2 * MANY, 0);
        qrdma_expect(n.cq, 2 * i, RDMA_WC_SUCCESS);
        qrdma_expect(n.cq, 2 * i + 1, RDMA_WC_SUCCESS);
    }
}

/* QEMU drops the frame that waits in the netdev's queue, and no other. */
static void test_stop_while_the_peer_does_not_read(void)
{
    uint8_t frame[FRAME_MAX];
    uint32_t psn = FIRST_PSN;
    unsigned lost = 0;
    g_auto(Node) n = node_start_dgram(1, RDMA_QPT_UC, "");

    node_to_absent(&n);
    for (int i = 0; i < ROUNDS; i++) {
        node_post(&n, 2 * i, MANY);
        node_post(&n, 2 * i + 1, MANY);
        qrdma_settle(n.dev);
        qtest_qmp_assert_success(n.host->qts, "{'execute': 'stop'}");
        qtest_qmp_assert_success(n.host->qts, "{'execute': 'cont'}");
        while (node_drain(&n, frame)) {
            g_assert_cmpuint(psn_of(frame), >=, psn);
            lost += psn_of(frame) - psn;
            psn = psn_of(frame) + 1;
        }
        qrdma_expect(n.cq, 2 * i, RDMA_WC_SUCCESS);
        qrdma_expect(n.cq, 2 * i + 1, RDMA_WC_SUCCESS);
    }
    lost += FIRST_PSN + ROUNDS * 2 * MANY - psn;
    g_assert_cmpuint(lost, <=, ROUNDS);
}

/* The first, one in the middle, the last one; after it, nothing fails. */
static const unsigned where[] = { 0, 3, BATCH - 1, BATCH };

static void test_full_during_a_batch(void)
{
    Node n;

    calls = net_calls_begin();
    n = node_start_dgram(1, RDMA_QPT_UC, "");
    node_to_absent(&n);
    for (int i = 0; i < ARRAY_SIZE(where); i++) {
        net_calls_reset(where[i], EAGAIN);
        node_post(&n, i, BATCH);
        node_expect(&n, BATCH, 0);
        qrdma_expect(n.cq, i, RDMA_WC_SUCCESS);
    }
    node_stop(&n);
    net_calls_end();
}

/* The refused frame is lost, and no other. */
static void test_error_during_a_batch(void)
{
    static const int errors[] = { EMSGSIZE, ECONNREFUSED, ENOBUFS, EPERM };
    Node n;

    calls = net_calls_begin();
    n = node_start_dgram(1, RDMA_QPT_UC, "");
    node_to_absent(&n);
    for (int i = 0; i < ARRAY_SIZE(where); i++) {
        for (int j = 0; j < ARRAY_SIZE(errors); j++) {
            net_calls_reset(where[i], errors[j]);
            node_post(&n, 10 * i + j, BATCH);
            node_expect(&n, BATCH, where[i] < BATCH ? n.psn + where[i] : 0);
            qrdma_expect(n.cq, 10 * i + j, RDMA_WC_SUCCESS);
        }
    }
    node_stop(&n);
    net_calls_end();
}

/*
 * Frames to an absent peer are lost. A peer that comes later gets the frames
 * that are sent from then on.
 */
static void test_peer_that_is_away(void)
{
    g_auto(Node) n = node_start_dgram(1, RDMA_QPT_UC, "");

    node_to_absent(&n);
    close(n.fd);
    for (int i = 0; i < 2; i++) {
        /* The socket's file without a socket, and then no file */
        node_post(&n, i, MANY);
        qrdma_expect(n.cq, i, RDMA_WC_SUCCESS);
        n.psn += MANY;
        g_unlink(n.wire.from.sun_path);
    }
    n.fd = n.wire.fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    g_assert_cmpint(bind(n.fd, (struct sockaddr *)&n.wire.from,
                         sizeof(n.wire.from)), ==, 0);
    node_post(&n, 2, MANY);
    node_expect(&n, MANY, 0);
    qrdma_expect(n.cq, 2, RDMA_WC_SUCCESS);
}

/* Receiving */

/* Get messages of @from, of one frame each. */
static void catch_messages(Node *from, uint8_t frames[BATCH][FRAME_MAX],
                           size_t sizes[BATCH])
{
    for (int i = 0; i < BATCH; i++) {
        node_post(from, i, 1);
        sizes[i] = node_recv(from, frames[i], SOON_MS);
        g_assert_cmpuint(sizes[i], >, PAYLOAD);
    }
}

/* Assert that one acknowledgement covers all messages. */
static void assert_one_ack(const uint8_t *frame)
{
    g_assert_cmphex(frame[BTH], ==, RC_ACK);
    g_assert_cmpuint(psn_of(frame), ==, FIRST_PSN + BATCH - 1);
}

static void connect_nodes(Node *from, Node *to)
{
    QRdmaPath path = {
        .mtu = RDMA_MTU_256,
        .gid_index = 1,
        .psn_a = FIRST_PSN,
        .psn_b = FIRST_PSN,
        .access = RDMA_ACCESS_REMOTE_WRITE,
    };

    qrdma_connect(from->qp, to->qp, &path);
    from->rkey = to->mr->rkey;
}

static void check_dgrams_together(const char *nic)
{
    uint8_t frames[BATCH][FRAME_MAX], ack[FRAME_MAX];
    size_t sizes[BATCH];
    Node b = node_start_dgram(2, RDMA_QPT_RC, "");
    Node a;

    calls = net_calls_begin();
    a = node_start_dgram(1, RDMA_QPT_RC, nic);
    connect_nodes(&b, &a);
    catch_messages(&b, frames, sizes);
    node_freeze(&a);
    net_calls_reset(0, 0);
    for (int i = 0; i < BATCH; i++) {
        wire_send(&a.wire, frames[i], sizes[i]);
    }
    node_thaw(&a);
    g_assert_cmpuint(node_recv(&a, ack, SOON_MS), >, 0);
    g_assert_cmpuint(qatomic_read(&calls->recvs), ==, 1);
    g_assert_cmpuint(qatomic_read(&calls->frames_received), ==, BATCH);
    assert_one_ack(ack);
    g_assert_cmpuint(node_recv(&a, ack, NEVER_MS), ==, 0);
    node_stop(&a);
    net_calls_end();
    node_stop(&b);
}

static void test_what_one_call_brings_is_answered_together(void)
{
    check_dgrams_together("");
    check_dgrams_together("-device " NIC ",host_mtu=9000");
}

static void check_read_together(const char *type, const char *fd_arg,
                                const char *nic)
{
    uint8_t frames[BATCH][FRAME_MAX], ack[FRAME_MAX + 4];
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autofree char *netdev = NULL;
    GPollFD pfd = { .events = G_IO_IN };
    size_t sizes[BATCH];
    g_auto(Node) a = {}, b = {};
    ssize_t got;
    int fds[2];

    b = node_start_dgram(2, RDMA_QPT_RC, "");
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    netdev = g_strdup_printf("%s,%s%d", type, fd_arg, fds[1]);
    a.fd = pfd.fd = fds[0];
    node_start(&a, 1, RDMA_QPT_RC, netdev, nic);
    close(fds[1]);
    connect_nodes(&b, &a);
    catch_messages(&b, frames, sizes);
    for (int i = 0; i < BATCH; i++) {
        uint32_t len = cpu_to_be32(sizes[i]);

        g_byte_array_append(all, (uint8_t *)&len, sizeof(len));
        g_byte_array_append(all, frames[i], sizes[i]);
    }
    g_assert_cmpint(send(a.fd, all->data, all->len, 0), ==, all->len);
    g_assert_cmpint(g_poll(&pfd, 1, SOON_MS), ==, 1);
    got = recv(a.fd, ack, sizeof(ack), 0);
    /* and no frame after the acknowledgement */
    g_assert_cmpint(got, ==, 4 + ldl_be_p(ack));
    assert_one_ack(ack + 4);
    g_assert_cmpint(g_poll(&pfd, 1, NEVER_MS), ==, 0);
}

static void test_what_one_read_brings_is_answered_together(void)
{
    static const char stream[] = "stream,server=off,addr.type=fd";

    check_read_together(stream, "addr.str=", "");
    check_read_together(stream, "addr.str=",
                        "-device " NIC ",host_mtu=9000");
    check_read_together("socket", "fd=", "");
}

static void nic_expect(Nic *nic, int first, int last)
{
    uint8_t want[FRAME_MAX], got[FRAME_MAX];

    for (int i = first; i <= last; i++) {
        size_t size = make_udp(want, i);

        g_assert_cmpmem(want, size, got, nic_recv(nic, got));
    }
}

/* Tagged @first to @last */
static void send_udp(Node *n, int first, int last)
{
    uint8_t frame[FRAME_MAX];

    for (int i = first; i <= last; i++) {
        wire_send(&n->wire, frame, make_udp(frame, i));
    }
}

/*
 * Frames without a buffer of the NIC wait in order. While frames wait, the
 * netdev reads no more.
 */
static void test_nic_without_buffers(void)
{
    Node n = {};
    Nic nic;

    calls = net_calls_begin();
    n = node_start_dgram(1, RDMA_QPT_RC, "-device " NIC);
    nic_start(&nic, n.host, NIC_SLOT);
    for (int i = 1; i <= NIC_BUFS; i++) {
        send_udp(&n, i, i);
        nic_expect(&nic, i, i);
    }
    node_freeze(&n);
    net_calls_reset(0, 0);
    send_udp(&n, 17, 24);
    node_thaw(&n);
    qrdma_wait_until(n.dev, qatomic_read(&calls->frames_received) == 8);
    send_udp(&n, 25, 27);
    for (int i = 17; i <= 23; i++) {
        nic_add_buffer(&nic);
        nic_expect(&nic, i, i);
        qrdma_settle(n.dev);
        g_assert_cmpuint(qatomic_read(&calls->frames_received), ==, 8);
    }
    for (int i = 24; i <= 27; i++) {
        nic_add_buffer(&nic);
        nic_expect(&nic, i, i);
    }
    nic_stop(&nic);
    node_stop(&n);
    net_calls_end();
}

/* An ACK reports the receives of a virtqueue: 12 is the code below 15. */
static void test_credits_of_a_virtqueue(void)
{
    uint8_t frame[FRAME_MAX];
    size_t size;
    g_auto(Node) b = node_start_dgram(2, RDMA_QPT_RC, "");
    g_auto(Node) a = node_start_dgram(1, RDMA_QPT_RC, "");
    RdmaSge sge;

    connect_nodes(&b, &a);
    for (int i = 0; i < 16; i++) {
        sge = qrdma_sge(a.mr, 0, PAYLOAD);
        qrdma_recv(a.qp, i, &sge);
    }
    sge = qrdma_sge(b.mr, 0, PAYLOAD);
    qrdma_post(b.qp, qrdma_wr(RDMA_WR_SEND, 1, &sge));
    size = node_recv(&b, frame, SOON_MS);
    g_assert_cmpuint(size, >, PAYLOAD);
    wire_send(&a.wire, frame, size);
    g_assert_cmpuint(node_recv(&a, frame, SOON_MS), >, 0);
    g_assert_cmphex(frame[BTH], ==, RC_ACK);
    g_assert_cmphex(frame[BTH + 12], ==, 7);
}

static const QRdmaTest dgram_tests[] = {
    { "credits-of-a-virtqueue", test_credits_of_a_virtqueue },
    { "a-message-is-sent-by-one-call", test_a_message_is_sent_by_one_call },
    { "order-while-the-peer-does-not-read",
      test_order_while_the_peer_does_not_read },
    { "stop-while-the-peer-does-not-read",
      test_stop_while_the_peer_does_not_read },
    { "full-during-a-batch", test_full_during_a_batch },
    { "error-during-a-batch", test_error_during_a_batch },
    { "peer-that-is-away", test_peer_that_is_away },
    { "what-one-call-brings-is-answered-together",
      test_what_one_call_brings_is_answered_together },
    { "what-one-read-brings-is-answered-together",
      test_what_one_read_brings_is_answered_together },
    { "nic-without-buffers", test_nic_without_buffers },
    {}
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("/rdma-dgram/", dgram_tests);
    return g_test_run();
}
