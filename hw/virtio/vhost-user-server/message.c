/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of the front end (docs/interop/vhost-user.rst of QEMU)
 */
#include "qemu/osdep.h"
#include "hw/virtio/vhost-user.h"
#include "qapi/error.h"
#include "trace.h"
#include "server.h"

#define FLAGS_VERSION 1
#define FLAGS_VERSION_MASK 3
#define FLAGS_NEED_REPLY 8

#define RING_INDEX_MASK 0xff

/* Reply to SET_DEVICE_STATE_FD: an error, and no file descriptor */
#define STATE_REFUSED 0x101

#define PROTOCOL_FEATURES (1ULL << VHOST_USER_PROTOCOL_F_MQ | \
                           1ULL << VHOST_USER_PROTOCOL_F_REPLY_ACK | \
                           1ULL << VHOST_USER_PROTOCOL_F_BACKEND_REQ | \
                           1ULL << VHOST_USER_PROTOCOL_F_CONFIG | \
                           1ULL << VHOST_USER_PROTOCOL_F_RESET_DEVICE | \
                           1ULL << VHOST_USER_PROTOCOL_F_LOG_SHMFD | \
                           1ULL << VHOST_USER_PROTOCOL_F_DEVICE_STATE | \
                           1ULL << VHOST_USER_PROTOCOL_F_CONFIGURE_MEM_SLOTS)

static void reply_u64(VusMessage *msg, uint64_t value)
{
    msg->body.u64 = value;
    msg->header.size = sizeof(value);
    msg->reply = true;
}

static int take_fd(VusMessage *msg)
{
    int fd = msg->nfds ? msg->fds[0] : -1;

    if (msg->nfds) {
        msg->fds[0] = -1;
    }
    return fd;
}

static bool get_features(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    reply_u64(msg, vus_features(s));
    return true;
}

static bool set_features(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    uint64_t unknown = msg->body.u64 & ~vus_features(s);

    if (unknown) {
        error_setg(errp, "features 0x%" PRIx64 " are not offered", unknown);
        return false;
    }
    if (!(msg->body.u64 & 1ULL << VIRTIO_F_VERSION_1) ||
        !(msg->body.u64 & 1ULL << VUS_F_PROTOCOL)) {
        error_setg(errp, "features 0x%" PRIx64 ": VIRTIO_F_VERSION_1 and "
                   "VHOST_USER_F_PROTOCOL_FEATURES are required",
                   msg->body.u64);
        return false;
    }
    s->features = msg->body.u64;
    vus_log_enable(s, s->features & 1ULL << VHOST_F_LOG_ALL);
    return true;
}

static bool get_protocol(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    reply_u64(msg, PROTOCOL_FEATURES);
    return true;
}

static bool set_protocol(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    uint64_t unknown = msg->body.u64 & ~PROTOCOL_FEATURES;

    if (unknown) {
        error_setg(errp, "protocol features 0x%" PRIx64 " are not offered",
                   unknown);
        return false;
    }
    s->protocol_features = msg->body.u64;
    return true;
}

static bool ignore(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    return true;
}

static bool get_queue_num(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    reply_u64(msg, s->num_rings);
    return true;
}

static bool reset_device(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    for (uint32_t n = 0; n < s->num_rings; n++) {
        s->rings[n].enabled = false;
    }
    vus_run_stop(s);
    vus_reset(s);
    return true;
}

static bool set_mem_table(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    uint32_t count = msg->body.table.count;

    if (count > VUS_TABLE_REGIONS || msg->nfds != count ||
        msg->header.size != offsetof(typeof(msg->body.table), regions[count])) {
        error_setg(errp, "a table of %u regions with %u file descriptors and "
                   "%u bytes: expected at most %d regions, a descriptor for "
                   "each, and 8 + 32 bytes for each", count, msg->nfds,
                   msg->header.size, VUS_TABLE_REGIONS);
        return false;
    }
    vus_log_update(s);
    return vus_memory_replace(s, msg->body.table.regions, msg->fds, count,
                              errp);
}

static bool get_max_slots(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    reply_u64(msg, VUS_MAX_REGIONS);
    return true;
}

