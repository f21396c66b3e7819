/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer of the vhost-user socket of virtio-rdma-server. The attacker is the
 * VMM, or its guest.
 *
 * Each input is a connection, most of which begin with an adapter that runs.
 * After its end, the server must serve the next front end.
 */
#include "qemu/osdep.h"
#include <sys/eventfd.h>
#include "hw/virtio/vhost-user-server.h"
#include "rdma-fuzz.h"

/* Requests: docs/interop/vhost-user.rst of QEMU */
enum {
    GET_FEATURES = 1,
    SET_FEATURES = 2,
    SET_MEM_TABLE = 5,
    SET_LOG_BASE = 6,
    SET_VRING_NUM = 8,
    SET_VRING_ADDR = 9,
    SET_VRING_BASE = 10,
    GET_VRING_BASE = 11,
    SET_VRING_KICK = 12,
    SET_VRING_CALL = 13,
    SET_VRING_ERR = 14,
    GET_PROTOCOL_FEATURES = 15,
    SET_PROTOCOL_FEATURES = 16,
    GET_QUEUE_NUM = 17,
    SET_VRING_ENABLE = 18,
    SET_BACKEND_REQ_FD = 21,
    GET_CONFIG = 24,
    SET_CONFIG = 25,
    ADD_MEM_REG = 37,
    REM_MEM_REG = 38,
    SET_DEVICE_STATE_FD = 42,
    REQUESTS = 44,
};

#define FLAGS_VERSION 1
#define FLAGS_NEED_REPLY 8

#define MAX_STEPS 100
#define MEMORY_SIZE 0x20000u
#define GUEST_ADDR 0x100000u
#define USER_ADDR 0x7f0000000000u
/* One for commands, one for events, four CQs, eight QPs, two SRQs */
#define NUM_RINGS (1 + 4 + 2 * 8 + 1 + 2)
/* Rings that lie in the memory, with 16 entries each */
#define USED_RINGS 6
#define RING_ENTRIES 16
#define RING_ROOM 0x2000
#define AVAIL_AT 0x1000
#define USED_AT 0x1800
#define REQUEST_AT (USED_RINGS * RING_ROOM)
#define ANSWER_AT (REQUEST_AT + 0x1000)

typedef struct FuzzClient {
    int fd;
    int memory;
    uint8_t *ram;                   /* the same memory, of this process */
    int kicks[USED_RINGS];
    uint16_t avail;                 /* commands, all time */
} FuzzClient;

typedef typeof(((VusMessage *)0)->body) FuzzBody;

static char *path;

static void put_message(FuzzClient *c, uint32_t request, uint32_t flags,
                        const void *body, size_t len, int32_t size_error,
                        const int *fds, unsigned n)
{
    struct {
        VusHeader header;
        uint8_t body[sizeof(FuzzBody)];
    } QEMU_PACKED msg = { { request, flags, len + size_error } };

    memcpy(msg.body, body, len);
    fuzz_send_message(c->fd, &msg, sizeof(msg.header) + len, fds, n);
}

/* Send a request without a body. Return its reply, or 0. */
static uint64_t ask(FuzzClient *c, uint32_t request)
{
    struct {
        VusHeader header;
        uint64_t value;
    } QEMU_PACKED reply = {};

    put_message(c, request, FLAGS_VERSION, "", 0, 0, NULL, 0);
    fuzz_drain(c->fd, &reply, sizeof(reply));
    return reply.value;
}

