/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "queue" of the virtio-rdma device: the objects as the data path sees
 * them, and the ways of WQEs, completions and events between the virtqueues
 * and the backend.
 */
#ifndef HW_RDMA_VIRTIO_RDMA_QUEUE_H
#define HW_RDMA_VIRTIO_RDMA_QUEUE_H

#include "qapi/qapi-types-rdma-fault.h"
#include "virtio-rdma-core.h"

typedef struct VirtIORdmaPd {
    uint32_t pdn;
    uint32_t users;                 /* MRs, windows, SRQs and QPs */
} VirtIORdmaPd;

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

/*
 * The forms of CQs: virtqueues (virtio-rdma-cq-vq.c) and slots
 * (virtio-rdma-direct-cq.c). No other file asks which form a CQ has.
 */
typedef struct VirtIORdmaCqOps {
    bool is_direct;                 /* for inspection, and the features */
    /* The greatest depth that the driver can ask for */
    uint32_t (*max_cqe)(VirtIORdma *s);
    /*
     * Take a completion, and notify the driver if it has armed the CQ. False:
     * there is no room, or the driver broke a rule; the CQ enters its error.
     */
    bool (*complete)(VirtIORdma *s, VirtIORdmaCq *cq,
                     const VirtIORdmaCqe *cqe);
    /*
     * Write what waits, while there is room and @budget. False as above. NULL:
     * nothing ever waits.
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
    /* The driver has destroyed it. Optional. */
    void (*destroyed)(VirtIORdma *s, VirtIORdmaCq *cq);
} VirtIORdmaCqOps;

extern const VirtIORdmaCqOps virtio_rdma_cq_vq_ops;
extern const VirtIORdmaCqOps virtio_rdma_cq_slots_ops;
/* Event queues, in virtio-rdma-eq.c */
extern const VirtIORdmaCqOps virtio_rdma_eq_ops;

