/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA backend: moves the data of an RDMA device model.
 *
 * The device model decodes guest requests, owns the handle tables and checks
 * handles, protection domains and limits. The class has the shape of verbs. The
 * device chooses all numbers (cqn, pdn, mrn, qpn, GID index), and guest and
 * peers see these. A backend with limits.host_numbers chooses keys and the QPNs
 * on the wire instead.
 *
 * Threads and locks
 *
 * A thread enters the backend (rdma_backend_enter()) before it works on objects
 * of the device or the backend. Without an iothread (RdmaBackend.ctx is NULL)
 * only threads with the BQL enter: the main loop, a vCPU, or migration. With an
 * iothread, entering takes RdmaBackend.lock, and two kinds of threads enter:
 *
 * - Threads with the BQL wait for the lock, until the iothread sees that and
 *   leaves (rdma_backend_wanted()). Only they change the tables of objects, the
 *   GIDs and the port, so they may read these without entering. Only they use
 *   virtqueues, netdevs and interrupts.
 * - The iothread never waits, neither for the lock (rdma_backend_try_enter())
 *   nor for the BQL, so it accesses guest memory only where that is RAM. A
 *   thread with the BQL may therefore wait for the iothread, whatever the guest
 *   does.
 *
 * Called by           Thread                    Lock
 *
 * Class methods:
 *   kick, run, inspect,
 *   query_qp, fail_qp,
 *   qp_in_state,
 *   modify_qp to ERR  any that may enter        entered
 *   run_pending       any that may enter        none, or the lock; not entered
 *   attach, detach    main loop, vCPU           BQL; the method takes the lock
 *   query_port,
 *   info_str, abandon main loop, vCPU           BQL
 *   query_counters    main loop, vCPU,          BQL; entered, or the VM is
 *                     migration                 stopped
 *   vmsd,
 *   set_qp_counters   main loop, migration      BQL; the VM is stopped
 *   all others        main loop, vCPU           BQL, and the lock: entered, or
 *                                               from run_pending()
 *
 * Callbacks (RdmaBackendClientOps):
 *   consumer, flush   any that may enter        entered
 *   run_pending       any that may enter        none, or the lock; not entered
 *   port_changed,
 *   resume            main loop, vCPU           BQL, entered
 *   gid_allowed,
 *   loaded            main loop                 BQL; the VM is stopped
 */
#ifndef SYSTEM_RDMA_BACKEND_H
#define SYSTEM_RDMA_BACKEND_H

#include "qemu/aio.h"
#include "hw/core/qdev.h"
#include "qemu/thread.h"
#include "qom/object.h"
#include "rdma/consumer.h"
#include "rdma/counters.h"
#include "rdma/inspect.h"
#include "rdma/qp-check.h"
#include "rdma/verbs.h"
#include "system/rdma-ram.h"

#define TYPE_RDMA_BACKEND "rdma-backend"
/* The type that rdma_backend_new_default() makes */
#define TYPE_RDMA_BACKEND_DEFAULT "rdma-roce"
OBJECT_DECLARE_TYPE(RdmaBackend, RdmaBackendClass, RDMA_BACKEND)

/* An object that a backend has loaded; only the member for @type is set. */
typedef struct RdmaLoaded {
    RdmaObjectType type;
    const RdmaQpInitAttr *qp;
    uint32_t nsend;                 /* WQEs in the queues of the QP */
    uint32_t nrecv;                 /* 0 with an SRQ */
    const RdmaMrAttr *mr;
    uint64_t npages;                /* in the lists of the MR */
    const RdmaMwAttr *mw;
    const RdmaSrqAttr *srq;
} RdmaLoaded;

/*
 * Callbacks of a device model for its backend. All are mandatory, except those
 * of SRQs if limits.max_srq is 0. Any class method may call them, but while the
 * VM is stopped only where a comment allows it. A callback must not call class
 * methods of the backend, with three exceptions: port_changed() may call
 * query_port(), each may call inspect(), and run_pending() may call all. A
 * callback may schedule a bottom half.
 */
