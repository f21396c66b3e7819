/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HCA core: the adapter without a guest ABI, that is its objects, their
 * numbers and references, completions, events, faults, and what is seen of it
 * from the host. Guest interfaces, which translate what a driver does, embed an
 * RdmaHca, and its objects in theirs.
 *
 * Context: everything runs under the BQL, or in the device's iothread, between
 * rdma_hca_enter() and rdma_hca_leave().
 */
#ifndef HW_RDMA_HCA_H
#define HW_RDMA_HCA_H

#include "hw/qdev-core.h"
#include "qapi/qapi-types-rdma.h"
#include "qapi/qapi-types-rdma-fault.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "rdma/work.h"
#include "system/rdma-backend.h"

typedef struct RdmaHca RdmaHca;
typedef struct RdmaHcaCq RdmaHcaCq;
typedef struct RdmaHcaCqOps RdmaHcaCqOps;
typedef struct RdmaHcaEvent RdmaHcaEvent;
typedef struct RdmaHcaFaults RdmaHcaFaults;
typedef struct RdmaHcaHeld RdmaHcaHeld;
typedef struct RdmaHcaMr RdmaHcaMr;
typedef struct RdmaHcaPd RdmaHcaPd;
typedef struct RdmaHcaQp RdmaHcaQp;
typedef struct RdmaHcaSrq RdmaHcaSrq;
typedef struct RdmaHcaWq RdmaHcaWq;
typedef struct RdmaHcaWqOps RdmaHcaWqOps;

/* Objects of one kind by number; numbers are first..end-1. */
typedef struct RdmaHcaTable {
    uint32_t first;
    uint32_t end;
    uint32_t count;
    uint32_t next;                  /* where the search for a number starts */
    void **slot;
    unsigned long *used;
} RdmaHcaTable;

/* An error of a QP */
typedef struct RdmaHcaQpError {
    int64_t at;                     /* ns since the Epoch */
    uint64_t wr_id;
    uint32_t vendor_err;
    uint8_t status;                 /* RdmaWcStatus; SUCCESS: an event */
    uint8_t opcode;                 /* RdmaWcOpcode */
    uint8_t event;                  /* RdmaEventType */
} RdmaHcaQpError;

struct RdmaHcaPd {
    uint32_t pdn;
    uint32_t users;                 /* MRs, windows, SRQs and QPs */
};

/* What a guest interface does with a CQ; each form of CQs has its own. */
struct RdmaHcaCqOps {
    bool is_direct;                 /* for inspection */
    /*
     * Take a completion, and notify the driver if it has armed the CQ. False:
     * there is no room, or the driver broke a rule; the CQ enters its error.
     */
    bool (*complete)(RdmaHca *hca, RdmaHcaCq *cq, const RdmaWc *wc,
                     bool solicited);
    /* Drop what waits for room. Optional. */
    void (*drop)(RdmaHca *hca, RdmaHcaCq *cq);
    /* Fill in what only the guest interface knows. Optional. */
    void (*inspect)(RdmaHca *hca, const RdmaHcaCq *cq, RdmaCqInfo *info);
};

/* What a guest interface does with a work queue; each form has its own. */
struct RdmaHcaWqOps {
    bool is_direct;                 /* for inspection */
    /*
     * Count the WQEs that the driver has posted and the device has not taken.
     * False if that cannot be told, and @n is undefined. Changes nothing.
     */
    bool (*count)(RdmaHca *hca, const RdmaHcaWq *wq, uint32_t *n);
};

/*
 * A CQ. Event queues of a guest interface share their numbers: the table has
 * both.
 */
struct RdmaHcaCq {
    const RdmaHcaCqOps *ops;        /* of its form */
    uint32_t cqn;
    uint32_t cqe;
    uint32_t users;                 /* queues of QPs; CQs of an event queue */
    bool is_eq;
    bool error;
    uint32_t n_held;                /* completions that faults hold back */
    uint32_t n_reordered;           /* of these, by completion-reorder */
};

/* A memory region or a window: they share their numbers. */
struct RdmaHcaMr {
    uint32_t mrn;
    uint32_t type;                  /* RdmaMrType */
    uint32_t key;
    uint32_t rkey;                  /* of a window: when it was allocated */
    /* Pages that it is charged for: of the list in use, and of MAP_MR_SG */
    uint32_t npages;
    uint32_t pending;
    uint32_t max_pages;             /* RDMA_MR_FAST_REG */
    uint32_t mw_type;               /* RdmaMwType, or 0: it is a region */
    RdmaHcaPd *pd;
};

