/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send queues: what the backend takes from them.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-wq.h"

/*
 * Read the list that a REG_MR brings, and charge it to the WQE. As with other
 * things that are wrong with a REG_MR, the status is that of a memory
 * management operation error (IBTA 11.6.2).
 *
 * WQEs may be written by a process, which could have any address read, of
 * memory or of registers, if it could name the regions of others.
 */
static RdmaWcStatus get_reg_pages(VirtIORdma *s, const RdmaHcaQp *qp,
                                  VirtIORdmaPages *pages,
                                  RdmaHcaInflight *inflight,
                                  RdmaSendWr *wr)
{
    RdmaHcaMr *mr = rdma_hca_mr_get(&s->hca, wr->wr.reg.mrn);

    if (!mr || mr->pd != qp->pd) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: REG_MR of QP %u: %s MR "
                      "%u\n", qp->init.qpn, mr ? "another PD has" : "no",
                      wr->wr.reg.mrn);
        return RDMA_WC_MW_BIND_ERR;
    }
    if (!virtio_rdma_check_range("npages", pages->npages, 0, mr->max_pages) ||
        virtio_rdma_pages_check(s, pages) ||
        virtio_rdma_pages_read(s, pages, &wr->wr.reg.pages)) {
        return RDMA_WC_MW_BIND_ERR;
    }
    inflight->npages = pages->npages;
    inflight->mrn = mr->mrn;
    wr->wr.reg.npages = pages->npages;
    wr->wr.reg.iova = pages->iova;
    wr->wr.reg.length = pages->length;
    return RDMA_WC_SUCCESS;
}

/*
 * Was the feature of @opcode accepted? The backend refuses unknown opcodes, and
 * LOCAL_INV of what is no window where no region can be invalidated.
 */
static bool opcode_negotiated(VirtIORdma *s, uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_REG_MR:
        return virtio_rdma_mem_mgt(s);
    case RDMA_WR_BIND_MW:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_MW);
    case RDMA_WR_FLUSH:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_FLUSH);
    case RDMA_WR_ATOMIC_WRITE:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_ATOMIC_WRITE);
    default:
        return true;
    }
}

/* An ATOMIC_WRITE brings 8 bytes whatever the QP was created with. */
static size_t inline_room(const RdmaHcaWq *wq, uint32_t opcode)
{
    return opcode == RDMA_WR_ATOMIC_WRITE ? sizeof(uint64_t)
                                          : wq->max_inline;
}

