// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Posting work requests.
 *
 * The kernel's own go into the slots here. A process has written its own
 * already and rings a doorbell: a post without work requests. It names
 * slots by a counter and each slot names its length; the address that the
 * device gets is the kernel's choice. The device reads a WQE once and checks
 * it against the PD of the QP, so there is nothing in it that a process could
 * do harm with: REG_MR, which is for the kernel alone, works on regions made
 * for fast registration, and no PD of a process has any; a window opens but
 * what the process has registered.
 */
#include <linux/log2.h>

#include "vrdma.h"

#define SLOT_HEADER offsetof(struct virtio_rdma_wqe_slot, wqe)
#define SEND_SLOT_MIN 128
#define RECV_SLOT_MIN 32

static u32 slot_shift(u32 len, u32 min)
{
	return ilog2(roundup_pow_of_two(max(SLOT_HEADER + len, min)));
}

/* log2 of the size of slots. */
u32 vrdma_send_shift(const struct ib_qp_cap *cap)
{
	u32 tail = max_t(u32, cap->max_inline_data,
			 cap->max_send_sge * sizeof(struct virtio_rdma_sge));

	return slot_shift(sizeof(struct virtio_rdma_sq_wqe) + tail,
			  SEND_SLOT_MIN);
}

u32 vrdma_recv_shift(u32 max_sge)
{
	return slot_shift(sizeof(struct virtio_rdma_rq_wqe) +
			  max_sge * sizeof(struct virtio_rdma_sge),
			  RECV_SLOT_MIN);
}

/* Take back what the device is done with. With the ring's lock held. */
void vrdma_wq_reap(struct vrdma_wq *wq)
{
	while (!wq->flushing && vrdma_ring_reap(&wq->ring))
		;
}

static struct vrdma_dev *wq_dev(const struct vrdma_wq *wq)
{
	return wq->ring.vq->vdev->priv;
}

/* Give the device the next @len bytes of the next slot. */
static int give_slot(struct vrdma_wq *wq, u32 len)
{
	if (!wq->flushing)
		return vrdma_ring_add(&wq->ring, SLOT_HEADER, len, false);
	wq->ring.head++;
	return 0;
}

/* With the ring's lock held, so that a flush before it sees what was posted. */
static void have_flushed(struct vrdma_wq *wq)
{
	if (READ_ONCE(wq_dev(wq)->dead))
		vrdma_fatal(wq_dev(wq));
}

static u32 in_flight(const struct vrdma_wq *wq)
{
	return wq->ring.head - wq->ring.tail;
}

/*
 * Give the device the WQEs in slots up to @producer. Only those of an SRQ may
 * find no room in the virtqueue, or be more than it holds, which is as much as
 * is done at a time: -EAGAIN. With the ring's lock held.
 */
static int give_slots(struct vrdma_wq *wq, const u32 *producer)
{
	struct vrdma_ring *ring = &wq->ring;
	u32 room = (1U << ring->shift) - SLOT_HEADER;
	u32 most = virtqueue_get_vring_size(ring->vq);
	u32 count;
	int ret = 0;

	/* Pairs with the process's release: its WQEs are complete by then. */
	count = smp_load_acquire(producer) - ring->head;
	if (count > vrdma_ring_slots(ring) - in_flight(wq))
		return -EINVAL;
	while (count-- && !ret) {
		const struct virtio_rdma_wqe_slot *slot =
			vrdma_ring_slot(ring, ring->head);
		u32 len = READ_ONCE(slot->length);

		if (!most--)
			return -EAGAIN;
		if (!ring->vq->num_free)
			vrdma_wq_reap(wq);
		if (!ring->vq->num_free && !wq->flushing)
			return virtqueue_is_broken(ring->vq) ||
			       vrdma_is_dead(wq_dev(wq)) ? -EIO : -EAGAIN;
		/* The device has an error completion for a bad length, too. */
		ret = give_slot(wq, clamp(len, 1U, room));
	}
	return ret;
}

int vrdma_wq_give(struct vrdma_wq *wq, const u32 *producer)
{
	struct vrdma_ring *ring = &wq->ring;
	unsigned long flags;
	bool notify;
	int ret;

	if (vrdma_is_dead(wq_dev(wq)))
		return -EIO;
	spin_lock_irqsave(&ring->lock, flags);
	vrdma_wq_reap(wq);
	ret = give_slots(wq, producer);
	notify = virtqueue_kick_prepare(ring->vq);
	spin_unlock_irqrestore(&ring->lock, flags);
	if (notify)
		virtqueue_notify(ring->vq);
	return ret;
}

static struct virtio_rdma_qp_page *user_page(struct vrdma_qp *qp)
{
	return page_address(qp->sq.ring.buf->pages[0]);
}

static void fill_av(struct virtio_rdma_sq_wqe *wqe, const struct ib_ud_wr *ud)
{
	wqe->wr.ud.remote_qpn = cpu_to_le32(ud->remote_qpn);
	wqe->wr.ud.remote_qkey = cpu_to_le32(ud->remote_qkey);
	wqe->wr.ud.av = to_vah(ud->ah)->av;
}

/* The part of a send WQE that depends on the opcode. */
static int fill_op(struct vrdma_qp *qp, const struct ib_send_wr *wr,
		   struct virtio_rdma_sq_wqe *wqe)
{
	bool ud = qp->ibqp.qp_type == IB_QPT_UD ||
		  qp->ibqp.qp_type == IB_QPT_GSI;

	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		if (ud)
			fill_av(wqe, ud_wr(wr));
		break;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		break;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
#ifdef VRDMA_ATOMIC_WRITE
	case IB_WR_ATOMIC_WRITE:
#endif
		wqe->wr.rdma.remote_addr =
			cpu_to_le64(rdma_wr(wr)->remote_addr);
		wqe->wr.rdma.rkey = cpu_to_le32(rdma_wr(wr)->rkey);
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
		return vrdma_fill_reg_mr(reg_wr(wr), wqe);
	default:
		return -EOPNOTSUPP;
	}
	return 0;
}

