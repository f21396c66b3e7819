/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The layout of docs/specs/virtio-rdma.rst: control requests and
 * responses.
 */
#include "qemu/osdep.h"
#include "codec-field.h"

QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_modify_qp_req) >
                  VIRTIO_RDMA_REQ_ROOM);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_query_qp_counters_req) >
                  VIRTIO_RDMA_REQ_ROOM);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_query_port_rsp) >
                  VIRTIO_RDMA_RSP_ROOM);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_NUM_COUNTERS * sizeof(uint64_t) >
                  VIRTIO_RDMA_RSP_ROOM);

/* The guest ABI has the numbers of rdma/verbs.h, so no conversion is needed. */
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_REREG_TRANSLATION != RDMA_REREG_TRANSLATION);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_REREG_PD != RDMA_REREG_PD);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_REREG_ACCESS != RDMA_REREG_ACCESS);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_MW_TYPE_1 != RDMA_MW_TYPE_1);
QEMU_BUILD_BUG_ON(VIRTIO_RDMA_MW_TYPE_2 != RDMA_MW_TYPE_2);

/* The page list of a direct queue, in the request @type at @p */
#define GET_QUEUE_PAGES(p, type) ((RdmaHcaPages) {   \
        .table = GET64(p, type, queue_pages),           \
        .npages = GET32(p, type, queue_npages),         \
        .levels = GET8(p, type, queue_levels),          \
    })

static void get_ah_attr(const uint8_t *p, RdmaAv *av)
{
    GET_BYTES(av->dgid, p, virtio_rdma_ah_attr, dgid);
    GET_BYTES(av->dmac, p, virtio_rdma_ah_attr, dmac);
    av->flow_label = GET32(p, virtio_rdma_ah_attr, flow_label);
    av->sgid_index = GET8(p, virtio_rdma_ah_attr, sgid_index);
    av->hop_limit = GET8(p, virtio_rdma_ah_attr, hop_limit);
    av->traffic_class = GET8(p, virtio_rdma_ah_attr, traffic_class);
    av->sl = GET8(p, virtio_rdma_ah_attr, sl);
    av->static_rate = GET8(p, virtio_rdma_ah_attr, static_rate);
    av->port_num = GET8(p, virtio_rdma_ah_attr, port_num);
    av->ah_flags = GET8(p, virtio_rdma_ah_attr, ah_flags);
}

static void put_ah_attr(uint8_t *p, const RdmaAv *av)
{
    PUT_BYTES(p, virtio_rdma_ah_attr, dgid, av->dgid);
    PUT_BYTES(p, virtio_rdma_ah_attr, dmac, av->dmac);
    PUT32(p, virtio_rdma_ah_attr, flow_label, av->flow_label);
    PUT8(p, virtio_rdma_ah_attr, sgid_index, av->sgid_index);
    PUT8(p, virtio_rdma_ah_attr, hop_limit, av->hop_limit);
    PUT8(p, virtio_rdma_ah_attr, traffic_class, av->traffic_class);
    PUT8(p, virtio_rdma_ah_attr, sl, av->sl);
    PUT8(p, virtio_rdma_ah_attr, static_rate, av->static_rate);
    PUT8(p, virtio_rdma_ah_attr, port_num, av->port_num);
    PUT8(p, virtio_rdma_ah_attr, ah_flags, av->ah_flags);
}

static void get_qp_cap(const uint8_t *p, RdmaQpCap *cap)
{
    cap->max_send_wr = GET32(p, virtio_rdma_qp_cap, max_send_wr);
    cap->max_recv_wr = GET32(p, virtio_rdma_qp_cap, max_recv_wr);
    cap->max_send_sge = GET32(p, virtio_rdma_qp_cap, max_send_sge);
    cap->max_recv_sge = GET32(p, virtio_rdma_qp_cap, max_recv_sge);
    cap->max_inline_data = GET32(p, virtio_rdma_qp_cap, max_inline_data);
}

