/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responder resources: READs, ATOMICs, FLUSHes and ATOMIC WRITEs. Each is
 * executed once; its response is sent again for each duplicate of the request
 * (IBTA 9.7.5.1.4, 9.7.5.1.5, A19).
 */
#include <glib.h>
#include "transport/transport.h"

static RoceResource *resource(const RoceQp *qp, uint32_t index)
{
    return &qp->resources[index & qp->res_mask];
}

void roce_resp_reserve(RoceQp *qp)
{
    if (!qp->resources) {
        qp->resources = g_new0(RoceResource, qp->res_mask + 1);
    }
}

bool roce_resp_pending(const RoceQp *qp)
{
    const RoceRespState *resp = &qp->s.resp;
    uint32_t i;

    for (i = resp->res_out; i != resp->res_prod; i++) {
        if (resource(qp, i)->pending) {
            return true;
        }
    }
    return false;
}

RoceResource *roce_resp_next(RoceQp *qp)
{
    RoceRespState *resp = &qp->s.resp;

    while (resp->res_out != resp->res_prod) {
        RoceResource *r = resource(qp, resp->res_out);

        if (r->pending) {
            return r;
        }
        resp->res_out++;
    }
    return NULL;
}

void roce_resp_find_last(RoceQp *qp)
{
    const RoceRespState *resp = &qp->s.resp;
    const RoceResource *r;

    if (!qp->resources) {
        qp->last_explicit = false;
        return;
    }
    r = resource(qp, resp->res_prod - 1);
    qp->last_explicit = r->type != ROCE_RES_NONE &&
                   psn_add(r->psn, r->npsn) == resp->epsn;
}

/*
 * May the requester have one more request outstanding that needs an explicit
 * response? It may have as many as there are resources. So the first response
 * of the oldest resource must be complete before another request reuses it.
 * Repeated responses do not matter, because the requester need not wait for
 * them.
 */
static bool resource_free(const RoceQp *qp)
{
    uint32_t n = qp->s.attr.max_dest_rd_atomic;

    return n && (!qp->resources ||
                 !resource(qp, qp->s.resp.res_prod - n)->first);
}

static RoceResource *resource_take(RoceQp *qp)
{
    RoceRespState *resp = &qp->s.resp;
    RoceResource *r;

    roce_resp_reserve(qp);
    r = resource(qp, resp->res_prod);
    resp->res_prod++;
    if (resp->res_prod - resp->res_out > qp->res_mask + 1) {
        resp->res_out++;
    }
    *r = (RoceResource) {
        .psn = resp->epsn,
        .reply_psn = resp->epsn,
        .first = true,
        .pending = true,
    };
    return r;
}

/* The request is executed: advance epsn and msn, and schedule the response. */
static void resource_commit(RoceQp *qp, RoceResource *r)
{
    RoceRespState *resp = &qp->s.resp;

    resp->epsn = psn_add(resp->epsn, r->npsn);
    resp->msn = psn_add(resp->msn, 1);
    r->msn = resp->msn;
    qp->last_explicit = true;
    /* The response acknowledges all requests before it. */
    if (resp->ack_kind == ROCE_ACK_POSITIVE) {
        resp->ack_kind = ROCE_ACK_NONE;
    }
    roce_qp_schedule(qp);
}

bool roce_resp_read(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome)
{
    uint64_t va = bth->reth.va;
    RoceResource *r;

    if (!(qp->s.attr.qp_access_flags & RDMA_ACCESS_REMOTE_READ) ||
        bth->reth.len > ROCE_MAX_MSG || !resource_free(qp)) {
        *syndrome = ROCE_NAK_INVALID_REQ;
        return false;
    }
    if (bth->reth.len &&
        !roce_resp_mr(qp, bth->reth.rkey, RDMA_ACCESS_REMOTE_READ, &va,
                      bth->reth.len)) {
        *syndrome = ROCE_NAK_REMOTE_ACCESS;
        return false;
    }
    r = resource_take(qp);
    r->type = ROCE_RES_READ;
    r->va = bth->reth.va;
    r->rkey = bth->reth.rkey;
    r->len = bth->reth.len;
    r->npsn = roce_npsn(qp, r->len);
    r->reply_va = r->va;
    r->reply_len = r->len;
    resource_commit(qp, r);
    return true;
}

