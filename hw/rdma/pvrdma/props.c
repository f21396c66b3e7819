/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties of a pvrdma device, and checks of their values.
 */
#include "qemu/osdep.h"
#include "hw/core/qdev-properties.h"
#include "qapi/error.h"
#include "int.h"

static const Property properties[] = {
    DEFINE_PROP_STRING("netdev", Pvrdma, conf.netdev),
    DEFINE_PROP_LINK("rdmadev", Pvrdma, conf.rdmadev, TYPE_RDMA_BACKEND,
                     RdmaBackend *),
    DEFINE_PROP_MACADDR("mac", Pvrdma, conf.mac),
    DEFINE_PROP_UINT64("sys-image-guid", Pvrdma, conf.sys_image_guid, 0),
    DEFINE_PROP_UINT32("max-qp", Pvrdma, conf.max_qp, 4096),
    DEFINE_PROP_UINT32("max-qp-wr", Pvrdma, conf.max_qp_wr, PVRDMA_MAX_QP_WR),
    DEFINE_PROP_UINT32("max-sge", Pvrdma, conf.max_sge, 32),
    DEFINE_PROP_UINT32("max-cq", Pvrdma, conf.max_cq, 8192),
    DEFINE_PROP_UINT32("max-cqe", Pvrdma, conf.max_cqe, 1u << 16),
    DEFINE_PROP_UINT32("max-mr", Pvrdma, conf.max_mr, 65536),
    DEFINE_PROP_UINT32("max-pd", Pvrdma, conf.max_pd, 1024),
    DEFINE_PROP_SIZE("max-mr-size", Pvrdma, conf.max_mr_size,
                     PVRDMA_MAX_MR_SIZE),
    DEFINE_PROP_UINT64("max-mr-pages", Pvrdma, conf.max_mr_pages, 0),
    DEFINE_PROP_UINT32("max-srq", Pvrdma, conf.max_srq, 1024),
    DEFINE_PROP_UINT32("max-srq-wr", Pvrdma, conf.max_srq_wr, 1u << 15),
    DEFINE_PROP_UINT32("max-rd-atomic", Pvrdma, conf.max_rd_atomic, 16),
    DEFINE_PROP_UINT32("max-uar", Pvrdma, conf.max_uar, 512),
    DEFINE_PROP_UINT32("gid-table-len", Pvrdma, conf.gid_table_len, 128),
    DEFINE_PROP_STRING("allowed-gids", Pvrdma, conf.allowed_gids),
};

static const RdmaHcaPropText texts[] = {
    { "netdev", "ID of the netdev for RoCEv2 frames, that of the vmxnet3" },
    { "rdmadev", "ID of an RDMA backend, instead of netdev" },
    { "mac", "MAC address of the port (with netdev; by default the NIC's)" },
    { "sys-image-guid", "system image GUID; 0: made from the MAC address" },
    { "max-qp", "queue pairs, with the reserved two (3-65535)" },
    { "max-qp-wr", "depth of work queues, a power of 2 (512-16384)" },
    { "max-sge", "scatter/gather elements of a work request, a power of 2 "
                 "(2-128)" },
    { "max-cq", "completion queues (1-65535)" },
    { "max-cqe", "depth of completion queues, a power of 2 (1024-1048576)" },
    { "max-mr", "memory regions (1-16777214)" },
    { "max-pd", "protection domains (1-65536)" },
    { "max-mr-size", "bytes of the largest memory region (up to 1 GiB)" },
    { "max-mr-pages", "entries of the page lists of all memory regions; "
                      "0: by the size of RAM" },
    { "max-srq", "shared receive queues (0-65535)" },
    { "max-srq-wr", "depth of shared receive queues, a power of 2 "
                    "(1-65536)" },
    { "max-rd-atomic", "READs and atomics in flight per QP (1-128)" },
    { "max-uar", "pages of doorbells, a power of 2: processes that use the "
                 "device, and one (2-8192)" },
    { "gid-table-len", "entries of the GID table (1-256)" },
    { "allowed-gids", "addresses and prefixes that GIDs may be, separated by "
                      "spaces; by default all" },
};

bool pvrdma_conf_check(Pvrdma *s, Error **errp)
{
    const PvrdmaConf *c = &s->conf;
    /* true: a power of 2. Drivers use it as a mask, or round up to it. */
    const RdmaHcaProp props[] = {
        { "max-qp", c->max_qp, 3, PVRDMA_MAX_QP },
        { "max-qp-wr", c->max_qp_wr, PVRDMA_MIN_QP_WR, PVRDMA_MAX_QP_WR, true },
        { "max-sge", c->max_sge, PVRDMA_MIN_SGE, PVRDMA_MAX_SGE, true },
        { "max-cq", c->max_cq, 1, PVRDMA_MAX_CQ },
        { "max-cqe", c->max_cqe, PVRDMA_MIN_CQE, PVRDMA_MAX_CQE, true },
        { "max-mr", c->max_mr, 1, PVRDMA_MAX_MR },
        { "max-pd", c->max_pd, 1, PVRDMA_MAX_PD },
        { "max-mr-size", c->max_mr_size, RDMA_PAGE_SIZE, PVRDMA_MAX_MR_SIZE },
        { "max-srq", c->max_srq, 0, PVRDMA_MAX_SRQ },
        { "max-srq-wr", c->max_srq_wr, 1, PVRDMA_MAX_SRQ_WR, true },
        { "max-rd-atomic", c->max_rd_atomic, 1, PVRDMA_MAX_RD_ATOMIC },
        { "max-uar", c->max_uar, 2, PVRDMA_MAX_UAR, true },
        { "gid-table-len", c->gid_table_len, 1, PVRDMA_MAX_GIDS },
    };

    return rdma_hca_check_props(props, ARRAY_SIZE(props), errp) &&
           rdma_hca_gids_parse(&s->hca, c->allowed_gids, errp);
}

static bool check_limit(const char *name, uint64_t value, uint64_t min,
                        Error **errp)
{
    if (value < min) {
        error_setg(errp, "the backend allows %s=%" PRIu64 ", but the driver "
                   "of pvrdma needs %" PRIu64, name, value, min);
        return false;
    }
    return true;
}

bool pvrdma_limits_check(const Pvrdma *s, Error **errp)
{
    const RdmaBackendLimits *l = &s->hca.limits;

    return check_limit("max-qp-wr", l->max_qp_wr, PVRDMA_MIN_QP_WR,
                       errp) &&
           check_limit("max-sge", l->max_send_sge, PVRDMA_MIN_SGE, errp) &&
           check_limit("max-cqe", l->max_cqe, PVRDMA_MIN_CQE, errp);
}

void pvrdma_props_init(ObjectClass *klass)
{
    device_class_set_props(DEVICE_CLASS(klass), properties);
    rdma_hca_describe_props(klass, texts, ARRAY_SIZE(texts));
}
