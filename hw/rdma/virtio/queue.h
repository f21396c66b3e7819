/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "queue" of the virtio-rdma device: CQs, SRQs and QPs with their forms,
 * and the paths of WQEs, completions and events between the driver and the core
 */
#ifndef HW_RDMA_VIRTIO_QUEUE_H
#define HW_RDMA_VIRTIO_QUEUE_H

#include "qemu/timer.h"
#include "base.h"

typedef enum VirtIORdmaArm {
    VIRTIO_RDMA_ARM_NONE,
    VIRTIO_RDMA_ARM_SOLICITED,
    VIRTIO_RDMA_ARM_NEXT,
} VirtIORdmaArm;

/* A completion, which may wait in its CQ for a buffer of the driver */
typedef struct VirtIORdmaCqe {
    uint32_t qpn;
    uint8_t solicited;              /* bool: solicited or failed */
    uint8_t bytes[VIRTIO_RDMA_CQE_ROOM]; /* as the driver will see it */
} VirtIORdmaCqe;

/* How the device polls a direct SQ, see sq-poll.c */
typedef struct VirtIORdmaPoll VirtIORdmaPoll;
struct VirtIORdmaPoll {
    bool is_on;                     /* the driver need not ring */
    uint8_t poor;                   /* intervals in a row with few sends */
    uint8_t skip;                   /* doorbells that do not start it */
    uint8_t backoff;                /* @skip after polling has ended */
    uint32_t start;                 /* @taken when the interval began */
    int64_t rung_at;                /* the last doorbell, in host time */
    int64_t until;                  /* poll-max-ns: do not stop before */
    /* Of VirtIORdma.polled_sqs; in use until the end of the interval */
    QTAILQ_ENTRY(VirtIORdmaPoll) next;
};

/* The slots of a direct queue, in memory of the driver */
typedef struct VirtIORdmaSlots {
    RdmaHcaCursor at;
    uint64_t producer;              /* address of the producer index */
    uint64_t awake;                 /* address: does the device poll? */
    uint32_t depth;                 /* power of 2 */
    uint32_t taken;                 /* WQEs, free-running as the producer */
    uint32_t seen;                  /* the producer when it was read last */
    bool is_awake;                  /* the device polls */
    bool in_doubt;                  /* the word at @awake may differ from it */
    /* Of an SQ */
    bool rung;                      /* a doorbell came after the last take() */
    VirtIORdmaPoll poll;
} VirtIORdmaSlots;

/* A CQ, or an event queue */
typedef struct VirtIORdmaCq VirtIORdmaCq;
struct VirtIORdmaCq {
    RdmaHcaCq core;
    /* VirtIORdmaArm. Without F_VERSION_1 an interrupt sets it to NONE. */
    uint8_t arm;
    VirtQueue *vq;                  /* NULL: a direct CQ */
    /* With F_VERSION_1: at most core.cqe, in blocks; NULL: empty */
    uint32_t n_backlog;
    uint32_t backlog_head;          /* index of the oldest in block 0 */
    GPtrArray *backlog;
    /* Of a direct CQ: its memory, and free-running counts of CQEs */
    RdmaHcaExtents pages;
    RdmaHcaCursor slots;
    uint64_t counters;              /* address of the first page */
    uint8_t depth_shift;
    uint32_t produced;
    uint32_t consumed;              /* the consumer when it was read last */
    uint32_t fired;                 /* the arm request of the last event */
    VirtIORdmaCq *eq;               /* NULL: the CQ raises no events */
    uint32_t eqn;                   /* its number, or VIRTIO_RDMA_EQN_NONE */
    bool solicited;                 /* in completed_cqs: one was solicited */
    bool event_waits;               /* is in eq->events */
    QTAILQ_ENTRY(VirtIORdmaCq) next_eq; /* of VirtIORdma.sched_eqs */
    QTAILQ_ENTRY(VirtIORdmaCq) next_completed; /* of completed_cqs */
    QTAILQ_ENTRY(VirtIORdmaCq) next_event;
    /* Of an event queue: the CQs whose events wait for a buffer */
    QTAILQ_HEAD(, VirtIORdmaCq) events;
};