static bool add_region(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    if (!msg->nfds) {
        error_setg(errp, "the file descriptor of the memory is missing");
        return false;
    }
    return vus_memory_add(s, &msg->body.slot.region, msg->fds[0], errp);
}

static bool remove_region(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    vus_log_update(s);
    return vus_memory_remove(s, &msg->body.slot.region, errp);
}

static bool set_log_base(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    if (!msg->nfds) {
        error_setg(errp, "the file descriptor of the log is missing");
        return false;
    }
    if (!vus_log_set(s, msg->fds[0], msg->body.log.offset, msg->body.log.size,
                     errp)) {
        return false;
    }
    reply_u64(msg, 0);
    return true;
}

static bool check_index(uint32_t n, uint32_t num_rings, Error **errp)
{
    if (n >= num_rings) {
        error_setg(errp, "ring %u: expected at most %u", n, num_rings - 1);
        return false;
    }
    return true;
}

/* Find a ring that must not be in use. */
static VusRing *idle_ring(VhostUserServer *s, uint32_t n, Error **errp)
{
    if (!check_index(n, s->num_rings, errp)) {
        return NULL;
    }
    if (s->rings[n].started) {
        error_setg(errp, "ring %u is in use: stop it by GET_VRING_BASE", n);
        return NULL;
    }
    return &s->rings[n];
}

static bool set_num(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    VusRing *ring = idle_ring(s, msg->body.ring.index, errp);

    if (ring) {
        ring->num = msg->body.ring.num;
    }
    return ring;
}

/* Whether only VHOST_VRING_F_LOG changes, which may change in use */
static bool is_same_ring(const VusRing *ring,
                         const struct vhost_vring_addr *addr)
{
    return ring->addr.desc_user_addr == addr->desc_user_addr &&
           ring->addr.avail_user_addr == addr->avail_user_addr &&
           ring->addr.used_user_addr == addr->used_user_addr;
}

static bool set_addr(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    const struct vhost_vring_addr *addr = &msg->body.addr;
    uint32_t n = addr->index;

    if (!check_index(n, s->num_rings, errp)) {
        return false;
    }
    if (s->rings[n].started && is_same_ring(&s->rings[n], addr)) {
        s->rings[n].addr = *addr;
        return !s->running || vus_ring_locate(s, n, errp);
    }
    if (!idle_ring(s, n, errp)) {
        return false;
    }
    s->rings[n].addr = *addr;
    return true;
}

static bool set_base(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    VusRing *ring = idle_ring(s, msg->body.ring.index, errp);

    if (!ring) {
        return false;
    }
    if (msg->body.ring.num > UINT16_MAX) {
        error_setg(errp, "ring %u starts at %u: expected at most %u",
                   msg->body.ring.index, msg->body.ring.num, UINT16_MAX);
        return false;
    }
    ring->base = msg->body.ring.num;
    return true;
}

static bool get_base(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    VirtIODevice *vdev = vus_vdev(s);
    uint32_t n = msg->body.ring.index;

    if (!check_index(n, s->num_rings, errp)) {
        return false;
    }
    /* A ring that has not run keeps the base of SET_VRING_BASE. */
    if (virtio_queue_get_desc_addr(vdev, n)) {
        s->rings[n].base = virtio_queue_get_last_avail_idx(vdev, n);
        /* After the reply, the guest may reuse the memory of the ring. */
        if (s->running && !vus_run_reset_ring(s, n)) {
            vus_run_stop(s);
        }
    }
    s->rings[n].started = false;
    msg->body.ring.num = s->rings[n].base;
    msg->header.size = sizeof(msg->body.ring);
    msg->reply = true;
    return true;
}

static bool set_kick(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    uint32_t n = msg->body.u64 & RING_INDEX_MASK;
    VusRing *ring = idle_ring(s, n, errp);

    if (!ring) {
        return false;
    }
    if (!msg->nfds) {
        error_setg(errp, "the eventfd is missing: the device does not poll "
                   "rings");
        return false;
    }
    if (!vus_ring_set_fd(&ring->kick_fd, take_fd(msg), errp)) {
        return false;
    }
    ring->started = true;
    return vus_run_update(s, n, errp);
}

/*
 * A front end may have more rings than the device. So SET_VRING_CALL,
 * SET_VRING_ERR and SET_VRING_ENABLE accept each index of eight bits.
 */
