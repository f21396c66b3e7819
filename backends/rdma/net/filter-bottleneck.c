/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter-bottleneck: a net filter that is a slow or a long link with a queue in
 * front, to show congestion and what protocols do about it.
 *
 * Each direction has a link and a queue of its own. A frame that finds too many
 * bytes in the queue is dropped; one that finds more than @mark, and whose
 * sender heeds marks, gets one (ECN, RFC 3168).
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/iov.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "net/checksum.h"
#include "net/eth.h"
#include "net/filter.h"
#include "net/net.h"
#include "system/rdma-series.h"
#include "../trace.h"

#define TYPE_FILTER_BOTTLENECK "filter-bottleneck"
OBJECT_DECLARE_SIMPLE_TYPE(FilterBottleneck, FILTER_BOTTLENECK)

#define ROOM_DEFAULT (256 * 1024)
/* What frames on a link without a rate take; @room does not limit those */
#define HELD_MAX (64 * 1024 * 1024)

#define ECN_MASK 3
#define ECN_CE 3

/* A frame that waits, or is on the link. */
typedef struct Held {
    QSIMPLEQ_ENTRY(Held) next;
    NetClientState *sender;
    unsigned flags;
    int64_t arrives;                /* ns */
    size_t size;
    uint8_t data[];
} Held;

typedef struct Lane {
    NetFilterState *nf;
    QEMUTimer *timer;
    QSIMPLEQ_HEAD(, Held) held;
    size_t held_bytes;
    int64_t free_at;                /* ns, when the queue is empty */
} Lane;

struct FilterBottleneck {
    NetFilterState parent_obj;

    uint32_t rate;                  /* kbit/s; 0: as fast as can be */
    uint32_t delay;                 /* us */
    uint32_t room;                  /* bytes */
    uint32_t mark;                  /* bytes; 0: no marks */
    uint64_t dropped, marked;       /* frames */
    Lane lane[2];                   /* from the netdev, to the netdev */
};

static int64_t now_ns(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
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

/* Bytes that wait in front of a link. */
static uint64_t queued(const FilterBottleneck *s, const Lane *lane, int64_t now)
{
    return lane->free_at <= now
           ? 0 : muldiv64(lane->free_at - now, s->rate, 8 * SCALE_MS);
}

static bool mark_ipv4(struct ip_header *ip)
{
    if (!(ip->ip_tos & ECN_MASK)) {
        return false;
    }
    ip->ip_tos |= ECN_CE;
    ip->ip_sum = 0;
    ip->ip_sum = cpu_to_be16(net_raw_checksum((uint8_t *)ip,
                                              sizeof(*ip)));
    return true;
}

/* The traffic class begins amid the first byte. */
static bool mark_ipv6(uint8_t *ip)
{
    if (!(ip[1] >> 4 & ECN_MASK)) {
        return false;
    }
    ip[1] |= ECN_CE << 4;
    return true;
}

/* Mark a packet of IP whose sender heeds marks. */
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

static void pass(Lane *lane, Held *h)
{
    struct iovec iov = { .iov_base = h->data, .iov_len = h->size };

    QSIMPLEQ_REMOVE_HEAD(&lane->held, next);
    lane->held_bytes -= h->size;
    /* The sender may have been unplugged in the meantime. */
    if (sender_exists(h->sender)) {
        qemu_netfilter_pass_to_next(h->sender, h->flags, &iov, 1, lane->nf);
    }
    g_free(h);
}

static void bottleneck_timer(void *opaque)
{
    Lane *lane = opaque;
    Held *h;

    while ((h = QSIMPLEQ_FIRST(&lane->held)) && h->arrives <= now_ns()) {
        pass(lane, h);
    }
    if (h) {
        timer_mod(lane->timer, h->arrives);
    }
}

static ssize_t filter_bottleneck_receive_iov(NetFilterState *nf,
                                             NetClientState *sender,
                                             unsigned flags,
                                             const struct iovec *iov,
                                             int iovcnt,
                                             NetPacketSent *sent_cb)
{
    FilterBottleneck *s = FILTER_BOTTLENECK(nf);
    Lane *lane = &s->lane[sender != nf->netdev];
    size_t size = iov_size(iov, iovcnt), offset = 0;
    int64_t now = now_ns();
    uint64_t before = queued(s, lane, now);
    bool marked = false;
    Held *h;

    if (!(flags & QEMU_NET_PACKET_FLAG_RAW)) {
        offset = qemu_get_vnet_hdr_len(nf->netdev);
    }
    if (size <= offset) {
        return 0;
    }
    if ((s->rate && before + size - offset > s->room) ||
        size > HELD_MAX - lane->held_bytes) {
        trace_filter_bottleneck(sender != nf->netdev, size, before, true,
                                false);
        s->dropped++;
        return size;
    }
    h = g_malloc(sizeof(*h) + size);
    h->sender = sender;
    h->flags = flags;
    h->size = size;
    iov_to_buf(iov, iovcnt, 0, h->data, size);
    if (s->mark && before > s->mark) {
        marked = mark_frame(h->data + offset, size - offset);
        s->marked += marked;
    }
    trace_filter_bottleneck(sender != nf->netdev, size, before, false, marked);
    lane->free_at = MAX(lane->free_at, now);
    if (s->rate) {
        lane->free_at += muldiv64(size - offset, 8 * SCALE_MS, s->rate);
    }
    h->arrives = lane->free_at + (int64_t)s->delay * SCALE_US;
    QSIMPLEQ_INSERT_TAIL(&lane->held, h, next);
    lane->held_bytes += size;
    if (QSIMPLEQ_FIRST(&lane->held) == h) {
        timer_mod(lane->timer, h->arrives);
    }
    return size;
}

static void release(Lane *lane)
{
    while (!QSIMPLEQ_EMPTY(&lane->held)) {
        pass(lane, QSIMPLEQ_FIRST(&lane->held));
    }
    timer_del(lane->timer);
    lane->free_at = 0;
}

static void filter_bottleneck_status_changed(NetFilterState *nf, Error **errp)
{
    FilterBottleneck *s = FILTER_BOTTLENECK(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane) && !nf->on; i++) {
        release(&s->lane[i]);
    }
}