bool roce_resp_atomic(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome)
{
    bool swap = (bth->opcode & 0x1f) == ROCE_COMPARE_SWAP;
    RoceEngine *e = qp->e;
    uint64_t va = bth->atomiceth.va;
    uint64_t len = sizeof(uint64_t);
    uint64_t dma, result;
    const RoceMr *mr;
    RoceResource *r;

    if (!(qp->s.attr.qp_access_flags & RDMA_ACCESS_REMOTE_ATOMIC) ||
        bth->atomiceth.va % sizeof(uint64_t) || !resource_free(qp)) {
        *syndrome = ROCE_NAK_INVALID_REQ;
        return false;
    }
    mr = roce_resp_mr(qp, bth->atomiceth.rkey, RDMA_ACCESS_REMOTE_ATOMIC,
                      &va, len);
    if (!mr) {
        *syndrome = ROCE_NAK_REMOTE_ACCESS;
        return false;
    }
    dma = roce_mr_dma(mr, va, &len);
    if (dma % sizeof(uint64_t) ||
        !e->ops.atomic(e->opaque, dma,
                       swap ? RDMA_WR_ATOMIC_CMP_AND_SWP
                            : RDMA_WR_ATOMIC_FETCH_AND_ADD,
                       swap ? bth->atomiceth.compare
                            : bth->atomiceth.swap_add,
                       swap ? bth->atomiceth.swap_add : 0, &result)) {
        *syndrome = ROCE_NAK_REMOTE_OP;
        return false;
    }
    r = resource_take(qp);
    r->type = ROCE_RES_ATOMIC;
    r->opcode = bth->opcode;
    r->va = bth->atomiceth.va;
    r->rkey = bth->atomiceth.rkey;
    r->result = result;
    r->npsn = 1;
    resource_commit(qp, r);
    return true;
}

/*
 * The payload has the byte order of memory. There is no separate access flag: a
 * peer that may WRITE may also ATOMIC WRITE.
 */
bool roce_resp_atomic_write(RoceQp *qp, const RocePacket *pkt,
                            uint8_t *syndrome)
{
    const RoceBth *bth = &pkt->bth;
    RoceEngine *e = qp->e;
    uint64_t va = bth->reth.va;
    uint64_t len = sizeof(uint64_t);
    uint64_t dma, value, old;
    const RoceMr *mr;
    RoceResource *r;

    if (!roce_opcode_enabled(e, RDMA_WR_ATOMIC_WRITE) ||
        !(qp->s.attr.qp_access_flags & RDMA_ACCESS_REMOTE_WRITE) ||
        bth->reth.len != len || pkt->payload_len != len || va % len ||
        !resource_free(qp)) {
        *syndrome = ROCE_NAK_INVALID_REQ;
        return false;
    }
    mr = roce_resp_mr(qp, bth->reth.rkey, RDMA_ACCESS_REMOTE_WRITE, &va,
                      len);
    if (!mr) {
        *syndrome = ROCE_NAK_REMOTE_ACCESS;
        return false;
    }
    memcpy(&value, pkt->payload, sizeof(value));
    dma = roce_mr_dma(mr, va, &len);
    if (dma % sizeof(uint64_t) ||
        !e->ops.atomic(e->opaque, dma, RDMA_WR_ATOMIC_WRITE,
                       GUINT64_FROM_LE(value), 0, &old)) {
        *syndrome = ROCE_NAK_REMOTE_OP;
        return false;
    }
    r = resource_take(qp);
    r->type = ROCE_RES_ATOMIC_WRITE;
    r->va = bth->reth.va;
    r->rkey = bth->reth.rkey;
    r->npsn = 1;
    resource_commit(qp, r);
    return true;
}

/*
 * Since writes take effect at once, global visibility needs no action.
 * Persistence is not supported: no region grants it. For a whole region,
 * address and length are ignored (A19). Some requesters (rxe) have more FLUSHes
 * outstanding than the responder has resources. A FLUSH without a free resource
 * is dropped, and the requester sends it again.
 */
bool roce_resp_flush(RoceQp *qp, const RoceBth *bth, uint8_t *syndrome)
{
    uint32_t type = bth->feth & ROCE_FETH_TYPE_MASK;
    uint32_t level = bth->feth >> ROCE_FETH_LEVEL_SHIFT &
                     ROCE_FETH_LEVEL_MASK;
    uint64_t va = bth->reth.va;
    RoceResource *r;

    if (!roce_opcode_enabled(qp->e, RDMA_WR_FLUSH) ||
        !roce_flush_ok(type, level) ||
        !(qp->s.attr.qp_access_flags & RDMA_ACCESS_FLUSH_GLOBAL) ||
        bth->reth.len > ROCE_MAX_MSG || !qp->s.attr.max_dest_rd_atomic) {
        *syndrome = ROCE_NAK_INVALID_REQ;
        return false;
    }
    if (type != RDMA_FLUSH_GLOBAL ||
        !roce_mr_grants(qp->e, qp->init.pdn, bth->reth.rkey,
                        RDMA_ACCESS_FLUSH_GLOBAL) ||
        (level == RDMA_FLUSH_RANGE &&
         !roce_resp_mr(qp, bth->reth.rkey, RDMA_ACCESS_FLUSH_GLOBAL, &va,
                       bth->reth.len))) {
        *syndrome = ROCE_NAK_REMOTE_ACCESS;
        return false;
    }
    if (!resource_free(qp)) {
        roce_rx_drop(qp->e, bth, "no responder resource is free");
        return true;
    }
    r = resource_take(qp);
    r->type = ROCE_RES_FLUSH;
    r->opcode = bth->feth;
    r->va = bth->reth.va;
    r->rkey = bth->reth.rkey;
    r->len = bth->reth.len;
    r->npsn = 1;
    resource_commit(qp, r);
    return true;
}