typedef struct RdmaBackendClientOps {
    /*
     * The device's queues. While the VM is stopped the backend may call
     * event(), and retire() of no WQEs: the device notifies the driver when the
     * VM runs again.
     */
    RdmaConsumerOps consumer;
    /*
     * Port attributes changed: link state, MTU or MAC. May come while the VM is
     * stopped, like event().
     */
    void (*port_changed)(void *opaque);
    /*
     * A method that returned -EINPROGRESS is done or has failed: the device can
     * call it again. The backend calls this from a bottom half, never from
     * inside a class method. May come while the VM is stopped, and after the
     * device has given the command up.
     */
    void (*resume)(void *opaque);
    /*
     * The outermost rdma_backend_leave() calls this after
     * RdmaBackendClass.run(): notify the driver of what its queues got.
     */
    void (*flush)(void *opaque);
    /*
     * The outermost rdma_backend_leave() calls this last: do the work in
     * @pending, see rdma_backend_put_off(). Device and backend may be gone when
     * this returns.
     */
    void (*run_pending)(void *opaque, uint32_t pending);
    /* The backend is loading a GID. False if the guest may not use it. */
    bool (*gid_allowed)(void *opaque, const uint8_t gid[RDMA_GID_LEN]);
    /*
     * The backend has loaded an object. False if the device, which was loaded
     * before, does not have it, or has it with other attributes. Each object
     * comes once. Not compared: the limit of an SRQ, which only the backend
     * has, and the key of a window, which a BIND_MW may have changed.
     */
    bool (*loaded)(void *opaque, const RdmaLoaded *obj);
} RdmaBackendClientOps;

/* Limits: those of the device model, lowered by its backend. */
typedef struct RdmaBackendLimits {
    uint32_t max_qp;
    uint32_t max_qp_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;       /* bytes */
    uint32_t max_cq;
    uint32_t max_cqe;
    uint32_t max_mr;
    uint32_t max_pd;
    uint64_t max_mr_size;           /* bytes */
    uint32_t max_rd_atomic;         /* per QP, each direction */
    uint32_t gid_table_len;
    uint8_t atomic_cap;             /* RdmaAtomicCap */
    /*
     * ib_device_cap_flags. Without MEM_MGT_EXTENSIONS there are no regions of
     * RDMA_MR_FAST_REG, no map_mr(), and no REG_MR or LOCAL_INV of a region.
     */
    uint64_t device_cap_flags;
    uint32_t max_srq;
    uint32_t max_srq_wr;
    uint32_t max_srq_sge;
    /* mrns and mwns together are 1 to max_mr + max_mw */
    uint32_t max_mw;
    uint32_t max_reg_pages;         /* in the list of a REG_MR; 0: no lists */
    uint32_t max_mcast_grp;
    uint32_t max_mcast_qp_attach;
    uint32_t extensions;            /* RDMA_EXT_* */
    bool any_gid;                   /* the user sets no limits to GIDs */
    /*
     * Set by the backend: it chooses keys and the QPNs on the wire, and stores
     * them in the attributes that an object is created or changed with. The
     * device then serves only drivers that use these numbers.
     */
    bool host_numbers;
} RdmaBackendLimits;

#define RDMA_NO_QPN UINT32_MAX

struct RdmaBackend {
    Object parent_obj;

    const RdmaBackendClass *bc;     /* cached: a class lookup is slow */
    /* Set while a device is attached. */
    const RdmaBackendClientOps *client_ops;
    void *client_opaque;
    AddressSpace *dma_as;
    RdmaRam ram;                    /* of @dma_as */
    MemReentrancyGuard *guard;      /* of the device's transport, or NULL */
    RdmaBackendLimits limits;

    AioContext *ctx;                /* of the iothread, or NULL */
    /*
     * Used with an iothread. A thread that locks it without entering, when the
     * device leaves, does not tell the iothread that it is free again.
     */
    QemuRecMutex lock;
    bool contended;                 /* the iothread wants to enter */
    unsigned waiting;               /* threads that wait for the lock */

    uint32_t pending;               /* atomic: RDMA_PENDING_* */
    bool kicked;                    /* leave must call run() */
    unsigned busy;                  /* depth of enter without leave */
    const void *owner;              /* identifies the thread that has entered */
    bool guard_was;                 /* state of @guard before that */
};

typedef enum RdmaRunState {
    RDMA_RUN_RUNNING,
    /* The VM is stopped, or there is no driver. */
    RDMA_RUN_STOPPED,
    /*
     * The driver is gone, or must not use the function any more. Follows
     * STOPPED. After the method returns nothing may access guest memory; the
     * backend may move QPs to ERR for that, without an event.
     */
    RDMA_RUN_NO_DMA,
} RdmaRunState;