static void connect_client(FuzzClient *c)
{
    c->fd = fuzz_connect(path);
    c->memory = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    g_assert_cmpint(ftruncate(c->memory, MEMORY_SIZE), ==, 0);
    fcntl(c->memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    c->ram = mmap(NULL, MEMORY_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
                  c->memory, 0);
    g_assert(c->ram != MAP_FAILED);
    c->avail = 0;
    for (unsigned n = 0; n < USED_RINGS; n++) {
        c->kicks[n] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
}

static void disconnect_client(FuzzClient *c)
{
    close(c->fd);
    close(c->memory);
    munmap(c->ram, MEMORY_SIZE);
    for (unsigned n = 0; n < USED_RINGS; n++) {
        close(c->kicks[n]);
    }
    fuzz_settle();
}

static VusRegion whole_memory(void)
{
    return (VusRegion) { GUEST_ADDR, MEMORY_SIZE, USER_ADDR, 0 };
}

static struct vhost_vring_addr ring_addr(uint32_t n)
{
    uint64_t at = USER_ADDR + n % USED_RINGS * RING_ROOM;

    return (struct vhost_vring_addr) {
        .index = n,
        .desc_user_addr = at,
        .avail_user_addr = at + AVAIL_AT,
        .used_user_addr = at + USED_AT,
    };
}

static void start_ring(FuzzClient *c, uint32_t n)
{
    struct vhost_vring_state num = { n, RING_ENTRIES }, on = { n, 1 };
    struct vhost_vring_addr addr = ring_addr(n);
    uint64_t index = n;

    put_message(c, SET_VRING_NUM, FLAGS_VERSION, &num, sizeof(num), 0, NULL,
                0);
    put_message(c, SET_VRING_ADDR, FLAGS_VERSION, &addr, sizeof(addr), 0, NULL,
                0);
    put_message(c, SET_VRING_KICK, FLAGS_VERSION, &index, sizeof(index), 0,
                &c->kicks[n], 1);
    put_message(c, SET_VRING_ENABLE, FLAGS_VERSION, &on, sizeof(on), 0, NULL,
                0);
}

/* Start an adapter with rings for commands and of a CQ. */
static void start_device(FuzzClient *c)
{
    uint64_t protocol = ask(c, GET_PROTOCOL_FEATURES);
    uint64_t features = ask(c, GET_FEATURES);
    FuzzBody table = { .table = { 1, 0, { whole_memory() } } };

    put_message(c, SET_PROTOCOL_FEATURES, FLAGS_VERSION, &protocol,
                sizeof(protocol), 0, NULL, 0);
    put_message(c, SET_FEATURES, FLAGS_VERSION, &features, sizeof(features), 0,
                NULL, 0);
    put_message(c, SET_MEM_TABLE, FLAGS_VERSION, &table,
                offsetof(FuzzBody, table.regions[1]), 0, &c->memory, 1);
    start_ring(c, 0);
    start_ring(c, 1);
}

/* Write to memory that the server has, with the device's other side. */
static void store(FuzzClient *c, FuzzIn *in)
{
    uint64_t value = in_u64(in);
    uint32_t at = in_u32(in) % (MEMORY_SIZE - sizeof(value));

    memcpy(c->ram + at, &value, sizeof(value));
}

static void kick(FuzzClient *c, FuzzIn *in)
{
    eventfd_write(c->kicks[in_u8(in) % USED_RINGS], 1);
    fuzz_settle();
}

/* Put a command in ring 0, as a guest does. */
static void command(FuzzClient *c, FuzzIn *in)
{
    struct vring_desc desc[] = {
        { GUEST_ADDR + REQUEST_AT, 1 + in_u8(in) % 64, VRING_DESC_F_NEXT, 1 },
        { GUEST_ADDR + ANSWER_AT, 256, VRING_DESC_F_WRITE },
    };
    uint16_t *avail = (uint16_t *)(c->ram + AVAIL_AT);

    for (uint32_t i = 0; i < desc[0].len; i++) {
        c->ram[REQUEST_AT + i] = in_u8(in);
    }
    memcpy(c->ram, desc, sizeof(desc));
    avail[2 + c->avail++ % RING_ENTRIES] = 0;
    avail[1] = c->avail;
    eventfd_write(c->kicks[0], 1);
    fuzz_settle();
}

/* Most numbers are those of a ring that exists. */
static uint32_t pick_ring(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return sel == 0xff ? in_u32(in) : sel & 0x80 ? sel : sel % USED_RINGS;
}

static VusRegion pick_region(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    VusRegion region = whole_memory();

    region.guest_addr += (sel & 3) * MEMORY_SIZE;
    region.user_addr += (sel & 3) * MEMORY_SIZE;
    if (sel & 0x80) {
        region.guest_addr = in_u64(in);
    }
    if (sel & 0x40) {
        region.size = in_u64(in);
    }
    if (sel & 0x20) {
        region.user_addr = in_u64(in);
    }
    if (sel & 0x10) {
        region.offset = in_u64(in);
    }
    return region;
}

static size_t pick_config(FuzzIn *in, FuzzBody *body)
{
    uint8_t sel = in_u8(in);

    body->config.offset = sel & 0x80 ? in_u32(in) : in_u16(in);
    body->config.size = sel & 0x40 ? in_u32(in) : in_u8(in);
    body->config.flags = 0;
    return offsetof(FuzzBody, config.data) + MIN(body->config.size,
                                                 VUS_MAX_CONFIG);
}

static size_t pick_bytes(FuzzIn *in, FuzzBody *body)
{
    size_t len = in_u8(in) % 64;
    uint8_t *bytes = (uint8_t *)body;

    for (size_t i = 0; i < len; i++) {
        bytes[i] = in_u8(in);
    }
    return len;
}

/* Fill the body of a request. Return its size. */
static size_t pick_body(FuzzClient *c, FuzzIn *in, uint32_t request,
                        FuzzBody *body)
{
    switch (request) {
    case SET_FEATURES:
    case SET_PROTOCOL_FEATURES:
        body->u64 = ask(c, request - 1) ^ 1ull << in_u8(in) % 64;
        return sizeof(body->u64);
    case SET_MEM_TABLE:
        body->table.count = 1 + (in_u8(in) & 1);
        body->table.padding = 0;
        for (int i = 0; i < 2; i++) {
            body->table.regions[i] = pick_region(in);
        }
        return offsetof(FuzzBody, table.regions) +
               body->table.count * sizeof(VusRegion);
    case ADD_MEM_REG:
    case REM_MEM_REG:
        body->slot.padding = 0;
        body->slot.region = pick_region(in);
        return sizeof(body->slot);
    case SET_LOG_BASE:
        body->log.size = in_u8(in) & 0x80 ? in_u64(in) : MEMORY_SIZE;
        body->log.offset = in_u8(in) & 0x80 ? in_u64(in) : 0;
        return sizeof(body->log);
    case SET_DEVICE_STATE_FD:
        body->state.direction = in_u8(in) % 3;
        body->state.phase = in_u8(in) & 0x80 ? 1 : 0;
        return sizeof(body->state);
    case SET_VRING_NUM:
    case SET_VRING_BASE:
    case GET_VRING_BASE:
    case SET_VRING_ENABLE:
        body->ring.index = pick_ring(in);
        body->ring.num = in_u8(in);
        if (body->ring.num & 0x80) {
            body->ring.num = in_u32(in);
        }
        return sizeof(body->ring);
    case SET_VRING_ADDR:
        body->addr = ring_addr(pick_ring(in));
        body->addr.flags = in_u8(in) & 1;
        body->addr.log_guest_addr = body->addr.used_user_addr - USER_ADDR +
                                    GUEST_ADDR;
        switch (in_u8(in) % 8) {
        case 0:
            body->addr.desc_user_addr = in_u64(in);
            break;
        case 1:
            body->addr.avail_user_addr = in_u64(in);
            break;
        case 2:
            body->addr.used_user_addr = in_u64(in);
            break;
        }
        return sizeof(body->addr);
    case SET_VRING_KICK:
    case SET_VRING_CALL:
    case SET_VRING_ERR:
        body->u64 = pick_ring(in);
        return sizeof(body->u64);
    case GET_CONFIG:
    case SET_CONFIG:
        return pick_config(in, body);
    default:
        return pick_bytes(in, body);
    }
}

/* Choose the descriptors that a request should have, or others. */
static unsigned pick_fds(FuzzClient *c, FuzzIn *in, uint32_t request,
                         const FuzzBody *body, int *fds)
{
    uint8_t sel = in_u8(in);
    int fd = c->memory;
    unsigned n = 0;

    switch (request) {
    case SET_MEM_TABLE:
        n = body->table.count;
        break;
    case ADD_MEM_REG:
    case SET_LOG_BASE:
    case SET_DEVICE_STATE_FD:
        n = 1;
        break;
    case SET_VRING_KICK:
    case SET_VRING_CALL:
    case SET_VRING_ERR:
        n = 1;
        fd = c->kicks[body->u64 % USED_RINGS];
        break;
    case SET_BACKEND_REQ_FD:
        n = 1;
        fd = c->fd;
        break;
    }
    if (sel & 0x80) {
        n = sel % (FUZZ_MAX_FDS + 1);
        fd = sel & 0x40 ? c->memory : sel & 0x20 ? c->fd : c->kicks[0];
    }
    fds[0] = fds[1] = fd;
    return n;
}

static void message(FuzzClient *c, FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint32_t request = sel % REQUESTS, flags = FLAGS_VERSION;
    FuzzBody body = {};
    int fds[FUZZ_MAX_FDS], size_error = 0;
    size_t len = pick_body(c, in, request, &body);
    unsigned n = pick_fds(c, in, request, &body, fds);

    if (sel >= 5 * REQUESTS) {
        size_error = (int8_t)in_u8(in);
        flags = in_u8(in);
    } else if (sel >= 3 * REQUESTS) {
        flags |= FLAGS_NEED_REPLY;
    }
    put_message(c, request, flags, &body, len, size_error, fds, n);
    if (size_error > 0) {
        /* The server waits for the rest: let it see the end instead. */
        shutdown(c->fd, SHUT_WR);
    }
    fuzz_drain(c->fd, NULL, 0);
}

static void fuzz_vhost_user(QTestState *s, const unsigned char *data,
                            size_t size)
{
    FuzzIn in = { data, size };
    FuzzClient c;

    connect_client(&c);
    if (in_u8(&in) != 0xff) {
        start_device(&c);
    }
    for (int i = 0; in.left && i < MAX_STEPS; i++) {
        switch (in_u8(&in) % 8) {
        case 0:
            store(&c, &in);
            break;
        case 1:
            kick(&c, &in);
            break;
        case 2:
        case 3:
            command(&c, &in);
            break;
        default:
            message(&c, &in);
            break;
        }
    }
    disconnect_client(&c);

    connect_client(&c);
    g_assert_cmpuint(ask(&c, GET_QUEUE_NUM), ==, NUM_RINGS);
    disconnect_client(&c);
}

static GString *cmdline(FuzzTarget *t)
{
    static const FuzzConfig config = { "rdma-vhost-user" };
    GString *s = g_string_new(TARGET_NAME);

    fuzz_guest.config = &config;
    path = g_strdup_printf("%s/vhost-user.%d", g_get_tmp_dir(), getpid());
    g_string_append_printf(s,
        " -display none -nodefaults -machine none,accel=qtest"
        " -netdev hubport,id=n0,hubid=0"
        " -object rdma-roce,id=roce0,netdev=n0,mac=52:54:00:00:00:01"
        " -device virtio-rdma-vhost-user,id=rdma0,path=%s,ring-reset=on,"
        "rdmadev=roce0,max-qp=8,max-cq=4,max-srq=2,max-mr=24", path);
    return s;
}

static void register_target(void)
{
    fuzz_add_target(&(FuzzTarget) {
        .name = "rdma-vhost-user",
        .description = "The vhost-user socket of virtio-rdma-server",
        .get_init_cmdline = cmdline,
        .fuzz = fuzz_vhost_user,
    });
}

fuzz_target_init(register_target);
