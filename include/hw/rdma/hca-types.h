/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Types of the HCA core: its objects, the operations that a guest interface
 * implements, and the adapter itself. Guest interfaces include hw/rdma/hca.h.
 */
#ifndef HW_RDMA_HCA_TYPES_H
#define HW_RDMA_HCA_TYPES_H

#include "hw/core/qdev.h"
#include "net/net.h"
#include "qapi/qapi-types-rdma.h"
#include "qapi/qapi-types-rdma-fault.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "rdma/work.h"
#include "system/rdma-backend.h"

/* A bit of RdmaBackendLimits.device_cap_flags, as Linux numbers it */
#define RDMA_HCA_CAP_MEM_MGT_EXTENSIONS (1ull << 21)
/* The most pages that a region for fast registration can have */
#define RDMA_HCA_MAX_PAGE_LIST 1024
/* Page sizes that other regions can have: bit n stands for 2^n bytes. */
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
typedef struct RdmaHcaRecord RdmaHcaRecord;
typedef struct RdmaHcaSrq RdmaHcaSrq;
typedef struct RdmaHcaWq RdmaHcaWq;
typedef struct RdmaHcaWqOps RdmaHcaWqOps;
typedef struct RdmaHcaWalk RdmaHcaWalk;

/* The objects of one kind by number: @first to @end - 1 */
typedef struct RdmaHcaTable {
    uint32_t first;
    uint32_t end;
    uint32_t count;
    uint32_t next;                  /* the search for a number starts here */
    void **slot;                    /* by number; NULL: free */
    unsigned long *used;            /* bitmap of the numbers in use */
} RdmaHcaTable;

/* An error of a QP: a completion, or an event if @status is SUCCESS */
typedef struct RdmaHcaQpError {
    int64_t at;                     /* ns since the Epoch */
    uint64_t wr_id;
    uint32_t vendor_err;
    uint8_t status;                 /* RdmaWcStatus */
    uint8_t opcode;                 /* RdmaWcOpcode */
    uint8_t event;                  /* RdmaEventType */
} RdmaHcaQpError;

struct RdmaHcaPd {
    uint32_t pdn;
    uint32_t users;                 /* MRs, windows, SRQs and QPs */
    uint32_t context;               /* for the guest interface; 0 at first */
};

/*
 * The operations of a guest interface on a CQ. Each form of a CQ, such as a
 * virtqueue or slots in memory, has its own set. The core calls them, between
 * rdma_hca_enter() and rdma_hca_leave().
 */
struct RdmaHcaCqOps {
    /* The CQ is in memory of the driver, without a virtqueue. */
    bool direct;
    /*
     * Give a completion to the driver, and notify the driver if it has armed
     * the CQ. False: there is no room, or the driver broke a rule. The core
     * then puts the CQ into its error state.
     */
    bool (*complete)(RdmaHca *hca, RdmaHcaCq *cq, const RdmaWc *wc,
                     bool solicited);
    /* The CQ is in error: drop completions that wait for room. Optional. */
    void (*drop)(RdmaHca *hca, RdmaHcaCq *cq);
    /* @qp was reset or is gone: drop its waiting completions. Optional. */
    void (*forget_qp)(RdmaHca *hca, RdmaHcaCq *cq, const RdmaHcaQp *qp);
    /* The driver has destroyed the CQ, which is freed next. Optional. */
    void (*destroyed)(RdmaHca *hca, RdmaHcaCq *cq);
    /* Fill in the fields of query-rdma that only the form knows. Optional. */
    void (*inspect)(const RdmaHcaCq *cq, RdmaCqInfo *info);
};

/*
 * A WQE in flight, until the backend is done with it, and the page list of a
 * REG_MR, which is charged to it
 */
struct RdmaHcaInflight {
    uint32_t place;                 /* for the guest interface; 0 at first */
    uint16_t npages;                /* of the list; 0: it has no list */
    uint32_t mrn;                   /* the region that gets the pages */
};

/*
 * The operations of a guest interface on a work queue. Each form has its own
 * set. The core calls them as it calls those of a CQ. take() copies a WQE from
 * guest memory, and only the copy is checked, because the guest can change its
 * memory at any time. If a driver breaks a rule, the operation calls
 * rdma_hca_wq_break(), or breaks the whole device, and fails.
 */
