/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues. A direct one is polled and armed in mapped memory: each
 * slot holds the number of its completion. The kernel polls and arms others.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "vrdma.h"

static int vrdma_cq_map(struct vrdma_cq *cq,
			const struct virtio_rdma_create_cq_resp *resp)
{
	void *map = mmap(NULL, resp->mmap_size, PROT_READ | PROT_WRITE,
			 MAP_SHARED, cq->vcq.cq.context->cmd_fd,
			 resp->mmap_offset);

	if (map == MAP_FAILED)
		return errno;
	cq->map = map;
	cq->map_size = resp->mmap_size;
	cq->page = cq->map;
	cq->slots = (uint8_t *)cq->map + resp->ring_offset;
	cq->slot_size = resp->slot_size;
	cq->mask = resp->slots - 1;
	return 0;
}

struct ibv_cq *vrdma_create_cq(struct ibv_context *ctx, int cqe,
			       struct ibv_comp_channel *channel, int vector)
{
	struct vrdma_create_cq_resp resp = {};
	struct ibv_create_cq cmd;
	struct vrdma_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&cq->arm_lock, PTHREAD_PROCESS_PRIVATE);
	ret = ibv_cmd_create_cq(ctx, cqe, channel, vector, &cq->vcq.cq,
				&cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (ret)
		goto err;
	if (to_vctx(ctx)->direct) {
		cq->vcq.cq.context = ctx;
		ret = vrdma_cq_map(cq, &resp.drv_payload);
		if (ret) {
			ibv_cmd_destroy_cq(&cq->vcq.cq);
			goto err;
		}
	}
	return &cq->vcq.cq;

err:
	pthread_spin_destroy(&cq->arm_lock);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	errno = ret;
	return NULL;
}

/*
 * Have the kernel move a direct CQ, with the completions that are not consumed,
 * to other memory. With the CQ locked.
 */
static int vrdma_cq_move(struct vrdma_cq *cq, int cqe)
{
	struct vrdma_resize_cq_resp resp = {};
	size_t old_size = cq->map_size;
	struct ibv_resize_cq cmd;
	void *old = cq->map;
	int ret;

	ret = ibv_cmd_resize_cq(&cq->vcq.cq, cqe, &cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;
	ret = vrdma_cq_map(cq, &resp.drv_payload);
	if (!ret)
		munmap(old, old_size);
	return ret;
}

int vrdma_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct ib_uverbs_resize_cq_resp resp;
	struct vrdma_cq *cq = to_vcq(ibcq);
	struct ibv_resize_cq cmd;
	int ret;

	if (!cq->map)
		return ibv_cmd_resize_cq(ibcq, cqe, &cmd, sizeof(cmd), &resp,
					 sizeof(resp));
	pthread_spin_lock(&cq->lock);
	pthread_spin_lock(&cq->arm_lock);
	ret = vrdma_cq_move(cq, cqe);
	pthread_spin_unlock(&cq->arm_lock);
	pthread_spin_unlock(&cq->lock);
	return ret;
}

int vrdma_destroy_cq(struct ibv_cq *ibcq)
{
	struct vrdma_cq *cq = to_vcq(ibcq);
	int ret = ibv_cmd_destroy_cq(ibcq);

	if (ret)
		return ret;
	if (cq->map)
		munmap(cq->map, cq->map_size);
	free(cq->polled);
	pthread_spin_destroy(&cq->arm_lock);
	pthread_spin_destroy(&cq->lock);
	free(cq);
	return 0;
}

/* Lock both CQs of a QP, always in the same order. */
void vrdma_qp_lock_cqs(struct ibv_qp *qp)
{
	struct vrdma_cq *a = to_vcq(qp->send_cq), *b = to_vcq(qp->recv_cq);

	if (a > b) {
		struct vrdma_cq *tmp = a;

		a = b;
		b = tmp;
	}
	pthread_spin_lock(&a->lock);
	if (a != b)
		pthread_spin_lock(&b->lock);
}

