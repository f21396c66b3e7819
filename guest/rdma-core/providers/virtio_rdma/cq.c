/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues. A direct one takes the kernel only to sleep: its slots have
 * the numbers of their completions. Otherwise the status byte of a mapped slot
 * shows whether it has a completion, and the kernel is called to arm a CQ, and
 * sometimes to give consumed slots back to the device.
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
	cq->slack = resp->slack;
	cq->direct = resp->flags & VIRTIO_RDMA_CQ_RESP_DIRECT;
	return 0;
}

struct ibv_cq *vrdma_create_cq(struct ibv_context *ctx, int cqe,
			       struct ibv_comp_channel *channel, int vector)
{
	struct vrdma_create_cq_resp resp = {};
	struct vrdma_create_cq cmd = {
		.flags = VIRTIO_RDMA_CQ_CMD_DIRECT,
	};
	struct vrdma_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&cq->arm_lock, PTHREAD_PROCESS_PRIVATE);
	ret = ibv_cmd_create_cq(ctx, cqe, channel, vector, &cq->vcq.cq,
				&cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (ret)
		goto err;
	if (resp.mmap_size) {
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
 * The kernel moves a direct CQ to other memory, with what is not consumed. With
 * the CQ locked.
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

	if (!cq->direct)
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
 * The QP that the device calls @qpn, if its sends, or receives, complete to
 * @cq, else NULL. A device that names another QP is broken.
 */
static struct vrdma_qp *vrdma_cq_find_qp(struct vrdma_cq *cq, uint32_t qpn,
					 bool recv)
{
	struct vrdma_context *ctx = to_vctx(cq->vcq.cq.context);
	struct vrdma_qp_entry *entry;
	struct vrdma_cq *its;

	if (qpn >= ctx->max_qp)
		return NULL;
	entry = &ctx->qps[qpn];
	its = atomic_load_explicit(recv ? &entry->recv_cq : &entry->send_cq,
				   memory_order_relaxed);
	return its == cq ? entry->qp : NULL;
}

/*
 * A WQE of the QP that the device calls @qpn has completed to @cq: look up what
 * the program knows for that and for @id, the device's wr_id. Returns false if
 * the completion is to be dropped.
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

static uint16_t vrdma_cqe_vlan(const struct virtio_rdma_cqe *cqe)
{
	const struct virtio_rdma_cqe_ex *ex =
		container_of(cqe, struct virtio_rdma_cqe_ex, cqe);

	return le16toh(ex->vlan);
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
			   const struct virtio_rdma_cqe *cqe, struct ibv_wc *wc)
{
	struct vrdma_context *ctx = to_vctx(cq->vcq.cq.context);
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
	if (ctx->cqe_ex)
		cq->vlan = flags & VIRTIO_RDMA_WC_WITH_VLAN ?
			   vrdma_cqe_vlan(cqe) : 0;
	return true;
}

static bool vrdma_cq_direct_has(const struct virtio_rdma_cqe *cqe, uint32_t n)
{
	const struct virtio_rdma_direct_cqe *slot = (const void *)cqe;

	return le32toh(__atomic_load_n(&slot->number, __ATOMIC_ACQUIRE)) ==
	       n + 1;
}

static bool vrdma_cq_status_has(const struct virtio_rdma_cqe *cqe)
{
	return __atomic_load_n(&cqe->status, __ATOMIC_ACQUIRE) !=
	       VIRTIO_RDMA_CQE_EMPTY;
}

/* The n-th completion, or NULL if there is none yet. */
static struct virtio_rdma_cqe *vrdma_cq_cqe(const struct vrdma_cq *cq,
					    uint32_t n)
{
	struct virtio_rdma_cqe *cqe =
		(void *)(cq->slots + (n & cq->mask) * cq->slot_size);

	return (cq->direct ? vrdma_cq_direct_has(cqe, n)
			   : vrdma_cq_status_has(cqe)) ? cqe : NULL;
}

/*
 * Drop the completions of a QP with an SRQ that was reset or destroyed, and
 * free the SRQ's entries that they hold. With the CQs of the QP locked.
 */
void vrdma_cq_clean(struct vrdma_qp *qp)
{
	struct vrdma_cq *cq = to_vcq(qp->vqp.qp.recv_cq);
	struct virtio_rdma_cqe *cqe;
	uint64_t id, wr_id;
	uint32_t n;

	if (!cq->map)
		return;
	for (n = cq->head; n - cq->head <= cq->mask; n++) {
		cqe = vrdma_cq_cqe(cq, n);
		if (!cqe)
			break;
		id = le64toh(cqe->wr_id);
		if (le32toh(cqe->qp_num) != qp->qpn ||
		    !(id & VRDMA_ID_SRQ))
			continue;
		vrdma_srq_retire(qp->srq, id, &wr_id);
		cqe->qp_num = htole32(VRDMA_QPN_NONE);
	}
}

static int vrdma_cq_next_mapped(struct vrdma_cq *cq, struct ibv_wc *wc)
{
	bool wanted;

	do {
		struct virtio_rdma_cqe *cqe = vrdma_cq_cqe(cq, cq->head);

		if (!cqe)
			return 0;
		wanted = vrdma_cqe_read(cq, cqe, wc);
		if (!cq->direct)
			cqe->status = VIRTIO_RDMA_CQE_EMPTY;
		cq->head++;
	} while (!wanted);
	return 1;
}

static int vrdma_cq_next_kernel(struct vrdma_cq *cq, struct ibv_wc *wc)
{
	int ret;

	do {
		ret = ibv_cmd_poll_cq(&cq->vcq.cq, 1, wc);
	} while (ret > 0 && !vrdma_wqe_retire(cq, wc->qp_num, wc->wr_id, wc));
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

/*
 * Tell the kernel, or the device, how many completions were consumed. With the
 * CQ locked.
 * Returns whether to call vrdma_cq_recycle() after unlocking it.
 */
bool vrdma_cq_consumed(struct vrdma_cq *cq)
{
	if (!cq->map || (cq->direct && cq->head == cq->recycled))
		return false;
	__atomic_store_n(&cq->page->consumer, cq->head, __ATOMIC_RELEASE);
	if (!cq->direct && cq->head - cq->recycled <= cq->slack)
		return false;
	cq->recycled = cq->head;
	return !cq->direct;
}

/* Have the kernel give consumed slots back to the device. */
int vrdma_cq_recycle(struct vrdma_cq *cq)
{
	struct ibv_wc none;

	return ibv_cmd_poll_cq(&cq->vcq.cq, 1, &none);
}

int vrdma_poll_cq(struct ibv_cq *ibcq, int num, struct ibv_wc *wc)
{
	struct vrdma_cq *cq = to_vcq(ibcq);
	int ret = 1, n = 0;
	bool recycle;

	pthread_spin_lock(&cq->lock);
	while (n < num && (ret = vrdma_cq_next(cq, &wc[n])) > 0)
		n++;
	recycle = vrdma_cq_consumed(cq);
	pthread_spin_unlock(&cq->lock);
	if (recycle && vrdma_cq_recycle(cq) < 0)
		ret = -1;
	return ret < 0 && !n ? ret : n;
}

int vrdma_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct vrdma_cq *cq = to_vcq(ibcq);

	if (!cq->direct)
		return ibv_cmd_req_notify_cq(ibcq, solicited_only);
	pthread_spin_lock(&cq->arm_lock);
	/* A request for any completion that had no event is still one. */
	cq->armed_next |= !solicited_only;
	cq->arm = ((cq->arm >> VIRTIO_RDMA_ARM_SHIFT) + 1)
		  << VIRTIO_RDMA_ARM_SHIFT;
	cq->arm |= cq->armed_next ? VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION
				  : VIRTIO_RDMA_NOTIFY_SOLICITED;
	__atomic_store_n(&cq->page->arm, htole32(cq->arm), __ATOMIC_RELAXED);
	/* The device looks at this behind a barrier, too, or it is polled. */
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
