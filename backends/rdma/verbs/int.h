/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the host ibverbs backend share.
 *
 * Context: everything runs under the BQL, but for what is marked "worker":
 * the thread of job.c calls that without, in the order of the jobs.
 * So an object that a job uses may be freed by any later job.
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
typedef struct VerbsCounters VerbsCounters;
typedef struct VerbsGsi VerbsGsi;
typedef struct VerbsMem VerbsMem;
typedef struct VerbsUmad VerbsUmad;
typedef struct VerbsJob VerbsJob;
typedef struct VerbsWorker VerbsWorker;

/* The host's device, while a device model is attached. */
typedef struct VerbsDev {
    struct ibv_context *ctx;
    struct ibv_device_attr attr;
    RdmaPortAttr port;
    uint32_t max_inline;            /* bytes */
    bool gone;                      /* DEVICE_FATAL; the worker reads it */
} VerbsDev;

typedef struct VerbsPd {
    uint32_t pdn;
    struct ibv_pd *pd;
    bool dead;                      /* a job destroys it */
} VerbsPd;

typedef struct VerbsCq {
    uint32_t cqn;
    struct ibv_cq *cq;
    bool armed;                     /* an event will come */
    bool failed;                    /* and with it the QPs of that time */
    bool ready;                     /* is in RdmaVerbs.ready_cqs */
    bool dead;
    QTAILQ_ENTRY(VerbsCq) next;
} VerbsCq;

/* A region, or a window: they share their numbers. */
typedef struct VerbsMr {
    uint32_t mrn;
    uint32_t pdn;
    uint32_t access;
    uint64_t iova;
    uint64_t length;
    uint8_t page_shift;
    uint64_t pinned;                /* bytes; the worker's own */
    uint32_t dma_key;               /* lkey of GET_DMA_MR, else 0 */
    VerbsMem *mem;                  /* of a region of RDMA_MR_USER */
    struct ibv_mr *mr;
    struct ibv_mw *mw;
    uint32_t bound;                 /* lkey of the region of its last bind */
    bool dead;
    struct VerbsMr *next;           /* that a job puts in its place */
} VerbsMr;

/* A work request that was posted. */
typedef struct VerbsWqe {
    uint64_t wr_id;
    /*
     * RdmaWcStatus that it completes with if the host says success, or
     * flushes it
     */
    uint8_t status;
    uint8_t opcode;                 /* RdmaWcOpcode */
    bool local;                     /* the host does not know it */
    bool quiet;                     /* it has no completion if it succeeds */
    bool posted;                    /* only with an SRQ: the slot is in use */
    VerbsAh *ah;                    /* in use until it completes, or NULL */
} VerbsWqe;

/*
 * A queue of work requests. The host knows each by a wr_id of its own:
 * @id in the upper half, then its sequence number, or slot of an SRQ, and
 * bit 0 set for receives.
 */
typedef struct VerbsWq {
    VerbsWqe *wqe;                  /* a ring, or the slots of an SRQ */
    uint32_t size;                  /* of @wqe: a power of 2 */
    uint32_t max;                   /* that may be in use */
    uint32_t count;
    uint32_t head;                  /* sequence number of the oldest */
} VerbsWq;

typedef struct VerbsSrq {
    uint32_t srqn;
    uint32_t id;
    struct ibv_srq *srq;
    VerbsWq rq;
    uint32_t *free;                 /* stack of slots: rq.max - rq.count */
    /* That it was made with: the host does not know, and may tell too early */
    uint32_t limit;
    bool more;                      /* it was not found to be empty since a */
                                    /* kick */
    bool failed;                    /* the host takes no more */
    bool dead;
} VerbsSrq;

