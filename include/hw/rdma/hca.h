/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The HCA core: the adapter without a guest ABI. The core has the objects,
 * their numbers and references, completions, events, faults, and the views for
 * QMP and the monitor. A guest interface translates the commands and WQEs of a
 * driver for the core. It embeds an RdmaHca, and embeds the core's CQs, SRQs
 * and QPs in objects of its own. Only the core calls the backend.
 *
 * Context: a caller holds the BQL, or runs in the device's iothread. Functions
 * that work on objects run between rdma_hca_enter() and rdma_hca_leave().
 *
 * Errors: an int is 0 or a negative errno, a bool is true for success. A
 * function with @errp sets it when it returns false or NULL.
 */
#ifndef HW_RDMA_HCA_H
#define HW_RDMA_HCA_H

#include "hw/rdma/hca-extents.h"
#include "hw/rdma/hca-types.h"

/* Work that waits while the device is busy: the bottom half */
#define RDMA_HCA_PENDING_BH RDMA_PENDING_DEVICE(0)
/*
 * The same for a guest interface, which chooses the meaning of each @n. The
 * core has the bits between, see hca/int.h.
 */
#define RDMA_HCA_PENDING_GUEST(n) RDMA_PENDING_DEVICE(3 + (n))

/*
 * Call these two around every access to objects. Calls nest. The outermost
 * rdma_hca_leave() may end the device, so the caller must not use @hca after
 * it.
 *
 * A write of the device to guest memory, or an interrupt, may have effects at
 * once: the guest chooses the address, which may be a register that resets or
 * unplugs this device, or that makes another device wait in a nested event
 * loop. Work that would free objects of callers on the stack is put off.
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

/*
 * Under the BQL: have the next outermost rdma_hca_leave() do the work @pending.
 * For RDMA_HCA_PENDING_BH it schedules the bottom half, for bits
 * RDMA_HCA_PENDING_GUEST(n) it calls RdmaHcaOps.run_pending().
 */
static inline void rdma_hca_put_off(RdmaHca *hca, uint32_t pending)
{
    rdma_backend_put_off(hca->backend, pending);
}

/* The work of these bits was done, or is not needed any more. */
static inline void rdma_hca_forget_pending(RdmaHca *hca, uint32_t pending)
{
    rdma_backend_forget_pending(hca->backend, pending);
}

/* Is work of these bits put off? */
static inline bool rdma_hca_is_pending(const RdmaHca *hca, uint32_t pending)
{
    return qatomic_read(&hca->backend->pending) & pending;
}

/*
 * Under the BQL: enter the device; the caller calls rdma_hca_leave(). False if
 * the device is busy: @pending is put off.
 */
static inline bool rdma_hca_enter_or_put_off(RdmaHca *hca, uint32_t pending)
{
    if (rdma_hca_busy(hca)) {
        rdma_hca_put_off(hca, pending);
        return false;
    }
    rdma_hca_enter(hca);
    return true;
}

static inline bool rdma_hca_is_active(RdmaHca *hca)
{
    return hca->ops->is_active(hca);
}

/* The limit @max of a depth, for queues that RdmaHca.ring_size limits, too */
static inline uint32_t rdma_hca_ring_depth(const RdmaHca *hca, uint32_t max)
{
    return MIN(max, hca->ring_size);
}

/*
 * hca.c: the adapter as a whole. Realize calls rdma_hca_init(),
 * rdma_hca_backend_get(), rdma_hca_attach() and rdma_hca_start(). If a step
 * fails, it calls rdma_hca_backend_put() before the backend is attached, and
 * rdma_hca_detach() after that. Unrealize calls rdma_hca_end().
 */

/*
 * Call first. @owner embeds @hca. @dev is the device that the user has added:
 * the core engages its reentrancy guard. @ops stays the caller's.
 */
void rdma_hca_init(RdmaHca *hca, const RdmaHcaOps *ops, Object *owner,
                   DeviceState *dev);
/*
 * Call at the end of realize, when hca->limits are final: make the tables and
 * bottom halves, and show the HCA to QMP.
 */
