/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the virtio-rdma device share.
 *
 * Context: everything runs under the BQL. Guest memory is touched only while
 * the transport's reentrancy guard is engaged (virtio_rdma_enter()), so that
 * a buffer that lies in the device's own registers cannot call it again.
 */
#ifndef HW_RDMA_VIRTIO_RDMA_INTERNAL_H
#define HW_RDMA_VIRTIO_RDMA_INTERNAL_H

#include "hw/virtio/virtio-rdma.h"
#include "virtio-rdma-codec.h"

/* The only port. */
#define VIRTIO_RDMA_PORT            1

/* The limits that properties are checked against. */
#define VIRTIO_RDMA_MAX_CQ          16384
#define VIRTIO_RDMA_MAX_QP          16384
/* Keys have 24 bits for the number. */
#define VIRTIO_RDMA_MAX_MR          0xfffffe
#define VIRTIO_RDMA_MAX_PD          65536
#define VIRTIO_RDMA_MAX_SGE         256
#define VIRTIO_RDMA_MAX_INLINE      4096
#define VIRTIO_RDMA_MAX_RD_ATOMIC   128
#define VIRTIO_RDMA_MAX_GIDS        256
/* Pages of a fast-registration MR. */
#define VIRTIO_RDMA_MAX_PAGE_LIST   1024
/* Pages that other regions may have: bit n is for 2^n bytes. */
#define VIRTIO_RDMA_MR_PAGE_SIZES   0x7ffff000ull
#define VIRTIO_RDMA_MAX_CQE         (1u << 20)
#define VIRTIO_RDMA_MAX_SRQ         1021
#define VIRTIO_RDMA_MAX_SRQ_WR      (1u << 16)
#define VIRTIO_RDMA_MAX_MCAST       16384

/* The last of VIRTIO_RDMA_F_* */
#define VIRTIO_RDMA_F_MAX           VIRTIO_RDMA_F_ATOMIC_WRITE

typedef struct VirtIORdmaPd {
    uint32_t pdn;
    uint32_t users;                 /* MRs, windows, SRQs and QPs */
} VirtIORdmaPd;

typedef enum VirtIORdmaArm {
    VIRTIO_RDMA_ARM_NONE,
    VIRTIO_RDMA_ARM_SOLICITED,
    VIRTIO_RDMA_ARM_NEXT,
} VirtIORdmaArm;

/* A completion that waits for a buffer. */
typedef struct VirtIORdmaKeptCqe {
    uint32_t qpn;
    uint8_t alerts;                 /* bool: solicited or unsuccessful */
    uint8_t bytes[VIRTIO_RDMA_CQE_ROOM]; /* as the driver will see it */
} VirtIORdmaKeptCqe;

typedef struct VirtIORdmaCq {
    uint32_t cqn;
    uint32_t cqe;
    uint32_t users;                 /* queues of QPs */
    /* VirtIORdmaArm: till it fires, or for good (F_CQ_RING_ARM) */
    uint8_t arm;
    bool error;
    uint16_t seen;                  /* for virtio_rdma_check_ring() */
    VirtQueue *vq;
    /* F_CQ_DEEP: a ring of @kept_room, at most @cqe of them in use */
    uint32_t nkept;
    uint32_t kept_head;
    uint32_t kept_room;
    VirtIORdmaKeptCqe *kept;
} VirtIORdmaCq;

/* What the id of an event names. */
typedef enum VirtIORdmaEventOf {
    VIRTIO_RDMA_EVENT_OF_NONE,
    VIRTIO_RDMA_EVENT_OF_CQ,
    VIRTIO_RDMA_EVENT_OF_QP,
    VIRTIO_RDMA_EVENT_OF_SRQ,
    VIRTIO_RDMA_EVENT_OF_PORT,
} VirtIORdmaEventOf;

