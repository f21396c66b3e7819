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

static void vrdma_qp_use_vqs(struct vrdma_dev *dev, struct vrdma_qp *qp,
			     u32 qpn)
{
	qp->qpn = qpn;
	qp->sq.ring.vq = dev->vqs[VIRTIO_RDMA_SQ_VQ(dev->num_cq, qpn)];
	qp->rq.ring.vq = dev->vqs[VIRTIO_RDMA_RQ_VQ(dev->num_cq, qpn)];
}

static int vrdma_qp_prepare_vqs(struct vrdma_dev *dev, struct vrdma_qp *qp)
{
	int ret;

	ret = vrdma_vq_prepare(dev, qp->sq.ring.vq,
			       max_t(u32, qp->sq.max_wr, VRDMA_DEPTH_MIN));
	/* The receive queue of a QP with an SRQ stays empty. */
	if (ret || qp->ibqp.srq)
		return ret;
	return vrdma_vq_prepare(dev, qp->rq.ring.vq,
				max_t(u32, qp->rq.max_wr, VRDMA_DEPTH_MIN));
}

/*
 * Release the virtqueues and their slots. If neither a reset nor the device
 * has returned all buffers, the device may still access the slots: they are
 * freed when it is reset, and the number is not used until then.
 */
static void vrdma_qp_release_vqs(struct vrdma_dev *dev, struct vrdma_qp *qp)
{
	bool reset;

	if (qp->direct) {
		vrdma_direct_free(dev, qp);
		vrdma_requests_free(&qp->sq);
		vrdma_requests_free(&qp->rq);
		clear_bit(qp->qpn, dev->qps_busy);
		return;
	}
	reset = !vrdma_vq_reset(dev, qp->sq.ring.vq) &&
		!vrdma_vq_reset(dev, qp->rq.ring.vq);
	vrdma_requests_free(&qp->sq);
	vrdma_requests_free(&qp->rq);
	if (reset ||
	    (vrdma_wq_is_empty(&qp->sq) && vrdma_wq_is_empty(&qp->rq))) {
		vrdma_buf_put(qp->sq.ring.buf);
		clear_bit(qp->qpn, dev->qps_busy);
	} else {
		vrdma_buf_keep(dev, qp->sq.ring.buf);
	}
	/* The buffer of the send queue, once more */
	vrdma_buf_put(qp->rq.ring.buf);
}

/*
 * A number that is not in use, or dev->num_qp if there is none. It is a random
 * one: a peer, or who names a QP that is gone, should not guess the next.
 */
static u32 vrdma_qp_find_free(struct vrdma_dev *dev, enum ib_qp_type type)
{
	u32 first = VRDMA_QPN_FIRST;
	u32 qpn;

	if (type == IB_QPT_GSI)
		return test_bit(VRDMA_QPN_GSI, dev->qps_busy) ? dev->num_qp
							      : VRDMA_QPN_GSI;
	if (dev->num_qp > first)
		first += get_random_u32() % (dev->num_qp - first);
	qpn = find_next_zero_bit(dev->qps_busy, dev->num_qp, first);
	return qpn < dev->num_qp ? qpn :
	       find_next_zero_bit(dev->qps_busy, dev->num_qp, VRDMA_QPN_FIRST);
}

/*
 * The RDMA core takes numbers on the wire to have 24 bits, and 0 and 1 to be
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

/* The memory of its queues is about to be freed: the device has to let go. */
static void vrdma_qp_is_kept(struct vrdma_dev *dev, const struct vrdma_qp *qp)
{
	vrdma_broken(dev, "QP %u, which it has made, cannot be destroyed",
		     qp->qpn);
	vrdma_wait_stopped(dev);
}

/*
 * Have the device create a QP that has no virtqueues, with whichever number it
 * chooses. Marks the number as used.
 */
static int vrdma_qp_create_direct(struct vrdma_dev *dev, struct vrdma_qp *qp,
				  const struct ib_qp_init_attr *init,
				  u32 doorbell)
{
	struct virtio_rdma_create_qp_req req;
	struct virtio_rdma_create_qp_rsp rsp = {};
	struct virtio_rdma_qpn destroy;
	int ret;

	vrdma_qp_fill_req(qp, init, &req);
	req.flags |= cpu_to_le32(VIRTIO_RDMA_QP_DIRECT);
	qp->sq.ring.shift = vrdma_send_slot_shift(&init->cap);
	qp->rq.ring.shift = vrdma_recv_slot_shift(init->cap.max_recv_sge);
	ret = vrdma_direct_init(dev, qp, &init->cap, doorbell, &req);
	if (ret)
		return ret;
	ret = vrdma_direct_create_cmd(dev, qp, &req, &rsp);
	if (ret)
		goto err;
	destroy.qpn = rsp.qpn;
	qp->qpn = le32_to_cpu(rsp.qpn);
	ret = -EPROTO;
	if (qp->qpn >= dev->num_qp || test_and_set_bit(qp->qpn, dev->qps_busy))
		goto err_destroy;
	ret = vrdma_qp_set_num(dev, qp, init->qp_type, &rsp);
	if (!ret) {
		if (!qp->user)
			vrdma_direct_start(qp);
		return 0;
	}
	clear_bit(qp->qpn, dev->qps_busy);
err_destroy:
	if (vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_DESTROY_QP, &destroy))
		vrdma_qp_is_kept(dev, qp);
