// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Queue pairs.
 */
#include <linux/etherdevice.h>
#include <linux/random.h>
#include <net/arp.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/uverbs_ioctl.h>

#include "queue.h"

static int vrdma_qp_check_caps(struct vrdma_dev *dev,
			       const struct ib_qp_cap *cap)
{
	const struct ib_device_attr *attr = &dev->attr;

	if (cap->max_send_wr > attr->max_qp_wr ||
	    cap->max_recv_wr > attr->max_qp_wr ||
	    cap->max_send_sge > attr->max_send_sge ||
	    cap->max_recv_sge > attr->max_recv_sge ||
	    cap->max_inline_data > dev->max_inline)
		return -EINVAL;
	return 0;
}

/*
 * The RDMA core expects numbers on the wire to have 24 bits, and 0 and 1 to be
 * those of the SMI and the GSI.
 */
static int vrdma_qp_set_num(struct vrdma_dev *dev, struct vrdma_qp *qp,
			    enum ib_qp_type type,
			    const struct virtio_rdma_create_qp_rsp *rsp)
{
	u32 num = dev->host_numbers ? le32_to_cpu(rsp->wire_qpn) : qp->qpn;

	if (type == IB_QPT_GSI ? num != VRDMA_QPN_GSI
			       : num < VRDMA_QPN_FIRST || num > VRDMA_QPN_MAX)
		return -EPROTO;
	qp->ibqp.qp_num = num;
	return 0;
}

static void vrdma_qp_fill_req(struct vrdma_qp *qp,
			      const struct ib_qp_init_attr *init,
			      struct virtio_rdma_create_qp_req *req)
{
	u32 flags = 0;

	*req = (struct virtio_rdma_create_qp_req){
		.pdn = cpu_to_le32(to_vpd(qp->ibqp.pd)->pdn),
		.qp_type = init->qp_type,
		.sq_sig_type = init->sq_sig_type == IB_SIGNAL_ALL_WR ?
				VIRTIO_RDMA_SIGNAL_ALL_WR :
				VIRTIO_RDMA_SIGNAL_REQ_WR,
		.max_send_wr = cpu_to_le32(max_t(u32, qp->sq.max_wr,
						 VRDMA_DEPTH_MIN)),
		.max_send_sge = cpu_to_le32(qp->sq.max_sge),
		.send_cqn = cpu_to_le32(to_vcq(init->send_cq)->cqn),
		.max_recv_wr = cpu_to_le32(max_t(u32, qp->rq.max_wr,
						 VRDMA_DEPTH_MIN)),
		.max_recv_sge = cpu_to_le32(qp->rq.max_sge),
		.recv_cqn = cpu_to_le32(to_vcq(init->recv_cq)->cqn),
		.max_inline_data = cpu_to_le32(qp->max_inline),
	};
	if (init->srq) {
		flags |= VIRTIO_RDMA_QP_SRQ;
		req->srqn = cpu_to_le32(to_vsrq(init->srq)->srqn);
	}
	if (init->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		flags |= VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK;
	req->flags = cpu_to_le32(flags);
}

/* Memory for both queues: a page of counters, and their slots after it */
static int vrdma_qp_alloc(struct vrdma_dev *dev, struct vrdma_qp *qp,
			  const struct ib_qp_cap *cap)
{
	u32 sq_shift = vrdma_send_slot_shift(cap);
	u32 rq_shift = vrdma_recv_slot_shift(cap->max_recv_sge);
	u32 sq_slots = vrdma_slots(cap->max_send_wr);
	u32 rq_slots = qp->ibqp.srq ? 0 : vrdma_slots(cap->max_recv_wr);
	u32 rq_page = 1 + vrdma_slot_pages(sq_slots, sq_shift);
	struct vrdma_area *area;

	area = vrdma_area_alloc(dev, rq_page + vrdma_slot_pages(rq_slots,
								rq_shift));
	if (IS_ERR(area))
		return PTR_ERR(area);
	qp->area = area;
	vrdma_ring_init(&qp->sq.ring, area->buf, VRDMA_PAGE_SIZE, sq_slots,
			sq_shift);
	if (rq_slots)
		vrdma_ring_init(&qp->rq.ring, area->buf,
				rq_page << VRDMA_PAGE_SHIFT, rq_slots,
				rq_shift);
	return 0;
}

static void vrdma_qp_free(struct vrdma_dev *dev, struct vrdma_qp *qp)
{
	vrdma_requests_free(&qp->sq);
	vrdma_requests_free(&qp->rq);
	vrdma_area_free(dev, qp->area);
}

/* @user: the command may fail, because the QP may be in use. */
static int vrdma_qp_destroy_cmd(struct vrdma_dev *dev, struct vrdma_qp *qp,
				bool user)
{
	struct virtio_rdma_qpn req = { .qpn = cpu_to_le32(qp->qpn) };

	dev->form->stop_qp(qp);
	return vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_QP, &req, user);
}

