/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations for all files of the host ibverbs backend.
 *
 * Context: everything runs under the BQL, except functions marked "worker". The
 * thread of job.c calls these without the BQL, in the order of the jobs. Only a
 * later job may free an object that a job uses.
 */
#ifndef BACKENDS_RDMA_VERBS_INT_H
#define BACKENDS_RDMA_VERBS_INT_H

#include <infiniband/verbs.h>
#include <net/if.h>
#include "qapi/qapi-types-qom.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "qemu/thread.h"
#include "qom/object.h"
#include "system/rdma-backend.h"

#define TYPE_RDMA_BACKEND_VERBS "rdma-verbs"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaVerbs, RDMA_BACKEND_VERBS)

typedef struct VerbsAh VerbsAh;
typedef struct VerbsGsi VerbsGsi;
typedef struct VerbsMem VerbsMem;
typedef struct VerbsUmad VerbsUmad;
typedef struct VerbsJob VerbsJob;
typedef struct VerbsKind VerbsKind;
typedef struct VerbsWorker VerbsWorker;

/* The host's device, open while a device model is attached */
typedef struct VerbsDev {
    struct ibv_context *ctx;
    struct ibv_device_attr attr;
    RdmaPortAttr port;
    uint32_t max_inline;            /* bytes */
    bool gone;                      /* after DEVICE_FATAL; atomic */
} VerbsDev;

/* The first member of each object that the device numbers */
typedef struct VerbsObj {
    uint32_t num;
    bool destroying;                /* a job destroys or replaces it */
} VerbsObj;

typedef struct VerbsPd {
    VerbsObj obj;
    struct ibv_pd *pd;
} VerbsPd;

typedef struct VerbsCq {
    VerbsObj obj;
    uint32_t cqe;
    struct ibv_cq *cq;
    bool armed;                     /* the next completion has an event */
    bool failed;                    /* its QPs were moved to ERR, too */
    QTAILQ_ENTRY(VerbsCq) next;     /* in RdmaVerbs.ready_cqs, or unused */
} VerbsCq;

/* A region or a window: both have numbers of one table */
typedef struct VerbsMr {
    VerbsObj obj;
    uint32_t pdn;
    struct ibv_pd *pd;
    uint32_t access;
    uint64_t iova;
    uint64_t length;
    uint8_t page_shift;
    uint64_t pinned;                /* bytes; for the worker only */
    uint32_t dma_key;               /* lkey of GET_DMA_MR, else 0 */
    uint64_t *pages;                /* until a job has found @mem */
    uint32_t npages;
    VerbsMem *mem;                  /* of a region of RDMA_MR_USER */
    struct ibv_mr *mr;
    struct ibv_mw *mw;
    RdmaMwType mw_type;
    uint32_t bound_lkey;            /* of the region in the last bind posted */
    struct VerbsMr *replacement;    /* made by the MODIFY in progress */
} VerbsMr;

/* A posted work request */
typedef struct VerbsWqe {
    uint64_t wr_id;
    /*
     * RdmaWcStatus of a local request, or of a bad one that was posted without
     * valid memory: for that the host reports SUCCESS or LOC_PROT_ERR.
     */
    uint8_t status;
    uint8_t opcode;                 /* RdmaWcOpcode */
    bool local;                     /* not posted to the host */
    bool unsignaled;                /* no completion if it succeeds */
    bool posted;                    /* SRQ only: the slot is in use */
    VerbsAh *ah;                    /* in use until it completes, or NULL */
} VerbsWqe;

/*
 * A queue of work requests. The wr_id that the host gets has the @id of the QP
 * or SRQ in the upper half. The lower half has the sequence number, or the slot
 * of an SRQ, shifted left by 1; bit 0 is set for receives, and bit 31 for a
 * marker (VerbsQp.mark).
 */
typedef struct VerbsWq {
    VerbsWqe *wqe;                  /* a ring, or the slots of an SRQ */
    uint32_t size;                  /* of @wqe: a power of 2 */
    uint32_t max;                   /* work requests in use, at most */
    uint32_t count;
    uint32_t head;                  /* sequence number of the oldest one */
    uint32_t newest_posted;         /* of the newest one that is not local */
    /* A kick sets it, and finding the guest's queue empty clears it. */
    bool may_have_work;
} VerbsWq;

