// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Posting work requests.
 *
 * The kernel's work requests are written to their slots here. A process writes
 * WQEs to mapped slots itself, and then rings a doorbell, or posts an empty
 * list of work requests. It controls the number of WQEs, and the length and
 * contents of each, but not where the slots are. The device reads a WQE once
 * and checks it against the PD of the QP, so a process can do no harm: REG_MR
 * needs a region for fast registration, which no PD of a process has, and a
 * window gives access only to regions of the process.
 */
#include <linux/log2.h>

#include "queue.h"

#define SEND_SLOT_MIN 128
#define RECV_SLOT_MIN 32

/* The number of slots of a queue */
u32 vrdma_slots(u32 max_wr)
{
	return roundup_pow_of_two(max_t(u32, max_wr, VRDMA_DEPTH_MIN));
}

static u32 vrdma_slot_shift(u32 len, u32 min)
{
	return ilog2(roundup_pow_of_two(max(WQE_SLOT_HEADER + len, min)));
}

/* log2 of the size of the slots of a send queue */
u32 vrdma_send_slot_shift(const struct ib_qp_cap *cap)
{
	u32 tail = max_t(u32, cap->max_inline_data,
			 cap->max_send_sge * sizeof(struct virtio_rdma_sge));

	return vrdma_slot_shift(sizeof(struct virtio_rdma_sq_wqe) + tail,
				SEND_SLOT_MIN);
}

/*
 * Bytes of inline data that each slot of a send queue has room for, which may
 * be more than asked for. The device keeps them in SGEs.
 */
u32 vrdma_send_slot_inline(const struct ib_qp_cap *cap, u32 max_inline)
{
	u32 room = BIT(vrdma_send_slot_shift(cap)) - WQE_SLOT_HEADER -
		   sizeof(struct virtio_rdma_sq_wqe);

	room = rounddown(room, sizeof(struct virtio_rdma_sge));
	return max(cap->max_inline_data, min(room, max_inline));
}

u32 vrdma_recv_slot_shift(u32 max_sge)
{
	return vrdma_slot_shift(sizeof(struct virtio_rdma_rq_wqe) +
				max_sge * sizeof(struct virtio_rdma_sge),
				RECV_SLOT_MIN);
}

/* Find the slots that are free. With the ring's lock held. */
void vrdma_wq_reap(struct vrdma_wq *wq)
{
	if (!wq->flushing)
		wq->dev->form->reap(wq);
}

/* The next slot has a WQE of @len bytes. With the ring's lock held. */
static int vrdma_wq_put(struct vrdma_wq *wq, u32 len)
{
	if (!wq->flushing)
		return wq->dev->form->put(wq, len);
	wq->ring.head++;
	return 0;
}

/*
 * Have the device see the slots that were put. Returns whether it has to be
 * notified. With the ring's lock held.
 */
static bool vrdma_wq_publish(struct vrdma_wq *wq)
{
	return !wq->flushing && wq->dev->form->publish(wq);
}

/*
 * With a dead device or CQ, have it polled, for the work requests just posted.
 * With the ring's lock held, so that a flush that runs before sees them.
 */
static void vrdma_wq_flush_if_dead(struct vrdma_wq *wq)
{
	if (READ_ONCE(wq->dev->dead))
		vrdma_fatal(wq->dev);
	else if (wq->cq && READ_ONCE(wq->cq->failed))
		vrdma_wake(wq->dev);
}

static u32 vrdma_wq_in_flight(const struct vrdma_wq *wq)
{
	return wq->ring.head - wq->ring.tail;
}

static void vrdma_wqe_fill_av(struct virtio_rdma_sq_wqe *wqe,
			      const struct ib_ud_wr *ud)
{
	wqe->wr.ud.remote_qpn = cpu_to_le32(ud->remote_qpn);
	wqe->wr.ud.remote_qkey = cpu_to_le32(ud->remote_qkey);
	wqe->wr.ud.av = to_vah(ud->ah)->av;
}

static void vrdma_wqe_fill_rdma(struct virtio_rdma_sq_wqe *wqe,
				const struct ib_rdma_wr *rdma)
{
	wqe->wr.rdma.remote_addr = cpu_to_le64(rdma->remote_addr);
	wqe->wr.rdma.rkey = cpu_to_le32(rdma->rkey);
}

