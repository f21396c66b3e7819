/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue pairs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vrdma.h"

int vrdma_init_wq(struct vrdma_wq *wq, void *slots, uint32_t count,
		  uint32_t size, uint32_t *producer, uint32_t max_wr,
		  uint32_t max_sge)
{
	wq->wr_id = calloc(count, sizeof(*wq->wr_id));
	if (!wq->wr_id)
		return ENOMEM;
	pthread_spin_init(&wq->lock, PTHREAD_PROCESS_PRIVATE);
	wq->slots = slots;
	wq->slot_size = size;
	wq->mask = count - 1;
	wq->producer = producer;
	wq->max_wr = max_wr;
	wq->max_sge = max_sge;
	return 0;
}

void vrdma_free_wq(struct vrdma_wq *wq)
{
	if (wq->wr_id)
		pthread_spin_destroy(&wq->lock);
	free(wq->wr_id);
}

static void free_qp(struct vrdma_qp *qp)
{
	vrdma_free_wq(&qp->sq);
	vrdma_free_wq(&qp->rq);
	if (qp->map)
		munmap(qp->map, qp->map_size);
	free(qp);
}

static int map_qp(struct vrdma_qp *qp, struct ibv_context *ctx,
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
	ret = vrdma_init_wq(&qp->sq, (uint8_t *)qp->map + resp->sq_offset,
			    resp->sq_slots, resp->sq_slot_size,
			    &page->sq_producer, cap->max_send_wr,
			    cap->max_send_sge);
	if (ret || qp->srq)
		return ret;
	return vrdma_init_wq(&qp->rq, (uint8_t *)qp->map + resp->rq_offset,
			     resp->rq_slots, resp->rq_slot_size,
			     &page->rq_producer, cap->max_recv_wr,
			     cap->max_recv_sge);
}

static void set_entry(struct vrdma_context *ctx, struct ibv_qp *ibqp,
		      struct vrdma_qp *entry)
{
	vrdma_lock_cqs(ibqp);
	ctx->qps[ibqp->qp_num] = entry;
	vrdma_unlock_cqs(ibqp);
}

/* The plain command takes no flags, not even an empty set. */
static int create(struct ibv_context *ctx, struct vrdma_qp *qp,
		  struct ibv_qp_init_attr_ex *attr,
		  struct virtio_rdma_create_qp_resp *resp)
{
	struct ibv_qp_init_attr_ex known = *attr;
	int ret;

	vrdma_probe_qp_ex(qp);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    attr->create_flags) {
		struct vrdma_create_qp_flags_resp its = {};
		struct ibv_create_qp_ex cmd;

		ret = ibv_cmd_create_qp_ex2(ctx, &qp->vqp, &known, &cmd,
					    sizeof(cmd), &its.ibv_resp,
					    sizeof(its));
		*resp = its.drv_payload;
	} else {
		struct vrdma_create_qp_resp its = {};
		struct ibv_create_qp cmd;

		known.comp_mask &= ~IBV_QP_INIT_ATTR_CREATE_FLAGS;
		ret = ibv_cmd_create_qp_ex(ctx, &qp->vqp, &known, &cmd,
					   sizeof(cmd), &its.ibv_resp,
					   sizeof(its));
		*resp = its.drv_payload;
	}
	if (!ret)
		vrdma_probed_qp_ex(qp);
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
	pthread_mutex_lock(&ctx->qp_mutex);
	ret = create(ibctx, qp, attr, &resp);
	if (ret)
		goto err_unlock;
	if (ibqp->qp_num >= ctx->max_qp) {
		ret = EPROTO;
		goto err_destroy;
	}
	if (extended && attr->send_ops_flags & IBV_QP_EX_WITH_FLUSH &&
	    !qp->has_wr_flush) {
		ret = EOPNOTSUPP;
		goto err_destroy;
	}
	ret = map_qp(qp, ibctx, &resp, &attr->cap);
	if (ret)
		goto err_destroy;
	if (extended)
		vrdma_init_qp_ex(qp);
	qp->generation = atomic_fetch_add(&ctx->generation, 1);
	ibqp->send_cq = attr->send_cq;
	ibqp->recv_cq = attr->recv_cq;
	set_entry(ctx, ibqp, qp);
	pthread_mutex_unlock(&ctx->qp_mutex);
	return ibqp;

err_destroy:
	ibv_cmd_destroy_qp(ibqp);
err_unlock:
	pthread_mutex_unlock(&ctx->qp_mutex);
err:
	free_qp(qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *vrdma_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
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

static void forget(struct vrdma_wq *wq)
{
	pthread_spin_lock(&wq->lock);
	atomic_store(&wq->tail, wq->head);
	pthread_spin_unlock(&wq->lock);
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

	/* What the QP had to do, and completions not yet polled, are gone. */
	vrdma_lock_cqs(ibqp);
	qp->generation = atomic_fetch_add(&ctx->generation, 1);
	forget(&qp->sq);
	if (qp->srq)
		vrdma_clean_cq(qp);
	else
		forget(&qp->rq);
	vrdma_unlock_cqs(ibqp);
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

	/* Once the kernel has destroyed it, its number may be another QP's. */
	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_destroy_qp(ibqp);
	if (!ret) {
		vrdma_lock_cqs(ibqp);
		if (qp->srq)
			vrdma_clean_cq(qp);
		ctx->qps[ibqp->qp_num] = NULL;
		vrdma_unlock_cqs(ibqp);
	}
	pthread_mutex_unlock(&ctx->qp_mutex);
	if (!ret)
		free_qp(qp);
	return ret;
}
