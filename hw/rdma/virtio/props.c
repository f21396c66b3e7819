/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties of a virtio-rdma device, and checks of their values
 */
#include "qemu/osdep.h"
#include "hw/core/qdev-properties.h"
#include "qapi/error.h"
#include "base.h"
#include "version.h"

#define DEFAULT_MAX_QP 4096
#define DEFAULT_MAX_CQ 8192
/*
 * The most objects with virtqueues, if others can be direct. Otherwise the
 * defaults of max-qp and max-cq.
 */
#define MAX_VQ_QP 128
#define MAX_VQ_CQ 128
#define MAX_VQ_SRQ 64
/* Longer polls would only waste a processor. */
#define MAX_POLL_NS (60 * NANOSECONDS_PER_SECOND)

/* Of @max objects of a kind, those that have virtqueues */
static uint32_t vq_share(const VirtIORdma *s, uint32_t max, uint32_t most)
{
    return virtio_rdma_may_be_direct(s) ? MIN(max, most) : max;
}

uint32_t virtio_rdma_vq_cqs(const VirtIORdma *s)
{
    return vq_share(s, s->conf.max_cq, MAX_VQ_CQ);
}

uint32_t virtio_rdma_vq_qps(const VirtIORdma *s)
{
    return vq_share(s, s->conf.max_qp, MAX_VQ_QP);
}

uint32_t virtio_rdma_vq_srqs(const VirtIORdma *s)
{
    return virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1)
           ? vq_share(s, s->conf.max_srq, MAX_VQ_SRQ) : 0;
}

static bool check_queues(const VirtIORdma *s, Error **errp)
{
    uint32_t cqs = virtio_rdma_vq_cqs(s);
    uint32_t qps = virtio_rdma_vq_qps(s);
    uint32_t srqs = virtio_rdma_vq_srqs(s);
    uint64_t queues = VIRTIO_RDMA_NUM_VQS((uint64_t)cqs, qps) +
                      virtio_rdma_offers(s, VIRTIO_RDMA_F_VERSION_1) + srqs;

    if (queues > VIRTIO_QUEUE_MAX) {
        error_setg(errp, "max-cq=%u, max-qp=%u and max-srq=%u need %" PRIu64
                   " virtqueues (1 + max-cq + 2 * max-qp, one for events and "
                   "max-srq), but a device has at most %d: lower them, or "
                   "leave direct and version-1 on and modern-pio-notify off",
                   cqs, qps, srqs, queues, VIRTIO_QUEUE_MAX);
        return false;
    }
    return true;
}

void virtio_rdma_conf_set_defaults(VirtIORdma *s)
{
    VirtIORdmaConf *conf = &s->conf;
    bool direct = virtio_rdma_may_be_direct(s);

    if (!conf->max_qp) {
        conf->max_qp = direct ? DEFAULT_MAX_QP : MAX_VQ_QP;
    }
    if (!conf->max_cq) {
        conf->max_cq = direct ? DEFAULT_MAX_CQ : MAX_VQ_CQ;
    }
}

static bool check_ranges(const VirtIORdmaConf *conf, Error **errp)
{
    const RdmaHcaProp ranges[] = {
        { "max-cq", conf->max_cq, 1, VIRTIO_RDMA_MAX_CQ },
        { "max-qp", conf->max_qp, 1, VIRTIO_RDMA_MAX_QP },
        { "max-mr", conf->max_mr, 1, VIRTIO_RDMA_MAX_MR },
        { "max-mw", conf->max_mw, 0, VIRTIO_RDMA_MAX_MR - conf->max_mr },
        { "max-mcast-grp", conf->max_mcast_grp, 0, VIRTIO_RDMA_MAX_MCAST },
        { "max-pd", conf->max_pd, 1, VIRTIO_RDMA_MAX_PD },
        { "queue-size", conf->queue_size, 2, VIRTQUEUE_MAX_SIZE, true },
        { "max-qp-wr", conf->max_qp_wr, VIRTIO_RDMA_MIN_DEPTH,
          VIRTIO_RDMA_MAX_DEPTH },
        { "max-sge", conf->max_sge, 1, VIRTIO_RDMA_MAX_SGE },
        { "max-inline", conf->max_inline, 0, VIRTIO_RDMA_MAX_INLINE },
        { "max-rd-atomic", conf->max_rd_atomic, 1, VIRTIO_RDMA_MAX_RD_ATOMIC },
        { "max-cqe", conf->max_cqe, 1, VIRTIO_RDMA_MAX_CQE },
        { "max-srq", conf->max_srq, 0, VIRTIO_RDMA_MAX_SRQ },
        { "max-srq-wr", conf->max_srq_wr, 1, VIRTIO_RDMA_MAX_SRQ_WR },
        { "gid-table-len", conf->gid_table_len, 1, VIRTIO_RDMA_MAX_GIDS },
        { "poll-max-ns", conf->poll_max_ns, 0, MAX_POLL_NS },
    };

    return rdma_hca_check_props(ranges, ARRAY_SIZE(ranges), errp);
}