/*
 * What the device remembers of a WQE until the backend is done with it: for
 * the used ring, index and number of descriptors of the virtqueue element; the
 * pages of a list that it brought.
 */
typedef struct RdmaHcaInflight {
    uint16_t index;
    uint16_t ndescs;
    uint16_t npages;
    uint32_t mrn;                   /* the region that gets the pages */
} RdmaHcaInflight;

/* An SQ, RQ or SRQ. WQEs are copied when they are taken. */
struct RdmaHcaWq {
    const RdmaHcaWqOps *ops;        /* of its form */
    RdmaQueue kind;
    uint32_t id;                    /* QPN, or number of the SRQ */
    uint32_t max_sge;
    uint32_t max_inline;
    bool broken;                    /* its driver counts wrongly */
    void *opaque;                   /* of the guest interface */
    /* In flight */
    uint32_t head;                  /* oldest of inflight[] */
    uint32_t count;
    uint32_t ndescs;                /* of inflight[]; the ring has as many */
    uint32_t stale;                 /* at the backend, the ring was reset */
    uint32_t inflight_room;         /* power of 2, or 0 */
    RdmaHcaInflight *inflight;
    QTAILQ_HEAD(, RdmaHcaHeld) held; /* of RdmaHcaFaults.held */
};

struct RdmaHcaSrq {
    RdmaSrqAttr attr;               /* the limit is the backend's */
    RdmaHcaPd *pd;
    uint32_t users;                 /* QPs */
    bool error;
    RdmaHcaWq wq;
};

/* The longest ID of a fault, with its end */
#define RDMA_HCA_FAULT_ID_ROOM 64
/* Faults of a device */
#define RDMA_HCA_MAX_FAULTS 64
/* Completions that faults hold back at a time */
#define RDMA_HCA_MAX_HELD 16384
#define RDMA_HCA_FAULT_MAX_DELAY_MS 600000
#define RDMA_HCA_FAULT_MAX_DURATION_MS 3600000
/* Any opcode, any command */
#define RDMA_HCA_FAULT_ANY UINT8_MAX
/* A probability of 1 */
#define RDMA_HCA_FAULT_ALWAYS (1ull << 32)

/* Optional filters of a fault */
enum {
    RDMA_HCA_FAULT_QPN = 1u << 0,
    RDMA_HCA_FAULT_DGID = 1u << 1,
    RDMA_HCA_FAULT_DEST_QPN = 1u << 2,
};

/* Where active faults are looked for: bits of RdmaHca.fault_points */
enum {
    RDMA_HCA_FAULT_AT_SEND = 1u << 0,
    RDMA_HCA_FAULT_AT_RECV = 1u << 1,
    RDMA_HCA_FAULT_AT_COMPLETE = 1u << 2,
    RDMA_HCA_FAULT_AT_COMMAND = 1u << 3,
};

/* A fault that the user has added; what its kind does not have is 0. */
typedef struct RdmaHcaFault {
    char id[RDMA_HCA_FAULT_ID_ROOM];
    uint8_t kind;                   /* RdmaFaultKind */
    /* RdmaWcStatus, or RdmaCommandStatus of a command */
    uint8_t status;
    uint8_t opcode;                 /* RdmaWcOpcode, or ANY */
    uint8_t command;                /* RdmaCommand + 1, or ANY */
    uint32_t selects;               /* RDMA_HCA_FAULT_QPN and others */
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
    QTAILQ_ENTRY(RdmaHcaFault) next;
} RdmaHcaFault;

/* A completion that a fault holds back, or an older one of its queue */
struct RdmaHcaHeld {
    RdmaWc wc;
    uint32_t cqn;
    bool solicited;
    bool reorder;                   /* until another one has come */
    int64_t until;                  /* in virtual time, at the latest */
    QTAILQ_ENTRY(RdmaHcaHeld) next;
    QTAILQ_ENTRY(RdmaHcaHeld) next_of_queue;
};

struct RdmaHcaFaults {
    QTAILQ_HEAD(, RdmaHcaFault) list;
    uint32_t count;
    /* Oldest first; those of one work queue follow each other in time, too */
    QTAILQ_HEAD(, RdmaHcaHeld) held;
    uint32_t n_held;
    QEMUTimer *timer;               /* something is due */
    Error *blocker;                 /* of migration, or NULL */
    /* In virtual time; 0: nothing, INT64_MAX: without an end */
    int64_t port_until;
    int64_t command_until;
};

