/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct work queues and SRQs: a page of counters, and slots for WQEs, in
 * memory of the driver, which a process may map.
 *
 * The device keeps its own count of WQEs taken. It checks the producer index of
 * the driver each time that it reads it, and copies a slot before it decodes
 * it.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "qemu/log.h"
#include "wq.h"

#define MIN_SLOT_SHIFT 5
/*
 * Bytes of a slot to copy at first: enough for most WQEs. The scratch buffer
 * always has room for them.
 */
#define FIRST_BYTES 128
#define PAGE_SHIFT RDMA_PAGE_SHIFT

static uint64_t slots_pages(const VirtIORdmaWq *form)
{
    return DIV_ROUND_UP(1ull << (form->depth_shift + form->slot_shift),
                        RDMA_PAGE_SIZE);
}

/* Can the slots of @form hold @max_wr WQEs of up to @wqe_len bytes? */
static bool check_slots(const char *name, const VirtIORdmaWq *form,
                        uint8_t max_depth_shift, uint32_t max_wr,
                        size_t wqe_len)
{
    g_autofree char *depth = g_strdup_printf("%s_depth_shift", name);
    g_autofree char *slot = g_strdup_printf("%s_slot_shift", name);
    g_autofree char *wr = g_strdup_printf("slots of the %s", name);
    g_autofree char *len = g_strdup_printf("bytes of a slot of the %s", name);

    return rdma_hca_check_range(depth, form->depth_shift, 0,
                                max_depth_shift) &&
           rdma_hca_check_range(slot, form->slot_shift, MIN_SLOT_SHIFT,
                                VIRTIO_RDMA_MAX_SLOT_SHIFT) &&
           rdma_hca_check_range(wr, 1ull << form->depth_shift, max_wr,
                                UINT32_MAX) &&
           rdma_hca_check_range(len, 1ull << form->slot_shift,
                                VIRTIO_RDMA_SLOT_SIZE + wqe_len, UINT32_MAX);
}

static size_t send_wqe_len(const RdmaQpCap *cap)
{
    return VIRTIO_RDMA_SEND_WQE_SIZE +
           MAX(cap->max_send_sge * VIRTIO_RDMA_SGE_SIZE, cap->max_inline_data);
}

static size_t recv_wqe_len(uint32_t max_sge)
{
    return VIRTIO_RDMA_RECV_WQE_SIZE + max_sge * VIRTIO_RDMA_SGE_SIZE;
}

/* The memory is not a region, so max_mr_size does not limit it. */
static int check_memory(VirtIORdma *s, uint16_t doorbell, RdmaHcaPages *pages,
                        uint64_t npages)
{
    if (!rdma_hca_check_range("doorbell", doorbell, 0, s->doorbells - 1)) {
        return -EINVAL;
    }
    pages->page_shift = PAGE_SHIFT;
    pages->length = npages << PAGE_SHIFT;
    return rdma_hca_pages_check_num(pages, npages);
}

int virtio_rdma_direct_qp_check(VirtIORdma *s, const VirtIORdmaQp *qp,
                                RdmaHcaPages *pages)
{
    const RdmaQpInitAttr *init = &qp->core.init;
    const RdmaQpCap *cap = &init->cap;

    if (!check_slots("sq", &qp->sq, VIRTIO_RDMA_MAX_DEPTH_SHIFT,
                     cap->max_send_wr, send_wqe_len(cap)) ||
        (!init->has_srq &&
         !check_slots("rq", &qp->rq, VIRTIO_RDMA_MAX_DEPTH_SHIFT,
                      cap->max_recv_wr, recv_wqe_len(cap->max_recv_sge)))) {
        return -EINVAL;
    }
    return check_memory(s, qp->doorbell, pages, 1 + slots_pages(&qp->sq) +
                        (init->has_srq ? 0 : slots_pages(&qp->rq)));
}

int virtio_rdma_direct_srq_check(VirtIORdma *s, const VirtIORdmaSrq *srq,
                                 RdmaHcaPages *pages)
{
    const RdmaSrqAttr *attr = &srq->core.attr;

    return check_slots("srq", &srq->wq, VIRTIO_RDMA_MAX_SRQ_DEPTH_SHIFT,
                       attr->max_wr, recv_wqe_len(attr->max_sge))
           ? check_memory(s, srq->doorbell, pages, 1 + slots_pages(&srq->wq))
           : -EINVAL;
}

static VirtIORdmaSlots *slots_of(const RdmaHcaWq *wq)
{
    return &virtio_rdma_wq(wq)->slots;
}