/*
 * Methods return 0 or a negative errno unless a comment says otherwise, and are
 * done when they return.
 *
 * A method that a command of the driver calls, from add_gid() to query_qp(),
 * may instead return -EINPROGRESS and continue on its own:
 * - The device changes nothing. After RdmaBackendClientOps.resume() it calls
 *   the method again with the same arguments, and gets the result, or another
 *   -EINPROGRESS.
 * - One command at a time is in progress. Meanwhile the device may call kick(),
 *   run(), fail_qp(), qp_in_state(), query_port(), query_counters() and
 *   inspect(), and the backend may call back. A QP that cannot take work yet
 *   pulls none.
 * - The device presets the values that the backend chooses (lkey, rkey,
 *   wire_qpn) in each call, and they are not arguments.
 * - The method takes a list of pages over with -EINPROGRESS, as with 0. The
 *   device repeats the call with a NULL pointer and the same npages.
 * - The driver may change a command while it waits, or give it up. The device
 *   then calls abandon(), as after any other command. The backend destroys an
 *   object that it made. What it cannot undo stays done, and a later command
 *   finds it so: destroy() of a region that is gone returns 0.
 * - reset() and detach() end the command; no one asks for the result.
 */
struct RdmaBackendClass {
    ObjectClass parent_class;

    /*
     * State of the RdmaBackend that migrates with the device, or NULL: the
     * device then blocks migration while it exists. Loading creates the
     * backend's objects. The device has created its own before, without calling
     * the methods.
     */
    const VMStateDescription *vmsd;

    /*
     * A device takes the backend: rb->client_*, dma_as and limits are set. The
     * backend lowers rb->limits to what it can do, or fails. rb->ctx is not
     * NULL only with @has_iothread.
     */
    bool (*attach)(RdmaBackend *rb, Error **errp);
    /* The device is gone; drop all objects silently. */
    void (*detach)(RdmaBackend *rb);
    /* The backend can work in an iothread. */
    bool has_iothread;
    /*
     * From the outermost rdma_backend_leave(): have the work in @pending done
     * soon, but not in here.
     */
    void (*run_pending)(RdmaBackend *rb, uint32_t pending);
    /*
     * Device reset: drop all objects and GIDs silently. After return the
     * backend does not access guest memory, and all numbers are free.
     */
    void (*reset)(RdmaBackend *rb);
    /*
     * The backend accesses guest memory only while it is RUNNING. With
     * host_numbers this holds for what the backend itself writes: peers may
     * access registered memory through the host's device until RDMA_RUN_NO_DMA.
     */
    void (*set_run_state)(RdmaBackend *rb, RdmaRunState state);
    /*
     * A command has ended, perhaps without its result: no method is repeated
     * that has returned -EINPROGRESS before. May come before attach() and after
     * detach(). Optional if no method returns that.
     */
    void (*abandon)(RdmaBackend *rb);

    /*
     * A line for people: what the backend is connected to, and how much of that
     * is in use. Property "info" of the object while a device uses it. The
     * caller frees the line.
     */
    char *(*info_str)(RdmaBackend *rb);

    void (*query_port)(RdmaBackend *rb, RdmaPortAttr *attr);
    /*
     * Take the port up or down. A port that is down has no link, even if its
     * network is up, and passes nothing. The port is up after attach(). May
     * come while the VM is stopped. Optional.
     */
    void (*set_port)(RdmaBackend *rb, bool up);
    int (*add_gid)(RdmaBackend *rb, uint32_t index,
                   const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);

    /*
     * Takes over attr->pages when it returns 0. With host_numbers sets
     * attr->lkey and attr->rkey, for any access.
     */
    int (*create_mr)(RdmaBackend *rb, RdmaMrAttr *attr);
    /*
     * Takes over @pages when it returns 0. Optional without
     * MEM_MGT_EXTENSIONS.
     */
    int (*map_mr)(RdmaBackend *rb, uint32_t mrn, uint64_t iova,
                  uint64_t length, uint64_t *pages, uint32_t npages);
    /*
     * The device is about to remove an object that no other object uses, or a
     * GID. The WQEs of a QP are dropped without being retired.
     */
    int (*destroy)(RdmaBackend *rb, RdmaObjectType type, uint32_t id);