/* What faults have done to a QP */
typedef struct RdmaHcaQpFault {
    /* Its sends are held back: it is stuck, or is to enter ERR */
    bool held_back;
    bool fatal;
    const RdmaHcaFault *stuck;      /* that fault's doing, or NULL */
    int64_t until;                  /* in virtual time, or INT64_MAX */
    bool passed;                    /* the next send has met its fault */
} RdmaHcaQpFault;

struct RdmaHcaQp {
    RdmaQpInitAttr init;
    RdmaHcaPd *pd;
    RdmaHcaCq *send_cq;
    RdmaHcaCq *recv_cq;
    RdmaHcaSrq *srq;                /* or NULL; then @rq is not used */
    RdmaHcaWq sq;
    RdmaHcaWq rq;
    uint64_t n_errors;
    RdmaHcaQpError error;           /* the last one */
    RdmaHcaQpFault fault;
};

/* Asynchronous events that the driver has yet to be told of */
typedef struct RdmaHcaEvents {
    QTAILQ_HEAD(, RdmaHcaEvent) pending;
    GHashTable *by_key;
    bool port_active;               /* as the driver has been told */
} RdmaHcaEvents;

/* What a guest interface offers its HCA. All are mandatory. */
typedef struct RdmaHcaOps {
    /* May guest memory be touched and the backend be given work? */
    bool (*is_active)(RdmaHca *hca);
    /* Has the driver set up the device? For inspection. */
    bool (*has_driver)(RdmaHca *hca);
    /* Does the driver take asynchronous events? */
    bool (*has_events)(RdmaHca *hca);
    /* One is pending, see rdma_hca_events_next(). */
    void (*event)(RdmaHca *hca);
} RdmaHcaOps;

struct RdmaHca {
    const RdmaHcaOps *ops;
    Object *owner;                  /* whose part it is */
    DeviceState *dev;               /* the device as its user knows it */
    QTAILQ_ENTRY(RdmaHca) next;     /* in rdma_hcas */

    RdmaBackend *backend;
    RdmaBackendClass *bc;
    bool own_backend;
    RdmaBackendLimits limits;       /* of device and backend together */
    QEMUBH *bh;
    AioContext *ctx;                /* of the iothread, or NULL */
    QEMUBH *work_bh;                /* likewise: its part of @bh */

    RdmaHcaTable pds;
    RdmaHcaTable cqs;
    RdmaHcaTable mrs;               /* and windows */
    uint32_t n_mws;                 /* of them */
    RdmaHcaTable srqs;
    RdmaHcaTable qps;
    uint64_t counters_base[RDMA_NUM_COUNTERS]; /* of the backend */
    uint64_t mr_pages;              /* charged for MRs and WQEs */
    uint64_t max_mr_pages;
    uint32_t cmd_budget;            /* left for commands in this turn */

    uint64_t n_qp_errors;
    RdmaHcaQpError last_error;
    uint32_t error_qpn;             /* of the last one */
    bool error_untold;              /* no event for QMP has told of it */
    RdmaHcaEvents events;
    uint8_t fault_points;           /* where faults are looked for */
    RdmaHcaFaults *faults;          /* or NULL: there were none so far */

    /* Bits of QPs, and after these of SRQs, that are to be kicked */
    unsigned long *kicks;
    bool any_kicks;
    uint32_t next_kick;             /* the bit to begin with */
    uint32_t kick_budget;           /* left for doorbells until @bh runs */
    bool running;                   /* as told to the backend */
    bool may_dma;                   /* was running since RDMA_RUN_NO_DMA */
    bool port_changed;              /* in a stopped VM */
    bool unrealizing;               /* a busy backend may delay the end */
};

/*
 * What is put off while the backend is busy: the bottom halves. Guest
 * interfaces have the bits from RDMA_HCA_PENDING_GUEST on.
 */
#define RDMA_HCA_PENDING_BH RDMA_PENDING_DEVICE(0)
#define RDMA_HCA_PENDING_WORK RDMA_PENDING_DEVICE(1)
#define RDMA_HCA_PENDING_GUEST(n) RDMA_PENDING_DEVICE(2 + (n))