/* The form of a work queue, RdmaHcaWq.opaque: a virtqueue or slots */
typedef struct VirtIORdmaWq {
    VirtQueue *vq;                  /* or NULL */
    uint32_t ndescs;                /* of @vq, of all WQEs in flight */
    /* Of slots: log2 of their number, and of the bytes of each */
    uint8_t depth_shift;
    uint8_t slot_shift;
    VirtIORdmaSlots slots;
} VirtIORdmaWq;

typedef struct VirtIORdmaSrq {
    RdmaHcaSrq core;
    VirtIORdmaWq wq;
    /* Of a direct SRQ: its memory, and its page of doorbells */
    RdmaHcaExtents pages;
    uint16_t doorbell;
} VirtIORdmaSrq;

typedef struct VirtIORdmaQp {
    RdmaHcaQp core;
    VirtIORdmaWq sq;
    VirtIORdmaWq rq;
    /* Of a direct QP: the memory of its queues, and its page of doorbells */
    RdmaHcaExtents pages;
    uint16_t doorbell;
} VirtIORdmaQp;

/*
 * A table of the core points to @core, the first member: such a pointer, or
 * NULL, is one to the whole object, too.
 */
QEMU_BUILD_BUG_ON(offsetof(VirtIORdmaCq, core));
QEMU_BUILD_BUG_ON(offsetof(VirtIORdmaSrq, core));
QEMU_BUILD_BUG_ON(offsetof(VirtIORdmaQp, core));

static inline VirtIORdma *virtio_rdma_of(RdmaHca *hca)
{
    return container_of(hca, VirtIORdma, hca);
}

static inline VirtIORdmaWq *virtio_rdma_wq(const RdmaHcaWq *wq)
{
    return wq->opaque;
}

static inline VirtIORdmaCq *virtio_rdma_cq(const RdmaHcaCq *cq)
{
    return container_of(cq, VirtIORdmaCq, core);
}

/*
 * The operations of the forms of CQs: virtqueues (cq-vq.c), slots (cq-direct.c)
 * and event queues (eq.c). Other files do not test the form of a CQ.
 */
typedef struct VirtIORdmaCqOps {
    RdmaHcaCqOps core;
    /* The greatest depth that the driver can ask for */
    uint32_t (*max_cqe)(VirtIORdma *s);
    /*
     * Write completions or events that wait, while there is room and @budget.
     * False: the driver broke a rule, and the caller puts the CQ into its error
     * state.
     */
    bool (*flush)(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget);
    /*
     * Consume the arm request if it matches the completions just written, and
     * return whether it does. @solicited: one of them was solicited. Call after
     * a full barrier, and only for CQs with an event queue.
     */
    bool (*take_arm)(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited);
    /* The command REQ_NOTIFY_CQ */
    int (*arm)(VirtIORdma *s, VirtIORdmaCq *cq, VirtIORdmaArm type);
    /* The command RESIZE_CQ; also resizes the CQ of the backend. */
    int (*resize)(VirtIORdma *s, VirtIORdmaCq *cq,
                  const struct virtio_rdma_resize_cq_req *cmd);
} VirtIORdmaCqOps;

extern const VirtIORdmaCqOps virtio_rdma_cq_vq_ops;
extern const VirtIORdmaCqOps virtio_rdma_cq_direct_ops;
/* Event queues, in eq.c */
extern const VirtIORdmaCqOps virtio_rdma_eq_ops;

static inline const VirtIORdmaCqOps *virtio_rdma_cq_ops(const VirtIORdmaCq *cq)
{
    return container_of(cq->core.ops, VirtIORdmaCqOps, core);
}

/* The event queue @eqn, or NULL */
static inline VirtIORdmaCq *virtio_rdma_eq_get(VirtIORdma *s, uint32_t eqn)
{
    VirtIORdmaCq *eq = rdma_hca_table_get(&s->hca.cqs, eqn);

    return eq && eq->core.is_eq ? eq : NULL;
}

/* Have the bottom half do the work of @flag, one of VirtIORdma.sched_*. */
static inline void virtio_rdma_schedule(VirtIORdma *s, bool *flag)
{
    *flag = true;
    rdma_hca_bh_schedule(&s->hca);
}

/* event-vq.c: the event virtqueue */