typedef struct VerbsSrq {
    VerbsObj obj;
    uint32_t id;                    /* see VerbsWq */
    struct ibv_pd *pd;
    uint32_t max_sge;
    struct ibv_srq *srq;
    VerbsWq rq;
    uint32_t *free;                 /* stack of slots: rq.max - rq.count */
    /*
     * The limit of CREATE_SRQ; 0 after its event, or after the driver has set
     * another one. The host does not get this limit, because it may raise the
     * event before the driver has posted WQEs.
     */
    uint32_t limit;
    bool failed;                    /* the host takes no more */
} VerbsSrq;

typedef struct VerbsQp {
    VerbsObj obj;
    VerbsGsi *gsi;                  /* of QP 1, which the host does not have */
    uint32_t id;                    /* see VerbsWq; new after each RESET */
    RdmaQpInitAttr init;
    /*
     * Protects the next three: a thread with the BQL may stop a QP that the
     * worker modifies or destroys.
     */
    QemuMutex lock;
    struct ibv_qp *qp;              /* NULL: destroyed, or QP 1 */
    uint8_t host_state;             /* enum ibv_qp_state */
    unsigned stops;                 /* how often it was stopped */
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_srq *srq;            /* or NULL */
    GArray *groups;                 /* worker; of union ibv_gid */
    VerbsWq sq;
    VerbsWq rq;                     /* not used with an SRQ */
    uint8_t state;                  /* RdmaQpState, as far as it is known */
    bool failed;                    /* a job moves it to ERR; until RESET */
    bool failing;                   /* that job is not done */
    unsigned stopping;              /* MODIFYs to ERR or RESET in progress */
    bool sqe;                       /* SQE for the guest, RTS on the host */
    /*
     * @mark is the sequence number of the newest posted send, at the time when
     * a local WQE followed. The send is unsignaled, so the host will not report
     * its end, and the local WQE waits for that. In ERR, the host flushes a
     * marker that is posted after the send.
     */
    bool mark_wanted;
    uint32_t mark;
    /* The attributes that MODIFY has set, with the guest's indices */
    RdmaQpAttr set_attr;
    uint32_t set_mask;              /* those that were set since RESET */
} VerbsQp;

/* Identifies a GID. */
typedef struct VerbsGidKey {
    uint8_t gid[RDMA_GID_LEN];
    uint32_t index;                 /* in the guest's table */
    uint32_t vlan;
} VerbsGidKey;

#define VERBS_NO_GID (-1)

typedef struct VerbsGid {
    bool used;
    VerbsGidKey key;
    int host_index;                 /* VERBS_NO_GID: the host has lost it */
    char netdev[IF_NAMESIZE];       /* of the host */
    uint32_t added_to;              /* ifindex, if its address was added */
} VerbsGid;

/* Bits of RdmaBackend.pending: poll CQs; read events; read MADs */
#define VERBS_PENDING_CQS RDMA_PENDING_BACKEND(0)
#define VERBS_PENDING_EVENTS RDMA_PENDING_BACKEND(1)
#define VERBS_PENDING_MADS RDMA_PENDING_BACKEND(2)

struct RdmaVerbs {
    RdmaBackend parent_obj;

    /* properties */
    char *ibdev;
    uint8_t port_num;
    RdmaGidMode gid_mode;
    uint64_t max_memory;            /* bytes; 0: no limit */
    bool cm;                        /* may the guest have QP 1? */

    /* while a device is attached */
    VerbsDev dev;
    uint32_t n_wr;                  /* capacity of all queue pairs */
    VerbsWorker *worker;
    VerbsJob *cmd;                  /* the command in progress, or NULL */
    uint64_t pinned;                /* bytes of all regions; worker only */
    bool running;                   /* RDMA_RUN_RUNNING */

