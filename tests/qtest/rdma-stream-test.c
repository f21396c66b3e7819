/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stream netdev whose far end, held by the test, does not read, so that
 * frames are written in part. Whatever happens to the VM meanwhile, the stream
 * has only whole frames.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "libqos/virtio-rdma.h"

#define DEVICE "virtio-rdma-pci,max-qp=4,max-cq=4,max-mr=8,max-pd=4"
#define MSG_MAX 4096
#define PAYLOAD_MAX 4096
#define ROUNDS 12
/*
 * Time without a completion after which the link is full, and time without
 * bytes after which the test has read all.
 */
#define FULL_USEC 50000
/* Ethernet, IPv4, UDP, BTH, RETH, ICRC */
#define HEADERS (14 + 20 + 8 + 12 + 16 + 4)

typedef struct Link {
    int fd;
    GByteArray *in;
    QRdmaHost *host;
    QRdma *dev;
    QRdmaMr *mr;
    QRdmaCq *cq;
    QRdmaQp *qp;
    unsigned outstanding;
    uint32_t posted;
    unsigned frames;                /* of all that was posted */
} Link;

static Link *link_new(void)
{
    Link *l = g_new0(Link, 1);
    QRdmaPath path = { .mtu = RDMA_MTU_4096, .gid_index = 1 };
    QRdmaPd *pd;
    int size = 4000, fds[2];

    /* Room for less than a whole frame */
    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), ==, 0);
    g_assert_cmpint(setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size,
                               sizeof(size)), ==, 0);
    l->fd = fds[0];
    l->in = g_byte_array_new();
    l->host = qrdma_host_start(
        "-netdev stream,id=n0,server=off,addr.type=fd,addr.str=%d "
        "-device " DEVICE ",netdev=n0,addr=4", fds[1]);
    close(fds[1]);
    l->dev = qrdma_open(l->host, QPCI_DEVFN(4, 0));
    qrdma_start(l->dev, 0, 0);
    qrdma_setup_gids(l->dev, 1);
    pd = qrdma_alloc_pd(l->dev);
    l->mr = qrdma_reg_mr(pd, 0x100000, MSG_MAX, RDMA_ACCESS_LOCAL_WRITE);
    l->cq = qrdma_create_cq(l->dev, 64);
    l->qp = qrdma_create_qp(pd, l->cq, l->cq, RDMA_QPT_UC);
    qrdma_connect_absent(l->qp, &path, 1);
    return l;
}

static void link_free(Link *l)
{
    qrdma_host_stop(l->host);
    close(l->fd);
    g_byte_array_unref(l->in);
    g_free(l);
}

/* A message to an absent peer, of a length of its own. */
static void link_send(Link *l)
{
    RdmaSge sge = qrdma_sge(l->mr, 0, MSG_MAX - l->posted * 36 % 200);

    qrdma_post(l->qp, qrdma_wr(RDMA_WR_RDMA_WRITE, l->posted, &sge));
    l->posted++;
    l->outstanding++;
    l->frames += DIV_ROUND_UP(sge.length, PAYLOAD_MAX);
}

static bool link_reap(Link *l)
{
    RdmaWc wc;

    if (!qrdma_poll_cq(l->cq, &wc)) {
        return false;
    }
    g_assert_cmpint(wc.status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpuint(wc.wr_id, ==, l->posted - l->outstanding);
    l->outstanding--;
    return true;
}

/* Send until the link takes no more. */
static void link_fill(Link *l)
{
    gint64 last = g_get_monotonic_time();

    while (g_get_monotonic_time() - last < FULL_USEC) {
        while (l->outstanding < 30) {
            link_send(l);
        }
        if (link_reap(l)) {
            last = g_get_monotonic_time();
        }
    }
}

/* Does QEMU send more, now that there is room? */
static bool link_has_data(Link *l)
{
    GPollFD pfd = { .fd = l->fd, .events = G_IO_IN };

    if (g_poll(&pfd, 1, 0) > 0) {
        return true;
    }
    qrdma_settle(l->dev);
    return g_poll(&pfd, 1, 0) > 0;
}

/* Read all that there is; counts the frames. */
static unsigned link_drain(Link *l)
{
    unsigned frames = 0;
    uint8_t buf[4096];

    while (link_has_data(l)) {
        ssize_t got = recv(l->fd, buf, sizeof(buf), 0);

        g_assert_cmpint(got, >, 0);
        g_byte_array_append(l->in, buf, got);
        while (l->in->len >= 4) {
            uint32_t len = ldl_be_p(l->in->data);

            g_assert_cmpuint(len, >=, 60);
            g_assert_cmpuint(len, <=, HEADERS + PAYLOAD_MAX);
            if (l->in->len < 4 + len) {
                break;
            }
            /* Only RoCE sends on this link: IPv4, UDP port 4791 */
            g_assert_cmphex(lduw_be_p(l->in->data + 4 + 12), ==, 0x0800);
            g_assert_cmpuint(lduw_be_p(l->in->data + 4 + 36), ==, 4791);
            g_byte_array_remove_range(l->in, 0, 4 + len);
            frames++;
        }
        while (link_reap(l)) {
            /* its place is free */
        }
    }
    g_assert_cmpuint(l->in->len, ==, 0);
    return frames;
}

static void test_stop_while_full(void)
{
    Link *l = link_new();
    unsigned frames = 0;

    for (int i = 0; i < ROUNDS; i++) {
        link_fill(l);
        qtest_qmp_assert_success(l->host->qts, "{'execute': 'stop'}");
        qtest_qmp_assert_success(l->host->qts, "{'execute': 'cont'}");
        frames += link_drain(l);
        g_assert_cmpuint(l->outstanding, ==, 0);
    }
    /* Each stop may lose the frame that waits. */
    g_assert_cmpuint(frames + ROUNDS, >=, l->frames);
    g_assert_cmpuint(frames, <=, l->frames);
    link_free(l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("rdma-stream/stop-while-full", test_stop_while_full);
    return g_test_run();
}