static void put_qp_cap(uint8_t *p, const RdmaQpCap *cap)
{
    PUT32(p, virtio_rdma_qp_cap, max_send_wr, cap->max_send_wr);
    PUT32(p, virtio_rdma_qp_cap, max_recv_wr, cap->max_recv_wr);
    PUT32(p, virtio_rdma_qp_cap, max_send_sge, cap->max_send_sge);
    PUT32(p, virtio_rdma_qp_cap, max_recv_sge, cap->max_recv_sge);
    PUT32(p, virtio_rdma_qp_cap, max_inline_data, cap->max_inline_data);
}

static void get_qp_attr(const uint8_t *p, RdmaQpAttr *attr)
{
    attr->qp_state = GET8(p, virtio_rdma_qp_attr, qp_state);
    attr->cur_qp_state = GET8(p, virtio_rdma_qp_attr, cur_qp_state);
    attr->path_mtu = GET8(p, virtio_rdma_qp_attr, path_mtu);
    attr->path_mig_state = GET8(p, virtio_rdma_qp_attr, path_mig_state);
    attr->qkey = GET32(p, virtio_rdma_qp_attr, qkey);
    attr->rq_psn = GET32(p, virtio_rdma_qp_attr, rq_psn);
    attr->sq_psn = GET32(p, virtio_rdma_qp_attr, sq_psn);
    attr->dest_qp_num = GET32(p, virtio_rdma_qp_attr, dest_qp_num);
    attr->qp_access_flags = GET32(p, virtio_rdma_qp_attr, qp_access_flags);
    attr->pkey_index = GET16(p, virtio_rdma_qp_attr, pkey_index);
    attr->alt_pkey_index = GET16(p, virtio_rdma_qp_attr, alt_pkey_index);
    attr->en_sqd_async_notify = GET8(p, virtio_rdma_qp_attr,
                                     en_sqd_async_notify);
    attr->sq_draining = GET8(p, virtio_rdma_qp_attr, sq_draining);
    attr->max_rd_atomic = GET8(p, virtio_rdma_qp_attr, max_rd_atomic);
    attr->max_dest_rd_atomic = GET8(p, virtio_rdma_qp_attr,
                                    max_dest_rd_atomic);
    attr->min_rnr_timer = GET8(p, virtio_rdma_qp_attr, min_rnr_timer);
    attr->port_num = GET8(p, virtio_rdma_qp_attr, port_num);
    attr->timeout = GET8(p, virtio_rdma_qp_attr, timeout);
    attr->retry_cnt = GET8(p, virtio_rdma_qp_attr, retry_cnt);
    attr->rnr_retry = GET8(p, virtio_rdma_qp_attr, rnr_retry);
    attr->alt_port_num = GET8(p, virtio_rdma_qp_attr, alt_port_num);
    attr->alt_timeout = GET8(p, virtio_rdma_qp_attr, alt_timeout);
    attr->rate_limit = GET32(p, virtio_rdma_qp_attr, rate_limit);
    get_qp_cap(AT(p, virtio_rdma_qp_attr, cap), &attr->cap);
    get_ah_attr(AT(p, virtio_rdma_qp_attr, ah_attr), &attr->ah_attr);
    get_ah_attr(AT(p, virtio_rdma_qp_attr, alt_ah_attr), &attr->alt_ah_attr);
}

