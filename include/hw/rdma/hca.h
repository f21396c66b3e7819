/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HCA core: the adapter without a guest ABI. The core has the objects,
 * their numbers and references, completions, events, faults, and the views for
 * QMP and the monitor. A guest interface translates the commands and WQEs of a
 * driver for the core. It embeds an RdmaHca, and embeds the core's CQs, SRQs
 * and QPs in objects of its own.
 *
 * Context: a caller holds the BQL, or runs in the device's iothread. Functions
 * that work on objects run between rdma_hca_enter() and rdma_hca_leave().
 *
 * Errors: an int is 0 or a negative errno, a bool is true for success. A
 * function with @errp sets it when it returns false or NULL.
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
};

/*
 * The operations of a guest interface on a CQ. Each form of a CQ, such as a
 * virtqueue or slots in memory, has its own set. The core calls them, between
 * rdma_hca_enter() and rdma_hca_leave().
 */
struct RdmaHcaCqOps {
    bool is_direct;                 /* reported by query-rdma */
    /*
     * Give a completion to the driver, and notify the driver if it has armed
     * the CQ. False: there is no room, or the driver broke a rule. The core
     * then puts the CQ into its error state.
     */
    bool (*complete)(RdmaHca *hca, RdmaHcaCq *cq, const RdmaWc *wc,
                     bool solicited);
    /* The CQ is in error: drop completions that wait for room. Optional. */
    void (*drop)(RdmaHca *hca, RdmaHcaCq *cq);
    /* QP @qpn was reset or is gone: drop its waiting completions. Optional. */
    void (*forget_qp)(RdmaHca *hca, RdmaHcaCq *cq, uint32_t qpn);
    /* The driver has destroyed the CQ: free_cq() is called next. Optional. */
    void (*destroyed)(RdmaHca *hca, RdmaHcaCq *cq);
    /* Fill in the fields that only the guest interface knows. Optional. */
    void (*inspect)(RdmaHca *hca, const RdmaHcaCq *cq, RdmaCqInfo *info);
};

/*
 * A WQE in flight, until the backend is done with it: its place in a ring of
 * the guest interface, and the page list of a REG_MR, which is charged to it.
 */
struct RdmaHcaInflight {
    uint16_t index;                 /* of the ring; 0 without a ring */
    uint16_t ndescs;                /* entries of the ring; 0 without one */
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
    bool is_direct;                 /* reported by query-rdma */
    /* The most WQEs that can be in flight */
    uint32_t (*depth)(const RdmaHcaWq *wq);
    /*
     * Copy the next WQE to a buffer of the guest interface, which decode_send()
     * or decode_recv() reads next, and fill in @index and @ndescs of @inflight.
     * False if there is no WQE.
     */
    bool (*take)(RdmaHca *hca, RdmaHcaWq *wq, RdmaHcaInflight *inflight);
    /* Undo the last take() of this queue. */
    void (*put_back)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * The oldest @count WQEs in flight are done: return their entries of the
     * ring to the driver. Optional.
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
    /*
     * The driver has rung the doorbell of an SQ. @alone: the device expects no
     * further send, so a rescan of the queue does not pay. Optional.
     */
    void (*ring)(RdmaHca *hca, RdmaHcaWq *wq, bool alone);
    /*
     * Tell the driver that the device polls the queue, so that the driver need
     * not ring. False if the driver has been told already.
     */
    bool (*wake)(RdmaHca *hca, RdmaHcaWq *wq);
    /*
     * take() found no WQE: tell the driver to ring for the next one. Returns
     * RDMA_NEXT_NONE; RDMA_NEXT_WR if a WQE has come meanwhile; or, for an SQ
     * only, RDMA_NEXT_LATER if the device polls the queue in its next turn.
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
     * After migration, when the device may access guest memory: tell the ring
     * which WQEs are in flight. Optional.
     */
    void (*restore_order)(RdmaHca *hca, RdmaHcaWq *wq);
    /* The number of entries of the ring. NULL: the form has no ring. */
    uint32_t (*ring_size)(RdmaHca *hca, const RdmaHcaWq *wq);
};