/* Have the device create the QP, and learn its number. */
static int vrdma_qp_create_cmd(struct vrdma_dev *dev, struct vrdma_qp *qp,
			       const struct ib_qp_init_attr *init,
			       struct ib_udata *udata)
{
	struct virtio_rdma_create_qp_req req;
	struct virtio_rdma_create_qp_rsp rsp = {};
	int ret;

	vrdma_qp_fill_req(qp, init, &req);
	ret = dev->form->create_qp(qp, udata, &req, &rsp);
	if (ret)
		return ret;
	qp->qpn = le32_to_cpu(rsp.qpn);
	if (qp->qpn >= dev->num_qp || dev->qps[qp->qpn]) {
		/* The number names another QP, so nothing can destroy it. */
		vrdma_broken(dev, "QP %u: the number is not free", qp->qpn);
		vrdma_wait_stopped(dev);
		return -EPROTO;
	}
	dev->form->start_qp(qp);
	ret = vrdma_qp_set_num(dev, qp, init->qp_type, &rsp);
	if (!ret)
		return 0;
	vrdma_qp_destroy_cmd(dev, qp, false);
	dev->form->free_qp(qp);
	return ret;
}

/* The kernel's requests, one for each slot */
static int vrdma_qp_alloc_requests(struct vrdma_dev *dev, struct vrdma_qp *qp)
{
	if (vrdma_requests_init(dev, &qp->sq, vrdma_ring_slots(&qp->sq.ring)))
		return -ENOMEM;
	if (qp->ibqp.srq)
		return 0;
	return vrdma_requests_init(dev, &qp->rq,
				   vrdma_ring_slots(&qp->rq.ring));
}

/* Let the process map the QP, and say how. */
static int vrdma_qp_map(struct vrdma_qp *qp, struct ib_udata *udata,
			struct virtio_rdma_create_qp_resp *resp)
{
	struct vrdma_buf *buf = qp->area->buf;
	int ret;

	*resp = (struct virtio_rdma_create_qp_resp) {
		.mmap_size = buf->npages << PAGE_SHIFT,
		.sq_offset = qp->sq.ring.offset,
		.sq_slots = vrdma_ring_slots(&qp->sq.ring),
		.sq_slot_size = BIT(qp->sq.ring.shift),
		.qpn = qp->qpn,
	};
	if (qp->rq.ring.buf) {
		resp->rq_offset = qp->rq.ring.offset;
		resp->rq_slots = vrdma_ring_slots(&qp->rq.ring);
		resp->rq_slot_size = BIT(qp->rq.ring.shift);
	}
	qp->mmap = vrdma_mmap_insert(udata, buf);
	if (IS_ERR(qp->mmap)) {
		ret = PTR_ERR(qp->mmap);
		qp->mmap = NULL;
		return ret;
	}
	resp->mmap_offset = rdma_user_mmap_get_offset(&qp->mmap->rdma);
	return 0;
}

/* With @qp NULL, the QP with this number leaves the table. */
static void vrdma_qp_set_entry(struct vrdma_dev *dev, u32 qpn,
			       struct vrdma_qp *qp)
{
	vrdma_events_lock(dev);
	spin_lock(&dev->qps_lock);
	WRITE_ONCE(dev->qps[qpn], qp);
	spin_unlock(&dev->qps_lock);
	vrdma_events_unlock(dev);
}

static void vrdma_qp_await_flush(struct vrdma_qp *qp)
{
	u32 seconds = vrdma_timeout();

	if (seconds)
		schedule_delayed_work(&qp->flush_work, seconds * HZ);
}

/*
 * Users in the kernel move a QP to the error state and wait, without a limit,
 * until all its work requests have completed. A device that completes none of
 * them for long is broken. It has done its part if the user does not poll.
 */
