/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is the state of an object one that an engine can have? All that comes is
 * doubted: what passes can be worked with as if it had grown here.
 */
#include <glib.h>
#include "opcode.h"
#include "roce-int.h"

/* The answer of a check that finds something. */
#define BAD_IF(condition, text)         \
    do {                                \
        if (condition) {                \
            return text;                \
        }                               \
    } while (0)

static bool fits_24(uint32_t n)
{
    return n <= RDMA_24BIT_MASK;
}

/* Memory regions */

/* Do @npages pages cover @length bytes from @iova, without one too many? */
static bool range_ok(uint64_t iova, uint64_t length, uint64_t npages,
                     uint8_t shift)
{
    uint64_t size = UINT64_C(1) << shift;
    uint64_t offset = iova & (size - 1);

    return length && length <= UINT64_MAX - iova &&
           length <= UINT64_MAX - 2 * size &&
           npages == (offset + length + size - 1) >> shift;
}

static bool pages_ok(const uint64_t *pages, uint32_t npages, uint8_t shift)
{
    uint32_t i;

    for (i = 0; i < npages; i++) {
        if (pages[i] & ((UINT64_C(1) << shift) - 1)) {
            return false;
        }
    }
    return true;
}

static const char *check_mapping(const RoceMrImage *image, bool mapped,
                                 bool pending)
{
    const RdmaMrAttr *attr = &image->attr;

    if (mapped) {
        BAD_IF(!range_ok(attr->iova, attr->length, attr->npages,
                         attr->page_shift),
               "its pages do not cover its bytes");
        BAD_IF(!pages_ok(attr->pages, attr->npages, attr->page_shift),
               "an entry of its page list is no page");
    } else {
        BAD_IF(attr->npages, "it has pages that it cannot use");
    }
    if (pending) {
        BAD_IF(!range_ok(image->pending_iova, image->pending_length,
                         image->pending_npages, RDMA_PAGE_SHIFT),
               "the pages to be registered do not cover their bytes");
        BAD_IF(!pages_ok(image->pending_pages, image->pending_npages,
                         RDMA_PAGE_SHIFT),
               "an entry of the page list to be registered is no page");
    } else {
        BAD_IF(image->pending_npages, "it has pages to be registered that "
               "it does not know of");
    }
    return NULL;
}

const char *roce_check_mr(const RoceEngine *e, const RoceMrImage *image)
{
    const RdmaMrAttr *attr = &image->attr;

    BAD_IF(attr->mrn < 1 || attr->mrn > e->config.max_mr,
           "its number is out of range");
    BAD_IF(e->mrs[attr->mrn], "its number is in use");
    BAD_IF(attr->lkey >> 8 != attr->mrn ||
           (attr->rkey && attr->rkey >> 8 != attr->mrn),
           "a key is not one of its number");
    BAD_IF(image->valid > 1 || image->pending > 1, "a flag is no flag");
    BAD_IF(attr->page_shift < RDMA_PAGE_SHIFT ||
           attr->page_shift > (attr->type == RDMA_MR_USER ?
                               ROCE_MAX_PAGE_SHIFT : RDMA_PAGE_SHIFT),
           "bad size of its pages");

    switch (attr->type) {
    case RDMA_MR_DMA:
        BAD_IF(!image->valid || image->pending || attr->rkey,
               "it is not as a region of all memory is");
        return check_mapping(image, false, false);
    case RDMA_MR_USER:
        BAD_IF(!image->valid || image->pending,
               "it is not as a region with a page list is");
        return check_mapping(image, true, false);
    case RDMA_MR_FAST_REG:
        BAD_IF(attr->npages > attr->max_pages ||
               image->pending_npages > attr->max_pages,
               "it has more pages than it may have");
        return check_mapping(image, image->valid, image->pending);
    default:
        return "unknown type";
    }
}

/* Memory windows */

