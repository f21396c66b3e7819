/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_rdma: a driver for the virtio RDMA adapter.
 */
#ifndef VRDMA_H
#define VRDMA_H

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/workqueue.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <linux/virtio_rdma.h>

#include "virtio_rdma-abi.h"

#define VRDMA_PORT		1
/* No device has as many. */
#define VRDMA_MAX_COUNTERS	64
#define VRDMA_PAGE_SHIFT	12
#define VRDMA_PAGE_SIZE		BIT(VRDMA_PAGE_SHIFT)

/*
 * Idle virtqueues are kept at this ring size when they can be resized. No
 * object asks for as little, so a device that looks at the ring sizes finds
 * exactly the queues that were prepared for the object.
 */
#define VRDMA_RING_PARKED	2
#define VRDMA_DEPTH_MIN		4
#define VRDMA_RING_MIN		16
/* Its slots may have a page each, and the size of a mapping has 32 bits. */
#define VRDMA_SRQ_DEPTH_MAX	65536

/* A page table is one DMA buffer: this is what the page allocator gives. */
#define VRDMA_MAX_TABLE_SIZE	SZ_4M
#define VRDMA_MAX_TABLE_PAGES	(VRDMA_MAX_TABLE_SIZE / sizeof(__le64))

/* Before Linux 6.2 the RDMA core does not know FLUSH. */
#ifdef VRDMA_FLUSH
#define VRDMA_ACCESS_FLUSH	IB_ACCESS_FLUSH_GLOBAL
#else
#define VRDMA_ACCESS_FLUSH	0
#endif
#define VRDMA_ACCESS_REMOTE	(IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_READ | \
				 IB_ACCESS_REMOTE_ATOMIC | \
				 VRDMA_ACCESS_FLUSH)
#define VRDMA_ACCESS_MR		(IB_ACCESS_LOCAL_WRITE | VRDMA_ACCESS_REMOTE | \
				 IB_ACCESS_RELAXED_ORDERING)
/* Memory windows are bound to regions of processes only. */
#define VRDMA_ACCESS_USER_MR	(VRDMA_ACCESS_MR | IB_ACCESS_MW_BIND)

/* Pages that the device reads or writes and a process may map. */
struct vrdma_buf {
	struct kref ref;
	u32 npages;
	struct page *pages[];
};

/*
 * A virtqueue of a CQ, SQ or RQ with its slots. Counters run freely, and slot
 * n & mask belongs to the n-th buffer; the device takes and returns buffers
 * in order.
 */
struct vrdma_ring {
	spinlock_t lock;		/* of the virtqueue and the counters */
	struct virtqueue *vq;
	struct vrdma_buf *buf;
	u32 first_page;			/* of the slots in buf */
	u32 shift;			/* log2 of the slot size */
	u32 mask;			/* number of slots - 1 */
	u32 head;			/* buffers given to the device */
	u32 tail;			/* buffers that came back */
};

struct vrdma_ctrl {
	spinlock_t lock;		/* of the virtqueue and sleepers */
	struct virtqueue *vq;
	u32 sleepers;
};

/* The event virtqueue, if there is one */
struct vrdma_events {
	spinlock_t lock;		/* of the virtqueue and object tables */
	struct virtqueue *vq;
	struct virtio_rdma_event *bufs;
};

/* A completion virtqueue and the CQ that has it, if any. */
struct vrdma_cq_slot {
	spinlock_t lock;		/* of cq, against the interrupt */
	struct vrdma_cq *cq;
	struct vrdma_ring ring;
};

struct vrdma_dev {
	struct ib_device ibdev;
	struct virtio_device *vdev;
	struct device *dma_dev;
	struct ib_device_attr attr;
	u32 max_inline;
	u32 num_cq;			/* as the device counts them */
	u32 num_qp;			/* that have virtqueues */
	u32 num_srq;
	u64 mr_page_sizes;		/* of user regions */
	bool ring_reset;
	bool mapped_cq;
	bool cq_deep;
	bool cq_ring_arm;
	bool cqe_ex;
	bool reg_pages;
	bool gid_vlan;
	u32 num_counters;
	bool have_mac;
	u8 mac[ETH_ALEN];

