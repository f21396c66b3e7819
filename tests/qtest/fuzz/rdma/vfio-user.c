/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer of the socket of virtio-rdma-server. The attacker is the VMM.
 *
 * Each input is a connection. After its end, the server must accept another
 * connection, and must still report the same number of regions.
 */
#include "qemu/osdep.h"
#include <sys/eventfd.h>
#include "rdma-fuzz.h"
#include "subprojects/libvfio-user/include/vfio-user.h"

#define MAX_MESSAGES 100
#define MAX_BODY 256
#define MEMORY_SIZE 0x20000u
#define REGION_CONFIG 7
#define REGIONS 10

typedef struct FuzzClient {
    int fd;
    int memory;                     /* memfd of the last DMA_MAP, or -1 */
} FuzzClient;

static char *path;

static void put_message(FuzzClient *c, uint16_t cmd, const void *body,
                        size_t len, int32_t size_error, uint8_t flags,
                        const int *fds, unsigned n)
{
    struct {
        struct vfio_user_header header;
        uint8_t body[MAX_BODY];
    } QEMU_PACKED msg = {
        .header = { .msg_id = 1, .cmd = cmd },
    };

    msg.header.msg_size = sizeof(msg.header) + len + size_error;
    msg.header.flags.type = flags & 0xf;
    msg.header.flags.no_reply = flags >> 4;
    memcpy(msg.body, body, len);
    fuzz_send_message(c->fd, &msg, sizeof(msg.header) + len, fds, n);
}

static void connect_client(FuzzClient *c)
{
    c->memory = -1;
    c->fd = fuzz_connect(path);
}

static void disconnect_client(FuzzClient *c)
{
    close(c->fd);
    if (c->memory >= 0) {
        close(c->memory);
    }
    fuzz_settle();
}

static void negotiate(FuzzClient *c)
{
    static const char version[] = "\0\0\0\0{}";

    put_message(c, VFIO_USER_VERSION, version, sizeof(version), 0, 0, NULL, 0);
    fuzz_drain(c->fd, NULL, 0);
}

static size_t get_info(FuzzClient *c)
{
    struct vfio_user_device_info info = { .argsz = sizeof(info) };
    struct {
        struct vfio_user_header header;
        struct vfio_user_device_info info;
    } QEMU_PACKED reply = {};

    put_message(c, VFIO_USER_DEVICE_GET_INFO, &info, sizeof(info), 0, 0, NULL,
                0);
    fuzz_drain(c->fd, &reply, sizeof(reply));
    return reply.info.num_regions;
}

/* Map memory. Most inputs choose a valid size and address. */
static size_t dma_map(FuzzClient *c, FuzzIn *in, void *body, int *fd)
{
    uint8_t sel = in_u8(in);
    struct vfio_user_dma_map map = {
        .argsz = sizeof(map),
        .flags = sel & 3,
        .addr = sel & 0x80 ? in_u64(in) : (sel >> 4) * MEMORY_SIZE,
        .size = sel & 0x40 ? in_u64(in) : MEMORY_SIZE,
        .offset = sel & 0x20 ? in_u32(in) : 0,
    };

    *fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    g_assert_cmpint(ftruncate(*fd, MEMORY_SIZE), ==, 0);
    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    if (c->memory >= 0) {
        close(c->memory);
    }
    c->memory = dup(*fd);
    memcpy(body, &map, sizeof(map));
    return sizeof(map);
}

static size_t dma_unmap(FuzzIn *in, void *body)
{
    uint8_t sel = in_u8(in);
    struct vfio_user_dma_unmap unmap = {
        .argsz = sizeof(unmap),
        .flags = sel & 3,
        .addr = sel & 0x80 ? in_u64(in) : (sel >> 4) * MEMORY_SIZE,
        .size = sel & 0x40 ? in_u64(in) : MEMORY_SIZE,
    };

    memcpy(body, &unmap, sizeof(unmap));
    return sizeof(unmap);
}

static size_t region_access(FuzzIn *in, bool write, void *body)
{
    static const uint8_t sizes[] = { 1, 2, 4, 8 };
    uint8_t sel = in_u8(in);
    struct vfio_user_region_access access = {
        .region = sel % REGIONS,
        .count = sel & 0x80 ? in_u32(in) : sizes[sel >> 4 & 3],
    };
    size_t len = write ? MIN(access.count, 64) : 0;

    access.offset = access.region == REGION_CONFIG ? in_u8(in) : in_u16(in);
    if (sel & 0x40) {
        access.offset = in_u64(in);
    }
    memcpy(body, &access, sizeof(access));
    for (size_t i = 0; i < len; i++) {
        ((uint8_t *)body)[sizeof(access) + i] = in_u8(in);
    }
    return sizeof(access) + len;
}

