/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties of a virtio-rdma device, and what they may be.
 */
#include "qemu/osdep.h"
#include "hw/qdev-properties.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include "core.h"
#include "version.h"

#define DEFAULT_MAX_QP 4096
#define DEFAULT_MAX_CQ 8192
/* Their copies of receives may take more of QEMU's memory than all else. */
#define DEFAULT_MAX_SRQ 64

static bool check_range_prop(const char *name, uint64_t value, uint64_t min,
                             uint64_t max, Error **errp)
{
    if (value < min || value > max) {
        error_setg(errp, "%s=%" PRIu64 " is out of range: it must be between "
                   "%" PRIu64 " and %" PRIu64, name, value, min, max);
        return false;
    }
    return true;
}

/* The virtqueues that the device would have. */
static uint64_t count_queues(VirtIORdma *s, uint32_t *srqs)
{
    const VirtIORdmaConf *conf = &s->conf;

    *srqs = virtio_rdma_offers(s, VIRTIO_RDMA_F_SRQ)
            ? MIN(conf->max_srq, conf->max_vq_srq) : 0;
    return VIRTIO_RDMA_NUM_VQS((uint64_t)MIN(conf->max_cq, conf->max_vq_cq),
                               MIN(conf->max_qp, conf->max_vq_qp)) +
           (*srqs || virtio_rdma_offers(s, VIRTIO_RDMA_F_EVENTS)) + *srqs;
}

bool virtio_rdma_conf_check(VirtIORdma *s, Error **errp)
{
    const VirtIORdmaConf *conf = &s->conf;
    uint64_t queues;
    uint32_t srqs;

    if (!check_range_prop("max-cq", conf->max_cq, 1, VIRTIO_RDMA_MAX_CQ,
                          errp) ||
        !check_range_prop("max-vq-cq", conf->max_vq_cq, 1,
                          VIRTIO_RDMA_MAX_CQ, errp) ||
        !check_range_prop("max-qp", conf->max_qp, 1, VIRTIO_RDMA_MAX_QP,
                          errp) ||
        !check_range_prop("max-vq-qp", conf->max_vq_qp, 1,
                          VIRTIO_RDMA_MAX_QP, errp) ||
        !check_range_prop("max-mr", conf->max_mr, 1, VIRTIO_RDMA_MAX_MR,
                          errp) ||
        !check_range_prop("max-mw", conf->max_mw, 0,
                          VIRTIO_RDMA_MAX_MR - conf->max_mr, errp) ||
        !check_range_prop("max-mcast-grp", conf->max_mcast_grp, 0,
                          VIRTIO_RDMA_MAX_MCAST, errp) ||
        !check_range_prop("max-mcast-qp-attach", conf->max_mcast_qp_attach,
                          0, VIRTIO_RDMA_MAX_MCAST, errp) ||
        !check_range_prop("max-pd", conf->max_pd, 1, VIRTIO_RDMA_MAX_PD,
                          errp) ||
        !check_range_prop("max-mr-size", conf->max_mr_size, RDMA_PAGE_SIZE,
                          (uint64_t)UINT32_MAX << RDMA_PAGE_SHIFT, errp) ||
        !check_range_prop("queue-size", conf->queue_size, 2,
                          VIRTQUEUE_MAX_SIZE, errp) ||
        !check_range_prop("max-qp-wr", conf->max_qp_wr,
                          VIRTIO_RDMA_MIN_DEPTH,
                          VIRTIO_RDMA_MAX_DEPTH, errp) ||
        !check_range_prop("max-sge", conf->max_sge, 1, VIRTIO_RDMA_MAX_SGE,
                          errp) ||
        !check_range_prop("max-inline", conf->max_inline, 0,
                          VIRTIO_RDMA_MAX_INLINE, errp) ||
        !check_range_prop("max-rd-atomic", conf->max_rd_atomic, 1,
                          VIRTIO_RDMA_MAX_RD_ATOMIC, errp) ||
        !check_range_prop("max-cqe", conf->max_cqe, 1, VIRTIO_RDMA_MAX_CQE,
                          errp) ||
        !check_range_prop("max-srq", conf->max_srq, 0, VIRTIO_RDMA_MAX_SRQ,
                          errp) ||
        !check_range_prop("max-vq-srq", conf->max_vq_srq, 0,
                          VIRTIO_RDMA_MAX_SRQ, errp) ||
        !check_range_prop("max-srq-wr", conf->max_srq_wr, 1,
                          VIRTIO_RDMA_MAX_SRQ_WR, errp) ||
        !check_range_prop("gid-table-len", conf->gid_table_len, 1,
                          VIRTIO_RDMA_MAX_GIDS, errp)) {
        return false;
    }
    if (!virtio_rdma_may_be_direct(s) && conf->max_qp > conf->max_vq_qp &&
        conf->max_qp != DEFAULT_MAX_QP) {
        error_setg(errp, "max-qp=%u exceeds max-vq-qp=%u, but without "
                   "direct-qp, or with modern-pio-notify, all queue pairs "
                   "have virtqueues: set max-vq-qp, too", conf->max_qp,
                   conf->max_vq_qp);
        return false;
    }
    if (!virtio_rdma_offers(s, VIRTIO_RDMA_F_DIRECT_CQ) &&
        conf->max_cq > conf->max_vq_cq && conf->max_cq != DEFAULT_MAX_CQ) {
        error_setg(errp, "max-cq=%u exceeds max-vq-cq=%u, but without "
                   "direct-cq all completion queues have virtqueues: set "
                   "max-vq-cq, too", conf->max_cq, conf->max_vq_cq);
        return false;
    }
    if (virtio_rdma_offers(s, VIRTIO_RDMA_F_SRQ) &&
        !virtio_rdma_may_be_direct_srq(s) &&
        conf->max_srq > conf->max_vq_srq && conf->max_srq != DEFAULT_MAX_SRQ) {
        error_setg(errp, "max-srq=%u exceeds max-vq-srq=%u, but without "
                   "direct-srq and direct-qp, or with modern-pio-notify, all "
                   "shared receive queues have virtqueues: set max-vq-srq, "
                   "too", conf->max_srq, conf->max_vq_srq);
        return false;
    }
    if (!is_power_of_2(conf->queue_size)) {
        error_setg(errp, "queue-size=%u is not a power of 2",
                   conf->queue_size);
        return false;
    }
    if (!rdma_hca_gids_parse(&s->hca, conf->allowed_gids, errp)) {
        return false;
    }
    queues = count_queues(s, &srqs);
    if (queues > VIRTIO_QUEUE_MAX) {
        error_setg(errp, "max-vq-cq=%u, max-vq-qp=%u and max-vq-srq=%u need "
                   "%" PRIu64 " virtqueues (1 + max-vq-cq + 2 * max-vq-qp, "
                   "one for events and max-vq-srq), but a device has at most %d",
                   MIN(conf->max_cq, conf->max_vq_cq),
                   MIN(conf->max_qp, conf->max_vq_qp), srqs, queues,
                   VIRTIO_QUEUE_MAX);
        return false;
    }
    return true;
}