static const char *check_binding(const RoceEngine *e,
                                 const RoceMwImage *image)
{
    const RoceMr *mr = roce_mr_find(e, image->mrn);
    const RoceQp *qp = roce_qp_find(e, image->qpn);
    RoceMwBinding binding = {
        .addr = image->addr,
        .length = image->length,
        .access = image->access,
    };

    BAD_IF(!roce_mw_region_ok(mr, &binding) ||
           mr->attr.pdn != image->attr.pdn,
           "it is bound to what it cannot be bound to");
    if (image->attr.type == RDMA_MW_TYPE_2) {
        BAD_IF(!qp || roce_is_ud(qp) || qp->init.pdn != image->attr.pdn,
               "it is bound on a queue pair that it cannot be bound on");
    } else {
        BAD_IF(image->qpn, "it belongs to a queue pair");
    }
    return NULL;
}

const char *roce_check_mw(const RoceEngine *e, const RoceMwImage *image)
{
    BAD_IF(image->bound > 1, "a flag is no flag");
    if (image->bound) {
        return check_binding(e, image);
    }
    BAD_IF(image->mrn || image->qpn || image->access || image->addr ||
           image->length, "it is not bound, but to something");
    return NULL;
}

/* Receive WQEs */

static const char *check_recv_wqes(const RoceRecvWqe *wqes, uint32_t n,
                                   uint32_t max_sge, uint32_t n_sges)
{
    uint64_t sges = 0;
    uint32_t i;

    for (i = 0; i < n; i++) {
        BAD_IF(wqes[i].status > RDMA_WC_GENERAL_ERR ||
               wqes[i].num_sge > max_sge, "bad receive request");
        sges += wqes[i].num_sge;
    }
    BAD_IF(sges != n_sges,
           "receive requests do not use what came with them");
    return NULL;
}

const char *roce_check_srq(const RoceSrqImage *image, const RdmaSrqAttr *max)
{
    const RdmaSrqAttr *attr = &image->attr;

    BAD_IF(attr->max_wr > max->max_wr || attr->max_sge > max->max_sge,
           "it is larger than allowed");
    BAD_IF(image->n_recv > attr->max_wr, "bad number of receive requests");
    return check_recv_wqes(image->recv, image->n_recv, attr->max_sge,
                           image->n_recv_sges);
}

/* Queue pairs: attributes */

static bool has_path(const RoceQpImage *image)
{
    switch (image->s.attr.qp_state) {
    case RDMA_QPS_RTR:
    case RDMA_QPS_RTS:
    case RDMA_QPS_SQD:
    case RDMA_QPS_SQE:
        return image->init.qp_type == RDMA_QPT_RC ||
               image->init.qp_type == RDMA_QPT_UC;
    default:
        return false;
    }
}

static const char *check_init(const RoceQpImage *image, const RdmaQpCap *max)
{
    const RdmaQpCap *cap = &image->init.cap;

    BAD_IF(image->init.qp_type < RDMA_QPT_GSI ||
           image->init.qp_type > RDMA_QPT_UD, "unknown type");
    BAD_IF(cap->max_send_wr > max->max_send_wr ||
           cap->max_recv_wr > max->max_recv_wr,
           "its queues are longer than allowed");
    BAD_IF(cap->max_send_sge > max->max_send_sge ||
           cap->max_recv_sge > max->max_recv_sge,
           "it has more scatter/gather elements than allowed");
    BAD_IF(cap->max_inline_data > max->max_inline_data,
           "it has more inline data than allowed");
    BAD_IF(image->send_cq_dead > 1 || image->recv_cq_dead > 1,
           "a flag is no flag");
    return NULL;
}

static const char *check_path(const RoceEngine *e, const RoceQpImage *image)
{
    const RdmaQpAttr *attr = &image->s.attr;
    const RdmaAv *av = &attr->ah_attr;

    BAD_IF(!attr->path_mtu, "it has no path MTU");
    BAD_IF(attr->path_mtu > roce_port_mtu(e),
           "its path MTU does not fit into the MTU of the link here");
    BAD_IF(av->sgid_index >= e->config.gid_table_len,
           "its GID index is beyond the end of the GID table");
    BAD_IF(av->port_num != 1 || av->flow_label > 0xfffff ||
           roce_gid_is_zero(av->dgid) || rdma_gid_is_multicast(av->dgid),
           "bad address vector");
    return NULL;
}