static void vrdma_qp_flush_work(struct work_struct *work)
{
	struct vrdma_qp *qp = container_of(work, struct vrdma_qp,
					   flush_work.work);
	struct vrdma_dev *dev = to_vdev(qp->ibqp.device);
	bool sq = vrdma_requests_overdue(&qp->sq, &qp->flush_seen[0]) &&
		  vrdma_cq_is_empty(qp->sq.cq);
	bool rq = vrdma_requests_overdue(&qp->rq, &qp->flush_seen[1]) &&
		  vrdma_cq_is_empty(qp->rq.cq);

	if (READ_ONCE(qp->state) != IB_QPS_ERR || READ_ONCE(dev->dead))
		return;
	if (sq || rq)
		vrdma_broken(dev, "QP %u: work requests are not flushed",
			     qp->qpn);
	else
		vrdma_qp_await_flush(qp);
}

/* @user: the command may fail, because the QP may be in use. */
static int vrdma_qp_end(struct vrdma_qp *qp, bool user)
{
	struct vrdma_dev *dev = qp->sq.dev;
	int ret;

	vrdma_objects_lock(dev);
	ret = vrdma_qp_destroy_cmd(dev, qp, user);
	if (!ret) {
		cancel_delayed_work_sync(&qp->flush_work);
		/*
		 * While there are completions of the QP, a thread that polls
		 * one has to find the QP: else the device seems to be broken.
		 */
		vrdma_cq_clean(qp->sq.cq, qp);
		vrdma_cq_clean(qp->rq.cq, qp);
		vrdma_qp_set_entry(dev, qp->qpn, NULL);
		vrdma_cq_detach(qp->sq.cq);
		vrdma_cq_detach(qp->rq.cq);
		vrdma_mmap_remove(qp->mmap);
		dev->form->free_qp(qp);
		vrdma_qp_free(dev, qp);
	}
	vrdma_objects_unlock(dev);
	return ret;
}

int vrdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibqp->device);
	struct virtio_rdma_create_qp_resp resp;
	struct vrdma_qp *qp = to_vqp(ibqp);
	u32 flags = 0;
	int ret;

	if (dev->attr.max_mcast_grp)
		flags |= IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	if (init->create_flags & ~flags || !init->send_cq || !init->recv_cq)
		return -EOPNOTSUPP;
	switch (init->qp_type) {
	case IB_QPT_RC:
	case IB_QPT_UC:
	case IB_QPT_UD:
		break;
	case IB_QPT_GSI:
		if (!udata)
			break;
		fallthrough;
	default:
		return -EOPNOTSUPP;
	}
	if (init->srq) {
		init->cap.max_recv_wr = 0;
		init->cap.max_recv_sge = 0;
	}
	ret = vrdma_qp_check_caps(dev, &init->cap);
	if (ret)
		return ret;
	/* Programs send inline if there is room, without asking for any. */
	init->cap.max_inline_data = vrdma_send_slot_inline(&init->cap,
							   dev->max_inline);

	spin_lock_init(&qp->sq.ring.lock);
	spin_lock_init(&qp->rq.ring.lock);
	qp->sq.dev = dev;
	qp->rq.dev = dev;
	qp->sq.cq = to_vcq(init->send_cq);
	qp->rq.cq = to_vcq(init->recv_cq);
	qp->user = !!udata;
	qp->state = IB_QPS_RESET;
	qp->sig_type = init->sq_sig_type;
	qp->sq.max_wr = init->cap.max_send_wr;
	qp->sq.max_sge = init->cap.max_send_sge;
	qp->rq.max_wr = init->cap.max_recv_wr;
	qp->rq.max_sge = init->cap.max_recv_sge;
	qp->max_inline = init->cap.max_inline_data;
	INIT_DELAYED_WORK(&qp->flush_work, vrdma_qp_flush_work);
	qp->flush_seen[0] = -1;
	qp->flush_seen[1] = -1;

	vrdma_objects_lock(dev);
	ret = qp->user ? 0 : vrdma_cq_renew(qp->sq.cq) ?:
			     vrdma_cq_renew(qp->rq.cq);
	if (ret)
		goto err_unlock;
	ret = vrdma_qp_alloc(dev, qp, &init->cap);
	if (ret)
		goto err_unlock;
	ret = qp->user ? 0 : vrdma_qp_alloc_requests(dev, qp);
	if (!ret)
		ret = vrdma_qp_create_cmd(dev, qp, init, udata);
	if (ret)
		goto err_free;
	if (qp->user) {
		ret = vrdma_qp_map(qp, udata, &resp);
		if (ret)
			goto err_destroy;
	}
	vrdma_cq_attach(to_vcq(init->send_cq));
	vrdma_cq_attach(to_vcq(init->recv_cq));
	vrdma_qp_set_entry(dev, qp->qpn, qp);
	vrdma_objects_unlock(dev);
	if (!qp->user)
		return 0;
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (ret)
		vrdma_qp_end(qp, false);
	return ret;

