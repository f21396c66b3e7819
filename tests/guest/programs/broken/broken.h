/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtio RDMA adapter without a host, and its faults. It has all that the
 * driver asks for, and completes work requests at once without moving data,
 * until its faults begin.
 */
#ifndef BROKEN_H
#define BROKEN_H

#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/random.h>
#include <linux/virtio.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <linux/wait.h>
#include <linux/virtio_rdma.h>

#define BROKEN_CQS 16
/* With direct ones, and how deep these are */
#define BROKEN_ALL_CQS 64
#define BROKEN_DIRECT_CQE 2048
#define BROKEN_DIRECT_WR BROKEN_RING
#define BROKEN_QPS 16
#define BROKEN_SRQS 4
#define BROKEN_VQS (VIRTIO_RDMA_NUM_VQS(BROKEN_CQS, BROKEN_QPS) + 1 + \
		    BROKEN_SRQS)
/* as many as ib_mad asks for */
#define BROKEN_RING 512

/* Faults, as bits of the parameter faults */
enum broken_fault {
	BROKEN_SILENT,		/* does not respond to commands */
	BROKEN_SHORT,		/* responses that are too short */
	BROKEN_STATUS,		/* any status */
	BROKEN_RESPONSE,	/* any response */
	BROKEN_CQE,		/* any bytes in completions */
	BROKEN_TWICE,		/* completions come twice */
	BROKEN_USED_ID,		/* any buffer is returned */
	BROKEN_USED_IDX,	/* any number of buffers is returned */
	BROKEN_EVENT,		/* any events */
	BROKEN_GONE,		/* unplugged: registers read as ones */
	BROKEN_NEEDS_RESET,	/* DEVICE_NEEDS_RESET is set */
	BROKEN_NO_VQ_RESET,	/* virtqueues are not reset */
	BROKEN_KEEP,		/* buffers of work requests are not returned */
	BROKEN_ENDLESS,		/* a CQ never gets empty */
	/* These begin at once, without waiting for the parameter after. */
	BROKEN_NO_VQS,		/* has no virtqueues */
	BROKEN_CONFIG_0,
	BROKEN_CONFIG_MAX,
	BROKEN_CONFIG_ANY,
	BROKEN_PORT_MAX,	/* tables of the port of the largest sizes */
};

/* Sizes of the device */
#define BROKEN_PAGE 4096
#define BROKEN_CQES_PER_PAGE \
	(BROKEN_PAGE / sizeof(struct virtio_rdma_direct_cqe))

struct broken_vq {
	struct virtqueue *vq;
	bool enabled;
	u16 avail;		/* the next entry to take */
	u16 used;		/* the next entry to write */
};

struct broken_cq {
	bool exists;
	bool events;		/* an event queue */
	/* of a direct CQ */
	struct virtio_rdma_direct_cq_page *page; /* NULL: not a direct one */
	struct virtio_rdma_direct_cqe
		*slots[BROKEN_DIRECT_CQE / BROKEN_CQES_PER_PAGE];
	u32 mask;
	u32 produced;
	u32 eqn;
	u32 arm;		/* of the last event */
	bool pending;		/* an event that found no buffer */
};

/* Pages of counters and slots of a direct queue pair, at most */
#define BROKEN_QP_PAGES 128

/* A direct work queue */
struct broken_wq {
	const __le32 *producer;
	u32 first_page;		/* of its slots */
	u32 shift;		/* log2 of the bytes of a slot */
	u32 mask;
	u32 taken;		/* WQEs */
};

struct broken_qp {
	bool exists;
	bool all_signaled;
	u8 state;
	u32 send_cqn;
	u32 recv_cqn;
	/* of a direct QP */
	u32 num_pages;		/* 0: a QP with virtqueues */
	u8 *pages[BROKEN_QP_PAGES];
	struct broken_wq sq;
	struct broken_wq rq;
};

struct broken_device {
	struct virtio_device vdev;
	struct platform_device *parent;
	u8 status;
	struct mutex lock;	/* protects the virtqueues and all below */
	struct broken_vq vqs[BROKEN_VQS];
	u32 num_vqs;
	struct broken_qp qps[BROKEN_QPS];
	struct broken_cq cqs[BROKEN_ALL_CQS];
	bool srqs[BROKEN_SRQS];
	u32 next_number;	/* of PDs and MRs */
	u32 done;		/* commands and work requests */
	u32 commands;
	struct virtio_rdma_cqe last;
	u32 last_cqn;
	struct rnd_state rnd;
	struct task_struct *thread;
	wait_queue_head_t wait;
	atomic_t kicked;
	spinlock_t endless;	/* of the virtqueues of CQs, with that fault */
};

static inline struct broken_device *to_broken(struct virtio_device *vdev)
{
	return container_of(vdev, struct broken_device, vdev);
}

/* A buffer that the driver has made available: at most two descriptors */
struct broken_buf {
	u32 head;
	void *out;
	u32 out_len;
	void *in;
	u32 in_len;
};

/* device.c */
bool broken_does(struct broken_device *dev, enum broken_fault fault);
u32 broken_random(struct broken_device *dev);

/* queues.c */
bool broken_take(struct broken_vq *bvq, struct broken_buf *buf);
void broken_return(struct broken_device *dev, struct broken_vq *bvq, u32 head,
		   u32 len);
bool broken_is_endless(struct broken_device *dev, u32 cqn);
void broken_fill(struct broken_device *dev, u32 cqn);
void broken_run(struct broken_device *dev);
void broken_flush_qp(struct broken_device *dev, u32 qpn);

/* command.c */
u32 broken_execute(struct broken_device *dev, const struct broken_buf *buf);

/* user.c */
int broken_user_init(void);
void broken_user_exit(void);

#endif /* BROKEN_H */