	struct vrdma_ctrl ctrl;
	struct vrdma_events events;
	struct virtqueue **vqs;
	u32 ring_max;

	/* Creation and destruction of objects that own virtqueues */
	struct mutex vq_lock;
	struct vrdma_cq_slot *cqs;
	struct vrdma_qp **qps;
	unsigned long *qps_busy;
	struct vrdma_srq **srqs;
	unsigned long *srqs_busy;

	/* The NIC this adapter belongs to */
	struct mutex netdev_lock;
	struct net_device *netdev;
	struct notifier_block netdev_nb;
	struct work_struct port_work;
	struct work_struct fatal_work;
	bool dead;			/* work requests are flushed */
	bool port_active;
	bool rescan;			/* for addresses of a new NIC */
	bool registered;
};

struct vrdma_ucontext {
	struct ib_ucontext ibucontext;
};

struct vrdma_mmap_entry {
	struct rdma_user_mmap_entry rdma;
	struct vrdma_buf *buf;
};

struct vrdma_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct vrdma_ah {
	struct ib_ah ibah;
	struct virtio_rdma_av av;
};

struct vrdma_cq {
	struct ib_cq ibcq;
	struct vrdma_ring *ring;
	u32 cqn;
	u32 head;			/* completions consumed */
	/* Flags of REQ_NOTIFY_CQ; under the ring's lock */
	u32 armed;			/* 0: not armed */
	u32 choice;			/* what may interrupt */
	bool rearm;			/* once the interrupt has come */
	u32 armed_at;			/* completions when it was armed */
	u32 rearm_at;
	bool asked;			/* somebody wants to be notified */
	bool mapped;			/* a process polls it in memory */
	bool full_size;			/* every slot is needed */
	struct vrdma_mmap_entry *mmap;
};

struct vrdma_wq {
	struct vrdma_ring ring;
	bool flushing;			/* the device has nothing of it */
	u32 posted;			/* receives the kernel has in slots */
	u32 max_wr;
	u32 max_sge;
};

struct vrdma_qp {
	struct ib_qp ibqp;
	struct vrdma_wq sq;
	struct vrdma_wq rq;
	u32 max_inline;
	enum ib_qp_state state;
	enum ib_sig_type sig_type;
	bool user;
	struct vrdma_mmap_entry *mmap;
};

struct vrdma_srq {
	struct ib_srq ibsrq;
	struct vrdma_wq wq;
	const u32 *producer;		/* WQEs in slots, kernel's or process's */
	struct delayed_work feed;	/* those that wait for the virtqueue */
	u32 srqn;
	bool user;
	struct vrdma_mmap_entry *mmap;
};

struct vrdma_mw {
	struct ib_mw ibmw;
	u32 mwn;
};

struct vrdma_mr {
	struct ib_mr ibmr;
	u32 mrn;
	/* of a process */
	struct ib_umem *umem;
	int access;
	/* fast registration: see fastreg.c */
	__le64 *pages;
	dma_addr_t pages_dma;
	u32 max_pages;
	u32 npages;
	u32 list;
};

static inline struct vrdma_dev *to_vdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct vrdma_dev, ibdev);
}

/* To ask for a feature that the driver does not take is a BUG(). */
static inline bool vrdma_has_flush(const struct vrdma_dev *dev)
{
	return VRDMA_ACCESS_FLUSH &&
	       virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_FLUSH);
}

/* The device answers no more. */
static inline bool vrdma_is_dead(const struct vrdma_dev *dev)
{
	return virtqueue_is_broken(dev->ctrl.vq);
}

static inline struct vrdma_pd *to_vpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct vrdma_pd, ibpd);
}

