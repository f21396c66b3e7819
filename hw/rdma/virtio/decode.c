/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decode work queue elements, of virtqueues and of slots. take() has copied the
 * WQE to the scratch buffer; the result is a work request of the core.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "wq.h"

/*
 * Did the driver accept the feature that @opcode needs? This need not check
 * everything: the backend refuses unknown opcodes, and a LOCAL_INV of a region
 * where only windows can be invalidated.
 */
static bool opcode_negotiated(VirtIORdma *s, uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_REG_MR:
        return rdma_hca_has_mem_mgt(&s->hca);
    case RDMA_WR_BIND_MW:
        return virtio_rdma_is_v1(s) && s->hca.limits.max_mw;
    case RDMA_WR_FLUSH:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_FLUSH);
    case RDMA_WR_ATOMIC_WRITE:
        return virtio_rdma_has(s, VIRTIO_RDMA_F_ATOMIC_WRITE);
    default:
        return true;
    }
}

/* A WQE may be shorter than its fixed part: the rest reads as 0. */
static void pad(VirtIORdma *s, size_t len, size_t fixed)
{
    if (len < fixed) {
        memset(s->scratch->wqe + len, 0, fixed - len);
    }
}

/*
 * Decode the list of a WQE of @len bytes, which follows its @fixed bytes, to
 * s->hca.sge. False if the list may not be so long.
 */
static bool get_sges(VirtIORdma *s, uint32_t max_sge, uint32_t num_sge,
                     size_t fixed, size_t len)
{
    if (!rdma_hca_check_range("num_sge", num_sge, 0,
                              MIN(max_sge,
                                  (len - fixed) / VIRTIO_RDMA_SGE_SIZE))) {
        return false;
    }
    virtio_rdma_codec_get_sges(s->scratch->wqe + fixed, num_sge, s->hca.sge);
    return true;
}

static RdmaWcStatus get_send(VirtIORdma *s, RdmaHcaQp *qp, size_t len,
                             RdmaSendWr *wr)
{
    RdmaHcaPages pages = {};
    const RdmaHcaWq *wq = &qp->sq;
    size_t fixed = VIRTIO_RDMA_SEND_WQE_SIZE;
    bool ud = rdma_qp_is_datagram(qp->init.qp_type);

    virtio_rdma_codec_get_send(s->scratch->wqe, ud, wr, &pages);
    if (len < fixed ||
        !rdma_hca_check_flags("send_flags", wr->send_flags,
                              RDMA_SEND_FLAGS) ||
        !opcode_negotiated(s, wr->opcode)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    if (wr->send_flags & RDMA_SEND_INLINE) {
        /* An ATOMIC_WRITE may have 8 inline bytes on any QP. */
        uint64_t max_inline = wr->opcode == RDMA_WR_ATOMIC_WRITE
                              ? sizeof(uint64_t) : wq->max_inline;

        if (!rdma_hca_check_range("num_sge besides inline data",
                                  wr->num_sge, 0, 0) ||
            !rdma_hca_check_range("length of inline data", len - fixed, 0,
                                  max_inline)) {
            return RDMA_WC_LOC_QP_OP_ERR;
        }
        wr->inline_data = s->scratch->wqe + fixed;
        wr->inline_len = len - fixed;
        return RDMA_WC_SUCCESS;
    }
    if (!get_sges(s, wq->max_sge, wr->num_sge, fixed, len)) {
        return RDMA_WC_LOC_QP_OP_ERR;
    }
    wr->sg_list = s->hca.sge;
    if (wr->opcode == RDMA_WR_REG_MR && !ud && pages.npages &&
        virtio_rdma_is_v1(s) && s->hca.limits.max_reg_pages) {
        wr->cost += MIN(pages.npages, VIRTIO_RDMA_MAX_PAGE_LIST) *
                    RDMA_WORK_ENTRY;
        return rdma_hca_sq_read_reg(&s->hca, qp, &pages, wr);
    }
    return RDMA_WC_SUCCESS;
}

void virtio_rdma_decode_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    const VirtIORdmaTaken *t = &s->scratch->send;

    pad(s, t->len, VIRTIO_RDMA_SEND_WQE_SIZE);
    wr->cost = t->cost;
    wr->status = get_send(s, qp, t->len, wr);
    if (wr->status != RDMA_WC_SUCCESS) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: QP %u: bad send WQE of "
                      "%zu bytes (%zu or more): opcode %u flags 0x%x num_sge "
                      "%u\n", qp->init.qpn, t->len, VIRTIO_RDMA_SEND_WQE_SIZE,
                      wr->opcode, wr->send_flags, wr->num_sge);
        wr->num_sge = 0;
        wr->send_flags &= ~RDMA_SEND_INLINE;
    }
}

void virtio_rdma_decode_recv(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    const VirtIORdmaTaken *t = &s->scratch->recv;
    size_t fixed = VIRTIO_RDMA_RECV_WQE_SIZE;

    pad(s, t->len, fixed);
    virtio_rdma_codec_get_recv(s->scratch->wqe, wr);
    wr->cost = t->cost;
    if (t->len < fixed ||
        !get_sges(s, wq->max_sge, wr->num_sge, fixed, t->len)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: bad receive WQE "
                      "of %zu bytes (%zu or more): num_sge %u\n",
                      rdma_hca_wq_owner(wq), wq->id, t->len, fixed,
                      wr->num_sge);
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
        wr->num_sge = 0;
    } else {
        wr->sg_list = s->hca.sge;
    }
}

VirtIORdmaTaken *virtio_rdma_scratch_begin(VirtIORdma *s, const RdmaHcaWq *wq)
{
    VirtIORdmaTaken *t = wq->kind == RDMA_SQ ? &s->scratch->send
                                             : &s->scratch->recv;

    g_free(t->elem);
    *t = (VirtIORdmaTaken) {};
    return t;
}

void virtio_rdma_scratch_init(VirtIORdma *s)
{
    const RdmaBackendLimits *l = &s->hca.limits;
    uint32_t max_sge = MAX(MAX(l->max_send_sge, l->max_recv_sge),
                           l->max_srq_sge);

    s->scratch = g_new0(VirtIORdmaScratch, 1);
    s->scratch->wqe_room = VIRTIO_RDMA_WQE_ROOM +
                           MAX(max_sge * VIRTIO_RDMA_SGE_SIZE,
                               l->max_inline_data);
    s->scratch->slot = g_malloc0(VIRTIO_RDMA_SLOT_SIZE + s->scratch->wqe_room);
    s->scratch->wqe = s->scratch->slot + VIRTIO_RDMA_SLOT_SIZE;
}

void virtio_rdma_scratch_free(VirtIORdma *s)
{
    g_free(s->scratch->send.elem);
    g_free(s->scratch->recv.elem);
    g_free(s->scratch->slot);
    g_clear_pointer(&s->scratch, g_free);
}
