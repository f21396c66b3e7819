/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter-lossy: a net filter that drops, duplicates, reorders and corrupts
 * frames, to test protocols on a bad link.
 *
 * The same seed and the same frames give the same faults: each direction draws
 * a fixed count of numbers per frame from a random sequence of its own, so that
 * neither the other direction nor another rate changes which frames are hit.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "qemu/iov.h"
#include "qemu/timer.h"
#include "net/filter.h"
#include "net/net.h"
#include "system/rdma-series.h"
#include "../trace.h"

#define TYPE_FILTER_LOSSY "filter-lossy"
OBJECT_DECLARE_SIMPLE_TYPE(FilterLossy, FILTER_LOSSY)

/* Rates are per this many frames. */
#define LOSSY_SCALE 10000

/* How long a frame is held back when no other follows. */
#define LOSSY_HOLD_NS (1 * SCALE_MS)

typedef enum LossyFault {
    LOSSY_DROP,
    LOSSY_DUP,
    LOSSY_REORDER,
    LOSSY_CORRUPT,
    LOSSY__MAX,
} LossyFault;

static const char *const lossy_names[LOSSY__MAX] = {
    [LOSSY_DROP] = "drop",
    [LOSSY_DUP] = "dup",
    [LOSSY_REORDER] = "reorder",
    [LOSSY_CORRUPT] = "corrupt",
};

/* One direction; a frame is held back if @held is not NULL. */
typedef struct LossyLane {
    NetFilterState *nf;
    GRand *rand;
    QEMUTimer *timer;
    NetClientState *sender;
    unsigned flags;
    uint8_t *held;
    size_t held_size;
} LossyLane;

struct FilterLossy {
    NetFilterState parent_obj;

    uint32_t rate[LOSSY__MAX];
    uint64_t seed;
    LossyLane lane[2];              /* from the netdev, to the netdev */
};

static bool lossy_sender_exists(const NetClientState *sender)
{
    NetClientState *nc;

    QTAILQ_FOREACH(nc, &net_clients, next) {
        if (nc == sender) {
            return true;
        }
    }
    return false;
}

static void lossy_pass(LossyLane *lane, NetClientState *sender,
                       unsigned flags, uint8_t *data, size_t size)
{
    struct iovec iov = { .iov_base = data, .iov_len = size };

    qemu_netfilter_pass_to_next(sender, flags, &iov, 1, lane->nf);
}

static void lossy_release(LossyLane *lane)
{
    g_autofree uint8_t *held = g_steal_pointer(&lane->held);

    timer_del(lane->timer);
    /* The sender may have been unplugged in the meantime. */
    if (held && lossy_sender_exists(lane->sender)) {
        lossy_pass(lane, lane->sender, lane->flags, held, lane->held_size);
    }
}

static void lossy_timer(void *opaque)
{
    lossy_release(opaque);
}

static ssize_t filter_lossy_receive_iov(NetFilterState *nf,
                                        NetClientState *sender,
                                        unsigned flags,
                                        const struct iovec *iov, int iovcnt,
                                        NetPacketSent *sent_cb)
{
    FilterLossy *s = FILTER_LOSSY(nf);
    LossyLane *lane = &s->lane[sender != nf->netdev];
    bool fault[LOSSY__MAX];
    g_autofree uint8_t *copy = NULL;
    size_t size = iov_size(iov, iovcnt);
    size_t offset = 0;
    uint32_t where;

    for (int i = 0; i < LOSSY__MAX; i++) {
        fault[i] = g_rand_int_range(lane->rand, 0, LOSSY_SCALE) < s->rate[i];
    }
    where = g_rand_int(lane->rand);

    if (!(flags & QEMU_NET_PACKET_FLAG_RAW)) {
        offset = qemu_get_vnet_hdr_len(nf->netdev);
    }
    if (size <= offset) {
        return 0;
    }
    trace_filter_lossy(sender != nf->netdev, size, fault[LOSSY_DROP],
                       fault[LOSSY_DUP], fault[LOSSY_REORDER],
                       fault[LOSSY_CORRUPT]);
    if (fault[LOSSY_DROP]) {
        return size;
    }
    if (!lane->held && !fault[LOSSY_DUP] && !fault[LOSSY_REORDER] &&
        !fault[LOSSY_CORRUPT]) {
        return 0;
    }

    copy = g_malloc(size);
    iov_to_buf(iov, iovcnt, 0, copy, size);
    if (fault[LOSSY_CORRUPT]) {
        where %= (size - offset) * 8;
        copy[offset + where / 8] ^= 1 << (where % 8);
    }
    if (fault[LOSSY_REORDER] && !lane->held) {
        lane->held = g_steal_pointer(&copy);
        lane->held_size = size;
        lane->sender = sender;
        lane->flags = flags;
        timer_mod(lane->timer,
                  qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) + LOSSY_HOLD_NS);
        return size;
    }
    lossy_pass(lane, sender, flags, copy, size);
    if (fault[LOSSY_DUP]) {
        lossy_pass(lane, sender, flags, copy, size);
    }
    lossy_release(lane);
    return size;
}

