/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The libibverbs provider of the virtio RDMA adapter.
 *
 * Queues are slots of memory shared with the kernel; see virtio_rdma-abi.h.
 *
 * Layers, bottom to top. Calls go down only, within a layer to files further
 * left; libibverbs reaches all of them by the table of operations in device.c.
 *
 *   base     abi.h compat.h vrdma.h
 *   objects  mr.c ah.c
 *   queues   wq.c srq.c cq.c cq_ex.c
 *   posting  post.c mw.c post_ex.c
 *   device   qp.c device.c
 */
#ifndef VRDMA_H
#define VRDMA_H

#include <endian.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <util/util.h>

#include "abi.h"
#include "linux/virtio_rdma.h"

/*
 * The wr_id that the device gets is not the program's, but identifies the WQE.
 * The upper half is the generation of the QP, which a reset changes: it shows
 * completions from before a reset, or of an earlier QP with the same number.
 * The lower half is the number of the WQE, with a bit for receive queues. For a
 * WQE of an SRQ both bits are set, the upper half is the generation of the SRQ,
 * and the lower half has the index of the entry.
 */
#define VRDMA_ID_RECV (1U << 31)
#define VRDMA_ID_SRQ (1U << 30)
#define VRDMA_ID_INDEX (VRDMA_ID_SRQ - 1)
#define VRDMA_ID_GENERATION_SHIFT 32

struct vrdma_device {
	struct verbs_device vdev;
};

/*
 * The QP of a number and the CQs of its sends and receives, or all NULL. An
 * entry changes with both CQs locked. With one CQ locked, the QP may be used
 * only if the entry names that CQ: otherwise another thread may destroy it.
 */
struct vrdma_qp_entry {
	struct vrdma_qp *qp;
	_Atomic(struct vrdma_cq *) send_cq;
	_Atomic(struct vrdma_cq *) recv_cq;
};

struct vrdma_context {
	struct verbs_context vctx;
	/* The device reads mapped queues itself; else the kernel submits. */
	bool direct;
	bool mw;
	bool flush;
	bool atomic_write;
	uint32_t *doorbell;		/* NULL: the kernel rings */
	struct virtio_rdma_doorbell_shadow *shadow;	/* NULL: none */
	uint32_t max_qp;
	struct vrdma_qp_entry *qps;	/* by qpn */
	pthread_mutex_t qp_mutex;	/* of changes of qps */
	atomic_uint generation;
	pthread_spinlock_t srq_lock;	/* of the list of SRQs */
	struct vrdma_srq *srqs;
};

struct vrdma_cq {
	struct verbs_cq vcq;
	pthread_spinlock_t lock;
	/* Of direct CQs; the kernel polls others. */
	void *map;			/* else NULL */
	size_t map_size;
	struct virtio_rdma_cq_page *page;
	uint8_t *slots;
	uint32_t slot_size;
	uint32_t mask;			/* number of slots - 1 */
	uint32_t head;			/* completions consumed */
	/* Of CQs that the kernel polls: what vrdma_cq_clean() has polled */
	struct ibv_wc *polled;		/* not translated for the program */
	uint32_t num_polled;
	uint32_t next_polled;
	/* A program may arm a CQ that it is polling. */
	pthread_spinlock_t arm_lock;	/* of the next two */
	uint32_t arm;			/* the last request, as in the page */
	bool armed_next;		/* an event for any completion is due */
	/* Extended polling: the current completion */
	struct ibv_wc wc;
	uint16_t vlan;			/* 0: none */
};

struct vrdma_wq {
	pthread_spinlock_t lock;
	uint8_t *slots;
	uint32_t slot_size;
	uint32_t mask;			/* number of slots - 1 */
	uint32_t *producer;
	const uint32_t *awake;		/* NULL: the kernel submits WQEs */
	uint32_t head;			/* WQEs written */
	_Atomic(uint32_t) tail;		/* WQEs completed */
	uint32_t max_wr;
	uint32_t max_sge;
	uint64_t *wr_id;		/* of the slot, or of an SRQ's entry */
};

struct vrdma_srq {
	struct ibv_srq srq;
	struct vrdma_srq *next;
	void *map;
	size_t map_size;
	uint32_t generation;
	uint32_t bell;			/* what rings for it */
	struct vrdma_wq wq;
	uint32_t *unused;		/* a stack of free entries */
	uint32_t num_unused;
};

struct vrdma_qp {
	struct verbs_qp vqp;
	uint32_t qpn;			/* in CQEs; peers know qp_num */
	void *map;
	size_t map_size;
	uint32_t generation;
	uint32_t max_inline;
	struct vrdma_wq sq;
	struct vrdma_wq rq;		/* without an SRQ */
	struct vrdma_srq *srq;
	/* Extended posting, from wr_start to wr_complete */
	uint32_t first;
	int error;
	bool has_wr_flush;		/* libibverbs has this member */
};

struct vrdma_ah {
	struct ibv_ah ah;
	struct virtio_rdma_av av;
};

static inline struct vrdma_context *to_vctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct vrdma_context, vctx.context);
}

static inline struct vrdma_cq *to_vcq(struct ibv_cq *cq)
{
	return container_of(cq, struct vrdma_cq, vcq.cq);
}

static inline struct vrdma_qp *to_vqp(struct ibv_qp *qp)
{
	return container_of(qp, struct vrdma_qp, vqp.qp);
}