static inline struct vrdma_ah *to_vah(struct ib_ah *ibah)
{
	return container_of(ibah, struct vrdma_ah, ibah);
}

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

static inline struct vrdma_mw *to_vmw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct vrdma_mw, ibmw);
}

static inline struct vrdma_mr *to_vmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct vrdma_mr, ibmr);
}

/* ctrl.c */
enum vrdma_context {
	VRDMA_MAY_SLEEP,
	VRDMA_ATOMIC,
};

void vrdma_ctrl_callback(struct virtqueue *vq);
void vrdma_ctrl_free(struct vrdma_dev *dev);
bool vrdma_needs_reset(struct vrdma_dev *dev);
int vrdma_ctrl(struct vrdma_dev *dev, enum virtio_rdma_cmd command,
	       const void *req, size_t req_len, void *rsp, size_t rsp_len,
	       enum vrdma_context context);

/* A command without response, for example one that destroys. */
#define vrdma_ctrl_do(dev, command, req) \
	vrdma_ctrl(dev, command, req, sizeof(*(req)), NULL, 0, VRDMA_MAY_SLEEP)
#define vrdma_ctrl_ask(dev, command, req, rsp) \
	vrdma_ctrl(dev, command, req, sizeof(*(req)), rsp, sizeof(*(rsp)), \
		   VRDMA_MAY_SLEEP)
/* What a device that is gone no longer has needs no destruction. */
#define vrdma_ctrl_destroy(dev, command, req) ({ \
	int __ret = vrdma_ctrl_do(dev, command, req); \
	__ret == -EIO ? 0 : __ret; })

/* fatal.c */
void vrdma_fatal(struct vrdma_dev *dev);
void vrdma_fatal_work(struct work_struct *work);
int vrdma_flush(struct vrdma_cq *cq, int num, struct ib_wc *wc);

/* event.c */
void vrdma_event_callback(struct virtqueue *vq);
void vrdma_events_lock(struct vrdma_dev *dev);
void vrdma_events_unlock(struct vrdma_dev *dev);
int vrdma_events_start(struct vrdma_dev *dev);

/* ring.c */
struct vrdma_buf *vrdma_buf_alloc(u32 npages);
void vrdma_buf_put(struct vrdma_buf *buf);
void vrdma_vq_empty(struct virtqueue *vq);
int vrdma_vq_grow(struct vrdma_dev *dev, struct virtqueue *vq, u32 depth);
int vrdma_vq_park(struct vrdma_dev *dev, struct virtqueue *vq);
u32 vrdma_ring_pages(u32 slots, u32 shift);
void vrdma_ring_init(struct vrdma_ring *ring, struct vrdma_buf *buf,
		     u32 first_page, u32 slots, u32 shift);
int vrdma_ring_add(struct vrdma_ring *ring, u32 offset, u32 len, bool in);
bool vrdma_ring_reap(struct vrdma_ring *ring);

static inline u32 vrdma_ring_slots(const struct vrdma_ring *ring)
{
	return ring->mask + 1;
}

static inline void *vrdma_ring_slot(const struct vrdma_ring *ring, u32 n)
{
	size_t at = (size_t)(n & ring->mask) << ring->shift;

	return page_address(ring->buf->pages[ring->first_page +
					     (at >> PAGE_SHIFT)]) +
	       offset_in_page(at);
}

/* mmap.c */
int vrdma_alloc_ucontext(struct ib_ucontext *ibucontext,
			 struct ib_udata *udata);
void vrdma_dealloc_ucontext(struct ib_ucontext *ibucontext);
void vrdma_disassociate_ucontext(struct ib_ucontext *ibucontext);
struct vrdma_mmap_entry *vrdma_mmap_insert(struct ib_udata *udata,
					   struct vrdma_buf *buf);
void vrdma_mmap_remove(struct vrdma_mmap_entry *entry);
void vrdma_mmap_free(struct rdma_user_mmap_entry *rdma);
int vrdma_mmap(struct ib_ucontext *ibucontext, struct vm_area_struct *vma);
int vrdma_respond(struct ib_udata *udata, const void *resp, size_t len);