/* For the bottom half: write pending events while there are buffers. */
void virtio_rdma_events_run(VirtIORdma *s);

/*
 * Doorbells this close together mean back-to-back posts: replies of peers take
 * longer, unless the peer is in this guest.
 */
#define VIRTIO_RDMA_IN_A_ROW_NS (25 * SCALE_US)

/* The shadow of a page of doorbells: doorbells in memory of the driver */
struct VirtIORdmaShadow {
    uint64_t addr;
    bool is_on;                     /* the page has a shadow */
    /* Bits taken from the summary that wait for another turn */
    uint32_t left[VIRTIO_RDMA_SHADOW_WORDS / 32];
    int64_t rung_at;                /* the last doorbell, in host time */
    uint32_t rung_by;               /* QPN of that doorbell */
    int64_t poll_until;             /* stay awake until then, in host time */
    QTAILQ_ENTRY(VirtIORdmaShadow) next; /* of VirtIORdma.awake_shadows */
};

/* Does the device poll the shadow, so that the driver need not ring? */
static inline bool virtio_rdma_shadow_is_awake(const VirtIORdmaShadow *shadow)
{
    return QTAILQ_IN_USE(shadow, next);
}

/*
 * How long to poll after work was found, at least: a doorbell that a process of
 * its own gets as a message costs more than a few polls. Without poll-max-ns
 * this reads no clock.
 */
static inline int64_t virtio_rdma_poll_end(const VirtIORdma *s)
{
    return s->conf.poll_max_ns ? get_clock() + s->conf.poll_max_ns : 0;
}

static inline bool virtio_rdma_polls_until(int64_t end)
{
    return end && get_clock() < end;
}

/* The virtqueue of an SRQ */
static inline uint32_t virtio_rdma_srq_vq(const VirtIORdma *s, uint32_t srqn)
{
    return VIRTIO_RDMA_SRQ_VQ(s->max_vq_cq, s->max_vq_qp, srqn);
}

/* ioeventfd.c: host notifiers */

/* For VirtioDeviceClass */
int virtio_rdma_ioeventfd_start(VirtIODevice *vdev);
void virtio_rdma_ioeventfd_stop(VirtIODevice *vdev);
/* Give the virtqueues of an object, if any, notifiers, or take them away. */
void virtio_rdma_qp_set_notifiers(VirtIORdma *s, uint32_t qpn, bool assign);
void virtio_rdma_srq_set_notifier(VirtIORdma *s, uint32_t srqn, bool assign);

/* cq-direct.c: completion queues without a virtqueue */

/*
 * The page list of a direct queue, as the command @cmd describes it.
 * virtio_rdma_direct_*_check() checks it, and sets what commands do not have:
 * page_shift and length.
 */
#define VIRTIO_RDMA_QUEUE_PAGES(cmd) ((RdmaHcaPages) {                  \
        .table = le64_to_cpu((cmd)->queue_pages),                       \
        .npages = le32_to_cpu((cmd)->queue_npages),                     \
        .levels = (cmd)->queue_levels,                                  \
    })

/* Can a direct CQ of depth @cqe have this memory? 0 or -EINVAL. */
int virtio_rdma_direct_cq_check(uint32_t cqe, uint8_t depth_shift,
                                RdmaHcaPages *pages);
/* Make @cq a direct CQ in the memory cq->pages. */
void virtio_rdma_direct_cq_start(VirtIORdmaCq *cq);
/*
 * The fields of @cq were loaded: check those of this form, and set the form.
 * False, after a report about @r: they are wrong.
 */
bool virtio_rdma_direct_cq_load(VirtIORdma *s, VirtIORdmaCq *cq,
                                const RdmaHcaRecord *r);

/* eq.c: event queues */

/* Have the events of the new @cq go to @eq. */
void virtio_rdma_eq_attach(VirtIORdmaCq *cq, VirtIORdmaCq *eq);
/* Drop the pending event of @cq, and detach it from its event queue. */
void virtio_rdma_eq_detach(VirtIORdma *s, VirtIORdmaCq *cq);
/* Make an event of @cq pending in its event queue. */
void virtio_rdma_eq_queue_event(VirtIORdmaCq *cq);
/* Write events that the iothread has raised, within the budget of a turn. */
void virtio_rdma_eqs_run(VirtIORdma *s);
/* A CQE was written to @cq: it may raise an event when the backend is left. */
void virtio_rdma_eq_completed(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited);
/* For RdmaHcaOps.flush(): raise these events, and notify the driver. */
void virtio_rdma_eqs_flush(RdmaHca *hca);

