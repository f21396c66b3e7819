// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What "rdma statistic" shows: the counters of the port, and those that queue
 * pairs are bound to. The device has none of the latter. It reports what its
 * QPs have counted since they were created; a counter has what they count while
 * they are bound to it.
 */
#include <linux/slab.h>

#include "ctrl.h"
#include "device.h"

/* A QP that is bound to a counter */
struct vrdma_binding {
	struct list_head entry;		/* in its list */
	u32 qpn;
	u64 before[VIRTIO_RDMA_NUM_COUNTERS];
};

struct vrdma_counter {
	struct list_head bindings;
	/* Added to what the QPs of the list have counted */
	u64 offset[VIRTIO_RDMA_NUM_COUNTERS];
};

/* Add what the @num_qps QPs of @req have counted to @sum. */
static int vrdma_query_qps(struct vrdma_dev *dev,
			   struct virtio_rdma_query_qp_counters_req *req,
			   u32 num_qps, u64 *sum)
{
	__le64 rsp[VRDMA_MAX_COUNTERS];
	int ret;
	u32 i;

	req->num_qps = cpu_to_le32(num_qps);
	ret = vrdma_ctrl(dev, VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS, req,
			 sizeof(*req), rsp, dev->num_counters * sizeof(*rsp));
	if (ret)
		return ret;
	for (i = 0; i < vrdma_counters_known(dev); i++)
		sum[i] += le64_to_cpu(rsp[i]);
	return 0;
}

static int vrdma_query_one(struct vrdma_dev *dev, u32 qpn, u64 *value)
{
	struct virtio_rdma_query_qp_counters_req req = {
		.qpn[0] = cpu_to_le32(qpn),
	};

	memset(value, 0, VIRTIO_RDMA_NUM_COUNTERS * sizeof(*value));
	return vrdma_query_qps(dev, &req, 1, value);
}

/* Add what a counter has to @sum. With counter_lock held. */
static int vrdma_counter_sum(struct vrdma_dev *dev,
			     const struct vrdma_counter *counter, u64 *sum)
{
	struct virtio_rdma_query_qp_counters_req req = {};
	const struct vrdma_binding *binding;
	u32 i, n = 0;
	int ret;

	for (i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++)
		sum[i] += counter->offset[i];
	list_for_each_entry(binding, &counter->bindings, entry) {
		req.qpn[n++] = cpu_to_le32(binding->qpn);
		if (n < ARRAY_SIZE(req.qpn) &&
		    !list_is_last(&binding->entry, &counter->bindings))
			continue;
		ret = vrdma_query_qps(dev, &req, n, sum);
		if (ret)
			return ret;
		n = 0;
	}
	return 0;
}

/* The sum of all counters, including those that are gone */
static int vrdma_counters_sum(struct vrdma_dev *dev, u64 *sum)
{
	struct vrdma_counter *counter;
	unsigned long id;
	int ret = 0;

	mutex_lock(&dev->counter_lock);
	memcpy(sum, dev->counted, sizeof(dev->counted));
	xa_for_each(&dev->counters, id, counter) {
		ret = vrdma_counter_sum(dev, counter, sum);
		if (ret)
			break;
	}
	mutex_unlock(&dev->counter_lock);
	return ret;
}

static struct vrdma_counter *vrdma_counter_new(struct vrdma_dev *dev, u32 *id)
{
	struct vrdma_counter *counter = kzalloc(sizeof(*counter), GFP_KERNEL);

	if (!counter)
		return NULL;
	INIT_LIST_HEAD(&counter->bindings);
	/* The RDMA core still has the number of a counter that is gone. */
	if (xa_alloc_cyclic(&dev->counters, id, counter, xa_limit_31b,
			    &dev->next_counter, GFP_KERNEL) < 0) {
		kfree(counter);
		return NULL;
	}
	return counter;
}

static int vrdma_counter_bind_qp(struct rdma_counter *core,
				 VRDMA_COUNTER_QP_PARAM)
{
	struct vrdma_dev *dev = to_vdev(ibqp->device);
	struct vrdma_qp *qp = to_vqp(ibqp);
	struct vrdma_counter *counter;
	struct vrdma_binding *binding;
	int ret;
	u32 i;

	binding = kzalloc(sizeof(*binding), GFP_KERNEL);
	if (!binding)
		return -ENOMEM;
	binding->qpn = qp->qpn;
	mutex_lock(&dev->counter_lock);
	ret = vrdma_query_one(dev, qp->qpn, binding->before);
	if (ret)
		goto err;
	counter = core->id ? xa_load(&dev->counters, core->id) :
			     vrdma_counter_new(dev, &core->id);
	if (!counter) {
		ret = -ENOMEM;
		goto err;
	}
	for (i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++)
		counter->offset[i] -= binding->before[i];
	list_add_tail(&binding->entry, &counter->bindings);
	qp->binding = binding;
	ibqp->counter = core;
	mutex_unlock(&dev->counter_lock);
	return 0;

err:
	mutex_unlock(&dev->counter_lock);
	kfree(binding);
	return ret;
}