/* A CQ, or an event queue: they share their numbers. */
struct VirtIORdmaCq {
    const VirtIORdmaCqOps *ops;     /* of its form */
    uint32_t cqn;
    uint32_t cqe;
    uint32_t users;                 /* queues of QPs; CQs of an event queue */
    bool is_eq;
    /* VirtIORdmaArm; NONE after an interrupt, but with F_CQ_RING_ARM */
    uint8_t arm;
    bool error;
    uint16_t seen;                  /* for virtio_rdma_ring_check() */
    VirtQueue *vq;                  /* NULL: it is a direct CQ */
    /* F_CQ_DEEP: at most @cqe, in blocks; NULL: none has come yet */
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
    uint32_t n_held;                /* completions that faults hold back */
    uint32_t n_reordered;           /* of these, by completion-reorder */
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

/* A memory region or a window: they share their numbers. */
typedef struct VirtIORdmaMr {
    uint32_t mrn;
    uint32_t type;                  /* RdmaMrType */
    uint32_t key;
    uint32_t rkey;                  /* of a window: when it was allocated */
    /* Pages that it is charged for: of the list in use, and of MAP_MR_SG */
    uint32_t npages;
    uint32_t pending;
    uint32_t max_pages;             /* RDMA_MR_FAST_REG */
    uint32_t mw_type;               /* RdmaMwType, or 0: it is a region */
    VirtIORdmaPd *pd;
} VirtIORdmaMr;

/*
 * What the device remembers of a WQE until the backend is done with it: for
 * the used ring, index and number of descriptors of the virtqueue element; the
 * pages of a list that it brought.
 */
typedef struct VirtIORdmaInflight {
    uint16_t index;
    uint16_t ndescs;
    uint16_t npages;
    uint32_t mrn;                   /* the region that gets the pages */
} VirtIORdmaInflight;

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

typedef struct VirtIORdmaHeld VirtIORdmaHeld;
typedef struct VirtIORdmaWqOps VirtIORdmaWqOps;

/* An SQ, RQ or SRQ. WQEs are copied when they are taken. */
typedef struct VirtIORdmaWq {
    const VirtIORdmaWqOps *ops;     /* of its form */
    RdmaQueue kind;
    uint32_t id;                    /* QPN, or number of the SRQ */
    uint32_t max_sge;
    uint32_t max_inline;
    bool broken;                    /* its driver counts wrongly */
    /* A virtqueue, or slots */
    VirtQueue *vq;
    uint16_t seen;                  /* for virtio_rdma_ring_check() */
    VirtIORdmaSlots slots;
    /* In flight */
    uint32_t head;                  /* oldest of inflight[] */
    uint32_t count;
    uint32_t ndescs;                /* of inflight[]; the ring has as many */
    uint32_t stale;                 /* at the backend, the ring was reset */
    uint32_t inflight_room;         /* power of 2, or 0 */
    VirtIORdmaInflight *inflight;
    QTAILQ_HEAD(, VirtIORdmaHeld) held; /* of VirtIORdmaFaults.held */
} VirtIORdmaWq;

struct VirtIORdmaSrq {
    RdmaSrqAttr attr;               /* the limit is the backend's */
    VirtIORdmaPd *pd;
    uint32_t users;                 /* QPs */
    bool error;
    VirtIORdmaWq wq;
    VirtIORdmaDirectSrq direct;     /* of a direct SRQ */
    uint64_t *pages;                /* of its memory, or NULL */
};

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

/* The longest ID of a fault, with its end */
#define VIRTIO_RDMA_FAULT_ID_ROOM 64
/* Faults of a device */
#define VIRTIO_RDMA_MAX_FAULTS 64
/* Completions that faults hold back at a time */
#define VIRTIO_RDMA_MAX_HELD 16384
#define VIRTIO_RDMA_FAULT_MAX_DELAY_MS 600000
#define VIRTIO_RDMA_FAULT_MAX_DURATION_MS 3600000
/* Any opcode, any command */
#define VIRTIO_RDMA_FAULT_ANY UINT8_MAX
/* A probability of 1 */
#define VIRTIO_RDMA_FAULT_ALWAYS (1ull << 32)

/* What else a fault selects by */
enum {
    VIRTIO_RDMA_FAULT_QPN = 1u << 0,
    VIRTIO_RDMA_FAULT_DGID = 1u << 1,
    VIRTIO_RDMA_FAULT_DEST_QPN = 1u << 2,
};

/* Where active faults are looked for: bits of VirtIORdma.fault_points */
enum {
    VIRTIO_RDMA_FAULT_AT_SEND = 1u << 0,
    VIRTIO_RDMA_FAULT_AT_RECV = 1u << 1,
    VIRTIO_RDMA_FAULT_AT_COMPLETE = 1u << 2,
    VIRTIO_RDMA_FAULT_AT_COMMAND = 1u << 3,
};

/* A fault that the user has added; what its kind does not have is 0. */
typedef struct VirtIORdmaFault {
    char id[VIRTIO_RDMA_FAULT_ID_ROOM];
    uint8_t kind;                   /* RdmaFaultKind */
    /* RdmaWcStatus, or RdmaCommandStatus of a command */
    uint8_t status;
    uint8_t opcode;                 /* RdmaWcOpcode, or ANY */
    uint8_t command;                /* VIRTIO_RDMA_CMD_*, or ANY */
    uint32_t selects;               /* VIRTIO_RDMA_FAULT_QPN and others */
    uint32_t qpn;
    uint32_t dest_qpn;
    uint8_t dgid[RDMA_GID_LEN];
    uint64_t after;
    uint64_t times;                 /* 0: no limit */
    uint64_t probability;           /* of 2^32 */
    uint64_t seed;
    uint64_t random;                /* state of the sequence */
    uint32_t ms;                    /* delay or duration; 0: none */
    uint64_t matches;
    uint64_t hits;
    QTAILQ_ENTRY(VirtIORdmaFault) next;
} VirtIORdmaFault;

/* A completion that a fault holds back, and those behind it */
struct VirtIORdmaHeld {
    RdmaWc wc;
    uint32_t cqn;
    bool solicited;
    bool reorder;                   /* until another one has come */
    int64_t until;                  /* in virtual time, at the latest */
    QTAILQ_ENTRY(VirtIORdmaHeld) next;
    QTAILQ_ENTRY(VirtIORdmaHeld) next_of_queue;
};

struct VirtIORdmaFaults {
    QTAILQ_HEAD(, VirtIORdmaFault) list;
    uint32_t count;
    /* Oldest first; those of one work queue follow each other in time, too */
    QTAILQ_HEAD(, VirtIORdmaHeld) held;
    uint32_t n_held;
    QEMUTimer *timer;               /* something is due */
    Error *blocker;                 /* of migration, or NULL */
    /* In virtual time; 0: nothing, INT64_MAX: without an end */
    int64_t port_until;
    int64_t command_until;
};

/* What faults have done to a QP */
typedef struct VirtIORdmaQpFault {
    /* Its sends are held back: it is stuck, or is to enter ERR */
    bool held_back;
    bool fatal;
    const VirtIORdmaFault *stuck;   /* that fault's doing, or NULL */
    int64_t until;                  /* in virtual time, or INT64_MAX */
    bool passed;                    /* the next send has met its fault */
} VirtIORdmaQpFault;

struct VirtIORdmaQp {
    RdmaQpInitAttr init;
    VirtIORdmaPd *pd;
    VirtIORdmaCq *send_cq;
    VirtIORdmaCq *recv_cq;
    VirtIORdmaSrq *srq;             /* or NULL; then @rq is not used */
    VirtIORdmaWq sq;
    VirtIORdmaWq rq;
    VirtIORdmaDirectQp direct;      /* without pages: it has virtqueues */
    uint64_t *pages;                /* of the memory of a direct QP, or NULL */
    int64_t rung_at;                /* the last doorbell, in host time */
    uint64_t n_errors;
    VirtIORdmaQpError error;        /* the last one */
    VirtIORdmaQpFault fault;
};

/* The CQ @cqn; NULL if there is none, or it is an event queue. */
static inline VirtIORdmaCq *virtio_rdma_cq_get(VirtIORdma *s, uint32_t cqn)
{
    VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, cqn);