static void put_qp_attr(uint8_t *p, const RdmaQpAttr *attr)
{
    PUT8(p, virtio_rdma_qp_attr, qp_state, attr->qp_state);
    PUT8(p, virtio_rdma_qp_attr, cur_qp_state, attr->cur_qp_state);
    PUT8(p, virtio_rdma_qp_attr, path_mtu, attr->path_mtu);
    PUT8(p, virtio_rdma_qp_attr, path_mig_state, attr->path_mig_state);
    PUT32(p, virtio_rdma_qp_attr, qkey, attr->qkey);
    PUT32(p, virtio_rdma_qp_attr, rq_psn, attr->rq_psn);
    PUT32(p, virtio_rdma_qp_attr, sq_psn, attr->sq_psn);
    PUT32(p, virtio_rdma_qp_attr, dest_qp_num, attr->dest_qp_num);
    PUT32(p, virtio_rdma_qp_attr, qp_access_flags, attr->qp_access_flags);
    PUT16(p, virtio_rdma_qp_attr, pkey_index, attr->pkey_index);
    PUT16(p, virtio_rdma_qp_attr, alt_pkey_index, attr->alt_pkey_index);
    PUT8(p, virtio_rdma_qp_attr, en_sqd_async_notify,
         attr->en_sqd_async_notify);
    PUT8(p, virtio_rdma_qp_attr, sq_draining, attr->sq_draining);
    PUT8(p, virtio_rdma_qp_attr, max_rd_atomic, attr->max_rd_atomic);
    PUT8(p, virtio_rdma_qp_attr, max_dest_rd_atomic,
         attr->max_dest_rd_atomic);
    PUT8(p, virtio_rdma_qp_attr, min_rnr_timer, attr->min_rnr_timer);
    PUT8(p, virtio_rdma_qp_attr, port_num, attr->port_num);
    PUT8(p, virtio_rdma_qp_attr, timeout, attr->timeout);
    PUT8(p, virtio_rdma_qp_attr, retry_cnt, attr->retry_cnt);
    PUT8(p, virtio_rdma_qp_attr, rnr_retry, attr->rnr_retry);
    PUT8(p, virtio_rdma_qp_attr, alt_port_num, attr->alt_port_num);
    PUT8(p, virtio_rdma_qp_attr, alt_timeout, attr->alt_timeout);
    PUT32(p, virtio_rdma_qp_attr, rate_limit, attr->rate_limit);
    put_qp_cap(AT(p, virtio_rdma_qp_attr, cap), &attr->cap);
    put_ah_attr(AT(p, virtio_rdma_qp_attr, ah_attr), &attr->ah_attr);
    put_ah_attr(AT(p, virtio_rdma_qp_attr, alt_ah_attr), &attr->alt_ah_attr);
}

static void get_user_mr(const uint8_t *p, VirtIORdmaReq *req)
{
    req->mr.pdn = GET32(p, virtio_rdma_reg_user_mr_req, pdn);
    req->mr.access = GET32(p, virtio_rdma_reg_user_mr_req, access);
    req->mr.start = GET64(p, virtio_rdma_reg_user_mr_req, start);
    req->mr.pages = (RdmaHcaPages) {
        .iova = GET64(p, virtio_rdma_reg_user_mr_req, virt_addr),
        .length = GET64(p, virtio_rdma_reg_user_mr_req, length),
        .table = GET64(p, virtio_rdma_reg_user_mr_req, pages),
        .npages = GET32(p, virtio_rdma_reg_user_mr_req, npages),
        .page_shift = GET32(p, virtio_rdma_reg_user_mr_req, page_shift),
        .levels = GET32(p, virtio_rdma_reg_user_mr_req, levels),
    };
}

static void get_create_cq(const uint8_t *p, VirtIORdmaReq *req)
{
    req->create_cq.cqe = GET32(p, virtio_rdma_create_cq_req, cqe);
    req->create_cq.flags = GET32(p, virtio_rdma_create_cq_req, flags);
    req->create_cq.eqn = GET32(p, virtio_rdma_create_cq_req, eqn);
    req->create_cq.direct = (VirtIORdmaDirectCq) {
        .pages = GET_QUEUE_PAGES(p, virtio_rdma_create_cq_req),
        .depth_shift = GET8(p, virtio_rdma_create_cq_req, depth_shift),
    };
}

