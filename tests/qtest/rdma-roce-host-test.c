/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-roce on netdevs that lead to the host: user and tap. The host is not a
 * RoCE peer, but it sees the frames, and may send some.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include "qemu/bswap.h"
#include "libqos/virtio-rdma.h"

#define MR_SIZE 8192
#define LEN 64
#define ROCE_PORT 4791
#define UD_SEND_ONLY 0x64
/* Ethernet, IPv4, UDP; BTH, DETH; GRH */
#define FRAME_HDR (14 + 20 + 8)
#define IB_HDR (12 + 8)
#define GRH_LEN 40
#define ICRC_LEN 4
#define HOST_GID 2
#define SOON_MS 10000

/* The address that slirp gives to its guest, and its own MAC address */
static const uint8_t guest_ip[4] = { 10, 0, 2, 15 };
static const uint8_t slirp_mac[6] = { 0x52, 0x55, 10, 0, 2, 2 };

typedef struct Node {
    QRdmaHost *host;
    QRdma *dev;
    QRdmaPd *pd;
    QRdmaMr *mr;
    QRdmaCq *scq;
    QRdmaCq *rcq;
    QRdmaQp *ud;
    QRdmaQp *rc[2];                 /* connected to each other */
} Node;

static void gid_of(uint8_t gid[RDMA_GID_LEN], const uint8_t ip[4])
{
    memset(gid, 0, RDMA_GID_LEN);
    memset(gid + 10, 0xff, 2);
    memcpy(gid + 12, ip, 4);
}

static void add_address(Node *n, uint16_t index, const uint8_t ip[4])
{
    uint8_t gid[RDMA_GID_LEN];

    gid_of(gid, ip);
    assert_ok(qrdma_add_gid(n->dev, index, gid));
}

/* Start a machine with the device on netdev n0, which @args define. */
static Node node_start(const char *args)
{
    Node n = {
        .host = qrdma_host_start("%s -device virtio-rdma-pci,max-qp=6,"
                                 "max-cq=4,max-mr=8,max-pd=4,netdev=n0,"
                                 "addr=4", args),
    };

    n.dev = qrdma_open(n.host, QPCI_DEVFN(4, 0));
    qrdma_start(n.dev, 0, 0);
    qrdma_setup_gids(n.dev, 1);
    add_address(&n, HOST_GID, guest_ip);
    n.pd = qrdma_alloc_pd(n.dev);
    n.mr = qrdma_reg_mr(n.pd, 0x100000, MR_SIZE,
                        RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE);
    n.scq = qrdma_create_cq(n.dev, 16);
    n.rcq = qrdma_create_cq(n.dev, 16);
    n.ud = qrdma_create_qp(n.pd, n.scq, n.rcq, RDMA_QPT_UD);
    qrdma_start_ud(n.ud, QRDMA_QKEY);
    for (int i = 0; i < 2; i++) {
        n.rc[i] = qrdma_create_qp(n.pd, n.scq, n.rcq, RDMA_QPT_RC);
    }
    qrdma_connect(n.rc[0], n.rc[1], NULL);
    return n;
}

static void node_stop(Node *n)
{
    qrdma_host_stop(n->host);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Node, node_stop)

/* The device talks to itself whatever the netdev is. */
static void check_loopback(Node *n)
{
    RdmaSge sge = qrdma_sge(n->mr, 0, 3000);
    RdmaSendWr wr = qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 7, &sge, n->mr, 4096);

    qrdma_mr_fill(n->mr, 0, 3000, 55);
    qrdma_mr_fill(n->mr, 4096, 3000, 0);
    qrdma_post_send(n->rc[0], &wr);
    qrdma_expect(n->scq, 7, RDMA_WC_SUCCESS);
    qrdma_mr_check(n->mr, 4096, 3000, 55);
}

/* A datagram of LEN bytes, which is sent whether a peer takes it or not. */
static void send_datagram(Node *n, const uint8_t dest[4], uint8_t seed)
{
    RdmaSge sge = qrdma_sge(n->mr, 0, LEN);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, n->ud, 1);

    wr.wr.ud.av.sgid_index = HOST_GID;
    gid_of(wr.wr.ud.av.dgid, dest);
    memcpy(wr.wr.ud.av.dmac, slirp_mac, sizeof(slirp_mac));
    qrdma_mr_fill(n->mr, 0, LEN, seed);
    qrdma_post_send(n->ud, &wr);
    qrdma_expect(n->scq, 1, RDMA_WC_SUCCESS);
}