void vrdma_qp_unlock_cqs(struct ibv_qp *qp)
{
	struct vrdma_cq *a = to_vcq(qp->send_cq), *b = to_vcq(qp->recv_cq);

	if (a != b)
		pthread_spin_unlock(&b->lock);
	pthread_spin_unlock(&a->lock);
}

/*
 * The QP with the device's number @qpn, if its sends, or receives, complete to
 * @cq, else NULL.
 */
static struct vrdma_qp *vrdma_cq_find_qp(struct vrdma_cq *cq, uint32_t qpn,
					 bool recv)
{
	struct vrdma_context *ctx = to_vctx(cq->vcq.cq.context);
	struct vrdma_qp_entry *entry;
	struct vrdma_cq *found;

	if (qpn >= ctx->max_qp)
		return NULL;
	entry = &ctx->qps[qpn];
	found = atomic_load_explicit(recv ? &entry->recv_cq : &entry->send_cq,
				     memory_order_relaxed);
	return found == cq ? entry->qp : NULL;
}

/*
 * A WQE has completed to @cq. Translate the device's number of the QP, and its
 * wr_id @id, to those of the program. Returns false if the completion is to be
 * dropped.
 */
static bool vrdma_wqe_retire(struct vrdma_cq *cq, uint32_t qpn, uint64_t id,
			     struct ibv_wc *wc)
{
	bool recv = id & (VRDMA_ID_RECV | VRDMA_ID_SRQ);
	struct vrdma_qp *qp = vrdma_cq_find_qp(cq, qpn, recv);
	uint32_t tail, ahead;
	struct vrdma_wq *wq;

	if (!qp)
		return false;
	wc->qp_num = qp->vqp.qp.qp_num;
	if (id & VRDMA_ID_SRQ)
		return qp->srq && vrdma_srq_retire(qp->srq, id, &wc->wr_id);
	if (qp->generation != id >> VRDMA_ID_GENERATION_SHIFT ||
	    (recv && qp->srq))
		return false;
	wq = recv ? &qp->rq : &qp->sq;
	tail = atomic_load_explicit(&wq->tail, memory_order_relaxed);
	ahead = ((uint32_t)id - tail) & VRDMA_ID_INDEX;
	if (ahead > wq->mask)
		return false;
	wc->wr_id = wq->wr_id[(uint32_t)id & wq->mask];
	/* Unsignaled work requests before it have completed, too. */
	atomic_store_explicit(&wq->tail, tail + ahead + 1,
			      memory_order_release);
	return true;
}

/* libibverbs has other numbers for these opcodes than the device. */
static enum ibv_wc_opcode vrdma_wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case VIRTIO_RDMA_CQE_OP_FLUSH:
		return IBV_WC_FLUSH;
	case VIRTIO_RDMA_CQE_OP_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return opcode;
	}
}

static bool vrdma_cqe_read(struct vrdma_cq *cq,
			   const struct virtio_rdma_cqe_ex *ex,
			   struct ibv_wc *wc)
{
	const struct virtio_rdma_cqe *cqe = &ex->cqe;
	uint32_t flags = le32toh(cqe->wc_flags);

	if (!vrdma_wqe_retire(cq, le32toh(cqe->qp_num), le64toh(cqe->wr_id),
			      wc))
		return false;
	wc->status = cqe->status;
	wc->opcode = vrdma_wc_opcode(cqe->opcode);
	wc->vendor_err = le32toh(cqe->vendor_err);
	wc->byte_len = le32toh(cqe->byte_len);
	wc->wc_flags = 0;
	wc->imm_data = 0;
	if (flags & VIRTIO_RDMA_WC_GRH)
		wc->wc_flags |= IBV_WC_GRH;
	if (flags & VIRTIO_RDMA_WC_WITH_IMM) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		memcpy(&wc->imm_data, cqe->ex.imm_data, sizeof(wc->imm_data));
	} else if (flags & VIRTIO_RDMA_WC_WITH_INVALIDATE) {
		wc->wc_flags |= IBV_WC_WITH_INV;
		wc->invalidated_rkey = le32toh(cqe->ex.invalidate_rkey);
	}
	wc->src_qp = le32toh(cqe->src_qp);
	wc->pkey_index = le16toh(cqe->pkey_index);
	wc->slid = 0;
	wc->sl = cqe->sl;
	wc->dlid_path_bits = 0;
	cq->vlan = flags & VIRTIO_RDMA_WC_WITH_VLAN ? le16toh(ex->vlan) : 0;
	return true;
}