    /*
     * Optional from here to set_qp_counters: the device does not offer what
     * needs a missing method, or a limit that the backend has set to 0.
     */

    /* The device has created these objects. */
    int (*create_pd)(RdmaBackend *rb, uint32_t pdn);
    /* @cqe: how many completions the CQ must be able to hold */
    int (*create_cq)(RdmaBackend *rb, uint32_t cqn, uint32_t cqe);
    /* The device may fail the command after this: it keeps the old @cqe. */
    int (*resize_cq)(RdmaBackend *rb, uint32_t cqn, uint32_t cqe);

    /*
     * See roce_mr_modify(). Takes over attr->pages, and sets keys, as
     * create_mr() does.
     */
    int (*modify_mr)(RdmaBackend *rb, uint32_t mask, RdmaMrAttr *attr);
    /* With host_numbers sets attr->rkey. */
    int (*create_mw)(RdmaBackend *rb, RdmaMwAttr *attr);

    /*
     * See roce_srq_create() for what an SRQ does. A QP with an SRQ has
     * cap.max_recv_wr and cap.max_recv_sge of 0, also in loaded() and
     * query_qp().
     */
    int (*create_srq)(RdmaBackend *rb, const RdmaSrqAttr *attr);
    int (*set_srq_limit)(RdmaBackend *rb, uint32_t srqn, uint32_t limit);
    int (*query_srq)(RdmaBackend *rb, uint32_t srqn, RdmaSrqAttr *attr);

    /*
     * The driver supports these of limits.extensions. Called before the first
     * work request, and after state was loaded. There are none until then, nor
     * after reset.
     */
    void (*set_extensions)(RdmaBackend *rb, uint32_t extensions);

    /* Attach the QP to a multicast group, or detach it. */
    int (*set_mcast)(RdmaBackend *rb, uint32_t qpn,
                     const uint8_t gid[RDMA_GID_LEN], bool attach);

    /*
     * The driver asks for counters: bring what query_counters() returns up to
     * date. Optional if it always is.
     */
    int (*update_counters)(RdmaBackend *rb);
    /*
     * Add to @values, which RdmaCounter indexes, what QP @qpn has counted, or
     * with RDMA_NO_QPN the device. -ENOENT: there is no such QP, or the backend
     * does not count by QP.
     */
    int (*query_counters)(RdmaBackend *rb, uint32_t qpn, uint64_t *values);
    /*
     * Set what a QP has counted, after a migration. Only if the backend counts
     * by QP. -ENOENT: there is no such QP.
     */
    int (*set_qp_counters)(RdmaBackend *rb, uint32_t qpn,
                           const uint64_t *values);

    /*
     * For people on the host: what the backend knows about object @id of type
     * @what. Must not wait, changes nothing, and may come at any time after
     * attach(), also during a command and while the VM is stopped. The device
     * asks for one object after the other, so a few look-ups are the limit.
     * -ENOENT: the backend has no such object, or is about to destroy it.
     * Mandatory.
     */
    int (*inspect)(RdmaBackend *rb, RdmaObjectType what, uint32_t id,
                   RdmaInspection *out);

    /*
     * The device, not the driver, wants the QP in ERR. 0 if it is there, or
     * will be: the device does not ask again. Optional if modify_qp() never
     * returns -EINPROGRESS.
     */
    int (*fail_qp)(RdmaBackend *rb, uint32_t qpn);
    /*
     * Is the QP in @state, or about to enter ERR? Optional if query_qp() never
     * returns -EINPROGRESS.
     */
    bool (*qp_in_state)(RdmaBackend *rb, uint32_t qpn, RdmaQpState state);

    /* Mandatory. With host_numbers sets init->wire_qpn. */
    int (*create_qp)(RdmaBackend *rb, RdmaQpInitAttr *init);
    /*
     * Checks the transition. On failure changes nothing, and gives
     * rdma_backend_qp_refused() the reason. Entering RESET retires all WQEs
     * without completions; entering ERR flushes them.
     */
    int (*modify_qp)(RdmaBackend *rb, uint32_t qpn, uint32_t attr_mask,
                     const RdmaQpAttr *attr);
    int (*query_qp)(RdmaBackend *rb, uint32_t qpn, RdmaQpAttr *attr);

