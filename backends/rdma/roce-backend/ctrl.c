/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Class methods of the RoCE backend that are functions of the engine.
 */
#include "qemu/osdep.h"
#include "qemu/rcu.h"
#include "rdma/roce-state.h"
#include "int.h"

/* GIDs */

static int rdma_roce_add_gid(RdmaBackend *rb, uint32_t index,
                             const uint8_t gid[RDMA_GID_LEN], uint16_t vlan)
{
    return roce_add_gid(rdma_roce_engine(rb), index, gid, vlan);
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

static int rdma_roce_modify_mr(RdmaBackend *rb, uint32_t mask,
                               RdmaMrAttr *attr)
{
    return roce_mr_modify(rdma_roce_engine(rb), mask, attr);
}

static int rdma_roce_create_mw(RdmaBackend *rb, RdmaMwAttr *attr)
{
    return roce_mw_create(rdma_roce_engine(rb), attr);
}

/* Shared receive queues */

static int rdma_roce_create_srq(RdmaBackend *rb, const RdmaSrqAttr *attr)
{
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

/* Queue pairs */

static int rdma_roce_create_qp(RdmaBackend *rb, RdmaQpInitAttr *init)
{
    return roce_qp_create(rdma_roce_engine(rb), init);
}

static int rdma_roce_modify_qp(RdmaBackend *rb, uint32_t qpn,
                               uint32_t attr_mask, const RdmaQpAttr *attr)
{
    RCU_READ_LOCK_GUARD();
    if ((attr_mask & RDMA_QP_STATE) && (attr->qp_state == RDMA_QPS_RESET ||
                                        attr->qp_state == RDMA_QPS_ERR)) {
        /*
         * The QP may have completed messages that only the next turn would
         * acknowledge, and their sender would retransmit in vain.
         */
        rdma_roce_run(rb);
    }
    return roce_qp_modify(rdma_roce_engine(rb), qpn, attr_mask, attr);
}

static int rdma_roce_query_qp(RdmaBackend *rb, uint32_t qpn, RdmaQpAttr *attr)
{
    return roce_qp_query(rdma_roce_engine(rb), qpn, attr);
}

static int rdma_roce_destroy(RdmaBackend *rb, RdmaObjectType type, uint32_t id)
{
    RoceEngine *e = rdma_roce_engine(rb);

    switch (type) {
    case RDMA_OBJECT_GID:
        return roce_del_gid(e, id);
    case RDMA_OBJECT_MR:
        return roce_mr_destroy(e, id);
    case RDMA_OBJECT_MW:
        return roce_mw_destroy(e, id);
    case RDMA_OBJECT_SRQ:
        return roce_srq_destroy(e, id);
    case RDMA_OBJECT_QP:
        rdma_roce_run(rb);      /* as before a QP is modified */
        return roce_qp_destroy(e, id);
    default:
        return 0;
    }
}

/* Multicast groups */

static int rdma_roce_set_mcast(RdmaBackend *rb, uint32_t qpn,
                               const uint8_t gid[RDMA_GID_LEN], bool attach)
{
    RoceEngine *e = rdma_roce_engine(rb);

    return attach ? roce_mcast_attach(e, qpn, gid)
                  : roce_mcast_detach(e, qpn, gid);
}

static void rdma_roce_set_extensions(RdmaBackend *rb, uint32_t extensions)
{
    roce_set_extensions(rdma_roce_engine(rb), extensions);
}

/* Counters: RoceStats has the counters of RdmaCounter in the same order. */

QEMU_BUILD_BUG_ON(sizeof(RoceStats) !=
                  RDMA_NUM_COUNTERS * sizeof(uint64_t));
QEMU_BUILD_BUG_ON(offsetof(RoceStats, rx_mcast_frames) !=
                  RDMA_COUNTER_RX_MCAST_PACKETS * sizeof(uint64_t));

/* The counters that a QP has, too */
static const struct {
    uint8_t counter;
    uint8_t offset;                 /* in RdmaQpStats */
} qp_counters[] = {
#define COUNTER(name, field) \
    { RDMA_COUNTER_##name, offsetof(RdmaQpStats, field) }
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

/* The members after these are for people on the host only. */
QEMU_BUILD_BUG_ON(offsetof(RdmaQpStats, timeouts_late) !=
                  ARRAY_SIZE(qp_counters) * sizeof(uint64_t));

static uint64_t *qp_counter(RdmaQpStats *stats, size_t i)
{
    return (uint64_t *)((char *)stats + qp_counters[i].offset);
}

static int rdma_roce_query_counters(RdmaBackend *rb, uint32_t qpn,
                                    uint64_t *values)
{
    RoceEngine *e = rdma_roce_engine(rb);
    const uint64_t *all = (const uint64_t *)roce_stats(e);
    RdmaQpStats stats;
    int ret;

    if (qpn == RDMA_NO_QPN) {
        for (size_t i = 0; i < RDMA_NUM_COUNTERS; i++) {
            values[i] += all[i];
        }
        return 0;
    }
    ret = roce_export_qp_stats(e, qpn, &stats);
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

static int rdma_roce_inspect(RdmaBackend *rb, RdmaObjectType what, uint32_t id,
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
    rbc->create_mr = rdma_roce_create_mr;
    rbc->map_mr = rdma_roce_map_mr;
    rbc->modify_mr = rdma_roce_modify_mr;
    rbc->create_mw = rdma_roce_create_mw;
    rbc->create_srq = rdma_roce_create_srq;
    rbc->set_srq_limit = rdma_roce_set_srq_limit;
    rbc->query_srq = rdma_roce_query_srq;
    rbc->create_qp = rdma_roce_create_qp;
    rbc->modify_qp = rdma_roce_modify_qp;
    rbc->query_qp = rdma_roce_query_qp;
    rbc->destroy = rdma_roce_destroy;
    rbc->set_mcast = rdma_roce_set_mcast;
    rbc->set_extensions = rdma_roce_set_extensions;
    rbc->query_counters = rdma_roce_query_counters;
    rbc->set_qp_counters = rdma_roce_set_qp_counters;
    rbc->inspect = rdma_roce_inspect;
    rbc->kick = rdma_roce_kick;
}
