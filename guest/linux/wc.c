// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From a CQE in its slot to a work completion of the RDMA core. A process gets
 * what the device wrote. What the kernel gets is checked, see request.c.
 */
#include "queue.h"

/*
 * Replaces the QPN of a completion that is to be dropped. The device replaces
 * it, too, see vrdma_wc_drop().
 */
#define VRDMA_NO_QPN VIRTIO_RDMA_QPN_NONE

static_assert(VRDMA_NO_QPN == VIRTIO_RDMA_CQE_QPN_NONE);

/* Addresses of a datagram that its GRH does not contain */
static void vrdma_wc_fill_datagram(const struct virtio_rdma_cqe_ex *ex,
				   u32 flags, struct ib_wc *wc)
{
	if (flags & VIRTIO_RDMA_WC_WITH_SMAC) {
		wc->wc_flags |= IB_WC_WITH_SMAC;
		memcpy(wc->smac, ex->smac, sizeof(wc->smac));
	}
	if (flags & VIRTIO_RDMA_WC_WITH_VLAN) {
		wc->wc_flags |= IB_WC_WITH_VLAN;
		wc->vlan_id = le16_to_cpu(ex->vlan);
	}
	if (flags & VIRTIO_RDMA_WC_WITH_HDR_TYPE) {
		wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
		wc->network_hdr_type = ex->hdr_type == VIRTIO_RDMA_HDR_IPV4 ?
				       RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	}
}

/* The RDMA core has other numbers for some opcodes than the device. */
static enum ib_wc_opcode vrdma_wc_opcode(u8 opcode)
{
	switch (opcode) {
	case VIRTIO_RDMA_CQE_OP_REG_MR:
		return IB_WC_REG_MR;
	case VIRTIO_RDMA_CQE_OP_FLUSH:
		return VRDMA_WC_FLUSH;
	case VIRTIO_RDMA_CQE_OP_ATOMIC_WRITE:
		return VRDMA_WC_ATOMIC_WRITE;
	default:
		return opcode;
	}
}

static void vrdma_wc_fill(const struct virtio_rdma_cqe_ex *ex,
			  struct ib_wc *wc)
{
	const struct virtio_rdma_cqe *cqe = &ex->cqe;
	u32 flags = le32_to_cpu(cqe->wc_flags);

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = le64_to_cpu(cqe->wr_id);
	wc->status = min_t(u8, cqe->status, IB_WC_GENERAL_ERR);
	wc->opcode = vrdma_wc_opcode(cqe->opcode);
	wc->vendor_err = le32_to_cpu(cqe->vendor_err);
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	if (flags & VIRTIO_RDMA_WC_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (flags & VIRTIO_RDMA_WC_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		memcpy(&wc->ex.imm_data, cqe->ex.imm_data,
		       sizeof(wc->ex.imm_data));
	} else if (flags & VIRTIO_RDMA_WC_WITH_INVALIDATE) {
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->ex.invalidate_rkey);
	}
	wc->src_qp = le32_to_cpu(cqe->src_qp);
	wc->pkey_index = le16_to_cpu(cqe->pkey_index);
	wc->sl = cqe->sl;
	wc->port_num = VRDMA_PORT;
	vrdma_wc_fill_datagram(ex, flags, wc);
}

/*
 * For POLL_CQ. The RDMA core reads the number of the QP later, when another
 * thread may have destroyed the QP. The provider gets the device's number, as
 * from mapped CQs, or VIRTIO_RDMA_QPN_NONE. Returns false if the QP is
 * destroyed already.
 */
static bool vrdma_wc_claim_user(struct vrdma_dev *dev, u32 qpn,
				struct ib_wc *wc)
{
	if (qpn == VRDMA_NO_QPN)
		qpn = dev->num_qp;
	else if (qpn >= dev->num_qp || !READ_ONCE(dev->qps[qpn]))
		return false;
	wc->qp = &dev->qp_numbers[qpn];
	return true;
}

/* The work queue of @qp whose request completes to @cq, or NULL */
static struct vrdma_wq *vrdma_wc_find_wq(struct vrdma_cq *cq,
					 struct vrdma_qp *qp, u64 id)
{
	struct vrdma_wq *rq = qp->ibqp.srq ? &to_vsrq(qp->ibqp.srq)->wq
					   : &qp->rq;

	if (qp->ibqp.send_cq == &cq->ibcq && vrdma_request_is_of(&qp->sq, id))
		return &qp->sq;
	if (qp->ibqp.recv_cq == &cq->ibcq && vrdma_request_is_of(rq, id))
		return rq;
	return NULL;
}

/*
 * Give a completion the wr_id of its request. Returns false if there is no such
 * request, or it cannot have this result.
 */