typedef struct VerbsQp {
    uint32_t id;                    /* see VerbsWq; new after each RESET */
    RdmaQpInitAttr init;
    /*
     * For MODIFY and destroy: who holds the BQL may want a QP stopped that the
     * worker has jobs for.
     */
    QemuMutex lock;
    struct ibv_qp *qp;              /* NULL: destroyed */
    uint8_t host_state;             /* that the last MODIFY brought it to */
    unsigned stops;                 /* how often it was stopped */
    struct ibv_pd *pd;
    GArray *groups;                 /* worker; of union ibv_gid */
    bool more[2];                   /* by RdmaQueue, see VerbsSrq */
    VerbsWq sq;
    VerbsWq rq;                     /* not used with an SRQ */
    uint8_t state;                  /* RdmaQpState, as far as is known */
    /* A job moves it to ERR, or was asked to; cleared by RESET */
    bool failed;
    bool failing;                   /* that job is not done */
    unsigned erring;                /* commands to do so that are not done */
    /* In SQE, as the guest sees it; the host's is in RTS */
    bool sqe;
    /*
     * The host has the WQEs of the send queue up to @mark, it is not to be
     * known whether they are done, and local ones are behind.
     */
    bool mark_wanted;
    uint32_t mark;
    bool dead;                      /* a job destroys it */
    RdmaAv av;                      /* of the last MODIFY, as the guest's */
    uint32_t qkey;
    RdmaQpAttr told;                /* what MODIFY has set: those of @known */
    uint32_t known;
} VerbsQp;

/* What a GID is known by; no padding. */
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
    bool cm;

    /* while a device is attached */
    VerbsDev dev;
    uint32_t n_wr;                  /* that the queue pairs may have */
    VerbsWorker *worker;
    VerbsJob *cmd;                  /* the command in progress, or NULL */
    uint64_t pinned;                /* bytes of all regions; the worker's own */
    bool running;

    /* by the device's numbers */
    GHashTable *pds;
    GHashTable *cqs;
    GHashTable *mrs;
    GHashTable *srqs;
    GHashTable *qps;                /* but for QP 1 */
    VerbsGsi *gsi;                  /* QP 1, or NULL */
    bool gsi_more[2];
    GHashTable *pulls;              /* QPs and SRQs whose turn comes, */
    GQueue pull_order;              /* and in which order */
    Notifier gsi_cq_failed;
    char *gsi_refused;              /* why it was, when last asked for */
    VerbsGid *gids;                 /* gid_table_len of them */
    bool gids_looking;              /* a job looks all of them up */
    bool gids_look_again;           /* and is late */
    unsigned gids_looked;           /* how often */
    bool gid_refused;               /* one, since the driver was told */
    bool gid_warned;
    Notifier gids_exit;
    /* by the host's */
    GHashTable *qps_by_wire;
    GHashTable *qps_by_id;
    GHashTable *srqs_by_id;
    GHashTable *mws_by_key;         /* rkey >> 8 */
    GHashTable *mrs_by_key;         /* lkey */
    GHashTable *ahs;
    GArray *ah_waiters;             /* ids of QPs that wait for room there */
    unsigned idle_ahs;              /* that no request uses, at most */
    VerbsCounters *counters;
    GHashTable *groups;             /* worker; how many QPs are in each */
    uint32_t next_id;

    struct ibv_comp_channel *channel;
    QEMUBH *cq_bh;
    QTAILQ_HEAD(, VerbsCq) ready_cqs;
    NotifierList cq_failed;         /* with a pointer to its number */
};

static inline void *verbs_get(GHashTable *t, uint32_t id)
{
    return g_hash_table_lookup(t, GUINT_TO_POINTER(id));
}

static inline void verbs_put(GHashTable *t, uint32_t id, void *obj)
{
    g_hash_table_insert(t, GUINT_TO_POINTER(id), obj);
}

/* Those that no job is about to destroy, or NULL */

static inline VerbsPd *verbs_get_pd(RdmaVerbs *v, uint32_t pdn)
{
    VerbsPd *pd = verbs_get(v->pds, pdn);

    return pd && !pd->dead ? pd : NULL;
}

static inline VerbsCq *verbs_get_cq(RdmaVerbs *v, uint32_t cqn)
{
    VerbsCq *cq = verbs_get(v->cqs, cqn);

    return cq && !cq->dead ? cq : NULL;
}

static inline VerbsSrq *verbs_get_srq(RdmaVerbs *v, uint32_t srqn)
{
    VerbsSrq *srq = verbs_get(v->srqs, srqn);

    return srq && !srq->dead ? srq : NULL;
}

/* Forget @obj if it is still the one that has the number. */
static inline void verbs_drop(GHashTable *t, uint32_t id, const void *obj)
{
    if (verbs_get(t, id) == obj) {
        g_hash_table_remove(t, GUINT_TO_POINTER(id));
    }
}

/* job.c: work that is done without the BQL */

