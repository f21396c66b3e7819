/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_rdma: a driver for the virtio RDMA adapter.
 *
 * Layers, bottom to top. A source file includes the header of its layer, which
 * includes that of the layer below. Calls go down only, within a layer to files
 * further left. Lower layers reach upper ones by operations of the RDMA core
 * and of a form of queues, callbacks of virtqueues and work items.
 *
 *   base     virtio_rdma-abi.h compat.h vrdma.h
 *   command  ctrl.h ctrl.c
 *   ring     ring.h ring.c mmap.c
 *   memory   mem.h table.c area.c ucontext.c fastreg.c mr.c mw.c
 *   queue    queue.h handler.c eq.c event.c request.c wr.c wc.c flush.c
 *            cq_direct.c direct.c vq.c cq.c srq.c qp.c mcast.c
 *   device   device.h pd.c port.c netdev.c sysfs.c counters.c stats.c
 *            config.c vqs.c fatal.c
 *   driver   main.c
 */
#ifndef VRDMA_H
#define VRDMA_H

#include <linux/completion.h>
#include <linux/idr.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>
#include <linux/virtio_rdma.h>

#include "compat.h"
#include "virtio_rdma-abi.h"

#define VRDMA_PORT		1
/* QP 0 does not exist, QP 1 is the GSI. */
#define VRDMA_QPN_GSI		1
#define VRDMA_QPN_FIRST		2
/* The highest number of a QP on the wire; above is that of multicasts. */
#define VRDMA_QPN_MAX		0xfffffe
/* The driver uses at most this many of each kind. */
#define VRDMA_MAX_QUEUES	16384
#define VRDMA_MAX_COUNTERS	64
#define VRDMA_MAX_DOORBELLS	1024
/* The size of a mapping has 32 bits, and a slot takes up to VRDMA_PAGE_SIZE. */
#define VRDMA_QP_DEPTH_MAX	32768
#define VRDMA_CQ_DEPTH_MAX	BIT(20)
#define VRDMA_SRQ_DEPTH_MAX	65536
#define VRDMA_DEPTH_MIN		4
/* If there are more CPUs, several of them share an event queue. */
#define VRDMA_MAX_EQS		32
/* An address vector has 8 bits for the index. */
#define VRDMA_MAX_GIDS		256
/* The index of a P_Key is always 0. */
#define VRDMA_MAX_PKEYS		1
/* A page of the device; the kernel's may be larger. */
#define VRDMA_PAGE_SHIFT	12
#define VRDMA_PAGE_SIZE		BIT(VRDMA_PAGE_SHIFT)
#define VRDMA_PAGES_PER_PAGE	(PAGE_SIZE / VRDMA_PAGE_SIZE)

#define VRDMA_ACCESS_REMOTE	(IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_READ | \
				 IB_ACCESS_REMOTE_ATOMIC | \
				 VRDMA_ACCESS_FLUSH)
#define VRDMA_ACCESS_MR		(IB_ACCESS_LOCAL_WRITE | VRDMA_ACCESS_REMOTE | \
				 IB_ACCESS_RELAXED_ORDERING)
/* Memory windows are bound to user regions only. */
#define VRDMA_ACCESS_USER_MR	(VRDMA_ACCESS_MR | IB_ACCESS_MW_BIND)

struct vrdma_ctrl {
	spinlock_t lock;		/* of the virtqueue and sleepers */
	struct virtqueue *vq;
	u32 sleepers;
};

/* The event virtqueue */
struct vrdma_events {
	spinlock_t lock;		/* of the virtqueue and object tables */
	struct virtqueue *vq;
	struct virtio_rdma_event *bufs;
};

struct vrdma_dev {
	struct ib_device ibdev;
	struct virtio_device *vdev;
	struct device *dma_dev;
	struct ib_device_attr attr;
	const struct vrdma_form *form;	/* of all queues, see queue.h */
	u32 max_inline;
	/* Object numbers are below these; QP 0 and event queues count, too. */
	u32 num_cq;
	u32 num_qp;
	u32 num_srq;
	/* Virtqueues exist for these numbers, whether used or not. */
	u32 num_vq_cq;
	u32 num_vq_qp;
	u32 num_vq_srq;
	u64 mr_page_sizes;		/* that user regions may have */
	bool host_numbers;		/* keys and QPNs are a host adapter's */
	u32 num_counters;
	/* Counters of QPs, see stats.c */
	struct mutex counter_lock;	/* of their bindings */
	struct xarray counters;		/* struct vrdma_counter, by id */
	u32 next_counter;
	u64 counted[VIRTIO_RDMA_NUM_COUNTERS]; /* by counters that are gone */
	bool have_mac;
	u8 mac[ETH_ALEN];
	/* Doorbells of direct queues: page 0 is the kernel's */
	void __iomem *doorbells;
	u64 doorbells_phys;
	u32 num_doorbells;		/* in pages of the kernel */
	struct ida doorbells_used;

	struct vrdma_ctrl ctrl;
	struct vrdma_events events;
	struct virtqueue **vqs;
	u32 ring_max;			/* the least of their sizes */
	bool ring_reset;		/* a virtqueue can be reset alone */

	/* Held to create and destroy CQs, QPs and SRQs */
	struct mutex objects_lock;
	unsigned int objects_noio;	/* allocation scope of its holder */
	struct vrdma_vq_cq *vq_cqs;	/* by number, with virtqueues */
	struct vrdma_eq *eqs;		/* by number, with direct queues */
	u32 num_eqs;
	struct vrdma_qp **qps;		/* by qpn */
	spinlock_t qps_lock;		/* to use what others may destroy */
	atomic_t generation;		/* the last one of a work queue */
	struct ib_qp *qp_numbers;	/* only qp_num is set; for POLL_CQ */
	struct vrdma_srq **srqs;

	/* The NIC that the adapter belongs to, and the port */
	struct mutex netdev_lock;
	struct net_device *netdev;
	bool netdev_linked;		/* by the PCI function, in sysfs */
	struct notifier_block netdev_nb;
	struct work_struct port_work;
	struct work_struct fatal_work;
	struct work_struct wake_work;	/* calls handlers of CQs that flush */
	struct completion stopped;	/* the device accesses no memory */
	bool dead;			/* fatal_work has run: flush */
	unsigned long broken;		/* bit 0: vrdma_broken() was called */
	bool port_active;
	bool rescan;			/* the core has to add all GIDs again */
	bool registered;
};

struct vrdma_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct vrdma_ah {
	struct ib_ah ibah;
	struct virtio_rdma_av av;
};

static inline struct vrdma_dev *to_vdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct vrdma_dev, ibdev);
}

static inline struct vrdma_pd *to_vpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct vrdma_pd, ibpd);
}

static inline struct vrdma_ah *to_vah(struct ib_ah *ibah)
{
	return container_of(ibah, struct vrdma_ah, ibah);
}

#endif /* VRDMA_H */