static void get_create_qp(const uint8_t *p, VirtIORdmaReq *req)
{
    req->create_qp.pdn = GET32(p, virtio_rdma_create_qp_req, pdn);
    req->create_qp.qp_type = GET8(p, virtio_rdma_create_qp_req, qp_type);
    req->create_qp.sq_sig_type = GET8(p, virtio_rdma_create_qp_req,
                                      sq_sig_type);
    req->create_qp.send_cqn = GET32(p, virtio_rdma_create_qp_req, send_cqn);
    req->create_qp.recv_cqn = GET32(p, virtio_rdma_create_qp_req, recv_cqn);
    req->create_qp.cap = (RdmaQpCap) {
        .max_send_wr = GET32(p, virtio_rdma_create_qp_req, max_send_wr),
        .max_recv_wr = GET32(p, virtio_rdma_create_qp_req, max_recv_wr),
        .max_send_sge = GET32(p, virtio_rdma_create_qp_req, max_send_sge),
        .max_recv_sge = GET32(p, virtio_rdma_create_qp_req, max_recv_sge),
        .max_inline_data = GET32(p, virtio_rdma_create_qp_req,
                                 max_inline_data),
    };
    req->create_qp.flags = GET32(p, virtio_rdma_create_qp_req, flags);
    req->create_qp.srqn = GET32(p, virtio_rdma_create_qp_req, srqn);
    req->create_qp.direct = (VirtIORdmaDirectQp) {
        .pages = GET_QUEUE_PAGES(p, virtio_rdma_create_qp_req),
        .sq_depth_shift = GET8(p, virtio_rdma_create_qp_req, sq_depth_shift),
        .sq_slot_shift = GET8(p, virtio_rdma_create_qp_req, sq_slot_shift),
        .rq_depth_shift = GET8(p, virtio_rdma_create_qp_req, rq_depth_shift),
        .rq_slot_shift = GET8(p, virtio_rdma_create_qp_req, rq_slot_shift),
        .doorbell = GET16(p, virtio_rdma_create_qp_req, doorbell),
    };
}

static void get_create_srq(const uint8_t *p, VirtIORdmaReq *req)
{
    req->create_srq.attr = (RdmaSrqAttr) {
        .pdn = GET32(p, virtio_rdma_create_srq_req, pdn),
        .max_wr = GET32(p, virtio_rdma_create_srq_req, max_wr),
        .max_sge = GET32(p, virtio_rdma_create_srq_req, max_sge),
        .limit = GET32(p, virtio_rdma_create_srq_req, limit),
    };
    req->create_srq.flags = GET32(p, virtio_rdma_create_srq_req, flags);
    req->create_srq.direct = (VirtIORdmaDirectSrq) {
        .pages = GET_QUEUE_PAGES(p, virtio_rdma_create_srq_req),
        .depth_shift = GET8(p, virtio_rdma_create_srq_req, depth_shift),
        .slot_shift = GET8(p, virtio_rdma_create_srq_req, slot_shift),
        .doorbell = GET16(p, virtio_rdma_create_srq_req, doorbell),
    };
}

static void get_add_gid(const uint8_t *p, VirtIORdmaReq *req)
{
    GET_BYTES(req->gid.gid, p, virtio_rdma_add_gid_req, gid);
    req->gid.gid_type = GET32(p, virtio_rdma_add_gid_req, gid_type);
    req->gid.index = GET16(p, virtio_rdma_add_gid_req, index);
    req->gid.port = GET32(p, virtio_rdma_add_gid_req, port_num);
    req->gid.vlan = GET16(p, virtio_rdma_add_gid_req, vlan);
}

