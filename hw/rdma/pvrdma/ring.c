/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings of QPs, SRQs and CQs: a page of indices, and then elements, in memory
 * of the driver or of a process.
 *
 * The device relies on its own indices. It reads an index of the guest once and
 * checks it, and copies an element before it checks the element.
 */
#include "qemu/osdep.h"
#include "qemu/atomic.h"
#include "qemu/log.h"
#include "int.h"

uint64_t pvrdma_ring_pages(uint32_t size, uint32_t stride)
{
    return DIV_ROUND_UP((uint64_t)size * stride, RDMA_PAGE_SIZE);
}

uint32_t pvrdma_send_stride(uint32_t max_sge)
{
    return pow2ceil(sizeof(PvrdmaSendWqe) + max_sge * sizeof(PvrdmaSge));
}

uint32_t pvrdma_recv_stride(uint32_t max_sge)
{
    return pow2ceil(sizeof(PvrdmaRecvWqe) + max_sge * sizeof(PvrdmaSge));
}

void pvrdma_ring_init(PvrdmaRing *ring, const RdmaHcaExtents *pages,
                      size_t state, uint32_t base, uint32_t size,
                      uint32_t stride)
{
    rdma_hca_cursor_init(&ring->elements, pages, base);
    ring->state = rdma_hca_extents_first(pages) + state;
    ring->size = size;
    ring->stride = stride;
}

static uint64_t element(PvrdmaRing *ring, uint32_t index)
{
    return rdma_hca_cursor_at(&ring->elements,
                              (index & (ring->size - 1)) * ring->stride);
}

/* Read an index of the guest. False: it is not in RAM, or out of range. */
static bool load_index(Pvrdma *s, const PvrdmaRing *ring, size_t at,
                       uint32_t *value)
{
    return rdma_hca_load_word(pvrdma_ram(s), ring->state + at, value) &&
           *value < 2 * ring->size;
}

static bool store_index(Pvrdma *s, const PvrdmaRing *ring, size_t at,
                        uint32_t index)
{
    return rdma_hca_store_word(pvrdma_ram(s), ring->state + at,
                               index & (2 * ring->size - 1));
}

/* Work queues */

static PvrdmaRing *ring_of(const RdmaHcaWq *wq)
{
    return wq->opaque;
}

/*
 * Count the WQEs that the driver has posted and the device has not taken. False
 * if the tail is invalid.
 */
static bool posted(Pvrdma *s, const PvrdmaRing *ring, uint32_t *n)
{
    uint32_t tail;

    if (!load_index(s, ring, offsetof(PvrdmaRingState, tail), &tail)) {
        return false;
    }
    *n = (tail - ring->index) & (2 * ring->size - 1);
    return *n <= ring->size;
}

static bool poll(Pvrdma *s, RdmaHcaWq *wq)
{
    PvrdmaRing *ring = ring_of(wq);
    uint32_t n;

    if (ring->stopped) {
        return false;
    }
    if (ring->seen == ring->index) {
        if (posted(s, ring, &n)) {
            ring->seen += n;
        } else {
            qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: %s %u: the tail of a ring "
                          "of %u entries, which the device has read up to %u, "
                          "is not in RAM or out of range\n",
                          rdma_hca_wq_owner(wq), wq->id, ring->size,
                          ring->index & (2 * ring->size - 1));
            rdma_hca_wq_break(&s->hca, wq);
        }
    }
    return ring->seen != ring->index;
}

static uint32_t depth(const RdmaHcaWq *wq)
{
    return ring_of(wq)->size;
}

static bool take(RdmaHca *hca, RdmaHcaWq *wq, uint32_t *place)
{
    Pvrdma *s = pvrdma_of(hca);
    PvrdmaRing *ring = ring_of(wq);

    if (!poll(s, wq)) {
        return false;
    }
    if (!rdma_hca_read_ram(pvrdma_ram(s), element(ring, ring->index), s->wqe,
                           ring->stride)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: %s %u: a WQE is not in RAM\n",
                      rdma_hca_wq_owner(wq), wq->id);
        rdma_hca_wq_break(hca, wq);
        return false;
    }
    ring->index++;
    return true;
}

static void put_back(RdmaHca *hca, RdmaHcaWq *wq)
{
    ring_of(wq)->index--;
}

/* Let the guest use the elements again. */
static void retire(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count)
{
    PvrdmaRing *ring = ring_of(wq);

    ring->freed += count;
    if (ring->stopped) {
        return;
    }
    store_index(pvrdma_of(hca), ring, offsetof(PvrdmaRingState, head),
                ring->freed);
}

static bool count(RdmaHca *hca, const RdmaHcaWq *wq, uint32_t *n)
{
    const PvrdmaRing *ring = ring_of(wq);

    if (ring->stopped || !posted(pvrdma_of(hca), ring, n)) {
        *n = 0;
    }
    return true;
}

static bool check(RdmaHca *hca, RdmaHcaWq *wq)
{
    poll(pvrdma_of(hca), wq);
    return !wq->broken;
}

/* The driver rings for each WQE, so the device does not tell it anything. */
static bool wake(RdmaHca *hca, RdmaHcaWq *wq)
{
    return false;
}