static bool vrdma_wc_claim_request(struct vrdma_wq *wq, bool recv,
				   struct ib_wc *wc)
{
	const struct vrdma_request *request;
	bool ok;

	spin_lock(&wq->ring.lock);
	request = vrdma_request_take(wq, wc->wr_id);
	ok = request;
	if (ok)
		wc->wr_id = request->wr_id;
	if (ok && wc->status == IB_WC_SUCCESS) {
		ok = !(wc->opcode & IB_WC_RECV) == !recv && !request->silent;
		/* A WRITE with immediate data leaves the buffers alone. */
		if (recv && wc->opcode != IB_WC_RECV_RDMA_WITH_IMM)
			ok &= wc->byte_len <= request->length;
	}
	spin_unlock(&wq->ring.lock);
	return ok;
}

/* Check a completion against the requests of its QP, which may be gone. */
static bool vrdma_wc_claim_kernel(struct vrdma_dev *dev, struct vrdma_cq *cq,
				  u32 qpn, struct ib_wc *wc)
{
	u64 id = wc->wr_id;
	struct vrdma_wq *wq;
	struct vrdma_qp *qp;
	bool ok;

	/* A broken device may name a QP that is being destroyed. */
	spin_lock(&dev->qps_lock);
	qp = qpn < dev->num_qp ? dev->qps[qpn] : NULL;
	wq = qp ? vrdma_wc_find_wq(cq, qp, id) : NULL;
	ok = wq && vrdma_wc_claim_request(wq, wq != &qp->sq, wc);
	if (ok)
		wc->qp = &qp->ibqp;
	spin_unlock(&dev->qps_lock);
	/* A completion of a failed CQ may be late: its request was flushed. */
	if (!ok && !READ_ONCE(cq->failed))
		vrdma_broken(dev, "CQ %u: QP %u has no request %llx (status %d, length %u)",
			     cq->cqn, qpn, id, wc->status, wc->byte_len);
	return ok;
}

/* Returns false for a completion that is to be dropped. */
bool vrdma_wc_take(struct vrdma_cq *cq, const struct virtio_rdma_cqe_ex *ex,
		   struct ib_wc *wc)
{
	struct vrdma_dev *dev = to_vdev(cq->ibcq.device);
	u32 qpn = le32_to_cpu(READ_ONCE(ex->cqe.qp_num));

	vrdma_wc_fill(ex, wc);
	if (vrdma_cq_is_user(cq))
		return vrdma_wc_claim_user(dev, qpn, wc);
	return qpn != VRDMA_NO_QPN && vrdma_wc_claim_kernel(dev, cq, qpn, wc);
}

/*
 * Free the SRQ's entry with this number. Returns false if it is not a number of
 * this SRQ.
 */
static bool vrdma_srq_release(struct vrdma_srq *srq, u64 id)
{
	struct vrdma_wq *wq = &srq->wq;

	if (!vrdma_request_is_of(wq, id))
		return false;
	spin_lock(&wq->ring.lock);
	vrdma_request_take(wq, id);
	spin_unlock(&wq->ring.lock);
	return true;
}

/*
 * vrdma_wc_take() has refused a completion. The QP may have been destroyed or
 * reset while the completion was pending in the device. Such a receive holds an
 * entry of an SRQ; the provider releases that of a process.
 */
void vrdma_wc_drop(struct vrdma_cq *cq, const struct virtio_rdma_cqe_ex *ex)
{
	struct vrdma_dev *dev = vrdma_cq_dev(cq);
	u64 id = le64_to_cpu(ex->cqe.wr_id);
	u32 i;

	if (vrdma_cq_is_user(cq) || le32_to_cpu(ex->cqe.qp_num) != VRDMA_NO_QPN)
		return;
	spin_lock(&dev->qps_lock);
	for (i = 0; i < dev->num_srq; i++) {
		if (dev->srqs[i] && vrdma_srq_release(dev->srqs[i], id))
			break;
	}
	spin_unlock(&dev->qps_lock);
}

/*
 * Drop a completion of a QP that was destroyed or reset. The entry of a receive
 * belongs to the SRQ; the provider releases that of a process.
 */
void vrdma_cqe_drop(struct vrdma_qp *qp, struct virtio_rdma_cqe *cqe)
{
	u64 id = le64_to_cpu(cqe->wr_id);

	cqe->qp_num = cpu_to_le32(VRDMA_NO_QPN);
	/* No queue has the number 0: vrdma_wc_drop() frees nothing then. */
	if (qp->ibqp.srq && vrdma_srq_release(to_vsrq(qp->ibqp.srq), id))
		cqe->wr_id = 0;
}