/*
 * A CQ, or an event queue of a guest interface: both have numbers of the same
 * table. The guest interface allocates it, and frees it in free_cq().
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
    uint32_t ndescs;                /* sum of their @ndescs */
    uint32_t stale;                 /* older WQEs, whose ring was reset */
    uint32_t inflight_room;         /* size of inflight[]: power of 2, or 0 */
    RdmaHcaInflight *inflight;
    QTAILQ_HEAD(, RdmaHcaHeld) held; /* its part of RdmaHcaFaults.held */
};

/* An SRQ. The guest interface allocates it, and frees it in free_srq(). */
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
    bool passed;                    /* the next send was matched before */
    RdmaHcaFault *met;              /* the fault of that send, or NULL */
    RdmaHcaFault *struck;           /* the fault of the last send, or NULL */
} RdmaHcaQpFault;

/* A QP. The guest interface allocates it, and frees it in free_qp(). */
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
     * notify the driver. False in a stopped VM: the core calls it again later.
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
    /* Free the object. The core has removed it, and has no pointer to it. */
    void (*free_cq)(RdmaHca *hca, RdmaHcaCq *cq);
    void (*free_srq)(RdmaHca *hca, RdmaHcaSrq *srq);
    void (*free_qp)(RdmaHca *hca, RdmaHcaQp *qp);
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
    /* Look for doorbells in guest memory, before kicks. Optional. */
    void (*poll_doorbells)(RdmaHca *hca);
    /*
     * The command that returned -EINPROGRESS can be executed again. The core
     * calls serve() next, when the device is active.
     */
    void (*resume)(RdmaHca *hca);
    /* See RdmaBackendClientOps. */
    void (*flush)(RdmaHca *hca);
    /*
     * Do the deferred work of bits RDMA_HCA_PENDING_GUEST(n) in @pending. This
     * may end the device.
     */
    void (*run_pending)(RdmaHca *hca, uint32_t pending);
} RdmaHcaOps;

/*
 * A page list in guest memory, as the driver describes it: unchecked until
 * rdma_hca_pages_check() or rdma_hca_pages_check_num()
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

/* How many objects the backend has loaded from a migration stream */
typedef struct RdmaHcaLoaded {
    uint32_t mrs;
    uint32_t mws;
    uint32_t srqs;
    uint32_t qps;
} RdmaHcaLoaded;

/* An HCA, part of the device @owner. The tables are internal to the core. */
struct RdmaHca {
    const RdmaHcaOps *ops;
    Object *owner;                  /* the object that embeds the RdmaHca */
    DeviceState *dev;               /* the device that the user has added */
    QTAILQ_ENTRY(RdmaHca) next;     /* in rdma_hcas */

    RdmaBackend *backend;
    RdmaBackendClass *bc;
    bool own_backend;               /* the core made it for a netdev */
    RdmaBackendLimits limits;       /* what both device and backend can do */
    QEMUBH *bh;                     /* in the main loop */
    AioContext *ctx;                /* of the iothread, or NULL */
    QEMUBH *work_bh;                /* for work queues, in @ctx; or NULL */

    RdmaHcaTable pds;
    RdmaHcaTable cqs;
    RdmaHcaTable mrs;               /* regions and windows */
    uint32_t n_mws;                 /* windows in @mrs */
    RdmaHcaTable srqs;
    RdmaHcaTable qps;
    uint64_t counters_base[RDMA_NUM_COUNTERS]; /* the backend's, at 0 here */
    uint64_t mr_pages;              /* charged for MRs and WQEs */
    uint64_t max_mr_pages;          /* limit; 0: rdma_hca_start() sets it */
    uint32_t cmd_budget;            /* left for commands in this turn */
    RdmaHcaWalk *walk;              /* page list being read, or NULL */
    uint32_t extensions;            /* RDMA_EXT_* that the driver uses */
    RdmaHcaGids *allowed_gids;      /* NULL: all GIDs are allowed */
    uint32_t n_allowed_gids;
    RdmaHcaLoaded loaded;
    RdmaSge *sge;                   /* buffer for decode_send() and _recv() */

    uint64_t n_qp_errors;
    RdmaHcaQpError last_error;
    uint32_t error_qpn;             /* QP of @last_error */
    bool error_untold;              /* no QMP event has reported it yet */
    RdmaHcaEvents events;
    uint8_t fault_points;           /* RDMA_HCA_FAULT_AT_* of active faults */
    RdmaHcaFaults *faults;          /* NULL: the user has added none */

