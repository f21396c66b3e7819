/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the files of the HCA core. Guest interfaces do not include
 * this header.
 */
#ifndef HW_RDMA_HCA_INT_H
#define HW_RDMA_HCA_INT_H

#include "hw/rdma/hca.h"
#include "qemu/log.h"

/*
 * More work that waits while the device is busy: the bottom half of work
 * queues, and stopping for rdma_hca_end(). The iothread sets none but this
 * bottom half and RDMA_HCA_PENDING_BH.
 */
#define RDMA_HCA_PENDING_WORK RDMA_PENDING_DEVICE(1)
#define RDMA_HCA_PENDING_STOP RDMA_PENDING_DEVICE(2)

/* Log a mistake of the driver. @fmt is a literal, without a newline. */
#define rdma_hca_guest_error(fmt, ...) \
    qemu_log_mask(LOG_GUEST_ERROR, "rdma: " fmt "\n", ## __VA_ARGS__)

#define RDMA_HCA_FAULT_MAX_DURATION_MS 3600000
/* RdmaHcaFault.threshold of a probability of 1 */
#define RDMA_HCA_FAULT_ALWAYS (1ull << 32)

/* Bits of RdmaHca.fault_points: where the data path checks for faults */
enum {
    RDMA_HCA_FAULT_AT_SEND = 1u << 0,
    RDMA_HCA_FAULT_AT_RECV = 1u << 1,
    RDMA_HCA_FAULT_AT_COMPLETE = 1u << 2,
    RDMA_HCA_FAULT_AT_COMMAND = 1u << 3,
};

/* A fault that the user has added */
struct RdmaHcaFault {
    RdmaFault *spec;                /* with its defaults */
    uint8_t dgid[RDMA_GID_LEN];     /* if @spec has one */
    uint64_t threshold;             /* strike if a random number is below */
    uint64_t random;                /* state of the random numbers */
    uint32_t ms;                    /* delay or duration; 0: none */
    uint64_t matches;               /* how often the filters matched */
    uint64_t hits;                  /* how often the fault struck */
    QTAILQ_ENTRY(RdmaHcaFault) next;
};

/*
 * A completion that waits because of its own fault, or after an older one of
 * its work queue that waits
 */
struct RdmaHcaHeld {
    RdmaWc wc;
    uint32_t cqn;
    bool solicited;
    bool reorder;                   /* until another queue has completed */
    int64_t until;                  /* latest time, in virtual time; 0: due */
    QTAILQ_ENTRY(RdmaHcaHeld) next;
    QTAILQ_ENTRY(RdmaHcaHeld) next_of_queue;
};

struct RdmaHcaFaults {
    QTAILQ_HEAD(, RdmaHcaFault) list;
    uint32_t count;
    /* Oldest first. Within a work queue @until never decreases. */
    QTAILQ_HEAD(, RdmaHcaHeld) held;
    uint32_t n_held;
    QEMUTimer *timer;               /* schedules the bottom half */
    Error *blocker;                 /* of migration, or NULL */
    /* End of the fault, in virtual time; 0: no fault, INT64_MAX: no end */
    int64_t port_until;
    int64_t command_until;
};

/* table.c: objects by number */

/* Make an empty table for the numbers @first to @end - 1. */
void rdma_hca_table_init(RdmaHcaTable *t, uint32_t first, uint32_t end);
void rdma_hca_table_free(RdmaHcaTable *t);
/*
 * Start the search of an empty table at a random number, so that peers cannot
 * guess numbers.
 */
void rdma_hca_table_scatter(RdmaHcaTable *t);
/* Put @obj at the free number @id. The table does not own @obj. */
void rdma_hca_table_set(RdmaHcaTable *t, uint32_t id, void *obj);
void rdma_hca_table_clear(RdmaHcaTable *t, uint32_t id);
/*
 * Have the next rdma_hca_table_find() return the free number @id. Call after
 * _create() has failed: the command may be executed again.
 */
void rdma_hca_table_search_from(RdmaHcaTable *t, uint32_t id);

/* The region @mrn; NULL if it does not exist, or is a window. */
static inline RdmaHcaMr *rdma_hca_mr_get(RdmaHca *hca, uint32_t mrn)
{
    RdmaHcaMr *mr = rdma_hca_table_get(&hca->mrs, mrn);

    return mr && !mr->mw_type ? mr : NULL;
}

/* error.c: errors of QPs, for people on the host */

/* Note a failed completion, unless @wc was only flushed. */
void rdma_hca_error_note_completion(RdmaHca *hca, const RdmaWc *wc);
/* Note the event, if it is an error of a QP. */
void rdma_hca_error_note_event(RdmaHca *hca, RdmaEventType type, uint32_t id);
/* Convert @error for QMP. The caller frees the result. */
RdmaQueuePairError *rdma_hca_error_info(const RdmaHcaQpError *error);
/* Convert @opcode, a RdmaWcOpcode, for QMP. */
RdmaCompletionOpcode rdma_hca_error_opcode(uint8_t opcode);
/* Send the QMP event RDMA_QP_ERROR for the last error, once. */
void rdma_hca_error_report(RdmaHca *hca);

/* fault.c: faults that the user has added */

/*
 * What the faults of commands have in common, and those of work requests and
 * completions: QAPI puts the members of a base first.
 */
static inline RdmaFaultCommand *rdma_hca_fault_command(const RdmaHcaFault *f)
{
    return qapi_RdmaFaultCommandError_base(&f->spec->u.command_error);
}

static inline RdmaFaultWork *rdma_hca_fault_work(const RdmaHcaFault *f)
{
    return &f->spec->u.qp_fatal;
}

/* Can a fault of @kind strike a WR or completion of this opcode? */
bool rdma_hca_fault_can_strike(RdmaFaultKind kind, RdmaCompletionOpcode opcode);
/* The fault with this ID, or NULL */
RdmaHcaFault *rdma_hca_fault_find(RdmaHca *hca, const char *id);
/*
 * Add @fault, which was checked. This blocks migration, because faults do not
 * migrate. False if the VM is migrating, or was started with --only-migratable.
 */
bool rdma_hca_fault_add(RdmaHca *hca, RdmaHcaFault *fault, Error **errp);
/* Free a fault that was not added. */
void rdma_hca_fault_free(RdmaHcaFault *fault);
/* Remove and free @fault. Work that it holds back continues. */
void rdma_hca_fault_remove(RdmaHca *hca, RdmaHcaFault *fault);
/* Can @fault strike again, or does its effect last? */
bool rdma_hca_fault_is_active(RdmaHca *hca, const RdmaHcaFault *fault);
void rdma_hca_faults_free(RdmaHca *hca);
/* Compute hca->fault_points, the timer and the blocker of migration again. */
void rdma_hca_faults_update(RdmaHca *hca);
/* End the faults of the port and of QPs whose time is over. */
void rdma_hca_faults_expire(RdmaHca *hca);
/* The QP enters RESET, or its sends are flushed: undo all effects of faults. */
void rdma_hca_fault_forget_qp(RdmaHcaQp *qp);
/*
 * Apply a fault to a decoded send. False if the fault holds the send back:
 * qp->fault then has the reason, and the QP is scheduled. Not for a QP in ERR.
 */
bool rdma_hca_fault_send(RdmaHca *hca, RdmaHcaQp *qp, RdmaSendWr *wr);
/*
 * The backend puts the last send back. The same fault strikes that send when it
 * is taken again, and no other send earlier.
 */
void rdma_hca_fault_put_back(RdmaHca *hca, RdmaHcaQp *qp);
/*
 * Apply a fault to a decoded receive. @qp is NULL for an SRQ. A receive is
 * never held back.
 */
void rdma_hca_fault_recv(RdmaHca *hca, RdmaHcaQp *qp, RdmaRecvWr *wr);
/* The fault that strikes a completion, or NULL */
RdmaHcaFault *rdma_hca_fault_complete(RdmaHca *hca, RdmaHcaQp *qp,
                                      const RdmaWc *wc);
/* The command in progress has ended, so it is not delayed any more. */
void rdma_hca_fault_command_end(RdmaHca *hca);
/* Has the virtual clock reached @until? */
bool rdma_hca_fault_is_due(int64_t until);

/* hold.c: completions that faults change or hold back */

/* As rdma_hca_cq_complete(), but apply a fault if one strikes. */
bool rdma_hca_hold_complete(RdmaHca *hca, RdmaHcaCq *cq,
                            const RdmaWc *wc, bool solicited);
/*
 * Write completions that are due. If a CQ fails, return it: the caller fails
 * its QPs, and calls this again. NULL: done.
 */
RdmaHcaCq *rdma_hca_hold_run(RdmaHca *hca);
/*
 * Write all held receives of a QP. False if the CQ overruns and enters its
 * error state; this drops the rest.
 */
bool rdma_hca_hold_write_recvs(RdmaHca *hca, RdmaHcaQp *qp);
/* Drop held completions of a QP that was reset or is gone. */
void rdma_hca_hold_forget_qp(RdmaHca *hca, RdmaHcaQp *qp);

/* hca.c: the adapter as a whole */

typedef QTAILQ_HEAD(RdmaHcas, RdmaHca) RdmaHcas;
/* All realized HCAs. Under the BQL. */
extern RdmaHcas rdma_hcas;

/* inspect.c: inspection from the host */

/* Which objects of a device to report: up to @max of each kind, from @first */
typedef struct RdmaHcaQuery {
    bool kinds[RDMA_OBJECT_KIND__MAX];
    bool detail;
    uint32_t first;
    uint32_t max;
} RdmaHcaQuery;

/* The caller frees the result. */
RdmaInfo *rdma_hca_inspect(RdmaHca *hca, const RdmaHcaQuery *query);

/* qmp.c: the list of devices */

/*
 * The HCA of the device with the ID or path @device, or, if that is NULL, all
 * realized HCAs. NULL: there is no such device. The array holds references to
 * their owners until g_ptr_array_unref().
 */
GPtrArray *rdma_hca_find_all(const char *device, Error **errp);
/* The HCA of the device with this ID or path, or NULL */
RdmaHca *rdma_hca_find(const char *device, Error **errp);
/* The ID of the device, or its path if it has no ID. The caller frees it. */
char *rdma_hca_name(RdmaHca *hca);

/* event.c */

void rdma_hca_events_init(RdmaHca *hca);
void rdma_hca_events_free(RdmaHca *hca);
/* Device reset: drop all pending events. */
void rdma_hca_events_reset(RdmaHca *hca);
/*
 * Make an event pending, if the driver takes events and the object exists. The
 * guest interface writes it when there is room.
 */
void rdma_hca_event_raise(RdmaHca *hca, RdmaEventType type, uint32_t id);
/* Object @id of table @t is gone: drop its pending events. */
void rdma_hca_events_forget(RdmaHca *hca, const RdmaHcaTable *t, uint32_t id);
/* Add a copy of @event. False if it is pending, or there is no such object. */
bool rdma_hca_event_load(RdmaHca *hca, const RdmaEvent *event);
/* Raise an event if the port's state differs from that at the last call. */
void rdma_hca_port_check(RdmaHca *hca);

/* counters.c and gids.c */

/* Continue to count from @values; NULL: from 0. */
void rdma_hca_counters_set(RdmaHca *hca, const uint64_t *values);
/* Is the GID one of hca->allowed_gids? */
bool rdma_hca_gid_allowed(const RdmaHca *hca, const uint8_t gid[RDMA_GID_LEN]);

/* cq.c: completions */

/* Write a completion. False if the CQ is in error, or enters it. */
bool rdma_hca_cq_complete(RdmaHca *hca, RdmaHcaCq *cq, const RdmaWc *wc,
                          bool solicited);

/* Enter the region or window @mr, which has its number and that of its PD. */
void rdma_hca_mr_add(RdmaHca *hca, RdmaHcaMr *mr);
/* The same for an object of the guest interface, which has its attributes */
void rdma_hca_srq_add(RdmaHca *hca, RdmaHcaSrq *srq);
void rdma_hca_qp_add(RdmaHca *hca, RdmaHcaQp *qp);
/* Remove an object from its table, and free it. */
void rdma_hca_pd_remove(RdmaHca *hca, RdmaHcaPd *pd);
/* @mr is a region or a window. */
void rdma_hca_mr_remove(RdmaHca *hca, RdmaHcaMr *mr);
void rdma_hca_cq_remove(RdmaHca *hca, RdmaHcaCq *cq);
void rdma_hca_srq_remove(RdmaHca *hca, RdmaHcaSrq *srq);
void rdma_hca_qp_remove(RdmaHca *hca, RdmaHcaQp *qp);

/* pages.c */

/*
 * Can a region have the list? 0 or -EINVAL. Replaces @page_shift 0 by the
 * default.
 */
int rdma_hca_pages_check(RdmaHca *hca, RdmaHcaPages *p);
/* The command in progress has ended or was dropped: forget its list. */
void rdma_hca_pages_drop(RdmaHca *hca);
/*
 * Read a checked list into *@pages, and charge its pages: to undo this,
 * subtract them from hca->charged_pages. The caller owns the array, and frees
 * it by g_free(). -ENOMEM if the sum would exceed hca->max_mr_pages, -EINVAL if
 * the list is not in RAM or an address is not aligned.
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
/*
 * Finish passing the list @pages of @p to a method of the backend, which has
 * returned @ret. After an error, free the list. After -EINPROGRESS, the backend
 * has the list: charge it again until the command ends. In both cases the
 * caller has subtracted the charge before.
 */
void rdma_hca_pages_finish(RdmaHca *hca, int ret, uint64_t *pages,
                           const RdmaHcaPages *p);

/* mr.c */

/* A key for region or window @mrn: the number, and 8 random bits */
uint32_t rdma_hca_mr_new_key(uint32_t mrn);
/*
 * The backend is done with a WQE: move the charge of its REG_MR list from the
 * WQE to the region, which may use the list.
 */
void rdma_hca_pages_charge_mr(RdmaHca *hca, const RdmaHcaInflight *inflight);

/* wq.c: work queues */

/* The command creates or destroys a QP or SRQ, see RDMA_WORK_COMMAND. */
static inline void rdma_hca_pay_for_queues(RdmaHca *hca)
{
    rdma_work_pay(&hca->cmd_budget, 8 * RDMA_WORK_COMMAND);
}

/* Initialize a queue of the QP or SRQ @id. The caller sets wq->ops later. */
void rdma_hca_wq_init(RdmaHcaWq *wq, RdmaQueue kind, uint32_t id,
                      uint32_t max_sge, uint32_t max_inline);
/*
 * Take the next WQE, which becomes the newest in flight. False if there is no
 * WQE, or the queue is full or broken. Wrong counters of the driver break it.
 */
bool rdma_hca_wq_take(RdmaHca *hca, RdmaHcaWq *wq);
/* Undo the last rdma_hca_wq_take() of this queue. */
void rdma_hca_wq_put_back(RdmaHca *hca, RdmaHcaWq *wq);
/* Add a copy of @inflight as the newest WQE. */
void rdma_hca_wq_push(RdmaHcaWq *wq, const RdmaHcaInflight *inflight);
/* The newest WQE in flight */
RdmaHcaInflight *rdma_hca_wq_newest(RdmaHcaWq *wq);
/* RdmaHcaWqOps.check() and sleep(), also for a queue that may be broken */
bool rdma_hca_wq_check(RdmaHca *hca, RdmaHcaWq *wq);
RdmaNext rdma_hca_wq_sleep(RdmaHca *hca, RdmaHcaWq *wq);
/* The backend is done with @count more WQEs, oldest first. */
void rdma_hca_wq_retire(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count);
/* Retire all WQEs in flight, and drop those that were not taken. */
void rdma_hca_wq_drain(RdmaHca *hca, RdmaHcaWq *wq);
/* The driver has destroyed the queue: drain it, and call ops->destroyed(). */
void rdma_hca_wq_destroy(RdmaHca *hca, RdmaHcaWq *wq);

/* sq.c and rq.c: WQEs for the backend */

/* For the operations of RdmaConsumerOps with these names */
RdmaNext rdma_hca_sq_next(RdmaHca *hca, RdmaHcaQp *qp, bool flush,
                          RdmaSendWr *wr);
void rdma_hca_sq_put_back(RdmaHca *hca, RdmaHcaQp *qp, const RdmaSendWr *wr);
bool rdma_hca_rq_next(RdmaHca *hca, RdmaHcaWq *wq, bool flush, RdmaRecvWr *wr);
uint32_t rdma_hca_rq_count(RdmaHca *hca, RdmaHcaWq *wq);

/* port.c */

/* Tell the guest interface, and raise an event if the state is another one. */
void rdma_hca_port_changed(RdmaHca *hca);

/* run.c: kicks and bottom halves */

void rdma_hca_bhs_init(RdmaHca *hca);
/* Device reset: cancel scheduled queues. */
void rdma_hca_bhs_reset(RdmaHca *hca);
void rdma_hca_bhs_free(RdmaHca *hca);

/*
 * loaded.c: comparison of the backend's objects in a migration stream with the
 * device's
 */

/* For RdmaBackendClientOps.loaded() */
bool rdma_hca_loaded(RdmaHca *hca, const RdmaLoaded *obj);
/* Has the backend loaded all objects of the device? If not, report an error. */
bool rdma_hca_load_end(RdmaHca *hca);

/* vmstate-object.c: the tables of objects, as a part of the migration stream */
extern const VMStateDescription vmstate_rdma_hca_objects;

#endif
