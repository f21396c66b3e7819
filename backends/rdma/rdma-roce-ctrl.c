/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The RoCE backend's methods that are the engine's own: its objects, and
 * posts to them.
 */
#include "qemu/osdep.h"
#include "qemu/rcu.h"
#include "rdma/roce-state.h"
#include "standard-headers/linux/virtio_rdma.h"
#include "rdma-roce-int.h"

/* GIDs */

static int rdma_roce_add_gid(RdmaBackend *rb, uint32_t index,
                             const uint8_t gid[RDMA_GID_LEN], uint16_t vlan)
{
    return roce_add_gid(rdma_roce_engine(rb), index, gid, vlan);
}

static int rdma_roce_del_gid(RdmaBackend *rb, uint32_t index)
{
    return roce_del_gid(rdma_roce_engine(rb), index);
}

/* Memory */

static int rdma_roce_create_mr(RdmaBackend *rb, RdmaMrAttr *attr)
{
    return roce_mr_create(rdma_roce_engine(rb), attr);
}

static int rdma_roce_map_mr(RdmaBackend *rb, uint32_t mrn, uint64_t iova,
                            uint64_t length, uint64_t *pages, uint32_t npages)
{
    return roce_mr_map(rdma_roce_engine(rb), mrn, iova, length,
                       pages, npages);
}

static int rdma_roce_destroy_mr(RdmaBackend *rb, uint32_t mrn)
{
    return roce_mr_destroy(rdma_roce_engine(rb), mrn);
}

static int rdma_roce_modify_mr(RdmaBackend *rb, uint32_t mask,
                               RdmaMrAttr *attr)
{
    return roce_mr_modify(rdma_roce_engine(rb), mask, attr);
}

static int rdma_roce_create_mw(RdmaBackend *rb, RdmaMwAttr *attr)
{
    return roce_mw_create(rdma_roce_engine(rb), attr);
}

static int rdma_roce_destroy_mw(RdmaBackend *rb, uint32_t mwn)
{
    return roce_mw_destroy(rdma_roce_engine(rb), mwn);
}

/* Shared receive queues */

static int rdma_roce_create_srq(RdmaBackend *rb, const RdmaSrqAttr *attr)
{
    if (attr->max_wr > rb->limits.max_srq_wr ||
        attr->max_sge > rb->limits.max_srq_sge) {
        return -EINVAL;
    }
    return roce_srq_create(rdma_roce_engine(rb), attr);
}

static int rdma_roce_set_srq_limit(RdmaBackend *rb, uint32_t srqn,
                                   uint32_t limit)
{
    return roce_srq_set_limit(rdma_roce_engine(rb), srqn, limit);
}

static int rdma_roce_query_srq(RdmaBackend *rb, uint32_t srqn,
                               RdmaSrqAttr *attr)
{
    return roce_srq_query(rdma_roce_engine(rb), srqn, attr);
}

static int rdma_roce_destroy_srq(RdmaBackend *rb, uint32_t srqn)
{
    return roce_srq_destroy(rdma_roce_engine(rb), srqn);
}

/* Queue pairs */

static int rdma_roce_create_qp(RdmaBackend *rb, RdmaQpInitAttr *init)
{
    return roce_qp_create(rdma_roce_engine(rb), init);
}

/*
 * A QP is about to go. Its owner may have been told of messages that only the
 * next turn would acknowledge; their sender would try again in vain.
 */
static void respond(RdmaBackend *rb)
{
    RDMA_BACKEND_GET_CLASS(rb)->run(rb);
}

static int rdma_roce_modify_qp(RdmaBackend *rb, uint32_t qpn,
                               uint32_t attr_mask, const RdmaQpAttr *attr)
{
    RCU_READ_LOCK_GUARD();
    if ((attr_mask & RDMA_QP_STATE) && (attr->qp_state == RDMA_QPS_RESET ||
                                        attr->qp_state == RDMA_QPS_ERR)) {
        respond(rb);
    }
    return roce_qp_modify(rdma_roce_engine(rb), qpn, attr_mask, attr);
}

static int rdma_roce_query_qp(RdmaBackend *rb, uint32_t qpn, RdmaQpAttr *attr)
{
    return roce_qp_query(rdma_roce_engine(rb), qpn, attr);
}

static int rdma_roce_destroy_qp(RdmaBackend *rb, uint32_t qpn)
{
    respond(rb);
    return roce_qp_destroy(rdma_roce_engine(rb), qpn);
}

/* Multicast groups */

static int rdma_roce_attach_mcast(RdmaBackend *rb, uint32_t qpn,
                                  const uint8_t gid[RDMA_GID_LEN])
{
    return roce_mcast_attach(rdma_roce_engine(rb), qpn, gid);
}

static int rdma_roce_detach_mcast(RdmaBackend *rb, uint32_t qpn,
                                  const uint8_t gid[RDMA_GID_LEN])
{
    return roce_mcast_detach(rdma_roce_engine(rb), qpn, gid);
}

static void rdma_roce_set_extensions(RdmaBackend *rb, uint32_t extensions)
{
    roce_set_extensions(rdma_roce_engine(rb), extensions);
}

/* Counters: RoceStats has the guest ABI's, in its order. */