typedef struct VerbsJobOps {
    /* Worker: returns 0 or a negative errno, which is job->ret then. */
    int (*work)(VerbsJob *job);
    /* Worker: nobody will take what work() has made with success. Optional. */
    void (*undo)(VerbsJob *job);
    /* The job has come to its end; also one that nobody asks for. Optional. */
    void (*done)(VerbsJob *job);
    /*
     * The command that asked for it gets what work() has made with success,
     * as @out of verbs_job_ask(). Optional.
     */
    void (*take)(VerbsJob *job, void *out);
    /* At the end, with what nobody has taken; NULL is g_free(). */
    void (*free)(VerbsJob *job);
} VerbsJobOps;

/* To be embedded at the start of a job. */
struct VerbsJob {
    const VerbsJobOps *ops;
    RdmaVerbs *v;
    int ret;
    /* the worker's own */
    void *key;
    size_t key_len;
    bool finished;
    bool unwanted;                  /* work() may read it, and give up */
    bool reported;                  /* done() was called */
    QSIMPLEQ_ENTRY(VerbsJob) next;
};

void verbs_worker_start(RdmaVerbs *v);
/* Waits for all jobs, and tells of each that it is done. */
void verbs_worker_stop(RdmaVerbs *v);
/* Wait until nothing is to be done; that may take long. */
void verbs_worker_drain(RdmaVerbs *v);
/* Have it done some time, behind the jobs before. */
void verbs_job_start(RdmaVerbs *v, VerbsJob *job, const VerbsJobOps *ops);
/*
 * A command comes, maybe again; @key is all that it asks for. True if it is in
 * progress or has come to its end, with *@ret as its result: -EINPROGRESS, or
 * what work() returned, and with success @out is what take() was given. False
 * if it is to be begun: what was in progress is abandoned.
 */
bool verbs_job_ask(RdmaVerbs *v, const VerbsJobOps *ops, const void *key,
                   size_t key_len, void *out, int *ret);
/* Begin the command. Returns -EINPROGRESS. */
int verbs_job_begin(RdmaVerbs *v, VerbsJob *job, const VerbsJobOps *ops,
                    const void *key, size_t key_len);
/*
 * The command is about an object that a job of another one, which was given up,
 * is about to destroy or to change. Returns -EINPROGRESS; when the command is
 * asked for again, that job is done.
 */
int verbs_job_await_others(RdmaVerbs *v);
/*
 * Nobody wants the result of a job whose done() was not called yet: it is
 * undone before all jobs that are begun from now on.
 */
void verbs_job_cancel(RdmaVerbs *v, VerbsJob *job);
/* Nobody will ask for the command in progress, if there is one. */
void verbs_job_abandon(RdmaVerbs *v);

/* dev.c: the device and its port */

bool verbs_dev_open(RdmaVerbs *v, Error **errp);
void verbs_dev_close(RdmaVerbs *v);
/*
 * What destroying an object of the host is to be taken for, if it returned
 * @err: a device that is gone has no objects. 0 or a negative errno.
 */
int verbs_dev_destroyed(RdmaVerbs *v, int err);
/* Read the port's attributes; false if they are as they were. */
bool verbs_dev_update_port(RdmaVerbs *v);
/* What @limits has, but not more than the device can do. */
void verbs_dev_limit(RdmaVerbs *v, RdmaBackendLimits *limits);

/* netlink.c: net devices of the host; all but the check: worker */

/*
 * Add the address that @gid is to a net device. 0, -EEXIST if it was there
 * before (without an error), or another negative errno.
 */
int verbs_netlink_add(uint32_t ifindex, const uint8_t gid[RDMA_GID_LEN],
                      Error **errp);
/* Take it away. 0 or a negative errno; -EADDRNOTAVAIL: it was not there. */
int verbs_netlink_del(uint32_t ifindex, const uint8_t gid[RDMA_GID_LEN]);
/* May this process do that? */
bool verbs_netlink_check(Error **errp);
/* The VLANs of the host, for the functions below. NULL: none. Free it. */
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
/* The host's table has changed. */
void verbs_gids_changed(RdmaVerbs *v);
int verbs_gid_add(RdmaBackend *rb, uint32_t index,
                  const uint8_t gid[RDMA_GID_LEN], uint16_t vlan);
int verbs_gid_del(RdmaBackend *rb, uint32_t index);

/* path.c: paths as the host wants them */

/* The host's index for the guest's; -ENOENT if there is none now. */
int verbs_gid_host_index(RdmaVerbs *v, uint32_t index);
/* The path @av as the host wants it. 0 or -EINVAL. */
int verbs_gid_path(RdmaVerbs *v, const RdmaAv *av, struct ibv_ah_attr *ah);

