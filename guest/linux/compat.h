/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What depends on the kernel's version: Linux 6.1 to 7.3.
 *
 * Stable series and distributions backport parts of later kernels, so version
 * numbers tell too little. Kbuild searches the kernel's headers instead, and
 * defines the macros VRDMA_HAVE_*, which are used in this file only. The
 * versions in comments are those of Linus Torvalds' tree.
 */
#ifndef VRDMA_COMPAT_H
#define VRDMA_COMPAT_H

#include <linux/slab.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>
#include <linux/virtio_rdma.h>

/* Older kernels have ib_block_iter in ib_verbs.h and ib_umem.h. */
#ifdef VRDMA_HAVE_ITER
#include <rdma/iter.h>
#endif

/*
 * The RDMA core knows FLUSH and ATOMIC_WRITE since Linux 6.2. With older
 * kernels the driver does not accept these features of the device.
 */
#ifdef VRDMA_HAVE_FLUSH
#define VRDMA_CORE_HAS_FLUSH		true
#define VRDMA_ACCESS_FLUSH		IB_ACCESS_FLUSH_GLOBAL
#define VRDMA_CAP_FLUSH			IB_DEVICE_FLUSH_GLOBAL
#define VRDMA_WC_FLUSH			IB_WC_FLUSH
#else
#define VRDMA_CORE_HAS_FLUSH		false
#define VRDMA_ACCESS_FLUSH		0
#define VRDMA_CAP_FLUSH			0
#define VRDMA_WC_FLUSH			VIRTIO_RDMA_CQE_OP_FLUSH
#endif

#ifdef VRDMA_HAVE_ATOMIC_WRITE
#define VRDMA_CORE_HAS_ATOMIC_WRITE	true
#define VRDMA_CAP_ATOMIC_WRITE		IB_DEVICE_ATOMIC_WRITE
#define VRDMA_WC_ATOMIC_WRITE		IB_WC_ATOMIC_WRITE
#else
#define VRDMA_CORE_HAS_ATOMIC_WRITE	false
#define VRDMA_CAP_ATOMIC_WRITE		0
#define VRDMA_WC_ATOMIC_WRITE		VIRTIO_RDMA_CQE_OP_ATOMIC_WRITE
#endif

static inline bool vrdma_is_atomic_write(const struct ib_send_wr *wr)
{
#ifdef VRDMA_HAVE_ATOMIC_WRITE
	return wr->opcode == IB_WR_ATOMIC_WRITE;
#else
	return false;
#endif
}

/* .create_cq gets a struct uverbs_attr_bundle since Linux 6.11. */
#ifdef VRDMA_HAVE_CREATE_CQ_ATTRS
#define vrdma_create_cq_arg uverbs_attr_bundle

static inline struct ib_udata *
vrdma_create_cq_udata(struct uverbs_attr_bundle *attrs)
{
	return attrs ? &attrs->driver_udata : NULL;
}
#else
#define vrdma_create_cq_arg ib_udata

static inline struct ib_udata *vrdma_create_cq_udata(struct ib_udata *udata)
{
	return udata;
}
#endif

/*
 * In newer kernels a CQ of a process has its own method, and .create_cq is for
 * users in the kernel. In older ones .resize_user_cq is .resize_cq, and takes
 * an int.
 */
#ifdef VRDMA_HAVE_CREATE_USER_CQ
#define VRDMA_USER_CQ_OP(func)		.create_user_cq = (func),
#else
#define VRDMA_USER_CQ_OP(func)
#endif

#ifdef VRDMA_HAVE_RESIZE_USER_CQ
#define vrdma_resize_cq_op		resize_user_cq
#else
#define vrdma_resize_cq_op		resize_cq
#endif

#ifdef VRDMA_HAVE_RESIZE_UNSIGNED
#define vrdma_cqe_num			unsigned int
#else
#define vrdma_cqe_num			int
#endif

/*
 * Memory of a process by its address. Newer kernels take it in other forms,
 * too, and have a name for each.
 */
static inline struct ib_umem *vrdma_umem_get(struct ib_device *ibdev, u64 start,
					     u64 length, int access)
{
#ifdef VRDMA_HAVE_UMEM_GET_VA
	return ib_umem_get_va(ibdev, start, length, access);
#else
	return ib_umem_get(ibdev, start, length, access);
#endif
}