static const char *check_attr(const RoceEngine *e, const RoceQpImage *image)
{
    const RdmaQpAttr *attr = &image->s.attr;

    BAD_IF(attr->qp_state > RDMA_QPS_ERR ||
           (attr->qp_state == RDMA_QPS_SQE &&
            image->init.qp_type == RDMA_QPT_RC), "bad state");
    BAD_IF(attr->path_mtu > RDMA_MTU_4096, "bad path MTU");
    BAD_IF(!fits_24(attr->dest_qp_num), "bad number of its peer");
    BAD_IF(attr->timeout > 31 || attr->min_rnr_timer > 31 ||
           attr->retry_cnt > 7 || attr->rnr_retry > 7,
           "a timer or retry count is out of range");
    BAD_IF(attr->max_rd_atomic > e->config.max_rd_atomic ||
           attr->max_dest_rd_atomic > e->config.max_rd_atomic,
           "more READs and ATOMICs under way than max-rd-atomic allows");
    BAD_IF(attr->pkey_index || attr->port_num > 1 ||
           attr->path_mig_state != RDMA_MIG_MIGRATED,
           "bad partition key, port or migration state");
    return has_path(image) ? check_path(e, image) : NULL;
}

/* Queue pairs: the send queue */

/* What can be said of a WQE wherever it is in the queue. */
static const char *check_send_wqe(const RoceQpImage *image,
                                  const RoceSendWqe *wqe, const RdmaSge *sges)
{
    uint64_t length = 0;
    uint32_t i;

    BAD_IF(wqe->status > RDMA_WC_GENERAL_ERR || wqe->is_inline > 1 ||
           wqe->done > 1 || !fits_24(wqe->remote_qpn),
           "bad send request");
    if (wqe->is_inline) {
        length = wqe->length;
    }
    for (i = 0; i < wqe->num_sge; i++) {
        length += sges[i].length;
    }
    BAD_IF(length != wqe->length || wqe->length > ROCE_MAX_MSG,
           "a send request's length is not that of its parts");
    if (wqe->status == RDMA_WC_SUCCESS) {
        BAD_IF(!roce_opcode_ok(image->init.qp_type, wqe->opcode),
               "bad opcode of a send request");
        BAD_IF(roce_opcode_is_atomic(wqe->opcode) &&
               wqe->length != sizeof(uint64_t),
               "a bad ATOMIC request");
        BAD_IF(roce_opcode_is_local(wqe->opcode) && wqe->length,
               "a local request with data");
        BAD_IF(wqe->opcode == RDMA_WR_ATOMIC_WRITE &&
               (wqe->is_inline || (wqe->length &&
                                   wqe->length != sizeof(uint64_t))),
               "a bad ATOMIC WRITE request");
        BAD_IF(wqe->opcode == RDMA_WR_FLUSH &&
               (wqe->length || wqe->reg_length > UINT32_MAX ||
                !roce_flush_ok(wqe->access & ROCE_FETH_TYPE_MASK,
                               wqe->access >> ROCE_FETH_LEVEL_SHIFT)),
               "a bad FLUSH request");
    }
    return NULL;
}

/* What a REG_MR brings; @pages are as many as it says. */
static const char *check_send_pages(const RoceSendWqe *wqe,
                                    const uint64_t *pages)
{
    if (wqe->npages) {
        BAD_IF(wqe->opcode != RDMA_WR_REG_MR || wqe->done ||
               !range_ok(wqe->remote_addr, wqe->reg_length, wqe->npages,
                         RDMA_PAGE_SHIFT) ||
               !pages_ok(pages, wqe->npages, RDMA_PAGE_SHIFT),
               "a registration with bad pages");
    }
    return NULL;
}