/* A memory region or a window: they share their numbers. */
typedef struct VirtIORdmaMr {
    uint32_t mrn;
    uint32_t type;                  /* RdmaMrType */
    uint32_t key;
    uint32_t rkey;                  /* windows: as they were made */
    /* What it is charged for: pages of the list in use, and of MAP_MR_SG's */
    uint32_t npages;
    uint32_t pending;
    uint32_t max_pages;             /* RDMA_MR_FAST_REG */
    uint32_t mw_type;               /* RdmaMwType, or 0: it is a region */
    VirtIORdmaPd *pd;
} VirtIORdmaMr;

struct VirtIORdmaSrq {
    RdmaSrqAttr attr;               /* the limit is the backend's */
    VirtIORdmaPd *pd;
    uint32_t users;                 /* QPs */
    bool error;
    bool queued;                    /* is in VirtIORdma.rerun_srqs */
    uint16_t seen;                  /* for virtio_rdma_check_ring() */
    VirtQueue *vq;
    QTAILQ_ENTRY(VirtIORdmaSrq) next;
};

/*
 * What is kept of a WQE: for the used ring, index and number of descriptors
 * of the virtqueue element; the pages of a list that it brought.
 */
typedef struct VirtIORdmaInflight {
    uint16_t index;
    uint16_t ndescs;
    uint16_t npages;
    uint32_t mrn;                   /* that they are for */
} VirtIORdmaInflight;

/* An SQ or RQ. WQEs are copied when they are popped. */
typedef struct VirtIORdmaWq {
    VirtQueue *vq;
    RdmaBackendQueue kind;
    uint32_t max_sge;
    uint32_t max_inline;
    uint32_t head;                  /* oldest of inflight[] */
    uint32_t count;
    uint32_t stale;                 /* at the backend, but gone from the ring */
    bool blocked;                   /* there was no room for more */
    uint16_t seen;                  /* for virtio_rdma_check_ring() */
    VirtIORdmaInflight inflight[VIRTQUEUE_MAX_SIZE];
} VirtIORdmaWq;

struct VirtIORdmaQp {
    RdmaQpInitAttr init;
    VirtIORdmaPd *pd;
    VirtIORdmaCq *send_cq;
    VirtIORdmaCq *recv_cq;
    VirtIORdmaSrq *srq;             /* or NULL; then @rq is not used */
    VirtIORdmaWq sq;
    VirtIORdmaWq rq;
    bool to_err;                    /* the device wants it in ERR */
    bool queued;                    /* is in VirtIORdma.rerun */
    QTAILQ_ENTRY(VirtIORdmaQp) next;
};

/* The control command that is being executed. */
struct VirtIORdmaCtrl {
    VirtQueue *vq;
    uint16_t seen;                  /* for virtio_rdma_check_ring() */
    VirtQueueElement *elem;         /* NULL: nobody waits for the answer */
    bool pending;                   /* the backend will call op_done() */
    bool done;                      /* it has, with @ret */
    int ret;
    uint8_t cmd;
    VirtIORdmaReq req;
    VirtIORdmaRsp rsp;
    void *obj;                      /* being made, changed or destroyed */
    uint64_t *pages;
    RdmaMrAttr attr;                /* REREG_MR: what the region becomes */
};

/* Buffers for one WQE, allocated once. */
struct VirtIORdmaScratch {
    size_t wqe_room;
    uint8_t *wqe;
    RdmaSge *sge;
};

static inline bool virtio_rdma_enter(VirtIORdma *s)
{
    bool was = s->guard->engaged_in_io;

    s->guard->engaged_in_io = true;
    return was;
}

static inline void virtio_rdma_leave(VirtIORdma *s, bool was)
{
    s->guard->engaged_in_io = was;
    if (unlikely(VIRTIO_DEVICE(s)->broken && s->running)) {
        qemu_bh_schedule(s->bh);
    }
}

/* May guest memory be touched and the backend be given work? */
static inline bool virtio_rdma_active(VirtIORdma *s)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    return vdev->vm_running && (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK) &&
           !virtio_device_disabled(vdev);
}

