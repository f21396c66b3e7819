/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues, queue pairs and shared receive queues.
 */
#ifndef VRDMA_QUEUE_H
#define VRDMA_QUEUE_H

#include "mem.h"

/* The size of a mapping has 32 bits, and a slot takes up to a page. */
#define VRDMA_SRQ_DEPTH_MAX	65536
/* Between two attempts of a thread to submit WQEs of a process */
#define VRDMA_RETRY_US_MIN	20
#define VRDMA_RETRY_US_MAX	200

/* A slot for a completion */
#define CQE_SLOT_SHIFT		6
#define CQE_SLOT_SIZE		BIT(CQE_SLOT_SHIFT)

/* A completion virtqueue, and the CQ that uses it, if any */
struct vrdma_cq_slot {
	spinlock_t lock;		/* of cq */
	struct vrdma_cq *cq;
	struct vrdma_ring ring;
};

/* An event queue, and the direct CQs whose events go there */
struct vrdma_eq {
	spinlock_t lock;		/* of all, but additions to cqs */
	struct vrdma_ring ring;		/* slots are struct virtio_rdma_cqn */
	struct xarray cqs;		/* by cqn */
};

struct vrdma_cq {
	struct ib_cq ibcq;
	struct vrdma_ring *ring;	/* with the lock of all that follows */
	u32 cqn;
	u32 head;			/* completions consumed by the kernel */
	u32 armed;			/* VIRTIO_RDMA_NOTIFY_*; 0: not armed */
	/* Of direct CQs */
	struct vrdma_area *direct;	/* NULL: it has a virtqueue */
	struct vrdma_ring slots;	/* ring */
	struct vrdma_eq *eq;
	u32 events;			/* so far, at most one of a request */
	/* Of others */
	u32 device_flags;		/* of the last REQ_NOTIFY_CQ command */
	u32 armed_at;			/* completions when it was armed */
	bool rearm;			/* arm again after the interrupt */
	u32 rearm_at;			/* completions at that request */
	struct mutex notify_lock;	/* of commands by processes */
	bool notify_requested;		/* at least once: has a handler */
	bool failed;			/* a kernel's CQ: takes no completions */
	spinlock_t *handler_lock;	/* that its handler is called under */
	/* Of the kernel's CQs, under that lock */
	u32 num_wqs;			/* whose requests complete in it */
	bool notify_missed;		/* there was none then */
	struct work_struct arm_work;	/* arms the kernel's CQs by a command */
	bool mapped;			/* a process polls it in memory */
	bool full_size;			/* as deep as its virtqueue */
	struct vrdma_mmap_entry *mmap;
};

/* A work request of the kernel, until it completes */
struct vrdma_request {
	u64 wr_id;
	u32 length;			/* of a receive's buffers */
	bool silent;			/* completes only with an error */
	bool busy;			/* of an SRQ: posted */
};

/* What the kernel needs to post to a direct queue */
struct vrdma_bell {
	__le32 *producer;		/* NULL: it has a virtqueue */
	const __le32 *awake;
	void __iomem *page;
	u32 number;			/* what rings for it */
};

struct vrdma_wq {
	struct vrdma_dev *dev;
	struct vrdma_cq *cq;		/* of a queue pair's */
	struct vrdma_ring ring;
	struct vrdma_bell bell;
	bool flushing;			/* the device is dead: see flush.c */
	u32 max_wr;
	u32 max_sge;
	/* Of the kernel's queues, see request.c */
	u32 posted;
	u32 completed;			/* requests of a queue pair */
	u32 generation;
	struct vrdma_request *requests;
	u32 *unused;			/* a stack of an SRQ's free entries */
	u32 num_unused;
	u32 num_requests;		/* entries of an SRQ */
};

struct vrdma_qp {
	struct ib_qp ibqp;
	/*
	 * The device's number for it: of its virtqueues, in commands,
	 * completions and events. ibqp.qp_num is what peers know.
	 */
	u32 qpn;
	struct vrdma_wq sq;
	struct vrdma_wq rq;
	u32 max_inline;
	enum ib_qp_state state;
	enum ib_sig_type sig_type;
	bool user;
	struct vrdma_binding *binding;	/* to a counter, or NULL */
	struct vrdma_area *direct;	/* its memory; NULL: it has virtqueues */
	void __iomem *doorbell;		/* of its memory */
	struct delayed_work flush_work;	/* see vrdma_qp_flush_work() */
	u32 flush_seen[2];		/* completed requests, then */
	struct vrdma_mmap_entry *mmap;
};

