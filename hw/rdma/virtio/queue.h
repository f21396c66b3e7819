/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "queue" of the virtio-rdma device: the objects as the data path sees
 * them, and the ways of WQEs, completions and events between the virtqueues
 * and the backend.
 */
#ifndef HW_RDMA_VIRTIO_QUEUE_H
#define HW_RDMA_VIRTIO_QUEUE_H

#include "core.h"

typedef enum VirtIORdmaArm {
    VIRTIO_RDMA_ARM_NONE,
    VIRTIO_RDMA_ARM_SOLICITED,
    VIRTIO_RDMA_ARM_NEXT,
} VirtIORdmaArm;

/* A completion, which may wait in its CQ for a buffer of the driver. */
typedef struct VirtIORdmaCqe {
    uint32_t qpn;
    uint8_t solicited;              /* bool: or unsuccessful */
    uint8_t bytes[VIRTIO_RDMA_CQE_ROOM]; /* as the driver will see it */
} VirtIORdmaCqe;

/* The slots of a direct queue, in memory of the driver */
typedef struct VirtIORdmaSlots {
    const uint64_t *pages;          /* NULL: the queue is a virtqueue */
    uint64_t producer;              /* where the driver counts WQEs */
    uint64_t awake;                 /* where the device says that it looks */
    uint32_t depth;                 /* power of 2 */
    uint32_t slot_shift;
    uint32_t taken;                 /* WQEs, free-running as the producer */
    uint32_t seen;                  /* the producer when it was read last */
    bool is_awake;
    bool in_doubt;                  /* memory may say otherwise */
    /* Of an SQ */
    bool rung;                      /* a doorbell came after the last take() */
    uint32_t slept_at;              /* @taken when the queue was last empty */
    uint32_t rescan_threshold;      /* WQEs since then that merit a rescan */
} VirtIORdmaSlots;

/* A CQ, or an event queue */
typedef struct VirtIORdmaCq VirtIORdmaCq;
struct VirtIORdmaCq {
    RdmaHcaCq core;
    /* VirtIORdmaArm; NONE after an interrupt, except with F_VERSION_1 */
    uint8_t arm;
    uint16_t seen;                  /* for virtio_rdma_ring_check() */
    VirtQueue *vq;                  /* NULL: it is a direct CQ */
    /* F_VERSION_1: at most @cqe, in blocks; NULL: none has come yet */
    uint32_t n_backlog;
    uint32_t backlog_head;          /* the oldest, in the first block */
    GPtrArray *backlog;
    /* Of a direct CQ: its memory, and CQEs, free-running */
    uint64_t *pages;
    uint32_t npages;
    uint8_t depth_shift;
    uint32_t produced;
    uint32_t consumed;              /* the consumer when it was read last */
    uint32_t fired;                 /* the request that raised an event last */
    VirtIORdmaCq *eq;               /* or NULL: it raises no events */
    bool completed;                 /* is in VirtIORdma.completed_cqs */
    bool solicited;                 /* one of these completions */
    bool event_waits;               /* is in eq->events */
    bool scheduled;                 /* an event queue: is in sched_eqs */
    QTAILQ_ENTRY(VirtIORdmaCq) next_eq;
    QTAILQ_ENTRY(VirtIORdmaCq) next_completed;
    QTAILQ_ENTRY(VirtIORdmaCq) next_event;
    /* Of an event queue: the CQs whose events find no buffer */
    QTAILQ_HEAD(, VirtIORdmaCq) events;
};

/* What a virtqueue, or slots, are to a work queue: RdmaHcaWq.opaque */
typedef struct VirtIORdmaWq {
    VirtQueue *vq;                  /* or NULL */
    uint16_t seen;                  /* for virtio_rdma_ring_check() */
    VirtIORdmaSlots slots;
} VirtIORdmaWq;

typedef struct VirtIORdmaSrq {
    RdmaHcaSrq core;
    VirtIORdmaWq wq;
    VirtIORdmaDirectSrq direct;     /* of a direct SRQ */
    uint64_t *pages;                /* of its memory, or NULL */
} VirtIORdmaSrq;

typedef struct VirtIORdmaQp {
    RdmaHcaQp core;
    VirtIORdmaWq sq;
    VirtIORdmaWq rq;
    VirtIORdmaDirectQp direct;      /* without pages: it has virtqueues */
    uint64_t *pages;                /* of the memory of a direct QP, or NULL */
    int64_t rung_at;                /* the last doorbell, in host time */
} VirtIORdmaQp;