    return cq && !cq->is_eq ? cq : NULL;
}

/* The event queue @eqn, or NULL */
static inline VirtIORdmaCq *virtio_rdma_eq_get(VirtIORdma *s, uint32_t eqn)
{
    VirtIORdmaCq *eq = virtio_rdma_table_get(&s->cqs, eqn);

    return eq && eq->is_eq ? eq : NULL;
}

/* The region @mrn; NULL if there is none, or it is a window. */
static inline VirtIORdmaMr *virtio_rdma_mr_get(VirtIORdma *s, uint32_t mrn)
{
    VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, mrn);

    return mr && !mr->mw_type ? mr : NULL;
}

/* The virtqueue of an SRQ */
static inline uint32_t virtio_rdma_srq_vq(const VirtIORdma *s, uint32_t srqn)
{
    return VIRTIO_RDMA_SRQ_VQ(s->max_vq_cq, s->max_vq_qp, srqn);
}

/* Is the QP in this state now, or about to enter ERR? */
static inline bool virtio_rdma_qp_is_in(VirtIORdma *s, VirtIORdmaQp *qp,
                                        RdmaQpState state)
{
    RdmaQpAttr attr = {};

    if (s->bc->qp_in_state) {
        return s->bc->qp_in_state(s->backend, qp->init.qpn, state);
    }
    return s->bc->query_qp(s->backend, qp->init.qpn, &attr) == 0 &&
           attr.qp_state == state;
}

/* virtio-rdma-sched.c: the bottom half */

/*
 * Run it when the device is left: what there is to send goes first, and a vCPU
 * that rings wakes the main loop once at most.
 */
void virtio_rdma_bh_schedule(VirtIORdma *s);
/* Likewise its part that is about work queues: with an iothread that one's. */
void virtio_rdma_work_schedule(VirtIORdma *s);
/*
 * Have it kick the queues of @qp, or @srq, or fail what is broken. Any thread
 * with the BQL may do so, also one that has not entered the device.
 */
void virtio_rdma_wq_schedule(VirtIORdma *s, const VirtIORdmaWq *wq);
void virtio_rdma_qp_schedule(VirtIORdma *s, VirtIORdmaQp *qp);
void virtio_rdma_srq_schedule(VirtIORdma *s, VirtIORdmaSrq *srq);
/* The driver counts wrongly: the QP, or SRQ, is to fail. */
void virtio_rdma_wq_break(VirtIORdma *s, VirtIORdmaWq *wq);
/* Have it look at the backlogs of all CQs. */
void virtio_rdma_cqs_schedule(VirtIORdma *s);
/* Have it look at all there is. */
void virtio_rdma_all_schedule(VirtIORdma *s);

