/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the files of the HCA core. Guest interfaces do not include
 * this header.
 */
#ifndef HW_RDMA_HCA_INT_H
#define HW_RDMA_HCA_INT_H

#include "hw/rdma/hca.h"

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
struct RdmaHcaFault {
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
};

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

/* error.c: errors of QPs, for people on the host */

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

static inline bool rdma_hca_fault_is_of_command(uint8_t kind)
{
    return kind == RDMA_FAULT_KIND_COMMAND_ERROR ||
           kind == RDMA_FAULT_KIND_COMMAND_DELAY;
}

/* fault-check.c: what faults may be */

/* Is the kind of fault possible for what completes with @opcode? */
bool rdma_hca_fault_suits(uint8_t kind, uint8_t opcode);
/* The fault with that ID, or NULL */
RdmaHcaFault *rdma_hca_fault_find(RdmaHca *hca, const char *id);
/* Is it one that the device can have? */
bool rdma_hca_fault_check(RdmaHca *hca, const RdmaHcaFault *fault,
                          Error **errp);

/* fault.c: faults that the user wants */

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
/*
 * The backend puts the last send back: its fault strikes when it comes again,
 * and no other send meanwhile.
 */
void rdma_hca_fault_put_back(RdmaHca *hca, RdmaHcaQp *qp);
/* A receive that was decoded; @qp NULL: of an SRQ. It is not held back. */
void rdma_hca_fault_recv(RdmaHca *hca, RdmaHcaQp *qp, RdmaRecvWr *wr,
                         RdmaSge *sge);
/* The fault that a completion meets, or NULL */
RdmaHcaFault *rdma_hca_fault_complete(RdmaHca *hca, RdmaHcaQp *qp,
                                      const RdmaWc *wc);
/* Is the time of what waits until @until over? */
bool rdma_hca_fault_is_due(int64_t until);

/* hold.c: completions that faults change or hold back */

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

/* inspect.c: a look from the host */

/* Which of the objects of a device are wanted. */
typedef struct RdmaHcaLook {
    bool kinds[RDMA_OBJECT_KIND__MAX];
    bool detail;
    uint32_t first;
    uint32_t max;
} RdmaHcaLook;

/* The caller frees what is returned. */
RdmaInfo *rdma_hca_inspect(RdmaHca *hca, const RdmaHcaLook *look);

/* qmp.c: which devices there are */

/* Those that are realized: RdmaHca, to be freed by g_ptr_array_unref(). */
GPtrArray *rdma_hca_find_all(void);
/* The one with that ID or path; NULL and @errp if there is none. */
RdmaHca *rdma_hca_find(const char *name, Error **errp);
/* As the user may call it: by its ID, or its path if it has none. */
char *rdma_hca_name(RdmaHca *hca);

/* event.c */

void rdma_hca_events_init(RdmaHca *hca);
void rdma_hca_events_free(RdmaHca *hca);
/* Device reset: nothing is pending any more. */
void rdma_hca_events_reset(RdmaHca *hca);

/* cq.c: completions */

/* Write a completion. False if the CQ is in error, or enters it. */
bool rdma_hca_cq_complete(RdmaHca *hca, RdmaHcaCq *cq, const RdmaWc *wc,
                          bool solicited);
/* QP @qpn was reset or is gone: drop its completions that wait for room. */
void rdma_hca_cq_forget_qp(RdmaHca *hca, RdmaHcaCq *cq, uint32_t qpn);

/* Objects that leave their table; see hca.h for those that enter it. */
void rdma_hca_pd_remove(RdmaHca *hca, RdmaHcaPd *pd);
/* @mr is a region or a window. */
void rdma_hca_mr_remove(RdmaHca *hca, RdmaHcaMr *mr);
void rdma_hca_cq_remove(RdmaHca *hca, RdmaHcaCq *cq);
void rdma_hca_srq_remove(RdmaHca *hca, RdmaHcaSrq *srq);
void rdma_hca_qp_remove(RdmaHca *hca, RdmaHcaQp *qp);

/* mr.c */

/* A key for region or window @mrn: the number, and 8 random bits. */
uint32_t rdma_hca_mr_new_key(uint32_t mrn);
/*
 * The backend is done with a WQE: the list that it brought is charged to its
 * region, which may use the list now, instead of to the WQE.
 */
void rdma_hca_pages_pass(RdmaHca *hca, const RdmaHcaInflight *inflight);

/* wq.c: work queues */

/* A queue of the QP or SRQ @id, which is given its form afterwards. */
void rdma_hca_wq_init(RdmaHcaWq *wq, RdmaQueue kind, uint32_t id,
                      uint32_t max_sge, uint32_t max_inline);
/*
 * Take the next WQE, which then is the newest in flight. False if there is
 * none; a queue whose driver counts wrongly is broken then.
 */
bool rdma_hca_wq_take(RdmaHca *hca, RdmaHcaWq *wq);
/* Undo it. */
void rdma_hca_wq_put_back(RdmaHca *hca, RdmaHcaWq *wq);
/* The newest in flight */
RdmaHcaInflight *rdma_hca_wq_newest(RdmaHcaWq *wq);
/* See RdmaHcaWqOps.check() and sleep(): of queues that may be broken. */
bool rdma_hca_wq_check(RdmaHca *hca, RdmaHcaWq *wq);
RdmaNext rdma_hca_wq_sleep(RdmaHca *hca, RdmaHcaWq *wq);
/* The backend is done with @count more WQEs, oldest first. */
void rdma_hca_wq_retire(RdmaHca *hca, RdmaHcaWq *wq, uint32_t count);
/* Return all buffers as used, those of posted WQEs first. */
void rdma_hca_wq_drain(RdmaHca *hca, RdmaHcaWq *wq);
/* Likewise; the driver has destroyed the queue. */
void rdma_hca_wq_destroy(RdmaHca *hca, RdmaHcaWq *wq);

/* sq.c and rq.c: what the backend takes */

/* See RdmaConsumerOps. */
RdmaNext rdma_hca_sq_next(RdmaHca *hca, RdmaHcaQp *qp, bool flush,
                          RdmaSendWr *wr);
void rdma_hca_sq_put_back(RdmaHca *hca, RdmaHcaQp *qp, const RdmaSendWr *wr);
bool rdma_hca_rq_next(RdmaHca *hca, RdmaHcaWq *wq, bool flush, RdmaRecvWr *wr);
uint32_t rdma_hca_rq_count(RdmaHca *hca, RdmaHcaWq *wq);

/* run.c: kicks and bottom halves */

void rdma_hca_bhs_init(RdmaHca *hca);
/* Device reset: no queue is scheduled. */
void rdma_hca_bhs_reset(RdmaHca *hca);
void rdma_hca_bhs_free(RdmaHca *hca);

/* loaded.c */

/* Of RdmaBackendClientOps */
bool rdma_hca_loaded(RdmaHca *hca, const RdmaLoaded *obj);

#endif