void virtio_rdma_codec_get_request(uint8_t cmd, const uint8_t *p,
                                   VirtIORdmaReq *req)
{
    memset(req, 0, sizeof(*req));
    switch (cmd) {
    case VIRTIO_RDMA_CMD_QUERY_PORT:
        req->query_port.port = GET8(p, virtio_rdma_query_port_req, port);
        break;
    case VIRTIO_RDMA_CMD_CREATE_CQ:
        get_create_cq(p, req);
        break;
    case VIRTIO_RDMA_CMD_DESTROY_CQ:
        req->destroy.id = GET32(p, virtio_rdma_cqn, cqn);
        break;
    case VIRTIO_RDMA_CMD_DESTROY_PD:
        req->destroy.id = GET32(p, virtio_rdma_pdn, pdn);
        break;
    case VIRTIO_RDMA_CMD_GET_DMA_MR:
        req->mr.pdn = GET32(p, virtio_rdma_get_dma_mr_req, pdn);
        req->mr.access = GET32(p, virtio_rdma_get_dma_mr_req, access);
        break;
    case VIRTIO_RDMA_CMD_CREATE_MR:
        req->mr.pdn = GET32(p, virtio_rdma_create_mr_req, pdn);
        req->mr.access = GET32(p, virtio_rdma_create_mr_req, access);
        req->mr.max_num_sg = GET32(p, virtio_rdma_create_mr_req, max_num_sg);
        break;
    case VIRTIO_RDMA_CMD_MAP_MR_SG:
        req->map_mr.mrn = GET32(p, virtio_rdma_map_mr_sg_req, mrn);
        req->map_mr.pages = (RdmaHcaPages) {
            .iova = GET64(p, virtio_rdma_map_mr_sg_req, start),
            .length = GET64(p, virtio_rdma_map_mr_sg_req, length),
            .table = GET64(p, virtio_rdma_map_mr_sg_req, pages),
            .npages = GET32(p, virtio_rdma_map_mr_sg_req, npages),
        };
        break;
    case VIRTIO_RDMA_CMD_REG_USER_MR:
        get_user_mr(p, req);
        break;
    case VIRTIO_RDMA_CMD_REREG_MR:
        get_user_mr(AT(p, virtio_rdma_rereg_mr_req, mr), req);
        req->mr.mrn = GET32(p, virtio_rdma_rereg_mr_req, mrn);
        req->mr.flags = GET32(p, virtio_rdma_rereg_mr_req, flags);
        break;
    case VIRTIO_RDMA_CMD_DEREG_MR:
        req->destroy.id = GET32(p, virtio_rdma_dereg_mr_req, mrn);
        break;
    case VIRTIO_RDMA_CMD_CREATE_QP:
        get_create_qp(p, req);
        break;
    case VIRTIO_RDMA_CMD_MODIFY_QP:
        req->qp.qpn = GET32(p, virtio_rdma_modify_qp_req, qpn);
        req->qp.attr_mask = GET32(p, virtio_rdma_modify_qp_req, attr_mask);
        get_qp_attr(AT(p, virtio_rdma_modify_qp_req, attr), &req->qp.attr);
        break;
    case VIRTIO_RDMA_CMD_QUERY_QP:
        req->qp.qpn = GET32(p, virtio_rdma_query_qp_req, qpn);
        req->qp.attr_mask = GET32(p, virtio_rdma_query_qp_req, attr_mask);
        break;
    case VIRTIO_RDMA_CMD_DESTROY_QP:
        req->destroy.id = GET32(p, virtio_rdma_qpn, qpn);
        break;
    case VIRTIO_RDMA_CMD_QUERY_PKEY:
        req->query_pkey.port = GET32(p, virtio_rdma_query_pkey_req, port);
        req->query_pkey.index = GET16(p, virtio_rdma_query_pkey_req, index);
        break;
    case VIRTIO_RDMA_CMD_ADD_GID:
        get_add_gid(p, req);
        break;
    case VIRTIO_RDMA_CMD_DEL_GID:
        req->gid.index = GET16(p, virtio_rdma_del_gid_req, index);
        req->gid.port = GET32(p, virtio_rdma_del_gid_req, port_num);
        break;
    case VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ:
        req->notify.cqn = GET32(p, virtio_rdma_req_notify_cq_req, cqn);
        req->notify.flags = GET32(p, virtio_rdma_req_notify_cq_req, flags);
        break;
    case VIRTIO_RDMA_CMD_CREATE_SRQ:
        get_create_srq(p, req);
        break;
    case VIRTIO_RDMA_CMD_MODIFY_SRQ:
        req->srq.srqn = GET32(p, virtio_rdma_modify_srq_req, srqn);
        req->srq.limit = GET32(p, virtio_rdma_modify_srq_req, limit);
        break;
    case VIRTIO_RDMA_CMD_QUERY_SRQ:
        req->srq.srqn = GET32(p, virtio_rdma_srqn, srqn);
        break;
    case VIRTIO_RDMA_CMD_DESTROY_SRQ:
        req->destroy.id = GET32(p, virtio_rdma_srqn, srqn);
        break;
    case VIRTIO_RDMA_CMD_ALLOC_MW:
        req->alloc_mw.pdn = GET32(p, virtio_rdma_alloc_mw_req, pdn);
        req->alloc_mw.type = GET32(p, virtio_rdma_alloc_mw_req, type);
        break;
    case VIRTIO_RDMA_CMD_DEALLOC_MW:
        req->destroy.id = GET32(p, virtio_rdma_dealloc_mw_req, mwn);
        break;
    case VIRTIO_RDMA_CMD_ATTACH_MCAST:
    case VIRTIO_RDMA_CMD_DETACH_MCAST:
        req->mcast.qpn = GET32(p, virtio_rdma_mcast_req, qpn);
        GET_BYTES(req->mcast.gid, p, virtio_rdma_mcast_req, gid);
        break;
    case VIRTIO_RDMA_CMD_RESIZE_CQ:
        req->resize_cq.cqn = GET32(p, virtio_rdma_resize_cq_req, cqn);
        req->resize_cq.cqe = GET32(p, virtio_rdma_resize_cq_req, cqe);
        req->resize_cq.used = GET32(p, virtio_rdma_resize_cq_req, used);
        req->resize_cq.direct = (VirtIORdmaDirectCq) {
            .pages = GET_QUEUE_PAGES(p, virtio_rdma_resize_cq_req),
            .depth_shift = GET8(p, virtio_rdma_resize_cq_req, depth_shift),
        };
        break;
    case VIRTIO_RDMA_CMD_QUERY_COUNTERS:
        req->query_port.port = GET8(p, virtio_rdma_query_counters_req, port);
        break;
    case VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS:
        req->qp_counters.num_qps =
            GET32(p, virtio_rdma_query_qp_counters_req, num_qps);
        for (unsigned i = 0; i < VIRTIO_RDMA_MAX_COUNTER_QPS; i++) {
            req->qp_counters.qpn[i] =
                GET32(p, virtio_rdma_query_qp_counters_req, qpn[i]);
        }
        break;
    case VIRTIO_RDMA_CMD_SET_SHADOW:
        req->set_shadow.doorbell = GET16(p, virtio_rdma_set_shadow_req,
                                         doorbell);
        req->set_shadow.flags = GET16(p, virtio_rdma_set_shadow_req, flags);
        req->set_shadow.addr = GET64(p, virtio_rdma_set_shadow_req, addr);
        break;
    }
}

