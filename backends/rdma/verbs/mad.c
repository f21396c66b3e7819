/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * MADs of the guest's QP 1.
 *
 * A MAD that the guest posts is copied from its memory, checked and sent by
 * umad.c. A MAD that the host receives is copied to the guest's memory. Only
 * MADs of class CM pass: with other classes a guest could act as the host.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "gsi.h"
#include "system/dma.h"
#include "system/memory.h"
#include "../trace.h"

/* MADs to read in one turn */
#define READ_BATCH 64

/* The header before a received datagram in memory (RoCEv2 annex, A17.4.5) */
#define GRH_LEN 40
#define IPV4_LEN 20
#define IP_PROTO_UDP 17
#define BUFFER_LEN (GRH_LEN + VERBS_MAD_LEN)

/* The guest's memory */

/*
 * @sge names memory by a key of GET_DMA_MR, whose addresses are DMA addresses.
 */
static bool copy_sge(VerbsGsi *g, const RdmaSge *sge, uint8_t *buf,
                     uint32_t len, bool write)
{
    RdmaVerbs *v = g->v;
    /* Registers may act when they are accessed: RAM only */
    const MemTxAttrs ram = { .memory = true };
    VerbsMr *mr = verbs_get(v->mrs, sge->lkey >> 8);

    if (!mr || mr->dma_key != sge->lkey || mr->pdn != g->qp->init.pdn ||
        (write && !(mr->access & RDMA_ACCESS_LOCAL_WRITE))) {
        return false;
    }
    return dma_memory_rw(v->parent_obj.dma_as, sge->addr, buf, len,
                         write ? DMA_DIRECTION_FROM_DEVICE
                               : DMA_DIRECTION_TO_DEVICE, ram) == MEMTX_OK;
}

/* Copy all of @buf from or to a list that has room for it. */
static bool copy_list(VerbsGsi *g, const RdmaSge *sge, uint32_t num_sge,
                      uint8_t *buf, uint32_t len, bool write)
{
    for (uint32_t i = 0; i < num_sge && len; i++) {
        uint32_t n = MIN(len, sge[i].length);

        if (n && !copy_sge(g, &sge[i], buf, n, write)) {
            return false;
        }
        buf += n;
        len -= n;
    }
    return true;
}

static uint64_t list_length(const RdmaSge *sge, uint32_t num_sge)
{
    uint64_t length = 0;

    for (uint32_t i = 0; i < num_sge; i++) {
        length += sge[i].length;
    }
    return length;
}

/* Sending */

typedef struct SendJob {
    VerbsJob job;
    uint32_t epoch;
    VerbsWqe *wqe;                  /* valid in the same epoch */
    VerbsMad mad;
} SendJob;

static int send_work(VerbsJob *job)
{
    SendJob *j = container_of(job, SendJob, job);
    VerbsGsi *g = job->obj;

    /* Skip dropped sends: closing QP 1 waits for all, each up to a second. */
    if (qatomic_read(&g->epoch) != j->epoch) {
        return 0;
    }
    return verbs_umad_send(g->umad, &j->mad);
}

static void send_done(VerbsJob *job)
{
    SendJob *j = container_of(job, SendJob, job);
    VerbsGsi *g = job->obj;

    /* A MAD that was not sent is a lost datagram: no error. */
    trace_rdma_verbs_gsi_sent(job->v, lduw_be_p(j->mad.data + RDMA_MAD_ATTR),
                              job->ret);
    g->njobs--;
    if (g->qp->obj.destroying) {
        return;
    }
    if (g->epoch == j->epoch) {
        j->wqe->local = true;
        verbs_wq_complete_local(job->v, g->qp);
    } else {
        /* There is room again */
        verbs_pull_soon(job->v, RDMA_SQ, RDMA_QPN_GSI);
    }
}

static const VerbsJobOps send_ops = {
    .work = send_work,
    .done = send_done,
    .size = sizeof(SendJob),
};

/* May the guest send @mad? */
static bool check_mad(RdmaVerbs *v, const RdmaSendWr *wr, uint64_t length,
                      const VerbsMad *mad)
{
    if (length == VERBS_MAD_LEN && wr->wr.ud.remote_qpn == RDMA_QPN_GSI &&
        !rdma_gid_is_multicast(mad->gid) &&
        mad->data[1] == RDMA_MAD_CLASS_CM &&
        mad->data[2] == RDMA_MAD_CM_VERSION &&
        mad->data[3] == RDMA_MAD_METHOD_SEND) {
        return verbs_cm_addresses_are_own(v, mad->data);
    }
    qemu_log_mask(LOG_GUEST_ERROR, "rdma-verbs: QP 1 sends nothing but MADs "
                  "of the connection manager (class 7 version 2 method 3) to "
                  "QP 1: %" PRIu64 " bytes for QP %u, class %u version %u "
                  "method %u, are dropped\n", length, wr->wr.ud.remote_qpn,
                  mad->data[1], mad->data[2], mad->data[3]);
    return false;
}

