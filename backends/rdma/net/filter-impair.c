/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter-impair: a net filter that acts as a bad, slow or long link, to test
 * protocols and to show congestion.
 *
 * Each direction first injects faults: it drops, duplicates, reorders and
 * corrupts frames. The other frames enter a queue in front of a link with a
 * rate and a delay. A frame that finds too many bytes in the queue is dropped.
 * One that finds more than @mark bytes gets an ECN mark (RFC 3168), if its
 * sender supports marks.
 *
 * The same seed and the same frames give the same faults. Each direction has
 * its own random sequence. How many numbers it draws for a frame does not
 * depend on the rates, so neither the other direction nor another rate changes
 * which frames are hit.
 *
 * Context: all functions run under the BQL.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/iov.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "net/eth.h"
#include "net/filter.h"
#include "net/net.h"
#include "system/rdma-series.h"
#include "system/rdma-setting.h"
#include "../trace.h"

#define TYPE_FILTER_IMPAIR "filter-impair"
OBJECT_DECLARE_SIMPLE_TYPE(FilterImpair, FILTER_IMPAIR)

/* Fault rates are per this many frames. */
#define FAULT_SCALE 10000
/* A reordered frame waits this long if no other frame follows. */
#define REORDER_NS (1 * SCALE_MS)

#define ROOM_DEFAULT (256 * 1024)
/* Memory limit for a link without a rate, which @room does not limit */
#define QUEUED_MAX (64 * 1024 * 1024)

#define ECN_MASK 3
#define ECN_CE 3

typedef enum Fault {
    FAULT_DROP,
    FAULT_DUP,
    FAULT_REORDER,
    FAULT_CORRUPT,
    FAULT__MAX,
} Fault;

typedef struct Frame {
    QSIMPLEQ_ENTRY(Frame) next;
    NetClientState *sender;
    unsigned flags;
    int64_t arrives;                /* ns, at the end of the link */
    size_t size;
    size_t offset;                  /* of the Ethernet header */
    uint8_t data[];
} Frame;

/* One direction */
typedef struct Lane {
    NetFilterState *nf;
    GRand *rand;
    Frame *reordered;               /* waits for the next frame, or NULL */
    QEMUTimer *reorder_timer;
    QSIMPLEQ_HEAD(, Frame) queue;   /* in the queue or on the link */
    size_t queue_bytes;
    int64_t idle_at;                /* ns, when no frame waits for the link */
    int64_t used_at;                /* ns, when the link got its last frame */
    QEMUTimer *link_timer;
} Lane;

struct FilterImpair {
    NetFilterState parent_obj;

    uint32_t fault_rate[FAULT__MAX];
    uint64_t seed;
    uint32_t rate;                  /* kbit/s; 0: unlimited */
    uint32_t delay;                 /* us */
    uint32_t room;                  /* bytes */
    uint32_t mark;                  /* bytes; 0: no marks */
    uint64_t dropped, marked;       /* frames, by the queue */
    Lane lane[2];                   /* from the netdev, to the netdev */
};

OBJECT_DEFINE_SIMPLE_TYPE(FilterImpair, filter_impair, FILTER_IMPAIR, NETFILTER)

static int64_t now_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static Frame *frame_new(NetClientState *sender, unsigned flags, size_t offset,
                        const struct iovec *iov, int iovcnt)
{
    size_t size = iov_size(iov, iovcnt);
    Frame *f = g_malloc(sizeof(*f) + size);

    *f = (Frame) {
        .sender = sender,
        .flags = flags,
        .size = size,
        .offset = offset,
    };
    iov_to_buf(iov, iovcnt, 0, f->data, size);
    return f;
}

static bool sender_exists(const NetClientState *sender)
{
    NetClientState *nc;

    QTAILQ_FOREACH(nc, &net_clients, next) {
        if (nc == sender) {
            return true;
        }
    }
    return false;
}