    /* Scheduled queues: a bit for each QPN, and then for each SRQ */
    unsigned long *kicks;
    bool any_kicks;
    uint32_t next_kick;             /* the bit to begin with */
    uint32_t kick_budget;           /* left for doorbells in this turn */
    bool running;                   /* the backend runs */
    bool may_dma;                   /* ran since the last RDMA_RUN_NO_DMA */
    bool port_changed;              /* while the VM was stopped */
    bool unrealizing;               /* until @end, which may be delayed */
    void (*end)(RdmaHca *hca);      /* from rdma_hca_end(), or NULL */
};

/*
 * Bits of work that the backend defers while it is busy: the two bottom halves,
 * and, from RDMA_HCA_PENDING_GUEST(0) on, work of the guest interface.
 */
#define RDMA_HCA_PENDING_BH RDMA_PENDING_DEVICE(0)
#define RDMA_HCA_PENDING_WORK RDMA_PENDING_DEVICE(1)
#define RDMA_HCA_PENDING_GUEST(n) RDMA_PENDING_DEVICE(2 + (n))

/*
 * Call these two around every access to objects, see rdma_backend_enter().
 * Calls nest. The outermost rdma_hca_leave() may end the device, so the caller
 * must not use @hca after it.
 */
static inline void rdma_hca_enter(RdmaHca *hca)
{
    rdma_backend_enter(hca->backend);
}

static inline void rdma_hca_leave(RdmaHca *hca)
{
    rdma_backend_leave(hca->backend);
}

/*
 * Is there an rdma_hca_enter() further up on the stack? Then no object may be
 * freed, because a caller may use it.
 */
static inline bool rdma_hca_busy(const RdmaHca *hca)
{
    return hca->backend && rdma_backend_busy(hca->backend);
}

static inline bool rdma_hca_is_active(RdmaHca *hca)
{
    return hca->ops->is_active(hca);
}

/* Can regions be of RDMA_MR_FAST_REG? */
static inline bool rdma_hca_has_mem_mgt(const RdmaHca *hca)
{
    return hca->limits.device_cap_flags & RDMA_HCA_CAP_MEM_MGT_EXTENSIONS;
}

/* hca.c: the adapter as a whole */

typedef QTAILQ_HEAD(RdmaHcas, RdmaHca) RdmaHcas;
/* All realized HCAs. Under the BQL. */
extern RdmaHcas rdma_hcas;

/*
 * Call first. @owner embeds @hca. @dev is the device that the user has added;
 * the bottom half uses its reentrancy guard. @ops stays the caller's.
 */
void rdma_hca_init(RdmaHca *hca, const RdmaHcaOps *ops, Object *owner,
                   DeviceState *dev);
/*
 * Call at the end of realize, when hca->limits are final: make the tables and
 * bottom halves, and add the HCA to rdma_hcas.
 */
void rdma_hca_start(RdmaHca *hca);
/*
 * The device is unrealized: remove it from rdma_hcas, stop serving it, and call
 * @end as soon as no function on the stack uses the device. @end calls
 * rdma_hca_detach() and rdma_hca_free().
 */
void rdma_hca_end(RdmaHca *hca, void (*end)(RdmaHca *hca));
/*
 * Device reset: reset the backend, remove all objects and events, and set
 * counters to 0. Not if rdma_hca_busy() before the caller's rdma_hca_enter().
 */
void rdma_hca_reset(RdmaHca *hca);
/*
 * Remove all objects, after the backend has removed its own. rdma_hca_reset()
 * and rdma_hca_free() do so.
 */
void rdma_hca_objects_reset(RdmaHca *hca);
/* Undo rdma_hca_start(), after rdma_hca_detach(). */
void rdma_hca_free(RdmaHca *hca);

/* consumer.c: the backend */

/*
 * Use the backend @rdmadev, or make one for @netdev. The parameters are
 * properties of the user, which this checks: one of the two must be set, and
 * @mac only with @netdev. Call rdma_hca_backend_put() also after a failure.
 */