struct vrdma_srq {
	struct ib_srq ibsrq;
	struct vrdma_wq wq;
	const u32 *producer;		/* of a process: WQEs in slots */
	u32 srqn;
	bool user;
	struct vrdma_area *direct;	/* its memory; NULL: it has a virtqueue */
	void __iomem *doorbell;		/* of its memory */
	struct vrdma_mmap_entry *mmap;
};

static inline struct vrdma_cq *to_vcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct vrdma_cq, ibcq);
}

static inline struct vrdma_qp *to_vqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct vrdma_qp, ibqp);
}

static inline struct vrdma_srq *to_vsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct vrdma_srq, ibsrq);
}

static inline struct vrdma_dev *vrdma_cq_dev(const struct vrdma_cq *cq)
{
	return to_vdev(cq->ibcq.device);
}

/* A process's CQ is not armed in atomic context. */
static inline bool vrdma_cq_is_user(const struct vrdma_cq *cq)
{
	return cq->ibcq.uobject;
}

/* The counters of a direct CQ; the process that maps it may write to them. */
static inline struct virtio_rdma_direct_cq_page *
vrdma_cq_page(const struct vrdma_cq *cq)
{
	return page_address(cq->direct->buf->pages[0]);
}

/* handler.c */
void vrdma_cq_handle(struct vrdma_cq *cq);
void vrdma_cq_wake(struct vrdma_cq *cq);
void vrdma_cq_attach(struct vrdma_cq *cq);
void vrdma_cq_detach(struct vrdma_cq *cq);

/* eq.c */
int vrdma_eqs_alloc(struct vrdma_dev *dev);
void vrdma_eqs_init(struct vrdma_dev *dev);
int vrdma_eqs_start(struct vrdma_dev *dev);
void vrdma_eqs_free(struct vrdma_dev *dev);
void vrdma_eq_callback(struct virtqueue *vq);
struct vrdma_cq *vrdma_eqs_find_cq(struct vrdma_dev *dev, u32 cqn);
int vrdma_eq_add(struct vrdma_eq *eq, struct vrdma_cq *cq);
void vrdma_eq_remove(struct vrdma_eq *eq, u32 cqn);
void vrdma_eqs_wake(struct vrdma_dev *dev);

/* event.c */
void vrdma_event_callback(struct virtqueue *vq);
void vrdma_events_lock(struct vrdma_dev *dev);
void vrdma_events_unlock(struct vrdma_dev *dev);
int vrdma_events_start(struct vrdma_dev *dev);

/* request.c */
int vrdma_requests_init(struct vrdma_dev *dev, struct vrdma_wq *wq, u32 slots);
int vrdma_requests_init_shared(struct vrdma_dev *dev, struct vrdma_wq *wq);
void vrdma_requests_free(struct vrdma_wq *wq);
void vrdma_requests_reset(struct vrdma_dev *dev, struct vrdma_wq *wq);
bool vrdma_requests_full(const struct vrdma_wq *wq);
__le64 vrdma_request_prepare(struct vrdma_wq *wq,
			     const struct vrdma_request *request);
void vrdma_request_confirm(struct vrdma_wq *wq);
bool vrdma_requests_overdue(struct vrdma_wq *wq, u32 *seen);
bool vrdma_request_is_of(const struct vrdma_wq *wq, u64 id);
const struct vrdma_request *vrdma_request_take(struct vrdma_wq *wq, u64 id);
const struct vrdma_request *vrdma_request_oldest(struct vrdma_wq *wq,
						 u32 returned);

/* direct.c */
int vrdma_direct_ring(struct vrdma_dev *dev, void __iomem *doorbell,
		      u32 number);
void vrdma_direct_put(struct vrdma_wq *wq, u32 len);
bool vrdma_direct_publish(struct vrdma_wq *wq);
void vrdma_direct_notify(struct vrdma_wq *wq);
int vrdma_direct_init(struct vrdma_dev *dev, struct vrdma_qp *qp,
		      const struct ib_qp_cap *cap, u32 doorbell,
		      struct virtio_rdma_create_qp_req *req);
void vrdma_direct_free(struct vrdma_dev *dev, struct vrdma_qp *qp);
int vrdma_direct_create_cmd(struct vrdma_dev *dev, struct vrdma_qp *qp,
			    struct virtio_rdma_create_qp_req *req,
			    struct virtio_rdma_create_qp_rsp *rsp);
void vrdma_direct_start(struct vrdma_qp *qp);