/* The n-th completion, or NULL if there is none yet. */
static struct virtio_rdma_cqe_ex *vrdma_cq_cqe(const struct vrdma_cq *cq,
					       uint32_t n)
{
	struct virtio_rdma_direct_cqe *slot =
		(void *)(cq->slots + (n & cq->mask) * cq->slot_size);
	uint32_t number =
		le32toh(__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE));

	return number == n + 1 ? &slot->ex : NULL;
}

/*
 * Is this a completion of a QP that was reset or destroyed? The kernel sets
 * qp_num of such completions in its own queue to VIRTIO_RDMA_QPN_NONE.
 */
static bool vrdma_cq_drops(struct vrdma_qp *qp, const struct ibv_wc *wc)
{
	if (wc->qp_num != VIRTIO_RDMA_QPN_NONE && wc->qp_num != qp->qpn)
		return false;
	if (wc->wr_id & VRDMA_ID_SRQ)
		vrdma_srq_drop(to_vctx(qp->vqp.qp.context), wc->wr_id);
	return true;
}

/*
 * vrdma_cq_clean() of a CQ that the kernel polls. Completions that are not
 * dropped wait here until the program polls them. Without memory for them, they
 * and the entries of the SRQ stay in the kernel.
 */
static void vrdma_cq_clean_kernel(struct vrdma_cq *cq, struct vrdma_qp *qp)
{
	struct ibv_wc *polled;
	uint32_t i, num = 0;

	for (i = cq->next_polled; i < cq->num_polled; i++) {
		if (!vrdma_cq_drops(qp, &cq->polled[i]))
			cq->polled[num++] = cq->polled[i];
	}
	cq->next_polled = 0;
	cq->num_polled = num;
	for (;;) {
		polled = realloc(cq->polled, (num + 1) * sizeof(*polled));
		if (!polled)
			return;
		cq->polled = polled;
		if (ibv_cmd_poll_cq(&cq->vcq.cq, 1, &polled[num]) <= 0)
			return;
		if (!vrdma_cq_drops(qp, &polled[num]))
			cq->num_polled = ++num;
	}
}

/*
 * Drop the receives of a QP with an SRQ that was reset or destroyed, and free
 * the SRQ's entries that they hold. Polling drops its other completions. With
 * the CQs of the QP locked.
 */
void vrdma_cq_clean(struct vrdma_qp *qp)
{
	struct vrdma_cq *cq = to_vcq(qp->vqp.qp.recv_cq);
	struct virtio_rdma_cqe_ex *ex;
	struct virtio_rdma_cqe *cqe;
	uint64_t id, wr_id;
	uint32_t n;

	if (!cq->map) {
		vrdma_cq_clean_kernel(cq, qp);
		return;
	}
	for (n = cq->head; n - cq->head <= cq->mask; n++) {
		ex = vrdma_cq_cqe(cq, n);
		if (!ex)
			break;
		cqe = &ex->cqe;
		id = le64toh(cqe->wr_id);
		if (le32toh(cqe->qp_num) != qp->qpn ||
		    !(id & VRDMA_ID_SRQ))
			continue;
		vrdma_srq_retire(qp->srq, id, &wr_id);
		cqe->qp_num = htole32(VIRTIO_RDMA_QPN_NONE);
	}
}

static int vrdma_cq_next_mapped(struct vrdma_cq *cq, struct ibv_wc *wc)
{
	const struct virtio_rdma_cqe_ex *ex;
	bool wanted;

	do {
		ex = vrdma_cq_cqe(cq, cq->head);
		if (!ex)
			return 0;
		wanted = vrdma_cqe_read(cq, ex, wc);
		cq->head++;
	} while (!wanted);
	return 1;
}

