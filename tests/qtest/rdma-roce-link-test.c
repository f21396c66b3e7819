/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The port follows the connection of a stream netdev, and the address of its
 * NIC. Frames of a stream stay whole, whatever happens while one is half
 * written. The test holds the other end of the connection.
 */
#include "qemu/osdep.h"
#include <netinet/tcp.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "libqos/virtio-rdma.h"
#include "rdma/wire.h"

#define DEVICE "virtio-rdma-pci,id=rdma,netdev=n0,addr=4,max-qp=4,max-cq=4," \
               "max-mr=8,max-pd=4"
#define RDMA_SLOT 4
#define NIC_SLOT 3
#define NIC_MAC "52:54:00:aa:bb:01"
#define MR_SIZE 8192

typedef struct Port {
    uint16_t tcp_port;
    int listener;                   /* -1: no one can connect */
    int fd;                         /* -1: not connected */
    QRdmaHost *host;
    QRdma *dev;
    QRdmaMr *mr;
    QRdmaCq *cq;
    QRdmaQp *qp;
    uint32_t max_len;               /* bytes of a datagram */
    unsigned posted;
    unsigned done;
} Port;

/* Short segments and a short queue: a few frames fill the connection. */
static void port_listen(Port *p)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons(p->tcp_port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    socklen_t len = sizeof(addr);
    int bytes = 4096, segment = 1000, reuse = 1;

    /* QEMU, which starts later, must not inherit the listener */
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    g_assert_cmpint(p->listener, >=, 0);
    g_assert_cmpint(setsockopt(p->listener, SOL_SOCKET, SO_RCVBUF, &bytes,
                               sizeof(bytes)), ==, 0);
    g_assert_cmpint(setsockopt(p->listener, IPPROTO_TCP, TCP_MAXSEG, &segment,
                               sizeof(segment)), ==, 0);
    g_assert_cmpint(setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &reuse,
                               sizeof(reuse)), ==, 0);
    g_assert_cmpint(bind(p->listener, (struct sockaddr *)&addr, len), ==, 0);
    g_assert_cmpint(listen(p->listener, 1), ==, 0);
    g_assert_cmpint(getsockname(p->listener, (struct sockaddr *)&addr, &len),
                    ==, 0);
    p->tcp_port = ntohs(addr.sin_port);
}

static void port_accept(Port *p)
{
    GPollFD pfd = { .events = G_IO_IN };

    if (p->listener < 0) {
        port_listen(p);
    }
    pfd.fd = p->listener;
    g_assert_cmpint(g_poll(&pfd, 1, SOON_MS), ==, 1);
    p->fd = accept(p->listener, NULL, NULL);
    g_assert_cmpint(p->fd, >=, 0);
}

/*
 * Close the listener, too, or the port could be up again before the test sees
 * it down.
 */
static void port_disconnect(Port *p)
{
    close(p->listener);
    p->listener = -1;
    close(p->fd);
    p->fd = -1;
}

static bool port_is_up(Port *p)
{
    struct virtio_rdma_query_port_rsp rsp;

    assert_ok(qrdma_query_port(p->dev, 1, &rsp));
    return rsp.state == RDMA_PORT_ACTIVE;
}

#define STREAM "stream,server=off,addr.type=inet,addr.host=127.0.0.1," \
               "reconnect-ms=10,addr.port="
#define SOCKET "socket,connect=127.0.0.1:"

static void port_start(Port *p, const char *netdev, const char *nic)
{
    QRdmaPd *pd;

    port_listen(p);
    p->max_len = 4096;
    p->host = qrdma_host_start("-netdev %s%u,id=n0 %s -device " DEVICE,
                               netdev, p->tcp_port, nic);
    p->dev = qrdma_open(p->host, QPCI_DEVFN(RDMA_SLOT, 0));
    qrdma_start(p->dev, 0, 0);
    qrdma_setup_gids(p->dev, 1);
    pd = qrdma_alloc_pd(p->dev);
    p->mr = qrdma_reg_mr(pd, 0x100000, MR_SIZE, RDMA_ACCESS_LOCAL_WRITE);
    p->cq = qrdma_create_cq(p->dev, 40);
    p->qp = qrdma_create_qp(pd, p->cq, p->cq, RDMA_QPT_UD);
    qrdma_start_ud(p->qp, QRDMA_QKEY);
    port_accept(p);
    qrdma_wait_until(p->dev, port_is_up(p));
}