bool rdma_hca_backend_get(RdmaHca *hca, const char *netdev,
                          RdmaBackend *rdmadev, const MACAddr *mac,
                          Error **errp);
/*
 * Attach to hca->backend. Lower hca->limits, which the caller has set, to what
 * the backend can do. @dma_as: the address space of the driver's addresses.
 */
bool rdma_hca_attach(RdmaHca *hca, AddressSpace *dma_as, Error **errp);
void rdma_hca_detach(RdmaHca *hca);
/* Set the RDMA_EXT_* that the driver uses. */
void rdma_hca_use_extensions(RdmaHca *hca, uint32_t extensions);
/* Release a backend that is not attached. rdma_hca_detach() does so, too. */
void rdma_hca_backend_put(RdmaHca *hca);

/*
 * ram.c: access to guest RAM. Other memory, such as MMIO, takes too long to
 * access. Functions that return bool return false if the address is not RAM.
 */

/* Guest RAM, while the backend is attached */
static inline const RdmaRam *rdma_hca_ram(const RdmaHca *hca)
{
    return &hca->backend->ram;
}

/* Copy @len bytes of RAM at DMA address @addr. */
bool rdma_hca_read_ram(const RdmaRam *ram, uint64_t addr, void *buf,
                       size_t len);
/* Copy @len bytes to DMA address @addr; false also if RAM is not contiguous. */
bool rdma_hca_write_ram(const RdmaRam *ram, uint64_t addr, const void *buf,
                        uint64_t len);
/* Read @n little-endian addresses into @addrs. Logs a guest error. */
bool rdma_hca_read_addrs(const RdmaRam *ram, uint64_t addr, uint32_t n,
                         uint64_t *addrs);
/*
 * Read or write a little-endian word atomically. False also if @addr is not
 * aligned. The read is an acquire.
 */
bool rdma_hca_load_word(const RdmaRam *ram, uint64_t addr, uint32_t *value);
bool rdma_hca_store_word(const RdmaRam *ram, uint64_t addr, uint32_t value);
/* Exchange such a word with 0, atomically. */
bool rdma_hca_take_bits(const RdmaRam *ram, uint64_t addr, uint32_t *bits);
/*
 * The host's address of @len contiguous bytes of RAM, valid while the caller
 * holds the RCU read lock. NULL if the memory is not RAM, not contiguous, or
 * not aligned for a word. After a write the caller calls rdma_ram_written().
 */
void *rdma_hca_words_at(const RdmaRam *ram, uint64_t addr, uint64_t len,
                        bool is_write);

/* table.c: objects by number */

/* Make an empty table for the numbers @first to @end - 1. */
void rdma_hca_table_init(RdmaHcaTable *t, uint32_t first, uint32_t end);
void rdma_hca_table_free(RdmaHcaTable *t);
/*
 * Start the search of an empty table at a random number, so that peers cannot
 * guess numbers.
 */
void rdma_hca_table_scatter(RdmaHcaTable *t);
/* Find a free number, but do not reserve it. False if all are in use. */
bool rdma_hca_table_find(RdmaHcaTable *t, uint32_t *id);
/* Put @obj at the free number @id. The table does not own @obj. */
void rdma_hca_table_set(RdmaHcaTable *t, uint32_t id, void *obj);
void rdma_hca_table_clear(RdmaHcaTable *t, uint32_t id);
/* Have the next rdma_hca_table_find() return the free number @id. */
void rdma_hca_table_again(RdmaHcaTable *t, uint32_t id);
/*
 * The first object whose number is at least *@id, or NULL. Sets *@id to that
 * number.
 */
void *rdma_hca_table_next(const RdmaHcaTable *t, uint32_t *id);

/*
 * For each object @obj of table @t and its number @n, in order. The body may
 * remove @obj. The loop reads the bitmap, because tables are large and mostly
 * empty.
 */
#define RDMA_HCA_FOREACH(t, n, obj)                            \
    for (uint32_t n = (t)->first;                                       \
         ((obj) = rdma_hca_table_next(t, &n)); n++)

/* The object with the number @id, or NULL. @id may be out of range. */
static inline void *rdma_hca_table_get(const RdmaHcaTable *t,
                                       uint32_t id)
{
    return id < t->end ? t->slot[id] : NULL;
}