    /* by the device's numbers */
    GHashTable *pds;
    GHashTable *cqs;
    GHashTable *mrs;
    GHashTable *srqs;
    GHashTable *qps;
    GHashTable *pulls;              /* set of QPs and SRQs to pull from, ... */
    GQueue pull_order;              /* ... and their order */
    char *gsi_refusal;              /* the last reason to refuse it, or NULL */
    VerbsGid *gids;                 /* gid_table_len of them */
    bool gids_lookup_runs;          /* a job looks all of them up */
    bool gids_lookup_again;         /* the host's table changed since */
    unsigned gids_lookups;          /* how many such jobs are done */
    bool gid_refused;               /* since the last GID_CHANGE event */
    bool gid_warned;
    Notifier gids_exit;
    /* by the host's numbers */
    GHashTable *qps_by_wire;
    GHashTable *qps_by_id;
    GHashTable *srqs_by_id;
    GHashTable *mws_by_key;         /* rkey >> 8 */
    GHashTable *mrs_by_key;         /* lkey */
    GHashTable *ahs;                /* cache of address handles */
    GArray *ah_waiters;             /* ids of QPs that wait for room there */
    uint64_t counters[RDMA_NUM_COUNTERS];       /* since the last reset */
    uint64_t counters_base[RDMA_NUM_COUNTERS];  /* the host's then */
    GHashTable *groups;             /* worker; number of QPs by group's GID */
    uint32_t next_id;               /* of QPs and SRQs, see VerbsWq */

    struct ibv_comp_channel *channel;
    QEMUBH *cq_bh;
    QTAILQ_HEAD(, VerbsCq) ready_cqs;
};

static inline void *verbs_get(GHashTable *t, uint32_t id)
{
    return g_hash_table_lookup(t, GUINT_TO_POINTER(id));
}

static inline void verbs_put(GHashTable *t, uint32_t id, void *obj)
{
    g_hash_table_insert(t, GUINT_TO_POINTER(id), obj);
}

/* The VerbsObj with this number, or NULL if a job is about to destroy it */
static inline void *verbs_get_live(GHashTable *t, uint32_t num)
{
    VerbsObj *obj = verbs_get(t, num);

    return obj && !obj->destroying ? obj : NULL;
}

/* Raise an asynchronous event for the driver. */
static inline void verbs_raise_event(RdmaVerbs *v, RdmaEventType type,
                                     uint32_t id)
{
    const RdmaBackend *rb = &v->parent_obj;
    const RdmaEvent event = { type, id };

    rb->client_ops->consumer.event(rb->client_opaque, &event);
}

/* Remove @obj, unless another object has the number now. */
static inline void verbs_remove(GHashTable *t, uint32_t id, const void *obj)
{
    if (verbs_get(t, id) == obj) {
        g_hash_table_remove(t, GUINT_TO_POINTER(id));
    }
}

/* job.c: work without the BQL */

typedef struct VerbsJobOps {
    /* Worker: returns 0 or a negative errno, which becomes job->ret. */
    int (*work)(VerbsJob *job);
    /* Worker: destroy what work() has created for a cancelled job. Optional. */
    void (*undo)(VerbsJob *job);
    /* The job is done, also if no command asks for its result. Optional. */
    void (*done)(VerbsJob *job);
    /*
     * Work succeeded: give the result to the command that began the job.
     * @out is from verbs_job_lookup(). Optional.
     */
    void (*take)(VerbsJob *job, void *out);
    /* Free what take() has left, but not the job. Optional. */
    void (*free)(VerbsJob *job);
    size_t size;                    /* of the job; 0: that of VerbsJob */
} VerbsJobOps;

/* The start of each job */
struct VerbsJob {
    const VerbsJobOps *ops;
    RdmaVerbs *v;
    void *obj;                      /* what it works on */
    const VerbsKind *kind;          /* for obj.c: of @obj */
    uint32_t arg;                   /* of a command, or its result */
    int ret;
    /* for job.c */
    bool finished;
    bool cancelled;                 /* work() may read it and stop */
    bool done_called;
    QSIMPLEQ_ENTRY(VerbsJob) next;
};