struct RdmaHcaWqOps {
    /* The queue is in memory of the driver, without a virtqueue. */
    bool direct;
    /* The most WQEs that can be in flight */
    uint32_t (*depth)(const RdmaHcaWq *wq);
    /*
     * Copy the next WQE to a buffer of the guest interface, which decode_send()
     * or decode_recv() reads next. *@place: see RdmaHcaInflight. False if there
     * is no WQE.
     */
    bool (*take)(RdmaHca *hca, RdmaHcaWq *wq, uint32_t *place);
    /* Undo the last take() of this queue. */
    void (*put_back)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * The oldest @count WQEs in flight are done: return their places to the
     * driver. Optional.
     */
    void (*retire)(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count);
    /*
     * Count the WQEs that the driver has posted and the device has not taken.
     * False if the form cannot count them; @n is then undefined. The queue does
     * not change.
     */
    bool (*count)(RdmaHca *hca, const RdmaHcaWq *wq, uint32_t *n);
    /* Check the driver's counters. False: they are wrong; break the queue. */
    bool (*check)(RdmaHca *hca, RdmaHcaWq *wq);
    /* The driver has rung the doorbell of an SQ. Optional. */
    void (*ring)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * Tell the driver that the device polls the queue, so that the driver need
     * not ring. False if the driver has been told already.
     */
    bool (*wake)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * take() found no WQE: tell the driver to ring for the next one. Returns
     * RDMA_NEXT_NONE; RDMA_NEXT_WR if a WQE has come meanwhile; or, for an SQ
     * only, RDMA_NEXT_LATER if the device polls the queue.
     */
    RdmaNext (*sleep)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * Drop the WQEs that were not taken. The core has just retired @n WQEs; a
     * ring notifies the driver of both.
     */
    void (*drain)(RdmaHca *hca, RdmaHcaWq *wq, uint32_t n);
    /* The driver has destroyed the queue. Optional. */
    void (*destroyed)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * Migration: a WQE in flight has this @place. False, after a report about
     * @r: it cannot have. NULL: the form has no places.
     */
    bool (*load)(RdmaHca *hca, RdmaHcaWq *wq, uint32_t place,
                 const RdmaHcaRecord *r);
};

/*
 * A CQ, or an event queue of a guest interface: both have numbers of the same
 * table. The guest interface allocates and frees it.
 */
struct RdmaHcaCq {
    const RdmaHcaCqOps *ops;        /* the form */
    uint32_t cqn;
    uint32_t cqe;
    uint32_t users;                 /* queues of QPs; CQs of an event queue */
    bool is_eq;
    bool error;                     /* final: no completion is written */
    uint32_t n_held;                /* completions that faults hold back */
    uint32_t n_reordered;           /* of @n_held, by completion-reorder */
};

/*
 * A memory region or a window: both have numbers of the same table. The core
 * allocates and frees it.
 */
struct RdmaHcaMr {
    uint32_t mrn;
    uint32_t pdn;
    uint32_t type;                  /* RdmaMrType */
    uint32_t key;
    uint32_t rkey;                  /* of a window: the one of its allocation */
    /* Pages that are charged: of the list in use, and of MAP_MR_SG */
    uint32_t npages;
    uint32_t pending;
    uint32_t max_pages;             /* of RDMA_MR_FAST_REG */
    uint32_t mw_type;               /* RdmaMwType; 0: a region */
    RdmaHcaPd *pd;
};

/* An SQ, RQ or SRQ, part of its RdmaHcaQp or RdmaHcaSrq */
struct RdmaHcaWq {
    const RdmaHcaWqOps *ops;        /* the form */
    RdmaQueue kind;
    uint32_t id;                    /* QPN, or number of the SRQ */
    uint32_t max_sge;
    uint32_t max_inline;
    bool broken;                    /* the driver's counters are wrong */
    void *opaque;                   /* for the guest interface */
    /* WQEs in flight: a circular buffer, oldest first */
    uint32_t head;                  /* the oldest in inflight[] */
    uint32_t count;
    uint32_t stale;                 /* older WQEs, whose ring was reset */
    uint32_t inflight_room;         /* size of inflight[]: power of 2, or 0 */
    RdmaHcaInflight *inflight;
    QTAILQ_HEAD(, RdmaHcaHeld) held; /* its part of RdmaHcaFaults.held */
};

/* An SRQ. The guest interface allocates and frees it. */
struct RdmaHcaSrq {
    RdmaSrqAttr attr;               /* the backend has the current limit */
    RdmaHcaPd *pd;
    uint32_t users;                 /* QPs */
    bool error;
    RdmaHcaWq wq;
};

