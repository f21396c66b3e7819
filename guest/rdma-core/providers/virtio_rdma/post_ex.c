/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended posting: work requests are built call by call, right in their
 * slots. From wr_start to wr_complete or wr_abort the send queue is locked.
 */
#include <errno.h>
#include <string.h>

#include "vrdma.h"

#define ATOMIC_WRITE_SIZE 8

static struct vrdma_qp *to_vqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct vrdma_qp, vqp.qp_ex);
}

/* The slot of the request that is being built. */
static struct virtio_rdma_wqe_slot *current_slot(struct vrdma_qp *qp)
{
	struct vrdma_wq *wq = &qp->sq;

	return (void *)(wq->slots +
			((wq->head - 1) & wq->mask) * wq->slot_size);
}

static struct virtio_rdma_sq_wqe *current_wqe(struct vrdma_qp *qp)
{
	return (void *)current_slot(qp)->wqe;
}

/* Begin a request; NULL if there can be none. */
static struct virtio_rdma_sq_wqe *begin(struct ibv_qp_ex *ibqp,
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
	wqe = vrdma_begin_send(qp);
	vrdma_end_send(qp, wqe, opcode, ibqp->wr_flags, 0, ibqp->wr_id);
	return wqe;
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct virtio_rdma_sq_wqe *wqe = begin(qp, IBV_WR_SEND_WITH_IMM);

	if (wqe)
		memcpy(wqe->ex.imm_data, &imm, sizeof(imm));
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct virtio_rdma_sq_wqe *wqe = begin(qp, IBV_WR_SEND_WITH_INV);

	if (wqe)
		wqe->ex.invalidate_rkey = htole32(rkey);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	struct virtio_rdma_sq_wqe *wqe = begin(qp, IBV_WR_LOCAL_INV);

	if (wqe)
		wqe->ex.invalidate_rkey = htole32(rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct virtio_rdma_sq_wqe *wqe = begin(qp, IBV_WR_BIND_MW);

	if (wqe)
		vrdma_put_bind(wqe, mw, rkey, info);
}

static struct virtio_rdma_sq_wqe *begin_rdma(struct ibv_qp_ex *qp,
					     enum ibv_wr_opcode opcode,
					     uint32_t rkey, uint64_t addr)
{
	struct virtio_rdma_sq_wqe *wqe = begin(qp, opcode);

	if (wqe) {
		wqe->wr.rdma.remote_addr = htole64(addr);
		wqe->wr.rdma.rkey = htole32(rkey);
	}
	return wqe;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	begin_rdma(qp, IBV_WR_RDMA_READ, rkey, addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr)
{
	begin_rdma(qp, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, __be32 imm)
{
	struct virtio_rdma_sq_wqe *wqe =
		begin_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);

	if (wqe)
		memcpy(wqe->ex.imm_data, &imm, sizeof(imm));
}

static void begin_atomic(struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode,
			 uint32_t rkey, uint64_t addr, uint64_t compare_add,
			 uint64_t swap)
{
	struct virtio_rdma_sq_wqe *wqe = begin(qp, opcode);

	if (!wqe)
		return;
	wqe->wr.atomic.remote_addr = htole64(addr);
	wqe->wr.atomic.compare_add = htole64(compare_add);
	wqe->wr.atomic.swap = htole64(swap);
	wqe->wr.atomic.rkey = htole32(rkey);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr, uint64_t compare, uint64_t swap)
{
	begin_atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t addr, uint64_t add)
{
	begin_atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr, add, 0);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);

	if (!qp->error)
		vrdma_put_ud(current_wqe(qp), ah, qpn, qkey);
}

static void set_length(struct vrdma_qp *qp, uint32_t payload)
{
	current_slot(qp)->length = sizeof(struct virtio_rdma_sq_wqe) + payload;
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num,
			    const struct ibv_sge *list)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);
	struct virtio_rdma_sq_wqe *wqe = current_wqe(qp);

	if (qp->error)
		return;
	if (num > qp->sq.max_sge) {
		qp->error = EINVAL;
		return;
	}
	wqe->num_sge = htole32(num);
	vrdma_put_sges((void *)(wqe + 1), list, num);
	set_length(qp, num * sizeof(struct virtio_rdma_sge));
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	const struct ibv_sge sge = {
		.addr = addr, .length = length, .lkey = lkey,
	};

	/* A message without data needs no key. */
	wr_set_sge_list(ibqp, length ? 1 : 0, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num,
				    const struct ibv_data_buf *list)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);
	struct virtio_rdma_sq_wqe *wqe = current_wqe(qp);
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
	set_length(qp, n);
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
			       size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			    uint64_t addr, const void *value)
{
	struct virtio_rdma_sq_wqe *wqe =
		begin_rdma(ibqp, IBV_WR_ATOMIC_WRITE, rkey, addr);

	/* It lies inline, however little of that the QP was created with. */
	if (wqe) {
		memcpy(wqe + 1, value, ATOMIC_WRITE_SIZE);
		wqe->send_flags |= htole32(IBV_SEND_INLINE);
		set_length(to_vqp_ex(ibqp), ATOMIC_WRITE_SIZE);
	}
}

static void wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t addr,
		     size_t length, uint8_t type, uint8_t level)
{
	struct virtio_rdma_sq_wqe *wqe = begin(ibqp, IBV_WR_FLUSH);

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

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);

	pthread_spin_lock(&qp->sq.lock);
	qp->first = qp->sq.head;
	qp->error = ibqp->qp_base.state < IBV_QPS_RTS ? EINVAL : 0;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);

	qp->sq.head = qp->first;
	pthread_spin_unlock(&qp->sq.lock);
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct vrdma_qp *qp = to_vqp_ex(ibqp);
	int error = qp->error;

	if (error) {
		wr_abort(ibqp);
		return error;
	}
	return vrdma_ring_send(qp, qp->first);
}

/* Can a QP of this type have these operations? */
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
 * struct ibv_qp_ex has grown by wr_flush since libibverbs 44, whose private
 * struct verbs_qp thus has its comp_mask there. That is set to 0 when a QP is
 * created: so one can see where it is.
 */
#define UNTOUCHED (~0U)

void vrdma_probe_qp_ex(struct vrdma_qp *qp)
{
	qp->vqp.comp_mask = UNTOUCHED;
}

void vrdma_probed_qp_ex(struct vrdma_qp *qp)
{
	qp->has_wr_flush = qp->vqp.comp_mask != UNTOUCHED;
	if (!qp->has_wr_flush)
		qp->vqp.comp_mask = 0;
}

/* Make a new QP an extended one. */
void vrdma_init_qp_ex(struct vrdma_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	const uint32_t comp_mask = VERBS_QP_EX;

	if (qp->has_wr_flush) {
		qp->vqp.comp_mask |= comp_mask;
		ex->wr_flush = wr_flush;
	} else {
		memcpy(&ex->wr_flush, &comp_mask, sizeof(comp_mask));
	}

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_set_ud_addr = wr_set_ud_addr;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
}
