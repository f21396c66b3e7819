// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System calls on the file of the device. Those that libibverbs makes come
 * through ioctl() and mmap() here: they are noted, some are changed, and other
 * threads repeat them with changes.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hostile.h"

#define MAX_ATTRS 24
#define MAX_DATA 512
#define RECORDS 128
/* Lower values are numbers, not addresses. */
#define FIRST_ADDRESS 0x10000

struct command {
    struct ib_uverbs_ioctl_hdr hdr;
    struct ib_uverbs_attr attrs[MAX_ATTRS];
    uint8_t data[MAX_ATTRS][MAX_DATA];
};

static int device_fd = -1;
static struct rng user_rng;     /* the thread that uses libibverbs */
static struct command records[RECORDS];
static atomic_uint num_records;
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;

void commands_start(int fd, uint64_t seed)
{
    user_rng.state = seed;
    device_fd = fd;
}

static bool is_address(const struct ib_uverbs_attr *attr)
{
    return attr->data >= FIRST_ADDRESS && attr->len;
}

static int send_command(struct command *cmd)
{
    int ret;

    atomic_fetch_add(&counts->commands, 1);
    ret = syscall(SYS_ioctl, device_fd, RDMA_VERBS_IOCTL, &cmd->hdr);
    if (ret == 0) {
        atomic_fetch_add(&counts->accepted, 1);
    }
    return ret;
}

/* Copy the data that attributes refer to as well. */
static void record(const struct ib_uverbs_ioctl_hdr *hdr)
{
    struct command *cmd;

    if (hdr->num_attrs > MAX_ATTRS) {
        return;
    }
    pthread_mutex_lock(&record_lock);
    cmd = &records[num_records % RECORDS];
    memcpy(&cmd->hdr, hdr,
           sizeof(*hdr) + hdr->num_attrs * sizeof(cmd->attrs[0]));
    for (int i = 0; i < hdr->num_attrs; i++) {
        const struct ib_uverbs_attr *attr = &cmd->attrs[i];

        if (is_address(attr) && attr->len <= MAX_DATA) {
            memcpy(cmd->data[i], (void *)(uintptr_t)attr->data, attr->len);
        }
    }
    num_records++;
    pthread_mutex_unlock(&record_lock);
}

static void change_attr(struct rng *rng, struct ib_uverbs_attr *attr)
{
    switch (rng_below(rng, 5)) {
    case 0:
        attr->attr_id = rng_one_in(rng, 2) ? rng_below(rng, 16)
                                           : rng_next(rng);
        break;
    case 1:
        attr->len = rng_below(rng, MAX_DATA);
        break;
    case 2:
        attr->flags ^= 1U << rng_below(rng, 16);
        break;
    case 3:
        /* The handle of an object, in most cases */
        attr->data = rng_below(rng, 64);
        break;
    default:
        attr->data = rng_word(rng);
        break;
    }
}

static void change_data(struct rng *rng, struct command *cmd)
{
    struct ib_uverbs_attr *attr =
        &cmd->attrs[rng_below(rng, cmd->hdr.num_attrs)];
    uint8_t *data = (void *)(uintptr_t)attr->data;
    uint32_t word = rng_word(rng);

    if (!is_address(attr) || attr->len > MAX_DATA) {
        attr->data ^= 1ULL << rng_below(rng, 64);
        return;
    }
    if (attr->len < sizeof(word) || rng_one_in(rng, 2)) {
        data[rng_below(rng, attr->len)] = word;
        return;
    }
    memcpy(data + rng_below(rng, attr->len - sizeof(word) + 1) / 4 * 4, &word,
           sizeof(word));
}

