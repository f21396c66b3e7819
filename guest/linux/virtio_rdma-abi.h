/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * The ABI between virtio_rdma.ko and its libibverbs provider.
 *
 * A process maps memory of the driver: slots with one WQE or CQE each, and a
 * page of counters. The driver controls which slots the device accesses, and
 * their addresses.
 *
 * WQEs and CQEs have the layout of the device ABI, linux/virtio_rdma.h.
 */
#ifndef VIRTIO_RDMA_ABI_USER_H
#define VIRTIO_RDMA_ABI_USER_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define VIRTIO_RDMA_UABI_VERSION 1

/* virtio_rdma_alloc_ucontext_resp.flags */
enum {
	/* CQs are polled in mapped slots, otherwise with POLL_CQ. */
	VIRTIO_RDMA_UCTX_MAPPED_CQ = 1 << 0,
	/* BIND_MW work requests are allowed. */
	VIRTIO_RDMA_UCTX_MW = 1 << 1,
	/* CQEs have the layout of struct virtio_rdma_cqe_ex. */
	VIRTIO_RDMA_UCTX_CQE_EX = 1 << 2,
	/* FLUSH and ATOMIC_WRITE work requests are allowed. */
	VIRTIO_RDMA_UCTX_FLUSH = 1 << 3,
	VIRTIO_RDMA_UCTX_ATOMIC_WRITE = 1 << 4,
	/*
	 * qpn of virtio_rdma_create_qp_resp is valid, and differs from the
	 * number that the program and its peers know.
	 */
	VIRTIO_RDMA_UCTX_HOST_NUMBERS = 1 << 5,
	/* The process can map a page of doorbells, at doorbell_offset. */
	VIRTIO_RDMA_UCTX_DOORBELL = 1 << 6,
	/*
	 * It can map a shadow of that page, struct virtio_rdma_doorbell_shadow,
	 * at shadow_offset.
	 */
	VIRTIO_RDMA_UCTX_SHADOW = 1 << 7,
};

struct virtio_rdma_alloc_ucontext_resp {
	__u32 flags;
	__u32 max_qp;			/* QP numbers, or qpns, are below it */
	__aligned_u64 doorbell_offset;
	__aligned_u64 shadow_offset;
};

/*
 * Of the method QUERY_CONTEXT: the response that the context was made with, for
 * a process that another one has handed the context to
 */
enum {
	VIRTIO_RDMA_ATTR_QUERY_CONTEXT_RESP = 1U << UVERBS_ID_NS_SHIFT,
};

/* The lengths of these mappings, in bytes */
#define VIRTIO_RDMA_DOORBELL_MAP 4096
#define VIRTIO_RDMA_SHADOW_MAP 4096

/*
 * In place of the number n of a QP in the page of doorbells, a process may set
 * bit n % 32 of marked[n / 32] and then, for that word w, bit w % 32 of
 * summary[w / 32], if the shadow is awake both before and, behind a full
 * barrier, after that. All are in little-endian, and bits are set by atomic
 * operations, the second with release ordering. There are none for SRQs.
 */
struct virtio_rdma_doorbell_shadow {
	__u32 awake;
	__u32 reserved0[15];
	__u32 summary[16];
	__u32 reserved1[480];
	__u32 marked[512];
};

/*
 * Of CREATE_CQ, and not mandatory: what the process knows of. What is behind it
 * has to be 0.
 */
struct virtio_rdma_create_cq_cmd {
	__u32 flags;
	__u32 reserved;			/* 0 */
};

/* virtio_rdma_create_cq_cmd.flags */
enum {
	/* VIRTIO_RDMA_CQ_RESP_DIRECT; it calls POLL_CQ for other direct CQs. */
	VIRTIO_RDMA_CQ_CMD_DIRECT = 1 << 0,
};

/*
 * The mapping starts with a page, struct virtio_rdma_cq_page, and has the slots
 * at ring_offset. mmap_size is 0 if there is no mapping.
 *
 * The device writes the n-th completion to slot n % slots, and its status byte
 * last. To consume it, the process sets the status byte to
 * VIRTIO_RDMA_CQE_EMPTY and then raises @consumer. When more than @slack slots
 * were consumed since its last POLL_CQ command, it calls that, and the driver
 * gives the slots back to the device.
 */
struct virtio_rdma_create_cq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 ring_offset;
	__u32 slots;			/* power of two */
	__u32 slot_size;		/* bytes, power of two */
	__u32 slack;
	__u32 flags;
};

/*
 * virtio_rdma_create_cq_resp.flags: the n-th completion, from 0 on, is there
 * when the last 4 bytes of its slot are n + 1, in little-endian; nothing is to
 * be written to slots. The process arms the CQ by itself: it counts its requests
 * in the upper 30 bits of @arm, and has VIRTIO_RDMA_NOTIFY_* in the others.
 * Behind that and a full barrier it looks for completions. It calls neither
 * POLL_CQ nor REQ_NOTIFY_CQ.
 *
 * The response of RESIZE_CQ is the same structure, of a new mapping that goes on
 * where the one before was. The process writes to neither during the command.
 */
enum {
	VIRTIO_RDMA_CQ_RESP_DIRECT = 1 << 0,
};

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
 * The process writes the n-th WQE to slot n % slots, raises the producer and
 * calls POST_SEND or POST_RECV without work requests, which may be left out with
 * VIRTIO_RDMA_QP_RESP_DIRECT. At most as many WQEs as there are slots may be
 * outstanding.
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
	 * With VIRTIO_RDMA_UCTX_HOST_NUMBERS: completions, in mapped slots and
	 * of POLL_CQ, name the QP by it.
	 */
	__u32 qpn;
	__u32 flags;
	__u32 reserved;
};

/*
 * virtio_rdma_create_qp_resp.flags: the device reads the slots by itself. Once
 * the producer is raised, and behind a full barrier, the process reads whether
 * the queue is awake. If it is not, it writes the device's number of the QP, in
 * little-endian, to the page of doorbells, or calls POST_SEND or POST_RECV.
 */
enum {
	VIRTIO_RDMA_QP_RESP_DIRECT = 1 << 0,
};

struct virtio_rdma_qp_page {
	__u32 sq_producer;
	__u32 reserved0[15];
	__u32 sq_awake;			/* of direct queues */
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
 * of a QP, with POST_SRQ_RECV, but a slot is free as soon as the device has
 * copied the WQE, before the message arrives.
 */
struct virtio_rdma_create_srq_resp {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;
	__u32 ring_offset;
	__u32 slots;			/* power of two */
	__u32 slot_size;		/* bytes, power of two */
	__u32 srqn;			/* with VIRTIO_RDMA_SRQ_RESP_DIRECT */
	__u32 flags;
};

/*
 * virtio_rdma_create_srq_resp.flags: as VIRTIO_RDMA_QP_RESP_DIRECT. A slot is
 * free when WQEs without a completion are fewer than slots; the process writes
 * VIRTIO_RDMA_DOORBELL_SRQ | @srqn to its page of doorbells, or calls
 * POST_SRQ_RECV.
 */
enum {
	VIRTIO_RDMA_SRQ_RESP_DIRECT = 1 << 0,
};

struct virtio_rdma_srq_page {
	__u32 producer;
	__u32 reserved[15];
	__u32 awake;			/* of direct SRQs */
};

struct virtio_rdma_create_ah_resp {
	__u8 dmac[6];
	__u8 reserved[2];
};

#endif /* VIRTIO_RDMA_ABI_USER_H */