static bool set_call(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    VusRing *ring = &s->rings[msg->body.u64 & RING_INDEX_MASK];

    return vus_ring_set_fd(&ring->call_fd, take_fd(msg), errp);
}

static bool set_err(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    VusRing *ring = &s->rings[msg->body.u64 & RING_INDEX_MASK];

    return vus_ring_set_fd(&ring->err_fd, take_fd(msg), errp);
}

static bool set_enable(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    uint32_t n = msg->body.ring.index;

    if (!check_index(n, VUS_MAX_RINGS, errp)) {
        return false;
    }
    s->rings[n].enabled = msg->body.ring.num;
    return n >= s->num_rings || vus_run_update(s, n, errp);
}

static bool set_backend_fd(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    struct stat st;

    if (!msg->nfds || fstat(msg->fds[0], &st) < 0 || !S_ISSOCK(st.st_mode)) {
        error_setg(errp, "expected the file descriptor of a socket");
        return false;
    }
    vus_fd_close(&s->backend_fd);
    s->backend_fd = take_fd(msg);
    return true;
}

static bool set_state_fd(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    uint32_t direction = msg->body.state.direction;
    uint32_t phase = msg->body.state.phase;

    if ((direction != VUS_SAVE && direction != VUS_LOAD) || phase) {
        error_setg(errp, "direction %u, phase %u: expected direction %d or %d, "
                   "and phase 0", direction, phase, VUS_SAVE, VUS_LOAD);
        return false;
    }
    if (s->running) {
        error_setg(errp, "the device runs: stop its rings by GET_VRING_BASE");
        return false;
    }
    /* The server's file replaces that of the front end. */
    msg->reply_fd = vus_state_open(s, direction);
    reply_u64(msg, msg->reply_fd < 0 ? STATE_REFUSED : 0);
    return true;
}

static bool check_state(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    if (s->state_fd < 0 || s->running) {
        error_setg(errp, "expected a stopped device after SET_DEVICE_STATE_FD");
        return false;
    }
    reply_u64(msg, !vus_state_finish(s));
    return true;
}

static bool check_config(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    size_t len = vus_vdev(s)->config_len;
    uint32_t offset = msg->body.config.offset;
    uint32_t size = msg->body.config.size;

    if (size > VUS_MAX_CONFIG || offset > len || size > len - offset ||
        msg->header.size != offsetof(typeof(msg->body.config), data[size])) {
        error_setg(errp, "%u bytes at %u of the configuration in a body of %u "
                   "bytes: expected a range in its %zu bytes, at most %d bytes "
                   "long",
                   size, offset, msg->header.size, len, VUS_MAX_CONFIG);
        return false;
    }
    return true;
}

static bool get_config(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    VirtIODevice *vdev = vus_vdev(s);

    if (!check_config(s, msg, errp)) {
        return false;
    }
    virtio_bus_get_vdev_config(&s->bus, vdev->config);
    memcpy(msg->body.config.data, vdev->config + msg->body.config.offset,
           msg->body.config.size);
    msg->reply = true;
    return true;
}

static bool set_config(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    VirtIODevice *vdev = vus_vdev(s);

    if (!check_config(s, msg, errp)) {
        return false;
    }
    memcpy(vdev->config + msg->body.config.offset, msg->body.config.data,
           msg->body.config.size);
    virtio_bus_set_vdev_config(&s->bus, vdev->config);
    return true;
}

typedef bool VusHandler(VhostUserServer *s, VusMessage *msg, Error **errp);

typedef struct VusRequest {
    const char *name;
    VusHandler *handle;
    uint32_t min;                   /* bytes of the body */
    uint32_t max;
    uint32_t max_fds;
} VusRequest;

#define BODY(field) sizeof(((VusMessage *)0)->body.field)
#define CONFIG_MIN offsetof(typeof(((VusMessage *)0)->body.config), data)
#define TABLE_MIN offsetof(typeof(((VusMessage *)0)->body.table), regions)

/*
 * Indexed by the protocol's number of the request. Missing requests need
 * features that the server does not offer, except SET_LOG_FD, which is
 * optional.
 */