void rdma_hca_start(RdmaHca *hca);
/*
 * The device is unrealized: hide it from QMP, and stop serving it. When no
 * function on the stack uses the device, stop the backend, and call @end, which
 * calls rdma_hca_detach() and rdma_hca_free().
 */
void rdma_hca_end(RdmaHca *hca, void (*end)(RdmaHca *hca));
/*
 * Device reset: reset the backend, remove all objects and events, and set
 * counters to 0. Not if rdma_hca_busy() before the caller's rdma_hca_enter().
 */
void rdma_hca_reset(RdmaHca *hca);
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
 * the backend can do. All limits of SRQs are 0 if the backend has none, or one
 * of max_srq and max_srq_wr is 0; those of multicast groups likewise. @dma_as:
 * the address space of the driver's addresses. If the backend cannot migrate,
 * this blocks migration.
 */
bool rdma_hca_attach(RdmaHca *hca, AddressSpace *dma_as, Error **errp);
void rdma_hca_detach(RdmaHca *hca);
/* Set the RDMA_EXT_* that the driver uses. */
void rdma_hca_use_extensions(RdmaHca *hca, uint32_t extensions);
/* Release a backend that is not attached. rdma_hca_detach() does so, too. */
void rdma_hca_backend_put(RdmaHca *hca);

/* What the backend can do */

/* Can regions be of RDMA_MR_FAST_REG? */
static inline bool rdma_hca_has_mem_mgt(const RdmaHca *hca)
{
    return hca->limits.device_cap_flags & RDMA_HCA_CAP_MEM_MGT_EXTENSIONS;
}

/* Is rdma_hca_mr_rereg() implemented? Otherwise it returns -ENOTSUP. */
static inline bool rdma_hca_has_rereg(const RdmaHca *hca)
{
    return hca->bc->modify_mr;
}

/* Does the backend count for the device? Otherwise counters are 0. */
static inline bool rdma_hca_has_counters(const RdmaHca *hca)
{
    return hca->bc->query_counters;
}

/* Does the backend count for each QP, too? */
static inline bool rdma_hca_has_qp_counters(const RdmaHca *hca)
{
    return hca->bc->query_counters && hca->bc->set_qp_counters;
}

/* The address space that the backend was attached with */
static inline AddressSpace *rdma_hca_dma_as(const RdmaHca *hca)
{
    return hca->backend->dma_as;
}

/* The QOM type of the backend, for messages */
static inline const char *rdma_hca_backend_type(const RdmaHca *hca)
{
    return object_get_typename(OBJECT(hca->backend));
}

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

/* Find a free number, but do not reserve it. False if all are in use. */
bool rdma_hca_table_find(RdmaHcaTable *t, uint32_t *id);
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
#define RDMA_HCA_FOREACH(t, n, obj) \
    for (uint32_t n = (t)->first; ((obj) = rdma_hca_table_next(t, &n)); n++)

/* The object with the number @id, or NULL. @id may be out of range. */
static inline void *rdma_hca_table_get(const RdmaHcaTable *t, uint32_t id)
{
    return id < t->end ? t->slot[id] : NULL;
}

