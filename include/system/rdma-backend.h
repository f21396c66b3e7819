/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RDMA backend: what stands behind an RDMA device model.
 *
 * The device model decodes guest requests, owns the handle tables and checks
 * handles, protection domains and limits. The backend moves the data. The
 * class is verbs-shaped; numbers (cqn, pdn, mrn, qpn, GID index) are chosen
 * by the device. They are what guest and peers see, unless the backend has
 * limits.host_numbers: then keys and the QPNs on the wire are its own.
 *
 * Context: everything here is called, and calls back, under the BQL.
 */
#ifndef SYSTEM_RDMA_BACKEND_H
#define SYSTEM_RDMA_BACKEND_H

#include "block/aio.h"
#include "hw/qdev-core.h"
#include "qemu/thread.h"
#include "qom/object.h"
#include "rdma/consumer.h"
#include "rdma/counters.h"
#include "rdma/inspect.h"
#include "rdma/qp-check.h"
#include "rdma/verbs.h"
#include "system/rdma-ram.h"

#define TYPE_RDMA_BACKEND "rdma-backend"
#define TYPE_RDMA_BACKEND_ROCE "rdma-roce"
OBJECT_DECLARE_TYPE(RdmaBackend, RdmaBackendClass, RDMA_BACKEND)

/* What a backend has loaded; only the member for @type is set. */
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
 * What a device model offers its backend. All are mandatory, those of SRQs
 * where limits.max_srq is not 0. They may be called from within any class
 * method, but while the VM is stopped only where that is said below. A callback
 * must not call a class method of the backend, but port_changed() may call
 * query_port(), and any inspect(); it may schedule a bottom half.
 */
typedef struct RdmaBackendClientOps {
    /*
     * Its queues. retire() of no WQEs, and event(), also in a stopped VM: the
     * driver is told when that goes on.
     */
    RdmaConsumerOps consumer;
    /*
     * Port attributes changed: link state, MTU or MAC. Also in a stopped VM,
     * likewise.
     */
    void (*port_changed)(void *opaque);
    /*
     * What a method has answered with -EINPROGRESS is done, or has failed: the
     * method can be asked again. Comes from the main loop, not from within a
     * method; also in a stopped VM, and also when nobody asks any more. A
     * backend that never answers so never calls it.
     */
    void (*resume)(void *opaque);
    /*
     * Before the outermost rdma_backend_leave(): notify the driver of what was
     * put into virtqueues. The device is still busy.
     */
    void (*flush)(void *opaque);
    /*
     * After it: do what rdma_backend_put_off() was called for, @pending. Device
     * and backend may be gone when this returns.
     */
    void (*run_pending)(void *opaque, uint32_t pending);
    /*
     * A backend that loads its state has come to a GID. False if the guest may
     * not use it.
     */
    bool (*gid_allowed)(void *opaque, const uint8_t gid[RDMA_GID_LEN]);
    /*
     * A backend that loads its state has come to an object. False if the
     * device, which was loaded before, does not have it, or not like that.
     * Each object comes once; the limit of an SRQ is the backend's own, and
     * the key of a window may be one of a BIND_MW.
     */
    bool (*loaded)(void *opaque, const RdmaLoaded *obj);
} RdmaBackendClientOps;

/* What the device model wants, or what a backend allows at most. */
typedef struct RdmaBackendLimits {
    uint32_t max_qp;
    uint32_t max_qp_wr;             /* of a QP with virtqueues */
    uint32_t max_qp_wr_direct;      /* of any other */
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;       /* bytes */
    uint32_t max_cq;
    uint32_t max_cqe;               /* of a CQ as deep as its virtqueue */
    uint32_t max_cqe_deep;          /* of any other */
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
    uint32_t max_reg_pages;         /* that a REG_MR brings; else 0 */
    uint32_t max_mcast_grp;
    uint32_t max_mcast_qp_attach;
    uint32_t extensions;            /* RDMA_EXT_* */
    bool any_gid;                   /* the user sets no limits to GIDs */
    /*
     * From the backend: it chooses keys, and the QPNs on the wire, and sets
     * them in the attributes that an object is made or changed with. The
     * device offers VIRTIO_RDMA_F_HOST_NUMBERS, and serves no driver without.
     */
    bool host_numbers;
} RdmaBackendLimits;

#define RDMA_NO_QPN UINT32_MAX

struct RdmaBackend {
    Object parent_obj;

    /* Its class, which is looked up only once: that takes long. */
    const RdmaBackendClass *bc;
    /* Set while a device is attached. */
    const RdmaBackendClientOps *client_ops;
    void *client_opaque;
    AddressSpace *dma_as;
    RdmaRam ram;                    /* of @dma_as */
    MemReentrancyGuard *guard;      /* of the device's transport, or NULL */
    RdmaBackendLimits limits;