static void fill_ex(const struct ib_send_wr *wr,
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

static void fill_sges(struct virtio_rdma_sge *to, const struct ib_sge *from,
		      int num)
{
	int i;

	for (i = 0; i < num; i++) {
		to[i].addr = cpu_to_le64(from[i].addr);
		to[i].length = cpu_to_le32(from[i].length);
		to[i].lkey = cpu_to_le32(from[i].lkey);
	}
}

/* Returns the length or a negative error. */
static int fill_inline(struct vrdma_qp *qp, const struct ib_send_wr *wr,
		       u8 *to)
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
static int fill_send(struct vrdma_qp *qp, const struct ib_send_wr *wr,
		     struct virtio_rdma_sq_wqe *wqe)
{
	u32 flags = wr->send_flags & (IB_SEND_FENCE | IB_SEND_SIGNALED |
				      IB_SEND_SOLICITED | IB_SEND_INLINE |
				      IB_SEND_IP_CSUM);
	int len, ret;

	if (wr->num_sge < 0 || wr->num_sge > qp->sq.max_sge)
		return -EINVAL;
	memset(wqe, 0, sizeof(*wqe));
	ret = fill_op(qp, wr, wqe);
	if (ret)
		return ret;
	fill_ex(wr, wqe);
	if (flags & IB_SEND_INLINE) {
		len = fill_inline(qp, wr, (u8 *)(wqe + 1));
		if (len < 0)
			return len;
	} else {
		fill_sges((void *)(wqe + 1), wr->sg_list, wr->num_sge);
		wqe->num_sge = cpu_to_le32(wr->num_sge);
		len = wr->num_sge * sizeof(struct virtio_rdma_sge);
	}
	wqe->send_flags = cpu_to_le32(flags);
	wqe->opcode = cpu_to_le32(wr->opcode);
	wqe->wr_id = cpu_to_le64(wr->wr_id);
	return sizeof(*wqe) + len;
}

static int post_one_send(struct vrdma_qp *qp, const struct ib_send_wr *wr)
{
	struct vrdma_ring *ring = &qp->sq.ring;
	struct virtio_rdma_wqe_slot *slot;
	int len;

	if (in_flight(&qp->sq) >= qp->sq.max_wr) {
		vrdma_wq_reap(&qp->sq);
		if (in_flight(&qp->sq) >= qp->sq.max_wr)
			return -ENOMEM;
	}
	slot = vrdma_ring_slot(ring, ring->head);
	len = fill_send(qp, wr, (void *)slot->wqe);
	if (len < 0)
		return len;
	return give_slot(&qp->sq, len);
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
		return wr ? -EINVAL
			  : vrdma_wq_give(&qp->sq,
					  &user_page(qp)->sq_producer);
	}

	spin_lock_irqsave(&ring->lock, flags);
	if (qp->state < IB_QPS_RTS)
		ret = -EINVAL;
	while (wr && !ret) {
		ret = post_one_send(qp, wr);
		if (!ret)
			wr = wr->next;
	}
	/* After a success it is left as it was: users look at it. */
	if (ret)
		*bad_wr = wr;
	have_flushed(&qp->sq);
	notify = virtqueue_kick_prepare(ring->vq);
	spin_unlock_irqrestore(&ring->lock, flags);
	if (notify)
		virtqueue_notify(ring->vq);
	return ret;
}

static int post_one_recv(struct vrdma_wq *wq, const struct ib_recv_wr *wr)
{
	struct vrdma_ring *ring = &wq->ring;
	struct virtio_rdma_wqe_slot *slot;
	struct virtio_rdma_rq_wqe *wqe;
	int ret;

	if (wr->num_sge < 0 || wr->num_sge > wq->max_sge)
		return -EINVAL;
	if (wq->posted - ring->tail >= wq->max_wr) {
		vrdma_wq_reap(wq);
		if (wq->posted - ring->tail >= wq->max_wr)
			return -ENOMEM;
	}
	slot = vrdma_ring_slot(ring, wq->posted);
	wqe = (void *)slot->wqe;
	wqe->num_sge = cpu_to_le32(wr->num_sge);
	wqe->wr_id = cpu_to_le64(wr->wr_id);
	fill_sges((void *)(wqe + 1), wr->sg_list, wr->num_sge);
	slot->length = sizeof(*wqe) +
		       wr->num_sge * sizeof(struct virtio_rdma_sge);
	wq->posted++;
	ret = give_slots(wq, &wq->posted);
	if (ret == -EAGAIN)
		return 0;
	/* Those before it wait on. */
	if (ret)
		wq->posted--;
	return ret;
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
		ret = post_one_recv(wq, wr);
		if (!ret)
			wr = wr->next;
	}
	if (ret)
		*bad_wr = wr;
	have_flushed(wq);
	notify = virtqueue_kick_prepare(ring->vq);
	spin_unlock_irqrestore(&ring->lock, flags);
	if (notify)
		virtqueue_notify(ring->vq);
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
		return wr ? -EINVAL
			  : vrdma_wq_give(&qp->rq,
					  &user_page(qp)->rq_producer);
	}
	return vrdma_wq_post_recv(&qp->rq, wr, bad_wr);
}
