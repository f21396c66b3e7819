/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Completion queues, queue pairs and shared receive queues.
 */
#ifndef VRDMA_QUEUE_H
#define VRDMA_QUEUE_H

#include "mem.h"

/* A slot for a completion */
#define CQE_SLOT_SHIFT		6
#define CQE_SLOT_SIZE		BIT(CQE_SLOT_SHIFT)
/* What precedes the WQE in its slot */
#define WQE_SLOT_HEADER		offsetof(struct virtio_rdma_wqe_slot, wqe)

/* An event queue, and the CQs whose events go there */
struct vrdma_eq {
	spinlock_t lock;		/* of all except additions to cqs */
	struct vrdma_ring ring;		/* slots are struct virtio_rdma_cqn */
	struct vrdma_buf *buf;
	struct xarray cqs;		/* by cqn */
};

/* A completion virtqueue, and the CQ that uses it, if any */
struct vrdma_vq_cq {
	spinlock_t lock;		/* of cq */
	struct vrdma_cq *cq;
	struct vrdma_ring ring;
	struct vrdma_buf *buf;
};

struct vrdma_cq {
	struct ib_cq ibcq;
	struct vrdma_ring *ring;	/* its lock guards head to rearm_at */
	u32 cqn;
	u32 head;			/* completions consumed by the kernel */
	u32 armed;			/* VIRTIO_RDMA_NOTIFY_*; 0: not armed */
	/* Of direct CQs */
	struct vrdma_area *area;
	struct vrdma_ring slots;	/* ring */
	struct vrdma_eq *eq;
	u32 events;			/* so far, at most one of a request */
	struct vrdma_mmap_entry *mmap;	/* NULL: the kernel polls it */
	/* Of CQs with a virtqueue */
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
	bool notify_missed;		/* an event while num_wqs was 0 */
};

/* A work request of the kernel, until it completes */
struct vrdma_request {
	u64 wr_id;
	u32 length;			/* of a receive's buffers */
	bool silent;			/* completes only with an error */
	bool busy;			/* of an SRQ: posted */
};

/* How to post to a direct queue */
struct vrdma_bell {
	__le32 *producer;
	const __le32 *awake;
	void __iomem *page;
	u32 number;			/* to write there */
};

struct vrdma_wq {
	struct vrdma_dev *dev;
	struct vrdma_cq *cq;		/* of a queue pair's */
	struct vrdma_ring ring;
	struct vrdma_bell bell;
	const u32 *user_producer;	/* WQEs that a process has written */
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
	struct vrdma_area *area;	/* of both queues */
	struct delayed_work flush_work;	/* see vrdma_qp_flush_work() */
	u32 flush_seen[2];		/* completed at last check: SQ, RQ */
	struct vrdma_mmap_entry *mmap;
};

struct vrdma_srq {
	struct ib_srq ibsrq;
	struct vrdma_wq wq;
	u32 srqn;
	bool user;
	struct vrdma_area *area;
	struct vrdma_mmap_entry *mmap;
};

/*
 * Where queues are, and how the device learns of work and the driver of
 * completions: direct.c for queues in memory, vq.c for virtqueues. A device has
 * one form for all of them.
 */
struct vrdma_form {
	/* Of a virtqueue at the place of a CQ's; NULL: it is not used */
	vq_callback_t *(*cq_callback)(const struct vrdma_dev *dev, u32 i);
	/* Before virtqueues exist, when they do, and when the device runs */
	int (*alloc)(struct vrdma_dev *dev);
	void (*init)(struct vrdma_dev *dev);
	int (*start)(struct vrdma_dev *dev);
	/* After a reset of the device, or after alloc() */
	void (*free)(struct vrdma_dev *dev);

	/* Have the device create the object. For a process, fill in @resp. */
	int (*create_cq)(struct vrdma_cq *cq, u32 vector,
			 struct ib_udata *udata,
			 struct virtio_rdma_create_cq_resp *resp);
	/* The device has destroyed it. */
	void (*free_cq)(struct vrdma_cq *cq);
	/* Takes vrdma_objects_lock(). */
	int (*resize_cq)(struct vrdma_cq *cq, u32 cqe, struct ib_udata *udata);
	/* See vrdma_cq_renew(). */
	int (*renew_cq)(struct vrdma_cq *cq);
	/* With the lock of the CQ's ring held */
	bool (*has_cqe)(struct vrdma_cq *cq);
	/* @dead: flush what the device does not complete any more. */
	int (*poll_cq)(struct vrdma_cq *cq, int num, struct ib_wc *wc,
		       bool dead);
	/* Drop the completions of a QP that was destroyed or reset. */
	void (*clean_cq)(struct vrdma_cq *cq, struct vrdma_qp *qp);
	int (*notify_cq)(struct vrdma_cq *cq, u32 arm,
			 enum ib_cq_notify_flags flags);
	/* With the lock of events held */
	struct vrdma_cq *(*find_cq)(struct vrdma_dev *dev, u32 cqn);
	/* The device, or a CQ, is dead. */
	void (*wake_cqs)(struct vrdma_dev *dev);

