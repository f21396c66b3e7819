/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Machines whose ports send by shared memory.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include <sys/mman.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "shm-test.h"

#define MAC "52:54:00:00:00:0%d"
#define RDMA_SLOT 4
#define DEVICE "virtio-rdma-pci,max-qp=4,max-cq=4,max-mr=8,max-pd=4"
#define GRH_LEN 40
#define MR_SIZE (64 * 1024)

char *shm_dir;

const ShmWelcome shm_welcome = {
    .magic = { 'V', 'R', 'D', 'M', 'A', 'S', 'H', 'M' },
    .version = const_le32(1),
};

ShmNode shm_node_start(int id, const char *options)
{
    ShmNode n = {};
    QRdmaPd *pd;

    wire_open(&n.wire);
    n.host = qrdma_host_start(
        "-netdev %s,id=n0 -object rdma-roce,id=r0,netdev=n0,mac=" MAC "%s%s%s "
        "-device " DEVICE ",rdmadev=r0,addr=%d", n.wire.netdev, id,
        options ? ",shm-dir=" : "", options ? shm_dir : "", options ?: "",
        RDMA_SLOT);
    n.dev = qrdma_open(n.host, QPCI_DEVFN(RDMA_SLOT, 0));
    qrdma_start(n.dev, 0, 0);
    qrdma_setup_gids(n.dev, id);
    pd = qrdma_alloc_pd(n.dev);
    n.mr = qrdma_reg_mr(pd, 0x100000, MR_SIZE, RDMA_ACCESS_LOCAL_WRITE);
    n.scq = qrdma_create_cq(n.dev, 40);
    n.rcq = qrdma_create_cq(n.dev, 40);
    n.qp = qrdma_create_qp(pd, n.scq, n.rcq, RDMA_QPT_UD);
    qrdma_start_ud(n.qp, QRDMA_QKEY);
    return n;
}

void shm_node_stop(ShmNode *n)
{
    qrdma_host_stop(n->host);
    wire_close(&n->wire);
}

char *shm_node_path(int id)
{
    return g_strdup_printf("%s/" MAC, shm_dir, id);
}

void shm_limit_files(ShmNode *n, rlim_t files)
{
    struct rlimit limit;
    int pid = qtest_pid(n->host->qts);

    g_assert_cmpint(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), ==, 0);
    limit.rlim_cur = MIN(files, limit.rlim_max);
    g_assert_cmpint(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), ==, 0);
}

uint64_t shm_frames(ShmNode *n, const char *which)
{
    return qrdma_qom_get(n->host->qts, "/objects/r0", which);
}

void shm_post_send_av(ShmNode *n, ShmNode *to, const RdmaAv *av)
{
    RdmaSge sge = qrdma_sge(n->mr, 0, SHM_LEN);
    RdmaSendWr wr = qrdma_ud_wr(1, &sge, to->qp, 0);

    wr.wr.ud.av = *av;
    qrdma_mr_fill(n->mr, 0, SHM_LEN, 77);
    qrdma_post_expect(n->qp, wr, RDMA_WC_SUCCESS);
}

void shm_post_send(ShmNode *n, ShmNode *to)
{
    RdmaAv av = qrdma_av(to->dev, 1);

    shm_post_send_av(n, to, &av);
}

void shm_post_recv(ShmNode *n)
{
    RdmaSge sge = qrdma_sge(n->mr, 0, 8192);

    qrdma_recv(n->qp, 2, &sge);
}

void shm_expect_recv(ShmNode *n)
{
    RdmaWc wc;

    qrdma_expect_wc(n->rcq, 2, RDMA_WC_RECV, &wc);
    g_assert_cmpuint(wc.byte_len, ==, GRH_LEN + SHM_LEN);
    qrdma_mr_check(n->mr, GRH_LEN, SHM_LEN, 77);
}

void shm_drain_wire(ShmNode *n)
{
    uint8_t frame[FRAME_MAX];

    while (wire_recv(&n->wire, frame, 0)) {
        continue;
    }
}

void shm_reach(ShmNode *n, ShmNode *to)
{
    uint64_t before = shm_frames(n, "shm-tx-frames");
    gint64 end = g_get_monotonic_time() + SOON_MS * 1000;

    do {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        shm_post_send(n, to);
        shm_drain_wire(n);
        g_usleep(1000);
    } while (shm_frames(n, "shm-tx-frames") == before);
}

void shm_expect_netdev(ShmNode *n, ShmNode *to)
{
    gint64 end = g_get_monotonic_time() + SOON_MS * 1000;
    uint8_t frame[FRAME_MAX];

    do {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        shm_post_send(n, to);
    } while (!wire_recv(&n->wire, frame, 0));
}