/* The effects of faults on a QP */
typedef struct RdmaHcaQpFault {
    /* The device takes no sends: the QP is stuck, or about to enter ERR. */
    bool held_back;
    bool fatal;                     /* the bottom half moves it to ERR */
    const RdmaHcaFault *stuck;      /* the fault of kind qp-stuck, or NULL */
    int64_t until;                  /* end of @stuck, virtual time; INT64_MAX */
    bool next_is_matched;           /* the next send was matched before */
    RdmaHcaFault *next_fault;       /* the fault of that send, or NULL */
    RdmaHcaFault *last_fault;       /* the fault of the last send, or NULL */
} RdmaHcaQpFault;

/* A QP. The guest interface allocates and frees it. */
struct RdmaHcaQp {
    RdmaQpInitAttr init;
    RdmaHcaPd *pd;
    RdmaHcaCq *send_cq;
    RdmaHcaCq *recv_cq;
    RdmaHcaSrq *srq;                /* receives come from here, or NULL: @rq */
    RdmaHcaWq sq;
    RdmaHcaWq rq;
    uint64_t n_errors;
    RdmaHcaQpError error;           /* the last one */
    RdmaHcaQpFault fault;
};

/* Asynchronous events that the driver has not received yet */
typedef struct RdmaHcaEvents {
    QTAILQ_HEAD(, RdmaHcaEvent) pending; /* oldest first */
    GHashTable *by_key;             /* the same, by type and id */
    bool port_active;               /* at the last rdma_hca_port_check() */
} RdmaHcaEvents;

/*
 * How a guest interface migrates and frees the objects of a kind. The core's
 * object is the first member of the guest interface's.
 */
typedef struct RdmaHcaObjectOps {
    size_t size;                    /* of the guest interface's object */
    const VMStateDescription *vmsd; /* of the fields of the guest interface */
    /*
     * @obj is in its table, and all its fields are loaded. Check those of the
     * guest interface, and set the form of the object.
     */
    bool (*load)(RdmaHca *hca, void *obj, const RdmaHcaRecord *r);
    /*
     * Free @obj. The core has removed it, and has no pointer to it. If load()
     * fails or is not called, it has no form, and its fields from the stream
     * are not checked.
     */
    void (*free)(RdmaHca *hca, void *obj);
} RdmaHcaObjectOps;

/*
 * The callbacks of a guest interface. All are mandatory, unless their comment
 * says otherwise. The core decodes and serves between rdma_hca_enter() and
 * rdma_hca_leave().
 */
typedef struct RdmaHcaOps {
    /* May the device access guest memory and give the backend work? */
    bool (*is_active)(RdmaHca *hca);
    /* Has the driver set up the device? Reported by query-rdma. */
    bool (*has_driver)(RdmaHca *hca);
    /* Does the driver take asynchronous events? */
    bool (*has_events)(RdmaHca *hca);
    /* An event is pending: schedule work that reads rdma_hca_events_next(). */
    void (*event_pending)(RdmaHca *hca);
    /*
     * The port has changed: update the attributes that the driver can read, and
     * notify the driver. False if the driver cannot be notified yet, for
     * example in a stopped VM: rdma_hca_set_running() calls this again.
     */
    bool (*port_changed)(RdmaHca *hca);
    /*
     * Decode the WQE that take() last copied from qp->sq into @wr, which is all
     * zeros. The lists of @wr may lie in hca->sge and in buffers of the guest
     * interface; they are valid until the next take(). For a bad WQE set
     * wr->status: the send then completes with that error.
     */
    void (*decode_send)(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr);
    /* The same for a WQE of an RQ or SRQ */
    void (*decode_recv)(RdmaHca *hca, RdmaHcaWq *wq, RdmaRecvWr *wr);
    const RdmaHcaObjectOps *cq;
    const RdmaHcaObjectOps *srq;    /* NULL if limits.max_srq is 0 */
    const RdmaHcaObjectOps *qp;
    /*
     * In the bottom half: read the status of the device and the VM, which may
     * have changed, and call rdma_hca_set_running().
     */
    void (*update_running)(RdmaHca *hca);
    /*
     * In the bottom half, under the BQL: execute commands, and write pending
     * events and completions that wait for room.
     */
    void (*serve)(RdmaHca *hca);
    /*
     * Schedule QPs that may have sends without a doorbell. Kicks follow in the
     * same turn. Optional.
     */
    void (*poll_doorbells)(RdmaHca *hca);
    /*
     * The command that returned -EINPROGRESS can be executed again. The core
     * calls serve() next, when the device is active.
     */
    void (*resume)(RdmaHca *hca);
    /* See RdmaBackendClientOps. */
    void (*flush)(RdmaHca *hca);
    /*
     * Do the deferred work of bits RDMA_HCA_PENDING_GUEST(n) in @pending. Not
     * called after rdma_hca_end(). This may end the device.
     */
    void (*run_pending)(RdmaHca *hca, uint32_t pending);
} RdmaHcaOps;