/*
 * The guest's GID that is the host's @host_index, and its VLAN; false if there
 * is none.
 */
bool verbs_gid_of_host(RdmaVerbs *v, uint32_t host_index,
                       uint8_t gid[RDMA_GID_LEN], uint16_t *vlan);
/* Does the guest have @gid, and the host's port, too? */
bool verbs_gid_is_guests(RdmaVerbs *v, const uint8_t gid[RDMA_GID_LEN]);

/* mem.c: pages of the guest as memory of this process */

/*
 * Worker: find the memory of @npages pages, and keep it. @write: it will be
 * written. 0 or a negative errno.
 */
int verbs_mem_find(const uint64_t *pages, uint32_t npages, uint8_t page_shift,
                   bool write, VerbsMem **mem);
/*
 * Worker: make it one range of addresses until verbs_mem_unmap(). NULL and
 * *@ret if that cannot be.
 */
void *verbs_mem_map(VerbsMem *mem, int *ret);
void verbs_mem_unmap(VerbsMem *mem, void *addr);
/* May it only be read? Then it was found without @write. */
bool verbs_mem_is_read_only(const VerbsMem *mem);
void verbs_mem_free(VerbsMem *mem);
/* Bytes that this process may have registered; UINT64_MAX: there is no limit */
uint64_t verbs_mem_lock_limit(void);

/* ah.c: address handles of datagrams */

void verbs_ahs_init(RdmaVerbs *v);
void verbs_ahs_free(RdmaVerbs *v);
/*
 * The handle for a datagram of @qp. -EAGAIN while the worker makes it: the
 * caller puts the send back, and verbs_pull_soon() pulls it again.
 * -EHOSTUNREACH: no host has that address. Other errors: the handle cannot be
 * made.
 */
int verbs_ah_get(RdmaVerbs *v, VerbsQp *qp, const RdmaAv *av, VerbsAh **ah);
VerbsAh *verbs_ah_hold(VerbsAh *ah);
void verbs_ah_put(VerbsAh *ah);
struct ibv_ah *verbs_ah_host(VerbsAh *ah);
/*
 * Those of @pd that no WQE uses go, or all if it is NULL; behind the jobs
 * before.
 */
void verbs_ahs_drop(RdmaVerbs *v, struct ibv_pd *pd);

/* wq.c: what is posted, and how it completes */

bool verbs_wq_init(VerbsWq *wq, uint32_t max);
void verbs_wq_free(VerbsWq *wq);
/* Drop all: their users are gone. */
void verbs_wq_clear(VerbsWq *wq);
/* The next one, to be filled in; it counts from verbs_wq_push() on. */
VerbsWqe *verbs_wq_next(VerbsWq *wq);
void verbs_wq_push(VerbsWq *wq);
/* It counts, but the host does not know it: it completes in its turn. */
void verbs_wq_push_local(RdmaVerbs *v, VerbsQp *qp, RdmaQueue queue,
                         RdmaWcStatus status);
/* The one that was pushed last, if there is one */
VerbsWqe *verbs_wq_newest(VerbsWq *wq);
/* May nobody be told when the host is done with it? */
bool verbs_wq_ends_quiet(VerbsWq *wq);
/* The send queue is empty, as after a RESET. */
void verbs_wq_clear_sq(VerbsQp *qp);
/* What the host is told as wr_id of the next one. */
uint64_t verbs_wq_next_wr_id(const VerbsQp *qp, RdmaQueue queue);
uint64_t verbs_srq_wr_id(const VerbsSrq *srq, uint32_t slot);
void verbs_qp_new_id(RdmaVerbs *v, VerbsQp *qp);
/* Complete what is due without the host. */
void verbs_wq_run_local(RdmaVerbs *v, VerbsQp *qp);
/* A completion of the host came for whoever it is. */
void verbs_wq_complete(RdmaVerbs *v, const struct ibv_wc *wc);
/* Move @qp to ERR, some time; it takes no posts until then. */
void verbs_qp_fail(RdmaVerbs *v, VerbsQp *qp);
/* The host will complete nothing any more: flush all. */
void verbs_wq_flush(RdmaVerbs *v, VerbsQp *qp);
/* The CQ is in error, and so is all that uses it; the client is told. */
void verbs_cq_fail(RdmaVerbs *v, uint32_t cqn);

