/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Check of the image of a queue pair: the attributes. Other files check the
 * queues.
 */
#include <glib.h>
#include "state-check.h"

static char *check_init(const RoceQpImage *image, const RdmaQpCap *max)
{
    const RdmaQpCap *cap = &image->init.cap;

    REFUSE_IF(image->init.qp_type < RDMA_QPT_GSI ||
              image->init.qp_type > RDMA_QPT_UD,
              "qp_type %u is not in %u..%u", image->init.qp_type,
              RDMA_QPT_GSI, RDMA_QPT_UD);
    REFUSE_ABOVE(cap, max_send_wr, max->max_send_wr);
    REFUSE_ABOVE(cap, max_recv_wr, max->max_recv_wr);
    REFUSE_ABOVE(cap, max_send_sge, max->max_send_sge);
    REFUSE_ABOVE(cap, max_recv_sge, max->max_recv_sge);
    REFUSE_ABOVE(cap, max_inline_data, max->max_inline_data);
    REFUSE_NOT_BOOL(image, send_cq_failed);
    REFUSE_NOT_BOOL(image, recv_cq_failed);
    return NULL;
}

static char *check_path(const RoceEngine *e, const RoceQpImage *image)
{
    const RdmaQpAttr *attr = &image->s.attr;
    const RdmaAv *av = &attr->ah_attr;
    RdmaMtu max_mtu = roce_port_mtu(e);

    REFUSE_IF(!attr->path_mtu, "path_mtu is 0 in state %s",
              rdma_qp_state_name(attr->qp_state));
    REFUSE_IF(attr->path_mtu > max_mtu,
              "path_mtu %u (%u bytes) exceeds %u (%u bytes), the largest for "
              "the link's MTU of %u bytes", attr->path_mtu,
              rdma_mtu_bytes(attr->path_mtu), max_mtu,
              rdma_mtu_bytes(max_mtu), e->link_mtu);
    REFUSE_IF(av->sgid_index >= e->config.gid_table_len,
              "sgid_index %u is not below %u, the length of the GID table",
              av->sgid_index, e->config.gid_table_len);
    REFUSE_UNLESS(av, port_num, RDMA_PORT_NUM);
    REFUSE_IF(av->flow_label > RDMA_FLOW_LABEL_MASK,
              "flow_label 0x%x exceeds 0x%x", av->flow_label,
              RDMA_FLOW_LABEL_MASK);
    REFUSE_IF(roce_gid_is_zero(av->dgid), "dgid is zero");
    REFUSE_IF(rdma_gid_is_multicast(av->dgid),
              "dgid 0x%02x%02x...%02x%02x%02x%02x is a multicast GID",
              av->dgid[0], av->dgid[1], av->dgid[12], av->dgid[13],
              av->dgid[14], av->dgid[15]);
    return NULL;
}

static char *check_attr(const RoceEngine *e, const RoceQpImage *image)
{
    const RdmaQpAttr *attr = &image->s.attr;

    REFUSE_ABOVE(attr, qp_state, RDMA_QPS_ERR);
    REFUSE_IF(attr->qp_state == RDMA_QPS_SQE &&
              image->init.qp_type == RDMA_QPT_RC,
              "qp_state %u (SQE) is not one of type RC", attr->qp_state);
    REFUSE_ABOVE(attr, path_mtu, RDMA_MTU_4096);
    REFUSE_NOT_24_BITS(attr, dest_qp_num);
    REFUSE_ABOVE(attr, timeout, RDMA_MAX_TIMEOUT);
    REFUSE_ABOVE(attr, min_rnr_timer, RDMA_RNR_TIMER_MASK);
    REFUSE_ABOVE(attr, retry_cnt, RDMA_MAX_RETRIES);
    REFUSE_ABOVE(attr, rnr_retry, RDMA_MAX_RETRIES);
    REFUSE_ABOVE(attr, max_rd_atomic, e->config.max_rd_atomic);
    REFUSE_ABOVE(attr, max_dest_rd_atomic, e->config.max_rd_atomic);
    REFUSE_UNLESS(attr, pkey_index, 0);
    REFUSE_ABOVE(attr, port_num, RDMA_PORT_NUM);
    REFUSE_UNLESS(attr, path_mig_state, RDMA_MIG_MIGRATED);
    return has_path(image) ? check_path(e, image) : NULL;
}

char *roce_check_qp(const RoceEngine *e, const RoceQpImage *image,
                    const RdmaQpCap *max)
{
    REFUSE_AS(check_init(image, max));
    REFUSE_AS(check_attr(e, image));
    REFUSE_AS(roce_check_sq(image));
    REFUSE_AS(roce_check_rq(e, image));
    REFUSE_AS(roce_check_resp(image));
    return roce_check_resources(e, image);
}

/* roce_check_qp() has accepted the type and the SRQ. */
char *roce_explain_qp(const RoceEngine *e, const RdmaQpInitAttr *init)
{
    const RdmaQpCap *cap = &init->cap;

    REFUSE_IF(init->qp_type == RDMA_QPT_GSI && init->qpn != RDMA_QPN_GSI,
              "qpn %u of type GSI is not %u", init->qpn, RDMA_QPN_GSI);
    REFUSE_IF(init->qp_type != RDMA_QPT_GSI &&
              (init->qpn == RDMA_QPN_SMI || init->qpn == RDMA_QPN_GSI),
              "qpn %u is reserved, not one of type %s", init->qpn,
              roce_qp_type_name(init->qp_type));
    REFUSE_IF(init->qpn >= e->config.max_qp, "qpn %u is not below %u",
              init->qpn, e->config.max_qp);
    REFUSE_ABOVE(cap, max_send_wr, ROCE_MAX_WR);
    REFUSE_ABOVE(cap, max_recv_wr, ROCE_MAX_WR);
    REFUSE_IF(init->has_srq && init->qp_type == RDMA_QPT_GSI,
              "srqn %u on a queue pair of type GSI, which has no SRQ",
              init->srqn);
    REFUSE_IF(roce_qp_find(e, init->qpn), "qpn %u is in use", init->qpn);
    return g_strdup_printf("no memory for queues with max_send_sge %u, "
                           "max_inline_data %u and max_recv_sge %u",
                           cap->max_send_sge, cap->max_inline_data,
                           cap->max_recv_sge);
}