/* virtio-rdma-ioeventfd.c: host notifiers */

/* Of VirtioDeviceClass */
int virtio_rdma_ioeventfd_start(VirtIODevice *vdev);
void virtio_rdma_ioeventfd_stop(VirtIODevice *vdev);
/* Give the virtqueues of an object, if any, notifiers, or take them away. */
void virtio_rdma_qp_set_notifiers(VirtIORdma *s, uint32_t qpn, bool assign);
void virtio_rdma_srq_set_notifier(VirtIORdma *s, uint32_t srqn, bool assign);

/* virtio-rdma-error.c: errors of QPs, for people on the host */

/* A completion of @qp has an error, which may be that it was flushed. */
void virtio_rdma_error_completed(VirtIORdma *s, VirtIORdmaQp *qp,
                                 const RdmaWc *wc);
/* An event of @qp has come, which may be an error. */
void virtio_rdma_error_event(VirtIORdma *s, VirtIORdmaQp *qp,
                             RdmaEventType type);
/* @error as management applications see it; the caller frees it. */
RdmaQueuePairError *virtio_rdma_error_info(const VirtIORdmaQpError *error);
/* What management applications call what completes with @opcode. */
RdmaCompletionOpcode virtio_rdma_error_opcode(uint8_t opcode);
/* Tell them of the last one that they have not been told of. */
void virtio_rdma_error_tell(VirtIORdma *s);

/* virtio-rdma-event.c: asynchronous events */

/* What the id of an event names. */
typedef enum VirtIORdmaEventOf {
    VIRTIO_RDMA_EVENT_OF_NONE,
    VIRTIO_RDMA_EVENT_OF_CQ,
    VIRTIO_RDMA_EVENT_OF_QP,
    VIRTIO_RDMA_EVENT_OF_SRQ,
    VIRTIO_RDMA_EVENT_OF_PORT,
} VirtIORdmaEventOf;

VirtIORdmaEventOf virtio_rdma_event_of(RdmaEventType type);

void virtio_rdma_events_init(VirtIORdma *s);
void virtio_rdma_events_free(VirtIORdma *s);
/* Device reset: nothing is pending any more. */
void virtio_rdma_events_reset(VirtIORdma *s);
/* The event virtqueue was reset: pending events wait until it is enabled. */
void virtio_rdma_events_reset_vq(VirtIORdma *s);
/* Tell a driver that accepted F_EVENTS, now or when there is a buffer. */
void virtio_rdma_event_raise(VirtIORdma *s, RdmaEventType type, uint32_t id);
/* The object is gone: drop its pending events. */
void virtio_rdma_events_forget(VirtIORdma *s, VirtIORdmaEventOf of,
                               uint32_t id);
/* Write pending events while there are buffers. */
void virtio_rdma_events_run(VirtIORdma *s);
/* Raise an event if the state of the port is not the one last told. */
void virtio_rdma_port_check(VirtIORdma *s);
/* For migration: pending events, oldest first; @event NULL: the first one */
uint32_t virtio_rdma_events_max(VirtIORdma *s);
uint32_t virtio_rdma_events_count(VirtIORdma *s);
const RdmaEvent *virtio_rdma_events_next(VirtIORdma *s, const RdmaEvent *event);
/* False if it is pending already, or its object does not exist. */
bool virtio_rdma_event_load(VirtIORdma *s, const RdmaEvent *event);
/* The state of the port that the driver was told last */
bool virtio_rdma_port_was_active(VirtIORdma *s);
void virtio_rdma_port_load(VirtIORdma *s, bool active);
/* Of RdmaBackendClientOps */
void virtio_rdma_port_changed(void *opaque);

static inline bool virtio_rdma_fault_is_of_command(uint8_t kind)
{
    return kind == RDMA_FAULT_KIND_COMMAND_ERROR ||
           kind == RDMA_FAULT_KIND_COMMAND_DELAY;
}

/* virtio-rdma-fault-check.c: what faults may be */

/* Is the kind of fault possible for what completes with @opcode? */
bool virtio_rdma_fault_suits(uint8_t kind, uint8_t opcode);
/* The fault with that ID, or NULL */
VirtIORdmaFault *virtio_rdma_fault_find(VirtIORdma *s, const char *id);
/* Is it one that the device can have? */
bool virtio_rdma_fault_check(VirtIORdma *s, const VirtIORdmaFault *fault,
                             Error **errp);