static inline VirtIORdma *virtio_rdma_of(RdmaHca *hca)
{
    return container_of(hca, VirtIORdma, hca);
}

static inline VirtIORdmaWq *virtio_rdma_wq(const RdmaHcaWq *wq)
{
    return wq->opaque;
}

static inline VirtIORdmaCq *virtio_rdma_cq(RdmaHcaCq *cq)
{
    return container_of(cq, VirtIORdmaCq, core);
}

static inline VirtIORdmaQp *virtio_rdma_qp(RdmaHcaQp *qp)
{
    return container_of(qp, VirtIORdmaQp, core);
}

static inline VirtIORdmaSrq *virtio_rdma_srq(RdmaHcaSrq *srq)
{
    return container_of(srq, VirtIORdmaSrq, core);
}

/*
 * The forms of CQs: virtqueues (cq-vq.c) and slots
 * (cq-slots.c). No other file asks which form a CQ has.
 */
typedef struct VirtIORdmaCqOps {
    RdmaHcaCqOps core;
    /* The greatest depth that the driver can ask for */
    uint32_t (*max_cqe)(VirtIORdma *s);
    /*
     * Write what waits, while there is room and @budget. False: the driver
     * broke a rule, and the CQ enters its error. NULL: nothing ever waits.
     */
    bool (*flush)(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget);
    /*
     * Does the driver want an event for what was written, @solicited or not? If
     * so, consume the arm request. Call after a full barrier. Only of CQs with
     * an event queue.
     */
    bool (*fires)(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited);
    /* The command REQ_NOTIFY_CQ. NULL: the driver arms it in memory. */
    void (*arm)(VirtIORdma *s, VirtIORdmaCq *cq, VirtIORdmaArm type);
    /* The command RESIZE_CQ, for the backend too. 0 or a negative errno. */
    int (*resize)(VirtIORdma *s, VirtIORdmaCq *cq, const VirtIORdmaReq *req);
} VirtIORdmaCqOps;

extern const VirtIORdmaCqOps virtio_rdma_cq_vq_ops;
extern const VirtIORdmaCqOps virtio_rdma_cq_slots_ops;
/* Event queues, in eq.c */
extern const VirtIORdmaCqOps virtio_rdma_eq_ops;

static inline const VirtIORdmaCqOps *virtio_rdma_cq_ops(const VirtIORdmaCq *cq)
{
    return container_of(cq->core.ops, VirtIORdmaCqOps, core);
}

/* The event queue @eqn, or NULL */
static inline VirtIORdmaCq *virtio_rdma_eq_get(VirtIORdma *s, uint32_t eqn)
{
    RdmaHcaCq *eq = rdma_hca_table_get(&s->hca.cqs, eqn);

    return eq && eq->is_eq ? virtio_rdma_cq(eq) : NULL;
}

/* event-vq.c: the event virtqueue */

void virtio_rdma_events_init(VirtIORdma *s);
/* The event virtqueue was reset: pending events wait until it is enabled. */
void virtio_rdma_events_reset_vq(VirtIORdma *s);
/* After migration */
void virtio_rdma_events_load(VirtIORdma *s);
/* The bottom half writes pending events while there are buffers. */
void virtio_rdma_events_run(VirtIORdma *s);

/* vq-sched.c: virtqueues that the bottom half looks at */

/* The backlogs of all CQs */
void virtio_rdma_cqs_schedule(VirtIORdma *s);
/* The event virtqueue */
void virtio_rdma_events_schedule(VirtIORdma *s);
/* All there is */
void virtio_rdma_all_schedule(VirtIORdma *s);

/* The shadow of a page of doorbells */
struct VirtIORdmaShadow {
    uint64_t addr;
    bool is_on;                     /* there is one */
    bool is_awake;                  /* is in VirtIORdma.awake_shadows */
    /* Bits that were taken of the summary, and wait for another turn */
    uint32_t left[VIRTIO_RDMA_SHADOW_WORDS / 32];
    int64_t rung_at;                /* the last doorbell, in host time */
    QTAILQ_ENTRY(VirtIORdmaShadow) next;
};

