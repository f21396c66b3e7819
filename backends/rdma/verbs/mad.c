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

typedef struct GsiSend {
    uint64_t wr_id;
    RdmaWcStatus status;
    bool unsignaled;                /* no completion; status is SUCCESS */
} GsiSend;

typedef struct GsiRecv {
    uint64_t wr_id;
    RdmaWcStatus status;            /* to complete with */
    uint32_t num_sge;
    RdmaSge sge[];
} GsiRecv;

static bool has_state(const VerbsGsi *g, RdmaQpState state)
{
    return g->attr.qp_state == state;
}

/* Completions */

static void fatal(RdmaVerbs *v, VerbsGsi *g);

static void complete(RdmaVerbs *v, VerbsGsi *g, RdmaQueue queue,
                     const RdmaWc *wc, bool unsignaled)
{
    const RdmaConsumerOps *ops = &v->parent_obj.client_ops->consumer;
    void *opaque = v->parent_obj.client_opaque;
    uint32_t cqn = queue == RDMA_SQ ? g->init.send_cqn : g->init.recv_cqn;

    ops->retire(opaque, RDMA_QPN_GSI, queue, 1);
    verbs_pull_soon(v, queue, RDMA_QPN_GSI);
    if (!unsignaled && !ops->complete(opaque, cqn, wc, true)) {
        verbs_cq_fail(v, cqn);
        fatal(v, g);
    }
}

/* Complete sends whose jobs are done, while the VM runs. */
static void complete_sends(RdmaVerbs *v, VerbsGsi *g)
{
    while (v->running && g->ndone) {
        g_autofree GsiSend *s = g_queue_pop_head(&g->sends);
        const RdmaWc wc = {
            .wr_id = s->wr_id,
            .status = s->status,
            .opcode = RDMA_WC_SEND,
            .qp_num = RDMA_QPN_GSI,
            .port_num = RDMA_PORT_NUM,
        };

        g->ndone--;
        complete(v, g, RDMA_SQ, &wc, s->unsignaled);
    }
}

static void fail_recv(RdmaVerbs *v, VerbsGsi *g, RdmaWcStatus status)
{
    g_autofree GsiRecv *r = g_queue_pop_head(&g->recvs);
    const RdmaWc wc = {
        .wr_id = r->wr_id,
        .status = status,
        .opcode = RDMA_WC_RECV,
        .qp_num = RDMA_QPN_GSI,
        .port_num = RDMA_PORT_NUM,
    };

    complete(v, g, RDMA_RQ, &wc, false);
}

static void flush_recvs(RdmaVerbs *v, VerbsGsi *g)
{
    while (v->running && has_state(g, RDMA_QPS_ERR) &&
           !g_queue_is_empty(&g->recvs)) {
        fail_recv(v, g, RDMA_WC_WR_FLUSH_ERR);
    }
}

void verbs_gsi_set_state(RdmaVerbs *v, VerbsGsi *g, RdmaQpState state)
{
    if (!has_state(g, state)) {
        trace_rdma_verbs_qp_state(v, RDMA_QPN_GSI, g->attr.qp_state, state);
        g->attr.qp_state = state;
    }
}

void verbs_gsi_enter_err(RdmaVerbs *v, VerbsGsi *g)
{
    verbs_gsi_set_state(v, g, RDMA_QPS_ERR);
    flush_recvs(v, g);
    verbs_pull_gsi(v);
}

static void fatal(RdmaVerbs *v, VerbsGsi *g)
{
    if (!has_state(g, RDMA_QPS_ERR)) {
        verbs_gsi_enter_err(v, g);
        verbs_raise_event(v, RDMA_EVENT_QP_FATAL, RDMA_QPN_GSI);
    }
}

/* The guest's memory */

/*
 * @sge names memory by a key of GET_DMA_MR, whose addresses are DMA addresses.
 */
