/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues. WQEs complete in any order, so the wr_id of a WQE is
 * not found by its slot: each WQE has an entry with its wr_id until it
 * completes. There are at least as many slots as entries.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "vrdma.h"

static void vrdma_srq_free(struct vrdma_srq *srq)
{
	vrdma_wq_free(&srq->wq);
	free(srq->unused);
	if (srq->map)
		munmap(srq->map, srq->map_size);
	free(srq);
}

static int vrdma_srq_map(struct vrdma_srq *srq,
			 const struct virtio_rdma_create_srq_resp *resp,
			 const struct ibv_srq_attr *attr)
{
	struct virtio_rdma_srq_page *page;
	uint32_t i;

	page = mmap(NULL, resp->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		    srq->srq.context->cmd_fd, resp->mmap_offset);
	if (page == MAP_FAILED)
		return errno;
	srq->map = page;
	if (to_vctx(srq->srq.context)->direct)
		srq->wq.awake = &page->awake;
	srq->bell = VIRTIO_RDMA_DOORBELL_SRQ | resp->srqn;
	srq->map_size = resp->mmap_size;
	if (attr->max_wr > resp->slots)
		return EPROTO;
	srq->unused = calloc(attr->max_wr, sizeof(*srq->unused));
	if (!srq->unused)
		return ENOMEM;
	for (i = 0; i < attr->max_wr; i++)
		srq->unused[i] = i;
	srq->num_unused = attr->max_wr;
	return vrdma_wq_init(&srq->wq, (uint8_t *)srq->map + resp->ring_offset,
			     resp->slots, resp->slot_size, &page->producer,
			     attr->max_wr, attr->max_sge);
}

struct ibv_srq *vrdma_create_srq(struct ibv_pd *pd,
				 struct ibv_srq_init_attr *init)
{
	struct vrdma_context *ctx = to_vctx(pd->context);
	struct vrdma_create_srq_resp resp = {};
	struct ibv_create_srq cmd;
	struct vrdma_srq *srq;
	int ret;

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	ret = ibv_cmd_create_srq(pd, &srq->srq, init, &cmd, sizeof(cmd),
				 &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err;
	ret = vrdma_srq_map(srq, &resp.drv_payload, &init->attr);
	if (ret) {
		ibv_cmd_destroy_srq(&srq->srq);
		goto err;
	}
	srq->generation = atomic_fetch_add(&ctx->generation, 1);
	pthread_spin_lock(&ctx->srq_lock);
	srq->next = ctx->srqs;
	ctx->srqs = srq;
	pthread_spin_unlock(&ctx->srq_lock);
	return &srq->srq;

err:
	vrdma_srq_free(srq);
	errno = ret;
	return NULL;
}

int vrdma_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd;

	return ibv_cmd_modify_srq(srq, attr, mask, &cmd, sizeof(cmd));
}

int vrdma_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(srq, attr, &cmd, sizeof(cmd));
}

/*
 * No QP uses the SRQ any more. Completions of its WQEs that are still to be
 * dropped find no SRQ then: vrdma_srq_drop() holds srq_lock.
 */
int vrdma_destroy_srq(struct ibv_srq *ibsrq)
{
	struct vrdma_context *ctx = to_vctx(ibsrq->context);
	struct vrdma_srq *srq = to_vsrq(ibsrq);
	int ret = ibv_cmd_destroy_srq(ibsrq);
	struct vrdma_srq **link;

	if (ret)
		return ret;
	pthread_spin_lock(&ctx->srq_lock);
	for (link = &ctx->srqs; *link != srq; link = &(*link)->next)
		;
	*link = srq->next;
	pthread_spin_unlock(&ctx->srq_lock);
	vrdma_srq_free(srq);
	return 0;
}

static int vrdma_srq_put_recv(struct vrdma_srq *srq,
			      const struct ibv_recv_wr *wr)
{
	struct vrdma_wq *wq = &srq->wq;
	uint32_t entry;
	uint64_t id;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > wq->max_sge)
		return EINVAL;
	if (!srq->num_unused)
		return ENOMEM;
	entry = srq->unused[--srq->num_unused];
	id = (uint64_t)srq->generation << VRDMA_ID_GENERATION_SHIFT |
	     VRDMA_ID_RECV | VRDMA_ID_SRQ | entry;
	vrdma_recv_put(wq, wr, id);
	wq->wr_id[entry] = wr->wr_id;
	wq->head++;
	return 0;
}

int vrdma_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	struct vrdma_srq *srq = to_vsrq(ibsrq);
	struct ibv_recv_wr *first = wr, *none;
	struct vrdma_wq *wq = &srq->wq;
	int ret = 0, err = 0;
	uint32_t head;

	pthread_spin_lock(&wq->lock);
	head = wq->head;
	for (; wr; wr = wr->next) {
		ret = vrdma_srq_put_recv(srq, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	head -= wq->head;
	if (head)
		vrdma_wq_publish(wq);
	pthread_spin_unlock(&wq->lock);

	if (head && !vrdma_wq_ring(wq, ibsrq->context, srq->bell))
		err = ibv_cmd_post_srq_recv(ibsrq, NULL, &none);
	if (err) {
		*bad_wr = first;
		return err;
	}
	return ret;
}

/*
 * A WQE has completed: look up the program's wr_id and free the entry. Returns
 * false if the completion is to be dropped.
 */
bool vrdma_srq_retire(struct vrdma_srq *srq, uint64_t id, uint64_t *wr_id)
{
	uint32_t entry = id & VRDMA_ID_INDEX;
	struct vrdma_wq *wq = &srq->wq;
	bool known;

	if (srq->generation != id >> VRDMA_ID_GENERATION_SHIFT ||
	    entry >= wq->max_wr)
		return false;
	pthread_spin_lock(&wq->lock);
	known = srq->num_unused < wq->max_wr;
	if (known) {
		*wr_id = wq->wr_id[entry];
		srq->unused[srq->num_unused++] = entry;
	}
	pthread_spin_unlock(&wq->lock);
	return known;
}

/* A completion is dropped: free the entry that it holds, of whichever SRQ. */
void vrdma_srq_drop(struct vrdma_context *ctx, uint64_t id)
{
	struct vrdma_srq *srq;
	uint64_t wr_id;

	pthread_spin_lock(&ctx->srq_lock);
	for (srq = ctx->srqs; srq; srq = srq->next) {
		if (vrdma_srq_retire(srq, id, &wr_id))
			break;
	}
	pthread_spin_unlock(&ctx->srq_lock);
}