static void filter_lossy_status_changed(NetFilterState *nf, Error **errp)
{
    FilterLossy *s = FILTER_LOSSY(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane) && !nf->on; i++) {
        lossy_release(&s->lane[i]);
    }
}

static void filter_lossy_setup(NetFilterState *nf, Error **errp)
{
    FilterLossy *s = FILTER_LOSSY(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        const guint32 seed[] = { s->seed, s->seed >> 32, i };
        LossyLane *lane = &s->lane[i];

        lane->nf = nf;
        lane->rand = g_rand_new_with_seed_array(seed, ARRAY_SIZE(seed));
        lane->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, lossy_timer, lane);
    }
}

static void filter_lossy_cleanup(NetFilterState *nf)
{
    FilterLossy *s = FILTER_LOSSY(nf);

    for (int i = 0; i < ARRAY_SIZE(s->lane); i++) {
        LossyLane *lane = &s->lane[i];

        if (lane->rand) {
            g_rand_free(lane->rand);
            timer_free(lane->timer);
            g_free(lane->held);
        }
    }
}

static void filter_lossy_get_rate(Object *obj, Visitor *v, const char *name,
                                  void *opaque, Error **errp)
{
    visit_type_uint32(v, name, &FILTER_LOSSY(obj)->rate[(uintptr_t)opaque],
                      errp);
}

static void filter_lossy_set_rate(Object *obj, Visitor *v, const char *name,
                                  void *opaque, Error **errp)
{
    uint32_t value;

    if (!visit_type_uint32(v, name, &value, errp)) {
        return;
    }
    if (value > LOSSY_SCALE) {
        error_setg(errp, "Property '%s.%s' is %u, and must be at most %d: it "
                   "is a rate per %d frames", TYPE_FILTER_LOSSY, name, value,
                   LOSSY_SCALE, LOSSY_SCALE);
        return;
    }
    FILTER_LOSSY(obj)->rate[(uintptr_t)opaque] = value;
}

static void filter_lossy_get_seed(Object *obj, Visitor *v, const char *name,
                                  void *opaque, Error **errp)
{
    visit_type_uint64(v, name, &FILTER_LOSSY(obj)->seed, errp);
}

static void filter_lossy_set_seed(Object *obj, Visitor *v, const char *name,
                                  void *opaque, Error **errp)
{
    FilterLossy *s = FILTER_LOSSY(obj);

    if (s->lane[0].rand) {
        error_setg(errp, "Property '%s.seed' cannot be set after the filter "
                   "was created", TYPE_FILTER_LOSSY);
        return;
    }
    visit_type_uint64(v, name, &s->seed, errp);
}

static void filter_lossy_init(Object *obj)
{
    FILTER_LOSSY(obj)->seed = 1;
}

static void filter_lossy_class_init(ObjectClass *oc, RdmaClassData data)
{
    NetFilterClass *nfc = NETFILTER_CLASS(oc);

    for (uintptr_t i = 0; i < LOSSY__MAX; i++) {
        object_class_property_add(oc, lossy_names[i], "uint32",
                                  filter_lossy_get_rate,
                                  filter_lossy_set_rate, NULL, (void *)i);
    }
    object_class_property_add(oc, "seed", "uint64", filter_lossy_get_seed,
                              filter_lossy_set_seed, NULL, NULL);

    nfc->setup = filter_lossy_setup;
    nfc->cleanup = filter_lossy_cleanup;
    nfc->status_changed = filter_lossy_status_changed;
    nfc->receive_iov = filter_lossy_receive_iov;
}

static const TypeInfo filter_lossy_info = {
    .name = TYPE_FILTER_LOSSY,
    .parent = TYPE_NETFILTER,
    .instance_size = sizeof(FilterLossy),
    .instance_init = filter_lossy_init,
    .class_init = filter_lossy_class_init,
};

static void filter_lossy_register_types(void)
{
    type_register_static(&filter_lossy_info);
}

type_init(filter_lossy_register_types)
