/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A port that receives from a sender that breaks the rules: the test.
 */
#include "qemu/osdep.h"
#include <poll.h>
#include <sys/mman.h>
#include "qemu/bswap.h"
#include "shm-test.h"

static void ring_await_read(ShmRing *r)
{
    gint64 end = g_get_monotonic_time() + SOON_MS * 1000;

    while (ldl_le_p(r->mem + SHM_RING_TAIL) != r->pos) {
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        g_usleep(100);
    }
}

/* Get a datagram for @to with its ICRC, from a port without shared memory. */
static size_t catch_frame(ShmNode *to, uint8_t frame[FRAME_MAX])
{
    ShmNode other = shm_node_start(3, NULL);
    size_t size;

    shm_post_send(&other, to);
    size = wire_recv(&other.wire, frame, SOON_MS);
    g_assert_cmpuint(size, >, SHM_LEN);
    shm_node_stop(&other);
    return size;
}

static void test_frames_of_a_sender(void)
{
    uint8_t frame[FRAME_MAX];
    size_t size;
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmRing) r = {};

    size = catch_frame(&a, frame);
    r = shm_sender_new(1);
    /* With an ICRC, and several times around the ring */
    for (int i = 0; i < 3000; i++) {
        shm_post_recv(&a);
        shm_ring_frame(&r, SHM_RECORD_CHECKED, frame, size);
        shm_expect_recv(&a);
    }
    /* A wrong ICRC is checked if the record has one. */
    frame[size - 1] ^= 1;
    shm_ring_frame(&r, SHM_RECORD_CHECKED, frame, size);
    shm_post_recv(&a);
    shm_ring_frame(&r, 0, frame, size);
    shm_expect_recv(&a);
    g_assert_cmpuint(qrdma_counter(a.dev, VIRTIO_RDMA_RX_ICRC_ERRORS), ==, 1);
}

typedef struct BadRecord {
    const char *name;
    uint32_t size;
    uint32_t room;                  /* length in the head */
} BadRecord;

static void test_bad_records(void)
{
    static const BadRecord cases[] = {
        { "no bytes", 0, 64 },
        { "more than the head says", 57, 64 },
        { "longer than a frame", 8000, 8064 },
        { "longest", UINT32_MAX - 1, 64 },
        { "nothing behind a skip", SHM_RECORD_SKIP, 64 },
        { "a head within a record", 50, 32 },
        { "more than the ring has", 50, SHM_RING_SIZE + 64 },
    };
    static const uint8_t zeroes[64];
    uint8_t frame[FRAME_MAX];
    size_t size;
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmRing) nonsense = {};

    size = catch_frame(&a, frame);
    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_auto(ShmRing) r = shm_sender_new(1);

        g_test_message("%s", cases[i].name);
        shm_ring_write(&r, cases[i].size, 0, zeroes, 50, cases[i].room);
        shm_assert_cut_off(r.fd);
    }
    /* Near the end: one that goes past it, and a skip to another skip */
    for (int i = 0; i < 2; i++) {
        g_auto(ShmRing) r = shm_sender_new(1);

        while (r.pos < SHM_RING_SIZE - 128) {
            shm_ring_frame(&r, 0, zeroes, 50);
            if (r.pos % 65536 == 0) {
                ring_await_read(&r);
            }
        }
        ring_await_read(&r);
        if (i) {
            stl_le_p(r.mem + SHM_RING_DATA, SHM_RECORD_SKIP);
            shm_ring_write(&r, SHM_RECORD_SKIP, 0, zeroes, 50, 4096);
        } else {
            shm_ring_write(&r, 500, 0, zeroes, 50, 512);
        }
        shm_assert_cut_off(r.fd);
    }

    /* Nonsense frames do no harm to any peer. */
    nonsense = shm_sender_new(1);
    shm_ring_frame(&nonsense, 0, zeroes, 1);
    shm_ring_frame(&nonsense, 0, zeroes, 50);
    for (size_t i = 0; i < size; i += 7) {
        frame[i] ^= 0x55;
        shm_ring_frame(&nonsense, 0, frame, size);
        shm_ring_frame(&nonsense, 0, frame, i + 1);
        frame[i] ^= 0x55;
        ring_await_read(&nonsense);
    }
    shm_post_recv(&a);
    shm_ring_frame(&nonsense, 0, frame, size);
    shm_expect_recv(&a);
}

static void test_memory_cannot_shrink(void)
{
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmRing) r = shm_sender_new(1);

    g_assert_cmpint(ftruncate(r.memory, 0), ==, -1);
    g_assert_cmpint(ftruncate(r.memory, SHM_RING_DATA), ==, -1);
}

/*
 * QEMU reads a part of a ring full of short nonsense frames, and does other
 * work before it reads on.
 */
