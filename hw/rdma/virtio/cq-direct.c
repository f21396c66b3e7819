/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct CQs: a page of counters, and slots for CQEs, in memory of the driver,
 * which a process may map.
 *
 * The device keeps its own count of CQEs written. It reads the consumer index
 * of the driver only when the CQ would be full otherwise, and checks the value.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "queue.h"

#define PAGE_SHIFT RDMA_PAGE_SHIFT
#define SLOT_SHIFT VIRTIO_RDMA_CQE_SLOT_SHIFT

QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_direct_cqe) != 1 << SLOT_SHIFT);

int virtio_rdma_direct_cq_check(uint32_t cqe, uint8_t depth_shift,
                                RdmaHcaPages *pages)
{
    uint64_t npages;

    if (!rdma_hca_check_range("depth_shift", depth_shift, 0,
                              VIRTIO_RDMA_MAX_CQE_SHIFT) ||
        !rdma_hca_check_range("slots", 1ull << depth_shift, cqe, UINT32_MAX)) {
        return -EINVAL;
    }
    npages = 1 + DIV_ROUND_UP(1ull << (depth_shift + SLOT_SHIFT),
                              RDMA_PAGE_SIZE);
    /* The memory is not a region, so max_mr_size does not limit it. */
    pages->page_shift = PAGE_SHIFT;
    pages->length = npages << PAGE_SHIFT;
    return rdma_hca_pages_check_num(pages, npages);
}

/* Count the CQEs that are not consumed. False: the driver counts wrongly. */
static bool count(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *unconsumed)
{
    uint32_t depth = 1u << cq->depth_shift;
    uint32_t consumed;

    if (!rdma_hca_load_word(rdma_hca_ram(&s->hca), cq->counters +
                            VIRTIO_RDMA_AT(direct_cq_page, consumer),
                            &consumed)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: the counters of CQ %u "
                      "are not in RAM any more\n", cq->core.cqn);
        return false;
    }
    if (cq->produced - consumed > depth) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: the consumer of CQ %u is "
                      "%u, but there were %u CQEs, and there are %u slots\n",
                      cq->core.cqn, consumed, cq->produced, depth);
        return false;
    }
    cq->consumed = consumed;
    *unconsumed = cq->produced - consumed;
    return true;
}

static bool write_cqe(VirtIORdma *s, VirtIORdmaCq *cq, const uint8_t *cqe)
{
    uint32_t depth = 1u << cq->depth_shift;
    uint32_t unconsumed = cq->produced - cq->consumed;
    uint32_t offset = (cq->produced & (depth - 1)) << SLOT_SHIFT;

    if (unconsumed >= depth && !count(s, cq, &unconsumed)) {
        return false;
    }
    if (unconsumed >= depth) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u overruns: its %u "
                      "slots have CQEs that are not consumed\n", cq->core.cqn,
                      depth);
        return false;
    }
    if (!virtio_rdma_codec_write_slot(rdma_hca_ram(&s->hca),
                                      rdma_hca_cursor_at(&cq->slots, offset),
                                      cqe, cq->produced + 1)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: a slot of CQ %u is not "
                      "in RAM any more\n", cq->core.cqn);
        return false;
    }
    cq->produced++;
    return true;
}

static bool take_arm(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited)
{
    uint32_t arm;

    if (!rdma_hca_load_word(rdma_hca_ram(&s->hca), cq->counters +
                            VIRTIO_RDMA_AT(direct_cq_page, arm), &arm) ||
        arm == cq->fired) {
        return false;
    }
    if (!(arm & VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION) &&
        !(solicited && (arm & VIRTIO_RDMA_NOTIFY_SOLICITED))) {
        return false;
    }
    cq->fired = arm;
    return true;
}

static uint32_t max_cqe(VirtIORdma *s)
{
    return s->hca.limits.max_cqe;
}

