/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "compat.h"
#include "vrdma.h"

static void vrdma_qp_free(struct vrdma_qp *qp)
{
	vrdma_wq_free(&qp->sq);
	vrdma_wq_free(&qp->rq);
	if (qp->map)
		munmap(qp->map, qp->map_size);
	free(qp);
}

static int vrdma_qp_map(struct vrdma_qp *qp, struct ibv_context *ctx,
			const struct virtio_rdma_create_qp_resp *resp,
			const struct ibv_qp_cap *cap)
{
	struct virtio_rdma_qp_page *page;
	int ret;

	page = mmap(NULL, resp->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		    ctx->cmd_fd, resp->mmap_offset);
	if (page == MAP_FAILED)
		return errno;
	qp->map = page;
	qp->map_size = resp->mmap_size;
	qp->max_inline = cap->max_inline_data;
	ret = vrdma_wq_init(&qp->sq, (uint8_t *)qp->map + resp->sq_offset,
			    resp->sq_slots, resp->sq_slot_size,
			    &page->sq_producer, cap->max_send_wr,
			    cap->max_send_sge);
	if (to_vctx(ctx)->direct) {
		qp->sq.awake = &page->sq_awake;
		qp->rq.awake = &page->rq_awake;
	}
	if (ret || qp->srq)
		return ret;
	return vrdma_wq_init(&qp->rq, (uint8_t *)qp->map + resp->rq_offset,
			     resp->rq_slots, resp->rq_slot_size,
			     &page->rq_producer, cap->max_recv_wr,
			     cap->max_recv_sge);
}

/* With the CQs of the QP locked */
static void vrdma_qp_set_entry(struct vrdma_context *ctx, struct vrdma_qp *qp)
{
	struct vrdma_qp_entry *entry = &ctx->qps[qp->qpn];

	entry->qp = qp;
	atomic_store_explicit(&entry->send_cq, to_vcq(qp->vqp.qp.send_cq),
			      memory_order_relaxed);
	atomic_store_explicit(&entry->recv_cq, to_vcq(qp->vqp.qp.recv_cq),
			      memory_order_relaxed);
}

/*
 * Drop the completions and the entry of a QP that the kernel has destroyed,
 * unless vrdma_create_qp_ex() has done so for a new QP with that number. With
 * qp_mutex.
 */
static void vrdma_qp_retire(struct vrdma_context *ctx, struct vrdma_qp *qp)
{
	struct vrdma_qp_entry *entry = &ctx->qps[qp->qpn];

	if (entry->qp != qp)
		return;
	vrdma_qp_lock_cqs(&qp->vqp.qp);
	if (qp->srq)
		vrdma_cq_clean(qp);
	entry->qp = NULL;
	atomic_store_explicit(&entry->send_cq, NULL, memory_order_relaxed);
	atomic_store_explicit(&entry->recv_cq, NULL, memory_order_relaxed);
	vrdma_qp_unlock_cqs(&qp->vqp.qp);
}

/* The plain command accepts no IBV_QP_INIT_ATTR_CREATE_FLAGS, even with 0. */
static int vrdma_qp_create_cmd(struct ibv_context *ctx, struct vrdma_qp *qp,
			       struct ibv_qp_init_attr_ex *attr,
			       struct virtio_rdma_create_qp_resp *resp)
{
	struct ibv_qp_init_attr_ex known = *attr;
	int ret;

	vrdma_qp_ex_probe(qp);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    attr->create_flags) {
		struct vrdma_create_qp_flags_resp full = {};
		struct ibv_create_qp_ex cmd;

		ret = vrdma_cmd_create_qp_ex2(ctx, &qp->vqp, &known, &cmd,
					      sizeof(cmd), &full.ibv_resp,
					      sizeof(full));
		*resp = full.drv_payload;
	} else {
		struct vrdma_create_qp_resp full = {};
		struct ibv_create_qp cmd;

		known.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
		ret = ibv_cmd_create_qp_ex(ctx, &qp->vqp, &known, &cmd,
					   sizeof(cmd), &full.ibv_resp,
					   sizeof(full));
		*resp = full.drv_payload;
	}
	if (!ret)
		vrdma_qp_ex_probed(qp);
	attr->cap = known.cap;
	return ret;
}