/* Copy from a slot, whose pages need not be contiguous. */
static bool read_slot(VirtIORdma *s, VirtIORdmaWq *form, uint32_t at, void *buf,
                      size_t len)
{
    VirtIORdmaSlots *slots = &form->slots;
    uint32_t offset = ((slots->taken & (slots->depth - 1)) <<
                       form->slot_shift) + at;

    while (len) {
        uint64_t addr = rdma_hca_cursor_at(&slots->at, offset);
        size_t part = MIN(len, rdma_hca_cursor_left(&slots->at, offset));

        if (!rdma_hca_read_ram(rdma_hca_ram(&s->hca), addr, buf, part)) {
            return false;
        }
        buf += part;
        offset += part;
        len -= part;
    }
    return true;
}

/* Are there WQEs that were not taken? A wrong producer breaks the queue. */
static bool poll_producer(VirtIORdma *s, RdmaHcaWq *wq)
{
    VirtIORdmaSlots *slots = slots_of(wq);
    uint32_t producer;

    if (slots->seen != slots->taken) {
        return true;
    }
    if (!rdma_hca_load_word(rdma_hca_ram(&s->hca), slots->producer,
                            &producer)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: the counters of a "
                      "direct queue are not in RAM any more\n",
                      rdma_hca_wq_owner(wq), wq->id);
        rdma_hca_wq_break(&s->hca, wq);
    } else if (producer - slots->taken > slots->depth) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: %s %u: the producer of a "
                      "direct queue moves from %u to %u, but it has %u slots\n",
                      rdma_hca_wq_owner(wq), wq->id, slots->taken, producer,
                      slots->depth);
        rdma_hca_wq_break(&s->hca, wq);
    } else {
        slots->seen = producer;
    }
    return slots->seen != slots->taken;
}

static bool check(RdmaHca *hca, RdmaHcaWq *wq)
{
    poll_producer(virtio_rdma_of(hca), wq);
    return !wq->broken;
}

static uint32_t depth(const RdmaHcaWq *wq)
{
    return slots_of(wq)->depth;
}

/*
 * Copy the next WQE to the scratch buffer. Only a long WQE needs a second copy.
 * False: its length is impossible, or the slot is not in RAM.
 */
static bool read_wqe(VirtIORdma *s, VirtIORdmaWq *form, size_t *len)
{
    uint32_t slot_size = 1u << form->slot_shift;
    size_t first = MIN(slot_size, FIRST_BYTES);
    uint8_t *slot = s->scratch->slot;
    uint32_t wqe_len;
    size_t end;

    if (!read_slot(s, form, 0, slot, first)) {
        return false;
    }
    wqe_len = virtio_rdma_codec_get_slot(slot);
    if (wqe_len > slot_size - VIRTIO_RDMA_SLOT_SIZE) {
        return false;
    }
    *len = wqe_len;
    end = VIRTIO_RDMA_SLOT_SIZE + MIN(wqe_len, s->scratch->wqe_room);
    return end <= first || read_slot(s, form, first, slot + first,
                                     end - first);
}

static bool take(RdmaHca *hca, RdmaHcaWq *wq, uint32_t *place)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaSlots *slots = slots_of(wq);
    VirtIORdmaTaken *t = virtio_rdma_scratch_begin(s, wq);

    slots->rung = false;
    if (!poll_producer(s, wq)) {
        return false;
    }
    if (!read_wqe(s, virtio_rdma_wq(wq), &t->len)) {
        /* Take it with no bytes, so that it completes with an error. */
        t->len = 0;
    }
    slots->taken++;
    return true;
}

static void put_back(RdmaHca *hca, RdmaHcaWq *wq)
{
    slots_of(wq)->taken--;
}

static bool count(RdmaHca *hca, const RdmaHcaWq *wq, uint32_t *n)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    const VirtIORdmaSlots *slots = slots_of(wq);
    uint32_t producer;

    *n = 0;
    if (rdma_hca_load_word(rdma_hca_ram(&s->hca), slots->producer, &producer) &&
        producer - slots->taken <= slots->depth) {
        *n = producer - slots->taken;
    }
    return true;
}

static void set_awake(VirtIORdma *s, VirtIORdmaSlots *slots, bool awake)
{
    slots->is_awake = awake;
    slots->in_doubt = false;
    rdma_hca_store_word(rdma_hca_ram(&s->hca), slots->awake, awake);
}

static bool wake(RdmaHca *hca, RdmaHcaWq *wq)
{
    if (slots_of(wq)->is_awake && !slots_of(wq)->in_doubt) {
        return false;
    }
    set_awake(virtio_rdma_of(hca), slots_of(wq), true);
    return true;
}

static void ring(RdmaHca *hca, RdmaHcaWq *wq)
{
    if (slots_of(wq)->rung) {
        /* The backend has not polled since, and will find this send, too. */
        wake(hca, wq);
    }
    slots_of(wq)->rung = true;
}