/* The virtqueue of an SRQ */
static inline uint32_t virtio_rdma_srq_vq(const VirtIORdma *s, uint32_t srqn)
{
    return VIRTIO_RDMA_SRQ_VQ(s->max_vq_cq, s->max_vq_qp, srqn);
}

/* ioeventfd.c: host notifiers */

/* Of VirtioDeviceClass */
int virtio_rdma_ioeventfd_start(VirtIODevice *vdev);
void virtio_rdma_ioeventfd_stop(VirtIODevice *vdev);
/* Give the virtqueues of an object, if any, notifiers, or take them away. */
void virtio_rdma_qp_set_notifiers(VirtIORdma *s, uint32_t qpn, bool assign);
void virtio_rdma_srq_set_notifier(VirtIORdma *s, uint32_t srqn, bool assign);

/* cq-slots.c: completion queues without a virtqueue */

/* Can a direct CQ of depth @cqe have this memory? 0 or -EINVAL. */
int virtio_rdma_direct_cq_check(uint32_t cqe, VirtIORdmaDirectCq *direct);
/* Have @cq lie in @pages, which it frees in the end, from now on. */
void virtio_rdma_direct_cq_start(VirtIORdma *s, VirtIORdmaCq *cq,
                                 const VirtIORdmaDirectCq *direct,
                                 uint64_t *pages);
void virtio_rdma_direct_cq_stop(VirtIORdma *s, VirtIORdmaCq *cq);

/* eq.c: event queues */

/* Have the events of the new @cq go to @eq. */
void virtio_rdma_eq_attach(VirtIORdmaCq *cq, VirtIORdmaCq *eq);
/* No event of @cq is pending any more, and there are no new ones. */
void virtio_rdma_eq_detach(VirtIORdma *s, VirtIORdmaCq *cq);
/* Raise no events any more, but one that tells so. */
void virtio_rdma_eq_fail(VirtIORdma *s, VirtIORdmaCq *eq);
/* @cq has an event for its event queue. */
void virtio_rdma_eq_add(VirtIORdmaCq *cq);
/* Write the events that the iothread has, as far as the turn goes. */
void virtio_rdma_eqs_run(VirtIORdma *s);
/* A CQE was written to @cq: it may raise an event when the backend is left. */
void virtio_rdma_eq_completed(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited);
/* Of RdmaHcaOps.flush(): raise these events, and notify the driver. */
void virtio_rdma_eqs_flush(VirtIORdma *s);

/* cq-vq.c: completion queues that are virtqueues */

/* Have the CQ or event queue lie in the virtqueue of its number. */
void virtio_rdma_cq_use_vq(VirtIORdma *s, VirtIORdmaCq *cq);
/* The same for a new one */
void virtio_rdma_cq_start_vq(VirtIORdma *s, VirtIORdmaCq *cq);
/* A completion, encoded */
VirtIORdmaCqe virtio_rdma_cqe(VirtIORdma *s, const RdmaWc *wc, bool solicited);
/*
 * Write what waits in the CQ or event queue, while there are buffers, and
 * budget for them. False if the CQ is in error, or enters it.
 */
bool virtio_rdma_cq_flush(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget);
/* The CQ or event queue at virtqueue @n, or NULL. */
VirtIORdmaCq *virtio_rdma_cq_of_vq(VirtIORdma *s, uint32_t n);

/* cq-backlog.c: completions that wait for a buffer */

/*
 * Add a completion to the backlog; false if that has cq->cqe of them, or there
 * is no memory.
 */
bool virtio_rdma_cq_backlog_add(VirtIORdmaCq *cq, const VirtIORdmaCqe *cqe);
/* The @i-th oldest completion of the backlog. */
VirtIORdmaCqe *virtio_rdma_cq_backlog_at(VirtIORdmaCq *cq, uint32_t i);
/* Remove the oldest one, or all. */
void virtio_rdma_cq_backlog_take(VirtIORdmaCq *cq);
void virtio_rdma_cq_backlog_clear(VirtIORdmaCq *cq);
/* Of RdmaHcaCqOps. Paid by the command. */
void virtio_rdma_cq_forget_qp(RdmaHca *hca, RdmaHcaCq *core, uint32_t qpn);

/* wq-slots.c: work queues without a virtqueue */

/* Can a direct QP with these capabilities have such queues? 0 or -EINVAL. */
int virtio_rdma_direct_check(VirtIORdma *s, const RdmaQpInitAttr *init,
                             VirtIORdmaDirectQp *direct);