static void port_stop(Port *p)
{
    qrdma_host_stop(p->host);
    if (p->fd >= 0) {
        close(p->fd);
    }
    if (p->listener >= 0) {
        close(p->listener);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Port, port_stop)

/* A datagram to an absent peer; each is shorter than the one before. */
static void port_post(Port *p)
{
    RdmaSge sge = qrdma_sge(p->mr, 0, p->max_len - p->posted * 4 % 512);
    RdmaSendWr wr = {
        .wr_id = p->posted,
        .opcode = RDMA_WR_SEND,
        .send_flags = RDMA_SEND_SIGNALED,
        .num_sge = 1,
        .sg_list = &sge,
        .wr.ud = {
            .remote_qpn = 2,
            .remote_qkey = QRDMA_QKEY,
            .av = {
                .dgid = { [10] = 0xff, 0xff, 10, 9, 9, 9 },
                .dmac = { 0x52, 0x54, 0, 9, 9, 9 },
                .sgid_index = 1,
                .port_num = 1,
            },
        },
    };

    qrdma_post_send(p->qp, &wr);
    p->posted++;
}

/* Take all completions. */
static void port_reap(Port *p)
{
    RdmaWc wc;

    while (qrdma_poll_cq(p->cq, &wc)) {
        g_assert_cmpuint(wc.wr_id, ==, p->done);
        g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
        p->done++;
    }
    qrdma_reap(&p->qp->sq);
}

static void port_finish(Port *p)
{
    qrdma_wait_until(p->dev, (port_reap(p), p->done == p->posted));
}

/* Send until the connection takes no more. */
static void port_fill(Port *p)
{
    do {
        g_assert_cmpuint(p->posted, <, 2000);
        port_post(p);
        qrdma_settle(p->dev);
        port_reap(p);
    } while (p->done == p->posted);
}

static bool read_all(Port *p, void *buf, size_t size, int timeout_ms)
{
    GPollFD pfd = { .fd = p->fd, .events = G_IO_IN };
    size_t got = 0;

    while (got < size) {
        ssize_t n;

        if (g_poll(&pfd, 1, got ? SOON_MS : timeout_ms) == 0) {
            g_assert_cmpuint(got, ==, 0);
            return false;
        }
        n = read(p->fd, (uint8_t *)buf + got, size - got);
        g_assert_cmpint(n, >, 0);
        got += n;
    }
    return true;
}

/* The next frame's size, or 0 if none comes. */
static size_t port_recv(Port *p, uint8_t frame[FRAME_MAX], int timeout_ms)
{
    uint8_t head[4];
    uint32_t size;

    if (!read_all(p, head, sizeof(head), timeout_ms)) {
        return 0;
    }
    size = ldl_be_p(head);
    g_assert_cmpuint(size, >=, 60);
    g_assert_cmpuint(size, <=, FRAME_MAX);
    g_assert_true(read_all(p, frame, size, SOON_MS));
    /* IP and UDP agree on its length */
    g_assert_cmpuint(lduw_be_p(frame + 16), ==, size - 14);
    g_assert_cmpuint(lduw_be_p(frame + 38), ==, size - 34);
    return size;
}

static bool is_ours(const uint8_t *frame)
{
    static const uint8_t dmac[6] = { 0x52, 0x54, 0, 9, 9, 9 };

    return memcmp(frame, dmac, 6) == 0 && lduw_be_p(frame + 36) == 4791;
}

/* Read all frames, and assert that each is whole. */
static void port_drain(Port *p)
{
    uint8_t frame[FRAME_MAX];

    while (port_recv(p, frame, NEVER_MS)) {
        g_assert_true(is_ours(frame));
    }
}

static void port_expect_ours(Port *p)
{
    uint8_t frame[FRAME_MAX];

    g_assert_cmpuint(port_recv(p, frame, SOON_MS), >, 0);
    g_assert_true(is_ours(frame));
}

/* Tests */

static void check_port_follows(const char *nic)
{
    g_auto(Port) p = {};

    port_start(&p, STREAM, nic);
    for (int i = 0; i < 2; i++) {
        port_disconnect(&p);
        qrdma_wait_until(p.dev, !port_is_up(&p));
        /* Without a connection */
        port_post(&p);
        port_finish(&p);
        port_accept(&p);
        qrdma_wait_until(p.dev, port_is_up(&p));
        port_post(&p);
        port_expect_ours(&p);
        port_finish(&p);
    }
}

static void test_port_follows_the_connection(void)
{
    check_port_follows("");
    check_port_follows("-device virtio-net-pci,netdev=n0,host_mtu=9000");
}

/* A socket netdev does not reconnect by itself. */
static void test_port_follows_a_socket(void)
{
    g_auto(Port) p = {};

    port_start(&p, SOCKET, "");
    port_disconnect(&p);
    qrdma_wait_until(p.dev, !port_is_up(&p));
}

static void test_server_is_down_before_its_first_client(void)
{
    g_autofree char *dir = g_dir_make_tmp("roce-link-XXXXXX", NULL);
    g_autofree char *path = g_strdup_printf("%s/s", dir);
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    Port p = { .fd = -1 };

    strcpy(addr.sun_path, path);
    p.host = qrdma_host_start("-netdev stream,id=n0,server=on,addr.type=unix,"
                              "addr.path=%s -device " DEVICE, path);
    p.dev = qrdma_open(p.host, QPCI_DEVFN(RDMA_SLOT, 0));
    qrdma_start(p.dev, 0, 0);
    g_assert_false(port_is_up(&p));
    for (int i = 0; i < 2; i++) {
        p.fd = socket(AF_UNIX, SOCK_STREAM, 0);
        g_assert_cmpint(connect(p.fd, (struct sockaddr *)&addr, sizeof(addr)),
                        ==, 0);
        qrdma_wait_until(p.dev, port_is_up(&p));
        close(p.fd);
        qrdma_wait_until(p.dev, !port_is_up(&p));
    }
    qrdma_host_stop(p.host);
    unlink(path);
    rmdir(dir);
}

/* The next connection starts with a whole frame. */
static void check_connection_lost(const char *nic)
{
    g_auto(Port) p = {};

    port_start(&p, STREAM, nic);
    for (int i = 0; i < 2; i++) {
        port_fill(&p);
        port_disconnect(&p);
        port_accept(&p);
        qrdma_wait_until(p.dev, port_is_up(&p));
        port_finish(&p);
        port_drain(&p);
        port_post(&p);
        port_expect_ours(&p);
        port_finish(&p);
    }
}

static void test_connection_lost_within_a_frame(void)
{
    check_connection_lost("");
    check_connection_lost("-device virtio-net-pci,netdev=n0,host_mtu=9000");
}

/* The test for a socket netdev; rdma-stream-test has the one for a stream. */
static void test_stop_within_a_frame(void)
{
    g_auto(Port) p = {};

    port_start(&p, SOCKET, "");
    for (int i = 0; i < 2; i++) {
        port_fill(&p);
        /* QEMU drops the frames that wait */
        qtest_qmp_assert_success(p.host->qts, "{'execute': 'stop'}");
        qtest_qmp_assert_success(p.host->qts, "{'execute': 'cont'}");
        port_drain(&p);
        port_finish(&p);
        port_post(&p);
        port_expect_ours(&p);
        port_finish(&p);
    }
}

/* Registers of the e1000: the low and the high half of its address */
#define E1000_RAL 0x5400
#define E1000_RAH 0x5404

static void assert_sends_as(Port *p, const uint8_t *mac)
{
    uint8_t frame[FRAME_MAX];

    port_post(p);
    g_assert_cmpuint(port_recv(p, frame, SOON_MS), >, 0);
    port_finish(p);
    g_assert_cmpmem(frame + 6, 6, mac, 6);
    for (int i = 0; i < 6; i++) {
        g_assert_cmphex(qrdma_config_read(p->dev,
                        offsetof(struct virtio_rdma_config, mac) + i, 1), ==,
                        mac[i]);
    }
}

/* The guest gives its NIC another address. */
static void test_address_follows_the_nics(void)
{
    static const uint8_t first[] = { 0x52, 0x54, 0x00, 0xaa, 0xbb, 0x01 };
    static const uint8_t second[] = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 };
    QPCIDevice *nic;
    g_auto(Port) p = {};
    QPCIBar bar;

    port_start(&p, STREAM, "-device e1000,netdev=n0,addr=3,mac=" NIC_MAC);
    nic = qpci_device_find(p.host->bus, QPCI_DEVFN(NIC_SLOT, 0));
    g_assert_nonnull(nic);
    qpci_device_enable(nic);
    bar = qpci_iomap(nic, 0, NULL);
    p.max_len = 1024;
    assert_sends_as(&p, first);
    qpci_io_writel(nic, bar, E1000_RAL, ldl_le_p(second));
    qpci_io_writel(nic, bar, E1000_RAH, lduw_le_p(second + 4) | 1u << 31);
    assert_sends_as(&p, second);
    g_free(nic);
}

static const QRdmaTest link_tests[] = {
    { "port-follows-the-connection", test_port_follows_the_connection },
    { "port-follows-a-socket", test_port_follows_a_socket },
    { "server-is-down-before-its-first-client",
      test_server_is_down_before_its_first_client },
    { "connection-lost-within-a-frame", test_connection_lost_within_a_frame },
    { "stop-within-a-frame", test_stop_within_a_frame },
    { "address-follows-the-nics", test_address_follows_the_nics },
    {}
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qrdma_add_tests("/rdma-roce-link/", link_tests);
    return g_test_run();
}