static void lane_pass(Lane *lane, Frame *f)
{
    struct iovec iov = { .iov_base = f->data, .iov_len = f->size };

    /* The sender may have been unplugged while the frame waited. */
    if (sender_exists(f->sender)) {
        qemu_netfilter_pass_to_next(f->sender, f->flags, &iov, 1, lane->nf);
    }
    g_free(f);
}

/* The link */

static bool mark_ipv4(struct ip_header *ip)
{
    if (!(ip->ip_tos & ECN_MASK)) {
        return false;
    }
    ip->ip_tos |= ECN_CE;
    eth_fix_ip4_checksum(ip, sizeof(*ip));
    return true;
}

/* The traffic class starts in the middle of the first byte. */
static bool mark_ipv6(uint8_t *ip)
{
    if (!(ip[1] >> 4 & ECN_MASK)) {
        return false;
    }
    ip[1] |= ECN_CE << 4;
    return true;
}

static bool mark_frame(uint8_t *frame, size_t size)
{
    size_t l2 = sizeof(struct eth_header);
    uint16_t type;

    if (size < l2 + sizeof(struct vlan_header)) {
        return false;
    }
    type = lduw_be_p(frame + l2 - sizeof(type));
    if (type == ETH_P_VLAN) {
        l2 += sizeof(struct vlan_header);
        type = lduw_be_p(frame + l2 - sizeof(type));
    }
    if (type == ETH_P_IP && size - l2 >= sizeof(struct ip_header) &&
        frame[l2] == 0x45) {
        return mark_ipv4((struct ip_header *)(frame + l2));
    }
    return type == ETH_P_IPV6 && size - l2 >= sizeof(struct ip6_header) &&
           mark_ipv6(frame + l2);
}

static Frame *queue_pop(Lane *lane)
{
    Frame *f = QSIMPLEQ_FIRST(&lane->queue);

    QSIMPLEQ_REMOVE_HEAD(&lane->queue, next);
    lane->queue_bytes -= f->size;
    return f;
}

static void link_timer(void *opaque)
{
    Lane *lane = opaque;
    Frame *f;

    while ((f = QSIMPLEQ_FIRST(&lane->queue)) && f->arrives <= now_ns()) {
        lane_pass(lane, queue_pop(lane));
    }
    if (f) {
        timer_mod(lane->link_timer, f->arrives);
    }
}

/* Bytes that wait in front of the link */
static uint64_t link_backlog(const FilterImpair *s, const Lane *lane,
                             int64_t now)
{
    return lane->idle_at <= now
           ? 0 : muldiv64(lane->idle_at - now, s->rate, 8 * SCALE_MS);
}

/*
 * If a loaded snapshot has set the clock back, drop the queue: it would block
 * all frames until the clock reaches used_at again. If no frame comes before
 * that, the queue stays, and drains at its rate.
 */
static void link_check_clock(Lane *lane, int64_t now)
{
    if (now < lane->used_at) {
        while (!QSIMPLEQ_EMPTY(&lane->queue)) {
            g_free(queue_pop(lane));
        }
        timer_del(lane->link_timer);
        lane->idle_at = 0;
    }
    lane->used_at = now;
}

static bool link_is_direct(const FilterImpair *s, const Lane *lane)
{
    return !s->rate && !s->delay && QSIMPLEQ_EMPTY(&lane->queue);
}

static void link_send(FilterImpair *s, Lane *lane, Frame *f)
{
    size_t size = f->size - f->offset;
    int64_t now = now_ns();
    uint64_t backlog;
    bool marked = false;

    link_check_clock(lane, now);
    backlog = link_backlog(s, lane, now);
    if (link_is_direct(s, lane)) {
        lane_pass(lane, f);
        return;
    }
    if ((s->rate && backlog + size > s->room) ||
        f->size > QUEUED_MAX - lane->queue_bytes) {
        trace_filter_impair_link(lane - s->lane, f->size, backlog, true,
                                 false);
        s->dropped++;
        g_free(f);
        return;
    }
    if (s->mark && backlog > s->mark) {
        marked = mark_frame(f->data + f->offset, size);
        s->marked += marked;
    }
    trace_filter_impair_link(lane - s->lane, f->size, backlog, false, marked);
    lane->idle_at = MAX(lane->idle_at, now);
    if (s->rate) {
        lane->idle_at += muldiv64(size, 8 * SCALE_MS, s->rate);
    }
    f->arrives = lane->idle_at + (int64_t)s->delay * SCALE_US;
    QSIMPLEQ_INSERT_TAIL(&lane->queue, f, next);
    lane->queue_bytes += f->size;
    if (QSIMPLEQ_FIRST(&lane->queue) == f) {
        timer_mod(lane->link_timer, f->arrives);
    }
}