/* virtio-rdma-fault.c: faults that the user wants */

/* Faults do not migrate: false if the VM is migrating, or has to be able to. */
bool virtio_rdma_faults_block_migration(VirtIORdma *s, Error **errp);
/* Add a fault that was checked. */
VirtIORdmaFault *virtio_rdma_fault_add(VirtIORdma *s,
                                       const VirtIORdmaFault *fault);
/* The port goes down now, for as long as it says. */
void virtio_rdma_fault_start(VirtIORdma *s, const VirtIORdmaFault *fault);
void virtio_rdma_fault_remove(VirtIORdma *s, VirtIORdmaFault *fault);
/* May it strike again, or does it go on? */
bool virtio_rdma_fault_is_active(VirtIORdma *s, const VirtIORdmaFault *fault);
void virtio_rdma_faults_free(VirtIORdma *s);
/* Look at s->fault_points and the timer anew. */
void virtio_rdma_faults_update(VirtIORdma *s);
/* Time has passed: the port may come up, and QPs go on. */
void virtio_rdma_faults_expire(VirtIORdma *s);
/* The QP enters RESET. */
void virtio_rdma_fault_forget_qp(VirtIORdmaQp *qp);
/* It is in ERR: its sends are not held back any more. */
void virtio_rdma_fault_let_go(VirtIORdmaQp *qp);
/*
 * A send that was decoded, with the SGEs of @wr. False if it is to be held
 * back: then qp->fault says why, and the QP is scheduled. Not in ERR.
 */
bool virtio_rdma_fault_send(VirtIORdma *s, VirtIORdmaQp *qp, RdmaSendWr *wr,
                            RdmaSge *sge);
/* Likewise a receive; @qp NULL: of an SRQ. It is not held back. */
void virtio_rdma_fault_recv(VirtIORdma *s, VirtIORdmaQp *qp, RdmaRecvWr *wr,
                            RdmaSge *sge);
/* The fault that a completion meets, or NULL */
VirtIORdmaFault *virtio_rdma_fault_complete(VirtIORdma *s, VirtIORdmaQp *qp,
                                            const RdmaWc *wc);
/*
 * A command is about to be executed, @again: after -EINPROGRESS. 0 if it may
 * be; or an error of its own, -EINPROGRESS among them.
 */
int virtio_rdma_fault_command(VirtIORdma *s, uint8_t cmd, bool again,
                              const VirtIORdmaReq *req);
/* There is no command in progress any more. */
void virtio_rdma_fault_forget_command(VirtIORdma *s);
/* Is the time of what waits until @until over? */
bool virtio_rdma_fault_is_due(int64_t until);

/* virtio-rdma-direct-cq.c: completion queues without a virtqueue */

/* Can a direct CQ of depth @cqe have this memory? 0 or -EINVAL. */
int virtio_rdma_direct_cq_check(uint32_t cqe, VirtIORdmaDirectCq *direct);
/* Have @cq lie in @pages, which it frees in the end, from now on. */
void virtio_rdma_direct_cq_start(VirtIORdma *s, VirtIORdmaCq *cq,
                                 const VirtIORdmaDirectCq *direct,
                                 uint64_t *pages);
void virtio_rdma_direct_cq_stop(VirtIORdma *s, VirtIORdmaCq *cq);

/* virtio-rdma-eq.c: event queues */

/* Have the events of the new @cq go to @eq. */
void virtio_rdma_eq_attach(VirtIORdmaCq *cq, VirtIORdmaCq *eq);
/* No event of @cq is pending any more, and there are no new ones. */
void virtio_rdma_eq_detach(VirtIORdma *s, VirtIORdmaCq *cq);
/* Raise no events any more, but one that tells so. */
void virtio_rdma_eq_fail(VirtIORdma *s, VirtIORdmaCq *eq);
/* @cq has an event for its event queue. */
void virtio_rdma_eq_add(VirtIORdmaCq *cq);
/* Write pending events while there are buffers. */
void virtio_rdma_eq_run(VirtIORdma *s, VirtIORdmaCq *eq);
/* The same for those that the iothread has events for. */
void virtio_rdma_eqs_run(VirtIORdma *s);
/* A CQE was written to @cq: it may raise an event when the backend is left. */
void virtio_rdma_eq_completed(VirtIORdma *s, VirtIORdmaCq *cq, bool solicited);
/* Of RdmaBackendClientOps: raise these events, and notify the driver. */
void virtio_rdma_eqs_flush(void *opaque);