static RdmaNext go_to_sleep(RdmaHca *hca, RdmaHcaWq *wq)
{
    return RDMA_NEXT_NONE;
}

/*
 * The driver sets both indices to 0 only after the reply to RESET: do not
 * access them until the QP leaves RESET.
 */
static void drain(RdmaHca *hca, RdmaHcaWq *wq, uint32_t n)
{
    PvrdmaRing *ring = ring_of(wq);

    ring->index = ring->seen = ring->freed = 0;
    ring->stopped = true;
}

const RdmaHcaWqOps pvrdma_wq_ops = {
    .direct = true,
    .depth = depth,
    .take = take,
    .put_back = put_back,
    .retire = retire,
    .count = count,
    .check = check,
    .wake = wake,
    .sleep = go_to_sleep,
    .drain = drain,
};

void pvrdma_decode_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr)
{
    Pvrdma *s = pvrdma_of(hca);
    const PvrdmaSendWqe *wqe = (PvrdmaSendWqe *)s->wqe;
    bool kernel = qp->pd->context == PVRDMA_KERNEL;
    RdmaHcaPages pages = {};

    if (!pvrdma_get_send(wqe, qp->init.qp_type, kernel, qp->sq.max_sge,
                         hca->sge, wr, &pages)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: QP %u: bad send WQE: opcode "
                      "%u of %s, num_sge %u\n", qp->init.qpn,
                      le32_to_cpu(wqe->opcode),
                      kernel ? "the kernel" : "a process",
                      le32_to_cpu(wqe->num_sge));
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
    } else if (wr->opcode == RDMA_WR_REG_MR && qp->init.qp_type ==
               RDMA_QPT_RC) {
        wr->cost = PVRDMA_MAX_PAGE_LIST * RDMA_WORK_ENTRY;
        wr->status = rdma_hca_sq_read_reg(hca, qp, &pages, wr);
    }
}

void pvrdma_decode_recv(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr)
{
    Pvrdma *s = pvrdma_of(hca);
    const PvrdmaRecvWqe *wqe = (PvrdmaRecvWqe *)s->wqe;

    if (!pvrdma_get_recv(wqe, wq->max_sge, hca->sge, wr)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: %s %u: bad receive WQE: "
                      "num_sge %u\n", rdma_hca_wq_owner(wq), wq->id,
                      le32_to_cpu(wqe->num_sge));
        wr->status = RDMA_WC_LOC_QP_OP_ERR;
    }
}

/* Completion queues */

/*
 * Is there room for a CQE? Reads the head only if its last known value leaves
 * no room.
 */
static bool has_room(Pvrdma *s, PvrdmaCq *cq)
{
    PvrdmaRing *ring = &cq->ring;
    uint32_t head, used;

    if (ring->index - ring->seen < ring->size) {
        return true;
    }
    if (!load_index(s, ring, offsetof(PvrdmaRingState, head), &head)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: CQ %u: the head of its ring is "
                      "not in RAM, or %u or more\n", cq->core.cqn,
                      2 * ring->size);
        return false;
    }
    used = (ring->index - head) & (2 * ring->size - 1);
    if (used >= ring->size) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: CQ %u overruns: its head is "
                      "%u, the device's tail %u, of %u entries\n",
                      cq->core.cqn, head, ring->index & (2 * ring->size - 1),
                      ring->size);
        return false;
    }
    ring->seen = ring->index - used;
    return true;
}

static bool write_cqe(Pvrdma *s, PvrdmaCq *cq, const RdmaWc *wc)
{
    PvrdmaRing *ring = &cq->ring;
    PvrdmaCqe cqe;

    pvrdma_put_cqe(&cqe, wc, cq->ctx == PVRDMA_KERNEL);
    if (!rdma_hca_write_ram(pvrdma_ram(s), element(ring, ring->index), &cqe,
                            sizeof(cqe))) {
        return false;
    }
    ring->index++;
    /* The driver reads the CQE after the index. */
    smp_wmb();
    return store_index(s, ring, offsetof(PvrdmaRingState, tail), ring->index);
}

static bool complete(RdmaHca *hca, RdmaHcaCq *core, const RdmaWc *wc,
                     bool solicited)
{
    Pvrdma *s = pvrdma_of(hca);
    PvrdmaCq *cq = pvrdma_cq(core);
    RdmaHcaQp *qp = rdma_hca_table_get(&hca->qps, wc->qp_num);

    /* A driver that does not know the QP would never consume the CQE. */
    if (!qp || pvrdma_qp(qp)->sq.stopped) {
        return true;
    }
    if (!has_room(s, cq) || !write_cqe(s, cq, wc)) {
        return false;
    }
    if (cq->arm == PVRDMA_ARM_NEXT ||
        (cq->arm == PVRDMA_ARM_SOLICITED &&
         (solicited || wc->status != RDMA_WC_SUCCESS))) {
        cq->arm = PVRDMA_ARM_NONE;
        pvrdma_notify_fire(s, cq);
    }
    return true;
}

const RdmaHcaCqOps pvrdma_cq_ops = {
    .direct = true,
    .complete = complete,
};