    AioContext *ctx;                /* of the iothread, or NULL */
    /*
     * With an iothread, see below. Only rdma_backend_leave() tells it when the
     * lock is free.
     */
    QemuRecMutex lock;
    bool contended;                 /* the iothread wants to enter */
    unsigned waiting;               /* threads that wait for the lock */

    uint32_t pending;               /* atomic: RDMA_PENDING_* */
    bool kicked;                    /* run() is to be called */
    unsigned busy;                  /* rdma_backend_enter() without _leave() */
    const void *owner;              /* the thread that is busy */
    bool guard_was;                 /* before the outermost of them */
};

typedef enum RdmaRunState {
    RDMA_RUN_RUNNING,
    /* The VM is stopped, or more. */
    RDMA_RUN_STOPPED,
    /*
     * The driver is gone, or may not use the function any more. Comes after
     * STOPPED. On return nothing touches guest memory; QPs may enter ERR for
     * it, without an event.
     */
    RDMA_RUN_NO_DMA,
} RdmaRunState;

/*
 * Methods return 0 or a negative errno unless said otherwise. What they are
 * asked for is done when they return.
 *
 * But those that a command of the driver leads to, from add_gid() on to
 * query_qp(), may return -EINPROGRESS and go on by themselves:
 * - The device then changes nothing, and after RdmaBackendClientOps.resume()
 *   calls the method again with the same arguments, which gets the result.
 *   That may take more than one -EINPROGRESS.
 * - One command at a time is in progress. Posts, runs, callbacks, fail_qp(),
 *   qp_in_state(), query_port() and query_counters() may come meanwhile; a QP
 *   that cannot take posts has no room.
 * - What the backend chooses (lkey, rkey, wire_qpn) is preset anew each time
 *   and is no argument.
 * - A list of pages is taken over with -EINPROGRESS as it is with 0. The method
 *   is called again with the pointer NULL and the same npages: a list that is
 *   there is another one, and so is the command.
 * - The driver may change a command while it waits. If a method is called with
 *   other arguments, or another one is, nobody will ask for the result: the
 *   backend undoes what can be undone, that is an object which was made, and
 *   begins with what it is asked for now. What cannot be undone stays done, and
 *   who asks for it later is told so: destroy() of a region that is gone
 *   already is 0. A finished result for the same arguments is as good as a new
 *   one, but for page lists.
 * - reset() and detach() end it; nobody asks for the result.
 */
struct RdmaBackendClass {
    ObjectClass parent_class;

    /*
     * State of the RdmaBackend that migrates with the device, or NULL: the
     * device then blocks migration while it exists. Loading it makes the
     * backend's objects; the device makes its own before, and tells nobody.
     */
    const VMStateDescription *vmsd;

    /*
     * A device takes the backend: rb->client_*, dma_as and limits are set.
     * The backend lowers rb->limits to what it can do, or fails. rb->ctx is
     * not NULL only with @has_iothread.
     */
    bool (*attach)(RdmaBackend *rb, Error **errp);
    /* The device is gone; all objects are dropped silently. */
    void (*detach)(RdmaBackend *rb);
    /* It can work in an iothread. */
    bool has_iothread;
    /*
     * The outermost rdma_backend_leave() has come: see to it that @pending,
     * what was put off, is done soon, but not in here.
     */
    void (*run_pending)(RdmaBackend *rb, uint32_t pending);
    /*
     * Device reset: drop all objects and GIDs silently. On return guest memory
     * is not touched any more, and all numbers are free.
     */
    void (*reset)(RdmaBackend *rb);
    /*
     * Guest memory is not touched unless the client runs: the VM may be
     * stopped, or the driver gone. With host_numbers that is so for what the
     * backend itself writes; what peers do to registered memory goes on in the
     * host's device until RDMA_RUN_NO_DMA.
     */
    void (*set_run_state)(RdmaBackend *rb, RdmaRunState state);

    /*
     * A line for people: what the backend is connected to, and what of that is
     * in use. Property "info" of the object, while a device uses it. The caller
     * frees it.
     */
    char *(*info_str)(RdmaBackend *rb);

    void (*query_port)(RdmaBackend *rb, RdmaPortAttr *attr);
    /*
     * Not @up: the port shall have no link, whatever its network says, and
     * nothing passes. True after attach(). Optional. Also in a stopped VM.
     */
    void (*set_port)(RdmaBackend *rb, bool up);
    int (*add_gid)(RdmaBackend *rb, uint32_t index,
                   const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);