void verbs_worker_start(RdmaVerbs *v);
/* Wait for all jobs, and call done() of each. */
void verbs_worker_stop(RdmaVerbs *v);
/* Wait until all jobs are done. This may take long. */
void verbs_worker_drain(RdmaVerbs *v);
/* A job to start, of ops->size bytes; those after the VerbsJob are zero. */
void *verbs_job_new(RdmaVerbs *v, const VerbsJobOps *ops, void *obj);
/* Do the job after all that were started before. */
void verbs_job_start(VerbsJob *job);
/*
 * Look up the job of a command; the device repeats a command until it is done.
 * @kind is NULL unless obj.c calls. True if the command is in progress or done:
 * *@ret is -EINPROGRESS or what work() returned, and take() gets @out on
 * success. False if the caller must begin the command.
 */
bool verbs_job_lookup(RdmaVerbs *v, const VerbsJobOps *ops,
                      const VerbsKind *kind, void *out, int *ret);
/*
 * The job of a command for @obj, or NULL: the caller returns *@ret. The command
 * is in progress or done, see verbs_job_lookup(), or @obj is NULL.
 */
void *verbs_job_command(RdmaVerbs *v, const VerbsJobOps *ops, void *obj,
                        void *out, int *ret);
/* Begin the command. Returns -EINPROGRESS. */
int verbs_job_begin(VerbsJob *job);
/*
 * Cancel a job whose done() was not called yet. The worker undoes it before any
 * job that starts after this call.
 */
void verbs_job_cancel(RdmaVerbs *v, VerbsJob *job);
/* Cancel or undo the command in progress, if there is one. */
void verbs_job_abandon(RdmaVerbs *v);

/* obj.c: objects of the host, which jobs create and destroy */

/* The objects are VerbsObj. Functions are optional if a comment says so. */
struct VerbsKind {
    size_t table;                   /* offset of GHashTable * in RdmaVerbs */
    bool has_events;                /* the host names it in events */
    /* Is it of this kind, if several kinds share the table? Optional. */
    bool (*is_kind)(const void *obj);
    /* Worker: create or destroy the host's object. 0 or a negative errno. */
    int (*create)(RdmaVerbs *v, void *obj);
    int (*destroy)(RdmaVerbs *v, void *obj);
    /* Fill in @attr for the command that created the object. Optional. */
    void (*created)(RdmaVerbs *v, void *obj, void *attr);
    /* A job will destroy the object: no command may use it. Optional. */
    void (*destroy_begins)(RdmaVerbs *v, void *obj);
    /* The host refused: commands may use the object again. Optional. */
    void (*destroy_failed)(RdmaVerbs *v, void *obj);
    /* Free the object. The host's object does not exist any more, or yet. */
    void (*free)(RdmaVerbs *v, void *obj);
};

/* verbs_job_lookup() for a command that creates an object with @attr */
bool verbs_obj_lookup(RdmaVerbs *v, const VerbsKind *kind, void *attr,
                      int *ret);
/* Begin that command for object @num. Takes @obj. */
int verbs_obj_create(RdmaVerbs *v, const VerbsKind *kind, void *obj,
                     uint32_t num);
/* See RdmaBackendClass.destroy() */
int verbs_obj_destroy(RdmaVerbs *v, const VerbsKind *kind, uint32_t num);
/* Forget all objects of a kind; jobs destroy them. */
void verbs_objs_reset(RdmaVerbs *v, const VerbsKind *kind);
/* The return value of VerbsKind.create(). @made: NULL if the host failed */
static inline int verbs_create_result(const void *made)
{
    return made ? 0 : -(errno ?: EIO);
}

extern const VerbsKind verbs_pd_kind;
extern const VerbsKind verbs_cq_kind;
extern const VerbsKind verbs_srq_kind;
extern const VerbsKind verbs_qp_kind;
extern const VerbsKind verbs_mr_kind;
extern const VerbsKind verbs_mw_kind;

/* dev.c: the device and its port */

bool verbs_dev_open(RdmaVerbs *v, Error **errp);
void verbs_dev_close(RdmaVerbs *v);
/*
 * Result of destroying an object of the host, which returned @err: 0 or a
 * negative errno. A device that is gone has no objects, so that is a success.
 */