/*
 * Every entry into the device that works on objects is between these two, see
 * rdma_backend_enter(). After the outermost rdma_hca_leave() the device may be
 * gone.
 */
static inline void rdma_hca_enter(RdmaHca *hca)
{
    rdma_backend_enter(hca->backend);
}

static inline void rdma_hca_leave(RdmaHca *hca)
{
    rdma_backend_leave(hca->backend);
}

/* Is there an entry further up on the stack? Then nothing may be freed. */
static inline bool rdma_hca_busy(const RdmaHca *hca)
{
    return hca->backend && rdma_backend_busy(hca->backend);
}

static inline bool rdma_hca_is_active(RdmaHca *hca)
{
    return hca->ops->is_active(hca);
}

/* virtio-rdma-hca.c: the list of HCAs */

typedef QTAILQ_HEAD(RdmaHcas, RdmaHca) RdmaHcas;
extern RdmaHcas rdma_hcas;

/*
 * @hca is a part of @owner, and @dev is the device that its user has added.
 * Call before the backend is attached.
 */
void rdma_hca_init(RdmaHca *hca, const RdmaHcaOps *ops, Object *owner,
                   DeviceState *dev);
/* Show it to QMP, when it is complete; or hide it. Under the BQL. */
void rdma_hca_add(RdmaHca *hca);
void rdma_hca_remove(RdmaHca *hca);

/* virtio-rdma-table.c: objects by number */

/* Numbers are @first to @end - 1. */
void rdma_hca_table_init(RdmaHcaTable *t, uint32_t first, uint32_t end);
void rdma_hca_table_free(RdmaHcaTable *t);
/* The table is empty: start at a random number, which peers cannot guess. */
void rdma_hca_table_scatter(RdmaHcaTable *t);
/* Finds a number that is not in use; false if there is none. */
bool rdma_hca_table_find(RdmaHcaTable *t, uint32_t *id);
void rdma_hca_table_set(RdmaHcaTable *t, uint32_t id, void *obj);
void rdma_hca_table_clear(RdmaHcaTable *t, uint32_t id);
/* @id, which is free, is the number to be found next. */
void rdma_hca_table_again(RdmaHcaTable *t, uint32_t id);
/* The first object from number @id on, which becomes its number, or NULL. */
void *rdma_hca_table_next(const RdmaHcaTable *t, uint32_t *id);

/*
 * For each object @obj of table @t and its number @n, in order; @obj may be
 * taken away meanwhile. What is not in use costs a bit, not a slot: tables are
 * large, and mostly empty.
 */
#define RDMA_HCA_FOREACH(t, n, obj)                            \
    for (uint32_t n = (t)->first;                                       \
         ((obj) = rdma_hca_table_next(t, &n)); n++)

/* The object with the number @id, which may be any, or NULL. */
static inline void *rdma_hca_table_get(const RdmaHcaTable *t,
                                       uint32_t id)
{
    return id < t->end ? t->slot[id] : NULL;
}

/* The CQ @cqn; NULL if there is none, or it is an event queue. */
static inline RdmaHcaCq *rdma_hca_cq_get(RdmaHca *hca, uint32_t cqn)
{
    RdmaHcaCq *cq = rdma_hca_table_get(&hca->cqs, cqn);

    return cq && !cq->is_eq ? cq : NULL;
}

/* The region @mrn; NULL if there is none, or it is a window. */
static inline RdmaHcaMr *rdma_hca_mr_get(RdmaHca *hca, uint32_t mrn)
{
    RdmaHcaMr *mr = rdma_hca_table_get(&hca->mrs, mrn);

    return mr && !mr->mw_type ? mr : NULL;
}

/* virtio-rdma-sched.c: the bottom half */

/*
 * Run it when the device is left: what there is to send goes first, and a vCPU
 * that rings wakes the main loop once at most.
 */
void rdma_hca_bh_schedule(RdmaHca *hca);
/* Likewise its part that is about work queues: with an iothread that one's. */
void rdma_hca_work_schedule(RdmaHca *hca);
/*
 * Have it kick the queues of @qp, or @srq, or fail what is broken. Any thread
 * with the BQL may do so, also one that has not entered the device.
 */