/* wr.c */
u32 vrdma_send_slot_shift(const struct ib_qp_cap *cap);
u32 vrdma_send_slot_inline(const struct ib_qp_cap *cap, u32 max_inline);
u32 vrdma_recv_slot_shift(u32 max_sge);
void vrdma_wq_reap(struct vrdma_wq *wq);
bool vrdma_wq_is_empty(struct vrdma_wq *wq);
int vrdma_wq_submit_user(struct vrdma_wq *wq, const u32 *producer);
int vrdma_wq_post_recv(struct vrdma_wq *wq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);
int vrdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int vrdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

/* wc.c */
bool vrdma_wc_take(struct vrdma_cq *cq, const struct virtio_rdma_cqe_ex *ex,
		   struct ib_wc *wc);
void vrdma_cqe_drop(struct vrdma_qp *qp, struct virtio_rdma_cqe *cqe);

/* flush.c */
int vrdma_flush_cq(struct vrdma_cq *cq, int num, struct ib_wc *wc);

/* cq_vq.c */
bool vrdma_cq_vq_has_cqe(struct vrdma_cq *cq);
int vrdma_cq_vq_poll(struct vrdma_cq *cq, int num, struct ib_wc *wc, bool dead);
void vrdma_cq_vq_clean(struct vrdma_cq *cq, struct vrdma_qp *qp);
int vrdma_cq_vq_notify(struct vrdma_cq *cq, u32 arm,
		       enum ib_cq_notify_flags flags);
void vrdma_cq_callback(struct virtqueue *vq);
void vrdma_cq_vqs_wake(struct vrdma_dev *dev);
int vrdma_cq_vq_create(struct vrdma_cq *cq, int vector, struct ib_udata *udata);
void vrdma_cq_vq_free(struct vrdma_cq *cq);
int vrdma_cq_vq_resize(struct vrdma_cq *cq, u32 cqe);
int vrdma_cq_vqs_alloc(struct vrdma_dev *dev);
void vrdma_cq_vqs_init(struct vrdma_dev *dev);
void vrdma_cq_vqs_free(struct vrdma_dev *dev);

/* cq_direct.c */
bool vrdma_cq_direct_has_cqe(struct vrdma_cq *cq);
int vrdma_cq_direct_poll(struct vrdma_cq *cq, int num, struct ib_wc *wc,
			 bool dead);
void vrdma_cq_direct_clean(struct vrdma_cq *cq, struct vrdma_qp *qp);
int vrdma_cq_direct_notify(struct vrdma_cq *cq, u32 arm,
			   enum ib_cq_notify_flags flags);
int vrdma_cq_direct_create(struct vrdma_cq *cq, u32 vector, bool mapped,
			   struct ib_udata *udata);
void vrdma_cq_direct_free(struct vrdma_cq *cq);
int vrdma_cq_direct_renew(struct vrdma_cq *cq);
int vrdma_cq_direct_resize(struct vrdma_cq *cq, u32 cqe,
			   struct ib_udata *udata);

/* cq.c */
int vrdma_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		    struct vrdma_create_cq_arg *arg);
int vrdma_resize_cq(struct ib_cq *ibcq, vrdma_cqe_num cqe,
		    struct ib_udata *udata);
int vrdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int vrdma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int vrdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
bool vrdma_cq_is_empty(struct vrdma_cq *cq);
int vrdma_cq_renew(struct vrdma_cq *cq);
void vrdma_cq_clean(struct vrdma_cq *cq, struct vrdma_qp *qp);
void vrdma_cqs_wake(struct vrdma_dev *dev);
int vrdma_cqs_alloc(struct vrdma_dev *dev);
void vrdma_cqs_init(struct vrdma_dev *dev);
void vrdma_cqs_free(struct vrdma_dev *dev);

/* srq_direct.c */
int vrdma_srq_direct_ring(struct vrdma_srq *srq);
int vrdma_srq_direct_create(struct vrdma_srq *srq, struct ib_udata *udata);
void vrdma_srq_direct_free(struct vrdma_srq *srq);

/* srq.c */
extern const struct ib_device_ops vrdma_srq_ops;
bool vrdma_srq_possible(struct virtio_device *vdev);
int vrdma_srqs_init(struct vrdma_dev *dev);
void vrdma_srqs_free(struct vrdma_dev *dev);

/* qp.c */
int vrdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata);
int vrdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
int vrdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
int vrdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* mcast.c */
extern const struct ib_device_ops vrdma_mcast_ops;

#endif /* VRDMA_QUEUE_H */