/* Fill in the part of a send WQE that depends on the opcode. */
static int vrdma_wqe_fill_op(struct vrdma_qp *qp, const struct ib_send_wr *wr,
			     struct virtio_rdma_sq_wqe *wqe)
{
	bool ud = qp->ibqp.qp_type == IB_QPT_UD ||
		  qp->ibqp.qp_type == IB_QPT_GSI;

	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		if (ud)
			vrdma_wqe_fill_av(wqe, ud_wr(wr));
		break;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		vrdma_wqe_fill_rdma(wqe, rdma_wr(wr));
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->wr.atomic.remote_addr =
			cpu_to_le64(atomic_wr(wr)->remote_addr);
		wqe->wr.atomic.compare_add =
			cpu_to_le64(atomic_wr(wr)->compare_add);
		wqe->wr.atomic.swap = cpu_to_le64(atomic_wr(wr)->swap);
		wqe->wr.atomic.rkey = cpu_to_le32(atomic_wr(wr)->rkey);
		break;
	case IB_WR_REG_MR:
		vrdma_wqe_fill_reg_mr(reg_wr(wr), wqe);
		break;
	default:
		if (!vrdma_is_atomic_write(wr))
			return -EOPNOTSUPP;
		vrdma_wqe_fill_rdma(wqe, rdma_wr(wr));
		break;
	}
	return 0;
}

static void vrdma_wqe_fill_ex(const struct ib_send_wr *wr,
			      struct virtio_rdma_sq_wqe *wqe)
{
	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		memcpy(wqe->ex.imm_data, &wr->ex.imm_data,
		       sizeof(wqe->ex.imm_data));
		break;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
	case IB_WR_RDMA_READ_WITH_INV:
		wqe->ex.invalidate_rkey = cpu_to_le32(wr->ex.invalidate_rkey);
		break;
	default:
		break;
	}
}

static void vrdma_wqe_fill_sges(struct virtio_rdma_sge *to,
				const struct ib_sge *from, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		to[i].addr = cpu_to_le64(from[i].addr);
		to[i].length = cpu_to_le32(from[i].length);
		to[i].lkey = cpu_to_le32(from[i].lkey);
	}
}

/* Returns the length or a negative error. */
static int vrdma_wqe_fill_inline(struct vrdma_qp *qp,
				 const struct ib_send_wr *wr, u8 *to)
{
	u32 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - len)
			return -EINVAL;
		memcpy(to + len, (void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	return len;
}

/* Returns the length of the WQE or a negative error. */
static int vrdma_wqe_fill_send(struct vrdma_qp *qp, const struct ib_send_wr *wr,
			       struct virtio_rdma_sq_wqe *wqe)
{
	u32 flags = wr->send_flags & (IB_SEND_FENCE | IB_SEND_SIGNALED |
				      IB_SEND_SOLICITED | IB_SEND_INLINE |
				      IB_SEND_IP_CSUM);
	int len, ret;

	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	memset(wqe, 0, sizeof(*wqe));
	ret = vrdma_wqe_fill_op(qp, wr, wqe);
	if (ret)
		return ret;
	vrdma_wqe_fill_ex(wr, wqe);
	if (flags & IB_SEND_INLINE) {
		len = vrdma_wqe_fill_inline(qp, wr, (u8 *)(wqe + 1));
		if (len < 0)
			return len;
	} else {
		vrdma_wqe_fill_sges((void *)(wqe + 1), wr->sg_list,
				    wr->num_sge);
		wqe->num_sge = cpu_to_le32(wr->num_sge);
		len = wr->num_sge * sizeof(struct virtio_rdma_sge);
	}
	wqe->send_flags = cpu_to_le32(flags);
	wqe->opcode = cpu_to_le32(wr->opcode);
	return sizeof(*wqe) + len;
}

/*
 * Requests complete after the device has returned their buffers. A device that
 * keeps the buffers of completed requests is broken. Requests that are posted
 * from now on are flushed when it is dead: users who drain the queue need that.
 */
static bool vrdma_wq_make_room(struct vrdma_wq *wq)
{
	/* The buffer of an SRQ returns when the device has copied the WQE. */
	if (wq->unused || wq->posted - wq->completed >= wq->max_wr)
		return false;
	/* Requests of a CQ that has failed are flushed without the device. */
	if (READ_ONCE(wq->cq->failed))
		return false;
	vrdma_broken(wq->dev, "the device keeps %u of %u buffers after their requests completed",
		     wq->max_wr - (wq->posted - wq->completed), wq->max_wr);
	wq->flushing = true;
	wq->ring.tail = wq->completed;
	return true;
}

static int vrdma_post_one_send(struct vrdma_qp *qp, const struct ib_send_wr *wr)
{
	struct vrdma_ring *ring = &qp->sq.ring;
	struct vrdma_request request = {
		.wr_id = wr->wr_id,
		/* In the error state each request is flushed. */
		.silent = qp->sig_type != IB_SIGNAL_ALL_WR &&
			  !(wr->send_flags & IB_SEND_SIGNALED) &&
			  READ_ONCE(qp->state) != IB_QPS_ERR,
	};
	struct virtio_rdma_wqe_slot *slot;
	struct virtio_rdma_sq_wqe *wqe;
	int len, ret;

	if (vrdma_wq_in_flight(&qp->sq) >= qp->sq.max_wr) {
		vrdma_wq_reap(&qp->sq);
		if (vrdma_wq_in_flight(&qp->sq) >= qp->sq.max_wr &&
		    !vrdma_wq_make_room(&qp->sq))
			return -ENOMEM;
	}
	if (vrdma_requests_full(&qp->sq))
		return -ENOMEM;
	slot = vrdma_ring_slot(ring, ring->head);
	wqe = (void *)slot->wqe;
	len = vrdma_wqe_fill_send(qp, wr, wqe);
	if (len < 0)
		return len;
	wqe->wr_id = vrdma_request_prepare(&qp->sq, &request);
	ret = vrdma_wq_put(&qp->sq, len);
	if (!ret)
		qp->sq.posted++;
	return ret;
}

int vrdma_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad_wr)
{
	struct vrdma_qp *qp = to_vqp(ibqp);
	struct vrdma_ring *ring = &qp->sq.ring;
	unsigned long flags;
	bool notify;
	int ret = 0;

	if (qp->user) {
		*bad_wr = wr;
		return wr ? -EINVAL : qp->sq.dev->form->post_user(&qp->sq);
	}

	spin_lock_irqsave(&ring->lock, flags);
	if (qp->state < IB_QPS_RTS)
		ret = -EINVAL;
	while (wr && !ret) {
		ret = vrdma_post_one_send(qp, wr);
		if (!ret)
			wr = wr->next;
	}
	/* Some users read *bad_wr after a success: leave it unchanged. */
	if (ret)
		*bad_wr = wr;
	vrdma_wq_flush_if_dead(&qp->sq);
	notify = vrdma_wq_publish(&qp->sq);
	spin_unlock_irqrestore(&ring->lock, flags);
	if (notify)
		qp->sq.dev->form->notify(&qp->sq);
	return ret;
}