#define FEATURE(prop, name)                                     \
    DEFINE_PROP_BIT64(prop, VirtIORdma, rdma_features,          \
                      VIRTIO_RDMA_F_##name, true)

static const Property virtio_rdma_properties[] = {
    DEFINE_PROP_STRING("netdev", VirtIORdma, conf.netdev),
    DEFINE_PROP_LINK("rdmadev", VirtIORdma, conf.rdmadev, TYPE_RDMA_BACKEND,
                     RdmaBackend *),
    DEFINE_PROP_LINK("iothread", VirtIORdma, conf.iothread, TYPE_IOTHREAD,
                     IOThread *),
    DEFINE_PROP_MACADDR("mac", VirtIORdma, conf.mac),
    DEFINE_PROP_UINT64("sys-image-guid", VirtIORdma, conf.sys_image_guid, 0),
    DEFINE_PROP_UINT32("max-qp", VirtIORdma, conf.max_qp,
                       DEFAULT_MAX_QP),
    DEFINE_PROP_UINT32("max-vq-qp", VirtIORdma, conf.max_vq_qp,
                       VIRTIO_RDMA_DEFAULT_MAX_VQ_QP),
    DEFINE_PROP_UINT32("max-cq", VirtIORdma, conf.max_cq,
                       DEFAULT_MAX_CQ),
    DEFINE_PROP_UINT32("max-vq-cq", VirtIORdma, conf.max_vq_cq,
                       VIRTIO_RDMA_DEFAULT_MAX_VQ_CQ),
    DEFINE_PROP_UINT32("max-mr", VirtIORdma, conf.max_mr, 65536),
    DEFINE_PROP_UINT32("max-pd", VirtIORdma, conf.max_pd, 1024),
    DEFINE_PROP_SIZE("max-mr-size", VirtIORdma, conf.max_mr_size, 1 * TiB),
    DEFINE_PROP_UINT64("max-mr-pages", VirtIORdma, conf.max_mr_pages, 0),
    DEFINE_PROP_UINT32("queue-size", VirtIORdma, conf.queue_size,
                       VIRTQUEUE_MAX_SIZE),
    DEFINE_PROP_UINT32("max-qp-wr", VirtIORdma, conf.max_qp_wr,
                       VIRTIO_RDMA_MAX_DEPTH),
    DEFINE_PROP_UINT32("max-sge", VirtIORdma, conf.max_sge, 32),
    DEFINE_PROP_UINT32("max-inline", VirtIORdma, conf.max_inline, 512),
    DEFINE_PROP_UINT32("max-rd-atomic", VirtIORdma, conf.max_rd_atomic, 16),
    DEFINE_PROP_UINT32("gid-table-len", VirtIORdma, conf.gid_table_len, 128),
    DEFINE_PROP_UINT32("max-cqe", VirtIORdma, conf.max_cqe, 32768),
    DEFINE_PROP_UINT32("max-srq", VirtIORdma, conf.max_srq,
                       DEFAULT_MAX_SRQ),
    DEFINE_PROP_UINT32("max-vq-srq", VirtIORdma, conf.max_vq_srq,
                       VIRTIO_RDMA_DEFAULT_MAX_VQ_SRQ),
    DEFINE_PROP_UINT32("max-srq-wr", VirtIORdma, conf.max_srq_wr, 16384),
    DEFINE_PROP_UINT32("max-mw", VirtIORdma, conf.max_mw, 16384),
    DEFINE_PROP_UINT32("max-mcast-grp", VirtIORdma, conf.max_mcast_grp, 128),
    DEFINE_PROP_UINT32("max-mcast-qp-attach", VirtIORdma,
                       conf.max_mcast_qp_attach, 128),
    DEFINE_PROP_STRING("allowed-gids", VirtIORdma, conf.allowed_gids),
    DEFINE_PROP_BOOL("mem-mgt", VirtIORdma, conf.mem_mgt, true),
    FEATURE("ext-status", EXT_STATUS),
    FEATURE("mac-mtu", MAC_MTU),
    FEATURE("cqe-status-last", CQE_STATUS_LAST),
    FEATURE("events", EVENTS),
    FEATURE("srq", SRQ),
    FEATURE("mw", MW),
    FEATURE("cq-deep", CQ_DEEP),
    FEATURE("cq-ring-arm", CQ_RING_ARM),
    FEATURE("mcast", MCAST),
    FEATURE("cqe-ex", CQE_EX),
    FEATURE("gid-vlan", GID_VLAN),
    FEATURE("counters", COUNTERS),
    FEATURE("mr-tables", MR_TABLES),
    FEATURE("reg-pages", REG_PAGES),
    FEATURE("rereg-mr", REREG_MR),
    FEATURE("flush", FLUSH),
    FEATURE("atomic-write", ATOMIC_WRITE),
    FEATURE("direct-qp", DIRECT_QP),
    FEATURE("direct-cq", DIRECT_CQ),
    FEATURE("direct-srq", DIRECT_SRQ),
    FEATURE("shadow-doorbell", SHADOW_DOORBELL),
    FEATURE("qp-counters", QP_COUNTERS),
};

const char *virtio_rdma_feature_name(unsigned bit)
{
    for (size_t i = 0; i < ARRAY_SIZE(virtio_rdma_properties); i++) {
        const Property *p = &virtio_rdma_properties[i];

        if (p->info == &qdev_prop_bit64 && p->bitnr == bit) {
            return p->name;
        }
    }
    return bit == VIRTIO_RDMA_F_HOST_NUMBERS ? "numbers of a host adapter"
                                             : "a feature";
}

static const struct {
    const char *name;
    const char *text;
} property_texts[] = {
    { "netdev", "ID of the netdev for RoCEv2 frames; a NIC may share it" },
    { "rdmadev", "ID of an RDMA backend, instead of netdev" },
    { "iothread", "ID of the iothread that queues and engine work in; by "
                  "default the main loop" },
    { "mac", "MAC address of the port (with netdev; by default the NIC's)" },
    { "sys-image-guid", "system image GUID; 0: made from the MAC address" },
    { "max-qp", "queue pairs, with the reserved two (1-16384)" },
    { "max-vq-qp", "queue pairs that may have virtqueues: without direct-qp "
                   "all, and at most 511" },
    { "max-cq", "completion queues, and event queues with direct-cq "
                "(1-16384)" },
    { "max-vq-cq", "completion or event queues that may have virtqueues: "
                   "without direct-cq all" },
    { "max-mr", "memory regions" },
    { "max-pd", "protection domains" },
    { "max-mr-size", "bytes of the largest memory region" },
    { "max-mr-pages", "entries of the page lists of all memory regions; "
                      "0: by the size of RAM" },
    { "queue-size", "entries of a virtqueue (2-1024)" },
    { "max-qp-wr", "depth of work queues with direct-qp (4-32768)" },
    { "max-sge", "scatter/gather elements of a work request (1-256)" },
    { "max-inline", "bytes of inline data of a work request (0-4096)" },
    { "max-rd-atomic", "READs and atomics in flight per QP (1-128)" },
    { "max-cqe", "depth of completion queues with direct-cq or cq-deep "
                 "(1-1048576)" },
    { "max-srq", "shared receive queues (0-16384)" },
    { "max-vq-srq", "shared receive queues that may have virtqueues: without "
                    "direct-srq all" },
    { "max-srq-wr", "depth of shared receive queues (1-65536)" },
    { "max-mw", "memory windows, besides the regions" },
    { "max-mcast-grp", "multicast groups (0-16384)" },
    { "max-mcast-qp-attach", "queue pairs of one multicast group (0-16384)" },
    { "gid-table-len", "entries of the GID table (1-256)" },
    { "allowed-gids", "addresses and prefixes that GIDs may be, separated by "
                      "spaces; by default all" },
    { "mem-mgt", "offer fast registration, which users in the kernel need" },
    { "ext-status", "offer detailed status of control commands" },
    { "mac-mtu", "offer MAC and MTU in configuration space" },
    { "cqe-status-last", "offer completions that can be polled for" },
    { "events", "offer asynchronous events" },
    { "srq", "offer shared receive queues" },
    { "mw", "offer memory windows" },
    { "cq-deep", "offer completion queues deeper than their virtqueue" },
    { "cq-ring-arm", "offer to arm completion queues by virtio alone" },
    { "mcast", "offer multicast groups" },
    { "cqe-ex", "offer completions that tell more about datagrams" },
    { "gid-vlan", "offer GIDs in VLANs" },
    { "counters", "offer counters" },
    { "mr-tables", "offer page tables of several levels and large pages" },
    { "reg-pages", "offer fast registration that carries its pages" },
    { "rereg-mr", "offer to change memory regions" },
    { "flush", "offer FLUSH, for global visibility" },
    { "atomic-write", "offer ATOMIC WRITE" },
    { "direct-qp", "offer queue pairs without virtqueues: more of them, "
                   "deeper, and for processes without the kernel" },
    { "direct-cq", "offer completion queues without virtqueues, which "
                   "processes poll and arm without the kernel" },
    { "direct-srq", "offer shared receive queues without virtqueues, with "
                    "direct-qp" },
    { "shadow-doorbell", "offer doorbells in memory, for processes with many "
                         "queue pairs, with direct-qp" },
    { "qp-counters", "offer counters of queue pairs, with counters" },
};

static char *get_version(Object *obj, Error **errp)
{
    return g_strdup(VIRTIO_RDMA_VERSION);
}

void virtio_rdma_props_init(ObjectClass *klass)
{
    device_class_set_props(DEVICE_CLASS(klass), virtio_rdma_properties);
    for (size_t i = 0; i < ARRAY_SIZE(property_texts); i++) {
        object_class_property_set_description(klass, property_texts[i].name,
                                              property_texts[i].text);
    }
    object_class_property_add_str(klass, "version", get_version, NULL);
    object_class_property_set_description(klass, "version",
        "version of the device; driver and provider have the same one");
}
