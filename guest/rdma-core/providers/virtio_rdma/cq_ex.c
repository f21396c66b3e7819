/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended CQs: completions are consumed one at a time and read field by field.
 * The CQ is locked from start_poll to end_poll.
 */
#include <errno.h>

#include "vrdma.h"

static struct vrdma_cq *to_vcq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct vrdma_cq, vcq.cq_ex);
}

static int vrdma_next_poll(struct ibv_cq_ex *ibcq)
{
	struct vrdma_cq *cq = to_vcq_ex(ibcq);
	int ret = vrdma_cq_next(cq, &cq->wc);

	if (ret <= 0)
		return ret ? EIO : ENOENT;
	ibcq->status = cq->wc.status;
	ibcq->wr_id = cq->wc.wr_id;
	return 0;
}

static void vrdma_end_poll(struct ibv_cq_ex *ibcq)
{
	struct vrdma_cq *cq = to_vcq_ex(ibcq);

	vrdma_cq_consumed(cq);
	pthread_spin_unlock(&cq->lock);
}

static int vrdma_start_poll(struct ibv_cq_ex *ibcq,
			    struct ibv_poll_cq_attr *attr)
{
	struct vrdma_cq *cq = to_vcq_ex(ibcq);
	int ret;

	if (attr->comp_mask)
		return EINVAL;
	pthread_spin_lock(&cq->lock);
	ret = vrdma_next_poll(ibcq);
	/*
	 * Programs do not call end_poll after an error, but completions may
	 * have been consumed and dropped.
	 */
	if (ret)
		vrdma_end_poll(ibcq);
	return ret;
}

static enum ibv_wc_opcode vrdma_read_opcode(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.opcode;
}

static uint32_t vrdma_read_vendor_err(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.vendor_err;
}

static uint32_t vrdma_read_byte_len(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.byte_len;
}

static __be32 vrdma_read_imm_data(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.imm_data;
}

static uint32_t vrdma_read_qp_num(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.qp_num;
}

static uint32_t vrdma_read_src_qp(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.src_qp;
}

static unsigned int vrdma_read_wc_flags(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.wc_flags;
}

static uint32_t vrdma_read_slid(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.slid;
}

static uint8_t vrdma_read_sl(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.sl;
}

static uint8_t vrdma_read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->wc.dlid_path_bits;
}

static uint16_t vrdma_read_cvlan(struct ibv_cq_ex *cq)
{
	return to_vcq_ex(cq)->vlan;
}

struct ibv_cq_ex *vrdma_create_cq_ex(struct ibv_context *ctx,
				     struct ibv_cq_init_attr_ex *attr)
{
	uint64_t fields = IBV_WC_STANDARD_FLAGS;
	struct ibv_cq_ex *cq_ex;
	struct ibv_cq *cq;

	/* POLL_CQ returns no VLANs. */
	if (to_vctx(ctx)->direct)
		fields |= IBV_WC_EX_WITH_CVLAN;
	if (attr->comp_mask & ~IBV_CQ_INIT_ATTR_MASK_FLAGS ||
	    attr->wc_flags & ~fields ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
	     attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = vrdma_create_cq(ctx, attr->cqe, attr->channel, attr->comp_vector);
	if (!cq)
		return NULL;
	cq_ex = &to_vcq(cq)->vcq.cq_ex;
	cq_ex->start_poll = vrdma_start_poll;
	cq_ex->next_poll = vrdma_next_poll;
	cq_ex->end_poll = vrdma_end_poll;
	cq_ex->read_opcode = vrdma_read_opcode;
	cq_ex->read_vendor_err = vrdma_read_vendor_err;
	cq_ex->read_byte_len = vrdma_read_byte_len;
	cq_ex->read_imm_data = vrdma_read_imm_data;
	cq_ex->read_qp_num = vrdma_read_qp_num;
	cq_ex->read_src_qp = vrdma_read_src_qp;
	cq_ex->read_wc_flags = vrdma_read_wc_flags;
	cq_ex->read_slid = vrdma_read_slid;
	cq_ex->read_sl = vrdma_read_sl;
	cq_ex->read_dlid_path_bits = vrdma_read_dlid_path_bits;
	cq_ex->read_cvlan = vrdma_read_cvlan;
	return cq_ex;
}
