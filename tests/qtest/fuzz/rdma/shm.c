/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: the other side of shared memory, which
 * sends to the port and is sent to by it (docs/specs/virtio-rdma-shm.rst).
 */
#include "qemu/osdep.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "qemu/bswap.h"
#include "qemu/memfd.h"
#include "qemu/thread.h"
#include "rdma-fuzz.h"

#define ENDS 4
#define RING_DATA 4096u
#define RING_SIZE (1u << 20)
#define RECORD_LEN 8
#define RECORD_ALIGN 64
#define RECORD_SKIP UINT32_MAX
#define FRAME_MAX 4264
#define SCRIBBLES 2000

/* Offsets of the counters, and of the first frame */
static const uint32_t counters[] = { 0, 64, 128, 192, RING_DATA };

/* An end of a connection, held by the input. */
typedef struct End {
    int fd;
    uint8_t *mem;                   /* NULL: no ring */
    size_t size;
    uint32_t pos;
} End;

static char *dir;                   /* NULL: not this target */
static int listener = -1;
static End senders[ENDS], receivers[ENDS];

const char *fuzz_shm_dir(void)
{
    if (!dir) {
        /* In the working directory, because sockets need short names. */
        dir = g_strdup_printf("shm.%d", getpid());
        g_assert_cmpint(g_mkdir_with_parents(dir, 0700), ==, 0);
        memset(senders, 0xff, sizeof(senders));
        memset(receivers, 0xff, sizeof(receivers));
        for (int i = 0; i < ENDS; i++) {
            senders[i].mem = receivers[i].mem = NULL;
        }
    }
    return dir;
}

static struct sockaddr_un address_of(const uint8_t *mac)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    snprintf(un.sun_path, sizeof(un.sun_path),
             "%s/%02x:%02x:%02x:%02x:%02x:%02x", dir, mac[0], mac[1], mac[2],
             mac[3], mac[4], mac[5]);
    return un;
}

static int new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void end_close(End *end)
{
    if (end->mem) {
        munmap(end->mem, end->size);
    }
    if (end->fd >= 0) {
        close(end->fd);
    }
    *end = (End) { .fd = -1 };
}

static void end_map(End *end, int memory, size_t size)
{
    void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory,
                     0);

    if (size && mem != MAP_FAILED) {
        end->mem = mem;
        end->size = size;
    }
}

static void stop_listening(void)
{
    struct sockaddr_un un = address_of(fuzz_guest.far_mac);

    if (listener >= 0) {
        close(listener);
        listener = -1;
        unlink(un.sun_path);
    }
}

void fuzz_shm_leave(void)
{
    if (dir) {
        stop_listening();
        for (int i = 0; i < ENDS; i++) {
            end_close(&senders[i]);
            end_close(&receivers[i]);
        }
        fuzz_settle();
    }
}

static void wake(const End *end)
{
    (void)!send(end->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    fuzz_settle();
}

static void store(End *end, uint32_t offset, uint32_t value)
{
    uint32_t le = cpu_to_le32(value);

    memcpy(end->mem + offset % (end->size - sizeof(le) + 1), &le, sizeof(le));
}

/* The sending end that the input selects, if it has a ring */
static End *pick_sender(FuzzIn *in)
{
    End *end = &senders[in_u8(in) % ENDS];

    return end->mem ? end : NULL;
}

/* Any end that has a ring */
static End *pick_end(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    End *end = sel & 0x80 ? &receivers[sel % ENDS] : &senders[sel % ENDS];

    return end->mem ? end : NULL;
}

/* Connect to the port as a sender. */
void fuzz_op_shm_connect(FuzzIn *in)
{
    struct sockaddr_un un = address_of(fuzz_guest.mac);
    End *end = &senders[in_u8(in) % ENDS];
    char control[CMSG_SPACE(sizeof(int))];
    uint8_t got[64];
    struct iovec iov = { .iov_base = got, .iov_len = sizeof(got) };
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1,
        .msg_control = control, .msg_controllen = sizeof(control),
    };
    int memory;

    end_close(end);
    end->fd = new_socket();
    if (connect(end->fd, (struct sockaddr *)&un, sizeof(un)) < 0) {
        return;
    }
    fuzz_settle();
    if (recvmsg(end->fd, &msg, MSG_CMSG_CLOEXEC) > 0 && CMSG_FIRSTHDR(&msg)) {
        memcpy(&memory, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(memory));
        end_map(end, memory, RING_DATA + RING_SIZE);
        close(memory);
    }
}

