/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended posting: a work request is built by several calls, in its slot. The
 * send queue is locked from wr_start to wr_complete or wr_abort.
 */
#include <errno.h>
#include <string.h>

#include "vrdma.h"

#define ATOMIC_WRITE_SIZE 8

static struct vrdma_qp *to_vqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct vrdma_qp, vqp.qp_ex);
}

/* The slot of the work request that is being built */
static struct virtio_rdma_wqe_slot *vrdma_current_slot(struct vrdma_qp *qp)
{
	struct vrdma_wq *wq = &qp->sq;

	return (void *)(wq->slots +
			((wq->head - 1) & wq->mask) * wq->slot_size);
}

static struct virtio_rdma_sq_wqe *vrdma_current_wqe(struct vrdma_qp *qp)
{
	return (void *)vrdma_current_slot(qp)->wqe;
}

/* Begin a work request. Returns NULL if there was an error. */
static struct virtio_rdma_sq_wqe *vrdma_wr_begin(struct ibv_qp_ex *ibqp,
						 enum ibv_wr_opcode opcode)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);
	struct virtio_rdma_sq_wqe *wqe;

	if (qp->error)
		return NULL;
	if (vrdma_wq_full(&qp->sq)) {
		qp->error = ENOMEM;
		return NULL;
	}
	wqe = vrdma_send_begin(qp);
	vrdma_send_end(qp, wqe, opcode, ibqp->wr_flags, 0, ibqp->wr_id);
	return wqe;
}

static void vrdma_wr_send(struct ibv_qp_ex *qp)
{
	vrdma_wr_begin(qp, IBV_WR_SEND);
}

static void vrdma_wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct virtio_rdma_sq_wqe *wqe =
		vrdma_wr_begin(qp, IBV_WR_SEND_WITH_IMM);

	if (wqe)
		memcpy(wqe->ex.imm_data, &imm, sizeof(imm));
}

static void vrdma_wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct virtio_rdma_sq_wqe *wqe =
		vrdma_wr_begin(qp, IBV_WR_SEND_WITH_INV);

	if (wqe)
		wqe->ex.invalidate_rkey = htole32(rkey);
}

static void vrdma_wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct virtio_rdma_sq_wqe *wqe = vrdma_wr_begin(qp, IBV_WR_LOCAL_INV);

	if (wqe)
		wqe->ex.invalidate_rkey = htole32(rkey);
}

static void vrdma_wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw,
			     uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct virtio_rdma_sq_wqe *wqe = vrdma_wr_begin(qp, IBV_WR_BIND_MW);

	if (wqe)
		vrdma_wqe_put_bind(wqe, mw, rkey, info);
}

static struct virtio_rdma_sq_wqe *vrdma_wr_begin_rdma(struct ibv_qp_ex *qp,
						      enum ibv_wr_opcode opcode,
						      uint32_t rkey,
						      uint64_t addr)
{
	struct virtio_rdma_sq_wqe *wqe = vrdma_wr_begin(qp, opcode);

	if (wqe) {
		wqe->wr.rdma.remote_addr = htole64(addr);
		wqe->wr.rdma.rkey = htole32(rkey);
	}
	return wqe;
}

static void vrdma_wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey,
			       uint64_t addr)
{
	vrdma_wr_begin_rdma(qp, IBV_WR_RDMA_READ, rkey, addr);
}

static void vrdma_wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t addr)
{
	vrdma_wr_begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void vrdma_wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
				    uint64_t addr, __be32 imm)
{
	struct virtio_rdma_sq_wqe *wqe =
		vrdma_wr_begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);

	if (wqe)
		memcpy(wqe->ex.imm_data, &imm, sizeof(imm));
}