void rdma_hca_wq_schedule(RdmaHca *hca, const RdmaHcaWq *wq);
void rdma_hca_qp_schedule(RdmaHca *hca, RdmaHcaQp *qp);
void rdma_hca_srq_schedule(RdmaHca *hca, RdmaHcaSrq *srq);
/* The driver counts wrongly: the QP, or SRQ, is to fail. */
void rdma_hca_wq_break(RdmaHca *hca, RdmaHcaWq *wq);

/* virtio-rdma-counters.c: counters, RDMA_NUM_COUNTERS of them */

/*
 * The driver asks for them, or for those of the port. 0 or a negative errno,
 * -EINPROGRESS among them.
 */
int rdma_hca_counters_update(RdmaHca *hca);
/* As they were updated last. */
void rdma_hca_counters_get(RdmaHca *hca, uint64_t *values);
/* Count on from @values, or from 0 if it is NULL. */
void rdma_hca_counters_set(RdmaHca *hca, const uint64_t *values);

/* virtio-rdma-error.c: errors of QPs, for people on the host */

/* A completion of @qp has an error, which may be that it was flushed. */
void rdma_hca_error_completed(RdmaHca *hca, RdmaHcaQp *qp,
                              const RdmaWc *wc);
/* An event of @qp has come, which may be an error. */
void rdma_hca_error_event(RdmaHca *hca, RdmaHcaQp *qp,
                          RdmaEventType type);
/* @error as management applications see it; the caller frees it. */
RdmaQueuePairError *rdma_hca_error_info(const RdmaHcaQpError *error);
/* What management applications call what completes with @opcode. */
RdmaCompletionOpcode rdma_hca_error_opcode(uint8_t opcode);
/* Send RDMA_QP_ERROR for the last error, unless it was sent. */
void rdma_hca_error_tell(RdmaHca *hca);

/* virtio-rdma-event.c: asynchronous events */

/* What the id of an event names. */
typedef enum RdmaHcaEventOf {
    RDMA_HCA_EVENT_OF_NONE,
    RDMA_HCA_EVENT_OF_CQ,
    RDMA_HCA_EVENT_OF_QP,
    RDMA_HCA_EVENT_OF_SRQ,
    RDMA_HCA_EVENT_OF_PORT,
} RdmaHcaEventOf;

RdmaHcaEventOf rdma_hca_event_of(RdmaEventType type);

void rdma_hca_events_init(RdmaHca *hca);
void rdma_hca_events_free(RdmaHca *hca);
/* Device reset: nothing is pending any more. */
void rdma_hca_events_reset(RdmaHca *hca);
/* Tell a driver that takes events, now or when there is room. */
void rdma_hca_event_raise(RdmaHca *hca, RdmaEventType type, uint32_t id);
/*
 * The driver has been told of @event, which rdma_hca_events_next() returned:
 * free it.
 */
void rdma_hca_event_done(RdmaHca *hca, const RdmaEvent *event);
/* The object is gone: drop its pending events. */
void rdma_hca_events_forget(RdmaHca *hca, RdmaHcaEventOf of, uint32_t id);
/* Raise an event if the state of the port is not the one last told. */
void rdma_hca_port_check(RdmaHca *hca);
/* Pending events, oldest first; @event NULL: the first one */
const RdmaEvent *rdma_hca_events_next(RdmaHca *hca, const RdmaEvent *event);
/* For migration */
uint32_t rdma_hca_events_max(RdmaHca *hca);
uint32_t rdma_hca_events_count(RdmaHca *hca);
/* False if it is pending already, or its object does not exist. */
bool rdma_hca_event_load(RdmaHca *hca, const RdmaEvent *event);

static inline bool rdma_hca_fault_is_of_command(uint8_t kind)
{
    return kind == RDMA_FAULT_KIND_COMMAND_ERROR ||
           kind == RDMA_FAULT_KIND_COMMAND_DELAY;
}

/* virtio-rdma-fault-check.c: what faults may be */

/* Is the kind of fault possible for what completes with @opcode? */
bool rdma_hca_fault_suits(uint8_t kind, uint8_t opcode);
/* The fault with that ID, or NULL */
RdmaHcaFault *rdma_hca_fault_find(RdmaHca *hca, const char *id);
/* Is it one that the device can have? */
bool rdma_hca_fault_check(RdmaHca *hca, const RdmaHcaFault *fault,
                          Error **errp);

/* virtio-rdma-fault.c: faults that the user wants */

/*
 * Faults do not migrate: block that, before one is added. False if the VM is
 * migrating, or has to be able to.
 */