int verbs_dev_destroyed(RdmaVerbs *v, int err);
/* Read the port's attributes. False: they have not changed. */
bool verbs_dev_update_port(RdmaVerbs *v);
/* Lower @limits to what the device can do. */
void verbs_dev_limit(RdmaVerbs *v, RdmaBackendLimits *limits);

/* netlink.c: net devices of the host; worker, except the check */

/*
 * Add the address in @gid to a net device. Returns 0, -EEXIST (without @errp)
 * if the net device has it, or another negative errno.
 */
int verbs_netlink_add(uint32_t ifindex, const uint8_t gid[RDMA_GID_LEN],
                      Error **errp);
/* Remove the address. 0, -EADDRNOTAVAIL if there is none, or another errno. */
int verbs_netlink_del(uint32_t ifindex, const uint8_t gid[RDMA_GID_LEN]);
/* May this process change addresses? */
bool verbs_netlink_check(Error **errp);
/* The VLANs of the host, for the functions below; NULL: none. Free it. */
char *verbs_vlans_read(void);
/* The VLAN of a net device, or RDMA_NO_VLAN. */
uint16_t verbs_vlan_of(const char *vlans, const char *netdev);
/* The net device of a VLAN on top of @netdev, or 0. */
uint32_t verbs_vlan_ifindex(const char *vlans, const char *netdev,
                            uint16_t vlan);

/* gid.c: which of the host's GIDs are the guest's */

void verbs_gids_init(RdmaVerbs *v);
void verbs_gids_free(RdmaVerbs *v);
void verbs_gids_reset(RdmaVerbs *v);
/* The host's table has changed: look up all GIDs again. */
void verbs_gids_changed(RdmaVerbs *v);
int verbs_gid_add(RdmaBackend *rb, uint32_t index,
                  const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);
int verbs_gid_del(RdmaVerbs *v, uint32_t index);

/* path.c: paths for the host */

/* The host's index of the guest's GID @index, or -ENOENT. */
int verbs_gid_host_index(RdmaVerbs *v, uint32_t index);
/* Translate the path @av for the host. 0 or -EINVAL. */
int verbs_gid_path(RdmaVerbs *v, const RdmaAv *av, struct ibv_ah_attr *ah);

/* The guest's GID with the host's index @host_index, and its VLAN, if any */
bool verbs_gid_of_host(RdmaVerbs *v, uint32_t host_index,
                       uint8_t gid[RDMA_GID_LEN], uint16_t *vlan);
/* Do both the guest and the host's port have @gid? */
bool verbs_gid_is_guests(RdmaVerbs *v, const uint8_t gid[RDMA_GID_LEN]);

/* mem.c: pages of the guest in this process */

/*
 * Worker: find the memory of @npages pages, and keep references to it. @write:
 * it must be writable. 0 or a negative errno.
 */
int verbs_mem_find(const uint64_t *pages, uint32_t npages, uint8_t page_shift,
                   bool write, VerbsMem **mem);
/*
 * Worker: map it as one range of addresses until verbs_mem_unmap(). NULL and
 * *@ret on failure.
 */
void *verbs_mem_map(VerbsMem *mem, int *ret);
void verbs_mem_unmap(VerbsMem *mem, void *addr);
/* Is some of it read-only? Only if it was found without @write. */
bool verbs_mem_is_read_only(const VerbsMem *mem);
void verbs_mem_free(VerbsMem *mem);
/* Bytes that this process may register; UINT64_MAX: no limit */
uint64_t verbs_mem_lock_limit(void);

/* ah.c: address handles of datagrams */

void verbs_ahs_init(RdmaVerbs *v);
void verbs_ahs_free(RdmaVerbs *v);
/*
 * Get the handle for a datagram of @qp. -EAGAIN while the worker creates it, or
 * if there is no room for it: the caller puts the send back, and
 * verbs_pull_soon() pulls it again. -EHOSTUNREACH: no host has that address.
 * Other errors: the host does not create the handle.
 */