static const char *check_send_wqes(const RoceQpImage *image)
{
    const RdmaQpCap *cap = &image->init.cap;
    uint64_t sges = 0, data = 0, pages = 0;
    uint32_t i;

    /* First the counts: nothing is looked at that is not there */
    for (i = 0; i < image->n_send; i++) {
        const RoceSendWqe *wqe = &image->send[i];

        BAD_IF(wqe->num_sge > cap->max_send_sge ||
               (wqe->is_inline && (wqe->length > cap->max_inline_data ||
                                   wqe->num_sge)),
               "a send request is longer than allowed");
        sges += wqe->num_sge;
        data += wqe->is_inline ? wqe->length : 0;
        pages += wqe->npages;
    }
    BAD_IF(sges != image->n_send_sges || data != image->inline_len ||
           pages != image->n_pages,
           "send requests do not use what came with them");

    sges = 0;
    pages = 0;
    for (i = 0; i < image->n_send; i++) {
        const RoceSendWqe *wqe = &image->send[i];
        const char *why = check_send_wqe(image, wqe, wqe->num_sge ?
                                         image->send_sges + sges : NULL);

        BAD_IF(why, why);
        why = check_send_pages(wqe, wqe->npages ? image->pages + pages
                                                : NULL);
        BAD_IF(why, why);
        sges += wqe->num_sge;
        pages += wqe->npages;
    }
    return NULL;
}

/* A WQE that was started: its PSNs begin at @psn. */
static const char *check_started(const RoceQpImage *image,
                                 const RoceSendWqe *wqe, uint32_t psn,
                                 bool oldest)
{
    uint32_t mtu = rdma_mtu_bytes(image->s.attr.path_mtu);

    BAD_IF(!roce_opcode_ok(image->init.qp_type, wqe->opcode),
           "bad opcode of a request under way");
    if (roce_opcode_is_local(wqe->opcode)) {
        /* The oldest one would have completed */
        BAD_IF(oldest || !wqe->done || wqe->npsn,
               "a local request that is not as one under way");
        return NULL;
    }
    BAD_IF(wqe->done || wqe->first_psn != psn ||
           wqe->npsn != roce_packets(wqe->length, mtu),
           "the PSNs of requests under way are not in order");
    BAD_IF((roce_opcode_is_atomic(wqe->opcode) ||
            roce_opcode_is_placement(wqe->opcode)) && wqe->npsn != 1,
           "a request of one packet that has several");
    return NULL;
}

/*
 * The cursors against the WQEs. PSNs are compared by their distance to una,
 * which is in the oldest WQE.
 */
static const char *check_under_way(const RoceQpImage *image)
{
    const RoceSqState *sq = &image->s.sq;
    uint32_t started = sq->started - sq->cons;
    uint32_t cur = sq->cur - sq->cons;
    uint32_t rd_atomic = 0, rd_psns = 0;
    uint32_t psn = started ? image->send[0].first_psn : sq->end;
    uint32_t cur_psn = psn;
    uint64_t npsn = 0;
    uint32_t i;

    BAD_IF(!fits_24(psn), "bad PSN");
    BAD_IF(started && !has_path(image), "requests under way, but no path");
    for (i = 0; i < started; i++) {
        const RoceSendWqe *wqe = &image->send[i];
        const char *why = check_started(image, wqe, psn, i == 0);
        uint32_t next = psn_add(psn, wqe->npsn);

        BAD_IF(why, why);
        if (i == 0) {
            BAD_IF(psn_off(sq->una, psn) >= wqe->npsn,
                   "what is not acknowledged is not in the oldest request");
        }
        if (!wqe->done && roce_opcode_is_answered(wqe->opcode)) {
            rd_atomic++;
            rd_psns += i == 0 ? psn_off(next, sq->una) : wqe->npsn;
        }
        if (i == cur) {
            cur_psn = psn;
            BAD_IF(sq->cur_pkt && sq->cur_pkt >= wqe->npsn,
                   "the send cursor is behind its request");
        }
        psn = next;
        npsn += wqe->npsn;
    }
    for (; i < image->n_send; i++) {
        BAD_IF(image->send[i].done, "a request is done that was not begun");
    }
    if (cur == started) {
        cur_psn = psn;
        BAD_IF(sq->cur_pkt, "the send cursor is not in a request");
    }
    psn = started ? image->send[0].first_psn : sq->una;
    BAD_IF(npsn != psn_off(sq->una, psn) + psn_off(sq->end, sq->una),
           "requests under way do not have the PSNs that were given out");
    BAD_IF(sq->psn != psn_add(cur_psn, sq->cur_pkt),
           "the send cursor is not at its PSN");
    BAD_IF(sq->rd_atomic != rd_atomic || sq->rd_psns != rd_psns,
           "the count of READs and ATOMICs under way is wrong");
    return NULL;
}

