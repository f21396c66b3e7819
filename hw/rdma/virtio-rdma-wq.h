/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interface between the files that implement work queues.
 */
#ifndef HW_RDMA_VIRTIO_RDMA_WQ_H
#define HW_RDMA_VIRTIO_RDMA_WQ_H

#include "virtio-rdma-queue.h"

/* A WQE that was taken: it is in the scratch buffer. */
typedef struct VirtIORdmaTaken {
    size_t len;                     /* bytes in guest memory */
    uint32_t cost;                  /* see RdmaSendWr */
    VirtQueueElement *elem;         /* or NULL: it comes from a slot */
} VirtIORdmaTaken;

/* Buffers for one WQE, allocated once. */
struct VirtIORdmaScratch {
    size_t wqe_room;
    uint8_t *wqe;
    RdmaSge *sge;
    VirtIORdmaTaken last;           /* by virtio_rdma_sq_next() */
};

/* How many WQEs may be in flight */
uint32_t virtio_rdma_wq_depth(const VirtIORdmaWq *wq);
/*
 * Take the next WQE of @wq to the scratch buffer, padded to @fixed bytes; it is
 * the newest in flight then. False if there is none.
 */
bool virtio_rdma_wq_take(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq,
                         size_t fixed, VirtIORdmaTaken *t);
/* Undo it. */
void virtio_rdma_wq_untake(VirtIORdma *s, VirtIORdmaWq *wq,
                           VirtIORdmaTaken *t);
/* The same of a direct queue, without noting that it is in flight */
bool virtio_rdma_wq_take_slot(VirtIORdma *s, VirtIORdmaSlots *slots,
                              size_t fixed, VirtIORdmaTaken *t, bool *broken);
/* Copy the WQE of @elem, or as much of it as fits: @t has @elem then. */
void virtio_rdma_wq_copy(VirtIORdma *s, VirtQueueElement *elem, size_t fixed,
                         VirtIORdmaTaken *t);
/*
 * Decode the list of a WQE of @len bytes, which follows its @fixed bytes in the
 * scratch buffer, to s->scratch->sge. False if it may not be so long.
 */
bool virtio_rdma_wq_get_sges(VirtIORdma *s, uint32_t max_sge,
                             uint32_t num_sge, size_t fixed, size_t len);
VirtIORdmaInflight *virtio_rdma_wq_newest(VirtIORdmaWq *wq);

#endif