int verbs_ah_get(RdmaVerbs *v, VerbsQp *qp, const RdmaAv *av, VerbsAh **ah);
VerbsAh *verbs_ah_hold(VerbsAh *ah);
void verbs_ah_put(VerbsAh *ah);
struct ibv_ah *verbs_ah_host(VerbsAh *ah);
/*
 * Drop the handles of @pd, or all if it is NULL. WQEs keep those they use. Jobs
 * destroy them after the jobs started before.
 */
void verbs_ahs_drop(RdmaVerbs *v, struct ibv_pd *pd);

/* wq.c: posted work requests and their completion */

bool verbs_wq_init(VerbsWq *wq, uint32_t max);
void verbs_wq_free(VerbsWq *wq);
/* Drop all work requests without completions. */
void verbs_wq_clear(VerbsWq *wq);
/* The next work request, for the caller to fill in and push. */
VerbsWqe *verbs_wq_next(VerbsWq *wq);
void verbs_wq_push(VerbsWq *wq);
/* Push it without posting it to the host. It completes in its turn. */
void verbs_wq_push_local(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue,
                         RdmaWcStatus status);
/* The last one pushed. Not for an empty queue. */
VerbsWqe *verbs_wq_newest(VerbsWq *wq);
/* The newest WQE that the host has, if it will not report the end; or NULL */
VerbsWqe *verbs_wq_unreported(VerbsWq *wq);
/* Empty the send queue, as after a RESET. */
void verbs_wq_clear_sq(VerbsQp *qp);
/* The wr_id of the next one for the host */
uint64_t verbs_wq_next_wr_id(const VerbsQp *qp, RdmaQueue queue);
uint64_t verbs_srq_wr_id(const VerbsSrq *srq, uint32_t slot);
void verbs_qp_new_id(RdmaVerbs *v, VerbsQp *qp);
/*
 * Post a signaled send without data. @poison: it names memory that is not
 * valid, so that it fails. @ah: for UD. False: the host refuses it.
 */
bool verbs_post_empty(VerbsQp *qp, uint64_t wr_id, VerbsAh *ah, bool poison);
/* Complete local work requests that are the oldest of their queues. */
void verbs_wq_complete_local(RdmaVerbs *v, VerbsQp *qp);
/* Complete the oldest work request. */
void verbs_wq_complete_oldest(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue,
                              const RdmaWc *wc);
/* Handle a completion of the host. */
void verbs_wq_complete(RdmaVerbs *v, const struct ibv_wc *wc);
/* Note the state of the QP. One in ERR is not in SQE any more. */
void verbs_qp_set_state(RdmaVerbs *v, VerbsQp *qp, RdmaQpState state);
/*
 * Have a job move @qp to ERR. Until then the QP pulls no work. QP 1 is in ERR
 * at once.
 */
void verbs_qp_fail(RdmaVerbs *v, VerbsQp *qp);
/* The same with an event, unless it is or will be in ERR. */
void verbs_qp_fail_with_event(RdmaVerbs *v, VerbsQp *qp);
/* The host will not complete anything any more: flush all. */
void verbs_wq_flush(RdmaVerbs *v, VerbsQp *qp);
/* The CQ is in error, and so are its QPs. Raises events. */
void verbs_cq_fail(RdmaVerbs *v, uint32_t cqn);

/* cq.c: PDs, completion queues */

bool verbs_cqs_init(RdmaVerbs *v, Error **errp);
void verbs_cqs_free(RdmaVerbs *v);
void verbs_cqs_set_running(RdmaVerbs *v, bool running);
void verbs_cq_class_init(RdmaBackendClass *rbc);

/* mr.c: regions and windows */

/* Warn if a limit is below what the guest could register. */
void verbs_mrs_check_limits(RdmaVerbs *v, uint64_t ram_size);
/* Forget regions that a command is changing; jobs destroy them. */
void verbs_mrs_reset_changing(RdmaVerbs *v);
void verbs_mr_class_init(RdmaBackendClass *rbc);

/* srq.c */