static size_t set_irqs(FuzzIn *in, void *body, int *fds, unsigned *n)
{
    uint8_t sel = in_u8(in);
    struct vfio_irq_set set = {
        .argsz = sizeof(set),
        .flags = 1 << (sel & 7) % 3 | 8 << (sel >> 3 & 3) % 3,
        .index = in_u8(in) % 6,
        .start = in_u8(in),
        .count = in_u8(in) % 8,
    };

    if (sel & 0x80) {
        set.start = in_u32(in);
        set.count = in_u32(in);
    }
    *n = (sel >> 5) % (FUZZ_MAX_FDS + 1);
    for (unsigned i = 0; i < *n; i++) {
        fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    memcpy(body, &set, sizeof(set));
    return sizeof(set);
}

/* Write to memory that the server may have mapped. */
static void store(FuzzClient *c, FuzzIn *in)
{
    uint64_t value = in_u64(in);
    uint32_t at = in_u32(in) % (MEMORY_SIZE - sizeof(value));

    if (c->memory >= 0) {
        (void)!pwrite(c->memory, &value, sizeof(value), at);
    }
}

static void send_one(FuzzClient *c, FuzzIn *in)
{
    uint8_t sel = in_u8(in), body[MAX_BODY], flags = 0;
    uint16_t cmd = sel % (VFIO_USER_MAX + 1);
    int fds[FUZZ_MAX_FDS], size_error = 0;
    unsigned n = 0;
    size_t len;

    switch (cmd) {
    case VFIO_USER_DMA_MAP:
        len = dma_map(c, in, body, fds);
        n = 1;
        break;
    case VFIO_USER_DMA_UNMAP:
        len = dma_unmap(in, body);
        break;
    case VFIO_USER_REGION_READ:
    case VFIO_USER_REGION_WRITE:
        len = region_access(in, cmd == VFIO_USER_REGION_WRITE, body);
        break;
    case VFIO_USER_DEVICE_SET_IRQS:
        len = set_irqs(in, body, fds, &n);
        break;
    case 0:
        store(c, in);
        return;
    default:
        len = in_u8(in) % 64;
        for (size_t i = 0; i < len; i++) {
            body[i] = in_u8(in);
        }
        break;
    }
    if (sel >= 0xe0) {
        size_error = (int8_t)in_u8(in);
        flags = in_u8(in);
    }
    put_message(c, cmd, body, len, size_error, flags, fds, n);
    while (n) {
        close(fds[--n]);
    }
    if (size_error > 0) {
        /* The server waits for the rest: let it see the end instead. */
        shutdown(c->fd, SHUT_WR);
    }
    fuzz_drain(c->fd, NULL, 0);
}

static void fuzz_vfio_user(QTestState *s, const unsigned char *data,
                           size_t size)
{
    FuzzIn in = { data, size };
    FuzzClient c;

    connect_client(&c);
    if (in_u8(&in) != 0xff) {
        negotiate(&c);
    }
    for (int i = 0; in.left && i < MAX_MESSAGES; i++) {
        send_one(&c, &in);
    }
    disconnect_client(&c);

    connect_client(&c);
    negotiate(&c);
    g_assert_cmpuint(get_info(&c), ==, REGIONS);
    disconnect_client(&c);
}

static GString *cmdline(FuzzTarget *t)
{
    static const FuzzConfig config = { "rdma-vfio-user" };
    GString *s = g_string_new(TARGET_NAME);

    fuzz_guest.config = &config;
    path = g_strdup_printf("%s/vfio-user.%d", g_get_tmp_dir(), getpid());
    g_string_append_printf(s,
        " -display none -nodefaults -m 8"
        " -machine x-remote,accel=qtest,vfio-user=on,auto-shutdown=off"
        " -netdev hubport,id=n0,hubid=0"
        " -device virtio-rdma-pci,id=rdma0,netdev=n0,iommu_platform=on,"
        "disable-legacy=on,max-qp=8,max-cq=4,max-srq=2,max-mr=24"
        " -object x-vfio-user-server,id=server0,type=unix,path=%s,"
        "device=rdma0", path);
    return s;
}

static void register_target(void)
{
    fuzz_add_target(&(FuzzTarget) {
        .name = "rdma-vfio-user",
        .description = "The socket of virtio-rdma-server",
        .get_init_cmdline = cmdline,
        .fuzz = fuzz_vfio_user,
    });
}

fuzz_target_init(register_target);