/* Copy and check the MAD that @wr sends. *@may_send: the guest may send it. */
static RdmaWcStatus take_mad(VerbsGsi *g, const RdmaSendWr *wr, VerbsMad *mad,
                             bool *may_send)
{
    bool is_inline = wr->send_flags & RDMA_SEND_INLINE;
    uint64_t length = is_inline ? wr->inline_len
                                : list_length(wr->sg_list, wr->num_sge);
    uint32_t n = MIN(length, VERBS_MAD_LEN);
    struct ibv_ah_attr ah = {};

    *may_send = false;
    if (wr->status != RDMA_WC_SUCCESS) {
        return wr->status;
    }
    if (wr->opcode != RDMA_WR_SEND || verbs_gid_path(g->v, &wr->wr.ud.av, &ah)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    *mad = (VerbsMad) {
        .qpn = RDMA_QPN_GSI,
        .qkey = RDMA_GSI_QKEY,
        .flow_label = ah.grh.flow_label,
        .gid_index = ah.grh.sgid_index,
        .hop_limit = ah.grh.hop_limit,
        .traffic_class = ah.grh.traffic_class,
        .sl = ah.sl,
    };
    memcpy(mad->gid, ah.grh.dgid.raw, RDMA_GID_LEN);
    if (is_inline) {
        memcpy(mad->data, wr->inline_data, n);
    } else if (!copy_list(g, wr->sg_list, wr->num_sge, mad->data, n, false)) {
        return RDMA_WC_LOC_PROT_ERR;
    }
    *may_send = check_mad(g->v, wr, length, mad);
    return RDMA_WC_SUCCESS;
}

RdmaWcStatus verbs_gsi_post_send(VerbsGsi *g, VerbsWqe *wqe,
                                 const RdmaSendWr *wr)
{
    VerbsQp *qp = g->qp;
    VerbsMad mad;
    bool may_send;
    RdmaWcStatus status = take_mad(g, wr, &mad, &may_send);

    if (status == RDMA_WC_SUCCESS && may_send) {
        SendJob *j = verbs_job_new(g->v, &send_ops, g);

        j->epoch = g->epoch;
        j->wqe = wqe;
        j->mad = mad;
        g->njobs++;
        verbs_wq_push(&qp->sq);
        verbs_job_start(&j->job);
    } else if (status == RDMA_WC_SUCCESS) {
        verbs_wq_push_local(g->v, qp, RDMA_SQ, status);
    }
    return status;
}

bool verbs_gsi_may_send(const VerbsGsi *g)
{
    return g->njobs < g->qp->sq.max;
}

/* Receiving */

static uint16_t ipv4_checksum(const uint8_t header[IPV4_LEN])
{
    uint32_t sum = 0;

    for (int i = 0; i < IPV4_LEN; i += 2) {
        sum += lduw_be_p(header + i);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return ~(sum + (sum >> 16));
}

/* Write the IP header of a received MAD, as far as the host reports it. */
static void put_grh(uint8_t grh[GRH_LEN], const VerbsMad *mad,
                    const uint8_t dgid[RDMA_GID_LEN])
{
    /* UDP header, BTH, DETH and ICRC are part of the IP packet */
    const uint16_t payload = 8 + 12 + 8 + VERBS_MAD_LEN + 4;
    uint8_t *ip = grh + GRH_LEN - IPV4_LEN;

    memset(grh, 0, GRH_LEN);
    if (rdma_gid_is_ipv4(dgid)) {
        ip[0] = 0x45;
        ip[1] = mad->traffic_class;
        stw_be_p(ip + 2, IPV4_LEN + payload);
        stw_be_p(ip + 6, 0x4000);   /* do not fragment */
        ip[8] = mad->hop_limit;
        ip[9] = IP_PROTO_UDP;
        memcpy(ip + 12, mad->gid + 12, 4);
        memcpy(ip + 16, dgid + 12, 4);
        stw_be_p(ip + 10, ipv4_checksum(ip));
    } else {
        stl_be_p(grh, 6u << 28 | (uint32_t)mad->traffic_class << 20 |
                      (mad->flow_label & 0xfffff));
        stw_be_p(grh + 4, payload);
        grh[6] = IP_PROTO_UDP;
        grh[7] = mad->hop_limit;
        memcpy(grh + 8, mad->gid, RDMA_GID_LEN);
        memcpy(grh + 24, dgid, RDMA_GID_LEN);
    }
}

/* Take the next receive WR of the guest, if the queue has one. */
static void take_recv(VerbsGsi *g)
{
    RdmaBackend *rb = &g->v->parent_obj;
    VerbsWqe *wqe = verbs_wq_next(&g->qp->rq);
    RdmaRecvWr wr;

    if (!g->qp->rq.max ||
        !rb->client_ops->consumer.next_recv(rb->client_opaque, RDMA_RQ,
                                            RDMA_QPN_GSI, false, &wr)) {
        return;
    }
    wqe->wr_id = wr.wr_id;
    wqe->opcode = RDMA_WC_RECV;
    wqe->status = wr.status;
    g_free(g->recv_sge);
    g->recv_sge = g_memdup2(wr.sg_list, wr.num_sge * sizeof(*wr.sg_list));
    g->recv_num_sge = wr.num_sge;
    verbs_wq_push(&g->qp->rq);
}

/*
 * The receive WQE that takes a MAD, or NULL: the MAD is dropped. One that is
 * too short stays.
 */
static VerbsWqe *ready_recv(VerbsGsi *g)
{
    VerbsQp *qp = g->qp;
    VerbsWqe *wqe;

    if (!g->v->running || qp->state < RDMA_QPS_RTR ||
        qp->state == RDMA_QPS_ERR) {
        return NULL;
    }
    if (!qp->rq.count) {
        take_recv(g);
    }
    if (!qp->rq.count) {
        return NULL;
    }
    wqe = verbs_wq_newest(&qp->rq);
    return wqe->status == RDMA_WC_SUCCESS &&
           list_length(g->recv_sge, g->recv_num_sge) < BUFFER_LEN ? NULL : wqe;
}

static void receive(VerbsGsi *g, const VerbsMad *mad)
{
    RdmaVerbs *v = g->v;
    uint8_t buf[BUFFER_LEN];
    uint8_t dgid[RDMA_GID_LEN];
    uint16_t vlan;
    VerbsWqe *wqe;
    RdmaWc wc = {
        .opcode = RDMA_WC_RECV,
        .qp_num = RDMA_QPN_GSI,
        .port_num = RDMA_PORT_NUM,
    };

    if (!verbs_gid_of_host(v, mad->gid_index, dgid, &vlan)) {
        trace_rdma_verbs_gsi_drop(v, "not to a GID of the guest");
        return;
    }
    wqe = ready_recv(g);
    if (!wqe) {
        trace_rdma_verbs_gsi_drop(v, "no receive WQE that is long enough");
        return;
    }
    put_grh(buf, mad, dgid);
    memcpy(buf + GRH_LEN, mad->data, VERBS_MAD_LEN);
    wc.wr_id = wqe->wr_id;
    wc.status = wqe->status;
    if (wc.status == RDMA_WC_SUCCESS &&
        !copy_list(g, g->recv_sge, g->recv_num_sge, buf, sizeof(buf), true)) {
        wc.status = RDMA_WC_LOC_PROT_ERR;
    }
    if (wc.status != RDMA_WC_SUCCESS) {
        trace_rdma_verbs_wc_error(v, RDMA_QPN_GSI, wc.wr_id, wc.status, 0);
        verbs_wq_complete_oldest(v, g->qp, RDMA_RQ, &wc);
        verbs_qp_fail(v, g->qp);
        return;
    }
    trace_rdma_verbs_gsi_received(v, lduw_be_p(mad->data + RDMA_MAD_ATTR));
    wc.byte_len = BUFFER_LEN;
    wc.src_qp = mad->qpn;
    wc.sl = mad->sl;
    wc.wc_flags = RDMA_WC_GRH | RDMA_WC_WITH_HDR_TYPE;
    wc.hdr_type = rdma_gid_is_ipv4(dgid) ? RDMA_HDR_IPV4 : RDMA_HDR_IPV6;
    if (vlan != RDMA_NO_VLAN) {
        wc.wc_flags |= RDMA_WC_WITH_VLAN;
        wc.vlan = vlan;
    }
    verbs_wq_complete_oldest(v, g->qp, RDMA_RQ, &wc);
}

static void gsi_read(void *opaque)
{
    VerbsGsi *g = opaque;
    RdmaVerbs *v = g->v;
    RdmaBackend *rb = &v->parent_obj;
    VerbsMad mad;
    int ret = 0;

    if (rdma_backend_busy(rb)) {
        /* In a nested event loop: verbs_gsi_resume() listens again. */
        rdma_backend_put_off(rb, VERBS_PENDING_MADS);
        verbs_gsi_listen(g, false);
        return;
    }
    rdma_backend_enter(rb);
    for (int i = 0; i < READ_BATCH; i++) {
        ret = verbs_umad_recv(g->umad, &mad);
        if (!ret) {
            receive(g, &mad);
        } else if (ret != -EBADMSG && ret != -EINTR) {
            break;
        }
    }
    if (ret && ret != -EAGAIN && ret != -EBADMSG && ret != -EINTR) {
        /* The host's device has gone */
        trace_rdma_verbs_gsi_broken(v, ret);
        verbs_gsi_listen(g, false);
        verbs_qp_fail_with_event(v, g->qp);
    }
    rdma_backend_leave(rb);
}

void verbs_gsi_listen(VerbsGsi *g, bool on)
{
    qemu_set_fd_handler(verbs_umad_fd(g->umad), on ? gsi_read : NULL, NULL, g);
}

void verbs_gsi_resume(RdmaVerbs *v)
{
    VerbsQp *qp = verbs_get_live(v->qps, RDMA_QPN_GSI);

    if (qp) {
        verbs_gsi_listen(qp->gsi, true);
    }
}

void verbs_gsi_drop_wqes(VerbsGsi *g)
{
    verbs_wq_clear_sq(g->qp);
    verbs_wq_clear(&g->qp->rq);
    qatomic_set(&g->epoch, g->epoch + 1);
}