/* Have the queues of @qp lie in @pages, which it frees in the end. */
void virtio_rdma_direct_start(VirtIORdma *s, VirtIORdmaQp *qp,
                              const VirtIORdmaDirectQp *direct,
                              uint64_t *pages);
void virtio_rdma_direct_stop(VirtIORdma *s, VirtIORdmaQp *qp);
/* The same for an SRQ */
int virtio_rdma_direct_srq_check(VirtIORdma *s, const RdmaSrqAttr *attr,
                                 VirtIORdmaDirectSrq *direct);
void virtio_rdma_direct_srq_start(VirtIORdma *s, VirtIORdmaSrq *srq,
                                  const VirtIORdmaDirectSrq *direct,
                                  uint64_t *pages);
void virtio_rdma_direct_srq_stop(VirtIORdma *s, VirtIORdmaSrq *srq);
/* The direct QP, or SRQ, that is rung on this page of doorbells; or NULL */
VirtIORdmaQp *virtio_rdma_direct_qp_at(VirtIORdma *s, uint32_t doorbell,
                                       uint32_t qpn);
VirtIORdmaSrq *virtio_rdma_direct_srq_at(VirtIORdma *s, uint32_t doorbell,
                                         uint32_t srqn);

/* shadow.c: shadows of pages of doorbells, of s->doorbells pages */

void virtio_rdma_shadows_init(VirtIORdma *s);
void virtio_rdma_shadows_free(VirtIORdma *s);
/* No page has one. */
void virtio_rdma_shadows_reset(VirtIORdma *s);
/* @page has one at @addr. -EINVAL if that is not RAM: nothing changes. */
int virtio_rdma_shadow_set(VirtIORdma *s, uint32_t page, uint64_t addr);
/* The same after migration, before guest memory may be touched */
void virtio_rdma_shadow_load(VirtIORdma *s, uint32_t page, uint64_t addr);
/* @page has none. */
void virtio_rdma_shadow_drop(VirtIORdma *s, uint32_t page);
/* The driver need not ring on @page, if there is one: the device will look. */
void virtio_rdma_shadow_wake(VirtIORdma *s, uint32_t page);
/* Schedule the QPs that are marked; those without marks fall asleep. */
void virtio_rdma_shadows_run(VirtIORdma *s, uint32_t *budget);

/* wq-vq.c: work queues that are virtqueues */

/* Have the queue lie in virtqueue @n. */
void virtio_rdma_wq_use_vq(VirtIORdma *s, RdmaHcaWq *wq, uint32_t n);
/* The queue of a QP or SRQ at virtqueue @n, or NULL. */
RdmaHcaWq *virtio_rdma_wq_of_vq(VirtIORdma *s, uint32_t n);

/* decode.c: WQEs */

void virtio_rdma_scratch_init(VirtIORdma *s);
void virtio_rdma_scratch_free(VirtIORdma *s);
/* Of RdmaHcaOps */
void virtio_rdma_decode_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr);
void virtio_rdma_decode_recv(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr);

/* form.c: objects with queues */

/* An object of the core, see rdma_hca_cq_add(), that is given its form next */
VirtIORdmaCq *virtio_rdma_cq_add(VirtIORdma *s, uint32_t cqn, uint32_t cqe);
VirtIORdmaSrq *virtio_rdma_srq_add(VirtIORdma *s, const RdmaSrqAttr *attr);
VirtIORdmaQp *virtio_rdma_qp_add(VirtIORdma *s, const RdmaQpInitAttr *init);
/* The new @srq, or @qp, has the virtqueues of its number. */
void virtio_rdma_srq_use_vq(VirtIORdma *s, VirtIORdmaSrq *srq);
void virtio_rdma_qp_use_vqs(VirtIORdma *s, VirtIORdmaQp *qp);
/* Remove all objects, after the backend has done so. */
void virtio_rdma_objects_reset(VirtIORdma *s);
/* Of RdmaHcaOps */
void virtio_rdma_cq_free(RdmaHca *hca, RdmaHcaCq *core);
void virtio_rdma_srq_free(RdmaHca *hca, RdmaHcaSrq *core);
void virtio_rdma_qp_free(RdmaHca *hca, RdmaHcaQp *core);

#endif
