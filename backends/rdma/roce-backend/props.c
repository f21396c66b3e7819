/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The properties of an rdma-roce object.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "net/util.h"
#include "system/rdma-setting.h"
#include "int.h"

static const RdmaSetting settings[] = {
    { "netdev", RDMA_SETTING_STR, offsetof(RdmaRoce, netdev_id), 0, 0,
      "ID of the netdev that carries the RoCEv2 frames" },
    { "mtu", RDMA_SETTING_UINT32, offsetof(RdmaRoce, mtu),
      RDMA_ROCE_MTU_MIN, RDMA_ROCE_MTU_MAX,
      "MTU of the link in bytes of IP packet, 0: as NIC or netdev say" },
    { "dcqcn-rate", RDMA_SETTING_UINT32, offsetof(RdmaRoce, dcqcn_rate),
      1, 4000000,
      "rate of the line in Mbit/s, for DCQCN; 0: queue pairs do not slow "
      "down for marks" },
    /* The VM may wait for a port that polls. */
    { "shm-poll-max-ns", RDMA_SETTING_UINT32, offsetof(RdmaRoce, shm_poll_max),
      1, 50000,
      "how long to poll for more frames by shared memory before sleeping, if "
      "some came soon after each other; 0: not at all" },
    { "shm-icrc", RDMA_SETTING_BOOL, offsetof(RdmaRoce, shm_icrc), 0, 0,
      "make an ICRC for frames that are sent by shared memory, too" },
};

static char *rdma_roce_get_mac(Object *obj, Error **errp)
{
    return qemu_mac_strdup_printf(RDMA_BACKEND_ROCE(obj)->mac.a);
}

static void rdma_roce_set_mac(Object *obj, const char *value, Error **errp)
{
    MACAddr mac;

    if (!rdma_backend_may_set(obj, "mac", errp)) {
        return;
    }
    if (net_parse_macaddr(mac.a, value) < 0 || (mac.a[0] & 1)) {
        error_setg(errp, "Property '%s.mac' takes a unicast MAC address, not "
                   "'%s'", object_get_typename(obj), value);
        return;
    }
    RDMA_BACKEND_ROCE(obj)->mac = mac;
}

/* Read-only properties: indices of counters[] */
enum {
    ECN_MARKED,
    CNPS_SENT,
    CNPS_RECEIVED,
    TIMEOUTS_LATE,
    SHM_TX_FRAMES,
    SHM_RX_FRAMES,
};

static const struct {
    const char *name;
    const char *description;
} counters[] = {
    [ECN_MARKED] = { "ecn-marked", "frames received with a mark of ECN" },
    [CNPS_SENT] = { "cnps-sent", "congestion notifications sent" },
    [CNPS_RECEIVED] = { "cnps-received", "congestion notifications received" },
    [TIMEOUTS_LATE] = { "timeouts-late", "requests that did not time out, as "
                        "their answer was there, unread" },
    [SHM_TX_FRAMES] = { "shm-tx-frames", "frames sent by shared memory" },
    [SHM_RX_FRAMES] = { "shm-rx-frames", "frames received by shared memory" },
};

/* @opaque: the index */
static void rdma_roce_get_counter(Object *obj, Visitor *v, const char *name,
                                  void *opaque, Error **errp)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(obj);
    uint64_t values[ARRAY_SIZE(counters)] = {};

    rdma_backend_enter(&r->parent_obj);
    if (r->engine) {
        values[ECN_MARKED] = roce_ecn_stats(r->engine)->marked;
        values[CNPS_SENT] = roce_ecn_stats(r->engine)->cnps_sent;
        values[CNPS_RECEIVED] = roce_ecn_stats(r->engine)->cnps_received;
        values[TIMEOUTS_LATE] = roce_timeouts_late(r->engine);
    }
    if (r->shm) {
        rdma_roce_shm_frames(r->shm, &values[SHM_TX_FRAMES],
                             &values[SHM_RX_FRAMES]);
    }
    rdma_backend_leave(&r->parent_obj);
    visit_type_uint64(v, name, &values[(uintptr_t)opaque], errp);
}

static char *rdma_roce_get_shm_dir(Object *obj, Error **errp)
{
    return g_strdup(RDMA_BACKEND_ROCE(obj)->shm_dir);
}

static void rdma_roce_set_shm_dir(Object *obj, const char *value,
                                  Error **errp)
{
    RdmaRoce *r = RDMA_BACKEND_ROCE(obj);

    if (rdma_backend_may_set(obj, "shm-dir", errp) &&
        rdma_roce_shm_check_dir(value, errp)) {
        g_free(r->shm_dir);
        /* QEMU may change to another directory. */
        r->shm_dir = g_canonicalize_filename(value, NULL);
    }
}

void rdma_roce_add_properties(ObjectClass *oc)
{
    rdma_settings_add(oc, settings, ARRAY_SIZE(settings));
    for (uintptr_t i = 0; i < ARRAY_SIZE(counters); i++) {
        object_class_property_add(oc, counters[i].name, "uint64",
                                  rdma_roce_get_counter, NULL, NULL,
                                  (void *)i);
        object_class_property_set_description(oc, counters[i].name,
                                              counters[i].description);
    }
    object_class_property_add_str(oc, "mac", rdma_roce_get_mac,
                                  rdma_roce_set_mac);
    object_class_property_set_description(oc, "mac",
        "MAC address of the port, by default the paired NIC's");
    object_class_property_add_str(oc, "shm-dir", rdma_roce_get_shm_dir,
                                  rdma_roce_set_shm_dir);
    object_class_property_set_description(oc, "shm-dir",
        "directory where ports of this host meet, to send by shared memory");
}