/* The CQ @cqn; NULL if it does not exist, or is an event queue. */
static inline RdmaHcaCq *rdma_hca_cq_get(RdmaHca *hca, uint32_t cqn)
{
    RdmaHcaCq *cq = rdma_hca_table_get(&hca->cqs, cqn);

    return cq && !cq->is_eq ? cq : NULL;
}

/* The region @mrn; NULL if it does not exist, or is a window. */
static inline RdmaHcaMr *rdma_hca_mr_get(RdmaHca *hca, uint32_t mrn)
{
    RdmaHcaMr *mr = rdma_hca_table_get(&hca->mrs, mrn);

    return mr && !mr->mw_type ? mr : NULL;
}

/* sched.c: the bottom half */

/*
 * Schedule the bottom half. Within the device this waits for the outermost
 * rdma_hca_leave(), so that sends go first, and a vCPU that rings wakes the
 * main loop at most once.
 */
void rdma_hca_bh_schedule(RdmaHca *hca);
/* The same for the bottom half of work queues, which an iothread may run. */
void rdma_hca_work_schedule(RdmaHca *hca);
/*
 * Have that bottom half kick the queues of @qp, or @srq, or fail a broken one.
 * The caller holds the BQL, or has entered the device.
 */
void rdma_hca_wq_schedule(RdmaHca *hca, const RdmaHcaWq *wq);
void rdma_hca_qp_schedule(RdmaHca *hca, RdmaHcaQp *qp);
void rdma_hca_srq_schedule(RdmaHca *hca, RdmaHcaSrq *srq);
/* The driver's counters are wrong: have the bottom half fail the QP or SRQ. */
void rdma_hca_wq_break(RdmaHca *hca, RdmaHcaWq *wq);

/* run.c: kicks and bottom halves */

/*
 * The queue may have work: have the backend poll it. @alone: see
 * RdmaHcaWqOps.ring(). Call after rdma_hca_enter().
 */
void rdma_hca_kick(RdmaHca *hca, RdmaHcaWq *wq, bool alone);
/*
 * The driver has rung a doorbell: enter the device and kick the queue. If the
 * device is busy, or the budget for doorbells is used up, the bottom half kicks
 * the queue. The call may end the device.
 */
void rdma_hca_ring(RdmaHca *hca, RdmaHcaWq *wq);
/*
 * For guest interfaces that serve a doorbell themselves: enter the device. The
 * caller calls rdma_hca_leave(). False: the caller schedules the queue instead.
 */
bool rdma_hca_enter_to_kick(RdmaHca *hca);
/* Schedule all queues. */
void rdma_hca_kick_all(RdmaHca *hca);
/*
 * Tell the backend whether it may work. @ready: driver and device allow that;
 * @running: so does the VM. Returns whether @running has changed.
 *
 * Without @ready peers must not write to guest memory: a driver may free it
 * when the device is broken or is not bus master, and so may the next driver
 * when the device is not set up.
 */
bool rdma_hca_set_running(RdmaHca *hca, bool running, bool ready);

/* check.c: checks of a field of the guest, which log a guest error */

/* Is @value at least @min and at most @max? */
bool rdma_hca_check_range(const char *field, uint64_t value, uint64_t min,
                          uint64_t max);
/* Has @value no flags except those in @known? */
bool rdma_hca_check_flags(const char *field, uint64_t value, uint64_t known);

/*
 * Verbs. Arguments are those of the driver, in host byte order; a verb checks
 * them. After an error nothing has changed, and output parameters are
 * undefined. After -EINPROGRESS the guest interface calls the same function
 * again, with the same arguments, when the core calls RdmaHcaOps.resume(). The
 * second call gives a new object the same number.
 *
 * A command with a page list has two functions. The guest interface calls the
 * one that checks, reads the list by rdma_hca_pages_read_on(), calls the one
 * that executes, and then calls rdma_hca_pages_give_back().
 *
 * A guest interface makes a CQ, SRQ or QP in three steps. It allocates the
 * object, and _add() sets its number, PD and CQs. The guest interface sets the
 * form, that is @ops. _create() makes the object in the backend; if that fails,
 * the core removes the object, and frees it by RdmaHcaOps.free_*(). Migration
 * calls only _add(), because the backend loads its objects from the stream.
 */