void shm_exchange(ShmNode *n, ShmNode *to)
{
    uint64_t sent = shm_frames(n, "shm-tx-frames");
    uint64_t got;
    uint8_t frame[FRAME_MAX];

    /* Frames of shm_reach() are to arrive before the receive is there. */
    qrdma_settle(to->dev);
    got = shm_frames(to, "shm-rx-frames");
    shm_post_recv(to);
    shm_post_send(n, to);
    shm_expect_recv(to);
    g_assert_cmpuint(shm_frames(n, "shm-tx-frames"), ==, sent + 1);
    g_assert_cmpuint(shm_frames(to, "shm-rx-frames"), ==, got + 1);
    g_assert_cmpuint(wire_recv(&n->wire, frame, 0), ==, 0);
}

struct sockaddr_un shm_address_of(int id)
{
    g_autofree char *path = shm_node_path(id);
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    g_strlcpy(un.sun_path, path, sizeof(un.sun_path));
    return un;
}

void shm_ring_map(ShmRing *r, size_t size)
{
    r->mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->memory,
                  0);
    g_assert_true(r->mem != MAP_FAILED);
}

void shm_ring_free(ShmRing *r)
{
    if (r->mem) {
        munmap(r->mem, SHM_RING_DATA + SHM_RING_SIZE);
        close(r->memory);
    }
    close(r->fd);
}

void shm_ring_wake(ShmRing *r)
{
    send(r->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int shm_connect_to(int id)
{
    struct sockaddr_un un = shm_address_of(id);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    g_assert_cmpint(connect(fd, (struct sockaddr *)&un, sizeof(un)), ==, 0);
    return fd;
}

ShmRing shm_sender_new(int id)
{
    ShmRing r = { .fd = shm_connect_to(id) };
    char control[CMSG_SPACE(sizeof(int))];
    ShmWelcome got;
    struct iovec iov = { .iov_base = &got, .iov_len = sizeof(got) };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof(control),
    };
    struct stat st;

    g_assert_cmpint(recvmsg(r.fd, &msg, MSG_CMSG_CLOEXEC), ==, sizeof(got));
    g_assert_cmpmem(&got, sizeof(got), &shm_welcome, sizeof(shm_welcome));
    g_assert_nonnull(CMSG_FIRSTHDR(&msg));
    memcpy(&r.memory, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(r.memory));
    g_assert_cmpint(fstat(r.memory, &st), ==, 0);
    g_assert_cmpint(st.st_size, ==, SHM_RING_DATA + SHM_RING_SIZE);
    shm_ring_map(&r, st.st_size);
    return r;
}

void shm_ring_write(ShmRing *r, uint32_t size, uint32_t flags,
                    const void *data, size_t len, uint32_t room)
{
    uint8_t *record = r->mem + SHM_RING_DATA + r->pos % SHM_RING_SIZE;

    stl_le_p(record, size);
    stl_le_p(record + 4, flags);
    memcpy(record + SHM_RECORD_LEN, data, len);
    r->pos += room;
    __atomic_store_n((uint32_t *)(r->mem + SHM_RING_HEAD), cpu_to_le32(r->pos),
                     __ATOMIC_SEQ_CST);
    if (!r->silent) {
        shm_ring_wake(r);
    }
}

uint32_t shm_record_len(size_t len)
{
    return ROUND_UP(SHM_RECORD_LEN + len, 64);
}

void shm_ring_frame(ShmRing *r, uint32_t flags, const void *frame, size_t len)
{
    uint32_t offset = r->pos % SHM_RING_SIZE;

    if (SHM_RING_SIZE - offset < shm_record_len(len)) {
        stl_le_p(r->mem + SHM_RING_DATA + offset, SHM_RECORD_SKIP);
        r->pos += SHM_RING_SIZE - offset;
    }
    shm_ring_write(r, len, flags, frame, len, shm_record_len(len));
}

void shm_assert_cut_off(int fd)
{
    GPollFD pfd = { .fd = fd, .events = G_IO_IN };
    char buf[64];

    do {
        g_assert_cmpint(g_poll(&pfd, 1, SOON_MS), ==, 1);
    } while (recv(fd, buf, sizeof(buf), 0) > 0);
}

int shm_listen_as(int id, int type)
{
    struct sockaddr_un un = shm_address_of(id);
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    g_unlink(un.sun_path);
    g_assert_cmpint(bind(fd, (struct sockaddr *)&un, sizeof(un)), ==, 0);
    g_assert_cmpint(listen(fd, 5), ==, 0);
    return fd;
}