static void test_flood(void)
{
    uint64_t all = SHM_RING_SIZE / shm_record_len(50);
    uint64_t seen = 0;
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmRing) r = shm_sender_new(1);

    for (uint32_t pos = 0; pos < SHM_RING_SIZE; pos += shm_record_len(50)) {
        stl_le_p(r.mem + SHM_RING_DATA + pos, 50);
    }
    for (int i = 0; i < 1000 && !(seen % all); i++) {
        r.pos += SHM_RING_SIZE;
        __atomic_store_n((uint32_t *)(r.mem + SHM_RING_HEAD),
                         cpu_to_le32(r.pos), __ATOMIC_SEQ_CST);
        shm_ring_wake(&r);
        seen = shm_frames(&a, "shm-rx-frames");
        ring_await_read(&r);
    }
    g_assert_cmpuint(seen % all, !=, 0);
}

/*
 * A receiver is woken only while its flag says that it sleeps, and not again
 * before it has read. It reads each frame, also one that comes when it is about
 * to fall asleep.
 */
static void test_only_sleepers_are_woken(gconstpointer options)
{
    bool woken = false;
    uint32_t woken_for = 0;
    g_auto(ShmNode) a = shm_node_start(1, options);
    g_auto(ShmRing) r = shm_sender_new(1);

    for (uint32_t i = 0; i < 20000; i++) {
        uint8_t *record = r.mem + SHM_RING_DATA + r.pos % SHM_RING_SIZE;
        gint64 until = g_get_monotonic_time() + i % 30;

        stl_le_p(record, 50);
        stl_le_p(record + 4, 0);
        r.pos += shm_record_len(50);
        __atomic_store_n((uint32_t *)(r.mem + SHM_RING_HEAD),
                         cpu_to_le32(r.pos), __ATOMIC_SEQ_CST);
        if (__atomic_load_n((uint32_t *)(r.mem + SHM_RING_AWAKE),
                            __ATOMIC_SEQ_CST)) {
            woken = false;
        } else if (!woken ||
                   (int32_t)(woken_for - ldl_le_p(r.mem + SHM_RING_TAIL)) <=
                   0) {
            shm_ring_wake(&r);
            woken = true;
            woken_for = r.pos;
        }
        if (i % 7 == 0) {
            ring_await_read(&r);
        }
        while (g_get_monotonic_time() < until) {
            /* The delay before the next frame decides which side is awake. */
        }
    }
    ring_await_read(&r);
    g_assert_cmpuint(shm_frames(&a, "shm-rx-frames"), ==, 20000);
}

static void test_too_many_senders(void)
{
    uint8_t frame[FRAME_MAX];
    ShmRing r[SHM_MAX_PEERS];
    ShmWelcome got;
    bool welcomed;
    size_t size;
    g_auto(ShmNode) a = shm_node_start(1, "");
    int fd;

    size = catch_frame(&a, frame);
    for (int i = 0; i < SHM_MAX_PEERS; i++) {
        r[i] = shm_sender_new(1);
    }
    fd = shm_connect_to(1);
    shm_assert_cut_off(fd);
    close(fd);
    for (int i = 0; i < SHM_MAX_PEERS; i++) {
        shm_post_recv(&a);
        shm_ring_frame(&r[i], 0, frame, size);
        shm_expect_recv(&a);
    }
    /* Frames from before the end are received. */
    shm_post_recv(&a);
    shm_ring_frame(&r[0], 0, frame, size);
    shm_ring_free(&r[0]);
    shm_expect_recv(&a);
    do {
        fd = shm_connect_to(1);
        welcomed = recv(fd, &got, sizeof(got), 0) == sizeof(got);
        close(fd);
    } while (!welcomed);
    for (int i = 1; i < SHM_MAX_PEERS; i++) {
        shm_ring_free(&r[i]);
    }
}

/* Without a descriptor left the port accepts no peer, until there is one. */
static void test_no_descriptors_for_a_while(void)
{
    struct pollfd fd = { .events = POLLIN };
    uint8_t frame[FRAME_MAX];
    size_t size;
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmRing) r = {};

    size = catch_frame(&a, frame);
    shm_limit_files(&a, 3);
    fd.fd = shm_connect_to(1);
    g_assert_cmpint(poll(&fd, 1, 100), ==, 0);
    shm_limit_files(&a, 1024);
    g_assert_cmpint(poll(&fd, 1, SOON_MS), ==, 1);
    close(fd.fd);
    r = shm_sender_new(1);
    shm_post_recv(&a);
    shm_ring_frame(&r, 0, frame, size);
    shm_expect_recv(&a);
}

const QRdmaTest shm_sender_tests[] = {
    { "frames", test_frames_of_a_sender },
    { "bad-records", test_bad_records },
    { "memory-cannot-shrink", test_memory_cannot_shrink },
    { "flood", test_flood },
    { "wakes-only-sleepers",
      .run_case = test_only_sleepers_are_woken,
      .data = ",shm-poll-max-ns=0" },
    { "wakes-only-sleepers-that-have-polled",
      .run_case = test_only_sleepers_are_woken,
      .data = ",shm-poll-max-ns=50000" },
    { "too-many", test_too_many_senders },
    { "no-descriptors-for-a-while", test_no_descriptors_for_a_while },
    {}
};