struct ibv_qp *vrdma_create_qp_ex(struct ibv_context *ibctx,
				  struct ibv_qp_init_attr_ex *attr)
{
	struct vrdma_context *ctx = to_vctx(ibctx);
	struct virtio_rdma_create_qp_resp resp;
	struct vrdma_qp *qp;
	struct ibv_qp *ibqp;
	bool extended;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	ibqp = &qp->vqp.qp;
	extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ret = EOPNOTSUPP;
	if (attr->comp_mask & ~(IBV_QP_INIT_ATTR_PD |
				IBV_QP_INIT_ATTR_CREATE_FLAGS |
				IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) ||
	    (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	     attr->create_flags & ~IBV_QP_CREATE_BLOCK_SELF_MCAST_LB) ||
	    (extended && !vrdma_qp_ex_can(ctx, attr->qp_type,
					  attr->send_ops_flags)))
		goto err;
	if (attr->srq)
		qp->srq = to_vsrq(attr->srq);
	ret = vrdma_qp_create_cmd(ibctx, qp, attr, &resp);
	if (ret)
		goto err;
	qp->qpn = resp.qpn;
	if (qp->qpn >= ctx->max_qp) {
		ret = EPROTO;
		goto err_destroy;
	}
	if (extended && attr->send_ops_flags & IBV_QP_EX_WITH_FLUSH &&
	    !qp->has_wr_flush) {
		ret = EOPNOTSUPP;
		goto err_destroy;
	}
	ret = vrdma_qp_map(qp, ibctx, &resp, &attr->cap);
	if (ret)
		goto err_destroy;
	if (extended)
		vrdma_qp_ex_init(qp);
	qp->generation = atomic_fetch_add(&ctx->generation, 1);
	ibqp->send_cq = attr->send_cq;
	ibqp->recv_cq = attr->recv_cq;
	pthread_mutex_lock(&ctx->qp_mutex);
	/* The last QP with this number may still wait for its events. */
	if (ctx->qps[qp->qpn].qp)
		vrdma_qp_retire(ctx, ctx->qps[qp->qpn].qp);
	vrdma_qp_lock_cqs(ibqp);
	vrdma_qp_set_entry(ctx, qp);
	vrdma_qp_unlock_cqs(ibqp);
	pthread_mutex_unlock(&ctx->qp_mutex);
	return ibqp;

err_destroy:
	ibv_cmd_destroy_qp(ibqp);
err:
	vrdma_qp_free(qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *vrdma_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = vrdma_create_qp_ex(pd->context, &attr_ex);

	if (qp)
		attr->cap = attr_ex.cap;
	return qp;
}

int vrdma_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct vrdma_context *ctx = to_vctx(ibqp->context);
	struct vrdma_qp *qp = to_vqp(ibqp);
	struct ibv_modify_qp cmd;
	int ret;

	ret = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (ret || !(mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RESET)
		return ret;

	/* Drop all work requests, and completions that were not polled. */
	vrdma_qp_lock_cqs(ibqp);
	qp->generation = atomic_fetch_add(&ctx->generation, 1);
	vrdma_wq_drop(&qp->sq);
	if (qp->srq)
		vrdma_cq_clean(qp);
	else
		vrdma_wq_drop(&qp->rq);
	vrdma_qp_unlock_cqs(ibqp);
	return 0;
}

int vrdma_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init)
{
	struct ibv_query_qp cmd;

	return ibv_cmd_query_qp(ibqp, attr, mask, init, &cmd, sizeof(cmd));
}

int vrdma_destroy_qp(struct ibv_qp *ibqp)
{
	struct vrdma_context *ctx = to_vctx(ibqp->context);
	struct vrdma_qp *qp = to_vqp(ibqp);
	int ret;

	/*
	 * Without qp_mutex: this waits until other threads, which may create
	 * and destroy QPs, have acknowledged all events of the QP. Another QP
	 * may get the number meanwhile.
	 */
	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;
	pthread_mutex_lock(&ctx->qp_mutex);
	vrdma_qp_retire(ctx, qp);
	pthread_mutex_unlock(&ctx->qp_mutex);
	vrdma_qp_free(qp);
	return 0;
}
