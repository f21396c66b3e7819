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
#include "net/net.h"
#include "qapi/qapi-types-rdma.h"
#include "qapi/qapi-types-rdma-fault.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "rdma/work.h"
#include "system/rdma-backend.h"

/* Of RdmaBackendLimits.device_cap_flags: as in ib_device_cap_flags of Linux */
#define RDMA_HCA_CAP_MEM_MGT_EXTENSIONS (1ull << 21)
/* Pages of a region for fast registration */
#define RDMA_HCA_MAX_PAGE_LIST 1024
/* Pages that other regions may have: bit n is for 2^n bytes. */
#define RDMA_HCA_PAGE_SIZES 0x7ffff000ull

typedef struct RdmaHca RdmaHca;
typedef struct RdmaHcaCq RdmaHcaCq;
typedef struct RdmaHcaCqOps RdmaHcaCqOps;
typedef struct RdmaHcaEvent RdmaHcaEvent;
typedef struct RdmaHcaFault RdmaHcaFault;
typedef struct RdmaHcaFaults RdmaHcaFaults;
typedef struct RdmaHcaHeld RdmaHcaHeld;
typedef struct RdmaHcaInflight RdmaHcaInflight;
typedef struct RdmaHcaMr RdmaHcaMr;
typedef struct RdmaHcaPd RdmaHcaPd;
typedef struct RdmaHcaQp RdmaHcaQp;
typedef struct RdmaHcaSrq RdmaHcaSrq;
typedef struct RdmaHcaWq RdmaHcaWq;
typedef struct RdmaHcaWqOps RdmaHcaWqOps;
typedef struct RdmaHcaWalk RdmaHcaWalk;

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
    /* Drop the completions that wait for room. Optional. */
    void (*drop)(RdmaHca *hca, RdmaHcaCq *cq);
    /* Drop those of QP @qpn, which was reset or is gone. Optional. */
    void (*forget_qp)(RdmaHca *hca, RdmaHcaCq *cq, uint32_t qpn);
    /* The driver has destroyed the CQ. free_cq() follows. Optional. */
    void (*destroyed)(RdmaHca *hca, RdmaHcaCq *cq);
    /* Fill in what only the guest interface knows. Optional. */
    void (*inspect)(RdmaHca *hca, const RdmaHcaCq *cq, RdmaCqInfo *info);
};

/*
 * What the device remembers of a WQE until the backend is done with it: its
 * place in a ring of the guest interface, and the pages of a list that the WQE
 * brought.
 */
struct RdmaHcaInflight {
    uint16_t index;
    uint16_t ndescs;
    uint16_t npages;
    uint32_t mrn;                   /* the region that gets the pages */
};

/*
 * What a guest interface does with a work queue; each form has its own. WQEs
 * are copied from guest memory when they are taken, and checked afterwards. A
 * driver that breaks a rule breaks its queue: rdma_hca_wq_break().
 */