/* The CQ @cqn; NULL if it does not exist, or is an event queue. */
static inline RdmaHcaCq *rdma_hca_cq_get(RdmaHca *hca, uint32_t cqn)
{
    RdmaHcaCq *cq = rdma_hca_table_get(&hca->cqs, cqn);

    return cq && !cq->is_eq ? cq : NULL;
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
 * Have that bottom half kick all queues of the QP or SRQ that @wq belongs to,
 * or fail the QP or SRQ if a queue is broken. The caller holds the BQL, or has
 * entered the device.
 */
void rdma_hca_wq_schedule(RdmaHca *hca, const RdmaHcaWq *wq);
/*
 * The same for RdmaHcaOps.poll_doorbells(): the kicks follow in this turn, so
 * no other is scheduled.
 */
void rdma_hca_wq_mark(RdmaHca *hca, const RdmaHcaWq *wq);
void rdma_hca_qp_schedule(RdmaHca *hca, RdmaHcaQp *qp);
/* The driver's counters are wrong: have the bottom half fail the QP or SRQ. */
void rdma_hca_wq_break(RdmaHca *hca, RdmaHcaWq *wq);

/* run.c: kicks and bottom halves */

/*
 * The queue may have work: have the backend poll it. Call after
 * rdma_hca_enter().
 */
void rdma_hca_kick(RdmaHca *hca, RdmaHcaWq *wq);
/*
 * If the driver has to ring for this RQ, tell the driver that the device polls
 * it, and kick it. A queue that is polled needs no kick.
 */
void rdma_hca_kick_if_asleep(RdmaHca *hca, RdmaHcaWq *rq);
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
/*
 * For a timer of the guest interface in RdmaHca.ctx, or without one in the main
 * loop: do at once what rdma_hca_work_schedule() schedules. This saves another
 * turn of that loop. The call may end the device.
 */
void rdma_hca_work_run(RdmaHca *hca);
/* Schedule all queues. */
void rdma_hca_kick_all(RdmaHca *hca);
/*
 * Tell the backend whether it may work, and tell the driver of changes of the
 * port that it was not told yet. @ready: driver and device allow that;
 * @running: so does the VM. Returns whether @running has changed.
 *
 * Without @ready peers must not write to guest memory: a driver may free it
 * when the device is broken or is not bus master, and so may the next driver
 * when the device is not set up.
 */
bool rdma_hca_set_running(RdmaHca *hca, bool running, bool ready);

/* check.c: checks of properties, and of fields of the guest */

/* A property with an integer value, and its range */
typedef struct RdmaHcaProp {
    const char *name;
    uint64_t value;
    uint64_t min;
    uint64_t max;
    bool is_power;                  /* the value must be a power of 2 */
} RdmaHcaProp;

/* Check @n properties, in this order. */
bool rdma_hca_check_props(const RdmaHcaProp *props, size_t n, Error **errp);

/* A property, and its meaning for "-device TYPE,help" */
typedef struct RdmaHcaPropText {
    const char *name;
    const char *text;
} RdmaHcaPropText;

/* Set the descriptions of @n properties of the class. */
void rdma_hca_describe_props(ObjectClass *klass, const RdmaHcaPropText *texts,
                             size_t n);

/* The following functions log a guest error. */

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
 * A guest interface allocates a CQ, SRQ or QP, and sets its number, its
 * attributes and its form, that is @ops. _create() enters the object into its
 * table, and makes it in the backend; if that fails, the core removes the
 * object, and frees it by RdmaHcaObjectOps.free(). Migration: see
 * hw/rdma/hca-vmstate.h.
 */

/* pd.c: protection domains */

int rdma_hca_pd_create(RdmaHca *hca, uint32_t *pdn);
int rdma_hca_pd_destroy(RdmaHca *hca, uint32_t pdn);

/* pages.c: page lists, of regions and of queues in memory */

/* Does the list have @npages, and enough levels for them? 0 or -EINVAL. */
int rdma_hca_pages_check_num(const RdmaHcaPages *p, uint64_t npages);
/*
 * The command has returned -EINPROGRESS. Was its budget used up within a page
 * list? Then execute it again in the next turn, without RdmaHcaOps.resume().
 */
bool rdma_hca_pages_reading(const RdmaHca *hca);

/* command.c: turns of commands */

/*
 * Begin a turn. In a turn of the main loop, commands and the entries of their
 * page lists use up RDMA_TURN_BUDGET at most.
 */
void rdma_hca_turn_begin(RdmaHca *hca);
/*
 * May a command be executed in this turn? If not, call rdma_hca_bh_schedule():
 * RdmaHcaOps.serve() begins the next turn. Commands also wait while much memory
 * of destroyed objects is not freed yet.
 */
bool rdma_hca_turn_goes_on(const RdmaHca *hca);
/*
 * The command in progress has ended or was dropped: forget its page list and
 * its delay by a fault, and have the backend abandon it.
 */
void rdma_hca_command_end(RdmaHca *hca);

/* mr.c: memory regions */

/*
 * The functions with a page list @p check and read the list, and charge its
 * pages. They replace its page_shift 0 by the default. -ENOMEM if the sum would
 * exceed hca->max_mr_pages, -EINVAL if the list is not in RAM or an address is
 * not aligned, -EINPROGRESS when hca->cmd_budget is used up: then they go on
 * where they stopped when the command is executed again.
 */

/*
 * Reads type, pdn, access and max_pages of @attr, and sets the rest. Only a
 * region of RDMA_MR_USER has a list; for others @p may be NULL.
 */
int rdma_hca_mr_create(RdmaHca *hca, RdmaMrAttr *attr, RdmaHcaPages *p);
/*
 * Reads mrn, pdn and access of @attr, and sets the rest. @flags: RDMA_REREG_*.
 * Only RDMA_REREG_TRANSLATION needs @p.
 */
int rdma_hca_mr_rereg(RdmaHca *hca, uint32_t flags, RdmaMrAttr *attr,
                      RdmaHcaPages *p);
/* Set the list that the next REG_MR of a region for fast registration uses. */
int rdma_hca_mr_map(RdmaHca *hca, uint32_t mrn, RdmaHcaPages *p);
int rdma_hca_mr_dereg(RdmaHca *hca, uint32_t mrn);

/* mw.c: memory windows */

/* Reads pdn and type of @attr. Sets mwn and rkey. */
int rdma_hca_mw_alloc(RdmaHca *hca, RdmaMwAttr *attr);
int rdma_hca_mw_dealloc(RdmaHca *hca, uint32_t mwn);

/* cq.c: completion queues */

int rdma_hca_cq_create(RdmaHca *hca, RdmaHcaCq *cq);
/* Set the depth to @cqe, for which the form has room. */
int rdma_hca_cq_resize(RdmaHca *hca, RdmaHcaCq *cq, uint32_t cqe);
int rdma_hca_cq_destroy(RdmaHca *hca, uint32_t cqn);
/*
 * Put the CQ into its error state, and raise an event. The backend fails the
 * QPs of the CQ.
 */
void rdma_hca_cq_enter_error(RdmaHca *hca, RdmaHcaCq *cq);
/*
 * The same, in qp.c: the QPs of the CQ are scheduled, and fail in their turns;
 * those in RESET, when they leave that state.
 */
void rdma_hca_cq_fail(RdmaHca *hca, RdmaHcaCq *cq);

/* srq.c: shared receive queues */

int rdma_hca_srq_check(RdmaHca *hca, const RdmaSrqAttr *attr);
int rdma_hca_srq_create(RdmaHca *hca, RdmaHcaSrq *srq);
int rdma_hca_srq_modify(RdmaHca *hca, uint32_t srqn, uint32_t limit);
int rdma_hca_srq_query(RdmaHca *hca, uint32_t srqn, RdmaSrqAttr *attr);
int rdma_hca_srq_destroy(RdmaHca *hca, uint32_t srqn);
/*
 * Put the SRQ into its error state, and raise an event. Its QPs are scheduled,
 * and fail in their turns; those in RESET, when they leave that state.
 */
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
/* Sets qp->init.wire_qpn. */
int rdma_hca_qp_create(RdmaHca *hca, RdmaHcaQp *qp);
int rdma_hca_qp_modify(RdmaHca *hca, uint32_t qpn, uint32_t mask,
                       const RdmaQpAttr *wanted);
int rdma_hca_qp_query(RdmaHca *hca, uint32_t qpn, RdmaQpAttr *attr);
int rdma_hca_qp_destroy(RdmaHca *hca, uint32_t qpn);
/* Is the QP in @state? For ERR: or about to enter ERR? */
bool rdma_hca_qp_is_in(RdmaHca *hca, RdmaHcaQp *qp, RdmaQpState state);
/* Move the QP to ERR and raise an event, unless it is in ERR or RESET. */
void rdma_hca_qp_fail(RdmaHca *hca, RdmaHcaQp *qp);

/* mcast.c: multicast groups */

int rdma_hca_mcast_set(RdmaHca *hca, uint32_t qpn,
                       const uint8_t gid[RDMA_GID_LEN], bool attach);

/* port.c: the port */

/* Is @port the port's number? Logs a guest error. */
bool rdma_hca_check_port(uint32_t port);
/* Read the port's attributes. Under the BQL; never waits. */
static inline void rdma_hca_port_get(const RdmaHca *hca, RdmaPortAttr *attr)
{
    hca->bc->query_port(hca->backend, attr);
}

/* The same for a command that returns counters, too. May be -EINPROGRESS. */
int rdma_hca_port_query(RdmaHca *hca, RdmaPortAttr *attr);
/* Set @guid to the EUI-64 of @mac, as guests make it (RFC 4291, appendix A). */
void rdma_hca_guid_from_mac(uint8_t guid[8], const uint8_t mac[RDMA_MAC_LEN]);
int rdma_hca_gid_add(RdmaHca *hca, uint32_t index,
                     const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);
int rdma_hca_gid_del(RdmaHca *hca, uint32_t index);

/* gids.c: the GIDs that the guest may use */

/* Set hca->allowed_gids. @text: the property "allowed-gids"; NULL: all GIDs */
bool rdma_hca_gids_parse(RdmaHca *hca, const char *text, Error **errp);
void rdma_hca_gids_free(RdmaHca *hca);

/* sq.c: send queues */

/*
 * For RdmaHcaOps.decode_send(): read the page list @p of the REG_MR @wr, and
 * charge it to the WQE, the newest one in flight. Sets the fields of @wr, which
 * owns the list. Returns the status for @wr.
 */
RdmaWcStatus rdma_hca_sq_read_reg(RdmaHca *hca, RdmaHcaQp *qp,
                                  RdmaHcaPages *p, RdmaSendWr *wr);

/* wq.c: work queues */

/* The kind of object that wq->id identifies, for messages: "QP" or "SRQ" */
const char *rdma_hca_wq_owner(const RdmaHcaWq *wq);
/* The @i-th oldest WQE in flight; @i is less than wq->count. */
RdmaHcaInflight *rdma_hca_wq_inflight(const RdmaHcaWq *wq, uint32_t i);
/*
 * The ring of the queue was reset: make WQEs in flight stale. Returns whether
 * there were any.
 */
bool rdma_hca_wq_forget(RdmaHca *hca, RdmaHcaWq *wq);

/* fault.c: faults of commands */

/*
 * Call before a command is executed. @again: the command has returned
 * -EINPROGRESS; @qpn: the QP of the command, or RDMA_NO_QPN. 0: execute it.
 * Otherwise a fault strikes it: return the error, which may be -EINPROGRESS.
 */
int rdma_hca_command_begin(RdmaHca *hca, RdmaCommand cmd, bool again,
                           uint32_t qpn);

/* counters.c: counters, RDMA_NUM_COUNTERS of them */

/* Have the backend read its counters from the host. May be -EINPROGRESS. */
int rdma_hca_counters_update(RdmaHca *hca);
/* Get the values of the last update. */
void rdma_hca_counters_get(RdmaHca *hca, uint64_t *values);
/* Add the counters of QP @qpn to @values. */
int rdma_hca_counters_add_qp(RdmaHca *hca, uint32_t qpn, uint64_t *values);

/* event.c: asynchronous events */

/*
 * The driver has received @event, which rdma_hca_events_next() returned: free
 * it.
 */
void rdma_hca_event_done(RdmaHca *hca, const RdmaEvent *event);
/*
 * The pending event after @event, or the oldest one if @event is NULL. NULL at
 * the end. The core owns it until rdma_hca_event_done().
 */
const RdmaEvent *rdma_hca_events_next(RdmaHca *hca, const RdmaEvent *event);
/* How many are pending */
uint32_t rdma_hca_events_count(RdmaHca *hca);

#endif