bool rdma_hca_faults_block_migration(RdmaHca *hca, Error **errp);
/* Add a fault that was checked. */
RdmaHcaFault *rdma_hca_fault_add(RdmaHca *hca,
                                 const RdmaHcaFault *fault);
/* The port goes down now, for as long as it says. */
void rdma_hca_fault_start(RdmaHca *hca, const RdmaHcaFault *fault);
void rdma_hca_fault_remove(RdmaHca *hca, RdmaHcaFault *fault);
/* May it strike again, or does it go on? */
bool rdma_hca_fault_is_active(RdmaHca *hca, const RdmaHcaFault *fault);
void rdma_hca_faults_free(RdmaHca *hca);
/* Look at hca->fault_points and the timer anew. */
void rdma_hca_faults_update(RdmaHca *hca);
/* Time has passed: the port may come up, and QPs go on. */
void rdma_hca_faults_expire(RdmaHca *hca);
/* The QP enters RESET. */
void rdma_hca_fault_forget_qp(RdmaHcaQp *qp);
/* It is in ERR: its sends are not held back any more. */
void rdma_hca_fault_let_go(RdmaHcaQp *qp);
/*
 * A send that was decoded, with the SGEs of @wr. False if it is to be held
 * back: then qp->fault says why, and the QP is scheduled. Not in ERR.
 */
bool rdma_hca_fault_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr,
                         RdmaSge *sge);
/* Likewise a receive; @qp NULL: of an SRQ. It is not held back. */
void rdma_hca_fault_recv(RdmaHca *hca, RdmaHcaQp *qp, RdmaRecvWr *wr,
                         RdmaSge *sge);
/* The fault that a completion meets, or NULL */
RdmaHcaFault *rdma_hca_fault_complete(RdmaHca *hca, RdmaHcaQp *qp,
                                      const RdmaWc *wc);
/*
 * A command is about to be executed, @again: after -EINPROGRESS. 0 if it may
 * be; or an error of its own, -EINPROGRESS among them.
 */
int rdma_hca_fault_command(RdmaHca *hca, uint8_t cmd, bool again,
                           uint32_t qpn);
/* There is no command in progress any more. */
void rdma_hca_fault_forget_command(RdmaHca *hca);
/* Is the time of what waits until @until over? */
bool rdma_hca_fault_is_due(int64_t until);

/* virtio-rdma-complete.c: completions */

/* Write a completion. False if the CQ is in error, or enters it. */
bool rdma_hca_cq_complete(RdmaHca *hca, RdmaHcaCq *cq,
                          const RdmaWc *wc, bool solicited);
/* Write no completions any more. The caller sees to the QPs of the CQ. */
void rdma_hca_cq_enter_error(RdmaHca *hca, RdmaHcaCq *cq);

/* virtio-rdma-hold.c: completions that faults change or hold back */

/* As rdma_hca_cq_complete(), where there may be a fault. */
bool rdma_hca_hold_complete(RdmaHca *hca, RdmaHcaCq *cq,
                            const RdmaWc *wc, bool solicited);
/*
 * Write those that are due. A CQ that has failed in that is returned: the
 * caller sees to its QPs, and calls again.
 */
RdmaHcaCq *rdma_hca_hold_run(RdmaHca *hca);
/* Drop those of a QP that was reset or is gone. */
void rdma_hca_hold_forget_qp(RdmaHca *hca, RdmaHcaQp *qp);

/* virtio-rdma-inspect.c: a look from the host */

/* Which of the objects of a device are wanted. */
typedef struct RdmaHcaLook {
    bool kinds[RDMA_OBJECT_KIND__MAX];
    bool detail;
    uint32_t first;
    uint32_t max;
} RdmaHcaLook;

/* The caller frees what is returned. */
RdmaInfo *rdma_hca_inspect(RdmaHca *hca, const RdmaHcaLook *look);

/* virtio-rdma-qmp.c: which devices there are */

/* Those that are realized: RdmaHca, to be freed by g_ptr_array_unref(). */
GPtrArray *rdma_hca_find_all(void);
/* The one with that ID or path; NULL and @errp if there is none. */
RdmaHca *rdma_hca_find(const char *name, Error **errp);
/* As the user may call it: by its ID, or its path if it has none. */
char *rdma_hca_name(RdmaHca *hca);

/* virtio-rdma-hmp.c: the same for people */

void rdma_hca_hmp_init(void);

#endif