/* cq-vq.c: completion queues that are virtqueues */

/* Set the form of a new CQ or event queue: the virtqueue of its number. */
void virtio_rdma_cq_start_vq(VirtIORdma *s, VirtIORdmaCq *cq);
/* As virtio_rdma_direct_cq_load() */
bool virtio_rdma_cq_load_vq(VirtIORdma *s, VirtIORdmaCq *cq,
                            const RdmaHcaRecord *r);
/*
 * Pop a buffer of the CQ or event queue into *@elem, which the caller frees;
 * NULL: there is none. False: the buffer has not @size bytes, or too many
 * descriptors. It was put back, and the caller fails the queue.
 */
bool virtio_rdma_cq_pop(VirtIORdma *s, VirtIORdmaCq *cq, size_t size,
                        uint32_t *budget, VirtQueueElement **elem);
/* For RdmaHcaCqOps.destroyed(), of CQs and event queues */
void virtio_rdma_cq_abandon_vq(RdmaHca *hca, RdmaHcaCq *cq);
/* Encode a completion. */
VirtIORdmaCqe virtio_rdma_cqe(VirtIORdma *s, const RdmaWc *wc, bool solicited);
/* The CQ or event queue at virtqueue @n, or NULL. */
VirtIORdmaCq *virtio_rdma_cq_of_vq(VirtIORdma *s, uint32_t n);

/* cq-backlog.c: completions that wait for a buffer */

/*
 * Add a copy of @cqe to the backlog. False if the backlog has core.cqe of them,
 * or there is no memory.
 */
bool virtio_rdma_cq_backlog_add(VirtIORdmaCq *cq, const VirtIORdmaCqe *cqe);
/* The @i-th oldest completion of the backlog. */
VirtIORdmaCqe *virtio_rdma_cq_backlog_at(VirtIORdmaCq *cq, uint32_t i);
/* Remove the oldest one, or all. */
void virtio_rdma_cq_backlog_take(VirtIORdmaCq *cq);
void virtio_rdma_cq_backlog_clear(VirtIORdmaCq *cq);
/* For RdmaHcaCqOps.forget_qp(). The current command pays. */
void virtio_rdma_cq_forget_qp(RdmaHca *hca, RdmaHcaCq *core,
                              const RdmaHcaQp *qp);

/* wq-direct.c: work queues without a virtqueue */

/*
 * Can @qp, whose attributes and sizes of slots are set, be a direct QP in this
 * memory? 0 or -EINVAL.
 */
int virtio_rdma_direct_qp_check(VirtIORdma *s, const VirtIORdmaQp *qp,
                                RdmaHcaPages *pages);
/* Set the form of the queues of @qp: slots in qp->pages. */
void virtio_rdma_direct_qp_start(VirtIORdmaQp *qp);
/* As virtio_rdma_direct_cq_load() */
bool virtio_rdma_direct_qp_load(VirtIORdma *s, VirtIORdmaQp *qp,
                                const RdmaHcaRecord *r);
/* The same for an SRQ */
int virtio_rdma_direct_srq_check(VirtIORdma *s, const VirtIORdmaSrq *srq,
                                 RdmaHcaPages *pages);
void virtio_rdma_direct_srq_start(VirtIORdmaSrq *srq);
bool virtio_rdma_direct_srq_load(VirtIORdma *s, VirtIORdmaSrq *srq,
                                 const RdmaHcaRecord *r);
/* The direct QP, or SRQ, if it has this page of doorbells; otherwise NULL */
VirtIORdmaQp *virtio_rdma_direct_qp_at(VirtIORdma *s, uint32_t doorbell,
                                       uint32_t qpn);
VirtIORdmaSrq *virtio_rdma_direct_srq_at(VirtIORdma *s, uint32_t doorbell,
                                         uint32_t srqn);

/* shadow.c: shadows of pages of doorbells; @page is less than s->doorbells */