/* Is the feature offered, as far as one knows? */
static inline bool virtio_rdma_offers(const VirtIORdma *s, unsigned bit)
{
    return s->rdma_features & (1ULL << bit);
}

/* Did the driver accept the feature? */
static inline bool virtio_rdma_has(VirtIORdma *s, unsigned bit)
{
    return virtio_vdev_has_feature(VIRTIO_DEVICE(s), bit);
}

/* Properties and features */
void virtio_rdma_class_props(ObjectClass *klass);
bool virtio_rdma_check_conf(VirtIORdma *s, Error **errp);
/* Take back what the attached backend cannot do. */
void virtio_rdma_settle_features(VirtIORdma *s);
/* Tell the backend which operations the driver knows. */
void virtio_rdma_start_extensions(VirtIORdma *s);
/* The property that turns a feature bit off. */
const char *virtio_rdma_feature_name(unsigned bit);

/* virtio-rdma-limits.c: what leads a migration stream */
void virtio_rdma_register_early(VirtIORdma *s);
void virtio_rdma_unregister_early(VirtIORdma *s);

/* The device */
void virtio_rdma_update_config(VirtIORdma *s);
/* Have the bottom half look at the queues of @qp. */
void virtio_rdma_schedule_qp(VirtIORdma *s, VirtIORdmaQp *qp);

/* Host notifiers */
int virtio_rdma_start_ioeventfd(VirtIODevice *vdev);
void virtio_rdma_stop_ioeventfd(VirtIODevice *vdev);
/* Give virtqueues of an object host notifiers, or take them away. */
void virtio_rdma_notify_qp(VirtIORdma *s, uint32_t qpn, bool assign);
void virtio_rdma_notify_srq(VirtIORdma *s, uint32_t srqn, bool assign);

/* Tables */
void virtio_rdma_table_init(VirtIORdmaTable *t, uint32_t first, uint32_t end);
void virtio_rdma_table_free(VirtIORdmaTable *t);
/* Finds a number that is not in use; false if there is none. */
bool virtio_rdma_table_find(VirtIORdmaTable *t, uint32_t *id);
void virtio_rdma_table_set(VirtIORdmaTable *t, uint32_t id, void *obj);
void virtio_rdma_table_clear(VirtIORdmaTable *t, uint32_t id);

static inline void *virtio_rdma_table_get(const VirtIORdmaTable *t,
                                          uint32_t id)
{
    return id < t->end ? t->slot[id] : NULL;
}

/*
 * Can virtqueue @n serve a new object that needs @size entries? -ENOMEM if
 * it is not set up, or was not reset after its last owner; -EINVAL if the
 * driver made its ring too small.
 */
int virtio_rdma_check_vq(VirtIORdma *s, uint32_t n, uint32_t size);
/*
 * Find a number in @first..@end-1 that is free and whose virtqueues can serve
 * an object, which @check tells. Fails as the best of the free ones does.
 */
typedef int VirtIORdmaCheckId(VirtIORdma *s, uint32_t id,
                              const VirtIORdmaReq *req);
int virtio_rdma_find_with_vqs(VirtIORdma *s, VirtIORdmaTable *t,
                              uint32_t first, uint32_t end,
                              VirtIORdmaCheckId *check,
                              const VirtIORdmaReq *req, uint32_t *id);
/* Leave virtqueue @n behind: it must be reset before its next use. */
void virtio_rdma_abandon_vq(VirtIORdma *s, uint32_t n);