void virtio_rdma_codec_put_response(uint8_t cmd, uint8_t *p,
                                    const VirtIORdmaRsp *rsp)
{
    const RdmaPortAttr *port = &rsp->port.attr;

    switch (cmd) {
    case VIRTIO_RDMA_CMD_QUERY_PORT:
        PUT8(p, virtio_rdma_query_port_rsp, state, port->state);
        PUT8(p, virtio_rdma_query_port_rsp, max_mtu, port->max_mtu);
        PUT8(p, virtio_rdma_query_port_rsp, active_mtu, port->active_mtu);
        PUT32(p, virtio_rdma_query_port_rsp, phys_mtu, port->phys_mtu);
        PUT32(p, virtio_rdma_query_port_rsp, gid_tbl_len,
              rsp->port.gid_tbl_len);
        PUT32(p, virtio_rdma_query_port_rsp, port_cap_flags,
              rsp->port.port_cap_flags);
        PUT32(p, virtio_rdma_query_port_rsp, max_msg_sz, port->max_msg_sz);
        PUT32(p, virtio_rdma_query_port_rsp, bad_pkey_cntr,
              rsp->port.bad_pkey_cntr);
        PUT32(p, virtio_rdma_query_port_rsp, qkey_viol_cntr,
              rsp->port.qkey_viol_cntr);
        PUT16(p, virtio_rdma_query_port_rsp, pkey_tbl_len,
              rsp->port.pkey_tbl_len);
        PUT8(p, virtio_rdma_query_port_rsp, active_width,
             port->active_width);
        PUT16(p, virtio_rdma_query_port_rsp, active_speed,
              port->active_speed);
        PUT8(p, virtio_rdma_query_port_rsp, phys_state, rsp->port.phys_state);
        break;
    case VIRTIO_RDMA_CMD_CREATE_CQ:
        PUT32(p, virtio_rdma_cqn, cqn, rsp->create.id);
        break;
    case VIRTIO_RDMA_CMD_CREATE_PD:
        PUT32(p, virtio_rdma_pdn, pdn, rsp->create.id);
        break;
    case VIRTIO_RDMA_CMD_GET_DMA_MR:
    case VIRTIO_RDMA_CMD_CREATE_MR:
    case VIRTIO_RDMA_CMD_REG_USER_MR:
    case VIRTIO_RDMA_CMD_REREG_MR:
        PUT32(p, virtio_rdma_mr_rsp, mrn, rsp->mr.mrn);
        PUT32(p, virtio_rdma_mr_rsp, lkey, rsp->mr.lkey);
        PUT32(p, virtio_rdma_mr_rsp, rkey, rsp->mr.rkey);
        break;
    case VIRTIO_RDMA_CMD_MAP_MR_SG:
        PUT32(p, virtio_rdma_map_mr_sg_rsp, npages, rsp->map_mr.npages);
        break;
    case VIRTIO_RDMA_CMD_CREATE_QP:
        PUT32(p, virtio_rdma_create_qp_rsp, qpn, rsp->create.id);
        PUT32(p, virtio_rdma_create_qp_rsp, wire_qpn, rsp->create.wire_qpn);
        break;
    case VIRTIO_RDMA_CMD_QUERY_QP:
        put_qp_attr(p, &rsp->query_qp.attr);
        break;
    case VIRTIO_RDMA_CMD_QUERY_PKEY:
        PUT16(p, virtio_rdma_query_pkey_rsp, pkey, rsp->query_pkey.pkey);
        break;
    case VIRTIO_RDMA_CMD_CREATE_SRQ:
        PUT32(p, virtio_rdma_srqn, srqn, rsp->create.id);
        break;
    case VIRTIO_RDMA_CMD_QUERY_SRQ:
        PUT32(p, virtio_rdma_query_srq_rsp, max_wr,
              rsp->query_srq.attr.max_wr);
        PUT32(p, virtio_rdma_query_srq_rsp, max_sge,
              rsp->query_srq.attr.max_sge);
        PUT32(p, virtio_rdma_query_srq_rsp, limit, rsp->query_srq.attr.limit);
        break;
    case VIRTIO_RDMA_CMD_ALLOC_MW:
        PUT32(p, virtio_rdma_alloc_mw_rsp, mwn, rsp->mw.mwn);
        PUT32(p, virtio_rdma_alloc_mw_rsp, rkey, rsp->mw.rkey);
        break;
    case VIRTIO_RDMA_CMD_QUERY_COUNTERS:
    case VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS:
        for (unsigned i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++) {
            stq_le_p(p + i * sizeof(uint64_t), rsp->counters[i]);
        }
        break;
    }
}