static const VusRequest requests[] = {
    [1] = { "GET_FEATURES", get_features },
    [2] = { "SET_FEATURES", set_features, BODY(u64), BODY(u64) },
    [3] = { "SET_OWNER", ignore },
    [4] = { "RESET_OWNER", ignore },
    [5] = { "SET_MEM_TABLE", set_mem_table, TABLE_MIN, BODY(table),
            VUS_TABLE_REGIONS },
    [6] = { "SET_LOG_BASE", set_log_base, BODY(log), BODY(log), 1 },
    [8] = { "SET_VRING_NUM", set_num, BODY(ring), BODY(ring) },
    [9] = { "SET_VRING_ADDR", set_addr, BODY(addr), BODY(addr) },
    [10] = { "SET_VRING_BASE", set_base, BODY(ring), BODY(ring) },
    [11] = { "GET_VRING_BASE", get_base, BODY(ring), BODY(ring) },
    [12] = { "SET_VRING_KICK", set_kick, BODY(u64), BODY(u64), 1 },
    [13] = { "SET_VRING_CALL", set_call, BODY(u64), BODY(u64), 1 },
    [14] = { "SET_VRING_ERR", set_err, BODY(u64), BODY(u64), 1 },
    [15] = { "GET_PROTOCOL_FEATURES", get_protocol },
    [16] = { "SET_PROTOCOL_FEATURES", set_protocol, BODY(u64), BODY(u64) },
    [17] = { "GET_QUEUE_NUM", get_queue_num },
    [18] = { "SET_VRING_ENABLE", set_enable, BODY(ring), BODY(ring) },
    [21] = { "SET_BACKEND_REQ_FD", set_backend_fd, 0, BODY(u64), 1 },
    [24] = { "GET_CONFIG", get_config, CONFIG_MIN, BODY(config) },
    [25] = { "SET_CONFIG", set_config, CONFIG_MIN, BODY(config) },
    [34] = { "RESET_DEVICE", reset_device },
    [36] = { "GET_MAX_MEM_SLOTS", get_max_slots },
    [37] = { "ADD_MEM_REG", add_region, BODY(slot), BODY(slot), 1 },
    [38] = { "REM_MEM_REG", remove_region, BODY(slot), BODY(slot), 1 },
    [42] = { "SET_DEVICE_STATE_FD", set_state_fd, BODY(state), BODY(state), 1 },
    [43] = { "CHECK_DEVICE_STATE", check_state },
};

static const VusRequest *find_request(uint32_t n)
{
    return n < ARRAY_SIZE(requests) && requests[n].handle ? &requests[n] : NULL;
}

bool vus_message_check(const VusMessage *msg, Error **errp)
{
    const VusHeader *header = &msg->header;
    const VusRequest *request = find_request(header->request);

    if ((header->flags & FLAGS_VERSION_MASK) != FLAGS_VERSION) {
        error_setg(errp, "a message of version %u: expected %u",
                   header->flags & FLAGS_VERSION_MASK, FLAGS_VERSION);
        return false;
    }
    if (!request) {
        error_setg(errp, "request %u is unknown, or needs a feature that is "
                   "not offered", header->request);
        return false;
    }
    if (header->size < request->min || header->size > request->max) {
        error_setg(errp, "%s: a body of %u bytes: expected %u to %u",
                   request->name, header->size, request->min, request->max);
        return false;
    }
    return true;
}

bool vus_message_execute(VhostUserServer *s, VusMessage *msg, Error **errp)
{
    const VusRequest *request = find_request(msg->header.request);

    msg->reply = false;
    msg->reply_fd = -1;
    trace_vhost_user_server_request(s, request->name, msg->header.size,
                                    msg->nfds);
    if (msg->nfds > request->max_fds) {
        error_setg(errp, "%s: %u file descriptors: expected at most %u",
                   request->name, msg->nfds, request->max_fds);
        return false;
    }
    if (!request->handle(s, msg, errp)) {
        error_prepend(errp, "%s: ", request->name);
        return false;
    }
    if (!msg->reply && (msg->header.flags & FLAGS_NEED_REPLY) &&
        (s->protocol_features & 1ULL << VHOST_USER_PROTOCOL_F_REPLY_ACK)) {
        reply_u64(msg, 0);
    }
    return true;
}
