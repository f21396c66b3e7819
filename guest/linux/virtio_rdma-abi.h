/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The ABI between virtio_rdma.ko and its libibverbs provider.
 *
 * A process maps memory of the driver: slots with one WQE or CQE each, and
 * before them a page of counters, which has 4096 bytes whatever the size of the
 * kernel's pages is. The driver controls which slots the device accesses, and
 * their addresses.
 *
 * WQEs and CQEs have the layout of the device ABI, linux/virtio_rdma.h.
 */
#ifndef VIRTIO_RDMA_ABI_USER_H
#define VIRTIO_RDMA_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define VIRTIO_RDMA_UABI_VERSION 2

/* virtio_rdma_alloc_ucontext_resp.flags */
enum {
	/*
	 * The device reads WQEs in their slots and writes completions there.
	 * Otherwise the process calls POST_SEND, POST_RECV and POST_SRQ_RECV
	 * without work requests, and POLL_CQ and REQ_NOTIFY_CQ.
	 */
	VIRTIO_RDMA_UCTX_DIRECT = 1 << 0,
	/* BIND_MW work requests are allowed. */
	VIRTIO_RDMA_UCTX_MW = 1 << 1,
	/* FLUSH and ATOMIC_WRITE work requests are allowed. */
	VIRTIO_RDMA_UCTX_FLUSH = 1 << 2,
	VIRTIO_RDMA_UCTX_ATOMIC_WRITE = 1 << 3,
	/* The process can map a page of doorbells, at doorbell_offset. */
	VIRTIO_RDMA_UCTX_DOORBELL = 1 << 4,
	/*
	 * It can map a shadow of that page, struct virtio_rdma_doorbell_shadow,
	 * at shadow_offset.
	 */
	VIRTIO_RDMA_UCTX_SHADOW = 1 << 5,
};

struct virtio_rdma_alloc_ucontext_resp {
	__u32 flags;
	__u32 max_qp;			/* qpns are below it */
	__aligned_u64 doorbell_offset;
	__aligned_u64 shadow_offset;
};

/*
 * An attribute of the method QUERY_CONTEXT: the response that the context was
 * created with, for a process that got the context from another one
 */
enum {
	VIRTIO_RDMA_ATTR_QUERY_CONTEXT_RESP = 1U << UVERBS_ID_NS_SHIFT,
};

/*
 * The bytes that a process uses of these mappings, which are one page of the
 * kernel each
 */
#define VIRTIO_RDMA_DOORBELL_MAP 4096
#define VIRTIO_RDMA_SHADOW_MAP 4096

/*
 * Instead of writing the number n of a QP to the page of doorbells, a process
 * may set bit n % 32 of marked[n / 32] and then, for that word w, bit w % 32 of
 * summary[w / 32], if the shadow is awake both before and, after a full
 * barrier, afterwards. All words are little-endian. Bits are set by atomic
 * operations, the second with release ordering. SRQs have no bits.
 */
struct virtio_rdma_doorbell_shadow {
	__u32 awake;
	__u32 reserved0[15];
	__u32 summary[16];
	__u32 reserved1[480];
	__u32 marked[512];
};

/*
 * Without VIRTIO_RDMA_UCTX_DIRECT all fields are 0. Otherwise the mapping
 * starts with a page, struct virtio_rdma_cq_page, and has the slots at
 * ring_offset.
 *
 * The n-th completion, from 0 on, is there when the last 4 bytes of its slot,
 * slot n % slots, are n + 1, in little-endian. The process writes to a slot
 * only to mark a receive of an SRQ whose QP it has reset or destroyed:
 * VIRTIO_RDMA_QPN_NONE. When it has consumed completions, it raises @consumer.
 *
 * To arm the CQ, the process writes @arm: a count of its requests in the upper
 * 30 bits, VIRTIO_RDMA_NOTIFY_* in the others. After a full barrier it looks
 * for completions.
 *
 * The response of RESIZE_CQ is the same structure, for a new mapping, which
 * continues the counts of the old one. The process writes to neither during the
 * command.
 */
struct virtio_rdma_create_cq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 ring_offset;
	__u32 slots;			/* power of two */
	__u32 slot_size;		/* bytes, power of two */
};

/*
 * The QPN of a completion that the process drops, because the QP was destroyed
 * or reset
 */
#define VIRTIO_RDMA_QPN_NONE 0xffffffffU

struct virtio_rdma_cq_page {
	__u32 consumer;
	__u32 reserved[15];
	__u32 arm;
};

/*
 * The mapping starts with a page, struct virtio_rdma_qp_page, and has the slots
 * of both queues, struct virtio_rdma_wqe_slot, at sq_offset and rq_offset. A QP
 * with an SRQ has no receive slots.
 *
 * The process writes the n-th WQE to slot n % slots and raises the producer. At
 * most as many WQEs as there are slots may be outstanding. With
 * VIRTIO_RDMA_UCTX_DIRECT, the process reads after a full barrier whether the
 * queue is awake. If it is not, the process writes @qpn, in little-endian, to
 * the page of doorbells, or calls POST_SEND or POST_RECV.
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
	/*
	 * Completions, in slots and of POLL_CQ, name the QP by this number.
	 * Peers may know it by another one.
	 */
	__u32 qpn;
};

struct virtio_rdma_qp_page {
	__u32 sq_producer;
	__u32 reserved0[15];
	__u32 sq_awake;			/* with VIRTIO_RDMA_UCTX_DIRECT */
	__u32 reserved1[15];
	__u32 rq_producer;
	__u32 reserved2[15];
	__u32 rq_awake;
};

struct virtio_rdma_wqe_slot {
	__u32 length;			/* bytes of wqe */
	__u8 wqe[];
};

/*
 * The mapping starts with a page, struct virtio_rdma_srq_page, and has the
 * slots, struct virtio_rdma_wqe_slot, at ring_offset. They are used like those
 * of a QP. A slot is free when WQEs without a completion are fewer than slots.
 * The process writes VIRTIO_RDMA_DOORBELL_SRQ | @srqn to its page of doorbells,
 * or calls POST_SRQ_RECV.
 */
struct virtio_rdma_create_srq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 ring_offset;
	__u32 slots;			/* power of two */
	__u32 slot_size;		/* bytes, power of two */
	__u32 srqn;
	__u32 reserved;
};

struct virtio_rdma_srq_page {
	__u32 producer;
	__u32 reserved[15];
	__u32 awake;			/* with VIRTIO_RDMA_UCTX_DIRECT */
};

struct virtio_rdma_create_ah_resp {
	__u8 dmac[6];
	__u8 reserved[2];
};

#endif /* VIRTIO_RDMA_ABI_USER_H */