/* Write a record without its head, by the rules of a sender. */
static void put(End *end, const uint8_t *frame, uint32_t len, uint32_t flags)
{
    uint32_t room = ROUND_UP(RECORD_LEN + len, RECORD_ALIGN);
    uint32_t to_end = RING_SIZE - end->pos % RING_SIZE;

    if (room > to_end) {
        store(end, RING_DATA + end->pos % RING_SIZE, RECORD_SKIP);
        end->pos += to_end;
    }
    store(end, RING_DATA + end->pos % RING_SIZE, len);
    store(end, RING_DATA + end->pos % RING_SIZE + 4, flags);
    memcpy(end->mem + RING_DATA + end->pos % RING_SIZE + RECORD_LEN, frame,
           len);
    end->pos += room;
}

bool fuzz_shm_deliver(const uint8_t *frame, size_t len)
{
    End *end = &senders[fuzz_guest.by_memory % ENDS];

    if (!fuzz_guest.by_memory || !end->mem) {
        return false;
    }
    put(end, frame, len, fuzz_guest.by_memory & 0x80);
    store(end, 0, end->pos);
    wake(end);
    return true;
}

/* A frame with valid headers, from the memory of a sender */
void fuzz_op_shm_frame(FuzzIn *in)
{
    /* The top bit selects whether the record has an ICRC. */
    fuzz_guest.by_memory = in_u8(in) | ENDS;
    fuzz_op_frame(in);
    fuzz_guest.by_memory = 0;
}

/* Many records at once, also more than fit in the ring */
void fuzz_op_shm_fill(FuzzIn *in)
{
    static const uint16_t sizes[] = { FRAME_MAX, 1, 56, 57, 1000 };
    static const uint8_t zeroes[FRAME_MAX];
    End *end = pick_sender(in);
    uint8_t sel = in_u8(in), n = in_u8(in);

    while (end && n--) {
        put(end, zeroes, sizes[sel % ARRAY_SIZE(sizes)], sel >> 7);
    }
    if (end) {
        store(end, 0, end->pos);
        wake(end);
    }
}

/* A record with any length, and a head at any distance. */
void fuzz_op_shm_record(FuzzIn *in)
{
    static const uint32_t sizes[] = {
        0, 1, 57, FRAME_MAX, FRAME_MAX + 1, RECORD_SKIP, RECORD_SKIP - 1,
    };
    End *end = pick_sender(in);
    uint8_t sel = in_u8(in);
    uint32_t size = sel & 0x80 ? in_u32(in)
                               : sizes[sel % ARRAY_SIZE(sizes)];
    uint32_t room = sel & 0x40 ? in_u32(in) : RECORD_ALIGN * in_u16(in);

    if (!end) {
        return;
    }
    store(end, RING_DATA + end->pos % RING_SIZE, size);
    end->pos += room;
    store(end, 0, end->pos);
    wake(end);
}

/* Write any word of the memory, or one of its counters. */
void fuzz_op_shm_store(FuzzIn *in)
{
    End *end = pick_end(in);
    uint8_t sel = in_u8(in);
    uint32_t offset = sel & 0x80 ? in_u32(in)
                                 : counters[sel % ARRAY_SIZE(counters)];
    uint32_t value = in_u32(in);

    if (end) {
        store(end, offset, value);
        wake(end);
    }
}

void fuzz_op_shm_message(FuzzIn *in)
{
    uint8_t sel = in_u8(in), len = in_u8(in) % 40, data[40] = {};
    End *end = sel & 0x80 ? &receivers[sel % ENDS] : &senders[sel % ENDS];
    int fds[FUZZ_MAX_FDS] = { fuzz_guest.wire, fuzz_guest.wire };

    if (end->fd >= 0) {
        fuzz_send_message(end->fd, data, len, fds,
                          (sel >> 5 & 3) % (FUZZ_MAX_FDS + 1));
    }
}