err:
	vrdma_direct_free(dev, qp);
	return ret;
}

/*
 * Have the device create the QP, after its virtqueues have got the right size.
 * Marks the number of the QP as used.
 */
static int vrdma_qp_create_cmd(struct vrdma_dev *dev, struct vrdma_qp *qp,
			       const struct ib_qp_init_attr *init)
{
	struct virtio_rdma_create_qp_req req;
	struct virtio_rdma_create_qp_rsp rsp;
	struct virtio_rdma_qpn destroy;
	u32 wanted, qpn;
	int ret;

	vrdma_qp_fill_req(qp, init, &req);
	wanted = vrdma_qp_find_free(dev, init->qp_type);
	if (wanted >= dev->num_qp)
		return -ENOMEM;
	vrdma_qp_use_vqs(dev, qp, wanted);
	set_bit(wanted, dev->qps_busy);
	ret = vrdma_qp_prepare_vqs(dev, qp);
	if (ret)
		goto err;
	rsp.wire_qpn = 0;
	ret = vrdma_ctrl(dev, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req),
			 &rsp, dev->host_numbers ? sizeof(rsp)
						 : sizeof(rsp.qpn));
	if (ret)
		goto err;
	destroy.qpn = rsp.qpn;
	qpn = le32_to_cpu(rsp.qpn);
	if (qpn != wanted) {
		/* The device chose another number. */
		vrdma_qp_release_vqs(dev, qp);
		if (qpn >= dev->num_qp ||
		    test_and_set_bit(qpn, dev->qps_busy)) {
			/* Whose slots are kept is free for the device. */
			if (qpn >= dev->num_qp || !dev->qps[qpn])
				vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_DESTROY_QP,
					      &destroy);
			return -EPROTO;
		}
		vrdma_qp_use_vqs(dev, qp, qpn);
		ret = vrdma_qp_prepare_vqs(dev, qp);
		if (ret)
			goto err_destroy;
	}
	ret = vrdma_qp_set_num(dev, qp, init->qp_type, &rsp);
	if (!ret)
		return 0;
err_destroy:
	vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_DESTROY_QP, &destroy);
err:
	vrdma_qp_release_vqs(dev, qp);
	return ret;
}