static int vrdma_post_one_recv(struct vrdma_wq *wq, const struct ib_recv_wr *wr)
{
	struct vrdma_ring *ring = &wq->ring;
	struct vrdma_request request = { .wr_id = wr->wr_id };
	struct virtio_rdma_wqe_slot *slot;
	struct virtio_rdma_rq_wqe *wqe;
	int i, len, ret;

	if (wr->num_sge < 0 || wr->num_sge > wq->max_sge)
		return -EINVAL;
	if (wq->posted - ring->tail >= wq->max_wr) {
		vrdma_wq_reap(wq);
		if (wq->posted - ring->tail >= wq->max_wr &&
		    !vrdma_wq_make_room(wq))
			return -ENOMEM;
	}
	if (vrdma_requests_full(wq))
		return -ENOMEM;
	for (i = 0; i < wr->num_sge; i++)
		request.length += wr->sg_list[i].length;
	slot = vrdma_ring_slot(ring, wq->posted);
	wqe = (void *)slot->wqe;
	wqe->num_sge = cpu_to_le32(wr->num_sge);
	wqe->wr_id = vrdma_request_prepare(wq, &request);
	vrdma_wqe_fill_sges((void *)(wqe + 1), wr->sg_list, wr->num_sge);
	len = sizeof(*wqe) + wr->num_sge * sizeof(struct virtio_rdma_sge);
	ret = vrdma_wq_put(wq, len);
	if (ret)
		return ret;
	wq->posted++;
	vrdma_request_confirm(wq);
	return 0;
}

int vrdma_wq_post_recv(struct vrdma_wq *wq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct vrdma_ring *ring = &wq->ring;
	unsigned long flags;
	bool notify;
	int ret = 0;

	spin_lock_irqsave(&ring->lock, flags);
	while (wr && !ret) {
		ret = vrdma_post_one_recv(wq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad_wr = wr;
	vrdma_wq_flush_if_dead(wq);
	notify = vrdma_wq_publish(wq);
	spin_unlock_irqrestore(&ring->lock, flags);
	if (notify)
		wq->dev->form->notify(wq);
	return ret;
}

int vrdma_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad_wr)
{
	struct vrdma_qp *qp = to_vqp(ibqp);

	if (ibqp->srq || (!qp->user && READ_ONCE(qp->state) == IB_QPS_RESET)) {
		*bad_wr = wr;
		return -EINVAL;
	}
	if (qp->user) {
		*bad_wr = wr;
		return wr ? -EINVAL : qp->rq.dev->form->post_user(&qp->rq);
	}
	return vrdma_wq_post_recv(&qp->rq, wr, bad_wr);
}