/* virtio-rdma-complete.c: completions */

/* Write a completion. False if the CQ is in error, or enters it. */
bool virtio_rdma_cq_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                             const RdmaWc *wc, bool solicited);
/*
 * Write what waits in the CQ or event queue, while there are buffers, and
 * budget for them. False: as above.
 */
bool virtio_rdma_cq_flush(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t *budget);
/* Write no completions any more. The caller sees to the QPs of the CQ. */
void virtio_rdma_cq_enter_error(VirtIORdma *s, VirtIORdmaCq *cq);

/* virtio-rdma-cq-vq.c: completion queues that are virtqueues */

/* Have the CQ or event queue lie in the virtqueue of its number. */
void virtio_rdma_cq_use_vq(VirtIORdma *s, VirtIORdmaCq *cq);
/* The same for a new one */
void virtio_rdma_cq_start_vq(VirtIORdma *s, VirtIORdmaCq *cq);
/* The CQ or event queue at virtqueue @n, or NULL. */
VirtIORdmaCq *virtio_rdma_cq_of_vq(VirtIORdma *s, uint32_t n);

/* virtio-rdma-cq-backlog.c: completions that wait for a buffer */

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
/* Drop the backlog of a QP that was reset or is gone. Paid by the command. */
void virtio_rdma_cq_forget_qp(VirtIORdma *s, VirtIORdmaCq *cq, uint32_t qpn);

/* virtio-rdma-hold.c: completions that faults change or hold back */

/* As virtio_rdma_cq_complete(), where there may be a fault. */
bool virtio_rdma_hold_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                               const RdmaWc *wc, bool solicited);
/*
 * Write those that are due. A CQ that has failed in that is returned: the
 * caller sees to its QPs, and calls again.
 */
VirtIORdmaCq *virtio_rdma_hold_run(VirtIORdma *s);
/* Drop those of a QP that was reset or is gone. */
void virtio_rdma_hold_forget_qp(VirtIORdma *s, VirtIORdmaQp *qp);

/* virtio-rdma-pages.c: the page list of a region */

/* Is it a list that a region can have? Fills in the default of @page_shift. */
int virtio_rdma_pages_check(VirtIORdma *s, VirtIORdmaPages *p);
/* Does it have @npages, and levels for so many? 0 or -EINVAL. */
int virtio_rdma_pages_check_num(const VirtIORdmaPages *p, uint64_t npages);
/*
 * Read a list that was checked into *@pages, to be freed by g_free(). It counts
 * in s->mr_pages from then on; -ENOMEM if all regions together have too many.
 */
int virtio_rdma_pages_read(VirtIORdma *s, const VirtIORdmaPages *p,
                           uint64_t **pages);
/*
 * The same for a command, whose list may be long: -EINPROGRESS when the budget
 * of this turn is used up. The command is executed anew in the next turn, and
 * comes to its end here.
 */
int virtio_rdma_pages_read_on(VirtIORdma *s, const VirtIORdmaPages *p,
                              uint64_t **pages);
/* Free a list that was read: its pages do not count any more. */
void virtio_rdma_pages_free(VirtIORdma *s, uint64_t *pages, uint32_t npages);
/* Is there a list that the next turn goes on with? */
bool virtio_rdma_pages_reading(const VirtIORdma *s);
/*
 * The backend has taken the list that was read last, and is not done with the
 * command: the list counts on, and is NULL when the command comes to read it.
 */
void virtio_rdma_pages_keep(VirtIORdma *s, const VirtIORdmaPages *p);
/* There is no command in progress any more. */
void virtio_rdma_pages_drop(VirtIORdma *s);
/*
 * The backend is done with a WQE: what it brought is charged to its region,
 * which may use it now, instead of to the WQE.
 */
void virtio_rdma_pages_pass(VirtIORdma *s, const VirtIORdmaInflight *inflight);

/* virtio-rdma-slots.c: work queues without a virtqueue */

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