/*
 * A region may come with a hint where DMA should go since Linux 6.17, if the
 * driver makes such hints; this one does not.
 */
#ifdef VRDMA_HAVE_DMAH
#define VRDMA_DMAH_PARAM		struct ib_dmah *dmah,
#else
#define VRDMA_DMAH_PARAM
#endif

/* .reg_user_mr_dmabuf gets a struct uverbs_attr_bundle since Linux 6.12. */
#ifdef VRDMA_HAVE_DMABUF_ATTRS
#define vrdma_reg_dmabuf_arg		uverbs_attr_bundle
#else
#define vrdma_reg_dmabuf_arg		ib_udata
#endif

/*
 * Since Linux 6.14 the RDMA core dispatches port events when the NIC goes up
 * or down, unless the driver says that it does so itself. The state of the port
 * is that of the adapter, too, so vrdma_port_work() does.
 */
#ifdef VRDMA_HAVE_PORT_EVENT
static inline void vrdma_report_port_event(struct ib_device *ibdev,
					   struct net_device *netdev,
					   unsigned long event)
{
}

#define VRDMA_PORT_EVENT_OP	.report_port_event = vrdma_report_port_event,
#else
#define VRDMA_PORT_EVENT_OP
#endif

/*
 * Since Linux 6.15 methods of counters are told the port, and the driver says
 * how large a counter is, which may have a part of the driver's.
 */
#ifdef VRDMA_HAVE_COUNTER_PORT
#define VRDMA_COUNTER_QP_PARAM		struct ib_qp *ibqp, u32 port
#else
#define VRDMA_COUNTER_QP_PARAM		struct ib_qp *ibqp
#endif

#ifdef VRDMA_HAVE_COUNTER_INIT
static inline void vrdma_counter_init(struct rdma_counter *counter)
{
}

#define VRDMA_COUNTER_INIT_OP						\
	.counter_init = vrdma_counter_init,				\
	.size_rdma_counter = sizeof(struct rdma_counter),
#else
#define VRDMA_COUNTER_INIT_OP
#endif

/*
 * virtqueue_resize() takes another callback, @done, since Linux 6.13 and in
 * stable series before. Some kernels return 0 although the ring kept its size.
 */
static inline int vrdma_virtqueue_resize(struct virtqueue *vq, u32 num,
					 void (*recycle)(struct virtqueue *vq,
							 void *buf),
					 void (*done)(struct virtqueue *vq))
{
	int ret;

#ifdef VRDMA_HAVE_RESIZE_DONE
	ret = virtqueue_resize(vq, num, recycle, done);
#else
	ret = virtqueue_resize(vq, num, recycle);
#endif
	if (!ret && virtqueue_get_vring_size(vq) < num)
		ret = -ENOMEM;
	return ret;
}

/* virtio_find_vqs() gets an array of structures since Linux 6.11. */
#ifdef VRDMA_HAVE_VIRTQUEUE_INFO
#define vrdma_vq_info virtqueue_info

static inline int vrdma_find_vqs(struct virtio_device *vdev, u32 n,
				 struct virtqueue **vqs,
				 struct vrdma_vq_info *info)
{
	return virtio_find_vqs(vdev, n, vqs, info, NULL);
}
#else
struct vrdma_vq_info {
	const char *name;
	vq_callback_t *callback;
};

static inline int vrdma_find_vqs(struct virtio_device *vdev, u32 n,
				 struct virtqueue **vqs,
				 struct vrdma_vq_info *info)
{
	vq_callback_t **callbacks;
	const char **names;
	int ret = -ENOMEM;
	u32 i;

	callbacks = kvcalloc(n, sizeof(*callbacks), GFP_KERNEL);
	names = kvcalloc(n, sizeof(*names), GFP_KERNEL);
	if (!callbacks || !names)
		goto out;
	for (i = 0; i < n; i++) {
		callbacks[i] = info[i].callback;
		names[i] = info[i].name;
	}
	ret = virtio_find_vqs(vdev, n, vqs, callbacks, names, NULL);
out:
	kvfree(callbacks);
	kvfree(names);
	return ret;
}
#endif

#endif /* VRDMA_COMPAT_H */
