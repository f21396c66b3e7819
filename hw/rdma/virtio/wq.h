/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interface between the files that implement work queues.
 */
#ifndef HW_RDMA_VIRTIO_WQ_H
#define HW_RDMA_VIRTIO_WQ_H

#include "queue.h"

/* A WQE that was taken and copied to the scratch buffer */
typedef struct VirtIORdmaTaken {
    size_t len;                     /* bytes in guest memory */
    uint32_t cost;                  /* see RdmaSendWr */
    VirtQueueElement *elem;         /* NULL: the WQE comes from a slot */
} VirtIORdmaTaken;

/* Buffers for one WQE, allocated once for a device */
struct VirtIORdmaScratch {
    size_t wqe_room;
    uint8_t *slot;                  /* the length of the WQE, and then @wqe */
    uint8_t *wqe;
    /* The last WQE of an SQ, which may be put back, and of any other queue */
    VirtIORdmaTaken send;
    VirtIORdmaTaken recv;
};

/*
 * For RdmaHcaWqOps.take(): the VirtIORdmaTaken for the WQE that take() copies
 * to the scratch buffer, all zeros. This frees the last one of the same
 * direction.
 */
VirtIORdmaTaken *virtio_rdma_scratch_begin(VirtIORdma *s, const RdmaHcaWq *wq);

#endif