/* pd.c: protection domains */

int rdma_hca_pd_create(RdmaHca *hca, uint32_t *pdn);
int rdma_hca_pd_destroy(RdmaHca *hca, uint32_t pdn);
RdmaHcaPd *rdma_hca_pd_add(RdmaHca *hca, uint32_t pdn);

/* pages.c: page lists, of regions and of queues in memory */

/*
 * Can a region have the list? 0 or -EINVAL. Replaces @page_shift 0 by the
 * default.
 */
int rdma_hca_pages_check(RdmaHca *hca, RdmaHcaPages *p);
/* Does the list have @npages, and enough levels for them? 0 or -EINVAL. */
int rdma_hca_pages_check_num(const RdmaHcaPages *p, uint64_t npages);
/*
 * Add @npages to hca->mr_pages; -ENOMEM if that exceeds hca->max_mr_pages. To
 * undo this, subtract them.
 */
int rdma_hca_pages_charge(RdmaHca *hca, uint32_t npages);
/*
 * Read a checked list into *@pages, and charge its pages. The caller owns the
 * array, and frees it by g_free(). -ENOMEM if the charge fails, -EINVAL if the
 * list is not in RAM or an address is not aligned.
 */
int rdma_hca_pages_read(RdmaHca *hca, const RdmaHcaPages *p, uint64_t **pages);
/*
 * The same for a command, whose list may be long: -EINPROGRESS when
 * hca->cmd_budget is used up. The guest interface executes the command again in
 * the next turn, and this function goes on where it stopped. *@pages is NULL if
 * the backend has taken the list already.
 */
int rdma_hca_pages_read_on(RdmaHca *hca, const RdmaHcaPages *p,
                           uint64_t **pages);
/* Free a list that was read, and return its charge. */
void rdma_hca_pages_free(RdmaHca *hca, uint64_t *pages, uint32_t npages);
/* Did rdma_hca_pages_read_on() stop within a list? */
bool rdma_hca_pages_reading(const RdmaHca *hca);
/*
 * Call after a function of mr.c that takes over the list @pages of @p. After an
 * error @ret this frees the list. After -EINPROGRESS it notes that the backend
 * has the list. The function of mr.c has returned the charge in both cases.
 */
void rdma_hca_pages_give_back(RdmaHca *hca, int ret, uint64_t *pages,
                              const RdmaHcaPages *p);
/* The command in progress has ended or was dropped: forget its list. */
void rdma_hca_pages_drop(RdmaHca *hca);

/* mr.c: memory regions */

/* Can a region be created? Reads type, pdn, access and max_pages of @attr. */
int rdma_hca_mr_check(RdmaHca *hca, const RdmaMrAttr *attr);
/*
 * Create it. Reads iova, length and pages of @attr, too. Sets mrn, lkey and
 * rkey. On success, and after -EINPROGRESS, the backend owns attr->pages; so
 * also for the pages of the other functions here.
 */
int rdma_hca_mr_create(RdmaHca *hca, RdmaMrAttr *attr);
/* Reads RDMA_REREG_* of @flags, and mrn, pdn and access of @attr. */
int rdma_hca_mr_check_rereg(RdmaHca *hca, uint32_t flags,
                            const RdmaMrAttr *attr);
/* Reads iova, length and pages of @attr, too. Sets lkey and rkey. */
int rdma_hca_mr_rereg(RdmaHca *hca, uint32_t flags, RdmaMrAttr *attr);
/* Set the list that the next REG_MR of a region for fast registration uses. */
int rdma_hca_mr_check_map(RdmaHca *hca, uint32_t mrn, uint32_t npages);
int rdma_hca_mr_map(RdmaHca *hca, uint32_t mrn, uint64_t iova, uint64_t length,
                    uint64_t *pages, uint32_t npages);
int rdma_hca_mr_dereg(RdmaHca *hca, uint32_t mrn);
RdmaHcaMr *rdma_hca_mr_add(RdmaHca *hca, uint32_t mrn, RdmaHcaPd *pd,
                           uint32_t type);

/* mw.c: memory windows */