err_destroy:
	vrdma_qp_destroy_cmd(dev, qp, false);
	dev->form->free_qp(qp);
err_free:
	vrdma_qp_free(dev, qp);
err_unlock:
	vrdma_objects_unlock(dev);
	return ret;
}

static void vrdma_ah_attr_put(struct virtio_rdma_ah_attr *to,
			      struct rdma_ah_attr *from)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(from);

	memcpy(to->dgid, grh->dgid.raw, sizeof(to->dgid));
	to->flow_label = cpu_to_le32(grh->flow_label);
	to->sgid_index = grh->sgid_index;
	to->hop_limit = grh->hop_limit;
	to->traffic_class = grh->traffic_class;
	to->sl = rdma_ah_get_sl(from);
	to->static_rate = rdma_ah_get_static_rate(from);
	to->port_num = rdma_ah_get_port_num(from);
	to->ah_flags = rdma_ah_get_ah_flags(from);
	memcpy(to->dmac, rdma_ah_retrieve_dmac(from), sizeof(to->dmac));
}

static void vrdma_ah_attr_get(struct rdma_ah_attr *to,
			      const struct virtio_rdma_ah_attr *from)
{
	to->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_ah_flags(to, from->ah_flags);
	rdma_ah_set_grh(to, NULL, le32_to_cpu(from->flow_label),
			from->sgid_index, from->hop_limit,
			from->traffic_class);
	rdma_ah_set_dgid_raw(to, (void *)from->dgid);
	rdma_ah_set_sl(to, from->sl);
	rdma_ah_set_static_rate(to, from->static_rate);
	rdma_ah_set_port_num(to, from->port_num);
	memcpy(to->roce.dmac, from->dmac, sizeof(from->dmac));
}

/*
 * Set the MAC address of an IPv4 peer on the NIC's own network, if the kernel
 * knows it.
 */
static void vrdma_neigh_mac(const struct rdma_ah_attr *ah, u8 mac[ETH_ALEN])
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);
	struct net_device *netdev;
	struct neighbour *neigh;
	__be32 ip;

	if (!grh->sgid_attr ||
	    !ipv6_addr_v4mapped((const struct in6_addr *)grh->dgid.raw))
		return;
	memcpy(&ip, grh->dgid.raw + 12, sizeof(ip));

	rcu_read_lock();
	netdev = rdma_read_gid_attr_ndev_rcu(grh->sgid_attr);
	neigh = IS_ERR_OR_NULL(netdev) ? NULL :
		neigh_lookup(&arp_tbl, &ip, netdev);
	if (neigh) {
		if (READ_ONCE(neigh->nud_state) & NUD_VALID)
			neigh_ha_snapshot(mac, neigh, netdev);
		neigh_release(neigh);
	}
	rcu_read_unlock();
}

int vrdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibqp->device);
	struct virtio_rdma_modify_qp_req req = {
		.qpn = cpu_to_le32(to_vqp(ibqp)->qpn),
		.attr_mask = cpu_to_le32(mask),
		.attr = {
			.qp_state = attr->qp_state,
			.cur_qp_state = attr->cur_qp_state,
			.path_mtu = attr->path_mtu,
			.path_mig_state = attr->path_mig_state,
			.qkey = cpu_to_le32(attr->qkey),
			.rq_psn = cpu_to_le32(attr->rq_psn),
			.sq_psn = cpu_to_le32(attr->sq_psn),
			.dest_qp_num = cpu_to_le32(attr->dest_qp_num),
			.qp_access_flags = cpu_to_le32(attr->qp_access_flags),
			.pkey_index = cpu_to_le16(attr->pkey_index),
			.en_sqd_async_notify = attr->en_sqd_async_notify,
			.max_rd_atomic = attr->max_rd_atomic,
			.max_dest_rd_atomic = attr->max_dest_rd_atomic,
			.min_rnr_timer = attr->min_rnr_timer,
			.port_num = attr->port_num,
			.timeout = attr->timeout,
			.retry_cnt = attr->retry_cnt,
			.rnr_retry = attr->rnr_retry,
			.rate_limit = cpu_to_le32(attr->rate_limit),
		},
	};
	struct vrdma_qp *qp = to_vqp(ibqp);
	int ret;

	if (mask & ~(IB_QP_ATTR_STANDARD_BITS | IB_QP_RATE_LIMIT))
		return -EOPNOTSUPP;
	/* No device allows it: a refusal does not mean that this one fails. */
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR &&
	    READ_ONCE(qp->state) == IB_QPS_RESET)
		return -EINVAL;
	if (mask & IB_QP_AV) {
		if (attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE)
			return -EINVAL;
		vrdma_ah_attr_put(&req.attr.ah_attr, &attr->ah_attr);
		/* SMC leaves it out where it finds no GID of RoCE v1. */
		if (is_zero_ether_addr(req.attr.ah_attr.dmac))
			vrdma_neigh_mac(&attr->ah_attr, req.attr.ah_attr.dmac);
	}
	ret = vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_MODIFY_QP, &req);
	/*
	 * Users drain a QP after they have moved it to the error state, and a
	 * dead device flushes, so this must not fail.
	 */
	if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR)
		ret = vrdma_ctrl_ended(dev, VIRTIO_RDMA_CMD_MODIFY_QP, ret,
				       qp->user || mask != IB_QP_STATE);
	if (ret || !(mask & IB_QP_STATE))
		return ret;

	WRITE_ONCE(qp->state, attr->qp_state);
	if (attr->qp_state == IB_QPS_ERR && !qp->user) {
		vrdma_qp_await_flush(qp);
		/* For the requests of a CQ that has failed */
		vrdma_wake(dev);
	}
	if (attr->qp_state == IB_QPS_RESET) {
		vrdma_cq_clean(to_vcq(ibqp->send_cq), qp);
		vrdma_cq_clean(to_vcq(ibqp->recv_cq), qp);
		vrdma_requests_reset(dev, &qp->sq);
		vrdma_requests_reset(dev, &qp->rq);
	}
	return 0;
}

int vrdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct virtio_rdma_query_qp_req req = {
		.qpn = cpu_to_le32(to_vqp(ibqp)->qpn),
		.attr_mask = cpu_to_le32(mask),
	};
	struct vrdma_qp *qp = to_vqp(ibqp);
	struct virtio_rdma_qp_attr rsp;
	int ret;

	ret = vrdma_ctrl_ask(to_vdev(ibqp->device), VIRTIO_RDMA_CMD_QUERY_QP,
			     &req, &rsp);
	if (ret)
		return ret;

	memset(attr, 0, sizeof(*attr));
	attr->qp_state = rsp.qp_state;
	attr->cur_qp_state = rsp.cur_qp_state;
	attr->path_mtu = rsp.path_mtu;
	attr->path_mig_state = rsp.path_mig_state;
	attr->qkey = le32_to_cpu(rsp.qkey);
	attr->rq_psn = le32_to_cpu(rsp.rq_psn);
	attr->sq_psn = le32_to_cpu(rsp.sq_psn);
	attr->dest_qp_num = le32_to_cpu(rsp.dest_qp_num);
	attr->qp_access_flags = le32_to_cpu(rsp.qp_access_flags);
	attr->pkey_index = le16_to_cpu(rsp.pkey_index);
	attr->en_sqd_async_notify = rsp.en_sqd_async_notify;
	attr->sq_draining = rsp.sq_draining;
	attr->max_rd_atomic = rsp.max_rd_atomic;
	attr->max_dest_rd_atomic = rsp.max_dest_rd_atomic;
	attr->min_rnr_timer = rsp.min_rnr_timer;
	attr->port_num = rsp.port_num;
	attr->timeout = rsp.timeout;
	attr->retry_cnt = rsp.retry_cnt;
	attr->rnr_retry = rsp.rnr_retry;
	attr->rate_limit = le32_to_cpu(rsp.rate_limit);
	vrdma_ah_attr_get(&attr->ah_attr, &rsp.ah_attr);
	attr->cap.max_send_wr = qp->sq.max_wr;
	attr->cap.max_recv_wr = qp->rq.max_wr;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	attr->cap.max_inline_data = qp->max_inline;

	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sig_type;
	init->qp_type = ibqp->qp_type;
	init->port_num = attr->port_num;
	return 0;
}

int vrdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct vrdma_qp *qp = to_vqp(ibqp);

	return vrdma_qp_end(qp, qp->user);
}