static inline struct vrdma_srq *to_vsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct vrdma_srq, srq);
}

static inline struct vrdma_ah *to_vah(struct ibv_ah *ah)
{
	return container_of(ah, struct vrdma_ah, ah);
}

/* mr.c */
struct ibv_pd *vrdma_alloc_pd(struct ibv_context *ctx);
int vrdma_dealloc_pd(struct ibv_pd *pd);
struct ibv_pd *vrdma_import_pd(struct ibv_context *ctx, uint32_t handle);
void vrdma_unimport_pd(struct ibv_pd *pd);
struct ibv_mr *vrdma_import_mr(struct ibv_pd *pd, uint32_t handle);
void vrdma_unimport_mr(struct ibv_mr *mr);
struct ibv_mr *vrdma_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access);
struct ibv_mr *vrdma_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				   size_t length, uint64_t hca_va, int fd,
				   int access);
int vrdma_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		   void *addr, size_t length, int access);
int vrdma_dereg_mr(struct verbs_mr *vmr);

/* wq.c */
int vrdma_wq_init(struct vrdma_wq *wq, void *slots, uint32_t count,
		  uint32_t size, uint32_t *producer, uint32_t max_wr,
		  uint32_t max_sge);
void vrdma_wq_free(struct vrdma_wq *wq);
void vrdma_wq_drop(struct vrdma_wq *wq);
struct virtio_rdma_wqe_slot *vrdma_wq_next_slot(struct vrdma_wq *wq);
bool vrdma_wq_full(struct vrdma_wq *wq);
void vrdma_wq_advance(struct vrdma_wq *wq, uint64_t wr_id);
void vrdma_wq_publish(struct vrdma_wq *wq);
bool vrdma_wq_ring(const struct vrdma_wq *wq, struct ibv_context *ctx,
		   uint32_t bell);
void vrdma_wqe_put_sges(struct virtio_rdma_sge *to, const struct ibv_sge *from,
			size_t num);
void vrdma_recv_put(struct vrdma_wq *wq, const struct ibv_recv_wr *wr,
		    uint64_t id);

/* ah.c */
struct ibv_ah *vrdma_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int vrdma_destroy_ah(struct ibv_ah *ah);

/* srq.c */
struct ibv_srq *vrdma_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *init);
int vrdma_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int vrdma_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int vrdma_destroy_srq(struct ibv_srq *srq);
int vrdma_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr);
bool vrdma_srq_retire(struct vrdma_srq *srq, uint64_t id, uint64_t *wr_id);
void vrdma_srq_drop(struct vrdma_context *ctx, uint64_t id);

/* cq.c */
struct ibv_cq *vrdma_create_cq(struct ibv_context *ctx, int cqe,
			       struct ibv_comp_channel *channel, int vector);
int vrdma_cq_next(struct vrdma_cq *cq, struct ibv_wc *wc);
void vrdma_cq_consumed(struct vrdma_cq *cq);
int vrdma_resize_cq(struct ibv_cq *cq, int cqe);
int vrdma_destroy_cq(struct ibv_cq *cq);
int vrdma_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int vrdma_req_notify_cq(struct ibv_cq *cq, int solicited_only);
void vrdma_cq_event(struct ibv_cq *cq);
void vrdma_qp_lock_cqs(struct ibv_qp *qp);
void vrdma_qp_unlock_cqs(struct ibv_qp *qp);
void vrdma_cq_clean(struct vrdma_qp *qp);

/* cq_ex.c */
struct ibv_cq_ex *vrdma_create_cq_ex(struct ibv_context *ctx,
				     struct ibv_cq_init_attr_ex *attr);

/* post.c */
int vrdma_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr);
int vrdma_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);

void vrdma_wqe_put_ud(struct virtio_rdma_sq_wqe *wqe, struct ibv_ah *ah,
		      uint32_t qpn, uint32_t qkey);
void vrdma_wqe_put_bind(struct virtio_rdma_sq_wqe *wqe, const struct ibv_mw *mw,
			uint32_t rkey, const struct ibv_mw_bind_info *info);
struct virtio_rdma_sq_wqe *vrdma_send_begin(struct vrdma_qp *qp);
void vrdma_send_end(struct vrdma_qp *qp, struct virtio_rdma_sq_wqe *wqe,
		    uint32_t opcode, uint32_t flags, uint32_t payload,
		    uint64_t wr_id);
int vrdma_send_submit(struct vrdma_qp *qp, uint32_t first);

/* mw.c */
struct ibv_mw *vrdma_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vrdma_dealloc_mw(struct ibv_mw *mw);
int vrdma_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		  struct ibv_mw_bind *bind);

/* post_ex.c */
bool vrdma_qp_ex_can(const struct vrdma_context *ctx, enum ibv_qp_type type,
		     uint64_t ops);
/* To be called before and after the creation of any QP */
void vrdma_qp_ex_probe(struct vrdma_qp *qp);
void vrdma_qp_ex_probed(struct vrdma_qp *qp);
void vrdma_qp_ex_init(struct vrdma_qp *qp);

/* qp.c */
struct ibv_qp *vrdma_create_qp_ex(struct ibv_context *ctx,
				  struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vrdma_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr);
int vrdma_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int vrdma_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
int vrdma_destroy_qp(struct ibv_qp *qp);

#endif /* VRDMA_H */