/* Reads pdn and type of @attr. Sets mwn and rkey. */
int rdma_hca_mw_alloc(RdmaHca *hca, RdmaMwAttr *attr);
int rdma_hca_mw_dealloc(RdmaHca *hca, uint32_t mwn);
RdmaHcaMr *rdma_hca_mw_add(RdmaHca *hca, const RdmaMwAttr *attr);

/* cq.c: completion queues */

void rdma_hca_cq_add(RdmaHca *hca, RdmaHcaCq *cq, uint32_t cqn, uint32_t cqe);
int rdma_hca_cq_create(RdmaHca *hca, RdmaHcaCq *cq);
/* Set the depth to @cqe, for which the form has room. */
int rdma_hca_cq_resize(RdmaHca *hca, RdmaHcaCq *cq, uint32_t cqe);
int rdma_hca_cq_destroy(RdmaHca *hca, uint32_t cqn);
/*
 * Put the CQ into its error state, and raise an event. QPs of the CQ do not
 * change: rdma_hca_cq_fail() fails them, too.
 */
void rdma_hca_cq_enter_error(RdmaHca *hca, RdmaHcaCq *cq);

/* srq.c: shared receive queues */

int rdma_hca_srq_check(RdmaHca *hca, const RdmaSrqAttr *attr);
void rdma_hca_srq_add(RdmaHca *hca, RdmaHcaSrq *srq, const RdmaSrqAttr *attr);
int rdma_hca_srq_create(RdmaHca *hca, RdmaHcaSrq *srq);
int rdma_hca_srq_modify(RdmaHca *hca, uint32_t srqn, uint32_t limit);
int rdma_hca_srq_query(RdmaHca *hca, uint32_t srqn, RdmaSrqAttr *attr);
int rdma_hca_srq_destroy(RdmaHca *hca, uint32_t srqn);
/* Put the SRQ into its error state, raise an event, and fail its QPs. */
void rdma_hca_srq_fail(RdmaHca *hca, RdmaHcaSrq *srq);

/* qp.c: queue pairs */

/*
 * Check @init except qpn and wire_qpn. @max_wr: the most WRs that a queue of
 * this form can have. With an SRQ this sets the limits of receives to 0.
 */
int rdma_hca_qp_check(RdmaHca *hca, RdmaQpInitAttr *init, uint32_t max_wr);
/*
 * Find a free number. QPN 1 is reserved for the GSI: -EBUSY if there is a GSI.
 * -ENOMEM if all other numbers are in use.
 */
int rdma_hca_qp_find(RdmaHca *hca, RdmaQpType type, uint32_t *qpn);
void rdma_hca_qp_add(RdmaHca *hca, RdmaHcaQp *qp, const RdmaQpInitAttr *init);
/* Sets qp->init.wire_qpn. */
int rdma_hca_qp_create(RdmaHca *hca, RdmaHcaQp *qp);
int rdma_hca_qp_modify(RdmaHca *hca, uint32_t qpn, uint32_t mask,
                       const RdmaQpAttr *wanted);
int rdma_hca_qp_query(RdmaHca *hca, uint32_t qpn, RdmaQpAttr *attr);
int rdma_hca_qp_destroy(RdmaHca *hca, uint32_t qpn);
/* Is the QP in @state? For ERR: or about to enter ERR? */
bool rdma_hca_qp_is_in(RdmaHca *hca, RdmaHcaQp *qp, RdmaQpState state);
/* Move the QP to ERR and raise an event, unless it is in ERR. */
void rdma_hca_qp_fail(RdmaHca *hca, RdmaHcaQp *qp);
/* Put the CQ into its error state, and move its QPs to ERR. */
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
/*
 * The port has changed, or the VM resumes and the port changed meanwhile: tell
 * the guest interface, and raise an event if the state is another one.
 */
void rdma_hca_port_changed(RdmaHca *hca);

/* gids.c: the GIDs that the guest may use */

/* Set hca->allowed_gids. @text: the property "allowed-gids"; NULL: all GIDs */
bool rdma_hca_gids_parse(RdmaHca *hca, const char *text, Error **errp);
void rdma_hca_gids_free(RdmaHca *hca);
bool rdma_hca_gid_allowed(const RdmaHca *hca, const uint8_t gid[RDMA_GID_LEN]);

/* sq.c: send queues */