static void vrdma_wr_begin_atomic(struct ibv_qp_ex *qp,
				  enum ibv_wr_opcode opcode, uint32_t rkey,
				  uint64_t addr, uint64_t compare_add,
				  uint64_t swap)
{
	struct virtio_rdma_sq_wqe *wqe = vrdma_wr_begin(qp, opcode);

	if (!wqe)
		return;
	wqe->wr.atomic.remote_addr = htole64(addr);
	wqe->wr.atomic.compare_add = htole64(compare_add);
	wqe->wr.atomic.swap = htole64(swap);
	wqe->wr.atomic.rkey = htole32(rkey);
}

static void vrdma_wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
				    uint64_t addr, uint64_t compare,
				    uint64_t swap)
{
	vrdma_wr_begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr,
			      compare, swap);
}

static void vrdma_wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				      uint64_t addr, uint64_t add)
{
	vrdma_wr_begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add,
			      0);
}

static void vrdma_wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
				 uint32_t qpn, uint32_t qkey)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);

	if (!qp->error)
		vrdma_wqe_put_ud(vrdma_current_wqe(qp), ah, qpn, qkey);
}

static void vrdma_wr_set_length(struct vrdma_qp *qp, uint32_t payload)
{
	vrdma_current_slot(qp)->length =
		sizeof(struct virtio_rdma_sq_wqe) + payload;
}

static void vrdma_wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num,
				  const struct ibv_sge *list)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);
	struct virtio_rdma_sq_wqe *wqe = vrdma_current_wqe(qp);

	if (qp->error)
		return;
	if (num > qp->sq.max_sge) {
		qp->error = EINVAL;
		return;
	}
	wqe->num_sge = htole32(num);
	vrdma_wqe_put_sges((void *)(wqe + 1), list, num);
	vrdma_wr_set_length(qp, num * sizeof(struct virtio_rdma_sge));
}

static void vrdma_wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey,
			     uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = {
		.addr = addr, .length = length, .lkey = lkey,
	};

	/* A message without data has no SGE, and its lkey is not checked. */
	vrdma_wr_set_sge_list(ibqp, length ? 1 : 0, &sge);
}

static void vrdma_wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num,
					  const struct ibv_data_buf *list)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);
	struct virtio_rdma_sq_wqe *wqe = vrdma_current_wqe(qp);
	uint8_t *to = (uint8_t *)(wqe + 1);
	size_t i, n = 0;

	if (qp->error)
		return;
	for (i = 0; i < num; i++) {
		if (list[i].length > qp->max_inline - n) {
			qp->error = ENOMEM;
			return;
		}
		memcpy(to + n, list[i].addr, list[i].length);
		n += list[i].length;
	}
	wqe->send_flags |= htole32(IBV_SEND_INLINE);
	vrdma_wr_set_length(qp, n);
}

static void vrdma_wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
				     size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	vrdma_wr_set_inline_data_list(ibqp, 1, &buf);
}

static void vrdma_wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
				  uint64_t addr, const void *value)
{
	struct virtio_rdma_sq_wqe *wqe =
		vrdma_wr_begin_rdma(ibqp, IBV_WR_ATOMIC_WRITE, rkey, addr);

	/* The value is always inline, even if the QP has max_inline_data 0. */
	if (wqe) {
		memcpy(wqe + 1, value, ATOMIC_WRITE_SIZE);
		wqe->send_flags |= htole32(IBV_SEND_INLINE);
		vrdma_wr_set_length(to_vqp_ex(ibqp), ATOMIC_WRITE_SIZE);
	}
}

static void vrdma_wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr,
			   size_t length, uint8_t type, uint8_t level)
{
	struct virtio_rdma_sq_wqe *wqe = vrdma_wr_begin(ibqp, IBV_WR_FLUSH);

	if (!wqe)
		return;
	if (length > UINT32_MAX) {
		to_vqp_ex(ibqp)->error = EINVAL;
		return;
	}
	wqe->wr.flush.remote_addr = htole64(addr);
	wqe->wr.flush.rkey = htole32(rkey);
	wqe->wr.flush.length = htole32(length);
	wqe->wr.flush.type = htole32(type);
	wqe->wr.flush.level = htole32(level);
}