/* POLL_CQ returns IB_WC_* flags, whose values differ from IBV_WC_*. */
static unsigned int vrdma_wc_flags(unsigned int flags)
{
	enum { GRH = 1 << 0, WITH_IMM = 1 << 1, WITH_INVALIDATE = 1 << 2 };

	return (flags & GRH ? IBV_WC_GRH : 0) |
	       (flags & WITH_IMM ? IBV_WC_WITH_IMM : 0) |
	       (flags & WITH_INVALIDATE ? IBV_WC_WITH_INV : 0);
}

/*
 * Translate a completion that the kernel returned. Returns false if it is to be
 * dropped: another thread has destroyed or reset the QP, but does not clean the
 * CQ before this poll ends.
 */
static bool vrdma_wc_translate(struct vrdma_cq *cq, struct ibv_wc *wc)
{
	if (wc->qp_num == VIRTIO_RDMA_QPN_NONE && wc->wr_id & VRDMA_ID_SRQ)
		vrdma_srq_drop(to_vctx(cq->vcq.cq.context), wc->wr_id);
	return vrdma_wqe_retire(cq, wc->qp_num, wc->wr_id, wc);
}

static int vrdma_cq_next_kernel(struct vrdma_cq *cq, struct ibv_wc *wc)
{
	int ret = 1;

	do {
		if (cq->next_polled < cq->num_polled)
			*wc = cq->polled[cq->next_polled++];
		else
			ret = ibv_cmd_poll_cq(&cq->vcq.cq, 1, wc);
	} while (ret > 0 && !vrdma_wc_translate(cq, wc));
	if (ret > 0)
		wc->wc_flags = vrdma_wc_flags(wc->wc_flags);
	return ret;
}

/*
 * Consume a completion. Returns 1, 0 if there is none, or a negative value on
 * errors. With the CQ locked.
 */
int vrdma_cq_next(struct vrdma_cq *cq, struct ibv_wc *wc)
{
	return cq->map ? vrdma_cq_next_mapped(cq, wc)
		       : vrdma_cq_next_kernel(cq, wc);
}

/* Let the device use consumed slots again. With the CQ locked. */
void vrdma_cq_consumed(struct vrdma_cq *cq)
{
	if (cq->map && cq->page->consumer != cq->head)
		__atomic_store_n(&cq->page->consumer, cq->head,
				 __ATOMIC_RELEASE);
}

int vrdma_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct vrdma_cq *cq = to_vcq(ibcq);
	int ret = 1, n = 0;

	pthread_spin_lock(&cq->lock);
	while (n < num && (ret = vrdma_cq_next(cq, &wc[n])) > 0)
		n++;
	vrdma_cq_consumed(cq);
	pthread_spin_unlock(&cq->lock);
	return ret < 0 && !n ? ret : n;
}

int vrdma_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct vrdma_cq *cq = to_vcq(ibcq);

	if (!cq->map)
		return ibv_cmd_req_notify_cq(ibcq, solicited_only);
	pthread_spin_lock(&cq->arm_lock);
	/* A request for any completion stands until it has its event. */
	cq->armed_next |= !solicited_only;
	cq->arm = ((cq->arm >> VIRTIO_RDMA_ARM_SHIFT) + 1)
		  << VIRTIO_RDMA_ARM_SHIFT;
	cq->arm |= cq->armed_next ? VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
				  : VIRTIO_RDMA_NOTIFY_SOLICITED;
	__atomic_store_n(&cq->page->arm, htole32(cq->arm), __ATOMIC_RELAXED);
	/* Pairs with the device's barrier before it reads the request. */
	atomic_thread_fence(memory_order_seq_cst);
	pthread_spin_unlock(&cq->arm_lock);
	return 0;
}

/* The program has taken an event of the CQ. */
void vrdma_cq_event(struct ibv_cq *ibcq)
{
	struct vrdma_cq *cq = to_vcq(ibcq);

	pthread_spin_lock(&cq->arm_lock);
	cq->armed_next = false;
	pthread_spin_unlock(&cq->arm_lock);
}