/*
 * A page list in guest memory, as the driver describes it: unchecked until
 * rdma_hca_pages_check_num()
 */
typedef struct RdmaHcaPages {
    uint64_t iova;
    uint64_t length;                /* bytes */
    uint64_t table;                 /* DMA address of the list or root table */
    uint32_t npages;
    uint32_t page_shift;            /* 0: RDMA_PAGE_SHIFT */
    uint32_t levels;                /* of page tables; 0: a flat list */
} RdmaHcaPages;

/* A prefix of GIDs: all that agree with @gid in their first @bits bits */
typedef struct RdmaHcaGids {
    uint8_t gid[RDMA_GID_LEN];
    unsigned bits;
} RdmaHcaGids;

/*
 * An HCA, part of the device @owner. The guest interface uses the first two
 * groups of fields.
 */
struct RdmaHca {
    /* Set by the guest interface before rdma_hca_attach() */
    RdmaBackendLimits limits;       /* what both device and backend can do */
    AioContext *ctx;                /* of the iothread, or NULL */
    /* and before rdma_hca_start() */
    uint64_t max_mr_pages;          /* limit of page lists; 0: the default */
    /*
     * Entries of the guest interface's rings, which limit the depth of queues
     * in them. UINT32_MAX: it has no such rings.
     */
    uint32_t ring_size;

    /* To read, and to pay from the two budgets by rdma_work_pay() */
    RdmaBackend *backend;           /* NULL before rdma_hca_backend_get() */
    RdmaHcaTable pds;
    RdmaHcaTable cqs;
    RdmaHcaTable mrs;               /* regions and windows */
    uint32_t n_mws;                 /* windows in @mrs */
    RdmaHcaTable srqs;
    RdmaHcaTable qps;
    RdmaSge *sge;                   /* buffer for decode_send() and _recv() */
    uint32_t cmd_budget;            /* left for commands in this turn */
    uint32_t kick_budget;           /* left for doorbells in this turn */
    bool running;                   /* the backend runs */
    bool unrealizing;               /* BQL; until @end, which may be delayed */

    /* Private to the core */
    const RdmaHcaOps *ops;
    Object *owner;                  /* the object that embeds the RdmaHca */
    DeviceState *dev;               /* the device that the user has added */
    QTAILQ_ENTRY(RdmaHca) next;     /* in rdma_hcas */
    RdmaBackendClass *bc;
    bool own_backend;               /* the core made it for a netdev */
    QEMUBH *bh;                     /* in the main loop */
    QEMUBH *work_bh;                /* for work queues, in @ctx; or NULL */
    uint64_t counters_base[RDMA_NUM_COUNTERS]; /* the backend's, at 0 here */
    /*
     * Pages of all page lists: of regions, of REG_MRs in flight, and of queues
     * in memory
     */
    uint64_t charged_pages;
    RdmaHcaWalk *walk;              /* page list being read, or NULL */
    uint32_t extensions;            /* RDMA_EXT_* that the driver uses */
    RdmaHcaGids *allowed_gids;      /* NULL: all GIDs are allowed */
    uint32_t n_allowed_gids;
    /* Objects that the backend has loaded from a migration stream, by type */
    uint32_t loaded[RDMA_OBJECT_QP + 1];
    Error *migration_blocker;       /* the backend cannot migrate */

    uint64_t n_qp_errors;
    RdmaHcaQpError last_error;
    uint32_t error_qpn;             /* QP of @last_error */
    bool error_unreported;          /* no QMP event has reported it yet */
    RdmaHcaEvents events;
    uint8_t fault_points;           /* RDMA_HCA_FAULT_AT_* of active faults */
    RdmaHcaFaults *faults;          /* NULL: the user has added none */

    /* Scheduled queues: a bit for each QPN, and then for each SRQ */
    unsigned long *kicks;
    bool any_kicks;
    uint32_t next_kick;             /* the bit to begin with */
    bool may_dma;                   /* ran since the last RDMA_RUN_NO_DMA */
    bool port_changed;              /* the driver was not notified yet */
    void (*end)(RdmaHca *hca);      /* from rdma_hca_end(), or NULL */
};

#endif