/* The counter keeps what the QP has counted, if the device reports it. */
static int vrdma_counter_unbind_qp(VRDMA_COUNTER_QP_PARAM)
{
	struct vrdma_dev *dev = to_vdev(ibqp->device);
	struct vrdma_qp *qp = to_vqp(ibqp);
	struct vrdma_binding *binding = qp->binding;
	u64 now[VIRTIO_RDMA_NUM_COUNTERS];
	struct vrdma_counter *counter;
	u32 i;

	mutex_lock(&dev->counter_lock);
	counter = xa_load(&dev->counters, ibqp->counter->id);
	if (vrdma_query_one(dev, qp->qpn, now))
		memcpy(now, binding->before, sizeof(now));
	for (i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++)
		counter->offset[i] += now[i];
	list_del(&binding->entry);
	qp->binding = NULL;
	ibqp->counter = NULL;
	mutex_unlock(&dev->counter_lock);
	kfree(binding);
	return 0;
}

static int vrdma_counter_dealloc(struct rdma_counter *core)
{
	struct vrdma_dev *dev = to_vdev(core->device);
	struct vrdma_counter *counter;
	u32 i;

	mutex_lock(&dev->counter_lock);
	counter = xa_erase(&dev->counters, core->id);
	for (i = 0; i < VIRTIO_RDMA_NUM_COUNTERS; i++)
		dev->counted[i] += counter->offset[i];
	mutex_unlock(&dev->counter_lock);
	kfree(counter);
	return 0;
}

static struct rdma_hw_stats *
vrdma_counter_alloc_stats(struct rdma_counter *core)
{
	return vrdma_counters_alloc(to_vdev(core->device), true);
}

static int vrdma_counter_update_stats(struct rdma_counter *core)
{
	struct vrdma_dev *dev = to_vdev(core->device);
	u64 sum[VIRTIO_RDMA_NUM_COUNTERS] = {};
	int ret;

	mutex_lock(&dev->counter_lock);
	ret = vrdma_counter_sum(dev, xa_load(&dev->counters, core->id), sum);
	mutex_unlock(&dev->counter_lock);
	if (!ret)
		memcpy(core->stats->value, sum,
		       core->stats->num_counters * sizeof(*sum));
	return ret;
}

static struct rdma_hw_stats *vrdma_alloc_hw_port_stats(struct ib_device *ibdev,
						       u32 port)
{
	return vrdma_counters_alloc(to_vdev(ibdev), false);
}

/*
 * The device's counters of the port include all QPs. The RDMA core adds the
 * counters of QPs that are bound, so this leaves them out. It reads them first,
 * so that they are not more than the sum.
 */
static int vrdma_get_hw_stats(struct ib_device *ibdev,
			      struct rdma_hw_stats *stats, u32 port, int index)
{
	struct vrdma_dev *dev = to_vdev(ibdev);
	u64 bound[VIRTIO_RDMA_NUM_COUNTERS];
	int ret, i;

	ret = vrdma_counters_sum(dev, bound);
	if (!ret)
		ret = vrdma_counters_query(dev, port, stats->value);
	if (ret)
		return ret;
	for (i = 0; i < stats->num_counters; i++)
		stats->value[i] -= min(stats->value[i], bound[i]);
	return stats->num_counters;
}

static const struct ib_device_ops vrdma_port_stats_ops = {
	.alloc_hw_port_stats = vrdma_alloc_hw_port_stats,
	.get_hw_stats = vrdma_get_hw_stats,
};

static const struct ib_device_ops vrdma_qp_stats_ops = {
	.counter_alloc_stats = vrdma_counter_alloc_stats,
	.counter_bind_qp = vrdma_counter_bind_qp,
	.counter_dealloc = vrdma_counter_dealloc,
	.counter_unbind_qp = vrdma_counter_unbind_qp,
	.counter_update_stats = vrdma_counter_update_stats,
	VRDMA_COUNTER_INIT_OP
};

void vrdma_stats_init(struct vrdma_dev *dev)
{
	mutex_init(&dev->counter_lock);
	xa_init_flags(&dev->counters, XA_FLAGS_ALLOC1);
	if (!dev->num_counters)
		return;
	ib_set_device_ops(&dev->ibdev, &vrdma_port_stats_ops);
	/* Without QUERY_QP_COUNTERS, binding a QP fails. */
	ib_set_device_ops(&dev->ibdev, &vrdma_qp_stats_ops);
}