#define CMD(name, req, rsp) [VIRTIO_RDMA_CMD_##name] = { req, rsp }

const VirtIORdmaCmdLayout
virtio_rdma_codec_cmds[VIRTIO_RDMA_CMD_MAX + 1] = {
    CMD(QUERY_PORT, sizeof(struct virtio_rdma_query_port_req),
        sizeof(struct virtio_rdma_query_port_rsp)),
    CMD(CREATE_CQ, offsetof(struct virtio_rdma_create_cq_req, flags),
        sizeof(struct virtio_rdma_cqn)),
    CMD(DESTROY_CQ, sizeof(struct virtio_rdma_cqn), 0),
    CMD(CREATE_PD, 0, sizeof(struct virtio_rdma_pdn)),
    CMD(DESTROY_PD, sizeof(struct virtio_rdma_pdn), 0),
    CMD(GET_DMA_MR, sizeof(struct virtio_rdma_get_dma_mr_req),
        sizeof(struct virtio_rdma_mr_rsp)),
    CMD(CREATE_MR, sizeof(struct virtio_rdma_create_mr_req),
        sizeof(struct virtio_rdma_mr_rsp)),
    CMD(MAP_MR_SG, sizeof(struct virtio_rdma_map_mr_sg_req),
        sizeof(struct virtio_rdma_map_mr_sg_rsp)),
    CMD(REG_USER_MR,
        offsetof(struct virtio_rdma_reg_user_mr_req, page_shift),
        sizeof(struct virtio_rdma_mr_rsp)),
    CMD(DEREG_MR, sizeof(struct virtio_rdma_dereg_mr_req), 0),
    [VIRTIO_RDMA_CMD_CREATE_QP] = {
        sizeof(struct virtio_rdma_create_qp_req),
        sizeof(struct virtio_rdma_qpn),
        sizeof(struct virtio_rdma_create_qp_rsp)
    },
    CMD(MODIFY_QP, sizeof(struct virtio_rdma_modify_qp_req), 0),
    CMD(QUERY_QP, sizeof(struct virtio_rdma_query_qp_req),
        sizeof(struct virtio_rdma_qp_attr)),
    CMD(DESTROY_QP, sizeof(struct virtio_rdma_qpn), 0),
    CMD(QUERY_PKEY, sizeof(struct virtio_rdma_query_pkey_req),
        sizeof(struct virtio_rdma_query_pkey_rsp)),
    CMD(ADD_GID, offsetof(struct virtio_rdma_add_gid_req, vlan), 0),
    CMD(DEL_GID, sizeof(struct virtio_rdma_del_gid_req), 0),
    CMD(REQ_NOTIFY_CQ, sizeof(struct virtio_rdma_req_notify_cq_req), 0),
    CMD(CREATE_SRQ, offsetof(struct virtio_rdma_create_srq_req, flags),
        sizeof(struct virtio_rdma_srqn)),
    CMD(MODIFY_SRQ, sizeof(struct virtio_rdma_modify_srq_req), 0),
    CMD(QUERY_SRQ, sizeof(struct virtio_rdma_srqn),
        sizeof(struct virtio_rdma_query_srq_rsp)),
    CMD(DESTROY_SRQ, sizeof(struct virtio_rdma_srqn), 0),
    CMD(ALLOC_MW, sizeof(struct virtio_rdma_alloc_mw_req),
        sizeof(struct virtio_rdma_alloc_mw_rsp)),
    CMD(DEALLOC_MW, sizeof(struct virtio_rdma_dealloc_mw_req), 0),
    CMD(RESIZE_CQ, offsetof(struct virtio_rdma_resize_cq_req, queue_pages), 0),
    CMD(ATTACH_MCAST, sizeof(struct virtio_rdma_mcast_req), 0),
    CMD(DETACH_MCAST, sizeof(struct virtio_rdma_mcast_req), 0),
    CMD(QUERY_COUNTERS, sizeof(struct virtio_rdma_query_counters_req),
        VIRTIO_RDMA_NUM_COUNTERS * sizeof(uint64_t)),
    CMD(REREG_MR, offsetof(struct virtio_rdma_rereg_mr_req, mr.page_shift),
        sizeof(struct virtio_rdma_mr_rsp)),
    CMD(SET_SHADOW, sizeof(struct virtio_rdma_set_shadow_req), 0),
    CMD(QUERY_QP_COUNTERS,
        offsetof(struct virtio_rdma_query_qp_counters_req, qpn[1]),
        VIRTIO_RDMA_NUM_COUNTERS * sizeof(uint64_t)),
};