/* virtio-rdma-shadow.c: shadows of pages of doorbells, of s->doorbells pages */

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

/* virtio-rdma-wq.c: work queues */

void virtio_rdma_wqs_init(VirtIORdma *s);
void virtio_rdma_wqs_free(VirtIORdma *s);
/* A queue of the QP or SRQ @id, which is given its form afterwards. */
void virtio_rdma_wq_init(VirtIORdmaWq *wq, RdmaQueue kind, uint32_t id,
                         uint32_t max_sge, uint32_t max_inline);
/* Have it lie in virtqueue @n. */
void virtio_rdma_wq_use_vq(VirtIORdma *s, VirtIORdmaWq *wq, uint32_t n);
/* The queue of a QP or SRQ at virtqueue @n, or NULL. */
VirtIORdmaWq *virtio_rdma_wq_of_vq(VirtIORdma *s, uint32_t n);
/* The driver has destroyed it. */
void virtio_rdma_wq_destroyed(VirtIORdma *s, VirtIORdmaWq *wq);
/*
 * After migration, when guest memory may be touched: for in-order use the
 * virtqueue must know what is in flight, but it does not migrate that.
 */
void virtio_rdma_wq_restore_order(VirtIORdma *s, VirtIORdmaWq *wq);
/* The @i-th oldest WQE that the backend has. */
VirtIORdmaInflight *virtio_rdma_wq_inflight(const VirtIORdmaWq *wq, uint32_t i);
/* Add one as the newest. */
void virtio_rdma_wq_push(VirtIORdmaWq *wq, const VirtIORdmaInflight *inflight);
/* The backend is done with @count more WQEs, oldest first. */
void virtio_rdma_wq_retire(VirtIORdma *s, VirtIORdmaWq *wq, uint32_t count);
/* For inspection, and the features */
bool virtio_rdma_wq_is_direct(const VirtIORdmaWq *wq);
/* Entries of the ring that VirtIORdmaInflight is about; 0 without a ring */
uint32_t virtio_rdma_wq_ring_size(VirtIORdma *s, const VirtIORdmaWq *wq);
/* How many WQEs may be in flight */
uint32_t virtio_rdma_wq_depth(const VirtIORdmaWq *wq);
/*
 * Count the WQEs that the driver has posted and the device has not taken. False
 * if that cannot be told: @n is 1 if there are any.
 */
bool virtio_rdma_wq_count(VirtIORdma *s, const VirtIORdmaWq *wq, uint32_t *n);
/*
 * The device polls: the driver need not ring. False if it knows that already.
 */
bool virtio_rdma_wq_wake(VirtIORdma *s, VirtIORdmaWq *wq);
/*
 * An SQ was kicked; @alone: by the doorbell of a send that no other follows, as
 * far as the device knows, so that its queue is not worth a rescan.
 */
void virtio_rdma_wq_ring(VirtIORdma *s, VirtIORdmaWq *wq, bool alone);
/* Does what the driver says make sense? If not, the queue is broken. */
bool virtio_rdma_wq_check(VirtIORdma *s, VirtIORdmaWq *wq);
/* Return all buffers as used, those of posted WQEs first. */
void virtio_rdma_wq_drain(VirtIORdma *s, VirtIORdmaWq *wq);
/* The virtqueue of a QP was reset. Returns whether WQEs were lost. */
bool virtio_rdma_wq_forget(VirtIORdma *s, VirtIORdmaWq *wq);

/* virtio-rdma-sq.c: what the backend takes from send queues */

/* As RdmaConsumerOps.next_send() */
RdmaNext virtio_rdma_sq_next(VirtIORdma *s, VirtIORdmaQp *qp, bool flush,
                             RdmaSendWr *wr);
/* It is the next one again. */
void virtio_rdma_sq_put_back(VirtIORdma *s, VirtIORdmaQp *qp,
                             const RdmaSendWr *wr);

/* virtio-rdma-rq.c: the same of receive queues, shared ones too */

bool virtio_rdma_rq_next(VirtIORdma *s, VirtIORdmaWq *wq, bool flush,
                         RdmaRecvWr *wr);
uint32_t virtio_rdma_rq_count(VirtIORdma *s, VirtIORdmaWq *wq);
bool virtio_rdma_rq_sleep(VirtIORdma *s, VirtIORdmaWq *wq);

#endif
