/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Posting. WQEs are written to mapped slots, which the device reads by itself,
 * or which the kernel submits: a command without work requests calls for that.
 */
#include <errno.h>
#include <string.h>

#include "vrdma.h"

static uint64_t vrdma_wq_next_id(const struct vrdma_qp *qp,
				 const struct vrdma_wq *wq, uint32_t kind)
{
	return (uint64_t)qp->generation << VRDMA_ID_GENERATION_SHIFT | kind |
	       (wq->head & VRDMA_ID_INDEX);
}

void vrdma_wqe_put_ud(struct virtio_rdma_sq_wqe *wqe, struct ibv_ah *ah,
		      uint32_t qpn, uint32_t qkey)
{
	wqe->wr.ud.remote_qpn = htole32(qpn);
	wqe->wr.ud.remote_qkey = htole32(qkey);
	wqe->wr.ud.av = to_vah(ah)->av;
}

void vrdma_wqe_put_bind(struct virtio_rdma_sq_wqe *wqe, const struct ibv_mw *mw,
			uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	wqe->wr.bind.rkey = htole32(mw->rkey);
	wqe->wr.bind.new_rkey = htole32(rkey);
	wqe->wr.bind.lkey = htole32(info->mr ? info->mr->lkey : 0);
	wqe->wr.bind.access = htole32(info->mw_access_flags);
	wqe->wr.bind.addr = htole64(info->addr);
	wqe->wr.bind.length = htole64(info->length);
}

/* Other bits of send_flags have no effect, as with other providers. */
#define SEND_FLAGS (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | \
		    IBV_SEND_INLINE | IBV_SEND_IP_CSUM)

/* The next send WQE, all zero. The queue must not be full. */
struct virtio_rdma_sq_wqe *vrdma_send_begin(struct vrdma_qp *qp)
{
	return memset(vrdma_wq_next_slot(&qp->sq)->wqe, 0,
		      sizeof(struct virtio_rdma_sq_wqe));
}

/*
 * Fill in the common part of the WQE and count it as written. Until it is
 * submitted, the caller may change it.
 */
void vrdma_send_end(struct vrdma_qp *qp, struct virtio_rdma_sq_wqe *wqe,
		    uint32_t opcode, uint32_t flags, uint32_t payload,
		    uint64_t wr_id)
{
	wqe->send_flags = htole32(flags & SEND_FLAGS);
	wqe->opcode = htole32(opcode);
	wqe->wr_id = htole64(vrdma_wq_next_id(qp, &qp->sq, 0));
	vrdma_wq_next_slot(&qp->sq)->length = sizeof(*wqe) + payload;
	vrdma_wq_advance(&qp->sq, wr_id);
}

/*
 * Unlock the send queue, and submit the WQEs that were written since its head
 * was @first.
 */
int vrdma_send_submit(struct vrdma_qp *qp, uint32_t first)
{
	struct vrdma_wq *wq = &qp->sq;
	struct ibv_send_wr *none;
	bool any = wq->head != first;

	if (any)
		vrdma_wq_publish(wq);
	pthread_spin_unlock(&wq->lock);
	if (!any || vrdma_wq_ring(wq, qp->vqp.qp.context, qp->qpn))
		return 0;
	return ibv_cmd_post_send(&qp->vqp.qp, NULL, &none);
}

static int vrdma_wqe_put_inline(const struct vrdma_qp *qp,
				const struct ibv_send_wr *wr, uint8_t *to,
				uint32_t *len)
{
	uint32_t n = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - n)
			return ENOMEM;
		memcpy(to + n, (void *)(uintptr_t)sge->addr, sge->length);
		n += sge->length;
	}
	*len = n;
	return 0;
}