/* cq.c: PDs, completion queues */

bool verbs_cqs_init(RdmaVerbs *v, Error **errp);
void verbs_cqs_free(RdmaVerbs *v);
/* Forget them all; a job destroys them. */
void verbs_cqs_reset(RdmaVerbs *v);
void verbs_cqs_set_running(RdmaVerbs *v, bool running);
/* Look for completions soon. */
void verbs_cq_schedule(RdmaVerbs *v, VerbsCq *cq);
/* See RdmaBackendClass.destroy() */
int verbs_pd_destroy(RdmaBackend *rb, uint32_t pdn);
int verbs_cq_destroy(RdmaBackend *rb, uint32_t cqn);
void verbs_cq_class_init(RdmaBackendClass *rbc);

/* mr.c: regions and windows */

/* Warn of limits that are below what the guest could register. */
void verbs_mrs_check_limits(RdmaVerbs *v, uint64_t ram_size);
void verbs_mws_reset(RdmaVerbs *v);
void verbs_mrs_reset(RdmaVerbs *v);
/* See RdmaBackendClass.destroy() */
int verbs_mr_destroy(RdmaBackend *rb, uint32_t mrn);
void verbs_mr_class_init(RdmaBackendClass *rbc);

/* srq.c */

/* As verbs_recv_room() and verbs_post_recv() */
uint32_t verbs_srq_room(RdmaVerbs *v, uint32_t srqn);
void verbs_srq_post(RdmaVerbs *v, uint32_t srqn, const RdmaRecvWr *wr);
void verbs_srqs_reset(RdmaVerbs *v);
/* See RdmaBackendClass.destroy() */
int verbs_srq_destroy(RdmaBackend *rb, uint32_t srqn);
void verbs_srq_class_init(RdmaBackendClass *rbc);

/* qp.c: queue pairs */

/* The host's device is broken: they are all in ERR. */
void verbs_qps_device_gone(RdmaVerbs *v);
/* They are in ERR, and touch no memory any more, when this returns. */
void verbs_qps_stop(RdmaVerbs *v);
/* The same, and jobs destroy them. */
void verbs_qps_reset(RdmaVerbs *v);
/* See RdmaBackendClass.destroy() */
int verbs_qp_destroy(RdmaBackend *rb, uint32_t qpn);
void verbs_qp_class_init(RdmaBackendClass *rbc);

/* umad.c: MADs of the connection manager */

#define VERBS_MAD_LEN 256           /* IBTA 13.4.2 */
/* The fields of the header that say whose it is (IBTA 13.4.2, 16.7). */
#define RDMA_MAD_CLASS_CM 7
#define RDMA_MAD_CM_VERSION 2
#define RDMA_MAD_METHOD_SEND 3
#define RDMA_MAD_ATTR 16            /* where the attribute is */

/* A MAD and its address: where to, or where from. */
typedef struct VerbsMad {
    uint8_t gid[RDMA_GID_LEN];      /* of the other side */
    uint32_t qpn;                   /* of the other side */
    uint32_t qkey;                  /* sent */
    uint32_t flow_label;
    uint8_t gid_index;              /* of the host's port */
    uint8_t hop_limit;
    uint8_t traffic_class;
    uint8_t sl;
    uint8_t data[VERBS_MAD_LEN];
} VerbsMad;

/* Worker: take the MADs of a host's port. NULL and @errp if it has a user. */
VerbsUmad *verbs_umad_open(const char *ibdev, uint8_t port_num, Error **errp);
/* Worker */
void verbs_umad_close(VerbsUmad *u);
/* Readable when there is a MAD. */
int verbs_umad_fd(const VerbsUmad *u);
/* Worker: send one, which may wait for a neighbour's address. */
int verbs_umad_send(VerbsUmad *u, const VerbsMad *mad);
/*
 * The next one. -EAGAIN: there is none, -EBADMSG: it is not for us, others: no
 * more will come.
 */
int verbs_umad_recv(VerbsUmad *u, VerbsMad *mad);

/* mad.c: what passes through QP 1 */

