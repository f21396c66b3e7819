/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shadows of pages of doorbells. While a shadow is awake, the bottom half polls
 * it for QPs that the driver has marked, and the driver need not ring.
 *
 * Nothing in a shadow is trusted. A mark has only the effect of a doorbell: the
 * QP is scheduled, if the page of doorbells is its own, and the turn pays.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "queue.h"

#define WORD_BITS 32
#define SUMMARY_WORDS (VIRTIO_RDMA_SHADOW_WORDS / WORD_BITS)

QEMU_BUILD_BUG_ON(VIRTIO_RDMA_MAX_QP > VIRTIO_RDMA_SHADOW_WORDS * WORD_BITS);
QEMU_BUILD_BUG_ON(sizeof(struct virtio_rdma_shadow_page) > RDMA_PAGE_SIZE);

void virtio_rdma_shadows_init(VirtIORdma *s)
{
    QTAILQ_INIT(&s->awake_shadows);
    s->shadows = g_new0(VirtIORdmaShadow, s->doorbells);
}

void virtio_rdma_shadows_free(VirtIORdma *s)
{
    g_free(s->shadows);
    s->shadows = NULL;
}

static uint32_t page_of(VirtIORdma *s, const VirtIORdmaShadow *shadow)
{
    return shadow - s->shadows;
}

static void fall_asleep(VirtIORdma *s, VirtIORdmaShadow *shadow)
{
    if (virtio_rdma_shadow_is_awake(shadow)) {
        QTAILQ_REMOVE(&s->awake_shadows, shadow, next);
    }
}

void virtio_rdma_shadow_drop(VirtIORdma *s, uint32_t page)
{
    VirtIORdmaShadow *shadow = &s->shadows[page];

    fall_asleep(s, shadow);
    shadow->is_on = false;
    memset(shadow->left, 0, sizeof(shadow->left));
}

void virtio_rdma_shadows_reset(VirtIORdma *s)
{
    for (uint32_t page = 0; page < s->doorbells; page++) {
        virtio_rdma_shadow_drop(s, page);
    }
}

/* The shadow is not in RAM any more: remove it. */
static void drop_unreadable(VirtIORdma *s, VirtIORdmaShadow *shadow)
{
    qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: the shadow of page %u of the "
                  "doorbells is not in RAM\n", page_of(s, shadow));
    virtio_rdma_shadow_drop(s, page_of(s, shadow));
}

static bool store_awake(VirtIORdma *s, uint64_t addr, bool awake)
{
    return rdma_hca_store_word(rdma_hca_ram(&s->hca), addr +
                               VIRTIO_RDMA_AT(shadow_page, awake), awake);
}

int virtio_rdma_shadow_set(VirtIORdma *s, uint32_t page, uint64_t addr)
{
    VirtIORdmaShadow *shadow = &s->shadows[page];

    if (!store_awake(s, addr, false)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: 0x%" PRIx64 ", the shadow "
                      "of page %u of the doorbells, is not in RAM\n", addr,
                      page);
        return -EINVAL;
    }
    virtio_rdma_shadow_drop(s, page);
    shadow->addr = addr;
    shadow->is_on = true;
    return 0;
}

void virtio_rdma_shadow_load(VirtIORdma *s, uint32_t page, uint64_t addr)
{
    VirtIORdmaShadow *shadow = &s->shadows[page];

    shadow->addr = addr;
    shadow->is_on = true;
    /* The stream does not have the @left of the source: poll all words. */
    memset(shadow->left, 0xff, sizeof(shadow->left));
    QTAILQ_INSERT_TAIL(&s->awake_shadows, shadow, next);
}

static void wake(VirtIORdma *s, VirtIORdmaShadow *shadow)
{
    if (!shadow->is_on || virtio_rdma_shadow_is_awake(shadow)) {
        return;
    }
    if (!store_awake(s, shadow->addr, true)) {
        drop_unreadable(s, shadow);
        return;
    }
    QTAILQ_INSERT_TAIL(&s->awake_shadows, shadow, next);
    rdma_hca_work_schedule(&s->hca);
}

bool virtio_rdma_shadow_rang(VirtIORdma *s, uint32_t page, uint32_t qpn)
{
    VirtIORdmaShadow *shadow = &s->shadows[page];
    int64_t now = get_clock();

    if (now - shadow->rung_at < VIRTIO_RDMA_IN_A_ROW_NS &&
        qpn != shadow->rung_by) {
        wake(s, shadow);
    }
    shadow->rung_at = now;
    shadow->rung_by = qpn;
    return virtio_rdma_shadow_is_awake(shadow);
}