    /*
     * Takes over attr->pages when it returns 0. With host_numbers sets
     * attr->lkey and attr->rkey, whatever the access is.
     */
    int (*create_mr)(RdmaBackend *rb, RdmaMrAttr *attr);
    /*
     * Takes over @pages when it returns 0. Optional without
     * MEM_MGT_EXTENSIONS.
     */
    int (*map_mr)(RdmaBackend *rb, uint32_t mrn, uint64_t iova,
                  uint64_t length, uint64_t *pages, uint32_t npages);
    /*
     * The device is about to remove an object that nothing uses any more, or a
     * GID. WQEs of a QP are dropped without being retired.
     */
    int (*destroy)(RdmaBackend *rb, RdmaObjectType type, uint32_t id);

    /*
     * Optional from here to set_qp_counters: the device does not offer what
     * needs a method that is missing, or a limit that came back as 0.
     */

    /* The device has made these objects. */
    int (*create_pd)(RdmaBackend *rb, uint32_t pdn);
    /* @cqe: how many completions the driver wants to be able to keep */
    int (*create_cq)(RdmaBackend *rb, uint32_t cqn, uint32_t cqe);
    int (*resize_cq)(RdmaBackend *rb, uint32_t cqn, uint32_t cqe);

    /*
     * See roce_mr_modify(). Takes over attr->pages, and sets keys, as
     * create_mr() does.
     */
    int (*modify_mr)(RdmaBackend *rb, uint32_t mask, RdmaMrAttr *attr);
    /* With host_numbers sets attr->rkey. */
    int (*create_mw)(RdmaBackend *rb, RdmaMwAttr *attr);

    /*
     * See roce_srq_create() f. for what an SRQ does. A QP that uses one has
     * cap.max_recv_wr and _sge of 0, also in loaded() and query_qp().
     */
    int (*create_srq)(RdmaBackend *rb, const RdmaSrqAttr *attr);
    int (*set_srq_limit)(RdmaBackend *rb, uint32_t srqn, uint32_t limit);
    int (*query_srq)(RdmaBackend *rb, uint32_t srqn, RdmaSrqAttr *attr);

    /*
     * The driver knows these of limits.extensions. Called before work comes
     * and when state was loaded; until then, and after reset, it is none.
     */
    void (*set_extensions)(RdmaBackend *rb, uint32_t extensions);

    /* @attach the QP to a multicast group, or detach it. */
    int (*set_mcast)(RdmaBackend *rb, uint32_t qpn,
                     const uint8_t gid[RDMA_GID_LEN], bool attach);

    /*
     * The driver asks for counters, or for the port's attributes: what
     * query_counters() and query_port() count shall be as it is now. Optional
     * where it always is.
     */
    int (*update_counters)(RdmaBackend *rb);
    /*
     * Add to @values, of RDMA_NUM_COUNTERS by RdmaCounter, what QP @qpn has
     * counted, or with RDMA_NO_QPN the device. -ENOENT: there is no such QP,
     * or it does not count.
     */
    int (*query_counters)(RdmaBackend *rb, uint32_t qpn, uint64_t *values);
    /*
     * Set what a QP has counted, after a migration. Only if QPs count. -ENOENT:
     * there is no such QP.
     */
    int (*set_qp_counters)(RdmaBackend *rb, uint32_t qpn,
                           const uint64_t *values);

    /*
     * For people on the host who look at the device: what is known of an
     * object, named by @what and @id, without asking anyone who may take long.
     * Changes nothing, and may come at any time after attach(): amid a command
     * that is in progress, and in a stopped VM. It comes for one object after
     * the other, so it should take no longer than a few look-ups. -ENOENT: the
     * backend has no such object, or is about to destroy it. Mandatory.
     */
    int (*inspect)(RdmaBackend *rb, RdmaObjectType what, uint32_t id,
                   RdmaInspection *out);

    /*
     * The device, not the driver, wants the QP in ERR. 0 if it is, or is about
     * to be; the device does not ask again. Optional: without, modify_qp()
     * returns at once.
     */
    int (*fail_qp)(RdmaBackend *rb, uint32_t qpn);
    /*
     * Is it in this state now, or about to enter ERR? Optional: without,
     * query_qp() returns at once.
     */
    bool (*qp_in_state)(RdmaBackend *rb, uint32_t qpn, RdmaQpState state);

    /* Mandatory. With host_numbers sets init->wire_qpn. */
    int (*create_qp)(RdmaBackend *rb, RdmaQpInitAttr *init);
    /*
     * Checks the transition; changes nothing when it fails, and tells
     * rdma_backend_qp_refused() why. Entering RESET retires all WQEs without
     * completions, entering ERR flushes them.
     */
    int (*modify_qp)(RdmaBackend *rb, uint32_t qpn, uint32_t attr_mask,
                     const RdmaQpAttr *attr);
    int (*query_qp)(RdmaBackend *rb, uint32_t qpn, RdmaQpAttr *attr);