/* Objects: control handlers, and what else makes and frees objects */
void virtio_rdma_objects_init(VirtIORdma *s);
void virtio_rdma_objects_free(VirtIORdma *s);
/* Forget all objects; the backend has forgotten them. */
void virtio_rdma_objects_reset(VirtIORdma *s);
VirtIORdmaPd *virtio_rdma_add_pd(VirtIORdma *s, uint32_t pdn);
VirtIORdmaCq *virtio_rdma_add_cq(VirtIORdma *s, uint32_t cqn, uint32_t cqe);
void virtio_rdma_remove_cq(VirtIORdma *s, VirtIORdmaCq *cq);
VirtIORdmaQp *virtio_rdma_add_qp(VirtIORdma *s, const RdmaQpInitAttr *init,
                                 VirtIORdmaPd *pd, VirtIORdmaCq *send_cq,
                                 VirtIORdmaCq *recv_cq, VirtIORdmaSrq *srq);
void virtio_rdma_remove_qp(VirtIORdma *s, VirtIORdmaQp *qp);
VirtIORdmaMr *virtio_rdma_add_mr(VirtIORdma *s, uint32_t mrn,
                                 VirtIORdmaPd *pd, uint32_t type);
/* A region or a window */
void virtio_rdma_remove_mr(VirtIORdma *s, VirtIORdmaMr *mr);
VirtIORdmaMr *virtio_rdma_add_mw(VirtIORdma *s, const RdmaMwAttr *attr,
                                 VirtIORdmaPd *pd);
VirtIORdmaSrq *virtio_rdma_add_srq(VirtIORdma *s, const RdmaSrqAttr *attr,
                                   VirtIORdmaPd *pd);
void virtio_rdma_remove_srq(VirtIORdma *s, VirtIORdmaSrq *srq);

static inline VirtIORdmaMr *virtio_rdma_get_mr(VirtIORdma *s, uint32_t mrn)
{
    VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, mrn);

    return mr && !mr->mw_type ? mr : NULL;
}

/* A key for it, of which 8 bits tell it from earlier ones of its number */
uint32_t virtio_rdma_new_key(uint32_t mrn);

/*
 * The pages of a region. Whoever reads them checks first that there may be so
 * many, and charges them to the account of all regions.
 */
/* May there be such a region? Fills in the default of the page size. */
int virtio_rdma_check_pages(VirtIORdma *s, VirtIORdmaPages *p);
int virtio_rdma_charge_pages(VirtIORdma *s, uint32_t npages);
/* The backend is done with a WQE: the region may use what it brought. */
void virtio_rdma_pass_pages(VirtIORdma *s, const VirtIORdmaInflight *inflight);
/* Reads the list or the tables into *@pages, to be freed by g_free(). */
int virtio_rdma_read_pages(VirtIORdma *s, const VirtIORdmaPages *p,
                           uint64_t **pages);

/*
 * A control handler. exec() checks and does the command; it returns 0 or a
 * negative errno, or -EINPROGRESS when finish() shall be called later. In any
 * other case finish() follows at once. finish() fills in the response when
 * @ret is 0 and undoes what exec() did to the tables when it is negative.
 * @features: the command fails with NOTSUPP unless all of them were accepted.
 */
