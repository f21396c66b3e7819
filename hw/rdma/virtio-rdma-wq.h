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

/*
 * The two forms of work queues: virtqueues (virtio-rdma-wq-vq.c), and slots
 * (virtio-rdma-slots.c). No other file asks which form a queue has.
 */
typedef struct VirtIORdmaWqOps {
    RdmaHcaWqOps core;
    /* See virtio_rdma_wq_depth(). */
    uint32_t (*depth)(const RdmaHcaWq *wq);
    /*
     * Copy the next WQE, or as much of it as fits, to the scratch buffer; what
     * retire() has to know of it, to @inflight. False if there is none.
     */
    bool (*take)(VirtIORdma *s, RdmaHcaWq *wq, VirtIORdmaTaken *t,
                 RdmaHcaInflight *inflight);
    /* Undo the last take(). */
    void (*put_back)(VirtIORdma *s, RdmaHcaWq *wq, VirtIORdmaTaken *t);
    /* Return the oldest @count that are in flight to the driver. Optional. */
    void (*retire)(VirtIORdma *s, RdmaHcaWq *wq, uint32_t count);
    /* See virtio_rdma_wq_check(). */
    bool (*check)(VirtIORdma *s, RdmaHcaWq *wq);
    /* See virtio_rdma_wq_ring(). Optional. */
    void (*ring)(VirtIORdma *s, RdmaHcaWq *wq, bool alone);
    /* See virtio_rdma_wq_wake(). */
    bool (*wake)(VirtIORdma *s, RdmaHcaWq *wq);
    /* See virtio_rdma_wq_sleep(). */
    RdmaNext (*sleep)(VirtIORdma *s, RdmaHcaWq *wq);
    /* Drop what was not taken, after @n WQEs were returned just before. */
    void (*drain)(VirtIORdma *s, RdmaHcaWq *wq, uint32_t n);
    /* See virtio_rdma_wq_restore_order(). Optional. */
    void (*restore_order)(VirtIORdma *s, RdmaHcaWq *wq);
    /* The driver has destroyed the queue. Optional. */
    void (*destroyed)(VirtIORdma *s, RdmaHcaWq *wq);
    /*
     * Entries of the ring that RdmaHcaInflight is about. NULL: there is no
     * ring, and index and ndescs are 0.
     */
    uint32_t (*ring_size)(VirtIORdma *s, const RdmaHcaWq *wq);
} VirtIORdmaWqOps;

extern const VirtIORdmaWqOps virtio_rdma_wq_vq_ops;
extern const VirtIORdmaWqOps virtio_rdma_wq_slots_ops;

/*
 * Take the next WQE of @wq to the scratch buffer, padded to @fixed bytes; it
 * is the newest in flight then. False if there is none; a queue whose driver
 * counts wrongly is broken then.
 */
bool virtio_rdma_wq_take(VirtIORdma *s, RdmaHcaWq *wq, size_t fixed,
                         VirtIORdmaTaken *t);
/* Undo it. */
void virtio_rdma_wq_put_back(VirtIORdma *s, RdmaHcaWq *wq,
                             VirtIORdmaTaken *t);
/*
 * There was no WQE: have the driver ring for the next one. RDMA_NEXT_WR if
 * there is one already; RDMA_NEXT_LATER, of an SQ only, if the device polls
 * the queue in its next turn instead.
 */
RdmaNext virtio_rdma_wq_sleep(VirtIORdma *s, RdmaHcaWq *wq);
/*
 * Decode the list of a WQE of @len bytes, which follows its @fixed bytes in the
 * scratch buffer, to s->scratch->sge. False if it may not be so long.
 */
bool virtio_rdma_wq_get_sges(VirtIORdma *s, uint32_t max_sge,
                             uint32_t num_sge, size_t fixed, size_t len);
RdmaHcaInflight *virtio_rdma_wq_newest(RdmaHcaWq *wq);

#endif