static const char *check_sq(const RoceQpImage *image)
{
    const RoceSqState *sq = &image->s.sq;
    uint32_t state = image->s.attr.qp_state;
    uint32_t n = sq->prod - sq->cons;
    bool rc = image->init.qp_type == RDMA_QPT_RC;
    bool sends = state == RDMA_QPS_RTS || state == RDMA_QPS_SQD;
    const char *why;

    BAD_IF(n > image->init.cap.max_send_wr || n != image->n_send,
           "bad number of send requests");
    BAD_IF(n && !sends && state != RDMA_QPS_SQE && state != RDMA_QPS_ERR,
           "send requests in a state that has none");
    BAD_IF(sq->started - sq->cons > n ||
           sq->cur - sq->cons > sq->started - sq->cons,
           "the send queue's cursors are not in order");
    BAD_IF(sq->started != sq->cons && !sends,
           "requests under way in a state that has none");
    BAD_IF(!fits_24(sq->una) || !fits_24(sq->psn) || !fits_24(sq->sent) ||
           !fits_24(sq->end) ||
           psn_off(sq->psn, sq->una) > psn_off(sq->sent, sq->una) ||
           psn_off(sq->sent, sq->una) > psn_off(sq->end, sq->una) ||
           psn_off(sq->end, sq->una) > ROCE_PSN_RANGE,
           "the send queue's PSNs are not in order");
    BAD_IF(sq->unrequested >= ROCE_ACK_INTERVAL || sq->retries > 7 ||
           sq->rnr_retries > 7 || sq->gap_handled > 1 || sq->rnr_wait > 1 ||
           sq->draining > 1 || (sq->draining && state != RDMA_QPS_SQD),
           "bad state of the send queue");
    BAD_IF((sq->rnr_deadline != ROCE_NO_DEADLINE) != sq->rnr_wait ||
           sq->ack_deadline < 0 || sq->rnr_deadline < 0 || sq->send_at < 0 ||
           ((sq->ack_deadline != ROCE_NO_DEADLINE || sq->rnr_wait) &&
            !(rc && sends)),
           "a timer that cannot run");

    why = check_send_wqes(image);
    return why ? why : check_under_way(image);
}

/* Queue pairs: the receive queue and the responder */

/* With an SRQ, a connected QP may have taken one WQE of it. */
static const char *check_rq(const RoceEngine *e, const RoceQpImage *image)
{
    const RoceRqState *rq = &image->s.rq;
    const RdmaQpCap *cap = &image->init.cap;
    uint32_t n = rq->prod - rq->cons;
    uint32_t max_wr = cap->max_recv_wr;
    uint32_t max_sge = cap->max_recv_sge;

    if (image->init.has_srq) {
        const RoceSrq *srq = roce_srq_find(e, image->init.srqn);

        BAD_IF(!srq, "its shared receive queue is not there");
        BAD_IF(max_wr || max_sge, "it has two receive queues");
        max_sge = srq->attr.max_sge;
        max_wr = has_path(image);
    }
    BAD_IF(n > max_wr || n != image->n_recv ||
           (n && image->s.attr.qp_state == RDMA_QPS_RESET),
           "bad number of receive requests");
    return check_recv_wqes(image->recv, n, max_sge, image->n_recv_sges);
}

