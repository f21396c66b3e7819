/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adapter as a whole: its tables, their reset, and the list of all HCAs of
 * the machine.
 */
#include "qemu/osdep.h"
#include "hw/core/boards.h"
#include "qemu/units.h"
#include "int.h"

/*
 * The default limit of the pages of all page lists together: this number, or
 * MR_PAGES_FACTOR for each page of guest RAM if that is more
 */
#define MIN_MR_PAGES (8 * MiB)
#define MR_PAGES_FACTOR 4

RdmaHcas rdma_hcas = QTAILQ_HEAD_INITIALIZER(rdma_hcas);

void rdma_hca_init(RdmaHca *hca, const RdmaHcaOps *ops, Object *owner,
                   DeviceState *dev)
{
    hca->ops = ops;
    hca->owner = owner;
    hca->dev = dev;
    hca->ring_size = UINT32_MAX;
}

/*
 * Peers see the numbers of these objects. After each reset the numbers count up
 * from a random one, so a peer cannot know the first numbers of another guest.
 */
static void randomize_numbers(RdmaHca *hca)
{
    rdma_hca_table_scatter(&hca->mrs);
    rdma_hca_table_scatter(&hca->qps);
}

void rdma_hca_start(RdmaHca *hca)
{
    const RdmaBackendLimits *l = &hca->limits;
    uint32_t max_sge = MAX(MAX(l->max_send_sge, l->max_recv_sge),
                           l->max_srq_sge);

    if (!hca->max_mr_pages) {
        hca->max_mr_pages = MAX(MIN_MR_PAGES, MR_PAGES_FACTOR *
                                (current_machine->maxram_size >>
                                 RDMA_PAGE_SHIFT));
    }
    rdma_hca_events_init(hca);
    rdma_hca_table_init(&hca->pds, 1, l->max_pd + 1);
    rdma_hca_table_init(&hca->cqs, 0, l->max_cq);
    rdma_hca_table_init(&hca->mrs, 1, l->max_mr + l->max_mw + 1);
    rdma_hca_table_init(&hca->srqs, 0, l->max_srq);
    rdma_hca_table_init(&hca->qps, RDMA_QPN_GSI, l->max_qp);
    randomize_numbers(hca);
    hca->sge = g_new0(RdmaSge, MAX(max_sge, 1));
    rdma_hca_bhs_init(hca);
    hca->unrealizing = false;
    rdma_hca_counters_set(hca, NULL);
    QTAILQ_INSERT_TAIL(&rdma_hcas, hca, next);
}

/* Detaching may run a nested event loop: give the backend no more work. */
static void finish(RdmaHca *hca)
{
    rdma_hca_enter(hca);
    rdma_hca_set_running(hca, false, false);
    rdma_hca_leave(hca);
    hca->end(hca);
}

/*
 * The device is idle if its callers have returned to the main loop. Within a
 * nested event loop they have not, and this tries again.
 */
static void end_bh(void *opaque)
{
    RdmaHca *hca = opaque;
    Object *owner = hca->owner;
    Object *dev = OBJECT(hca->dev);

    if (rdma_hca_busy(hca)) {
        aio_bh_schedule_oneshot(qemu_get_aio_context(), end_bh, hca);
        return;
    }
    finish(hca);
    object_unref(owner);
    object_unref(dev);
}

void rdma_hca_end(RdmaHca *hca, void (*end)(RdmaHca *hca))
{
    QTAILQ_REMOVE(&rdma_hcas, hca, next);
    hca->unrealizing = true;
    hca->end = end;
    if (!rdma_hca_busy(hca)) {
        finish(hca);
        return;
    }
    rdma_backend_put_off(hca->backend, RDMA_HCA_PENDING_STOP);
    /* The address space may go first, so stop listening to it. */
    rdma_ram_cleanup(&hca->backend->ram);
    /* Keep the memory of owner and device until end_bh(). */
    object_ref(hca->owner);
    object_ref(OBJECT(hca->dev));
    aio_bh_schedule_oneshot(qemu_get_aio_context(), end_bh, hca);
}

static void remove_cqs(RdmaHca *hca, bool eqs)
{
    RdmaHcaCq *cq;

    RDMA_HCA_FOREACH(&hca->cqs, n, cq) {
        if (cq->is_eq == eqs) {
            rdma_hca_cq_remove(hca, cq);
        }
    }
}

/* Remove all objects, after the backend has removed its own. */
static void reset_objects(RdmaHca *hca)
{
    RdmaHcaSrq *srq;
    RdmaHcaMr *mr;
    RdmaHcaPd *pd;
    RdmaHcaQp *qp;

    RDMA_HCA_FOREACH(&hca->qps, n, qp) {
        rdma_hca_qp_remove(hca, qp);
    }
    RDMA_HCA_FOREACH(&hca->mrs, n, mr) {
        rdma_hca_mr_remove(hca, mr);
    }
    RDMA_HCA_FOREACH(&hca->srqs, n, srq) {
        rdma_hca_srq_remove(hca, srq);
    }
    remove_cqs(hca, false);
    remove_cqs(hca, true);
    RDMA_HCA_FOREACH(&hca->pds, n, pd) {
        rdma_hca_pd_remove(hca, pd);
    }
    hca->charged_pages = 0;
    hca->pds.next = hca->pds.first;
    hca->cqs.next = hca->cqs.first;
    hca->srqs.next = hca->srqs.first;
    randomize_numbers(hca);
}

void rdma_hca_reset(RdmaHca *hca)
{
    hca->bc->reset(hca->backend);
    rdma_hca_events_reset(hca);
    reset_objects(hca);
    rdma_hca_counters_set(hca, NULL);
    hca->extensions = 0;
    rdma_hca_bhs_reset(hca);
}

void rdma_hca_free(RdmaHca *hca)
{
    reset_objects(hca);
    rdma_hca_table_free(&hca->qps);
    rdma_hca_table_free(&hca->srqs);
    rdma_hca_table_free(&hca->mrs);
    rdma_hca_table_free(&hca->cqs);
    rdma_hca_table_free(&hca->pds);
    rdma_hca_faults_free(hca);
    rdma_hca_events_free(hca);
    rdma_hca_bhs_free(hca);
    g_clear_pointer(&hca->sge, g_free);
}
