// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Commands: objects have a number and no other state.
 */
#include <linux/io.h>

#include "broken.h"

/* A virtqueue can serve an object if it has an entry for each work request. */
static bool broken_serves(struct broken_device *dev, u32 vq, __le32 max_wr)
{
	return virtqueue_get_vring_size(dev->vqs[vq].vq) >= le32_to_cpu(max_wr);
}

/* The @n-th page of a list; one table has the whole list. */
static void *broken_page(__le64 list, u32 n)
{
	const __le64 *table = phys_to_virt(le64_to_cpu(list));

	return phys_to_virt(le64_to_cpu(table[n]));
}

static bool broken_map_cq(struct broken_cq *cq, __le64 list, u32 pages,
			  u8 levels, u8 depth_shift)
{
	u32 n;

	pages--;
	if (!pages || pages > ARRAY_SIZE(cq->slots) || levels != 1 ||
	    DIV_ROUND_UP(BIT(depth_shift), BROKEN_CQES_PER_PAGE) != pages)
		return false;
	cq->page = broken_page(list, 0);
	for (n = 0; n < pages; n++)
		cq->slots[n] = broken_page(list, 1 + n);
	cq->mask = BIT(depth_shift) - 1;
	return true;
}

static u32 broken_set_wq(struct broken_wq *wq, const __le32 *producer,
			 u32 first_page, u8 depth_shift, u8 shift)
{
	*wq = (struct broken_wq){
		.producer = producer,
		.first_page = first_page,
		.shift = shift,
		.mask = BIT(depth_shift) - 1,
	};
	return first_page +
	       DIV_ROUND_UP(BIT(depth_shift) << shift, BROKEN_PAGE);
}

static bool broken_map_qp(struct broken_qp *qp,
			  const struct virtio_rdma_create_qp_req *req)
{
	u32 pages = le32_to_cpu(req->queue_npages), n;
	struct virtio_rdma_direct_page *page;

	if (!pages || pages > BROKEN_QP_PAGES || req->queue_levels != 1)
		return false;
	for (n = 0; n < pages; n++)
		qp->pages[n] = broken_page(req->queue_pages, n);
	page = (void *)qp->pages[0];
	n = broken_set_wq(&qp->sq, &page->sq_producer, 1, req->sq_depth_shift,
			  req->sq_slot_shift);
	n = broken_set_wq(&qp->rq, &page->rq_producer, n, req->rq_depth_shift,
			  req->rq_slot_shift);
	qp->num_pages = pages;
	/* The device polls its queues all the time. */
	page->sq_awake = cpu_to_le32(1);
	page->rq_awake = cpu_to_le32(1);
	return n == pages;
}

static u8 broken_create_cq(struct broken_device *dev, const void *data,
			   void *rsp)
{
	const struct virtio_rdma_create_cq_req *req = data;
	u32 flags = le32_to_cpu(req->flags);
	u32 most = flags & VIRTIO_RDMA_CQ_DIRECT ? BROKEN_ALL_CQS : BROKEN_CQS;
	struct virtio_rdma_cqn *cqn = rsp;
	struct broken_cq *cq;
	u32 n;

	for (n = 0; n < most && dev->cqs[n].exists; n++)
		;
	if (n == most)
		return VIRTIO_RDMA_S_NOMEM;
	cq = &dev->cqs[n];
	*cq = (struct broken_cq){
		.exists = true,
		.events = flags & VIRTIO_RDMA_CQ_EVENTS,
		.eqn = le32_to_cpu(req->eqn),
	};
	if (flags & VIRTIO_RDMA_CQ_DIRECT &&
	    !broken_map_cq(cq, req->queue_pages, le32_to_cpu(req->queue_npages),
			   req->queue_levels, req->depth_shift)) {
		cq->exists = false;
		return VIRTIO_RDMA_S_INVAL;
	}
	cqn->cqn = cpu_to_le32(n);
	return VIRTIO_RDMA_S_OK;
}