void fuzz_op_shm_close(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    end_close(sel & 0x80 ? &receivers[sel % ENDS] : &senders[sel % ENDS]);
    fuzz_settle();
}

/* Listen under the name of the peer, or stop. */
void fuzz_op_shm_listen(FuzzIn *in)
{
    struct sockaddr_un un = address_of(fuzz_guest.far_mac);

    if (listener >= 0) {
        stop_listening();
        return;
    }
    unlink(un.sun_path);
    listener = new_socket();
    if (bind(listener, (struct sockaddr *)&un, sizeof(un)) < 0 ||
        listen(listener, ENDS) < 0) {
        stop_listening();
    }
}

static int make_memory(FuzzIn *in, size_t *size)
{
    static const uint32_t sizes[] = {
        0, RING_DATA, RING_DATA + 4096, RING_DATA + 65536, RING_DATA + 98304,
        RING_DATA + (4u << 20), RING_DATA + (8u << 20),
    };
    uint8_t sel = in_u8(in);
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    *size = sel < 0xc0 ? RING_DATA + 65536 : sizes[sel % ARRAY_SIZE(sizes)];
    g_assert_cmpint(ftruncate(fd, *size), ==, 0);
    if ((sel & 0xf) != 0xf) {
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    }
    return fd;
}

/* Answer the port, which connects to send, with a welcome that may be wrong. */
void fuzz_op_shm_accept(FuzzIn *in)
{
    uint8_t welcome[16] = "VRDMASHM\1";
    uint8_t sel = in_u8(in), len = 12, n = 1;
    End *end = &receivers[sel % ENDS];
    int fds[FUZZ_MAX_FDS];
    size_t size;

    end_close(end);
    if (listener >= 0) {
        end->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    }
    if (end->fd < 0) {
        return;
    }
    fds[0] = fds[1] = make_memory(in, &size);
    switch (sel >> 4) {
    case 0:
        len = in_u8(in) % (sizeof(welcome) + 1);
        break;
    case 1:
        welcome[in_u8(in) % sizeof(welcome)] ^= 1 + in_u8(in) % 255;
        break;
    case 2:
        n = in_u8(in) % (FUZZ_MAX_FDS + 1);
        break;
    default:
        break;
    }
    end_map(end, fds[0], size);
    fuzz_send_message(end->fd, welcome, len, fds, n);
    close(fds[0]);
}

/* Read all frames of the port, or only claim that. */
void fuzz_op_shm_tail(FuzzIn *in)
{
    End *end = &receivers[in_u8(in) % ENDS];
    uint8_t sel = in_u8(in);

    if (!end->mem || end->size < RING_DATA) {
        return;
    }
    if (sel < 0x80) {
        memcpy(end->mem + 128, end->mem, sizeof(uint32_t));
    } else {
        end->pos += sel & 0x40 ? in_u32(in) : RECORD_ALIGN * in_u16(in);
        store(end, 128, end->pos);
    }
    wake(end);
}

typedef struct Scribble {
    End *end;
    uint32_t offset;
    uint32_t values[2];
} Scribble;

static void *scribble(void *opaque)
{
    const Scribble *s = opaque;

    for (int i = 0; i < SCRIBBLES; i++) {
        store(s->end, s->offset, s->values[i & 1]);
    }
    return NULL;
}

/*
 * A word changes all the time while the port works. The time of a read is
 * chance, so runs of such an input may differ.
 */
void fuzz_op_shm_scribble(FuzzIn *in)
{
    End *end = pick_end(in);
    uint8_t sel = in_u8(in);
    Scribble s = {
        .end = end,
        .offset = sel & 0x80 ? RING_DATA + in_u16(in)
                             : counters[sel % ARRAY_SIZE(counters)],
    };
    QemuThread thread;

    s.values[0] = in_u32(in);
    s.values[1] = in_u32(in);
    if (!end) {
        return;
    }
    qemu_thread_create(&thread, "scribble", scribble, &s,
                       QEMU_THREAD_JOINABLE);
    wake(end);
    fuzz_op_send(in);
    qemu_thread_join(&thread);
    fuzz_settle();
}