/* Schedule QPs that are marked in @word. False: the shadow is not in RAM. */
static bool take_marks(VirtIORdma *s, VirtIORdmaShadow *shadow, uint32_t word,
                       uint32_t *budget, bool *found)
{
    uint32_t bits;

    if (!rdma_hca_take_bits(rdma_hca_ram(&s->hca), shadow->addr +
                            VIRTIO_RDMA_AT(shadow_page, marked[word]), &bits)) {
        return false;
    }
    for (; bits; bits &= bits - 1) {
        uint32_t qpn = word * WORD_BITS + ctz32(bits);
        VirtIORdmaQp *qp = virtio_rdma_direct_qp_at(s, page_of(s, shadow),
                                                    qpn);

        rdma_work_pay(budget, RDMA_WORK_ENTRY);
        if (qp) {
            *found = true;
            rdma_hca_qp_schedule(&s->hca, &qp->core);
        }
    }
    return true;
}

/*
 * Take the marks of the words in shadow->left[@n]. Words over budget stay in
 * @left. Do not set their summary bits again: with single-threaded TCG the
 * guest's operations are not atomic against this thread.
 */
static bool take_words(VirtIORdma *s, VirtIORdmaShadow *shadow, uint32_t n,
                       uint32_t *budget, bool *found)
{
    uint32_t *left = &shadow->left[n];

    for (; *left; *left &= *left - 1) {
        if (!*budget) {
            *found = true;
            return true;
        }
        rdma_work_pay(budget, RDMA_WORK_POLL);
        if (!take_marks(s, shadow, n * WORD_BITS + ctz32(*left), budget,
                        found)) {
            return false;
        }
    }
    return true;
}

/* Schedule all QPs that are marked. False: the shadow is not in RAM. */
static bool schedule_marked(VirtIORdma *s, VirtIORdmaShadow *shadow,
                            uint32_t *budget, bool *found)
{
    const RdmaRam *ram = rdma_hca_ram(&s->hca);
    uint64_t at = shadow->addr + VIRTIO_RDMA_AT(shadow_page, summary);
    uint32_t summary[SUMMARY_WORDS], bits;

    if (!rdma_hca_read_ram(ram, at, summary, sizeof(summary))) {
        return false;
    }
    for (uint32_t n = 0; n < SUMMARY_WORDS; n++) {
        if (summary[n]) {
            if (!rdma_hca_take_bits(ram, at + n * sizeof(bits), &bits)) {
                return false;
            }
            shadow->left[n] |= bits;
        }
        if (!take_words(s, shadow, n, budget, found)) {
            return false;
        }
    }
    return true;
}

/* Poll @shadow. Put it to sleep if nothing was marked for poll-max-ns. */
static bool run(VirtIORdma *s, VirtIORdmaShadow *shadow, uint32_t *budget)
{
    bool found = false;

    if (!schedule_marked(s, shadow, budget, &found)) {
        return false;
    }
    if (found) {
        shadow->poll_until = virtio_rdma_poll_end(s);
        return true;
    }
    if (virtio_rdma_polls_until(shadow->poll_until)) {
        return true;
    }
    if (!store_awake(s, shadow->addr, false)) {
        return false;
    }
    /*
     * Pairs with the driver's barrier between the marks and reading @awake:
     * either the driver rings, or the device sees the marks.
     */
    smp_mb();
    if (!schedule_marked(s, shadow, budget, &found)) {
        return false;
    }
    if (found) {
        return store_awake(s, shadow->addr, true);
    }
    fall_asleep(s, shadow);
    return true;
}

void virtio_rdma_shadows_run(VirtIORdma *s)
{
    uint32_t budget = RDMA_TURN_BUDGET;
    VirtIORdmaShadow *shadow, *next;

    QTAILQ_FOREACH_SAFE(shadow, &s->awake_shadows, next, next) {
        if (budget && !run(s, shadow, &budget)) {
            drop_unreadable(s, shadow);
        }
    }
    shadow = QTAILQ_FIRST(&s->awake_shadows);
    if (shadow) {
        /* The next turn begins with another shadow, so that none starves. */
        QTAILQ_REMOVE(&s->awake_shadows, shadow, next);
        QTAILQ_INSERT_TAIL(&s->awake_shadows, shadow, next);
        rdma_hca_work_schedule(&s->hca);
    }
}