static RdmaWcStatus decode_send(VirtIORdma *s, RdmaHcaQp *qp,
                                size_t len, RdmaSendWr *wr,
                                RdmaHcaInflight *inflight)
{
    VirtIORdmaPages pages = {};
    const RdmaHcaWq *wq = &qp->sq;
    size_t fixed = VIRTIO_RDMA_SEND_WQE_SIZE;
    bool ud = qp->init.qp_type == RDMA_QPT_UD ||
              qp->init.qp_type == RDMA_QPT_GSI;

    virtio_rdma_codec_get_send(s->scratch->wqe, ud, wr, &pages);
    if (len < fixed ||
        !virtio_rdma_check_flags("send_flags", wr->send_flags,
                                 RDMA_SEND_FLAGS) ||
        !opcode_negotiated(s, wr->opcode)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (wr->send_flags & RDMA_SEND_INLINE) {
        if (!virtio_rdma_check_range("num_sge besides inline data",
                                     wr->num_sge, 0, 0) ||
            !virtio_rdma_check_range("length of inline data", len - fixed, 0,
                                     inline_room(wq, wr->opcode))) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        wr->inline_data = s->scratch->wqe + fixed;
        wr->inline_len = len - fixed;
        return RDMA_WC_SUCCESS;
    }
    if (!virtio_rdma_wq_get_sges(s, wq->max_sge, wr->num_sge, fixed, len)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    wr->sg_list = s->scratch->sge;
    if (wr->opcode == RDMA_WR_REG_MR && !ud && pages.npages &&
        virtio_rdma_has(s, VIRTIO_RDMA_F_REG_PAGES)) {
        wr->cost += MIN(pages.npages, VIRTIO_RDMA_MAX_PAGE_LIST) *
                    RDMA_WORK_ENTRY;
        return get_reg_pages(s, qp, &pages, inflight, wr);
    }
    return RDMA_WC_SUCCESS;
}

/* Free the list of a REG_MR that the backend does not take. */
static void drop_reg_pages(VirtIORdma *s, RdmaHcaInflight *inflight,
                           RdmaSendWr *wr)
{
    if (inflight->npages) {
        s->hca.mr_pages -= inflight->npages;
        inflight->npages = 0;
        g_clear_pointer(&wr->wr.reg.pages, g_free);
    }
}

/* Does a fault want the send to stay in its queue? It may change it, too. */
static bool is_held_back(VirtIORdma *s, RdmaHcaQp *qp, RdmaSendWr *wr)
{
    bool held_back = wr->status == RDMA_WC_SUCCESS &&
                     !rdma_hca_fault_send(&s->hca, qp, wr, s->scratch->sge);

    if (wr->status != RDMA_WC_SUCCESS) {
        drop_reg_pages(s, virtio_rdma_wq_newest(&qp->sq), wr);
    }
    return held_back;
}

/* The WQE in the scratch buffer, of @len bytes in guest memory */
static void get_send(VirtIORdma *s, RdmaHcaQp *qp, size_t len,
                     RdmaSendWr *wr)
{
    wr->status = decode_send(s, qp, len, wr, virtio_rdma_wq_newest(&qp->sq));
    if (wr->status != RDMA_WC_SUCCESS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: QP %u: bad send WQE of "
                      "%zu bytes (%zu or more): opcode %u flags 0x%x num_sge "
                      "%u\n", qp->init.qpn, len, VIRTIO_RDMA_SEND_WQE_SIZE,
                      wr->opcode, wr->send_flags, wr->num_sge);
        wr->num_sge = 0;
        wr->send_flags &= ~RDMA_SEND_INLINE;
    }
}

RdmaNext virtio_rdma_sq_next(VirtIORdma *s, RdmaHcaQp *qp, bool flush,
                             RdmaSendWr *wr)
{
    VirtIORdmaTaken *t = &s->scratch->last;
    RdmaNext next;

    if (unlikely(qp->fault.held_back)) {
        if (!flush) {
            return RDMA_NEXT_NONE;
        }
        rdma_hca_fault_let_go(qp);
    }
    g_clear_pointer(&t->elem, g_free);
    while (!virtio_rdma_wq_take(s, &qp->sq, VIRTIO_RDMA_SEND_WQE_SIZE, t)) {
        next = virtio_rdma_wq_sleep(s, &qp->sq);
        if (next != RDMA_NEXT_WR) {
            return next;
        }
    }
    *wr = (RdmaSendWr) { .cost = t->cost };
    get_send(s, qp, t->len, wr);
    if (unlikely(s->hca.fault_points & RDMA_HCA_FAULT_AT_SEND) && !flush &&
        is_held_back(s, qp, wr)) {
        virtio_rdma_sq_put_back(s, qp, wr);
        return RDMA_NEXT_NONE;
    }
    trace_virtio_rdma_wq_post(s, qp->init.qpn, RDMA_SQ, wr->wr_id, wr->status);
    return RDMA_NEXT_WR;
}

void virtio_rdma_sq_put_back(VirtIORdma *s, RdmaHcaQp *qp,
                             const RdmaSendWr *wr)
{
    RdmaSendWr copy = *wr;

    drop_reg_pages(s, virtio_rdma_wq_newest(&qp->sq), &copy);
    virtio_rdma_wq_put_back(s, &qp->sq, &s->scratch->last);
}