bool virtio_rdma_conf_check(VirtIORdma *s, Error **errp)
{
    const VirtIORdmaConf *conf = &s->conf;

    if (!check_ranges(conf, errp)) {
        return false;
    }
    if (conf->layout && strcmp(conf->layout, VIRTIO_RDMA_LAYOUT_SPEC) &&
        !virtio_rdma_wants_demo(s)) {
        error_setg(errp, "expected layout=" VIRTIO_RDMA_LAYOUT_SPEC " or "
                   "layout=" VIRTIO_RDMA_LAYOUT_DEMO ", got \"%s\"",
                   conf->layout);
        return false;
    }
    return rdma_hca_gids_parse(&s->hca, conf->allowed_gids, errp) &&
           check_queues(s, errp);
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
    DEFINE_PROP_UINT32("max-qp", VirtIORdma, conf.max_qp, 0),
    DEFINE_PROP_UINT32("max-cq", VirtIORdma, conf.max_cq, 0),
    DEFINE_PROP_UINT32("max-mr", VirtIORdma, conf.max_mr, 65536),
    DEFINE_PROP_UINT32("max-pd", VirtIORdma, conf.max_pd, 1024),
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
    DEFINE_PROP_UINT32("max-srq", VirtIORdma, conf.max_srq, 64),
    DEFINE_PROP_UINT32("max-srq-wr", VirtIORdma, conf.max_srq_wr, 16384),
    DEFINE_PROP_UINT32("max-mw", VirtIORdma, conf.max_mw, 16384),
    DEFINE_PROP_UINT32("max-mcast-grp", VirtIORdma, conf.max_mcast_grp, 128),
    DEFINE_PROP_UINT64("poll-max-ns", VirtIORdma, conf.poll_max_ns, 0),
    DEFINE_PROP_STRING("allowed-gids", VirtIORdma, conf.allowed_gids),
    DEFINE_PROP_STRING("layout", VirtIORdma, conf.layout),
    FEATURE("version-1", VERSION_1),
    FEATURE("direct", DIRECT),
};

static const RdmaHcaPropText texts[] = {
    { "netdev", "ID of the netdev for RoCEv2 frames; a NIC may share it" },
    { "rdmadev", "ID of an RDMA backend, instead of netdev" },
    { "iothread", "ID of the iothread that queues and engine work in; by "
                  "default the main loop" },
    { "mac", "MAC address of the port (with netdev; by default the NIC's)" },
    { "sys-image-guid", "system image GUID; 0: made from the MAC address" },
    { "max-qp", "queue pairs, with the reserved two (1-16384); 0: 4096, or "
                "128 without direct" },
    { "max-cq", "completion queues, and event queues with direct (1-16384); "
                "0: 8192, or 128 without direct" },
    { "max-mr", "memory regions" },
    { "max-pd", "protection domains" },
    { "max-mr-pages", "entries of the page lists of all regions and direct "
                      "queues; 0: by the size of RAM" },
    { "queue-size", "entries of a virtqueue (2-1024)" },
    { "max-qp-wr", "depth of work queues (4-32768)" },
    { "max-sge", "scatter/gather elements of a work request (1-256)" },
    { "max-inline", "bytes of inline data of a work request (0-4096)" },
    { "max-rd-atomic", "READs and atomics in flight per QP (1-128)" },
    { "max-cqe", "depth of completion queues with version-1 (1-1048576)" },
    { "max-srq", "shared receive queues (0-16384)" },
    { "max-srq-wr", "depth of shared receive queues (1-65536)" },
    { "max-mw", "memory windows, besides the regions" },
    { "max-mcast-grp", "multicast groups, and queue pairs of one (0-16384)" },
    { "gid-table-len", "entries of the GID table (1-256)" },
    { "poll-max-ns", "time to poll a busy direct queue after its last work "
                     "request (0-60000000000)" },
    { "allowed-gids", "addresses and prefixes that GIDs may be, separated by "
                      "spaces; by default all" },
    { "layout", "layout of structures: spec (default), or demo for the driver "
                "published with the RFC of 2022" },
    { "version-1", "offer more than the device of the RFC of 2022" },
    { "direct", "offer queues without virtqueues: more of them, deeper, and "
                "for processes without the kernel; with version-1" },
};

static char *get_version(Object *obj, Error **errp)
{
    return g_strdup(VIRTIO_RDMA_VERSION);
}

void virtio_rdma_props_init(ObjectClass *klass)
{
    device_class_set_props(DEVICE_CLASS(klass), virtio_rdma_properties);
    rdma_hca_describe_props(klass, texts, ARRAY_SIZE(texts));
    object_class_property_add_str(klass, "version", get_version, NULL);
    object_class_property_set_description(klass, "version",
        "version of the device; driver and provider have the same one");
}