static void filter_bottleneck_setup(NetFilterState *nf, Error **errp)
{
    FilterBottleneck *s = FILTER_BOTTLENECK(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        s->lane[i].nf = nf;
        s->lane[i].timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, bottleneck_timer,
                                        &s->lane[i]);
    }
}

static void filter_bottleneck_cleanup(NetFilterState *nf)
{
    FilterBottleneck *s = FILTER_BOTTLENECK(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        Lane *lane = &s->lane[i];
        Held *h;

        while ((h = QSIMPLEQ_FIRST(&lane->held))) {
            QSIMPLEQ_REMOVE_HEAD(&lane->held, next);
            g_free(h);
        }
        timer_free(lane->timer);
    }
}

/* @opaque: offset of the property */
static void *field(Object *obj, void *opaque)
{
    return (uint8_t *)FILTER_BOTTLENECK(obj) + (uintptr_t)opaque;
}

static void filter_bottleneck_get32(Object *obj, Visitor *v, const char *name,
                                    void *opaque, Error **errp)
{
    visit_type_uint32(v, name, field(obj, opaque), errp);
}

static void filter_bottleneck_set32(Object *obj, Visitor *v, const char *name,
                                    void *opaque, Error **errp)
{
    uint32_t value;

    if (visit_type_uint32(v, name, &value, errp)) {
        *(uint32_t *)field(obj, opaque) = value;
    }
}

static void filter_bottleneck_get64(Object *obj, Visitor *v, const char *name,
                                    void *opaque, Error **errp)
{
    visit_type_uint64(v, name, field(obj, opaque), errp);
}

static void filter_bottleneck_init(Object *obj)
{
    FilterBottleneck *s = FILTER_BOTTLENECK(obj);

    s->room = ROOM_DEFAULT;
    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        QSIMPLEQ_INIT(&s->lane[i].held);
    }
}

typedef struct Setting {
    const char *name;
    size_t offset;
    const char *description;
} Setting;

static const Setting settings[] = {
    { "rate", offsetof(FilterBottleneck, rate),
      "of the link, kbit/s; 0: as fast as can be" },
    { "delay", offsetof(FilterBottleneck, delay),
      "of the link, microseconds" },
    { "room", offsetof(FilterBottleneck, room),
      "bytes that may wait for the link; more are dropped" },
    { "mark", offsetof(FilterBottleneck, mark),
      "frames that find more bytes waiting get a mark of ECN; 0: none do" },
};

static const Setting counters[] = {
    { "dropped", offsetof(FilterBottleneck, dropped), "frames dropped" },
    { "marked", offsetof(FilterBottleneck, marked), "frames marked" },
};

static void filter_bottleneck_class_init(ObjectClass *oc, RdmaClassData data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);

    for (int i = 0; i < ARRAY_SIZE(settings); i++) {
        object_class_property_add(oc, settings[i].name, "uint32",
                                  filter_bottleneck_get32,
                                  filter_bottleneck_set32, NULL,
                                  (void *)settings[i].offset);
        object_class_property_set_description(oc, settings[i].name,
                                              settings[i].description);
    }
    for (int i = 0; i < ARRAY_SIZE(counters); i++) {
        object_class_property_add(oc, counters[i].name, "uint64",
                                  filter_bottleneck_get64, NULL, NULL,
                                  (void *)counters[i].offset);
        object_class_property_set_description(oc, counters[i].name,
                                              counters[i].description);
    }
    nfc->setup = filter_bottleneck_setup;
    nfc->cleanup = filter_bottleneck_cleanup;
    nfc->status_changed = filter_bottleneck_status_changed;
    nfc->receive_iov = filter_bottleneck_receive_iov;
}

static const TypeInfo filter_bottleneck_info = {
    .name = TYPE_FILTER_BOTTLENECK,
    .parent = TYPE_NETFILTER,
    .instance_size = sizeof(FilterBottleneck),
    .instance_init = filter_bottleneck_init,
    .class_init = filter_bottleneck_class_init,
};

static void filter_bottleneck_register_types(void)
{
    type_register_static(&filter_bottleneck_info);
}

type_init(filter_bottleneck_register_types)