struct RdmaHcaWqOps {
    bool is_direct;                 /* for inspection */
    /* How many WQEs may be in flight */
    uint32_t (*depth)(const RdmaHcaWq *wq);
    /*
     * Copy the next WQE to a buffer of the guest interface, which decode_send()
     * or decode_recv() reads next, and fill in the ring's part of @inflight.
     * False if there is none.
     */
    bool (*take)(RdmaHca *hca, RdmaHcaWq *wq, RdmaHcaInflight *inflight);
    /* Undo the last take() of this queue. */
    void (*put_back)(RdmaHca *hca, RdmaHcaWq *wq);
    /* Return the oldest @count that are in flight to the driver. Optional. */
    void (*retire)(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count);
    /*
     * Count the WQEs that the driver has posted and the device has not taken.
     * False if that cannot be told, and @n is undefined. Changes nothing.
     */
    bool (*count)(RdmaHca *hca, const RdmaHcaWq *wq, uint32_t *n);
    /* Do the driver's counters make sense? If not, break the queue. */
    bool (*check)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * The doorbell of an SQ was rung; @alone: as far as the device knows, no
     * other send follows, and the queue is not worth a rescan. Optional.
     */
    void (*ring)(RdmaHca *hca, RdmaHcaWq *wq, bool alone);
    /*
     * The device polls the queue: the driver need not ring. False if the driver
     * knows that already.
     */
    bool (*wake)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * take() found no WQE: have the driver ring for the next one. RDMA_NEXT_WR
     * if there is one already; RDMA_NEXT_LATER, of an SQ only, if the device
     * polls the queue in its next turn instead.
     */
    RdmaNext (*sleep)(RdmaHca *hca, RdmaHcaWq *wq);
    /* Drop what was not taken, after @n WQEs were returned just before. */
    void (*drain)(RdmaHca *hca, RdmaHcaWq *wq, uint32_t n);
    /* The driver has destroyed the queue. Optional. */
    void (*destroyed)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * After migration, when guest memory may be touched: tell the ring what is
     * in flight. Optional.
     */
    void (*restore_order)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * Entries of the ring that RdmaHcaInflight is about. NULL: there is no
     * ring, and index and ndescs are 0.
     */
    uint32_t (*ring_size)(RdmaHca *hca, const RdmaHcaWq *wq);
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

/* What faults have done to a QP */
typedef struct RdmaHcaQpFault {
    /* Its sends are held back: it is stuck, or is to enter ERR */
    bool held_back;
    bool fatal;
    const RdmaHcaFault *stuck;      /* that fault's doing, or NULL */
    int64_t until;                  /* in virtual time, or INT64_MAX */
    bool passed;                    /* the next send has met its fault */
    RdmaHcaFault *met;              /* which strikes it then, or NULL */
    RdmaHcaFault *struck;           /* the last send, or NULL */
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

/*
 * What a guest interface offers its HCA. All are mandatory, unless they say
 * else. Those that decode and serve are called between rdma_hca_enter() and
 * rdma_hca_leave().
 */
typedef struct RdmaHcaOps {
    /* May guest memory be touched and the backend be given work? */
    bool (*is_active)(RdmaHca *hca);
    /* Has the driver set up the device? For inspection. */
    bool (*has_driver)(RdmaHca *hca);
    /* Does the driver take asynchronous events? */
    bool (*has_events)(RdmaHca *hca);
    /* An event is pending, see rdma_hca_events_next(). */
    void (*event_pending)(RdmaHca *hca);
    /*
     * Attributes of the port changed: update what the driver sees, and notify
     * the driver. False in a stopped VM: not done.
     */
    bool (*port_changed)(RdmaHca *hca);
    /*
     * Decode the WQE that was taken last from qp->sq into @wr, which is zero.
     * Its lists may lie in hca->sge, and in buffers of the guest interface,
     * until the next take(). A status other than success completes the send
     * with that error.
     */
    void (*decode_send)(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr);
    /* Likewise of an RQ or SRQ */
    void (*decode_recv)(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr);
    /* Free the object, which was removed. All its references are gone. */
    void (*free_cq)(RdmaHca *hca, RdmaHcaCq *cq);
    void (*free_srq)(RdmaHca *hca, RdmaHcaSrq *srq);
    void (*free_qp)(RdmaHca *hca, RdmaHcaQp *qp);
    /* The status of device or VM may have changed: look, in the bottom half. */
    void (*update_running)(RdmaHca *hca);
    /* Serve commands, and notify the driver of what waits. Under the BQL. */
    void (*serve)(RdmaHca *hca);
    /* Look for doorbells in memory, before the kicks are run. Optional. */
    void (*poll_doorbells)(RdmaHca *hca);
    /*
     * A command that was answered with -EINPROGRESS can be called again.
     * serve() follows, when the device is active.
     */
    void (*resume)(RdmaHca *hca);
    /* See RdmaBackendClientOps. */
    void (*flush)(RdmaHca *hca);
    /* The bits from RDMA_HCA_PENDING_GUEST on. The device may be gone after. */
    void (*run_pending)(RdmaHca *hca, uint32_t pending);
} RdmaHcaOps;

/* A page list as the driver gives it, unchecked */
typedef struct RdmaHcaPages {
    uint64_t iova;
    uint64_t length;                /* bytes */
    uint64_t table;                 /* DMA address of the list, or the root */
    uint32_t npages;
    uint32_t page_shift;            /* 0: RDMA_PAGE_SHIFT */
    uint32_t levels;                /* of tables; 0: a list */
} RdmaHcaPages;

/* The GIDs whose first @bits bits are those of @gid. */
typedef struct RdmaHcaGids {
    uint8_t gid[RDMA_GID_LEN];
    unsigned bits;
} RdmaHcaGids;

/* Objects that the backend has loaded from a migration stream */
typedef struct RdmaHcaLoaded {
    uint32_t mrs;
    uint32_t mws;
    uint32_t srqs;
    uint32_t qps;
} RdmaHcaLoaded;

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
    uint64_t max_mr_pages;          /* 0 before rdma_hca_start(): by RAM */
    uint32_t cmd_budget;            /* left for commands in this turn */
    RdmaHcaWalk *walk;              /* of the command in progress, or NULL */
    uint32_t extensions;            /* RDMA_EXT_* that the driver uses */
    RdmaHcaGids *allowed_gids;      /* or NULL: all are */
    uint32_t n_allowed_gids;
    RdmaHcaLoaded loaded;
    RdmaSge *sge;                   /* of the last WQE, see decode_send() */

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
    void (*end)(RdmaHca *hca);      /* of rdma_hca_end(), or NULL */
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

/* Is there a region for fast registration? */
static inline bool rdma_hca_has_mem_mgt(const RdmaHca *hca)
{
    return hca->limits.device_cap_flags & RDMA_HCA_CAP_MEM_MGT_EXTENSIONS;
}

/* hca.c: the adapter as a whole */

typedef QTAILQ_HEAD(RdmaHcas, RdmaHca) RdmaHcas;
/* Those that are realized. Under the BQL. */
extern RdmaHcas rdma_hcas;

/*
 * @hca is a part of @owner, and @dev is the device that its user has added,
 * whose reentrancy guard the bottom halves use. Call before
 * rdma_hca_backend_get().
 */
void rdma_hca_init(RdmaHca *hca, const RdmaHcaOps *ops, Object *owner,
                   DeviceState *dev);
/* hca->limits are final: make tables and bottom halves, and show it to QMP. */
void rdma_hca_start(RdmaHca *hca);
/*
 * The device is unrealized: hide it from QMP, serve no one, and call @end as
 * soon as nothing on the stack uses the device any more; @end calls
 * rdma_hca_detach() and rdma_hca_free().
 */
void rdma_hca_end(RdmaHca *hca, void (*end)(RdmaHca *hca));
/* Device reset: no objects, no events, counters are 0. Not within itself. */
void rdma_hca_reset(RdmaHca *hca);
/* Remove all objects, after the backend has done so. Part of both others. */
void rdma_hca_objects_reset(RdmaHca *hca);
/* Undo rdma_hca_start(), after rdma_hca_detach(). */
void rdma_hca_free(RdmaHca *hca);

/* consumer.c: the backend */

/*
 * Find the backend that the properties "netdev", "rdmadev" and "mac" name, or
 * make one. After a failure: rdma_hca_backend_put().
 */
bool rdma_hca_backend_get(RdmaHca *hca, const char *netdev,
                          RdmaBackend *rdmadev, const MACAddr *mac,
                          Error **errp);
/*
 * Attach to hca->backend with hca->limits, which come back as those of device
 * and backend together. @dma_as: where the driver's addresses lie.
 */
bool rdma_hca_attach(RdmaHca *hca, AddressSpace *dma_as, Error **errp);
void rdma_hca_detach(RdmaHca *hca);
/* The driver uses these of RDMA_EXT_*. */
void rdma_hca_use_extensions(RdmaHca *hca, uint32_t extensions);
/* Let a backend go that is not attached. Part of rdma_hca_detach(). */
void rdma_hca_backend_put(RdmaHca *hca);

/* ram.c: guest memory, and nothing but RAM: what else there is takes long */

/* Guest RAM, while the backend is attached */
static inline const RdmaRam *rdma_hca_ram(const RdmaHca *hca)
{
    return &hca->backend->ram;
}

/* Copy @len bytes of RAM at DMA address @addr. */
bool rdma_hca_read_ram(const RdmaRam *ram, uint64_t addr, void *buf,
                       size_t len);
/* Copy @len bytes to RAM, in one piece. */
bool rdma_hca_write_ram(const RdmaRam *ram, uint64_t addr, const void *buf,
                        uint64_t len);
/* Read @n little-endian addresses. */
bool rdma_hca_read_addrs(const RdmaRam *ram, uint64_t addr, uint32_t n,
                         uint64_t *addrs);
/* A 32-bit word in RAM, at an aligned address */
bool rdma_hca_load_word(const RdmaRam *ram, uint64_t addr, uint32_t *value);
bool rdma_hca_store_word(const RdmaRam *ram, uint64_t addr, uint32_t value);
/* Likewise: take all bits of it by an atomic operation. */
bool rdma_hca_take_bits(const RdmaRam *ram, uint64_t addr, uint32_t *bits);
/*
 * The host's address of @len bytes of RAM in one piece, and aligned for a word,
 * for as long as RCU is locked. NULL if it is something else. Writes there are
 * followed by rdma_ram_written().
 */
void *rdma_hca_words_at(const RdmaRam *ram, uint64_t addr, uint64_t len,
                        bool is_write);

/* table.c: objects by number */

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

/* sched.c: the bottom half */

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

/* run.c: kicks and bottom halves */

/*
 * The queue may have work: have the backend look. @alone: see
 * RdmaHcaWqOps.ring(). In the device, see rdma_hca_enter().
 */
void rdma_hca_kick(RdmaHca *hca, RdmaHcaWq *wq, bool alone);
/*
 * A doorbell: kick the queue now, or in the bottom half if the device is busy
 * or the budget for doorbells is used up. The device may be gone after it.
 */
void rdma_hca_ring(RdmaHca *hca, RdmaHcaWq *wq);
/*
 * For guest interfaces with doorbells of their own kind: enter the device to
 * serve one. False: the caller schedules the queue instead.
 */
bool rdma_hca_enter_to_kick(RdmaHca *hca);
/* Schedule all queues. */
void rdma_hca_kick_all(RdmaHca *hca);
/*
 * @running: driver, VM and device let the backend work; @ready: all but the VM
 * do. Tell the backend, and return whether @running has changed.
 *
 * A driver may free its memory when the device is broken or may not be bus
 * master, and its successor when the device is not set up any more: peers must
 * not write there.
 */
bool rdma_hca_set_running(RdmaHca *hca, bool running, bool ready);

/* check.c: values that the driver gives for a field */

/* Is it @min to @max? If not, log an error of the guest. */
bool rdma_hca_check_range(const char *field, uint64_t value, uint64_t min,
                          uint64_t max);
/* Has it no other flags than @known? */
bool rdma_hca_check_flags(const char *field, uint64_t value, uint64_t known);

/*
 * Verbs. They check what a driver gives, in host byte order, and return 0 or a
 * negative errno; then nothing has changed, and what is to be filled in is
 * undefined. After -EINPROGRESS the guest interface calls the same function
 * again with the same arguments when RdmaHcaOps.resume() says so; it then comes
 * to the same number.
 *
 * Commands that bring lists of pages come in two functions: the guest interface
 * calls the one that checks, reads the list by rdma_hca_pages_read_on(), calls
 * the one that executes, and then rdma_hca_pages_give_back().
 *
 * Objects of queues are allocated by the guest interface, which embeds them:
 * _add() gives one its number, PD and CQs, then the guest interface gives it
 * its form, then _create() makes it in the backend; if that fails the object is
 * removed, and freed by RdmaHcaOps.free_*(). _add() and _remove() are also for
 * migration and reset, where the backend looks after itself.
 */

/* pd.c: protection domains */

int rdma_hca_pd_create(RdmaHca *hca, uint32_t *pdn);
int rdma_hca_pd_destroy(RdmaHca *hca, uint32_t pdn);
RdmaHcaPd *rdma_hca_pd_add(RdmaHca *hca, uint32_t pdn);

/* pages.c: page lists, of regions and of queues in memory */

/* Is it a list that a region can have? Fills in the default of @page_shift. */
int rdma_hca_pages_check(RdmaHca *hca, RdmaHcaPages *p);
/* Does it have @npages, and levels for so many? 0 or -EINVAL. */
int rdma_hca_pages_check_num(const RdmaHcaPages *p, uint64_t npages);
/*
 * All lists together have a limit: count @npages more, or -ENOMEM. To undo it,
 * subtract them from hca->mr_pages.
 */
int rdma_hca_pages_charge(RdmaHca *hca, uint32_t npages);
/*
 * Read a list that was checked into *@pages, to be freed by g_free(). It
 * counts in hca->mr_pages from then on; -ENOMEM if all regions together have
 * too many.
 */
int rdma_hca_pages_read(RdmaHca *hca, const RdmaHcaPages *p, uint64_t **pages);
/*
 * The same for a command, whose list may be long: -EINPROGRESS when the budget
 * of this turn is used up. The command is executed again in the next turn, and
 * comes to its end here.
 */
int rdma_hca_pages_read_on(RdmaHca *hca, const RdmaHcaPages *p,
                           uint64_t **pages);
/* Free a list that was read: its pages do not count any more. */
void rdma_hca_pages_free(RdmaHca *hca, uint64_t *pages, uint32_t npages);
/* Is there a list that the next turn goes on with? */
bool rdma_hca_pages_reading(const RdmaHca *hca);
/*
 * A function of mr.c that takes over the list @pages, which @p names, has
 * returned @ret: free the list, or expect it when the command is executed
 * again. The function has returned the charge.
 */
void rdma_hca_pages_give_back(RdmaHca *hca, int ret, uint64_t *pages,
                              const RdmaHcaPages *p);
/* There is no command in progress any more. */
void rdma_hca_pages_drop(RdmaHca *hca);

/* mr.c: memory regions */

/* @attr: type, pdn, access and max_pages */
int rdma_hca_mr_check(RdmaHca *hca, const RdmaMrAttr *attr);
/* Likewise, with iova, length and pages; fills in mrn, lkey and rkey. */
int rdma_hca_mr_create(RdmaHca *hca, RdmaMrAttr *attr);
/* @flags: RDMA_REREG_*; @attr: mrn, pdn and access */
int rdma_hca_mr_check_rereg(RdmaHca *hca, uint32_t flags,
                            const RdmaMrAttr *attr);
/* Likewise, with iova, length and pages; fills in lkey and rkey. */
int rdma_hca_mr_rereg(RdmaHca *hca, uint32_t flags, RdmaMrAttr *attr);
/* Give a region for fast registration the list that the next REG_MR uses. */
int rdma_hca_mr_check_map(RdmaHca *hca, uint32_t mrn, uint32_t npages);
int rdma_hca_mr_map(RdmaHca *hca, uint32_t mrn, uint64_t iova, uint64_t length,
                    uint64_t *pages, uint32_t npages);
int rdma_hca_mr_dereg(RdmaHca *hca, uint32_t mrn);
RdmaHcaMr *rdma_hca_mr_add(RdmaHca *hca, uint32_t mrn, RdmaHcaPd *pd,
                           uint32_t type);

/* mw.c: memory windows */

/* @attr: pdn and type; fills in mwn and rkey. */
int rdma_hca_mw_alloc(RdmaHca *hca, RdmaMwAttr *attr);
int rdma_hca_mw_dealloc(RdmaHca *hca, uint32_t mwn);
RdmaHcaMr *rdma_hca_mw_add(RdmaHca *hca, const RdmaMwAttr *attr);

/* cq.c: completion queues */

void rdma_hca_cq_add(RdmaHca *hca, RdmaHcaCq *cq, uint32_t cqn, uint32_t cqe);
int rdma_hca_cq_create(RdmaHca *hca, RdmaHcaCq *cq);
/* The form has room for @cqe: have the backend know, and cq->cqe. */
int rdma_hca_cq_resize(RdmaHca *hca, RdmaHcaCq *cq, uint32_t cqe);
int rdma_hca_cq_destroy(RdmaHca *hca, uint32_t cqn);
/* Write no completions any more. The caller sees to the QPs of the CQ. */
void rdma_hca_cq_enter_error(RdmaHca *hca, RdmaHcaCq *cq);

/* srq.c: shared receive queues */

int rdma_hca_srq_check(RdmaHca *hca, const RdmaSrqAttr *attr);
void rdma_hca_srq_add(RdmaHca *hca, RdmaHcaSrq *srq, const RdmaSrqAttr *attr);
int rdma_hca_srq_create(RdmaHca *hca, RdmaHcaSrq *srq);
int rdma_hca_srq_modify(RdmaHca *hca, uint32_t srqn, uint32_t limit);
int rdma_hca_srq_query(RdmaHca *hca, uint32_t srqn, RdmaSrqAttr *attr);
int rdma_hca_srq_destroy(RdmaHca *hca, uint32_t srqn);
/* The SRQ enters its error, and its QPs enter ERR. */
void rdma_hca_srq_fail(RdmaHca *hca, RdmaHcaSrq *srq);

/* qp.c: queue pairs */

/*
 * All of @init except the numbers of the QP, which the guest interface chooses;
 * @max_wr: depth of the queues. With an SRQ the limits of receives become 0.
 */
int rdma_hca_qp_check(RdmaHca *hca, RdmaQpInitAttr *init, uint32_t max_wr);
/* Find a free number: QPN 1 is for the GSI, and no other. */
int rdma_hca_qp_find(RdmaHca *hca, RdmaQpType type, uint32_t *qpn);
void rdma_hca_qp_add(RdmaHca *hca, RdmaHcaQp *qp, const RdmaQpInitAttr *init);
/* Fills in qp->init.wire_qpn. */
int rdma_hca_qp_create(RdmaHca *hca, RdmaHcaQp *qp);
int rdma_hca_qp_modify(RdmaHca *hca, uint32_t qpn, uint32_t mask,
                       const RdmaQpAttr *wanted);
int rdma_hca_qp_query(RdmaHca *hca, uint32_t qpn, RdmaQpAttr *attr);
int rdma_hca_qp_destroy(RdmaHca *hca, uint32_t qpn);
/* Is the QP in this state now, or about to enter ERR? */
bool rdma_hca_qp_is_in(RdmaHca *hca, RdmaHcaQp *qp, RdmaQpState state);
/* The QP enters ERR. */
void rdma_hca_qp_fail(RdmaHca *hca, RdmaHcaQp *qp);
/* The CQ enters its error, and its QPs enter ERR. */
void rdma_hca_cq_fail(RdmaHca *hca, RdmaHcaCq *cq);

/* mcast.c: multicast groups */

int rdma_hca_mcast_set(RdmaHca *hca, uint32_t qpn,
                       const uint8_t gid[RDMA_GID_LEN], bool attach);

/* port.c: the port */

bool rdma_hca_check_port(uint32_t port);
int rdma_hca_port_query(RdmaHca *hca, RdmaPortAttr *attr);
int rdma_hca_gid_add(RdmaHca *hca, uint32_t index,
                     const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);
int rdma_hca_gid_del(RdmaHca *hca, uint32_t index);
/* The VM goes on, and the port changed while it was stopped. */
void rdma_hca_port_changed(RdmaHca *hca);

/* gids.c: the GIDs that the guest may use */

/* @text: of the property "allowed-gids", or NULL */
bool rdma_hca_gids_parse(RdmaHca *hca, const char *text, Error **errp);
void rdma_hca_gids_free(RdmaHca *hca);
bool rdma_hca_gid_allowed(const RdmaHca *hca, const uint8_t gid[RDMA_GID_LEN]);

/* sq.c: send queues */

/*
 * Of RdmaHcaOps.decode_send(): read the list that the REG_MR @wr brings to its
 * region, and charge it to the WQE, the newest of the queue. Returns the status
 * of @wr.
 */
RdmaWcStatus rdma_hca_sq_read_reg(RdmaHca *hca, RdmaHcaQp *qp,
                                  RdmaHcaPages *p, RdmaSendWr *wr);

/* wq.c: work queues */

/* The @i-th oldest WQE that the backend has. */
RdmaHcaInflight *rdma_hca_wq_inflight(const RdmaHcaWq *wq, uint32_t i);
/* Add one as the newest, for migration. */
void rdma_hca_wq_push(RdmaHcaWq *wq, const RdmaHcaInflight *inflight);
/* The ring of the queue was reset. Returns whether WQEs were lost. */
bool rdma_hca_wq_forget(RdmaHca *hca, RdmaHcaWq *wq);
/* After migration, when guest memory may be touched */
void rdma_hca_wqs_restore_order(RdmaHca *hca);

/* loaded.c: migration of the backend, after that of the device */

void rdma_hca_load_begin(RdmaHca *hca);
/* Has the backend loaded all objects of the device? If not, report it. */
bool rdma_hca_load_end(RdmaHca *hca);

/* fault.c: faults of commands */

/*
 * A command is about to be executed, @again: after -EINPROGRESS. 0 if it may
 * be; or an error of its own, -EINPROGRESS among them.
 */
int rdma_hca_command_begin(RdmaHca *hca, RdmaCommand cmd, bool again,
                           uint32_t qpn);
/* No command is in progress any more. */
void rdma_hca_command_end(RdmaHca *hca);

/* counters.c: counters, RDMA_NUM_COUNTERS of them */

/*
 * The driver asks for them, or for those of the port. 0 or a negative errno,
 * -EINPROGRESS among them.
 */
int rdma_hca_counters_update(RdmaHca *hca);
/* As they were updated last. */
void rdma_hca_counters_get(RdmaHca *hca, uint64_t *values);
/* Count on from @values, or from 0 if it is NULL. */
void rdma_hca_counters_set(RdmaHca *hca, const uint64_t *values);

/* event.c: asynchronous events */

/* What the id of an event names. */
typedef enum RdmaHcaEventOf {
    RDMA_HCA_EVENT_OF_NONE,
    RDMA_HCA_EVENT_OF_CQ,
    RDMA_HCA_EVENT_OF_QP,
    RDMA_HCA_EVENT_OF_SRQ,
    RDMA_HCA_EVENT_OF_PORT,
} RdmaHcaEventOf;

RdmaHcaEventOf rdma_hca_event_of(RdmaEventType type);

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

#endif