/* Faults, and the filter */

static void reorder_end(Lane *lane)
{
    Frame *f = g_steal_pointer(&lane->reordered);

    if (f) {
        timer_del(lane->reorder_timer);
        link_send(FILTER_IMPAIR(lane->nf), lane, f);
    }
}

static void reorder_timer(void *opaque)
{
    reorder_end(opaque);
}

static ssize_t filter_impair_receive_iov(NetFilterState *nf,
                                         NetClientState *sender,
                                         unsigned flags,
                                         const struct iovec *iov, int iovcnt,
                                         NetPacketSent *sent_cb)
{
    FilterImpair *s = FILTER_IMPAIR(nf);
    Lane *lane = &s->lane[sender != nf->netdev];
    bool fault[FAULT__MAX];
    size_t size = iov_size(iov, iovcnt), offset = 0;
    uint32_t bit;
    Frame *f;

    for (int i = 0; i < FAULT__MAX; i++) {
        fault[i] = g_rand_int_range(lane->rand, 0, FAULT_SCALE) <
                   s->fault_rate[i];
    }
    bit = g_rand_int(lane->rand);

    if (!(flags & QEMU_NET_PACKET_FLAG_RAW)) {
        offset = qemu_get_vnet_hdr_len(nf->netdev);
    }
    if (size <= offset) {
        return 0;
    }
    trace_filter_impair_faults(lane - s->lane, size, fault[FAULT_DROP],
                               fault[FAULT_DUP], fault[FAULT_REORDER],
                               fault[FAULT_CORRUPT]);
    if (fault[FAULT_DROP]) {
        return size;
    }
    if (!lane->reordered && !fault[FAULT_DUP] && !fault[FAULT_REORDER] &&
        !fault[FAULT_CORRUPT] && link_is_direct(s, lane)) {
        /* Pass without a copy. */
        return 0;
    }

    f = frame_new(sender, flags, offset, iov, iovcnt);
    if (fault[FAULT_CORRUPT]) {
        bit %= (size - offset) * 8;
        f->data[offset + bit / 8] ^= 1 << (bit % 8);
    }
    if (fault[FAULT_REORDER] && !lane->reordered) {
        lane->reordered = f;
        timer_mod(lane->reorder_timer, now_ns() + REORDER_NS);
        return size;
    }
    if (fault[FAULT_DUP]) {
        link_send(s, lane, g_memdup2(f, sizeof(*f) + size));
    }
    link_send(s, lane, f);
    reorder_end(lane);
    return size;
}

/* Frames that wait pass at once when the filter is turned off. */
static void filter_impair_status_changed(NetFilterState *nf, Error **errp)
{
    FilterImpair *s = FILTER_IMPAIR(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane) && !nf->on; i++) {
        Lane *lane = &s->lane[i];

        while (!QSIMPLEQ_EMPTY(&lane->queue)) {
            lane_pass(lane, queue_pop(lane));
        }
        timer_del(lane->link_timer);
        lane->idle_at = 0;
        if (lane->reordered) {
            timer_del(lane->reorder_timer);
            lane_pass(lane, g_steal_pointer(&lane->reordered));
        }
    }
}

static void filter_impair_setup(NetFilterState *nf, Error **errp)
{
    FilterImpair *s = FILTER_IMPAIR(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        const guint32 seed[] = { s->seed, s->seed >> 32, i };
        Lane *lane = &s->lane[i];

        lane->nf = nf;
        lane->rand = g_rand_new_with_seed_array(seed, ARRAY_SIZE(seed));
        lane->reorder_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, reorder_timer,
                                           lane);
        lane->link_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, link_timer, lane);
    }
}