typedef struct VirtIORdmaHandler {
    const char *name;
    uint64_t features;              /* 1 << VIRTIO_RDMA_F_* */
    int (*exec)(VirtIORdma *s, VirtIORdmaCtrl *c);
    void (*finish)(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
} VirtIORdmaHandler;

int virtio_rdma_create_pd(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_create_pd_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_destroy_pd(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_destroy_pd_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_create_cq(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_create_cq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_destroy_cq(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_destroy_cq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_req_notify_cq(VirtIORdma *s, VirtIORdmaCtrl *c);
int virtio_rdma_resize_cq(VirtIORdma *s, VirtIORdmaCtrl *c);
int virtio_rdma_create_qp(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_create_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_modify_qp(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_modify_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_query_qp(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_query_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_destroy_qp(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_destroy_qp_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);

int virtio_rdma_get_dma_mr(VirtIORdma *s, VirtIORdmaCtrl *c);
int virtio_rdma_create_mr(VirtIORdma *s, VirtIORdmaCtrl *c);
int virtio_rdma_reg_user_mr(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_create_mr_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_map_mr_sg(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_map_mr_sg_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_rereg_mr(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_rereg_mr_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_dereg_mr(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_dereg_mr_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);

int virtio_rdma_alloc_mw(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_alloc_mw_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_dealloc_mw(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_dealloc_mw_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);

int virtio_rdma_create_srq(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_create_srq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_modify_srq(VirtIORdma *s, VirtIORdmaCtrl *c);
int virtio_rdma_query_srq(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_query_srq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);
int virtio_rdma_destroy_srq(VirtIORdma *s, VirtIORdmaCtrl *c);
void virtio_rdma_destroy_srq_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret);

int virtio_rdma_attach_mcast(VirtIORdma *s, VirtIORdmaCtrl *c);
int virtio_rdma_detach_mcast(VirtIORdma *s, VirtIORdmaCtrl *c);

/* The control queue */
void virtio_rdma_ctrl_init(VirtIORdma *s);
void virtio_rdma_ctrl_free(VirtIORdma *s);
void virtio_rdma_ctrl_run(VirtIORdma *s);
void virtio_rdma_ctrl_op_done(VirtIORdma *s, int ret);
/* The control queue was reset: nobody waits for an answer any more. */
void virtio_rdma_ctrl_drop(VirtIORdma *s);
void virtio_rdma_ctrl_reset(VirtIORdma *s);

/*
 * Does the driver make no more buffers available than @vq can have? If it
 * does, its ring is broken, and so is the device. Looks only when all that
 * were there at the last look, up to *@seen, have been taken.
 */
bool virtio_rdma_check_ring(VirtIORdma *s, VirtQueue *vq, uint16_t *seen);

/* Events */
void virtio_rdma_events_init(VirtIORdma *s);
void virtio_rdma_events_free(VirtIORdma *s);
/* Device reset: nothing is pending any more. */
void virtio_rdma_events_reset(VirtIORdma *s);
/* The event virtqueue was reset; what is pending waits for the next. */
void virtio_rdma_reset_event_queue(VirtIORdma *s);
/* Tell the driver, now or when it has a buffer, unless it does not listen. */
void virtio_rdma_raise_event(VirtIORdma *s, RdmaEventType type, uint32_t id);
/* The object is gone. */
void virtio_rdma_forget_events(VirtIORdma *s, VirtIORdmaEventOf of,
                               uint32_t id);
/* Write what is pending while there are buffers. */
void virtio_rdma_run_events(VirtIORdma *s);
/* Raise an event if the port is not as the driver knows it. */
void virtio_rdma_check_port(VirtIORdma *s);
/* What is pending, oldest first (@event NULL: the first), for migration */
uint32_t virtio_rdma_max_events(VirtIORdma *s);
uint32_t virtio_rdma_count_events(VirtIORdma *s);
const RdmaEvent *virtio_rdma_next_event(VirtIORdma *s, const RdmaEvent *event);
/* False: it is pending already, or none of an object that exists. */
bool virtio_rdma_load_event(VirtIORdma *s, const RdmaEvent *event);
/* The port as the driver knows it */
bool virtio_rdma_port_was_active(VirtIORdma *s);
void virtio_rdma_load_port(VirtIORdma *s, bool active);
/* Of RdmaBackendClientOps */
void virtio_rdma_backend_event(void *opaque, const RdmaEvent *event);
void virtio_rdma_port_changed(void *opaque);

/* Counters, VIRTIO_RDMA_NUM_COUNTERS of them */
void virtio_rdma_get_counters(VirtIORdma *s, uint64_t *values);
/* They go on from @values; NULL: from 0. */
void virtio_rdma_set_counters(VirtIORdma *s, const uint64_t *values);

/* Completion queues */
uint32_t virtio_rdma_max_cqe(VirtIORdma *s);
/* False if the CQ is in error, or is from now on. */
bool virtio_rdma_cq_complete(VirtIORdma *s, VirtIORdmaCq *cq,
                             const RdmaWc *wc, bool solicited);
/* Write what is kept while there are buffers. False: as above. */
bool virtio_rdma_cq_flush(VirtIORdma *s, VirtIORdmaCq *cq);
/* No completion is written any more; its QPs are the caller's business. */
void virtio_rdma_cq_error(VirtIORdma *s, VirtIORdmaCq *cq);
/* Keep one more completion; false if @cqe are kept. */
bool virtio_rdma_cq_keep(VirtIORdmaCq *cq, const VirtIORdmaKeptCqe *cqe);
/* The @i-th oldest completion that is kept. */
const VirtIORdmaKeptCqe *virtio_rdma_cq_kept(VirtIORdmaCq *cq, uint32_t i);
/* Drop what is kept for a QP that is gone. */
void virtio_rdma_cq_forget_qp(VirtIORdmaCq *cq, uint32_t qpn);

/* Work queues */
void virtio_rdma_wq_init(VirtIORdma *s);
void virtio_rdma_wq_free(VirtIORdma *s);
/* Hand WQEs to the backend. Returns whether it was given any. */
bool virtio_rdma_wq_run(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq);
void virtio_rdma_wq_retire(VirtIORdma *s, VirtIORdmaQp *qp, VirtIORdmaWq *wq,
                           uint32_t count);
/* Return everything that lies in the virtqueue as used. */
void virtio_rdma_wq_drain(VirtIORdma *s, VirtIORdmaWq *wq);
/* The virtqueue was reset under a live QP. Were WQEs lost? */
bool virtio_rdma_wq_forget(VirtIORdma *s, VirtIORdmaWq *wq);
/* Return what lies in a virtqueue as used. */
void virtio_rdma_vq_drain(VirtIORdma *s, VirtQueue *vq);
int virtio_rdma_post_srq_recv(VirtIORdma *s, VirtIORdmaSrq *srq,
                              const VirtQueueElement *elem);

/* Shared receive queues */
static inline uint32_t virtio_rdma_srq_vq(const VirtIORdma *s, uint32_t srqn)
{
    return VIRTIO_RDMA_SRQ_VQ(s->limits.max_cq, s->limits.max_qp, srqn);
}

VirtIORdmaSrq *virtio_rdma_srq_of_vq(VirtIORdma *s, uint32_t n);
/* Have the bottom half look at the queue. */
void virtio_rdma_schedule_srq(VirtIORdma *s, VirtIORdmaSrq *srq);
/* Hand WQEs to the backend. Returns whether it was given any. */
bool virtio_rdma_srq_run(VirtIORdma *s, VirtIORdmaSrq *srq);
/* Its virtqueue was reset under it: it is in error, and so are its QPs. */
void virtio_rdma_fail_srq(VirtIORdma *s, VirtIORdmaSrq *srq);

/* Put all QPs that use @cq, or @qp alone, into ERR. */
void virtio_rdma_fail_cq(VirtIORdma *s, VirtIORdmaCq *cq);
void virtio_rdma_fail_qp(VirtIORdma *s, VirtIORdmaQp *qp);
/* Not while a control command is pending. */
bool virtio_rdma_qp_is_in(VirtIORdma *s, VirtIORdmaQp *qp, RdmaQpState state);

/* Migration */
extern const VMStateDescription vmstate_virtio_rdma_device;
int virtio_rdma_post_load(VirtIODevice *vdev);
bool virtio_rdma_loaded_qp(void *opaque, const RdmaQpInitAttr *init,
                           uint32_t nsend, uint32_t nrecv);
bool virtio_rdma_loaded_mr(void *opaque, const RdmaMrAttr *attr,
                           uint64_t npages);
bool virtio_rdma_loaded_srq(void *opaque, const RdmaSrqAttr *attr);
bool virtio_rdma_loaded_mw(void *opaque, const RdmaMwAttr *attr);
void virtio_rdma_free_saved(VirtIORdma *s);

#endif