static const char *check_resp(const RoceQpImage *image)
{
    const RoceRespState *resp = &image->s.resp;
    uint32_t mtu = image->s.attr.path_mtu;

    BAD_IF(!fits_24(resp->epsn) || !fits_24(resp->msn) ||
           !fits_24(resp->ack_psn), "a PSN or MSN has more than 24 bits");
    BAD_IF(resp->op && resp->op != ROCE_OP_SEND && resp->op != ROCE_OP_WRITE,
           "amid an unknown message");
    BAD_IF(resp->offset > ROCE_MAX_MSG || resp->write_len > ROCE_MAX_MSG,
           "a message is too long");
    BAD_IF(resp->op && (!mtu || !resp->offset ||
                        resp->offset % rdma_mtu_bytes(mtu)),
           "amid a packet of a message");
    BAD_IF(resp->op == ROCE_OP_WRITE && resp->offset >= resp->write_len,
           "amid a WRITE that is complete");
    BAD_IF(resp->ack_kind > ROCE_ACK_NEGATIVE || resp->nak_sent > 1 ||
           resp->comm_est > 1 || resp->closing > 1 ||
           (resp->closing && image->s.attr.qp_state != RDMA_QPS_ERR),
           "bad state of the responder");
    return NULL;
}

/* The range that is being answered is one of @r, from a packet on. */
static bool reply_ok(const RoceResource *r, uint32_t mtu)
{
    uint64_t off = r->reply_va - r->va;
    uint32_t sent;

    if (off % mtu || off > r->len || r->reply_len > r->len - off ||
        (off == r->len && r->len) || r->reply_off > r->reply_len) {
        return false;
    }
    if (!r->pending) {
        return true;
    }
    sent = r->reply_off / mtu;
    return r->reply_off % mtu == 0 &&
           (r->reply_off < r->reply_len || !r->reply_len) &&
           r->reply_psn == psn_add(r->psn, off / mtu + sent);
}

static const char *check_resource(const RoceResource *r, uint32_t mtu)
{
    BAD_IF(!fits_24(r->psn) || !fits_24(r->msn) || !fits_24(r->reply_psn) ||
           r->first > 1 || r->pending > 1 || (r->first && !r->pending),
           "a READ or ATOMIC that was answered in no possible way");
    switch (r->type) {
    case ROCE_RES_READ:
        BAD_IF(r->len > ROCE_MAX_MSG ||
               r->npsn != roce_packets(r->len, mtu) || !reply_ok(r, mtu),
               "a READ with an answer that is not its own");
        return NULL;
    case ROCE_RES_ATOMIC:
        BAD_IF(r->npsn != 1 || (r->opcode != ROCE_COMPARE_SWAP &&
                                r->opcode != ROCE_FETCH_ADD),
               "an unknown ATOMIC to be answered");
        return NULL;
    case ROCE_RES_ATOMIC_WRITE:
    case ROCE_RES_FLUSH:
        BAD_IF(r->npsn != 1, "an answer of one packet that has several");
        return NULL;
    default:
        return "an unknown request to be answered";
    }
}

static const char *check_resources(const RoceEngine *e,
                                   const RoceQpImage *image)
{
    const RoceRespState *resp = &image->s.resp;
    uint32_t size = roce_ring_size(e->config.max_rd_atomic);
    uint32_t i;

    BAD_IF(image->n_res > size,
           "more READs and ATOMICs to answer than max-rd-atomic allows");
    BAD_IF(image->n_res && (image->init.qp_type != RDMA_QPT_RC ||
                            !image->s.attr.path_mtu),
           "READs or ATOMICs to answer where there are none");
    BAD_IF(resp->res_prod - resp->res_out > image->n_res,
           "READs or ATOMICs to answer that are not known");
    for (i = 0; i < image->n_res; i++) {
        const char *why = check_resource(&image->res[i],
                                rdma_mtu_bytes(image->s.attr.path_mtu));

        BAD_IF(why, why);
    }
    return NULL;
}

const char *roce_check_qp(const RoceEngine *e, const RoceQpImage *image,
                          const RdmaQpCap *max)
{
    const char *why = check_init(image, max);

    if (!why) {
        why = check_attr(e, image);
    }
    if (!why) {
        why = check_sq(image);
    }
    if (!why) {
        why = check_rq(e, image);
    }
    if (!why) {
        why = check_resp(image);
    }
    return why ? why : check_resources(e, image);
}
