/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port that sends to a receiver that breaks the rules: the test.
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include "qemu/bswap.h"
#include "qemu/memfd.h"
#include "shm-test.h"

/* @a sends to @b. The test listens at the socket of @b. */
typedef struct Link {
    ShmNode a, b;
    int listener;
} Link;

static Link link_start(const char *options)
{
    Link l = { .a = shm_node_start(1, options) };

    l.b = shm_node_start(2, NULL);
    l.listener = shm_listen_as(2, SOCK_SEQPACKET);
    return l;
}

static void link_stop(Link *l)
{
    close(l->listener);
    shm_node_stop(&l->a);
    shm_node_stop(&l->b);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Link, link_stop)

/* Send datagrams until the sender connects to the test. */
static int accept_from(Link *l)
{
    gint64 end = g_get_monotonic_time() + SOON_MS * 1000;
    GPollFD pfd = { .fd = l->listener, .events = G_IO_IN };
    int fd;

    do {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        shm_post_send(&l->a, &l->b);
        shm_drain_wire(&l->a);
    } while (g_poll(&pfd, 1, 10) == 0);
    fd = accept(l->listener, NULL, NULL);
    g_assert_cmpint(fd, >=, 0);
    return fd;
}

static void welcome_with(int fd, const void *data, size_t len, int memory)
{
    char control[CMSG_SPACE(sizeof(int))] = { };
    struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (memory >= 0) {
        struct cmsghdr *cmsg;

        msg.msg_control = control;
        msg.msg_controllen = sizeof(control);
        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(memory));
        memcpy(CMSG_DATA(cmsg), &memory, sizeof(memory));
    }
    g_assert_cmpint(sendmsg(fd, &msg, 0), ==, len);
}

static int make_memory(size_t size, unsigned seals)
{
    int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, size), ==, 0);
    g_assert_cmpint(fcntl(fd, F_ADD_SEALS, seals), ==, 0);
    return fd;
}

static ShmRing receiver_new(Link *l)
{
    ShmRing r = {
        .fd = accept_from(l),
        .memory = make_memory(SHM_RING_DATA + SHM_RING_SIZE, F_SEAL_SHRINK),
    };

    shm_ring_map(&r, SHM_RING_DATA + SHM_RING_SIZE);
    welcome_with(r.fd, &shm_welcome, sizeof(shm_welcome), r.memory);
    return r;
}

static void test_bad_welcomes(void)
{
    ShmWelcome bad_magic = shm_welcome, bad_version = shm_welcome;
    int plain[2], memory;
    g_auto(Link) l = link_start("");

    bad_magic.magic[0]++;
    bad_version.version = cpu_to_le32(2);
    g_assert_cmpint(pipe(plain), ==, 0);
    memory = make_memory(SHM_RING_DATA + SHM_RING_SIZE, F_SEAL_SHRINK);

#define CASE(data, len, fd_) do {                                           \
        int fd = accept_from(&l);                                           \
        welcome_with(fd, data, len, fd_);                                   \
        shm_assert_cut_off(fd);                                             \
        close(fd);                                                          \
        shm_expect_netdev(&l.a, &l.b);                                      \
    } while (0)

    CASE(&bad_magic, sizeof(bad_magic), memory);
    CASE(&bad_version, sizeof(bad_version), memory);
    CASE(&shm_welcome, sizeof(shm_welcome) - 1, memory);
    CASE(&shm_welcome, sizeof(shm_welcome), -1);
    CASE(&shm_welcome, sizeof(shm_welcome), plain[0]);
    close(memory);
    memory = make_memory(SHM_RING_DATA + SHM_RING_SIZE, 0);
    CASE(&shm_welcome, sizeof(shm_welcome), memory);
    close(memory);
    memory = make_memory(SHM_RING_DATA + 100000, F_SEAL_SHRINK);
    CASE(&shm_welcome, sizeof(shm_welcome), memory);
    close(memory);
    memory = make_memory(100, F_SEAL_SHRINK);
    CASE(&shm_welcome, sizeof(shm_welcome), memory);
#undef CASE
    close(memory);
    close(plain[0]);
    close(plain[1]);
}

/* Descriptors beyond the expected ones are not open afterwards. */
static void test_too_many_descriptors(void)
{
    int fds[16], fd;
    char control[CMSG_SPACE(sizeof(fds))] = { };
    struct iovec iov = {
        .iov_base = (void *)&shm_welcome, .iov_len = sizeof(shm_welcome),
    };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof(control),
    };
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    unsigned before;
    g_auto(Link) l = link_start("");

    fd = accept_from(&l);
    before = qrdma_open_files(l.a.host->qts);
    for (int i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = make_memory(100, 0);
    }
    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(cmsg), fds, sizeof(fds));
    g_assert_cmpint(sendmsg(fd, &msg, 0), ==, sizeof(shm_welcome));
    shm_assert_cut_off(fd);
    g_assert_cmpuint(qrdma_open_files(l.a.host->qts), ==, before - 1);
    for (int i = 0; i < ARRAY_SIZE(fds); i++) {
        close(fds[i]);
    }
    close(fd);
}

static void test_receiver_that_reads_nothing(void)
{
    g_auto(Link) l = link_start("");
    g_auto(ShmRing) r = receiver_new(&l);

    shm_reach(&l.a, &l.b);
    /* Until the ring is full, and then for a while */
    shm_expect_netdev(&l.a, &l.b);
    shm_assert_cut_off(r.fd);
    g_assert_cmpuint(shm_frames(&l.a, "shm-tx-frames"), >, 900);
}

