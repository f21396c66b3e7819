/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * What virtio_rdma.ko and its libibverbs provider share.
 *
 * A process works on memory that the kernel allocates and that it maps: slots
 * that hold one WQE or CQE each, and a page of counters. Which slots the
 * device may touch, and where they are, is for the kernel to say.
 *
 * WQEs and CQEs have the layout of the guest ABI, linux/virtio_rdma.h.
 */
#ifndef VIRTIO_RDMA_ABI_USER_H
#define VIRTIO_RDMA_ABI_USER_H

#include <linux/types.h>

#define VIRTIO_RDMA_UABI_VERSION 1

/* virtio_rdma_alloc_ucontext_resp.flags */
enum {
	/*
	 * Completions are polled in the mapped slots; otherwise by
	 * the POLL_CQ command.
	 */
	VIRTIO_RDMA_UCTX_MAPPED_CQ = 1 << 0,
	/* BIND_MW work requests may be posted. */
	VIRTIO_RDMA_UCTX_MW = 1 << 1,
	/* These have the layout of struct virtio_rdma_cqe_ex. */
	VIRTIO_RDMA_UCTX_CQE_EX = 1 << 2,
	/* FLUSH and ATOMIC_WRITE work requests may be posted. */
	VIRTIO_RDMA_UCTX_FLUSH = 1 << 3,
	VIRTIO_RDMA_UCTX_ATOMIC_WRITE = 1 << 4,
};

struct virtio_rdma_alloc_ucontext_resp {
	__u32 flags;
	__u32 max_qp;			/* QP numbers are below this */
};

/*
 * The mapping has a page with struct virtio_rdma_cq_page and, at
 * ring_offset, the slots. mmap_size is 0 when there is nothing to map.
 *
 * The device fills slot n % slots with the n-th completion and writes the
 * status byte last. The process sets the status byte back to
 * VIRTIO_RDMA_CQE_EMPTY, counts the slot in @consumer, and lets the kernel
 * have consumed slots again with a POLL_CQ command as soon as more than
 * @slack of them have gathered.
 */
struct virtio_rdma_create_cq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 ring_offset;
	__u32 slots;			/* power of two */
	__u32 slot_size;		/* bytes, power of two */
	__u32 slack;
	__u32 reserved;
};

struct virtio_rdma_cq_page {
	__u32 consumer;
};

/*
 * The mapping has a page with struct virtio_rdma_qp_page and, at sq_offset
 * and rq_offset, the slots of both queues: struct virtio_rdma_wqe_slot. A QP
 * with an SRQ has no slots for receives.
 *
 * The n-th WQE goes to slot n % slots. The process raises the producer and
 * calls POST_SEND or POST_RECV with no work requests. It must not have more
 * than slots WQEs on their way.
 */
struct virtio_rdma_create_qp_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 sq_offset;
	__u32 sq_slots;			/* power of two */
	__u32 sq_slot_size;		/* bytes, power of two */
	__u32 rq_offset;
	__u32 rq_slots;
	__u32 rq_slot_size;
	__u32 reserved;
};

struct virtio_rdma_qp_page {
	__u32 sq_producer;
	__u32 reserved[31];
	__u32 rq_producer;
};

struct virtio_rdma_wqe_slot {
	__u32 length;			/* bytes of wqe */
	__u8 wqe[];
};

/*
 * The mapping has a page with struct virtio_rdma_srq_page and, at
 * ring_offset, the slots: struct virtio_rdma_wqe_slot. They are used like
 * those of a QP, with POST_SRQ_RECV. The device is done with the slots
 * of WQEs whose messages have not come yet.
 */
struct virtio_rdma_create_srq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 ring_offset;
	__u32 slots;			/* power of two */
	__u32 slot_size;		/* bytes, power of two */
};

struct virtio_rdma_srq_page {
	__u32 producer;
};

struct virtio_rdma_create_ah_resp {
	__u8 dmac[6];
	__u8 reserved[2];
};

#endif /* VIRTIO_RDMA_ABI_USER_H */
