/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QP 1, for the connection manager of the guest.
 *
 * It is in the table of QPs, but has no QP of the host, because QP 1 of the
 * port belongs to the host's kernel. This file copies a MAD that the guest
 * posts from its memory, mad.c checks the MAD, and a job sends it (umad.c). A
 * MAD that the host receives is copied to the guest's memory.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "int.h"
#include "system/dma.h"
#include "system/memory.h"
#include "../trace.h"

/* MADs to read in one turn */
#define READ_BATCH 64

#define BUFFER_LEN (VERBS_GRH_LEN + VERBS_MAD_LEN)

struct VerbsGsi {
    RdmaVerbs *v;
    VerbsQp *qp;
    VerbsUmad *umad;
    Error *err;                     /* why there is no @umad */
    uint32_t njobs;                 /* unfinished, also from before a RESET */
    uint32_t epoch;                 /* changes when WQEs are dropped; atomic */
    RdmaSge *recv_sge;              /* of the WQE in qp->rq, if there is one */
    uint32_t recv_num_sge;
};

/* The guest's memory */

/*
 * @sge names memory by a key of GET_DMA_MR, whose addresses are DMA addresses.
 */
static bool copy_sge(VerbsGsi *g, const RdmaSge *sge, uint8_t *buf,
                     uint32_t len, bool write)
{
    RdmaVerbs *v = g->v;
    /* Access RAM only: reading a device register may have side effects. */
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

/* Copy and check the MAD that @wr sends. *@may_send: the guest may send it. */
static RdmaWcStatus take_mad(VerbsGsi *g, const RdmaSendWr *wr, VerbsMad *mad,
                             bool *may_send)
{
    bool is_inline = wr->send_flags & RDMA_SEND_INLINE;
    uint64_t length = is_inline ? wr->inline_len
                                : list_length(wr->sg_list, wr->num_sge);
    uint32_t n = MIN(length, VERBS_MAD_LEN);

    *may_send = false;
    if (wr->status != RDMA_WC_SUCCESS) {
        return wr->status;
    }
    *mad = (VerbsMad) { .qpn = wr->wr.ud.remote_qpn };
    if (wr->opcode != RDMA_WR_SEND ||
        verbs_gid_path(g->v, &wr->wr.ud.av, &mad->ah)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (is_inline) {
        memcpy(mad->data, wr->inline_data, n);
    } else if (!copy_list(g, wr->sg_list, wr->num_sge, mad->data, n, false)) {
        return RDMA_WC_LOC_PROT_ERR;
    }
    *may_send = verbs_mad_may_send(g->v, mad, length);
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

    if (!verbs_gid_of_host(v, mad->ah.grh.sgid_index, dgid, &vlan)) {
        trace_rdma_verbs_gsi_drop(v, "not to a GID of the guest");
        return;
    }
    wqe = ready_recv(g);
    if (!wqe) {
        trace_rdma_verbs_gsi_drop(v, "no receive WQE that is long enough");
        return;
    }
    verbs_mad_put_grh(buf, mad, dgid);
    memcpy(buf + VERBS_GRH_LEN, mad->data, VERBS_MAD_LEN);
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
    wc.sl = mad->ah.sl;
    wc.wc_flags = RDMA_WC_GRH | RDMA_WC_WITH_HDR_TYPE;
    wc.hdr_type = rdma_gid_is_ipv4(dgid) ? RDMA_HDR_IPV4 : RDMA_HDR_IPV6;
    if (vlan != RDMA_NO_VLAN) {
        wc.wc_flags |= RDMA_WC_WITH_VLAN;
        wc.vlan = vlan;
    }
    verbs_wq_complete_oldest(v, g->qp, RDMA_RQ, &wc);
}

static void listen_to_host(VerbsGsi *g, bool on);

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
        listen_to_host(g, false);
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
        listen_to_host(g, false);
        verbs_qp_fail_with_event(v, g->qp);
    }
    rdma_backend_leave(rb);
}

static void listen_to_host(VerbsGsi *g, bool on)
{
    qemu_set_fd_handler(verbs_umad_fd(g->umad), on ? gsi_read : NULL, NULL, g);
}