/* One buffer has the slots of both queues, after the page of user QPs. */
static int vrdma_qp_alloc_slots(struct vrdma_dev *dev, struct vrdma_qp *qp,
				const struct ib_qp_cap *cap)
{
	u32 sq_slots = virtqueue_get_vring_size(qp->sq.ring.vq);
	u32 rq_slots = qp->ibqp.srq ? 0 :
		       virtqueue_get_vring_size(qp->rq.ring.vq);
	u32 sq_shift = vrdma_send_slot_shift(cap);
	u32 rq_shift = vrdma_recv_slot_shift(cap->max_recv_sge);
	u32 sq_pages = vrdma_ring_pages(sq_slots, sq_shift);
	u32 rq_pages = vrdma_ring_pages(rq_slots, rq_shift);
	u32 first = qp->user;
	struct vrdma_buf *buf;

	buf = vrdma_buf_alloc(first + sq_pages + rq_pages);
	if (!buf)
		return -ENOMEM;
	vrdma_ring_init(&qp->sq.ring, buf, first, sq_slots, sq_shift);
	if (rq_slots)
		vrdma_ring_init(&qp->rq.ring, buf, first + sq_pages, rq_slots,
				rq_shift);
	vrdma_buf_put(buf);
	return 0;
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

static int vrdma_qp_respond(struct vrdma_qp *qp, struct ib_udata *udata)
{
	struct vrdma_buf *buf = qp->sq.ring.buf;
	struct virtio_rdma_create_qp_resp resp = {
		.mmap_size = buf->npages << PAGE_SHIFT,
		.sq_offset = qp->sq.ring.first_page << PAGE_SHIFT,
		.sq_slots = vrdma_ring_slots(&qp->sq.ring),
		.sq_slot_size = 1U << qp->sq.ring.shift,
		.qpn = qp->qpn,
		.flags = qp->direct ? VIRTIO_RDMA_QP_RESP_DIRECT : 0,
	};
	int ret;

	if (qp->rq.ring.buf) {
		resp.rq_offset = qp->rq.ring.first_page << PAGE_SHIFT;
		resp.rq_slots = vrdma_ring_slots(&qp->rq.ring);
		resp.rq_slot_size = 1U << qp->rq.ring.shift;
	}
	qp->mmap = vrdma_mmap_insert(udata, buf);
	if (IS_ERR(qp->mmap)) {
		ret = PTR_ERR(qp->mmap);
		qp->mmap = NULL;
		return ret;
	}
	resp.mmap_offset = rdma_user_mmap_get_offset(&qp->mmap->rdma);
	ret = vrdma_respond(udata, &resp, sizeof(resp));
	if (ret)
		vrdma_mmap_remove(qp->mmap);
	return ret;
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
 * until all its work requests have completed. A device that owes them for long
 * is broken. Completions that the user has not polled are none of its debts.
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

static int vrdma_qp_destroy_cmd(struct vrdma_dev *dev, struct vrdma_qp *qp)
{
	struct virtio_rdma_qpn req = { .qpn = cpu_to_le32(qp->qpn) };

	return vrdma_ctrl_destroy(dev, VIRTIO_RDMA_CMD_DESTROY_QP, &req,
				  qp->user);
}

int vrdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
		    struct ib_udata *udata)
{
	struct vrdma_dev *dev = to_vdev(ibqp->device);
	struct vrdma_qp *qp = to_vqp(ibqp);
	u32 flags = 0;
	int ret;

	if (virtio_has_feature(dev->vdev, VIRTIO_RDMA_F_MCAST))
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
	/*
	 * Providers that poll their CQs by POLL_CQ crash when they destroy a QP
	 * with an SRQ.
	 */
	if (init->srq && udata && to_vcq(init->recv_cq)->direct &&
	    !to_vcq(init->recv_cq)->mapped)
		return -EOPNOTSUPP;
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

	vrdma_vqs_lock(dev);
	ret = qp->user ? 0 : vrdma_cq_renew(qp->sq.cq) ?:
			     vrdma_cq_renew(qp->rq.cq);
	if (ret)
		goto err_unlock;
	if (dev->doorbells)
		ret = vrdma_qp_create_direct(dev, qp, init, qp->user ?
					     vrdma_doorbell(udata) : 0);
	else
		ret = vrdma_qp_create_cmd(dev, qp, init);
	if (ret)
		goto err_unlock;
	ret = qp->direct ? 0 : vrdma_qp_alloc_slots(dev, qp, &init->cap);
	if (!ret)
		ret = qp->user ? vrdma_qp_respond(qp, udata)
			       : vrdma_qp_alloc_requests(dev, qp);
	if (ret)
		goto err_destroy;
	vrdma_cq_attach(to_vcq(init->send_cq));
	vrdma_cq_attach(to_vcq(init->recv_cq));
	vrdma_qp_set_entry(dev, qp->qpn, qp);
	vrdma_vqs_unlock(dev);
	return 0;

err_destroy:
	if (vrdma_qp_destroy_cmd(dev, qp) && qp->direct)
		vrdma_qp_is_kept(dev, qp);
	vrdma_qp_release_vqs(dev, qp);
err_unlock:
	vrdma_vqs_unlock(dev);
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
	struct vrdma_dev *dev = to_vdev(ibqp->device);
	struct virtio_rdma_modify_qp_req reset = {
		.qpn = cpu_to_le32(to_vqp(ibqp)->qpn),
		.attr_mask = cpu_to_le32(IB_QP_STATE),
		.attr.qp_state = IB_QPS_RESET,
	};
	struct vrdma_qp *qp = to_vqp(ibqp);
	int ret;

	vrdma_vqs_lock(dev);
	/* A QP in RESET has returned all its buffers. */
	if (!dev->ring_reset)
		vrdma_ctrl_do(dev, VIRTIO_RDMA_CMD_MODIFY_QP, &reset);
	ret = vrdma_qp_destroy_cmd(dev, qp);
	if (!ret) {
		cancel_delayed_work_sync(&qp->flush_work);
		vrdma_qp_set_entry(dev, qp->qpn, NULL);
		vrdma_cq_clean(to_vcq(ibqp->send_cq), qp);
		vrdma_cq_clean(to_vcq(ibqp->recv_cq), qp);
		vrdma_cq_detach(to_vcq(ibqp->send_cq));
		vrdma_cq_detach(to_vcq(ibqp->recv_cq));
		vrdma_mmap_remove(qp->mmap);
		vrdma_qp_release_vqs(dev, qp);
	}
	vrdma_vqs_unlock(dev);
	return ret;
}
