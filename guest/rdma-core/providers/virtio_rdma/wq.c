/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queues: what send queues, receive queues and SRQs have in common.
 */
#include <errno.h>
#include <stdlib.h>

#include "vrdma.h"

int vrdma_wq_init(struct vrdma_wq *wq, void *slots, uint32_t count,
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

void vrdma_wq_free(struct vrdma_wq *wq)
{
	if (wq->wr_id)
		pthread_spin_destroy(&wq->lock);
	free(wq->wr_id);
}

void vrdma_wq_drop(struct vrdma_wq *wq)
{
	pthread_spin_lock(&wq->lock);
	atomic_store(&wq->tail, wq->head);
	pthread_spin_unlock(&wq->lock);
}

struct virtio_rdma_wqe_slot *vrdma_wq_next_slot(struct vrdma_wq *wq)
{
	return (void *)(wq->slots + (wq->head & wq->mask) * wq->slot_size);
}

bool vrdma_wq_full(struct vrdma_wq *wq)
{
	return wq->head - atomic_load_explicit(&wq->tail,
					       memory_order_acquire) >=
	       wq->max_wr;
}

void vrdma_wq_advance(struct vrdma_wq *wq, uint64_t wr_id)
{
	wq->wr_id[wq->head & wq->mask] = wr_id;
	wq->head++;
}

/*
 * Count the WQEs as written. Pairs with the acquire in the device or the
 * kernel, which then reads the WQEs.
 */
void vrdma_wq_publish(struct vrdma_wq *wq)
{
	__atomic_store_n(wq->producer, wq->head, __ATOMIC_RELEASE);
}

/*
 * Mark a QP in the shadow of the doorbells. Returns false if the device does
 * not look there, and needs a doorbell.
 */
static bool vrdma_shadow_mark(struct virtio_rdma_doorbell_shadow *shadow,
			      uint32_t qpn)
{
	uint32_t word = qpn / 32;

	if (!__atomic_load_n(&shadow->awake, __ATOMIC_RELAXED))
		return false;
	__atomic_fetch_or(&shadow->marked[word], htole32(1U << qpn % 32),
			  __ATOMIC_RELAXED);
	/* A reader that sees this bit sees the other one. */
	__atomic_fetch_or(&shadow->summary[word / 32],
			  htole32(1U << word % 32), __ATOMIC_RELEASE);
	/* Either the device sees the bits, or this reads "not awake". */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&shadow->awake, __ATOMIC_RELAXED);
}

/* Ring for a QP or an SRQ. SRQs have no bits in the shadow. */
static void vrdma_ring(const struct vrdma_context *ctx, uint32_t bell)
{
	if (ctx->shadow && !(bell & VIRTIO_RDMA_DOORBELL_SRQ) &&
	    vrdma_shadow_mark(ctx->shadow, bell))
		return;
	__atomic_store_n(ctx->doorbell, htole32(bell), __ATOMIC_RELAXED);
}

/*
 * Have the device look at the WQEs that were published. Returns false if the
 * kernel has to do that.
 */
bool vrdma_wq_ring(const struct vrdma_wq *wq, struct ibv_context *ctx,
		   uint32_t bell)
{
	const struct vrdma_context *vctx = to_vctx(ctx);

	if (!wq->awake)
		return false;
	/* Either the device sees the producer, or this reads "not awake". */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(wq->awake, __ATOMIC_RELAXED))
		return true;
	if (!vctx->doorbell)
		return false;
	vrdma_ring(vctx, bell);
	return true;
}

void vrdma_wqe_put_sges(struct virtio_rdma_sge *to, const struct ibv_sge *from,
			size_t num)
{
	size_t i;

	for (i = 0; i < num; i++) {
		to[i].addr = htole64(from[i].addr);
		to[i].length = htole32(from[i].length);
		to[i].lkey = htole32(from[i].lkey);
	}
}

/* Write a receive WQE to the next slot. The queue must not be full. */
void vrdma_recv_put(struct vrdma_wq *wq, const struct ibv_recv_wr *wr,
		    uint64_t id)
{
	struct virtio_rdma_wqe_slot *slot = vrdma_wq_next_slot(wq);
	struct virtio_rdma_rq_wqe *wqe = (void *)slot->wqe;

	wqe->num_sge = htole32(wr->num_sge);
	wqe->wr_id = htole64(id);
	vrdma_wqe_put_sges((void *)(wqe + 1), wr->sg_list, wr->num_sge);
	slot->length = sizeof(*wqe) +
		       wr->num_sge * sizeof(struct virtio_rdma_sge);
}