/*
 * For RdmaHcaOps.decode_send(): read the page list @p of the REG_MR @wr, and
 * charge it to the WQE, the newest one in flight. Sets the fields of @wr, which
 * owns the list. Returns the status for @wr.
 */
RdmaWcStatus rdma_hca_sq_read_reg(RdmaHca *hca, RdmaHcaQp *qp,
                                  RdmaHcaPages *p, RdmaSendWr *wr);

/* wq.c: work queues */

/* The @i-th oldest WQE in flight; @i is less than wq->count. */
RdmaHcaInflight *rdma_hca_wq_inflight(const RdmaHcaWq *wq, uint32_t i);
/* Add a copy of @inflight as the newest WQE, for migration. */
void rdma_hca_wq_push(RdmaHcaWq *wq, const RdmaHcaInflight *inflight);
/*
 * The ring of the queue was reset: make WQEs in flight stale. Returns whether
 * there were any.
 */
bool rdma_hca_wq_forget(RdmaHca *hca, RdmaHcaWq *wq);
/* After migration, when the device may access guest memory */
void rdma_hca_wqs_restore_order(RdmaHca *hca);

/*
 * loaded.c: comparison of the backend's objects in a migration stream with the
 * device's. Call these two around the backend's part of the stream.
 */

void rdma_hca_load_begin(RdmaHca *hca);
/* Has the backend loaded all objects of the device? If not, report an error. */
bool rdma_hca_load_end(RdmaHca *hca);

/* fault.c: faults of commands */

/*
 * Call before a command is executed. @again: the command has returned
 * -EINPROGRESS; @qpn: the QP of the command, or RDMA_NO_QPN. 0: execute it.
 * Otherwise a fault strikes it: return the error, which may be -EINPROGRESS.
 */
int rdma_hca_command_begin(RdmaHca *hca, RdmaCommand cmd, bool again,
                           uint32_t qpn);
/* The command in progress has ended or was dropped. */
void rdma_hca_command_end(RdmaHca *hca);

/* counters.c: counters, RDMA_NUM_COUNTERS of them */

/* Have the backend read its counters from the host. May be -EINPROGRESS. */
int rdma_hca_counters_update(RdmaHca *hca);
/* Get the values of the last update. */
void rdma_hca_counters_get(RdmaHca *hca, uint64_t *values);
/* Continue to count from @values; NULL: from 0. */
void rdma_hca_counters_set(RdmaHca *hca, const uint64_t *values);

/* event.c: asynchronous events */

/* The kind of object that the id of an event is the number of */
typedef enum RdmaHcaEventOf {
    RDMA_HCA_EVENT_OF_NONE,
    RDMA_HCA_EVENT_OF_CQ,
    RDMA_HCA_EVENT_OF_QP,
    RDMA_HCA_EVENT_OF_SRQ,
    RDMA_HCA_EVENT_OF_PORT,
} RdmaHcaEventOf;

RdmaHcaEventOf rdma_hca_event_of(RdmaEventType type);

/*
 * Make an event pending, if the driver takes events and the object exists. The
 * guest interface writes it when there is room.
 */
void rdma_hca_event_raise(RdmaHca *hca, RdmaEventType type, uint32_t id);
/*
 * The driver has received @event, which rdma_hca_events_next() returned: free
 * it.
 */
void rdma_hca_event_done(RdmaHca *hca, const RdmaEvent *event);
/* The object is gone: drop its pending events. */
void rdma_hca_events_forget(RdmaHca *hca, RdmaHcaEventOf of, uint32_t id);
/* Raise an event if the port's state differs from that at the last call. */
void rdma_hca_port_check(RdmaHca *hca);
/*
 * The pending event after @event, or the oldest one if @event is NULL. NULL at
 * the end. The core owns it until rdma_hca_event_done().
 */
const RdmaEvent *rdma_hca_events_next(RdmaHca *hca, const RdmaEvent *event);
/* For migration: the most events that can be pending, and how many are */
uint32_t rdma_hca_events_max(RdmaHca *hca);
uint32_t rdma_hca_events_count(RdmaHca *hca);
/* Add a copy of @event. False if it is pending, or there is no such object. */
bool rdma_hca_event_load(RdmaHca *hca, const RdmaEvent *event);

#endif