    /*
     * The queue may have WRs: ask for sends by next_send() when the QP has its
     * turn, which is not in here. See rdma_backend_kick().
     */
    void (*kick)(RdmaBackend *rb, RdmaQueue queue, uint32_t id);
    /* There were kicks, and the backend is about to be left: work on them. */
    void (*run)(RdmaBackend *rb);
};

/*
 * Attach a device model to @rb. @limits are the device's own; on success they
 * come back lowered to what device and backend both can do. @ctx is that of the
 * iothread that the backend works in, or NULL. Fails when @rb is in use already
 * or refuses.
 */
bool rdma_backend_attach(RdmaBackend *rb, const RdmaBackendClientOps *ops,
                         void *opaque, AddressSpace *dma_as, AioContext *ctx,
                         RdmaBackendLimits *limits, Error **errp);
void rdma_backend_detach(RdmaBackend *rb);

/*
 * Every entry from outside (a doorbell, a command, a timer, a frame, a bottom
 * half) that works on objects of the device or the backend is between these
 * two. They nest.
 *
 * A write to memory or an MSI-X message may have effects at once: the guest
 * chooses its address, which may be that of a register that resets or unplugs
 * the device, or makes another device wait in a nested event loop. So while
 * rdma_backend_busy(), whatever would free or enter what the callers stand on
 * is put off (rdma_backend_put_off()).
 * The reentrancy guard of the transport is engaged meanwhile.
 *
 * Nothing of the device or the backend may be used after the outermost
 * rdma_backend_leave().
 *
 * With an iothread there are two kinds of threads that enter:
 *
 * - Those with the BQL, the main loop and vCPUs, wait for the lock, until the
 *   iothread sees that (rdma_backend_wanted()). They alone change what commands
 *   change (tables of objects, GIDs, the port), so that they may read that
 *   without having entered. They alone use virtqueues, netdevs and interrupts.
 * - The iothread waits for nothing: it enters by rdma_backend_try_enter(),
 *   which also fails while others wait, so that they are next, and
 *   accesses guest memory only where it is RAM, for else it would have to wait
 *   for the BQL. So whoever has the BQL may wait for the iothread, whatever the
 *   guest does.
 */
void rdma_backend_enter(RdmaBackend *rb);
void rdma_backend_leave(RdmaBackend *rb);
/*
 * The same for the iothread. If it returns false, @pending is put off until the
 * lock is free. Without an iothread it does not fail.
 */
bool rdma_backend_try_enter(RdmaBackend *rb, uint32_t pending);
/* The same for who has the BQL and another way if it fails. */
bool rdma_backend_enter_if_free(RdmaBackend *rb);
/*
 * What can be put off. The backend's bits are passed to
 * RdmaBackendClass.run_pending(), the device's to RdmaBackendClientOps.
 */
#define RDMA_PENDING_BACKEND(n) (1u << (n))
#define RDMA_PENDING_DEVICE(n) (1u << (16 + (n)))
/* Have run_pending() called with @pending, by the outermost leave. */
void rdma_backend_put_off(RdmaBackend *rb, uint32_t pending);
/* No more: it was done, or is void. */
void rdma_backend_forget_pending(RdmaBackend *rb, uint32_t pending);
/* Has this thread entered? */
bool rdma_backend_busy(const RdmaBackend *rb);
/*
 * The driver has posted to SQ, RQ or SRQ @id, or may have. Between enter and
 * leave; the outermost leave has the backend work on all that were kicked.
 */
void rdma_backend_kick(RdmaBackend *rb, RdmaQueue queue, uint32_t id);

/*
 * Does another thread wait for this one to leave? It then comes to an end with
 * the next frame or queue, and goes on in another turn.
 */
static inline bool rdma_backend_wanted(const RdmaBackend *rb)
{
    return qatomic_read(&rb->waiting);
}

/*
 * A MODIFY_QP of the driver fails: tell those who look for the reason, by
 * QEMU's log of guest errors and a trace event.
 */
void rdma_backend_qp_refused(RdmaBackend *rb, uint32_t qpn,
                             const RdmaQpRefusal *refusal);

/*
 * g_free(), but the pages of large memory, of @size bytes or more, are given
 * back in later turns of the main loop.
 */
void rdma_backend_free(void *mem, size_t size);
/*
 * Is much left to be given back? A guest that makes and destroys large objects
 * would have QEMU keep all of them: it has to wait. Under the BQL.
 */
bool rdma_backend_frees_much(void);

/*
 * The implicit backend of "netdev=": make an rdma-roce object on netdev
 * @netdev_id as a child of @owner. The child is owned by @owner and freed by
 * object_unparent(). NULL and @errp on failure.
 */
RdmaBackend *rdma_backend_new_roce(Object *owner, const char *netdev_id,
                                   Error **errp);

#endif /* SYSTEM_RDMA_BACKEND_H */