static bool copy_sge(RdmaVerbs *v, VerbsGsi *g, const RdmaSge *sge,
                     uint8_t *buf, uint32_t len, bool write)
{
    /* Registers may act when they are accessed: RAM only */
    const MemTxAttrs ram = { .memory = true };
    VerbsMr *mr = verbs_get(v->mrs, sge->lkey >> 8);

    if (!mr || mr->dma_key != sge->lkey || mr->pdn != g->init.pdn ||
        (write && !(mr->access & RDMA_ACCESS_LOCAL_WRITE))) {
        return false;
    }
    return dma_memory_rw(v->parent_obj.dma_as, sge->addr, buf, len,
                         write ? DMA_DIRECTION_FROM_DEVICE
                               : DMA_DIRECTION_TO_DEVICE, ram) == MEMTX_OK;
}

/* Copy all of @buf from or to a list that has room for it. */
static bool copy_list(RdmaVerbs *v, VerbsGsi *g, const RdmaSge *sge,
                      uint32_t num_sge, uint8_t *buf, uint32_t len, bool write)
{
    for (uint32_t i = 0; i < num_sge && len; i++) {
        uint32_t n = MIN(len, sge[i].length);

        if (n && !copy_sge(v, g, &sge[i], buf, n, write)) {
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
    VerbsGsi *g;
    uint32_t epoch;
    bool may_send;
    VerbsMad mad;
} SendJob;

static int send_work(VerbsJob *job)
{
    SendJob *j = container_of(job, SendJob, job);

    /* Skip dropped sends: closing QP 1 waits for all, each up to a second. */
    if (!j->may_send || qatomic_read(&j->g->epoch) != j->epoch) {
        return 0;
    }
    return verbs_umad_send(j->g->umad, &j->mad);
}

static void send_done(VerbsJob *job)
{
    SendJob *j = container_of(job, SendJob, job);
    VerbsGsi *g = j->g;

    if (j->may_send) {
        /* A MAD that was not sent is a lost datagram: no error. */
        trace_rdma_verbs_gsi_sent(job->v,
                                  lduw_be_p(j->mad.data + RDMA_MAD_ATTR),
                                  job->ret);
    }
    g->njobs--;
    if (g->destroying) {
        return;
    }
    if (g->epoch == j->epoch) {
        g->ndone++;
        complete_sends(job->v, g);
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
static RdmaWcStatus take_mad(RdmaVerbs *v, VerbsGsi *g, const RdmaSendWr *wr,
                             VerbsMad *mad, bool *may_send)
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
    if (wr->opcode != RDMA_WR_SEND || verbs_gid_path(v, &wr->wr.ud.av, &ah)) {
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
    } else if (!copy_list(v, g, wr->sg_list, wr->num_sge, mad->data, n,
                          false)) {
        return RDMA_WC_LOC_PROT_ERR;
    }
    *may_send = check_mad(v, wr, length, mad);
    return RDMA_WC_SUCCESS;
}

int verbs_gsi_post_send(RdmaVerbs *v, const RdmaSendWr *wr)
{
    VerbsGsi *g = v->gsi;
    GsiSend *s;
    SendJob *j;

    if (!verbs_gsi_room(v, RDMA_SQ)) {
        return -EAGAIN;
    }
    s = g_new0(GsiSend, 1);
    j = verbs_job_new(v, &send_ops, NULL);
    j->g = g;
    j->epoch = g->epoch;
    s->wr_id = wr->wr_id;
    if (!has_state(g, RDMA_QPS_RTS)) {
        s->status = RDMA_WC_WR_FLUSH_ERR;
    } else {
        s->status = take_mad(v, g, wr, &j->mad, &j->may_send);
        s->unsignaled = s->status == RDMA_WC_SUCCESS &&
                        !g->init.sq_sig_all &&
                        !(wr->send_flags & RDMA_SEND_SIGNALED);
    }
    if (s->status != RDMA_WC_SUCCESS && has_state(g, RDMA_QPS_RTS)) {
        trace_rdma_verbs_bad_send(v, RDMA_QPN_GSI, wr->wr_id, wr->opcode,
                                  s->status, 0);
        verbs_gsi_set_state(v, g, RDMA_QPS_SQE);
    }
    g_queue_push_tail(&g->sends, s);
    g->njobs++;
    /* Also for a MAD that is not sent, as completions are in order. */
    verbs_job_start(&j->job);
    return 0;
}

/* Receiving */

static void push_recv(VerbsGsi *g, const RdmaRecvWr *wr)
{
    GsiRecv *r = g_malloc0(sizeof(*r) + wr->num_sge * sizeof(r->sge[0]));

    r->wr_id = wr->wr_id;
    r->status = wr->status;
    r->num_sge = wr->num_sge;
    memcpy(r->sge, wr->sg_list, wr->num_sge * sizeof(r->sge[0]));
    g_queue_push_tail(&g->recvs, r);
}

void verbs_gsi_post_recv(RdmaVerbs *v, const RdmaRecvWr *wr)
{
    push_recv(v->gsi, wr);
    flush_recvs(v, v->gsi);
}

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

/* The oldest receive WR that can take a MAD, or NULL: the MAD is dropped. */
static GsiRecv *ready_recv(RdmaVerbs *v, VerbsGsi *g)
{
    RdmaBackend *rb = &v->parent_obj;
    RdmaRecvWr wr;
    GsiRecv *r;

    if (!v->running || g->attr.qp_state < RDMA_QPS_RTR ||
        has_state(g, RDMA_QPS_ERR)) {
        return NULL;
    }
    if (g_queue_is_empty(&g->recvs) && g->init.cap.max_recv_wr &&
        rb->client_ops->consumer.next_recv(rb->client_opaque, RDMA_RQ,
                                           RDMA_QPN_GSI, false, &wr)) {
        push_recv(g, &wr);
        /* The guest does not ring the doorbell for those that follow. */
        verbs_pull_gsi(v);
    }
    r = g_queue_peek_head(&g->recvs);
    if (r && r->status == RDMA_WC_SUCCESS &&
        list_length(r->sge, r->num_sge) < BUFFER_LEN) {
        return NULL;
    }
    return r;
}

static void receive(RdmaVerbs *v, VerbsGsi *g, const VerbsMad *mad)
{
    uint8_t buf[BUFFER_LEN];
    uint8_t dgid[RDMA_GID_LEN];
    uint16_t vlan;
    RdmaWcStatus status;
    GsiRecv *r;
    RdmaWc wc = {
        .opcode = RDMA_WC_RECV,
        .byte_len = BUFFER_LEN,
        .qp_num = RDMA_QPN_GSI,
        .src_qp = mad->qpn,
        .wc_flags = RDMA_WC_GRH | RDMA_WC_WITH_HDR_TYPE,
        .sl = mad->sl,
        .port_num = RDMA_PORT_NUM,
    };

    if (!verbs_gid_of_host(v, mad->gid_index, dgid, &vlan)) {
        trace_rdma_verbs_gsi_drop(v, "not to a GID of the guest");
        return;
    }
    r = ready_recv(v, g);
    if (!r) {
        trace_rdma_verbs_gsi_drop(v, "no receive WQE that is long enough");
        return;
    }
    put_grh(buf, mad, dgid);
    memcpy(buf + GRH_LEN, mad->data, VERBS_MAD_LEN);
    status = r->status;
    if (status == RDMA_WC_SUCCESS &&
        !copy_list(v, g, r->sge, r->num_sge, buf, sizeof(buf), true)) {
        status = RDMA_WC_LOC_PROT_ERR;
    }
    if (status != RDMA_WC_SUCCESS) {
        trace_rdma_verbs_wc_error(v, RDMA_QPN_GSI, r->wr_id, status, 0);
        fail_recv(v, g, status);
        verbs_gsi_enter_err(v, g);
        return;
    }
    trace_rdma_verbs_gsi_received(v, lduw_be_p(mad->data + RDMA_MAD_ATTR));
    wc.wr_id = r->wr_id;
    wc.hdr_type = rdma_gid_is_ipv4(dgid) ? RDMA_HDR_IPV4 : RDMA_HDR_IPV6;
    if (vlan != RDMA_NO_VLAN) {
        wc.wc_flags |= RDMA_WC_WITH_VLAN;
        wc.vlan = vlan;
    }
    g_free(g_queue_pop_head(&g->recvs));
    complete(v, g, RDMA_RQ, &wc, false);
}

static void gsi_read(void *opaque)
{
    RdmaVerbs *v = opaque;
    RdmaBackend *rb = &v->parent_obj;
    VerbsGsi *g = v->gsi;
    VerbsMad mad;
    int ret = 0;

    if (rdma_backend_busy(rb)) {
        /* In a nested event loop: verbs_gsi_resume() listens again. */
        rdma_backend_put_off(rb, VERBS_PENDING_MADS);
        verbs_gsi_listen(v, g, false);
        return;
    }
    rdma_backend_enter(rb);
    for (int i = 0; i < READ_BATCH; i++) {
        ret = verbs_umad_recv(g->umad, &mad);
        if (!ret) {
            receive(v, g, &mad);
        } else if (ret != -EBADMSG && ret != -EINTR) {
            break;
        }
    }
    if (ret && ret != -EAGAIN && ret != -EBADMSG && ret != -EINTR) {
        /* The host's device has gone */
        trace_rdma_verbs_gsi_broken(v, ret);
        verbs_gsi_listen(v, g, false);
        verbs_gsi_device_gone(v);
    }
    rdma_backend_leave(rb);
}

void verbs_gsi_listen(RdmaVerbs *v, VerbsGsi *g, bool on)
{
    qemu_set_fd_handler(verbs_umad_fd(g->umad), on ? gsi_read : NULL, NULL, v);
}

void verbs_gsi_resume(RdmaVerbs *v)
{
    VerbsGsi *g = v->gsi;

    if (g && !g->destroying) {
        verbs_gsi_listen(v, g, true);
    }
}

/* The queue pair */

void verbs_gsi_drop_wqes(VerbsGsi *g)
{
    g_queue_clear_full(&g->sends, g_free);
    g_queue_clear_full(&g->recvs, g_free);
    g->ndone = 0;
    qatomic_set(&g->epoch, g->epoch + 1);
}

uint32_t verbs_gsi_room(RdmaVerbs *v, RdmaQueue queue)
{
    VerbsGsi *g = v->gsi;

    if (!g || g->destroying) {
        return 0;
    }
    if (queue == RDMA_SQ) {
        return g->attr.qp_state < RDMA_QPS_RTS ? 0 :
               g->init.cap.max_send_wr -
               MAX(g->njobs, g_queue_get_length(&g->sends));
    }
    return g->attr.qp_state < RDMA_QPS_INIT ? 0 :
           g->init.cap.max_recv_wr - g_queue_get_length(&g->recvs);
}

static void cq_failed(Notifier *n, void *data)
{
    RdmaVerbs *v = container_of(n, RdmaVerbs, gsi_cq_failed);
    const uint32_t *cqn = data;
    VerbsGsi *g = v->gsi;

    if (g && !g->destroying && (g->init.send_cqn == *cqn ||
                                g->init.recv_cqn == *cqn)) {
        fatal(v, g);
    }
}

void verbs_gsi_init(RdmaVerbs *v)
{
    v->gsi_cq_failed.notify = cq_failed;
    notifier_list_add(&v->cq_failed, &v->gsi_cq_failed);
}

void verbs_gsi_device_gone(RdmaVerbs *v)
{
    if (v->gsi && !v->gsi->destroying) {
        fatal(v, v->gsi);
    }
}

void verbs_gsi_set_running(RdmaVerbs *v, bool running)
{
    if (v->gsi && running) {
        complete_sends(v, v->gsi);
        flush_recvs(v, v->gsi);
    }
}