/* netdev.c */
int vrdma_netdev_init(struct vrdma_dev *dev);
void vrdma_netdev_exit(struct vrdma_dev *dev);
void vrdma_port_work(struct work_struct *work);

/* verbs.c */
int vrdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata);
void vrdma_get_dev_fw_str(struct ib_device *ibdev, char *str);
int vrdma_query_port(struct ib_device *ibdev, u32 port,
		     struct ib_port_attr *attr);
int vrdma_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable);
enum rdma_link_layer vrdma_get_link_layer(struct ib_device *ibdev, u32 port);
int vrdma_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
int vrdma_add_gid(const struct ib_gid_attr *attr, void **context);
int vrdma_del_gid(const struct ib_gid_attr *attr, void **context);
int vrdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vrdma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int vrdma_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		    struct ib_udata *udata);
int vrdma_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int vrdma_destroy_ah(struct ib_ah *ibah, u32 flags);

/* cq.c */
int vrdma_do_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		       struct ib_udata *udata);
int vrdma_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata);
int vrdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int vrdma_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int vrdma_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void vrdma_cq_callback(struct virtqueue *vq);
void vrdma_cq_clean(struct vrdma_cq *cq, u32 qpn);
void vrdma_cqs_free(struct vrdma_dev *dev);

/* qp.c */
int vrdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata);
int vrdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
int vrdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
int vrdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* srq.c */
extern const struct ib_device_ops vrdma_srq_ops;
bool vrdma_srq_possible(struct virtio_device *vdev);
int vrdma_srqs_init(struct vrdma_dev *dev);
void vrdma_srqs_free(struct vrdma_dev *dev);
void vrdma_srq_event(struct vrdma_dev *dev, u32 srqn, struct ib_event *event);

/* mcast.c, mw.c */
extern const struct ib_device_ops vrdma_mcast_ops;
extern const struct ib_device_ops vrdma_mw_ops;

/* wr.c */
u32 vrdma_send_shift(const struct ib_qp_cap *cap);
u32 vrdma_recv_shift(u32 max_sge);
void vrdma_wq_reap(struct vrdma_wq *wq);
int vrdma_wq_give(struct vrdma_wq *wq, const u32 *producer);
int vrdma_wq_post_recv(struct vrdma_wq *wq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr);
int vrdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr);
int vrdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr);

/* table.c */
struct vrdma_table {
	dma_addr_t pages;		/* what the device gets */
	u32 npages;
	u32 page_shift;
	u32 levels;			/* 0: a flat list */
	__le64 *flat;
	struct vrdma_table_node *nodes;
	u32 num_nodes;
};

u64 vrdma_table_reach(const struct vrdma_dev *dev);
int vrdma_table_init(struct vrdma_dev *dev, struct vrdma_table *table,
		     struct ib_umem *umem, u64 iova);
void vrdma_table_free(struct vrdma_dev *dev, struct vrdma_table *table);

/* mr.c */
struct ib_mr *vrdma_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *vrdma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 virt_addr, int access,
				struct ib_udata *udata);
struct ib_mr *vrdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 virt_addr, int access,
				  struct ib_pd *ibpd, struct ib_udata *udata);
int vrdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
void vrdma_mr_set_keys(struct vrdma_mr *mr,
		       const struct virtio_rdma_mr_rsp *rsp);

/* fastreg.c */
struct ib_mr *vrdma_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			     u32 max_num_sg);
void vrdma_free_page_lists(struct vrdma_dev *dev, struct vrdma_mr *mr);
int vrdma_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		    unsigned int *offset);
int vrdma_fill_reg_mr(const struct ib_reg_wr *wr,
		      struct virtio_rdma_sq_wqe *wqe);

/* counters.c */
void vrdma_counters_init(struct vrdma_dev *dev);

#endif /* VRDMA_H */