void virtio_rdma_shadows_init(VirtIORdma *s);
void virtio_rdma_shadows_free(VirtIORdma *s);
/* Remove all shadows. */
void virtio_rdma_shadows_reset(VirtIORdma *s);
/* Give @page a shadow at @addr. -EINVAL if @addr is not in RAM. */
int virtio_rdma_shadow_set(VirtIORdma *s, uint32_t page, uint64_t addr);
/* The same after migration, before the device may access guest memory */
void virtio_rdma_shadow_load(VirtIORdma *s, uint32_t page, uint64_t addr);
/* Remove the shadow of @page, if there is one. */
void virtio_rdma_shadow_drop(VirtIORdma *s, uint32_t page);
/*
 * The driver has rung for QP @qpn. If doorbells of several QPs come in a row,
 * the shadow of @page wakes up: the driver need not ring. Returns whether it is
 * awake.
 */
bool virtio_rdma_shadow_rang(VirtIORdma *s, uint32_t page, uint32_t qpn);
/*
 * From RdmaHcaOps.poll_doorbells(): schedule QPs that are marked in shadows,
 * and stop polling shadows without marks.
 */
void virtio_rdma_shadows_run(VirtIORdma *s);

/* sq-poll.c: polling of direct SQs. After init, call after rdma_hca_enter(). */

void virtio_rdma_sq_polls_init(VirtIORdma *s);
/*
 * The device is not active any more, and is about to detach. The iothread may
 * run the timer's callback until the backend has detached.
 */
void virtio_rdma_sq_polls_stop(VirtIORdma *s);
/* Call without having entered, after rdma_hca_detach(). */
void virtio_rdma_sq_polls_free(VirtIORdma *s);
/* The driver has rung for @qp. This may start polling of its SQ. */
void virtio_rdma_sq_poll_rang(VirtIORdma *s, VirtIORdmaQp *qp);
/* The SQ of @qp is empty. Does the device poll it from now on? */
bool virtio_rdma_sq_poll_continues(VirtIORdma *s, VirtIORdmaQp *qp);
/* @qp goes away. */
void virtio_rdma_sq_poll_end(VirtIORdma *s, VirtIORdmaQp *qp);
/* From RdmaHcaOps.poll_doorbells(): schedule the QPs whose interval is over. */
void virtio_rdma_sq_polls_run(VirtIORdma *s);

/* wq-vq.c: work queues that are virtqueues */

/* Set the form of @srq, or @qp: the virtqueues of its number. */
void virtio_rdma_srq_use_vq(VirtIORdma *s, VirtIORdmaSrq *srq);
void virtio_rdma_qp_use_vqs(VirtIORdma *s, VirtIORdmaQp *qp);
/* As virtio_rdma_direct_cq_load() */
bool virtio_rdma_srq_load_vq(VirtIORdma *s, VirtIORdmaSrq *srq,
                             const RdmaHcaRecord *r);
bool virtio_rdma_qp_load_vqs(VirtIORdma *s, VirtIORdmaQp *qp,
                             const RdmaHcaRecord *r);
/* The driver has reset the virtqueue. Returns whether WQEs were in flight. */
bool virtio_rdma_wq_forget_vq(VirtIORdma *s, RdmaHcaWq *wq);
/*
 * After migration, when the device may access guest memory: tell virtqueues
 * which WQEs are in flight. With VIRTIO_F_IN_ORDER they must know.
 */
void virtio_rdma_wqs_restore_order(VirtIORdma *s);
/* The queue of a QP or SRQ at virtqueue @n, or NULL. */
RdmaHcaWq *virtio_rdma_wq_of_vq(VirtIORdma *s, uint32_t n);

/* decode.c: WQEs */

void virtio_rdma_scratch_init(VirtIORdma *s);
void virtio_rdma_scratch_free(VirtIORdma *s);
/* For RdmaHcaOps */
void virtio_rdma_decode_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr);
void virtio_rdma_decode_recv(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr);

/* form.c: for RdmaHcaObjectOps.free() */

void virtio_rdma_cq_free(RdmaHca *hca, void *obj);
void virtio_rdma_srq_free(RdmaHca *hca, void *obj);
void virtio_rdma_qp_free(RdmaHca *hca, void *obj);

#endif