/* Check the UDP payload of send_datagram(). */
static void check_datagram(Node *n, const uint8_t *p, size_t size)
{
    uint8_t want[LEN];

    g_assert_cmpuint(size, ==, IB_HDR + LEN + ICRC_LEN);
    g_assert_cmphex(p[0], ==, UD_SEND_ONLY);
    g_assert_cmphex(ldl_be_p(p + 4) & 0xffffff, ==, n->ud->qpn);
    g_assert_cmphex(ldl_be_p(p + 12), ==, QRDMA_QKEY);
    qrdma_mr_read(n->mr, 0, want, LEN);
    g_assert_cmpmem(p + IB_HDR, LEN, want, LEN);
}

static size_t receive(int fd, uint8_t *buf, size_t room)
{
    GPollFD pfd = { .fd = fd, .events = G_IO_IN };
    ssize_t size;

    g_assert_cmpint(g_poll(&pfd, 1, SOON_MS), ==, 1);
    size = recv(fd, buf, room, 0);
    g_assert_cmpint(size, >, 0);
    return size;
}

/* Each test program has a loopback address of its own. */
static struct sockaddr_in loopback_address(uint8_t last)
{
    uint32_t ip = 0x7f000000 | (getpid() & 0xffff) << 8 | last;

    return (struct sockaddr_in) {
        .sin_family = AF_INET,
        .sin_port = htons(ROCE_PORT),
        .sin_addr.s_addr = htonl(ip),
    };
}

static int udp_socket(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    g_assert_cmpint(fd, >=, 0);
    return fd;
}

/* slirp takes the UDP datagrams out of the frames and sends them on. */
static void test_user_sends_to_the_host(void)
{
    static const uint8_t absent[][4] = {
        { 10, 0, 2, 2 }, { 10, 0, 2, 3 }, { 10, 0, 2, 77 }, { 10, 0, 2, 255 },
        { 127, 255, 255, 254 },
    };
    struct sockaddr_in addr = loopback_address(1);
    g_auto(Node) n = node_start("-netdev user,id=n0");
    uint8_t buf[4096];
    int fd = udp_socket();

    g_assert_cmpint(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), ==, 0);
    check_loopback(&n);
    send_datagram(&n, (uint8_t *)&addr.sin_addr, 3);
    check_datagram(&n, buf, receive(fd, buf, sizeof(buf)));

    /* Sends to unused addresses must do no harm. */
    for (int i = 0; i < G_N_ELEMENTS(absent); i++) {
        send_datagram(&n, absent[i], i);
    }
    send_datagram(&n, (uint8_t *)&addr.sin_addr, 4);
    check_datagram(&n, buf, receive(fd, buf, sizeof(buf)));
    check_loopback(&n);
    close(fd);
}

/* slirp asks who has an address before it sends there: answer that. */
static void announce_guest(const char *path, const uint8_t *mac)
{
    uint8_t msg[4 + 42] = { [3] = 42 }, *frame = msg + 4;
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    memset(frame, 0xff, 6);
    memcpy(frame + 6, mac, 6);
    stw_be_p(frame + 12, 0x0806);
    stw_be_p(frame + 14, 1);
    stw_be_p(frame + 16, 0x0800);
    stw_be_p(frame + 18, 6 << 8 | 4);
    stw_be_p(frame + 20, 1);
    memcpy(frame + 22, frame + 6, 6);
    memcpy(frame + 28, guest_ip, 4);
    memcpy(frame + 38, guest_ip, 4);

    g_assert_cmpint(fd, >=, 0);
    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    g_assert_cmpint(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), ==,
                    0);
    g_assert_cmpint(write(fd, msg, sizeof(msg)), ==, sizeof(msg));
    close(fd);
}

/*
 * Let the host send a datagram. Returns the number of frames received so far.
 */
static uint64_t poke(Node *n, int fd, const struct sockaddr_in *to,
                     uint64_t *count)
{
    uint8_t msg[IB_HDR + LEN + ICRC_LEN] = {
        [0] = UD_SEND_ONLY, [2] = 0xff, [3] = 0xff, [7] = n->ud->qpn,
    };

    g_assert_cmpint(sendto(fd, msg, sizeof(msg), 0, (struct sockaddr *)to,
                           sizeof(*to)), ==, sizeof(msg));
    assert_ok(qrdma_query_counters(n->dev, 1, count));
    return count[VIRTIO_RDMA_RX_PACKETS];
}