static void filter_impair_finalize(Object *obj)
{
    FilterImpair *s = FILTER_IMPAIR(obj);

    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        Lane *lane = &s->lane[i];

        while (!QSIMPLEQ_EMPTY(&lane->queue)) {
            g_free(queue_pop(lane));
        }
        g_free(lane->reordered);
        timer_free(lane->link_timer);
        timer_free(lane->reorder_timer);
        g_clear_pointer(&lane->rand, g_rand_free);
    }
}

/* Properties */

static const RdmaSetting settings[] = {
    { "drop", RDMA_SETTING_UINT32,
      offsetof(FilterImpair, fault_rate[FAULT_DROP]), 0, FAULT_SCALE,
      "dropped frames, per 10000" },
    { "dup", RDMA_SETTING_UINT32,
      offsetof(FilterImpair, fault_rate[FAULT_DUP]), 0, FAULT_SCALE,
      "duplicated frames, per 10000" },
    { "reorder", RDMA_SETTING_UINT32,
      offsetof(FilterImpair, fault_rate[FAULT_REORDER]), 0, FAULT_SCALE,
      "frames that the next frame overtakes, per 10000" },
    { "corrupt", RDMA_SETTING_UINT32,
      offsetof(FilterImpair, fault_rate[FAULT_CORRUPT]), 0, FAULT_SCALE,
      "frames with one flipped bit, per 10000" },
    { "rate", RDMA_SETTING_UINT32, offsetof(FilterImpair, rate), 0, 0,
      "rate of the link, kbit/s; 0: unlimited" },
    { "delay", RDMA_SETTING_UINT32, offsetof(FilterImpair, delay), 0, 0,
      "delay of the link, microseconds" },
    { "room", RDMA_SETTING_UINT32, offsetof(FilterImpair, room), 0, 0,
      "bytes that may wait for the link; more are dropped" },
    { "mark", RDMA_SETTING_UINT32, offsetof(FilterImpair, mark), 0, 0,
      "frames that find more waiting bytes get an ECN mark; 0: none do" },
    { "dropped", RDMA_SETTING_COUNTER, offsetof(FilterImpair, dropped), 0, 0,
      "frames dropped because the queue had no room" },
    { "marked", RDMA_SETTING_COUNTER, offsetof(FilterImpair, marked), 0, 0,
      "frames that got an ECN mark" },
};

static void filter_impair_get_seed(Object *obj, Visitor *v, const char *name,
                                   void *opaque, Error **errp)
{
    visit_type_uint64(v, name, &FILTER_IMPAIR(obj)->seed, errp);
}

static void filter_impair_set_seed(Object *obj, Visitor *v, const char *name,
                                   void *opaque, Error **errp)
{
    FilterImpair *s = FILTER_IMPAIR(obj);

    if (s->lane[0].rand) {
        error_setg(errp, "Property '%s.seed' cannot be set after the filter "
                   "was created", TYPE_FILTER_IMPAIR);
        return;
    }
    visit_type_uint64(v, name, &s->seed, errp);
}

static void filter_impair_init(Object *obj)
{
    FilterImpair *s = FILTER_IMPAIR(obj);

    s->seed = 1;
    s->room = ROOM_DEFAULT;
    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        QSIMPLEQ_INIT(&s->lane[i].queue);
    }
}

static void filter_impair_class_init(ObjectClass *oc, RdmaClassData data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);

    rdma_settings_add(oc, settings, ARRAY_SIZE(settings));
    object_class_property_add(oc, "seed", "uint64", filter_impair_get_seed,
                              filter_impair_set_seed, NULL, NULL);
    object_class_property_set_description(oc, "seed",
        "start of the random sequence that chooses frames for faults");

    nfc->setup = filter_impair_setup;
    nfc->status_changed = filter_impair_status_changed;
    nfc->receive_iov = filter_impair_receive_iov;
}