static void change(struct rng *rng, struct command *cmd)
{
    for (uint32_t n = 1 + rng_below(rng, 3); n; n--) {
        uint32_t what = rng_below(rng, 12);

        if (what == 0) {
            cmd->hdr.object_id = rng_below(rng, 20);
        } else if (what == 1) {
            cmd->hdr.method_id = rng_below(rng, 12);
        } else if (what == 2) {
            cmd->hdr.num_attrs = rng_below(rng, MAX_ATTRS + 1);
            cmd->hdr.length = sizeof(cmd->hdr) +
                              cmd->hdr.num_attrs * sizeof(cmd->attrs[0]);
        } else if (what == 3) {
            cmd->hdr.length = rng_word(rng);
        } else if (!cmd->hdr.num_attrs) {
            continue;
        } else if (what < 7) {
            change_attr(rng, &cmd->attrs[rng_below(rng, cmd->hdr.num_attrs)]);
        } else {
            change_data(rng, cmd);
        }
    }
}

/* Repeat a command, in most cases with changes. */
void commands_replay(struct rng *rng)
{
    static _Thread_local struct command cmd;
    uint32_t n = num_records;

    if (!n) {
        usleep(100);
        return;
    }
    pthread_mutex_lock(&record_lock);
    cmd = records[rng_below(rng, n < RECORDS ? n : RECORDS)];
    pthread_mutex_unlock(&record_lock);
    for (int i = 0; i < cmd.hdr.num_attrs; i++) {
        if (is_address(&cmd.attrs[i])) {
            cmd.attrs[i].data = (uintptr_t)cmd.data[i];
        }
    }
    if (!rng_one_in(rng, 8)) {
        change(rng, &cmd);
    }
    send_command(&cmd);
}

/* Commands of the older form, for write() */
void commands_write(struct rng *rng)
{
    struct {
        struct ib_uverbs_cmd_hdr hdr;
        uint32_t words[64];
    } cmd;
    uint8_t response[256];
    uint64_t where = (uintptr_t)response;
    uint32_t size = 4 * rng_below(rng, 65);

    for (int i = 0; i < 64; i++) {
        cmd.words[i] = rng_one_in(rng, 3) ? rng_word(rng) : rng_below(rng, 16);
    }
    memcpy(cmd.words, &where, sizeof(where));
    cmd.hdr.command = rng_below(rng, IB_USER_VERBS_CMD_OPEN_QP + 12);
    /* A file of events that is never read */
    if (cmd.hdr.command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) {
        return;
    }
    if (rng_one_in(rng, 8)) {
        cmd.hdr.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
    }
    cmd.hdr.in_words = (sizeof(cmd.hdr) + size) / 4;
    cmd.hdr.out_words = rng_below(rng, sizeof(response) / 4 + 1);
    if (rng_one_in(rng, 16)) {
        cmd.hdr.in_words = rng_next(rng);
        cmd.hdr.out_words = rng_next(rng);
    }
    atomic_fetch_add(&counts->writes, 1);
    if (syscall(SYS_write, device_fd, &cmd, sizeof(cmd.hdr) + size) > 0) {
        atomic_fetch_add(&counts->accepted, 1);
    }
}

/* In place of libc's, also for libibverbs */
int ioctl(int fd, unsigned long request, ...)
{
    struct ib_uverbs_ioctl_hdr *hdr;
    static struct command changed;
    va_list list;

    va_start(list, request);
    hdr = va_arg(list, void *);
    va_end(list);
    if (fd != device_fd || request != RDMA_VERBS_IOCTL) {
        return syscall(SYS_ioctl, fd, request, hdr);
    }
    record(hdr);
    if (hdr->num_attrs <= MAX_ATTRS && rng_one_in(&user_rng, 12)) {
        memcpy(&changed.hdr, hdr,
               sizeof(*hdr) + hdr->num_attrs * sizeof(changed.attrs[0]));
        change(&user_rng, &changed);
        return send_command(&changed);
    }
    atomic_fetch_add(&counts->commands, 1);
    return syscall(SYS_ioctl, fd, request, hdr);
}

void *mmap(void *address, size_t size, int prot, int flags, int fd,
           off_t offset)
{
    void *map = (void *)syscall(SYS_mmap, address, size, prot, flags, fd,
                                offset);

    /*
     * The mappings made while the device is opened are its page of doorbells,
     * and the shadow.
     */
    bool opening = device_fd < 0 && (flags & MAP_SHARED);

    if ((fd == device_fd || opening) && fd >= 0 && map != MAP_FAILED) {
        maps_note(map, size, offset);
    }
    return map;
}