/* Fill in the part of a WQE that depends on the opcode. */
static int vrdma_wqe_put_op(const struct vrdma_qp *qp,
			    const struct ibv_send_wr *wr,
			    struct virtio_rdma_sq_wqe *wqe)
{
	switch (wr->opcode) {
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
		if (qp->vqp.qp.qp_type == IBV_QPT_UD)
			vrdma_wqe_put_ud(wqe, wr->wr.ud.ah,
					 wr->wr.ud.remote_qpn,
					 wr->wr.ud.remote_qkey);
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
		wqe->wr.rdma.remote_addr = htole64(wr->wr.rdma.remote_addr);
		wqe->wr.rdma.rkey = htole32(wr->wr.rdma.rkey);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->wr.atomic.remote_addr =
			htole64(wr->wr.atomic.remote_addr);
		wqe->wr.atomic.compare_add =
			htole64(wr->wr.atomic.compare_add);
		wqe->wr.atomic.swap = htole64(wr->wr.atomic.swap);
		wqe->wr.atomic.rkey = htole32(wr->wr.atomic.rkey);
		break;
	case IBV_WR_BIND_MW:
		vrdma_wqe_put_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
				   &wr->bind_mw.bind_info);
		break;
	default:
		return EOPNOTSUPP;
	}

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		memcpy(wqe->ex.imm_data, &wr->imm_data,
		       sizeof(wqe->ex.imm_data));
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->ex.invalidate_rkey = htole32(wr->invalidate_rkey);
		break;
	default:
		break;
	}
	return 0;
}

static int vrdma_send_put(struct vrdma_qp *qp, const struct ibv_send_wr *wr)
{
	struct virtio_rdma_sq_wqe *wqe;
	uint32_t len;
	int ret;

	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
		return EINVAL;
	if (vrdma_wq_full(&qp->sq))
		return ENOMEM;
	wqe = vrdma_send_begin(qp);
	ret = vrdma_wqe_put_op(qp, wr, wqe);
	if (ret)
		return ret;
	if (wr->send_flags & IBV_SEND_INLINE) {
		ret = vrdma_wqe_put_inline(qp, wr, (uint8_t *)(wqe + 1), &len);
		if (ret)
			return ret;
	} else {
		vrdma_wqe_put_sges((void *)(wqe + 1), wr->sg_list, wr->num_sge);
		wqe->num_sge = htole32(wr->num_sge);
		len = wr->num_sge * sizeof(struct virtio_rdma_sge);
	}
	vrdma_send_end(qp, wqe, wr->opcode, wr->send_flags, len, wr->wr_id);
	return 0;
}

int vrdma_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr)
{
	struct vrdma_qp *qp = to_vqp(ibqp);
	struct ibv_send_wr *first = wr;
	int ret = 0, err;
	uint32_t head;

	if (ibqp->state < IBV_QPS_RTS) {
		*bad_wr = wr;
		return EINVAL;
	}
	pthread_spin_lock(&qp->sq.lock);
	head = qp->sq.head;
	for (; wr; wr = wr->next) {
		ret = vrdma_send_put(qp, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	err = vrdma_send_submit(qp, head);
	if (err) {
		*bad_wr = first;
		return err;
	}
	return ret;
}

static int vrdma_qp_put_recv(struct vrdma_qp *qp, const struct ibv_recv_wr *wr)
{
	if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.max_sge)
		return EINVAL;
	if (vrdma_wq_full(&qp->rq))
		return ENOMEM;
	vrdma_recv_put(&qp->rq, wr,
		       vrdma_wq_next_id(qp, &qp->rq, VRDMA_ID_RECV));
	vrdma_wq_advance(&qp->rq, wr->wr_id);
	return 0;
}

int vrdma_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr)
{
	struct vrdma_qp *qp = to_vqp(ibqp);
	struct ibv_recv_wr *first = wr, *none;
	struct vrdma_wq *wq = &qp->rq;
	int ret = 0, err = 0;
	uint32_t head;

	if (ibqp->state == IBV_QPS_RESET || qp->srq) {
		*bad_wr = wr;
		return EINVAL;
	}
	pthread_spin_lock(&wq->lock);
	head = wq->head;
	for (; wr; wr = wr->next) {
		ret = vrdma_qp_put_recv(qp, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	head -= wq->head;
	if (head)
		vrdma_wq_publish(wq);
	pthread_spin_unlock(&wq->lock);

	if (head && !vrdma_wq_ring(wq, ibqp->context, qp->qpn))
		err = ibv_cmd_post_recv(ibqp, NULL, &none);
	if (err) {
		*bad_wr = first;
		return err;
	}
	return ret;
}