static u8 broken_resize_cq(struct broken_device *dev, const void *data)
{
	const struct virtio_rdma_resize_cq_req *req = data;
	u32 n = le32_to_cpu(req->cqn) % BROKEN_ALL_CQS;
	struct broken_cq *cq = &dev->cqs[n];

	if (!cq->exists || !cq->page)
		return VIRTIO_RDMA_S_NOTSUPP;
	if (cq->produced - le32_to_cpu(cq->page->consumer) >
	    le32_to_cpu(req->cqe) ||
	    !broken_map_cq(cq, req->queue_pages, le32_to_cpu(req->queue_npages),
			   req->queue_levels, req->depth_shift))
		return VIRTIO_RDMA_S_INVAL;
	return VIRTIO_RDMA_S_OK;
}

static u8 broken_create_srq(struct broken_device *dev, const void *data,
			    void *rsp)
{
	const struct virtio_rdma_create_srq_req *req = data;
	struct virtio_rdma_srqn *srqn = rsp;
	u32 n = 0;

	while (n < BROKEN_SRQS &&
	       (dev->srqs[n] ||
		!broken_serves(dev, VIRTIO_RDMA_SRQ_VQ(BROKEN_CQS, BROKEN_QPS,
						       n), req->max_wr)))
		n++;
	if (n == BROKEN_SRQS)
		return VIRTIO_RDMA_S_NOMEM;
	dev->srqs[n] = true;
	srqn->srqn = cpu_to_le32(n);
	return VIRTIO_RDMA_S_OK;
}

static bool broken_qpn_serves(struct broken_device *dev, u32 n,
			      const struct virtio_rdma_create_qp_req *req)
{
	u32 flags = le32_to_cpu(req->flags);

	if (dev->qps[n].exists)
		return false;
	if (flags & VIRTIO_RDMA_QP_DIRECT)
		return true;
	return broken_serves(dev, VIRTIO_RDMA_SQ_VQ(BROKEN_CQS, n),
			     req->max_send_wr) &&
	       (flags & VIRTIO_RDMA_QP_SRQ ||
		broken_serves(dev, VIRTIO_RDMA_RQ_VQ(BROKEN_CQS, n),
			      req->max_recv_wr));
}

static u8 broken_create_qp(struct broken_device *dev, const void *data,
			   void *rsp)
{
	const struct virtio_rdma_create_qp_req *req = data;
	struct virtio_rdma_qpn *qpn = rsp;
	u32 n = req->qp_type == 1 ? 1 : 2;

	while (n < BROKEN_QPS && !broken_qpn_serves(dev, n, req))
		n++;
	if (n == BROKEN_QPS)
		return VIRTIO_RDMA_S_NOMEM;
	dev->qps[n] = (struct broken_qp){
		.exists = true,
		.all_signaled = req->sq_sig_type == VIRTIO_RDMA_SIGNAL_ALL_WR,
		.send_cqn = le32_to_cpu(req->send_cqn),
		.recv_cqn = le32_to_cpu(req->recv_cqn),
	};
	if (le32_to_cpu(req->flags) & VIRTIO_RDMA_QP_DIRECT &&
	    !broken_map_qp(&dev->qps[n], req)) {
		dev->qps[n].exists = false;
		return VIRTIO_RDMA_S_INVAL;
	}
	qpn->qpn = cpu_to_le32(n);
	return VIRTIO_RDMA_S_OK;
}

/* On a transition to RESET a direct QP drops the WQEs in its queues. */
static void broken_reset_wq(struct broken_wq *wq)
{
	wq->taken = le32_to_cpu(READ_ONCE(*wq->producer));
}

static void broken_modify_qp(struct broken_device *dev, const void *data)
{
	const struct virtio_rdma_modify_qp_req *req = data;
	u32 n = le32_to_cpu(req->qpn) % BROKEN_QPS;

	if (!(le32_to_cpu(req->attr_mask) & 1))
		return;
	dev->qps[n].state = req->attr.qp_state;
	if (!req->attr.qp_state && dev->qps[n].num_pages) {
		broken_reset_wq(&dev->qps[n].sq);
		broken_reset_wq(&dev->qps[n].rq);
	}
}