static bool complete(RdmaHca *hca, RdmaHcaCq *core, const RdmaWc *wc,
                     bool solicited)
{
    VirtIORdma *s = virtio_rdma_of(hca);
    VirtIORdmaCq *cq = virtio_rdma_cq(core);
    uint8_t bytes[VIRTIO_RDMA_CQE_ROOM];

    virtio_rdma_codec_put_cqe(bytes, wc, true);
    if (!write_cqe(s, cq, bytes)) {
        return false;
    }
    virtio_rdma_eq_completed(s, cq, solicited ||
                             wc->status != RDMA_WC_SUCCESS);
    return true;
}

/* Read the new page list first: after a resize of the core nothing can fail. */
static int resize(VirtIORdma *s, VirtIORdmaCq *cq,
                  const struct virtio_rdma_resize_cq_req *cmd)
{
    RdmaHcaPages list = VIRTIO_RDMA_QUEUE_PAGES(cmd);
    uint32_t cqe = le32_to_cpu(cmd->cqe);
    RdmaHcaExtents pages;
    uint32_t unconsumed;
    int ret = virtio_rdma_direct_cq_check(cqe, cmd->depth_shift, &list) ?:
              rdma_hca_extents_read_on(&s->hca, &list, &pages);

    if (ret) {
        return ret;
    }
    if (!count(s, cq, &unconsumed) ||
        !rdma_hca_check_range("CQEs that are not consumed", unconsumed, 0,
                              cqe)) {
        ret = -EINVAL;
    } else {
        ret = rdma_hca_cq_resize(&s->hca, &cq->core, cqe);
    }
    if (ret) {
        rdma_hca_extents_free(&s->hca, &pages);
        return ret;
    }
    rdma_hca_extents_free(&s->hca, &cq->pages);
    cq->pages = pages;
    cq->depth_shift = cmd->depth_shift;
    virtio_rdma_direct_cq_start(cq);
    return 0;
}

/* Nothing ever waits. */
static bool flush(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget)
{
    return true;
}

static int arm(VirtIORdma *s, VirtIORdmaCq *cq, VirtIORdmaArm type)
{
    qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: CQ %u is a direct one, which "
                  "is armed in memory\n", cq->core.cqn);
    return -EINVAL;
}

static void inspect(const RdmaHcaCq *core, RdmaCqInfo *info)
{
    const VirtIORdmaCq *cq = virtio_rdma_cq(core);

    info->has_eqn = cq->eq;
    info->eqn = cq->eq ? cq->eq->core.cqn : 0;
}

const VirtIORdmaCqOps virtio_rdma_cq_direct_ops = {
    .core = {
        .direct = true,
        .complete = complete,
        .inspect = inspect,
    },
    .max_cqe = max_cqe,
    .flush = flush,
    .take_arm = take_arm,
    .arm = arm,
    .resize = resize,
};

void virtio_rdma_direct_cq_start(VirtIORdmaCq *cq)
{
    rdma_hca_cursor_init(&cq->slots, &cq->pages, 1);
    cq->counters = rdma_hca_extents_first(&cq->pages);
    cq->core.ops = &virtio_rdma_cq_direct_ops.core;
}

bool virtio_rdma_direct_cq_load(VirtIORdma *s, VirtIORdmaCq *cq,
                                const RdmaHcaRecord *r)
{
    RdmaHcaPages list = { .npages = cq->pages.npages };

    if (!rdma_hca_record_max(r, "arm", cq->arm, VIRTIO_RDMA_ARM_NONE) ||
        !rdma_hca_record_max(r, "n_backlog of a direct CQ", cq->n_backlog,
                             0) ||
        !rdma_hca_record_check(r, !cq->core.is_eq, "events", 1,
                               "0 if direct") ||
        !rdma_hca_record_check(r, virtio_rdma_direct_cq_check(
                                   cq->core.cqe, cq->depth_shift, &list) == 0,
                               "pages", list.npages, "as many as it has") ||
        !rdma_hca_record_max(r, "CQEs that are not consumed",
                             cq->produced - cq->consumed,
                             1u << cq->depth_shift) ||
        !rdma_hca_record_charge(&s->hca, r, &cq->pages)) {
        return false;
    }
    virtio_rdma_direct_cq_start(cq);
    return true;
}
