/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs executes work requests at once, one after the other.
 * While the port is down, or the receiver has no receives, they wait, as with
 * endless retries.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "internal.h"

#define GRH_LEN 40
/* Not a status: the head of the queue stays there. */
#define WAITS (-1)

static enum ibv_wc_opcode wc_opcode(enum ibv_wr_opcode opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_WC_FETCH_ADD;
    case IBV_WR_LOCAL_INV:
        return IBV_WC_LOCAL_INV;
    case IBV_WR_BIND_MW:
        return IBV_WC_BIND_MW;
    default:
        return IBV_WC_SEND;
    }
}

/* Complete the head of the send queue. */
static void send_done(FakeQp *qp, enum ibv_wc_status status, uint32_t length)
{
    FakeSend *send = g_queue_pop_head(&qp->sq);
    FakeCqe cqe = {
        .wc = {
            .wr_id = send->wr.wr_id,
            .status = status,
            .opcode = wc_opcode(send->wr.opcode),
            .byte_len = length,
            .qp_num = qp->obj.number,
        },
        .send = true,
        .frees = send->seq + 1,
        .qp = qp,
    };

    if (status != IBV_WC_SUCCESS || qp->init.sq_sig_all ||
        (send->wr.send_flags & IBV_SEND_SIGNALED)) {
        fake_cq_add(FAKE(FakeCq, qp->ibv.send_cq), &cqe);
    }
    fake_send_free(send);
}

/* Complete a receive WR that was taken from its queue. */
static void recv_done(FakeQp *qp, FakeRecv *recv, FakeCqe *cqe)
{
    cqe->wc.wr_id = recv->wr_id;
    cqe->wc.qp_num = qp->obj.number;
    cqe->qp = qp;
    cqe->frees = qp->recv.posted - qp->rq.length;
    fake_cq_add(FAKE(FakeCq, qp->ibv.recv_cq), cqe);
    g_free(recv);
}

static void recv_failed(FakeQp *qp, FakeRecv *recv,
                        enum ibv_wc_status status)
{
    FakeCqe cqe = { .wc = { .status = status, .opcode = IBV_WC_RECV } };

    recv_done(qp, recv, &cqe);
}

static void flush_sends(FakeQp *qp)
{
    while (!g_queue_is_empty(&qp->sq)) {
        send_done(qp, IBV_WC_WR_FLUSH_ERR, 0);
    }
}

static void set_state(FakeQp *qp, enum ibv_qp_state state)
{
    qp->attr.qp_state = qp->attr.cur_qp_state = state;
    qp->ibv.state = state;
}

void fake_qp_error(FakeQp *qp)
{
    bool was = qp->attr.qp_state == IBV_QPS_ERR;

    set_state(qp, IBV_QPS_ERR);
    flush_sends(qp);
    while (!g_queue_is_empty(&qp->rq)) {
        recv_failed(qp, g_queue_pop_head(&qp->rq), IBV_WC_WR_FLUSH_ERR);
    }
    if (qp->ibv.srq && !was) {
        fake_event(IBV_EVENT_QP_LAST_WQE_REACHED, qp->ibv.context, &qp->obj);
    }
}

/* A send WR failed: an unreliable QP goes on receiving (IBTA 10.3.1). */
static void send_failed(FakeQp *qp)
{
    if (qp->ibv.qp_type == IBV_QPT_RC) {
        fake_qp_error(qp);
    } else {
        set_state(qp, IBV_QPS_SQE);
        flush_sends(qp);
    }
}

bool fake_complete(FakeQp *qp, bool send, enum ibv_wc_status status)
{
    FakeCqe cqe = { .wc = { .status = status, .opcode = IBV_WC_RECV } };
    FakeRecv *recv;

    if (send) {
        if (g_queue_is_empty(&qp->sq)) {
            return false;
        }
        send_done(qp, status, 0);
    } else {
        recv = qp->ibv.srq ? fake_srq_take(FAKE(FakeSrq, qp->ibv.srq))
                           : g_queue_pop_head(&qp->rq);
        if (!recv) {
            return false;
        }
        recv_done(qp, recv, &cqe);
    }
    if (status != IBV_WC_SUCCESS) {
        fake_qp_error(qp);
    }
    return true;
}