	/* The caller has filled in @req, except the fields of the form. */
	int (*create_qp)(struct vrdma_qp *qp, struct ib_udata *udata,
			 struct virtio_rdma_create_qp_req *req,
			 struct virtio_rdma_create_qp_rsp *rsp);
	int (*create_srq)(struct vrdma_srq *srq, struct ib_udata *udata,
			  struct virtio_rdma_create_srq_req *req,
			  struct virtio_rdma_srqn *rsp);
	/* Their numbers are known. */
	void (*start_qp)(struct vrdma_qp *qp);
	void (*start_srq)(struct vrdma_srq *srq);
	/* Before the device destroys it */
	void (*stop_qp)(struct vrdma_qp *qp);
	/* Afterwards: then the device does not access their memory any more. */
	void (*free_qp)(struct vrdma_qp *qp);
	void (*free_srq)(struct vrdma_srq *srq);

	/* Raise ring.tail: slots before it are free. With the ring's lock */
	void (*reap)(struct vrdma_wq *wq);
	/* The next slot has a WQE of @len bytes. */
	int (*put)(struct vrdma_wq *wq, u32 len);
	/* Returns whether notify() is due. */
	bool (*publish)(struct vrdma_wq *wq);
	/* Without the lock */
	void (*notify)(struct vrdma_wq *wq);
	/* Have the device see what a process has posted. */
	int (*post_user)(struct vrdma_wq *wq);
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

static inline bool vrdma_cq_is_user(const struct vrdma_cq *cq)
{
	return cq->ibcq.uobject;
}

/* The counters of a direct CQ; the process that maps it may write to them. */
static inline struct virtio_rdma_direct_cq_page *
vrdma_cq_page(const struct vrdma_cq *cq)
{
	return page_address(cq->area->buf->pages[0]);
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

/* wr.c */
u32 vrdma_slots(u32 max_wr);
u32 vrdma_send_slot_shift(const struct ib_qp_cap *cap);
u32 vrdma_send_slot_inline(const struct ib_qp_cap *cap, u32 max_inline);
u32 vrdma_recv_slot_shift(u32 max_sge);
void vrdma_wq_reap(struct vrdma_wq *wq);
int vrdma_wq_post_recv(struct vrdma_wq *wq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);
int vrdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int vrdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

/* wc.c */
bool vrdma_wc_take(struct vrdma_cq *cq, const struct virtio_rdma_cqe_ex *ex,
		   struct ib_wc *wc);
void vrdma_wc_drop(struct vrdma_cq *cq, const struct virtio_rdma_cqe_ex *ex);
void vrdma_cqe_drop(struct vrdma_qp *qp, struct virtio_rdma_cqe *cqe);

/* flush.c */
int vrdma_flush_cq(struct vrdma_cq *cq, int num, struct ib_wc *wc);

/* cq_direct.c */
bool vrdma_cq_direct_has_cqe(struct vrdma_cq *cq);
int vrdma_cq_direct_poll(struct vrdma_cq *cq, int num, struct ib_wc *wc,
			 bool dead);
void vrdma_cq_direct_clean(struct vrdma_cq *cq, struct vrdma_qp *qp);
int vrdma_cq_direct_notify(struct vrdma_cq *cq, u32 arm,
			   enum ib_cq_notify_flags flags);
int vrdma_cq_direct_create(struct vrdma_cq *cq, u32 vector,
			   struct ib_udata *udata,
			   struct virtio_rdma_create_cq_resp *resp);
void vrdma_cq_direct_free(struct vrdma_cq *cq);
int vrdma_cq_direct_renew(struct vrdma_cq *cq);
int vrdma_cq_direct_resize(struct vrdma_cq *cq, u32 cqe,
			   struct ib_udata *udata);

/* direct.c */
extern const struct vrdma_form vrdma_direct_form;

/* vq.c */
extern const struct vrdma_form vrdma_vq_form;

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

/* srq.c */
extern const struct ib_device_ops vrdma_srq_ops;

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