QEMU_BUILD_BUG_ON(sizeof(RoceStats) !=
                  VIRTIO_RDMA_NUM_COUNTERS * sizeof(uint64_t));
QEMU_BUILD_BUG_ON(offsetof(RoceStats, rx_mcast_frames) !=
                  VIRTIO_RDMA_RX_MCAST_PACKETS * sizeof(uint64_t));

static unsigned rdma_roce_query_counters(RdmaBackend *rb, uint64_t *values)
{
    const RoceStats *stats = roce_stats(rdma_roce_engine(rb));

    memcpy(values, stats, sizeof(*stats));
    return VIRTIO_RDMA_NUM_COUNTERS;
}

/* What a QP counts of them */
static const struct {
    uint8_t counter;
    uint8_t offset;                 /* in RdmaQpStats */
} qp_counters[] = {
#define COUNTER(name, field) \
    { VIRTIO_RDMA_##name, offsetof(RdmaQpStats, field) }
    COUNTER(TX_PACKETS, tx_frames),
    COUNTER(TX_BYTES, tx_bytes),
    COUNTER(RX_PACKETS, rx_frames),
    COUNTER(RX_BYTES, rx_bytes),
    COUNTER(LOOPBACK_PACKETS, loopback_frames),
    COUNTER(RX_DUPLICATES, rx_duplicates),
    COUNTER(RX_OUT_OF_SEQUENCE, rx_out_of_sequence),
    COUNTER(RETRANSMITS, retransmits),
    COUNTER(TIMEOUTS, timeouts),
    COUNTER(RNR_NAKS_SENT, rnr_naks_sent),
    COUNTER(RNR_NAKS_RECEIVED, rnr_naks_received),
    COUNTER(NAKS_SENT, naks_sent),
    COUNTER(NAKS_RECEIVED, naks_received),
    COUNTER(BAD_QKEY, bad_qkey),
#undef COUNTER
};

/* What follows these is for people on the host only. */
QEMU_BUILD_BUG_ON(offsetof(RdmaQpStats, timeouts_late) !=
                  ARRAY_SIZE(qp_counters) * sizeof(uint64_t));

static uint64_t *qp_counter(RdmaQpStats *stats, size_t i)
{
    return (uint64_t *)((char *)stats + qp_counters[i].offset);
}

static int rdma_roce_query_qp_counters(RdmaBackend *rb, uint32_t qpn,
                                       uint64_t *values)
{
    RdmaQpStats stats;
    int ret = roce_export_qp_stats(rdma_roce_engine(rb), qpn, &stats);

    for (size_t i = 0; !ret && i < ARRAY_SIZE(qp_counters); i++) {
        values[qp_counters[i].counter] += *qp_counter(&stats, i);
    }
    return ret;
}

static int rdma_roce_set_qp_counters(RdmaBackend *rb, uint32_t qpn,
                                     const uint64_t *values)
{
    RdmaQpStats stats = {};

    for (size_t i = 0; i < ARRAY_SIZE(qp_counters); i++) {
        *qp_counter(&stats, i) = values[qp_counters[i].counter];
    }
    return roce_import_qp_stats(rdma_roce_engine(rb), qpn, &stats);
}

static int rdma_roce_inspect(RdmaBackend *rb, RdmaInspect what, uint32_t id,
                             RdmaInspection *out)
{
    return roce_inspect(rdma_roce_engine(rb), what, id, out);
}

/* Work requests */

static void rdma_roce_kick(RdmaBackend *rb, RdmaQueue queue, uint32_t id)
{
    roce_kick(rdma_roce_engine(rb), queue, id);
}

void rdma_roce_ctrl_class_init(RdmaBackendClass *rbc)
{
    rbc->add_gid = rdma_roce_add_gid;
    rbc->del_gid = rdma_roce_del_gid;
    rbc->create_mr = rdma_roce_create_mr;
    rbc->map_mr = rdma_roce_map_mr;
    rbc->destroy_mr = rdma_roce_destroy_mr;
    rbc->modify_mr = rdma_roce_modify_mr;
    rbc->create_mw = rdma_roce_create_mw;
    rbc->destroy_mw = rdma_roce_destroy_mw;
    rbc->create_srq = rdma_roce_create_srq;
    rbc->set_srq_limit = rdma_roce_set_srq_limit;
    rbc->query_srq = rdma_roce_query_srq;
    rbc->destroy_srq = rdma_roce_destroy_srq;
    rbc->create_qp = rdma_roce_create_qp;
    rbc->modify_qp = rdma_roce_modify_qp;
    rbc->query_qp = rdma_roce_query_qp;
    rbc->destroy_qp = rdma_roce_destroy_qp;
    rbc->set_extensions = rdma_roce_set_extensions;
    rbc->attach_mcast = rdma_roce_attach_mcast;
    rbc->detach_mcast = rdma_roce_detach_mcast;
    rbc->query_counters = rdma_roce_query_counters;
    rbc->query_qp_counters = rdma_roce_query_qp_counters;
    rbc->set_qp_counters = rdma_roce_set_qp_counters;
    rbc->inspect = rdma_roce_inspect;
    rbc->kick = rdma_roce_kick;
}