    /*
     * The queue may have work requests. The backend pulls them by next_send()
     * or next_recv() when it is the QP's turn, not in here. See
     * rdma_backend_kick().
     */
    void (*kick)(RdmaBackend *rb, RdmaQueue queue, uint32_t id);
    /* There were kicks, and the thread is about to leave: work on them. */
    void (*run)(RdmaBackend *rb);
};

/*
 * Attach a device model to @rb. @limits are the device's own; on success they
 * come back lowered to what both device and backend can do. @ctx is the context
 * of the iothread that the backend shall work in, or NULL. Fails if another
 * device uses @rb, or if @rb refuses.
 */
bool rdma_backend_attach(RdmaBackend *rb, const RdmaBackendClientOps *ops,
                         void *opaque, AddressSpace *dma_as, AioContext *ctx,
                         RdmaBackendLimits *limits, Error **errp);
void rdma_backend_detach(RdmaBackend *rb);

/*
 * Each entry from outside (a doorbell, a command, a timer, a frame, a bottom
 * half) that works on objects of the device or the backend is between
 * rdma_backend_enter() and rdma_backend_leave(). They nest.
 *
 * A write to memory or an MSI-X message may have effects at once. The guest
 * chooses its address, which may be a register that resets or unplugs the
 * device, or that makes another device wait in a nested event loop. So a thread
 * that is rdma_backend_busy() puts off (rdma_backend_put_off()) whatever would
 * free or enter objects that its callers use. The reentrancy guard of the
 * transport is engaged meanwhile.
 *
 * After the outermost rdma_backend_leave() device and backend may be gone.
 */
void rdma_backend_enter(RdmaBackend *rb);
void rdma_backend_leave(RdmaBackend *rb);
/*
 * Enter from the iothread. Returns false if another thread has the lock or
 * waits for it, and then puts off @pending until the lock is free. Succeeds
 * always without an iothread.
 */
bool rdma_backend_try_enter(RdmaBackend *rb, uint32_t pending);
/* Enter with the BQL, or return false if the iothread has the lock. */
bool rdma_backend_enter_if_free(RdmaBackend *rb);
/*
 * Kinds of work that can be put off. The backend's bits are passed to
 * RdmaBackendClass.run_pending(), the device's to RdmaBackendClientOps.
 */
#define RDMA_PENDING_BACKEND(n) (1u << (n))
#define RDMA_PENDING_DEVICE(n) (1u << (16 + (n)))
/* The outermost leave shall call run_pending() with @pending. */
void rdma_backend_put_off(RdmaBackend *rb, uint32_t pending);
/* The work in @pending was done, or is not needed any more. */
void rdma_backend_forget_pending(RdmaBackend *rb, uint32_t pending);
/* Has this thread entered? */
bool rdma_backend_busy(const RdmaBackend *rb);
/*
 * The driver has posted to SQ, RQ or SRQ @id, or may have. Only between enter
 * and leave; the outermost leave has the backend work on all kicked queues.
 */
void rdma_backend_kick(RdmaBackend *rb, RdmaQueue queue, uint32_t id);

/*
 * Does another thread wait for this one to leave? This thread must then leave
 * after the current frame or queue, and continue in another turn.
 */
static inline bool rdma_backend_wanted(const RdmaBackend *rb)
{
    return qatomic_read(&rb->waiting);
}

/*
 * A MODIFY_QP of the driver fails: report the reason in QEMU's log of guest
 * errors and in a trace event.
 */
void rdma_backend_qp_refused(RdmaBackend *rb, uint32_t qpn,
                             const RdmaQpRefusal *refusal);

/*
 * g_free() memory of @size bytes. If it is large, the main loop gives its pages
 * back in later turns. Any thread.
 */
void rdma_backend_free(void *mem, size_t size);
/*
 * Are many pages left to be given back? A guest that creates and destroys large
 * objects must then wait, or QEMU would keep all of them. Under the BQL.
 */
bool rdma_backend_frees_much(void);

/* Property @name cannot be set while a device uses the backend @obj. */
bool rdma_backend_may_set(Object *obj, const char *name, Error **errp);

/*
 * The implicit backend of "netdev=": make a backend of the default type on
 * netdev @netdev_id as a child of @owner. object_unparent() frees it. NULL and
 * @errp on failure.
 */
RdmaBackend *rdma_backend_new_default(Object *owner, const char *netdev_id,
                                      Error **errp);

#endif /* SYSTEM_RDMA_BACKEND_H */
