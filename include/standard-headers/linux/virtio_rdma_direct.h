/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * virtio-rdma guest ABI: direct queues, and doorbells; see
 * docs/specs/virtio-rdma-direct.rst. This is a part of virtio_rdma.h.
 */
#ifndef _LINUX_VIRTIO_RDMA_DIRECT_H
#define _LINUX_VIRTIO_RDMA_DIRECT_H

/*
 * With VIRTIO_RDMA_QP_DIRECT: the first page of a QP's queues. Behind it are
 * the slots of the send queue, and from the next page on those of the receive
 * queue. Producers are free-running: the n-th WQE is in slot n % depth.
 */
struct virtio_rdma_direct_page {
	__le32 sq_producer;		/* by the driver */
	__u8 reserved0[60];
	/* by the device: not 0 if it looks at the queue without a doorbell */
	__le32 sq_awake;
	__u8 reserved1[60];
	__le32 rq_producer;
	__u8 reserved2[60];
	__le32 rq_awake;
	__u8 reserved3[60];
} VIRTIO_RDMA_ABI;

/* With VIRTIO_RDMA_SRQ_DIRECT: the first page of an SRQ, before the slots */
struct virtio_rdma_direct_srq_page {
	__le32 producer;		/* by the driver */
	__u8 reserved0[60];
	__le32 awake;			/* by the device */
	__u8 reserved1[60];
} VIRTIO_RDMA_ABI;

/* A slot of a direct queue */
struct virtio_rdma_direct_slot {
	__le32 length;			/* bytes of the WQE behind it */
} VIRTIO_RDMA_ABI;

/* The shared memory region (virtio 1.2, 2.10) that has the doorbell pages */
#define VIRTIO_RDMA_SHM_DOORBELLS	0
#define VIRTIO_RDMA_DOORBELL_SIZE	4096
/* What is written there is the number of an SRQ, not of a QP. */
#define VIRTIO_RDMA_DOORBELL_SRQ	0x80000000u

/*
 * The shadow of a page of doorbells, aligned to its size. QP n is bit n % 32 of
 * marked[n / 32]; word w of these is bit w % 32 of summary[w / 32].
 */
#define VIRTIO_RDMA_SHADOW_WORDS	512

struct virtio_rdma_shadow_page {
	/* by the device: not 0 if it looks at the shadow without a doorbell */
	__le32 awake;
	__u8 reserved0[60];
	/* set by the driver, cleared by the device, both by atomic operations */
	__le32 summary[VIRTIO_RDMA_SHADOW_WORDS / 32];
	__u8 reserved1[1920];
	__le32 marked[VIRTIO_RDMA_SHADOW_WORDS];
} VIRTIO_RDMA_ABI;

/* With VIRTIO_RDMA_CQ_DIRECT: of a CQ, likewise; written by the driver */
struct virtio_rdma_direct_cq_page {
	__le32 consumer;		/* CQEs consumed, free-running */
	__u8 reserved0[60];
	/*
	 * VIRTIO_RDMA_NOTIFY_* in the low bits, and above them a number that
	 * differs from that of the last request
	 */
	__le32 arm;
	__u8 reserved1[60];
} VIRTIO_RDMA_ABI;

#define VIRTIO_RDMA_ARM_SHIFT		2

/* A slot of a direct CQ: the n-th CQE is in slot n % depth, n from 0 on. */
struct virtio_rdma_direct_cqe {
	struct virtio_rdma_cqe_ex ex;
	__u8 reserved[12];
	__le32 number;			/* n + 1, written after the rest */
} VIRTIO_RDMA_ABI;

#endif /* _LINUX_VIRTIO_RDMA_DIRECT_H */