/* Before there is a QP 1: have it told when its CQ is in error. */
void verbs_gsi_init(RdmaVerbs *v);
uint32_t verbs_gsi_room(RdmaVerbs *v, RdmaQueue queue);
int verbs_gsi_post_send(RdmaVerbs *v, const RdmaSendWr *wr);
void verbs_gsi_post_recv(RdmaVerbs *v, const RdmaRecvWr *wr);
/* The device is in error: to ERR, with an event. */
void verbs_gsi_device_gone(RdmaVerbs *v);
void verbs_gsi_set_running(RdmaVerbs *v, bool running);
/* MADs, or events, came in a nested event loop: read them now. */
void verbs_gsi_resume(RdmaVerbs *v);

/* gsi.c: QP 1 */

/* What the methods of the class do for it; creating and destroying are jobs. */
int verbs_gsi_create(RdmaVerbs *v, RdmaQpInitAttr *init);
int verbs_gsi_modify(RdmaVerbs *v, uint32_t mask, const RdmaQpAttr *attr);
int verbs_gsi_query(RdmaVerbs *v, RdmaQpAttr *attr);
int verbs_gsi_destroy(RdmaVerbs *v);
/* To ERR */
int verbs_gsi_fail(RdmaVerbs *v);
bool verbs_gsi_in_state(RdmaVerbs *v, RdmaQpState state);
void verbs_gsi_reset(RdmaVerbs *v);
/* counters.c: what the host's port counts */

void verbs_counters_init(RdmaVerbs *v);
void verbs_counters_free(RdmaVerbs *v);
/* They begin anew. */
void verbs_counters_reset(RdmaVerbs *v);
void verbs_counters_class_init(RdmaBackendClass *rbc);

/* inspect.c: what people on the host can look at */

/* The guest has set these attributes of @qp. */
void verbs_qp_note(VerbsQp *qp, uint32_t mask, const RdmaQpAttr *attr);
void verbs_inspect_class_init(RdmaBackendClass *rbc);

/* mcast.c: multicast groups */

void verbs_mcast_init(RdmaVerbs *v);
void verbs_mcast_free(RdmaVerbs *v);
/* Worker: the QP is about to be destroyed. 0 or a negative errno. */
int verbs_mcast_leave_all(RdmaVerbs *v, VerbsQp *qp);
void verbs_mcast_class_init(RdmaBackendClass *rbc);

/* kick.c: the guest's work queues that may have work */

/* Set in the keys of RdmaVerbs.pulls that are numbers of SRQs, not QPNs. */
#define VERBS_SRQ_KEY (1u << 31)

/* Was the queue not found to be empty since a kick? NULL: there is none. */
bool *verbs_more_of(RdmaVerbs *v, RdmaQueue queue, uint32_t id);
/* The QP or SRQ with that key has another turn, after the others. */
void verbs_pull_again(RdmaVerbs *v, uint32_t key);
/* There is room again: the next turn pulls what the queue may have. */
void verbs_pull_soon(RdmaVerbs *v, RdmaQueue queue, uint32_t id);
/* It may: the state of the QP has changed, or it can be used again. */
void verbs_pull_qp(RdmaVerbs *v, VerbsQp *qp);
/* The same for QP 1 */
void verbs_pull_gsi(RdmaVerbs *v);
void verbs_kick_class_init(RdmaBackendClass *rbc);

/* post.c: work requests for the host */

/* How many sends the host takes now; 0 while the QP may not have any. */
uint32_t verbs_send_room(RdmaVerbs *v, uint32_t qpn);
/* Will the next send complete without being executed? */
bool verbs_send_flushes(RdmaVerbs *v, uint32_t qpn);
/*
 * Call with room only. -EAGAIN: it has to wait; verbs_pull_soon() comes when
 * it need not any more.
 */
int verbs_post_send(RdmaVerbs *v, uint32_t qpn, const RdmaSendWr *wr);
/* The same for receives of an RQ or SRQ */
uint32_t verbs_recv_room(RdmaVerbs *v, RdmaQueue queue, uint32_t id);
bool verbs_recv_flushes(RdmaVerbs *v, RdmaQueue queue, uint32_t id);
void verbs_post_recv(RdmaVerbs *v, RdmaQueue queue, uint32_t id,
                     const RdmaRecvWr *wr);

/* pull.c: takes work requests of the guest for the host */

void verbs_pull_run(RdmaVerbs *v);
void verbs_pull_class_init(RdmaBackendClass *rbc);

/* event.c: asynchronous events of the host */

bool verbs_events_init(RdmaVerbs *v, Error **errp);
void verbs_events_free(RdmaVerbs *v);
/* As verbs_gsi_resume() */
void verbs_events_resume(RdmaVerbs *v);

#endif