/* @wakes: the receiver wakes the sender; NULL: the sender polls in time. */
static void test_room_that_is_made_late(gconstpointer wakes)
{
    uint32_t record = ROUND_UP(SHM_RECORD_LEN + SHM_LEN + 96, 64);
    uint32_t head, written = 0;
    g_auto(Link) l = link_start("");

    /* On a busy machine the test may be too late, and lose its connection. */
    for (int tries = 0; tries < 20 && !written; tries++) {
        g_auto(ShmRing) r = receiver_new(&l);

        shm_reach(&l.a, &l.b);
        while (!ldl_le_p(r.mem + SHM_RING_WAITS)) {
            shm_post_send(&l.a, &l.b);
        }
        head = ldl_le_p(r.mem + SHM_RING_HEAD);
        stl_le_p(r.mem + SHM_RING_TAIL, head);
        if (wakes) {
            shm_ring_wake(&r);
        }
        for (int i = 0; i < 10; i++) {
            shm_post_send(&l.a, &l.b);
            shm_drain_wire(&l.a);
        }
        written = ldl_le_p(r.mem + SHM_RING_HEAD) - head;
    }
    /* Including the rest at the ring's end */
    g_assert_cmpuint(written, >=, 11 * record);
    g_assert_cmpuint(written, <, 12 * record);
}

/* Wake-ups so far */
static unsigned wake_ups(ShmRing *r)
{
    unsigned n = 0;
    char buf[4];

    while (recv(r->fd, buf, sizeof(buf), MSG_DONTWAIT) > 0) {
        n++;
    }
    return n;
}

static void read_all(ShmRing *r)
{
    stl_le_p(r->mem + SHM_RING_TAIL, ldl_le_p(r->mem + SHM_RING_HEAD));
}

static void test_receiver_is_woken_once_for_what_it_has_not_read(void)
{
    g_auto(Link) l = link_start("");
    g_auto(ShmRing) r = receiver_new(&l);

    shm_reach(&l.a, &l.b);
    g_assert_cmpuint(wake_ups(&r), ==, 1);
    for (int i = 0; i < 3; i++) {
        shm_post_send(&l.a, &l.b);
        g_assert_cmpuint(wake_ups(&r), ==, 0);
    }
    read_all(&r);
    shm_post_send(&l.a, &l.b);
    g_assert_cmpuint(wake_ups(&r), ==, 1);

    stl_le_p(r.mem + SHM_RING_AWAKE, 1);
    shm_post_send(&l.a, &l.b);
    g_assert_cmpuint(wake_ups(&r), ==, 0);
    stl_le_p(r.mem + SHM_RING_AWAKE, 0);
    shm_post_send(&l.a, &l.b);
    g_assert_cmpuint(wake_ups(&r), ==, 1);
}

static void test_receiver_with_a_bad_tail(void)
{
    static const uint32_t tails[] = { 32, 0x80000000, 0xffffffc0 };
    g_auto(Link) l = link_start("");

    for (int i = 0; i < ARRAY_SIZE(tails); i++) {
        g_auto(ShmRing) r = receiver_new(&l);

        stl_le_p(r.mem + SHM_RING_TAIL, tails[i]);
        shm_reach(&l.a, &l.b);
        shm_expect_netdev(&l.a, &l.b);
        shm_assert_cut_off(r.fd);
    }
}

/* Frames have an ICRC if shm-icrc=on, else 0 in its place. */
static void test_icrc(gconstpointer options)
{
    bool icrc = *(const char *)options;
    gint64 end = g_get_monotonic_time() + SOON_MS * 1000;
    const uint8_t *record, *frame;
    uint32_t size;
    g_auto(Link) l = link_start(options);
    g_auto(ShmRing) r = receiver_new(&l);

    shm_reach(&l.a, &l.b);
    record = r.mem + SHM_RING_DATA;
    frame = record + SHM_RECORD_LEN;
    size = ldl_le_p(record);
    g_assert_cmpuint(size, >, SHM_LEN);
    g_assert_cmphex(ldl_le_p(record + 4), ==, icrc ? SHM_RECORD_CHECKED : 0);
    if (!icrc) {
        g_assert_cmphex(ldl_le_p(frame + size - 4), ==, 0);
    }

    /* The end of a netdev checks the ICRC. */
    shm_post_recv(&l.b);
    wire_send(&l.b.wire, frame, size);
    if (icrc) {
        shm_expect_recv(&l.b);
    }
    while (qrdma_counter(l.b.dev, VIRTIO_RDMA_RX_ICRC_ERRORS) != !icrc) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(1000);
    }
}

const QRdmaTest shm_receiver_tests[] = {
    { "icrc/on", .run_case = test_icrc, .data = ",shm-icrc=on" },
    { "icrc/off", .run_case = test_icrc, .data = "" },
    { "receiver/bad-welcomes", test_bad_welcomes },
    { "receiver/too-many-descriptors", test_too_many_descriptors },
    { "receiver/reads-nothing", test_receiver_that_reads_nothing },
    { "receiver/makes-room-late",
      .run_case = test_room_that_is_made_late, .data = "wakes" },
    { "receiver/makes-room-late-and-wakes-nothing",
      .run_case = test_room_that_is_made_late },
    { "receiver/is-woken-once-for-what-it-has-not-read",
      test_receiver_is_woken_once_for_what_it_has_not_read },
    { "receiver/bad-tail", test_receiver_with_a_bad_tail },
    {}
};
