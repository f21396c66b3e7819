/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interface between the files that implement work queues.
 */
#ifndef HW_RDMA_VIRTIO_WQ_H
#define HW_RDMA_VIRTIO_WQ_H

#include "queue.h"

/* A WQE that was taken: it is in the scratch buffer. */
typedef struct VirtIORdmaTaken {
    size_t len;                     /* bytes in guest memory */
    uint32_t cost;                  /* see RdmaSendWr */
    VirtQueueElement *elem;         /* or NULL: it comes from a slot */
} VirtIORdmaTaken;

/* Buffers for one WQE, allocated once. */
struct VirtIORdmaScratch {
    size_t wqe_room;
    uint8_t *slot;                  /* the length of the WQE, and then @wqe */
    uint8_t *wqe;
    /* The last of an SQ, which may be put back, and of any other queue */
    VirtIORdmaTaken send;
    VirtIORdmaTaken recv;
};

/*
 * The two forms of work queues: virtqueues (wq-vq.c), and slots
 * (wq-slots.c). No other file asks which form a queue has.
 */
extern const RdmaHcaWqOps virtio_rdma_wq_vq_ops;
extern const RdmaHcaWqOps virtio_rdma_wq_slots_ops;

/*
 * For RdmaHcaWqOps.take(): what to note of the WQE that take() copies to the
 * scratch buffer. The note of the last one of the same direction is dropped.
 */
VirtIORdmaTaken *virtio_rdma_scratch_begin(VirtIORdma *s, const RdmaHcaWq *wq);

#endif