static RdmaNext go_to_sleep(RdmaHca *hca, RdmaHcaWq *wq)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaSlots *slots = slots_of(wq);

    if (wq->kind == RDMA_SQ &&
        virtio_rdma_sq_poll_continues(s, container_of(wq, VirtIORdmaQp,
                                                      core.sq))) {
        wake(hca, wq);
        return RDMA_NEXT_LATER;
    }
    if (!slots->is_awake && !slots->in_doubt) {
        return RDMA_NEXT_NONE;
    }
    set_awake(s, slots, false);
    /*
     * Pairs with the driver's barrier between the producer and reading @awake:
     * either the driver rings, or the device sees the producer.
     */
    smp_mb();
    return poll_producer(s, wq) ? RDMA_NEXT_WR : RDMA_NEXT_NONE;
}

static void drain(RdmaHca *hca, RdmaHcaWq *wq, uint32_t n)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaSlots *slots = slots_of(wq);
    uint32_t producer;

    if (rdma_hca_load_word(rdma_hca_ram(&s->hca), slots->producer, &producer)) {
        slots->taken = slots->seen = producer;
    }
}

static const RdmaHcaWqOps direct_ops = {
    .direct = true,
    .depth = depth,
    .take = take,
    .put_back = put_back,
    .count = count,
    .check = check,
    .ring = ring,
    .wake = wake,
    .sleep = go_to_sleep,
    .drain = drain,
};

/*
 * Set the form of @wq to @form: slots from page @base of @pages on. The first
 * page has the words at @producer and @awake.
 */
static void start(RdmaHcaWq *wq, VirtIORdmaWq *form,
                  const RdmaHcaExtents *pages, uint32_t base, size_t producer,
                  size_t awake)
{
    VirtIORdmaSlots *slots = &form->slots;

    wq->ops = &direct_ops;
    wq->opaque = form;
    rdma_hca_cursor_init(&slots->at, pages, base);
    slots->producer = rdma_hca_extents_first(pages) + producer;
    slots->awake = rdma_hca_extents_first(pages) + awake;
    slots->depth = 1u << form->depth_shift;
    slots->seen = slots->taken;
    /* After migration the word at @awake is that of the source. */
    slots->in_doubt = true;
}

void virtio_rdma_direct_qp_start(VirtIORdmaQp *qp)
{
    start(&qp->core.sq, &qp->sq, &qp->pages, 1,
          VIRTIO_RDMA_AT(direct_page, sq_producer),
          VIRTIO_RDMA_AT(direct_page, sq_awake));
    if (!qp->core.init.has_srq) {
        start(&qp->core.rq, &qp->rq, &qp->pages, 1 + slots_pages(&qp->sq),
              VIRTIO_RDMA_AT(direct_page, rq_producer),
              VIRTIO_RDMA_AT(direct_page, rq_awake));
    }
}

void virtio_rdma_direct_srq_start(VirtIORdmaSrq *srq)
{
    start(&srq->core.wq, &srq->wq, &srq->pages, 1,
          VIRTIO_RDMA_AT(direct_srq_page, producer),
          VIRTIO_RDMA_AT(direct_srq_page, awake));
}

bool virtio_rdma_direct_qp_load(VirtIORdma *s, VirtIORdmaQp *qp,
                                const RdmaHcaRecord *r)
{
    RdmaHcaPages list = { .npages = qp->pages.npages };

    if (!rdma_hca_record_check(r, virtio_rdma_direct_qp_check(s, qp, &list) ==
                               0, "pages of its queues", list.npages,
                               "as many as they have") ||
        !rdma_hca_record_charge(&s->hca, r, &qp->pages)) {
        return false;
    }
    virtio_rdma_direct_qp_start(qp);
    return true;
}

bool virtio_rdma_direct_srq_load(VirtIORdma *s, VirtIORdmaSrq *srq,
                                 const RdmaHcaRecord *r)
{
    RdmaHcaPages list = { .npages = srq->pages.npages };

    if (!rdma_hca_record_check(r, virtio_rdma_direct_srq_check(s, srq, &list) ==
                               0, "pages of its queue", list.npages,
                               "as many as it has") ||
        !rdma_hca_record_charge(&s->hca, r, &srq->pages)) {
        return false;
    }
    virtio_rdma_direct_srq_start(srq);
    return true;
}

VirtIORdmaQp *virtio_rdma_direct_qp_at(VirtIORdma *s, uint32_t doorbell,
                                       uint32_t qpn)
{
    VirtIORdmaQp *qp = rdma_hca_table_get(&s->hca.qps, qpn);

    return qp && qp->pages.npages && qp->doorbell == doorbell ? qp : NULL;
}

VirtIORdmaSrq *virtio_rdma_direct_srq_at(VirtIORdma *s, uint32_t doorbell,
                                         uint32_t srqn)
{
    VirtIORdmaSrq *srq = rdma_hca_table_get(&s->hca.srqs, srqn);

    return srq && srq->pages.npages && srq->doorbell == doorbell ? srq : NULL;
}