static void broken_query_port(struct broken_device *dev, void *data)
{
	struct virtio_rdma_query_port_rsp *rsp = data;

	rsp->state = 4;
	rsp->max_mtu = 5;
	rsp->active_mtu = 5;
	rsp->phys_mtu = cpu_to_le32(4096);
	rsp->gid_tbl_len = cpu_to_le32(16);
	rsp->max_msg_sz = cpu_to_le32(BIT(30));
	rsp->pkey_tbl_len = cpu_to_le16(1);
	rsp->active_width = 2;
	rsp->active_speed = cpu_to_le16(4);
	rsp->phys_state = 5;
	if (broken_does(dev, BROKEN_PORT_MAX)) {
		rsp->gid_tbl_len = cpu_to_le32(U32_MAX);
		rsp->pkey_tbl_len = cpu_to_le16(U16_MAX);
	}
}

static u32 broken_number(const void *data, u32 num)
{
	return le32_to_cpu(*(const __le32 *)data) % num;
}

static u8 broken_answer(struct broken_device *dev, u8 command, const void *req,
			void *rsp)
{
	struct virtio_rdma_mr_rsp *mr = rsp;

	switch (command) {
	case VIRTIO_RDMA_CMD_QUERY_PORT:
		broken_query_port(dev, rsp);
		break;
	case VIRTIO_RDMA_CMD_QUERY_PKEY:
		((struct virtio_rdma_query_pkey_rsp *)rsp)->pkey =
			cpu_to_le16(0xffff);
		break;
	case VIRTIO_RDMA_CMD_CREATE_CQ:
		return broken_create_cq(dev, req, rsp);
	case VIRTIO_RDMA_CMD_RESIZE_CQ:
		return broken_resize_cq(dev, req);
	case VIRTIO_RDMA_CMD_DESTROY_CQ:
		dev->cqs[broken_number(req, BROKEN_ALL_CQS)].exists = false;
		break;
	case VIRTIO_RDMA_CMD_CREATE_SRQ:
		return broken_create_srq(dev, req, rsp);
	case VIRTIO_RDMA_CMD_DESTROY_SRQ:
		dev->srqs[broken_number(req, BROKEN_SRQS)] = false;
		break;
	case VIRTIO_RDMA_CMD_CREATE_QP:
		return broken_create_qp(dev, req, rsp);
	case VIRTIO_RDMA_CMD_MODIFY_QP:
		broken_modify_qp(dev, req);
		break;
	case VIRTIO_RDMA_CMD_DESTROY_QP:
		dev->qps[broken_number(req, BROKEN_QPS)].exists = false;
		break;
	case VIRTIO_RDMA_CMD_CREATE_PD:
		((struct virtio_rdma_pdn *)rsp)->pdn =
			cpu_to_le32(++dev->next_number);
		break;
	case VIRTIO_RDMA_CMD_GET_DMA_MR:
	case VIRTIO_RDMA_CMD_CREATE_MR:
	case VIRTIO_RDMA_CMD_REG_USER_MR:
		mr->mrn = cpu_to_le32(++dev->next_number);
		mr->lkey = cpu_to_le32(dev->next_number << 8);
		mr->rkey = mr->lkey;
		break;
	default:
		break;
	}
	return VIRTIO_RDMA_S_OK;
}

/* Returns the length of the response. */
u32 broken_execute(struct broken_device *dev, const struct broken_buf *buf)
{
	u8 req[512] = {}, rsp[1024] = {};
	u32 room = min_t(u32, buf->in_len, sizeof(rsp));
	u32 i;

	memcpy(req, buf->out, min_t(u32, buf->out_len, sizeof(req)));
	rsp[0] = broken_answer(dev, req[0], &req[1], &rsp[1]);
	if (broken_does(dev, BROKEN_STATUS))
		rsp[0] = broken_random(dev);
	if (broken_does(dev, BROKEN_RESPONSE)) {
		for (i = 1; i < room; i += sizeof(u32)) {
			u32 value = broken_random(dev);

			memcpy(&rsp[i], &value, sizeof(value));
		}
	}
	memcpy(buf->in, rsp, room);
	if (broken_does(dev, BROKEN_SHORT))
		return broken_random(dev) % room;
	return room;
}