void verbs_gsi_resume(RdmaVerbs *v)
{
    VerbsQp *qp = verbs_get_live(v->qps, RDMA_QPN_GSI);

    if (qp) {
        listen_to_host(qp->gsi, true);
    }
}

static void drop_wqes(VerbsGsi *g)
{
    verbs_wq_clear_sq(g->qp);
    verbs_wq_clear(&g->qp->rq);
    qatomic_set(&g->epoch, g->epoch + 1);
}

/* Create and destroy */

VerbsGsi *verbs_gsi_new(RdmaVerbs *v, VerbsQp *qp)
{
    VerbsGsi *g = g_new0(VerbsGsi, 1);

    g->v = v;
    g->qp = qp;
    return g;
}

int verbs_gsi_open(VerbsGsi *g)
{
    g->umad = verbs_umad_open(g->v->ibdev, g->v->port_num, &g->err);
    return g->umad ? 0 : -ENOTSUP;
}

void verbs_gsi_destroy_begins(VerbsGsi *g)
{
    drop_wqes(g);
    listen_to_host(g, false);
}

void verbs_gsi_close(VerbsGsi *g)
{
    verbs_umad_close(g->umad);
}

void verbs_gsi_opened(VerbsGsi *g)
{
    g_clear_pointer(&g->v->gsi_refusal, g_free);
    listen_to_host(g, true);
}

/* Warn once for each reason, as the guest may ask often. */
static void warn_refused(RdmaVerbs *v, const Error *err)
{
    if (g_strcmp0(v->gsi_refusal, error_get_pretty(err))) {
        g_free(v->gsi_refusal);
        v->gsi_refusal = g_strdup(error_get_pretty(err));
        warn_report("rdma-verbs: the guest has no RDMA CM: %s",
                    v->gsi_refusal);
    }
}

void verbs_gsi_free(VerbsGsi *g)
{
    if (g && g->err) {
        warn_refused(g->v, g->err);
        error_free(g->err);
    }
    if (g) {
        g_free(g->recv_sge);
    }
    g_free(g);
}

/* State and attributes */

/* There is no SQD, as posted MADs are sent at once, and no pacing. */
static bool may_modify(VerbsGsi *g, uint8_t from, uint8_t to, uint32_t mask,
                       const RdmaQpAttr *attr)
{
    const RdmaQpLimits limits = {};
    RdmaQpRefusal r = { .from = from, .to = to };

    if (to == RDMA_QPS_SQD) {
        rdma_qp_refuse(&r, "qp_state", to, "is not for QP 1");
    } else if (mask & RDMA_QP_RATE_LIMIT) {
        rdma_qp_refuse(&r, "rate_limit", attr->rate_limit,
                       "is not for QP 1");
    } else if (rdma_qp_check_transition(RDMA_QPT_GSI, from, to, mask, &r) &&
               rdma_qp_check_values(&limits, from, mask, attr, &r)) {
        return true;
    }
    rdma_backend_qp_refused(&g->v->parent_obj, RDMA_QPN_GSI, &r);
    return false;
}

int verbs_gsi_modify(VerbsGsi *g, uint32_t mask, const RdmaQpAttr *attr)
{
    VerbsQp *qp = g->qp;
    RdmaQpState from = verbs_qp_state(qp);
    RdmaQpState to = mask & RDMA_QP_STATE ? attr->qp_state : from;

    if (!may_modify(g, from, to, mask, attr)) {
        return -EINVAL;
    }
    verbs_qp_note(qp, mask, attr);
    if (!(mask & RDMA_QP_STATE)) {
        return 0;
    }
    trace_rdma_verbs_qp_state(g->v, RDMA_QPN_GSI, from, to);
    qp->sqe = false;
    if (to == RDMA_QPS_ERR) {
        verbs_qp_fail(g->v, qp);
        return 0;
    }
    qp->state = to;
    if (to == RDMA_QPS_RESET) {
        drop_wqes(g);
    }
    return 0;
}

void verbs_gsi_query(const VerbsGsi *g, RdmaQpAttr *attr)
{
    *attr = g->qp->set_attr;
    attr->qp_state = verbs_qp_state(g->qp);
    attr->cur_qp_state = attr->qp_state;
    attr->sq_psn &= RDMA_24BIT_MASK;
    attr->port_num = RDMA_PORT_NUM;
}