static uint64_t iov_length(const GArray *iov)
{
    uint64_t length = 0;

    for (guint i = 0; i < iov->len; i++) {
        length += g_array_index(iov, FakeIov, i).len;
    }
    return length;
}

/* Copy all of @from to @to, after the first @skip bytes. */
static void copy(const GArray *to, size_t skip, const GArray *from)
{
    guint i = 0;
    size_t at = skip;

    for (guint j = 0; j < from->len; j++) {
        FakeIov src = g_array_index(from, FakeIov, j);

        while (src.len) {
            FakeIov dst = g_array_index(to, FakeIov, i);
            size_t n;

            if (at >= dst.len) {
                at -= dst.len;
                i++;
                continue;
            }
            n = MIN(src.len, dst.len - at);
            memmove(dst.at + at, src.at, n);
            at += n;
            src.at += n;
            src.len -= n;
        }
    }
}

static bool receives(FakeQp *qp)
{
    return qp->attr.qp_state == IBV_QPS_RTR ||
           qp->attr.qp_state == IBV_QPS_RTS ||
           qp->attr.qp_state == IBV_QPS_SQD ||
           qp->attr.qp_state == IBV_QPS_SQE;
}

static bool has_imm(enum ibv_wr_opcode opcode)
{
    return opcode == IBV_WR_SEND_WITH_IMM ||
           opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/*
 * The GRH of a datagram is its IP header (IBTA annex A17); that of IPv4 is in
 * the last 20 bytes.
 */
static void make_grh(uint8_t grh[GRH_LEN], const FakeSend *send,
                     uint32_t length)
{
    const union ibv_gid *sgid = &fake.gid[send->ah.grh.sgid_index].gid;
    const union ibv_gid *dgid = &send->ah.grh.dgid;
    /* UDP, BTH, DETH, immediate data, padding, ICRC */
    uint16_t payload = 8 + 12 + 8 + (has_imm(send->wr.opcode) ? 4 : 0) +
                       ROUND_UP(length, 4) + 4;

    memset(grh, 0, GRH_LEN);
    if (!sgid->global.subnet_prefix && sgid->raw[10] == 0xff) {
        grh[20] = 0x45;
        grh[21] = send->ah.grh.traffic_class;
        stw_be_p(grh + 22, 20 + payload);
        grh[28] = send->ah.grh.hop_limit;
        grh[29] = IPPROTO_UDP;
        memcpy(grh + 32, sgid->raw + 12, 4);
        memcpy(grh + 36, dgid->raw + 12, 4);
        return;
    }
    stl_be_p(grh, 6u << 28 | send->ah.grh.traffic_class << 20 |
                  send->ah.grh.flow_label);
    stw_be_p(grh + 4, payload);
    grh[6] = IPPROTO_UDP;
    grh[7] = send->ah.grh.hop_limit;
    memcpy(grh + 8, sgid, sizeof(*sgid));
    memcpy(grh + 24, dgid, sizeof(*dgid));
}

/* @peer refuses a request of @qp, which gets @status. */
static int refuse(FakeQp *qp, FakeQp *peer, enum ibv_wc_status status)
{
    if (qp->ibv.qp_type == IBV_QPT_UC) {
        return IBV_WC_SUCCESS;
    }
    fake_event(status == IBV_WC_REM_ACCESS_ERR ? IBV_EVENT_QP_ACCESS_ERR
                                               : IBV_EVENT_QP_REQ_ERR,
               peer->ibv.context, &peer->obj);
    fake_qp_error(peer);
    return status;
}

/*
 * Memory of @peer. NULL: the sender gets *@status. A right that the QP does not
 * give makes the request an invalid one (9.7.4.1.4).
 */
static uint8_t *remote(FakeQp *qp, FakeQp *peer, uint32_t rkey, uint64_t addr,
                       uint64_t len, int access, int *status)
{
    uint8_t *at;

    if (!(peer->attr.qp_access_flags & access)) {
        *status = refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
        return NULL;
    }
    at = fake_remote(peer, rkey, addr, len, access);
    if (!at) {
        *status = refuse(qp, peer, IBV_WC_REM_ACCESS_ERR);
    }
    return at;
}

/* A datagram that does not fit is dropped (IBTA 9.9.3, class D). */
static bool fits(FakeQp *peer, uint32_t length)
{
    GQueue *rq = peer->ibv.srq ? &FAKE(FakeSrq, peer->ibv.srq)->wrs
                               : &peer->rq;
    FakeRecv *recv = g_queue_peek_head(rq);
    uint64_t room = 0;

    for (unsigned i = 0; recv && i < recv->num_sge; i++) {
        room += recv->sge[i].length;
    }
    return !recv || room >= length;
}

/*
 * Deliver a message with the bytes @data to @peer (NULL: a WRITE has written
 * them). Returns the status for the sender.
 */
static int receive(FakeQp *qp, FakeQp *peer, const FakeSend *send,
                   const GArray *data, uint32_t length)
{
    bool ud = qp->ibv.qp_type == IBV_QPT_UD;
    g_autoptr(GArray) to = g_array_new(false, false, sizeof(FakeIov));
    g_autoptr(GArray) head = g_array_new(false, false, sizeof(FakeIov));
    uint8_t grh[GRH_LEN];
    FakeIov grh_piece = { grh, GRH_LEN };
    enum ibv_wc_status status;
    struct ibv_pd *pd;
    FakeRecv *recv;
    FakeCqe cqe = {
        .wc = {
            .opcode = data ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
            .byte_len = length + (ud ? GRH_LEN : 0),
            .wc_flags = (ud ? IBV_WC_GRH : 0) |
                (has_imm(send->wr.opcode) ? IBV_WC_WITH_IMM : 0),
            .src_qp = qp->obj.number,
        },
        .solicited = send->wr.send_flags & IBV_SEND_SOLICITED,
    };

    if (ud && !fits(peer, cqe.wc.byte_len)) {
        return IBV_WC_SUCCESS;
    }
    recv = peer->ibv.srq ? fake_srq_take(FAKE(FakeSrq, peer->ibv.srq))
                         : g_queue_pop_head(&peer->rq);
    if (!recv) {
        return qp->ibv.qp_type == IBV_QPT_RC ? WAITS : IBV_WC_SUCCESS;
    }
    /* Receives of an SRQ name regions of its PD (IBTA 10.2.9) */
    pd = peer->ibv.srq ? peer->ibv.srq->pd : peer->ibv.pd;
    status = data ? fake_local(pd, recv->sge, recv->num_sge, true, to)
                  : IBV_WC_SUCCESS;
    if (status == IBV_WC_SUCCESS && data &&
        cqe.wc.byte_len > iov_length(to)) {
        status = IBV_WC_LOC_LEN_ERR;
    }
    if (status != IBV_WC_SUCCESS) {
        recv_failed(peer, recv, status);
        fake_qp_error(peer);
        return qp->ibv.qp_type != IBV_QPT_RC ? IBV_WC_SUCCESS :
               status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR
                                            : IBV_WC_REM_OP_ERR;
    }
    if (ud) {
        make_grh(grh, send, length);
        g_array_append_val(head, grh_piece);
        copy(to, 0, head);
    }
    if (data) {
        copy(to, ud ? GRH_LEN : 0, data);
    }
    if (has_imm(send->wr.opcode)) {
        cqe.wc.imm_data = send->wr.imm_data;
    }
    if (send->wr.opcode == IBV_WR_SEND_WITH_INV) {
        if (!fake_invalidate(peer, send->wr.invalidate_rkey)) {
            recv_failed(peer, recv, IBV_WC_LOC_ACCESS_ERR);
            return refuse(qp, peer, IBV_WC_REM_ACCESS_ERR);
        }
        cqe.wc.invalidated_rkey = send->wr.invalidate_rkey;
        cqe.wc.wc_flags |= IBV_WC_WITH_INV;
    }
    recv_done(peer, recv, &cqe);
    return IBV_WC_SUCCESS;
}

static int atomic(FakeQp *qp, FakeQp *peer, const FakeSend *send,
                  const GArray *result)
{
    const struct ibv_send_wr *wr = &send->wr;
    uint64_t old, new;
    g_autoptr(GArray) from = g_array_new(false, false, sizeof(FakeIov));
    FakeIov piece = { (uint8_t *)&old, sizeof(old) };
    int status;
    uint8_t *at;

    if (iov_length(result) != sizeof(old)) {
        return IBV_WC_LOC_LEN_ERR;
    }
    if (wr->wr.atomic.remote_addr % sizeof(old)) {
        return refuse(qp, peer, IBV_WC_REM_INV_REQ_ERR);
    }
    at = remote(qp, peer, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
                sizeof(old), IBV_ACCESS_REMOTE_ATOMIC, &status);
    if (!at) {
        return status;
    }
    memcpy(&old, at, sizeof(old));
    new = wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ?
        old + wr->wr.atomic.compare_add :
        old == wr->wr.atomic.compare_add ? wr->wr.atomic.swap : old;
    memcpy(at, &new, sizeof(new));
    g_array_append_val(from, piece);
    copy(result, 0, from);
    return IBV_WC_SUCCESS;
}

static bool nothing_posted(FakeQp *peer)
{
    return g_queue_is_empty(peer->ibv.srq ? &FAKE(FakeSrq, peer->ibv.srq)->wrs
                                          : &peer->rq);
}

static int rdma(FakeQp *qp, FakeQp *peer, const FakeSend *send,
                const GArray *local)
{
    bool read = send->wr.opcode == IBV_WR_RDMA_READ;
    bool imm = has_imm(send->wr.opcode);
    g_autoptr(GArray) there = g_array_new(false, false, sizeof(FakeIov));
    FakeIov piece = { .len = iov_length(local) };
    int status;

    if (imm && nothing_posted(peer)) {
        return qp->ibv.qp_type == IBV_QPT_RC ? WAITS : IBV_WC_SUCCESS;
    }
    if (piece.len) {
        piece.at = remote(qp, peer, send->wr.wr.rdma.rkey,
                          send->wr.wr.rdma.remote_addr, piece.len,
                          read ? IBV_ACCESS_REMOTE_READ
                               : IBV_ACCESS_REMOTE_WRITE, &status);
        if (!piece.at) {
            return status;
        }
        g_array_append_val(there, piece);
        if (read) {
            copy(local, 0, there);
        } else {
            copy(there, 0, local);
        }
    }
    return imm ? receive(qp, peer, send, NULL, piece.len) : IBV_WC_SUCCESS;
}

static int connected(FakeQp *qp, const FakeSend *send, const GArray *local)
{
    FakeQp *peer = fake_find(FAKE_QP, qp->attr.dest_qp_num);

    if (!peer || !receives(peer) || peer->ibv.qp_type != qp->ibv.qp_type ||
        peer->attr.dest_qp_num != qp->obj.number ||
        !fake_is_local(&qp->attr.ah_attr.grh.dgid)) {
        return qp->ibv.qp_type == IBV_QPT_RC ? IBV_WC_RETRY_EXC_ERR
                                             : IBV_WC_SUCCESS;
    }
    switch (send->wr.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
        return rdma(qp, peer, send, local);
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return atomic(qp, peer, send, local);
    default:
        return receive(qp, peer, send, local, iov_length(local));
    }
}

static bool takes_datagram(FakeQp *peer, const FakeSend *send)
{
    /* As on rxe, bit 31 of the Q_Key has no meaning here (IBTA 10.2.5) */
    return peer->ibv.qp_type == IBV_QPT_UD && receives(peer) &&
           peer->attr.qkey == send->wr.wr.ud.remote_qkey;
}

static int datagram(FakeQp *qp, const FakeSend *send, const GArray *local)
{
    const union ibv_gid *dgid = &send->ah.grh.dgid;
    uint32_t length = iov_length(local);
    GList *all;
    FakeQp *peer;

    if (length > 128u << fake.port.active_mtu) {
        /* The datagram is not sent, without an error (IBTA C10-93.1.1) */
        return IBV_WC_SUCCESS;
    }
    if (!fake_is_multicast(dgid)) {
        peer = fake_find(FAKE_QP, send->wr.wr.ud.remote_qpn);
        if (peer && fake_is_local(dgid) && takes_datagram(peer, send)) {
            receive(qp, peer, send, local, length);
        }
        return IBV_WC_SUCCESS;
    }
    all = fake_all(FAKE_QP);
    for (GList *l = all; l; l = l->next) {
        peer = l->data;
        if (!(peer == qp && qp->deaf) && !peer->obj.dropped &&
            fake_in_group(peer, dgid) && takes_datagram(peer, send)) {
            receive(qp, peer, send, local, length);
        }
    }
    g_list_free(all);
    return IBV_WC_SUCCESS;
}

/* Execute @send. Returns a status, or WAITS. */
static int execute(FakeQp *qp, const FakeSend *send, uint32_t *length)
{
    g_autoptr(GArray) local = g_array_new(false, false, sizeof(FakeIov));
    bool fetches = send->wr.opcode == IBV_WR_RDMA_READ ||
        send->wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
        send->wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    int status = IBV_WC_SUCCESS;

    *length = 0;
    if (send->wr.opcode == IBV_WR_BIND_MW) {
        return fake_bind(qp, FAKE(FakeMw, send->wr.bind_mw.mw),
                         send->wr.bind_mw.rkey, &send->wr.bind_mw.bind_info) ?
            IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
    }
    if (send->wr.opcode == IBV_WR_LOCAL_INV) {
        return fake_invalidate(qp, send->wr.invalidate_rkey) ?
            IBV_WC_SUCCESS : IBV_WC_LOC_QP_OP_ERR;
    }
    if (send->inline_data) {
        FakeIov piece = { send->inline_data, send->inline_len };

        g_array_append_val(local, piece);
    } else {
        status = fake_local(qp->ibv.pd, send->sge, send->wr.num_sge, fetches,
                            local);
    }
    if (status == IBV_WC_SUCCESS) {
        *length = iov_length(local);
        if (iov_length(local) > fake.port.max_msg_sz) {
            return IBV_WC_LOC_LEN_ERR;
        }
        status = qp->ibv.qp_type == IBV_QPT_UD ? datagram(qp, send, local)
                                               : connected(qp, send, local);
    }
    return status;
}

/* Execute the head of the send queue. False: it waits, or there is none. */
static bool run_one(FakeQp *qp)
{
    FakeSend *send = g_queue_peek_head(&qp->sq);
    uint32_t length;
    int status;

    if (qp->obj.dropped || !send) {
        return false;
    }
    if (qp->attr.qp_state == IBV_QPS_ERR ||
        qp->attr.qp_state == IBV_QPS_SQE) {
        flush_sends(qp);
        return true;
    }
    if (qp->attr.qp_state != IBV_QPS_RTS || fake.hands_off ||
        fake.port.state != IBV_PORT_ACTIVE) {
        return false;
    }
    status = execute(qp, send, &length);
    if (status == WAITS) {
        return false;
    }
    /* A QP connected to itself may be in error by now, and flushed */
    if (g_queue_peek_head(&qp->sq) == send) {
        send_done(qp, status, length);
    }
    if (status != IBV_WC_SUCCESS) {
        send_failed(qp);
    }
    return true;
}

void fake_run(void)
{
    bool progress;

    do {
        GList *all = fake_all(FAKE_QP);

        progress = false;
        for (GList *l = all; l; l = l->next) {
            FakeQp *qp = l->data;

            if (!qp->obj.dropped && qp->attr.qp_state == IBV_QPS_ERR &&
                !g_queue_is_empty(&qp->rq)) {
                fake_qp_error(qp);
            }
            while (run_one(qp)) {
                progress = true;
            }
        }
        g_list_free(all);
    } while (progress);
}