/* As verbs_recv_room() and verbs_post_recv() */
uint32_t verbs_srq_room(const VerbsSrq *srq);
void verbs_srq_post(RdmaVerbs *v, VerbsSrq *srq, const RdmaRecvWr *wr);
void verbs_srq_class_init(RdmaBackendClass *rbc);

/* qp.c: queue pairs */

/* The host's device failed (DEVICE_FATAL): move all queue pairs to ERR. */
void verbs_qps_device_gone(RdmaVerbs *v);
/* Move all to ERR at once: they access no memory after return. */
void verbs_qps_stop(RdmaVerbs *v);
/* The same, and have jobs destroy them. */
void verbs_qps_reset(RdmaVerbs *v);
void verbs_qp_class_init(RdmaBackendClass *rbc);

/* umad.c: MADs of the connection manager */

#define VERBS_MAD_LEN 256           /* IBTA 13.4.2 */
/* Fields of the header that identify the class (IBTA 13.4.2, 16.7) */
#define RDMA_MAD_CLASS_CM 7
#define RDMA_MAD_CM_VERSION 2
#define RDMA_MAD_METHOD_SEND 3
#define RDMA_MAD_ATTR 16            /* offset of the attribute */

/* A MAD with the address that it goes to or comes from */
typedef struct VerbsMad {
    struct ibv_ah_attr ah;          /* the path: their GID, our GID index */
    uint32_t qpn;                   /* of the other side */
    uint8_t data[VERBS_MAD_LEN];
} VerbsMad;

/* Worker: become the user of MADs of a port; NULL and @errp on failure. */
VerbsUmad *verbs_umad_open(const char *ibdev, uint8_t port_num, Error **errp);
/* Worker */
void verbs_umad_close(VerbsUmad *u);
/* A descriptor that is readable when there is a MAD. */
int verbs_umad_fd(const VerbsUmad *u);
/* Worker: send a MAD, which may wait for a neighbour's address. */
int verbs_umad_send(VerbsUmad *u, const VerbsMad *mad);
/*
 * Receive the next MAD. -EAGAIN: there is none. -EBADMSG: it is not for us.
 * Other errors: no more will come.
 */
int verbs_umad_recv(VerbsUmad *u, VerbsMad *mad);

/* mad.c: MADs of the connection manager */

#define VERBS_GRH_LEN 40            /* before a received datagram in memory */

/* May the guest send @mad, which is @length bytes long? Logs why not. */
bool verbs_mad_may_send(RdmaVerbs *v, const VerbsMad *mad, uint64_t length);
/* Write the IP header of a received MAD, as far as the host reports it. */
void verbs_mad_put_grh(uint8_t grh[VERBS_GRH_LEN], const VerbsMad *mad,
                       const uint8_t dgid[RDMA_GID_LEN]);

/* gsi.c: QP 1 */

VerbsGsi *verbs_gsi_new(RdmaVerbs *v, VerbsQp *qp);
void verbs_gsi_free(VerbsGsi *g);
/* See VerbsKind */
int verbs_gsi_open(VerbsGsi *g);
void verbs_gsi_opened(VerbsGsi *g);
void verbs_gsi_destroy_begins(VerbsGsi *g);
void verbs_gsi_close(VerbsGsi *g);
/* The methods of the class for QP 1 */
int verbs_gsi_modify(VerbsGsi *g, uint32_t mask, const RdmaQpAttr *attr);
void verbs_gsi_query(const VerbsGsi *g, RdmaQpAttr *attr);
/*
 * Post a send that is in @wqe, except for its status. Anything but SUCCESS: the
 * request is bad, and the caller posts it.
 */
RdmaWcStatus verbs_gsi_post_send(VerbsGsi *g, VerbsWqe *wqe,
                                 const RdmaSendWr *wr);
/* Is there room beside jobs from before a RESET? */
bool verbs_gsi_may_send(const VerbsGsi *g);
/* MADs came during a nested event loop: read them now. */
void verbs_gsi_resume(RdmaVerbs *v);

/* counters.c: counters of the host's port */

