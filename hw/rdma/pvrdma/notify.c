/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings that the device fills: events, and CQs with new completions. The driver
 * does not report consumed entries, so a full ring is retried after RETRY_MS.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "trace.h"
#include "int.h"

#define RETRY_MS 10

/* Follow a directory to its page @index. */
static bool find_page(Pvrdma *s, uint64_t dir, unsigned index, uint64_t *page)
{
    uint64_t table;

    return !(dir & (RDMA_PAGE_SIZE - 1)) &&
           rdma_hca_read_addrs(pvrdma_ram(s), dir, 1, &table) &&
           !(table & (RDMA_PAGE_SIZE - 1)) &&
           rdma_hca_read_addrs(pvrdma_ram(s), table + index * sizeof(table), 1,
                               page) &&
           !(*page & (RDMA_PAGE_SIZE - 1));
}

static bool start(Pvrdma *s, PvrdmaDeviceRing *ring, const PvrdmaRingDir *dir)
{
    uint64_t state, elements;

    if (!le32_to_cpu(dir->num_pages) || le32_to_cpu(dir->num_pages) % 2 ||
        !find_page(s, le64_to_cpu(dir->dir), 0, &state) ||
        !find_page(s, le64_to_cpu(dir->dir), 1, &elements)) {
        qemu_log_mask(LOG_GUEST_ERROR, "pvrdma: ring of the device with the "
                      "directory 0x%" PRIx64 ": expected an even number of "
                      "pages, in RAM and at multiples of 4096, got %u\n",
                      le64_to_cpu(dir->dir), le32_to_cpu(dir->num_pages));
        return false;
    }
    *ring = (PvrdmaDeviceRing) {
        .state = state + offsetof(PvrdmaStatePage, rx),
        .elements = elements,
    };
    return true;
}

void pvrdma_notify_init(Pvrdma *s)
{
    s->events.size = PVRDMA_EVENT_RING_SIZE;
    s->completions.size = PVRDMA_COMPLETION_RING_SIZE;
}

bool pvrdma_notify_start(Pvrdma *s, const PvrdmaDsr *dsr)
{
    if (!start(s, &s->events, &dsr->events) ||
        !start(s, &s->completions, &dsr->completions)) {
        return false;
    }
    pvrdma_notify_init(s);
    return true;
}

/* Add an element. False if there is no room, or not in RAM. */
static bool add(Pvrdma *s, PvrdmaDeviceRing *ring, const void *element,
                size_t size)
{
    uint32_t mask = 2 * ring->size - 1;
    uint32_t head;

    if (!rdma_hca_load_word(pvrdma_ram(s),
                            ring->state + offsetof(PvrdmaRingState, head),
                            &head) ||
        head > mask || ((ring->index - head) & mask) >= ring->size ||
        !rdma_hca_write_ram(pvrdma_ram(s), ring->elements +
                            (ring->index & (ring->size - 1)) * size,
                            element, size)) {
        return false;
    }
    ring->index++;
    /* The driver reads the element after the index. */
    smp_wmb();
    return rdma_hca_store_word(pvrdma_ram(s),
                               ring->state + offsetof(PvrdmaRingState, tail),
                               ring->index & mask);
}

static bool may_notify(Pvrdma *s, unsigned vector)
{
    return pvrdma_is_active(s) && !pvrdma_is_masked(s, vector);
}

static void retry_later(Pvrdma *s)
{
    timer_mod(s->retry, qemu_clock_get_ms(QEMU_CLOCK_VIRTUAL) + RETRY_MS);
}

void pvrdma_notify_fire(Pvrdma *s, PvrdmaCq *cq)
{
    if (!cq->fired) {
        cq->fired = true;
        QTAILQ_INSERT_TAIL(&s->fired, cq, next_fired);
    }
}

void pvrdma_notify_forget(Pvrdma *s, PvrdmaCq *cq)
{
    /* A CQ that is not completely loaded can have @fired without an entry. */
    if (QTAILQ_IN_USE(cq, next_fired)) {
        cq->fired = false;
        QTAILQ_REMOVE(&s->fired, cq, next_fired);
    }
}

void pvrdma_notify_completions(Pvrdma *s)
{
    bool added = false;
    PvrdmaCq *cq;

    if (QTAILQ_EMPTY(&s->fired) || !may_notify(s, PVRDMA_VECTOR_COMPLETION)) {
        return;
    }
    while ((cq = QTAILQ_FIRST(&s->fired))) {
        uint32_t handle = cpu_to_le32(cq->core.cqn);

        if (!add(s, &s->completions, &handle, sizeof(handle))) {
            retry_later(s);
            break;
        }
        trace_pvrdma_completion(s, cq->core.cqn);
        pvrdma_notify_forget(s, cq);
        added = true;
    }
    if (added) {
        pvrdma_interrupt(s, PVRDMA_VECTOR_COMPLETION);
    }
}

void pvrdma_notify_events(Pvrdma *s)
{
    bool added = false;
    const RdmaEvent *event;

    if (!may_notify(s, PVRDMA_VECTOR_EVENT)) {
        return;
    }
    while ((event = rdma_hca_events_next(&s->hca, NULL))) {
        PvrdmaEvent element = {
            .type = cpu_to_le32(event->type),
            .info = cpu_to_le32(event->id),
        };

        if (!add(s, &s->events, &element, sizeof(element))) {
            retry_later(s);
            break;
        }
        trace_pvrdma_event(s, event->type, event->id);
        rdma_hca_event_done(&s->hca, event);
        added = true;
    }
    if (added) {
        pvrdma_interrupt(s, PVRDMA_VECTOR_EVENT);
    }
}