/*
 * A UDP datagram from the host becomes a frame to the guest's GID. slirp
 * makes the headers, so the ICRC cannot be right: it is counted, and no more.
 */
static void test_user_receives_from_the_host(void)
{
    struct sockaddr_in addr = loopback_address(2);
    g_autofree char *dir = g_dir_make_tmp("roce-host-XXXXXX", NULL);
    g_autofree char *path = g_strdup_printf("%s/arp", dir);
    g_autofree char *args = g_strdup_printf(
        "-netdev user,id=n0,hostfwd=udp:%s:%d-10.0.2.15:%d "
        "-chardev socket,id=c0,path=%s,server=on,wait=off "
        "-object filter-redirector,id=f0,netdev=n0,queue=rx,indev=c0",
        inet_ntoa(addr.sin_addr), ROCE_PORT, ROCE_PORT, path);
    Node n = node_start(args);
    uint64_t count[VIRTIO_RDMA_NUM_COUNTERS];
    int fd = udp_socket();

    announce_guest(path, n.dev->mac);
    qrdma_wait_until(n.dev, poke(&n, fd, &addr, count) > 3);
    g_assert_cmpuint(count[VIRTIO_RDMA_RX_ICRC_ERRORS], ==,
                     count[VIRTIO_RDMA_RX_PACKETS]);
    check_loopback(&n);
    close(fd);
    node_stop(&n);
    g_unlink(path);
    g_rmdir(dir);
}

static void set_up(const char *name)
{
    struct ifreq req = { .ifr_flags = IFF_UP };
    int fd = udp_socket();

    g_strlcpy(req.ifr_name, name, sizeof(req.ifr_name));
    g_assert_cmpint(ioctl(fd, SIOCSIFFLAGS, &req), ==, 0);
    close(fd);
}

static int packet_socket(const char *name)
{
    struct sockaddr_ll addr = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(0x0800),
        .sll_ifindex = if_nametoindex(name),
    };
    int fd = socket(AF_PACKET, SOCK_RAW, htons(0x0800));

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), ==, 0);
    return fd;
}

/* Frames leave through a tap, and come back through it. */
static void test_tap(void)
{
    static const uint8_t peer[4] = { 10, 0, 2, 99 };
    RdmaRecvWr recv_wr = { .wr_id = 9, .num_sge = 1 };
    uint8_t frame[4096];
    size_t size;
    RdmaSge sge;
    RdmaWc wc;
    Node n;
    int fd;

    if (access("/dev/net/tun", R_OK | W_OK) ||
        unshare((geteuid() ? CLONE_NEWUSER : 0) | CLONE_NEWNET)) {
        g_test_skip("no tap in a network namespace of its own");
        return;
    }
    set_up("lo");
    n = node_start("-netdev tap,id=n0,ifname=roce0,script=no,downscript=no");
    set_up("roce0");
    fd = packet_socket("roce0");
    check_loopback(&n);
    send_datagram(&n, peer, 8);
    size = receive(fd, frame, sizeof(frame));
    g_assert_cmpuint(size, >, FRAME_HDR);
    check_datagram(&n, frame + FRAME_HDR, size - FRAME_HDR);

    /* Take over the destination address. */
    add_address(&n, HOST_GID + 1, peer);
    sge = qrdma_sge(n.mr, 4096, GRH_LEN + LEN);
    recv_wr.sg_list = &sge;
    qrdma_post_recv(n.ud, &recv_wr);
    memcpy(frame, n.dev->mac, 6);
    g_assert_cmpint(send(fd, frame, size, 0), ==, size);
    qrdma_expect_wc(n.rcq, 9, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + LEN);
    qrdma_mr_check(n.mr, 4096 + GRH_LEN, LEN, 8);
    check_loopback(&n);
    close(fd);
    node_stop(&n);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("/rdma-roce-host/user/sends-to-the-host",
                   test_user_sends_to_the_host);
    qtest_add_func("/rdma-roce-host/user/receives-from-the-host",
                   test_user_receives_from_the_host);
    qtest_add_func("/rdma-roce-host/tap", test_tap);
    return g_test_run();
}