/* Set the counters to 0. */
void verbs_counters_reset(RdmaVerbs *v);
void verbs_counters_class_init(RdmaBackendClass *rbc);

/* Attributes of a QP that are numbers: x(its bit of RDMA_QP_*, its field) */
#define VERBS_QP_NUMBERS(x)                                             \
    x(ACCESS_FLAGS, qp_access_flags) x(QKEY, qkey)                      \
    x(PATH_MTU, path_mtu) x(TIMEOUT, timeout)                           \
    x(RETRY_CNT, retry_cnt) x(RNR_RETRY, rnr_retry)                     \
    x(MIN_RNR_TIMER, min_rnr_timer) x(MAX_QP_RD_ATOMIC, max_rd_atomic)  \
    x(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic) x(SQ_PSN, sq_psn)         \
    x(DEST_QPN, dest_qp_num) x(RATE_LIMIT, rate_limit)

/* inspect.c: a view of objects for people on the host */

/* The state that the guest sees */
RdmaQpState verbs_qp_state(const VerbsQp *qp);
/* Note the attributes of @qp that the guest has set. */
void verbs_qp_note(VerbsQp *qp, uint32_t mask, const RdmaQpAttr *attr);
/* As RdmaBackendClass.inspect */
int verbs_inspect(RdmaBackend *rb, RdmaObjectType what, uint32_t id,
                  RdmaInspection *out);

/* mcast.c: multicast groups */

/* Worker: the QP is about to be destroyed. 0 or a negative errno. */
int verbs_mcast_leave_all(RdmaVerbs *v, VerbsQp *qp);
/* As RdmaBackendClass.set_mcast */
int verbs_set_mcast(RdmaBackend *rb, uint32_t qpn,
                    const uint8_t gid[RDMA_GID_LEN], bool attach);

/* kick.c: queues of the guest that may have work */

/* Set in the keys of RdmaVerbs.pulls that are numbers of SRQs, not QPNs. */
#define VERBS_SRQ_KEY (1u << 31)

/* Give the QP or SRQ another turn, after the others. */
void verbs_pull_again(RdmaVerbs *v, uint32_t key);
/* There is room again: pull in the next turn if the queue may have work. */
void verbs_pull_soon(RdmaVerbs *v, RdmaQueue queue, uint32_t id);
/* The QP has changed its state or can be used again: pull from its queues. */
void verbs_pull_qp(RdmaVerbs *v, VerbsQp *qp);
/* As RdmaBackendClass.kick */
void verbs_kick(RdmaBackend *rb, RdmaQueue queue, uint32_t id);

/* post.c: work requests for the host */

/* How many sends the host can take now; 0 in states without sends */
uint32_t verbs_send_room(const VerbsQp *qp);
/* Will the next send complete without being executed? */
bool verbs_send_flushes(const VerbsQp *qp);
/*
 * Post a send; there must be room. -EAGAIN: the send has to wait, until
 * verbs_pull_soon() pulls it again.
 */
int verbs_post_send(RdmaVerbs *v, VerbsQp *qp, const RdmaSendWr *wr);
/* The same for receives */
uint32_t verbs_recv_room(const VerbsQp *qp);
bool verbs_recv_flushes(const VerbsQp *qp);
void verbs_post_recv(RdmaVerbs *v, VerbsQp *qp, const RdmaRecvWr *wr);
/*
 * Post @wr as @wqe to @srq, or to @qp if that is NULL. If it is bad, post it
 * without valid memory, as a message that takes it must fail. False: the host
 * refuses even that.
 */
bool verbs_post_recv_host(struct ibv_qp *qp, struct ibv_srq *srq,
                          VerbsWqe *wqe, uint64_t wr_id, const RdmaRecvWr *wr);

/* pull.c: pulls work requests of the guest for the host */

/* As RdmaBackendClass.run */
void verbs_pull_run(RdmaBackend *rb);

/* event.c: asynchronous events of the host */

bool verbs_events_init(RdmaVerbs *v, Error **errp);
void verbs_events_free(RdmaVerbs *v);
/* As verbs_gsi_resume() */
void verbs_events_resume(RdmaVerbs *v);

#endif