static void vrdma_wr_start(struct ibv_qp_ex *ibqp)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);

	pthread_spin_lock(&qp->sq.lock);
	qp->first = qp->sq.head;
	qp->error = ibqp->qp_base.state < IBV_QPS_RTS ? EINVAL : 0;
}

static void vrdma_wr_abort(struct ibv_qp_ex *ibqp)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);

	qp->sq.head = qp->first;
	pthread_spin_unlock(&qp->sq.lock);
}

static int vrdma_wr_complete(struct ibv_qp_ex *ibqp)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);
	int error = qp->error;

	if (error) {
		vrdma_wr_abort(ibqp);
		return error;
	}
	return vrdma_send_submit(qp, qp->first);
}

/* Does a QP of this type support these operations? */
bool vrdma_qp_ex_can(const struct vrdma_context *ctx, enum ibv_qp_type type,
		     uint64_t ops)
{
	uint64_t can = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type != IBV_QPT_UD)
		can |= IBV_QP_EX_WITH_RDMA_WRITE |
		       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
		       IBV_QP_EX_WITH_LOCAL_INV;
	if (type != IBV_QPT_UD && ctx->mw)
		can |= IBV_QP_EX_WITH_BIND_MW;
	if (type == IBV_QPT_RC)
		can |= IBV_QP_EX_WITH_RDMA_READ |
		       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		       IBV_QP_EX_WITH_SEND_WITH_INV;
	if (type == IBV_QPT_RC && ctx->flush)
		can |= IBV_QP_EX_WITH_FLUSH;
	if (type == IBV_QPT_RC && ctx->atomic_write)
		can |= IBV_QP_EX_WITH_ATOMIC_WRITE;
	return !(ops & ~can);
}

/*
 * After rdma-core 44, struct ibv_qp_ex got another member, wr_flush. Up to then
 * struct verbs_qp, which embeds it, has comp_mask at this offset. Creating a QP
 * sets comp_mask to 0, and so shows where it is.
 */
#define UNTOUCHED (~0U)

void vrdma_qp_ex_probe(struct vrdma_qp *qp)
{
	qp->vqp.comp_mask = UNTOUCHED;
}

void vrdma_qp_ex_probed(struct vrdma_qp *qp)
{
	qp->has_wr_flush = qp->vqp.comp_mask != UNTOUCHED;
	if (!qp->has_wr_flush)
		qp->vqp.comp_mask = 0;
}

/* Set the operations of an extended QP. */
void vrdma_qp_ex_init(struct vrdma_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	const uint32_t comp_mask = VERBS_QP_EX;

	if (qp->has_wr_flush) {
		qp->vqp.comp_mask |= comp_mask;
		ex->wr_flush = vrdma_wr_flush;
	} else {
		memcpy(&ex->wr_flush, &comp_mask, sizeof(comp_mask));
	}

	ex->wr_start = vrdma_wr_start;
	ex->wr_complete = vrdma_wr_complete;
	ex->wr_abort = vrdma_wr_abort;
	ex->wr_send = vrdma_wr_send;
	ex->wr_send_imm = vrdma_wr_send_imm;
	ex->wr_send_inv = vrdma_wr_send_inv;
	ex->wr_local_inv = vrdma_wr_local_inv;
	ex->wr_bind_mw = vrdma_wr_bind_mw;
	ex->wr_rdma_read = vrdma_wr_rdma_read;
	ex->wr_rdma_write = vrdma_wr_rdma_write;
	ex->wr_rdma_write_imm = vrdma_wr_rdma_write_imm;
	ex->wr_atomic_cmp_swp = vrdma_wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = vrdma_wr_atomic_fetch_add;
	ex->wr_atomic_write = vrdma_wr_atomic_write;
	ex->wr_set_ud_addr = vrdma_wr_set_ud_addr;
	ex->wr_set_sge = vrdma_wr_set_sge;
	ex->wr_set_sge_list = vrdma_wr_set_sge_list;
	ex->wr_set_inline_data = vrdma_wr_set_inline_data;
	ex->wr_set_inline_data_list = vrdma_wr_set_inline_data_list;
}