/*
 * The resource of a request with this PSN, or NULL. Sets *@index to its index.
 */
static RoceResource *resource_find(const RoceQp *qp, uint32_t psn,
                                   uint32_t *index)
{
    uint32_t prod = qp->s.resp.res_prod;
    uint32_t i;

    for (i = 1; qp->resources && i <= qp->s.attr.max_dest_rd_atomic; i++) {
        RoceResource *r = resource(qp, prod - i);

        if (r->type != ROCE_RES_NONE && psn_off(psn, r->psn) < r->npsn) {
            *index = prod - i;
            return r;
        }
    }
    return NULL;
}

/*
 * An ACK must not name the PSN of a request that needs an explicit response
 * (READ, atomics, FLUSH, ATOMIC WRITE), because requesters (rxe) conclude that
 * the request is complete, although its response may be lost.
 */
uint32_t roce_resp_last_acked(const RoceQp *qp)
{
    uint32_t psn = psn_add(qp->s.resp.epsn, RDMA_24BIT_MASK);
    const RoceResource *r;
    uint32_t i, index;

    for (i = 0; qp->last_explicit && i < qp->s.attr.max_dest_rd_atomic; i++) {
        r = resource_find(qp, psn, &index);
        if (!r) {
            break;
        }
        psn = psn_add(r->psn, RDMA_24BIT_MASK);
    }
    return psn;
}

/*
 * Is @bth the READ of @r, or the rest of that READ from one of its packets on?
 */
static bool read_matches(const RoceQp *qp, const RoceResource *r,
                         const RoceBth *bth)
{
    uint32_t off = psn_off(bth->psn, r->psn) * qp->mtu;

    return bth->reth.rkey == r->rkey &&
           bth->reth.va == r->va + off && bth->reth.len <= r->len - off &&
           (bth->reth.len || !r->len);
}

static bool atomic_matches(const RoceResource *r, const RoceBth *bth)
{
    return bth->opcode == r->opcode &&
           bth->atomiceth.va == r->va && bth->atomiceth.rkey == r->rkey;
}

static bool duplicate_matches(const RoceQp *qp, const RoceResource *r,
                              const RocePacket *pkt)
{
    const RoceBth *bth = &pkt->bth;
    bool same = bth->reth.va == r->va && bth->reth.rkey == r->rkey;

    switch (r->type) {
    case ROCE_RES_READ:
        return (pkt->info->flags & ROCE_OP_READ_REQ) &&
               read_matches(qp, r, bth);
    case ROCE_RES_ATOMIC:
        return atomic_matches(r, bth);
    case ROCE_RES_ATOMIC_WRITE:
        return (pkt->info->flags & ROCE_OP_ATOMIC_WRITE) && same;
    default:
        return (pkt->info->flags & ROCE_OP_FLUSH) && same &&
               bth->reth.len == r->len && bth->feth == r->opcode;
    }
}

/* Send the response again, as reply_va and the fields after it describe. */
static void resend(RoceQp *qp, uint32_t index)
{
    RoceRespState *resp = &qp->s.resp;

    resource(qp, index)->pending = true;
    if (resp->res_prod - index > resp->res_prod - resp->res_out) {
        resp->res_out = index;
    }
    roce_qp_schedule(qp);
}

void roce_resp_replay(RoceQp *qp, const RocePacket *pkt)
{
    const RoceBth *bth = &pkt->bth;
    uint32_t index = 0;
    RoceResource *r;

    r = resource_find(qp, bth->psn, &index);
    if (!r || !duplicate_matches(qp, r, pkt)) {
        roce_rx_drop(qp->e, bth, "not a duplicate of a known request");
        return;
    }
    if (pkt->info->flags & ROCE_OP_READ_REQ) {
        r->reply_va = bth->reth.va;
        r->reply_len = bth->reth.len;
        r->reply_off = 0;
        r->reply_psn = bth->psn;
    }
    resend(qp, index);
}

void roce_resp_resend_last(RoceQp *qp)
{
    uint32_t index = qp->s.resp.res_prod - 1;
    RoceResource *r = resource(qp, index);

    if (r->pending) {
        return;
    }
    /*
     * Send only the last packet of a READ response. A requester that has not
     * received earlier ones detects a sequence error and goes back.
     */
    r->reply_va = r->va;
    r->reply_len = r->len;
    r->reply_off = (r->npsn - 1) * qp->mtu;
    r->reply_psn = psn_add(r->psn, r->npsn - 1);
    resend(qp, index);
}
