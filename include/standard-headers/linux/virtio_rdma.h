/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * virtio-rdma guest ABI; see docs/specs/virtio-rdma.rst.
 *
 * All integers are little-endian, structures have no padding. GIDs, GUIDs
 * and immediate data are opaque bytes in network order. The device never
 * casts guest memory to these structures, but only copies of it.
 */
#ifndef _LINUX_VIRTIO_RDMA_H
#define _LINUX_VIRTIO_RDMA_H

#ifdef __linux__
#include <linux/types.h>
#else
#include <stdint.h>
typedef uint8_t __u8;
typedef uint16_t __le16;
typedef uint32_t __le32;
typedef uint64_t __le64;
#endif

#ifndef VIRTIO_ID_RDMA
#define VIRTIO_ID_RDMA 42
#endif

#define VIRTIO_RDMA_ABI __attribute__((packed))

/*
 * Feature bits. A driver that accepts none of them gets the device of the
 * RFC. The device refuses any other bit without VIRTIO_RDMA_F_VERSION_1.
 */
/*
 * The device of this header, version 1: status codes, events, SRQs, memory
 * windows, multicast, counters, CQs deeper than their virtqueue, page tables.
 * A limit of 0 in the configuration says what this device has none of.
 *
 * Devices and drivers of version 0.9 give bits 0 to 22 other meanings, and none
 * of them has this bit. So a device refuses a driver of version 0.9 with which
 * it has a bit in common. Without one, the driver gets the device of the RFC.
 */
#define VIRTIO_RDMA_F_VERSION_1		23
/*
 * The queues of QPs, CQs and SRQs may lie in memory that the commands name and
 * that the device reads by itself, instead of virtqueues. A driver rings them
 * through pages of doorbells, which may have a shadow in memory.
 */
#define VIRTIO_RDMA_F_DIRECT		1
/*
 * Keys and the QPNs on the wire are a host adapter's. A device that offers this
 * bit refuses a driver that does not accept it.
 */
#define VIRTIO_RDMA_F_HOST_NUMBERS	2
/* FLUSH, with global visibility. */
#define VIRTIO_RDMA_F_FLUSH		3
/* ATOMIC_WRITE. */
#define VIRTIO_RDMA_F_ATOMIC_WRITE	4

/*
 * With F_VERSION_1, the device writes the status byte of a CQE in a virtqueue
 * after all its other bytes, with release ordering, and before the used ring
 * entry. A driver that sets the byte to this value beforehand can poll the
 * buffer itself.
 */
#define VIRTIO_RDMA_CQE_EMPTY		0xff

/* Virtqueue numbers; n_cq and n_qp are max_cq and max_qp of the config. */
#define VIRTIO_RDMA_CTRL_VQ			0
#define VIRTIO_RDMA_CQ_VQ(cqn)			(1 + (cqn))
#define VIRTIO_RDMA_SQ_VQ(n_cq, qpn)		(1 + (n_cq) + 2 * (qpn))
#define VIRTIO_RDMA_RQ_VQ(n_cq, qpn)		(2 + (n_cq) + 2 * (qpn))
#define VIRTIO_RDMA_NUM_VQS(n_cq, n_qp)		(1 + (n_cq) + 2 * (n_qp))
/* The last ones exist if the device offers F_VERSION_1. */
#define VIRTIO_RDMA_EVENT_VQ(n_cq, n_qp)	(1 + (n_cq) + 2 * (n_qp))
#define VIRTIO_RDMA_SRQ_VQ(n_cq, n_qp, srqn)	(2 + (n_cq) + 2 * (n_qp) + \
						 (srqn))

/* device_cap_flags */
#define VIRTIO_RDMA_CAP_BAD_PKEY_CNTR		(1ULL << 1)
#define VIRTIO_RDMA_CAP_BAD_QKEY_CNTR		(1ULL << 2)
#define VIRTIO_RDMA_CAP_SYS_IMAGE_GUID		(1ULL << 11)
#define VIRTIO_RDMA_CAP_RC_RNR_NAK_GEN		(1ULL << 12)
#define VIRTIO_RDMA_CAP_MEM_WINDOW		(1ULL << 17)
#define VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS	(1ULL << 21)
#define VIRTIO_RDMA_CAP_MEM_WINDOW_TYPE_2B	(1ULL << 24)

/* atomic_cap */
#define VIRTIO_RDMA_ATOMIC_NONE			0
#define VIRTIO_RDMA_ATOMIC_HCA			1
#define VIRTIO_RDMA_ATOMIC_GLOB			2

/* Configuration space; all of it is read-only for the driver. */
struct virtio_rdma_config {
	__le32 phys_port_cnt;
	__u8 sys_image_guid[8];
	__le32 vendor_id;
	__le32 vendor_part_id;
	__le32 hw_ver;
	__le64 max_mr_size;
	__le64 page_size_cap;
	__le32 max_qp;
	__le32 max_qp_wr;
	__le64 device_cap_flags;
	__le32 max_send_sge;
	__le32 max_recv_sge;
	__le32 max_sge_rd;
	__le32 max_cq;
	__le32 max_cqe;
	__le32 max_mr;
	__le32 max_pd;
	__le32 max_qp_rd_atom;
	__le32 max_res_rd_atom;
	__le32 max_qp_init_rd_atom;
	__u8 atomic_cap;
	__le32 max_mw;
	__le32 max_mcast_grp;
	__le32 max_mcast_qp_attach;
	__le32 max_total_mcast_qp_attach;
	__le32 max_ah;
	__le32 max_fast_reg_page_list_len;
	__le32 max_pi_fast_reg_page_list_len;
	__le16 max_pkeys;
	__u8 local_ca_ack_delay;
	/* with F_VERSION_1: of the port */
	__u8 mac[6];
	__le16 mtu;
	/* with or without any bit: largest inline payload of a WQE, in bytes */
	__le32 max_inline_data;
	/* with F_VERSION_1, as all that follow: SRQs with virtqueues */
	__le32 max_srq;
	__le32 max_srq_wr;
	__le32 max_srq_sge;
	/* the largest depth of any CQ, instead of max_cqe */
	__le32 max_cqe_deep;
	/* counters of the port, or 0: no QUERY_COUNTERS */
	__le32 num_counters;
	/* bit n: a region may have pages of 2^n bytes */
	__le64 mr_page_sizes;
	/* pages that a REG_MR work request may carry, or 0 */
	__le32 max_reg_pages;
	/* with F_DIRECT, as all that follow: all QPs; direct from max_qp on */
	__le32 max_qp_direct;
	/* the largest depth of a direct QP's queues, instead of max_qp_wr */
	__le32 max_qp_wr_direct;
	/* all CQs; direct from max_cq on */
	__le32 max_cq_direct;
	/* all SRQs; direct from max_srq on */
	__le32 max_srq_direct;
	__u8 reserved[452];
} VIRTIO_RDMA_ABI;

/* Control commands. */
enum virtio_rdma_cmd {
	VIRTIO_RDMA_CMD_QUERY_PORT = 1,
	VIRTIO_RDMA_CMD_CREATE_CQ = 2,
	VIRTIO_RDMA_CMD_DESTROY_CQ = 3,
	VIRTIO_RDMA_CMD_CREATE_PD = 4,
	VIRTIO_RDMA_CMD_DESTROY_PD = 5,
	VIRTIO_RDMA_CMD_GET_DMA_MR = 6,
	VIRTIO_RDMA_CMD_CREATE_MR = 7,
	VIRTIO_RDMA_CMD_MAP_MR_SG = 8,
	VIRTIO_RDMA_CMD_REG_USER_MR = 9,
	VIRTIO_RDMA_CMD_DEREG_MR = 10,
	VIRTIO_RDMA_CMD_CREATE_QP = 11,
	VIRTIO_RDMA_CMD_MODIFY_QP = 12,
	VIRTIO_RDMA_CMD_QUERY_QP = 13,
	VIRTIO_RDMA_CMD_DESTROY_QP = 14,
	VIRTIO_RDMA_CMD_QUERY_PKEY = 15,
	VIRTIO_RDMA_CMD_ADD_GID = 16,
	VIRTIO_RDMA_CMD_DEL_GID = 17,
	VIRTIO_RDMA_CMD_REQ_NOTIFY_CQ = 18,
	/* with F_VERSION_1 */
	VIRTIO_RDMA_CMD_CREATE_SRQ = 19,
	VIRTIO_RDMA_CMD_MODIFY_SRQ = 20,
	VIRTIO_RDMA_CMD_QUERY_SRQ = 21,
	VIRTIO_RDMA_CMD_DESTROY_SRQ = 22,
	VIRTIO_RDMA_CMD_ALLOC_MW = 23,
	VIRTIO_RDMA_CMD_DEALLOC_MW = 24,
	VIRTIO_RDMA_CMD_RESIZE_CQ = 25,
	VIRTIO_RDMA_CMD_ATTACH_MCAST = 26,
	VIRTIO_RDMA_CMD_DETACH_MCAST = 27,
	VIRTIO_RDMA_CMD_QUERY_COUNTERS = 28,
	VIRTIO_RDMA_CMD_REREG_MR = 29,
	/* with F_DIRECT */
	VIRTIO_RDMA_CMD_SET_SHADOW = 30,
	/* with F_VERSION_1 */
	VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS = 31,
};

/* Control status; without F_VERSION_1 every failure reads 1. */
enum virtio_rdma_status {
	VIRTIO_RDMA_S_OK = 0,
	VIRTIO_RDMA_S_ERR = 1,
	VIRTIO_RDMA_S_INVAL = 2,
	VIRTIO_RDMA_S_NOMEM = 3,
	VIRTIO_RDMA_S_BUSY = 4,
	VIRTIO_RDMA_S_NOENT = 5,
	VIRTIO_RDMA_S_PERM = 6,
	VIRTIO_RDMA_S_NOTSUPP = 7,
};

/* Requests follow the command byte, responses the status byte. */
struct virtio_rdma_query_port_req {
	__u8 port;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_query_port_rsp {
	__u8 state;
	__u8 max_mtu;
	__u8 active_mtu;
	__le32 phys_mtu;
	__le32 gid_tbl_len;
	__le32 port_cap_flags;
	__le32 max_msg_sz;
	__le32 bad_pkey_cntr;
	__le32 qkey_viol_cntr;
	__le16 pkey_tbl_len;
	__u8 active_width;
	__le16 active_speed;
	__u8 phys_state;
	__u8 reserved[128];
} VIRTIO_RDMA_ABI;

/* DESTROY_CQ request, CREATE_CQ response. */
struct virtio_rdma_cqn {
	__le32 cqn;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_create_cq_req {
	__le32 cqe;
	/* with F_DIRECT; only cqe is mandatory */
	__le32 flags;
	__le32 eqn;			/* VIRTIO_RDMA_EQN_NONE: no events */
	/* with VIRTIO_RDMA_CQ_DIRECT: its memory, as a page list */
	__le64 queue_pages;
	__le32 queue_npages;
	__u8 queue_levels;
	__u8 depth_shift;		/* log2 of the number of slots */
	__u8 reserved[6];
} VIRTIO_RDMA_ABI;

/* flags of CREATE_CQ, with F_DIRECT */
#define VIRTIO_RDMA_CQ_DIRECT		(1 << 0)
/* It is no CQ but an event queue: its buffers are struct virtio_rdma_cqn. */
#define VIRTIO_RDMA_CQ_EVENTS		(1 << 1)

#define VIRTIO_RDMA_EQN_NONE		0xffffffffu

struct virtio_rdma_resize_cq_req {
	__le32 cqn;
	__le32 cqe;
	/* completions in the virtqueue that are not consumed */
	__le32 used;
	/* of a direct CQ: its new memory */
	__le64 queue_pages;
	__le32 queue_npages;
	__u8 queue_levels;
	__u8 depth_shift;
	__u8 reserved[2];
} VIRTIO_RDMA_ABI;

/* DESTROY_PD request, CREATE_PD response. */
struct virtio_rdma_pdn {
	__le32 pdn;
} VIRTIO_RDMA_ABI;

/* Response of GET_DMA_MR, CREATE_MR and REG_USER_MR. */
struct virtio_rdma_mr_rsp {
	__le32 mrn;
	__le32 lkey;
	__le32 rkey;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_get_dma_mr_req {
	__le32 pdn;
	__le32 access;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_create_mr_req {
	__le32 pdn;
	__le32 access;
	__le32 max_num_sg;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_map_mr_sg_req {
	__le32 mrn;
	__le32 npages;
	__le64 start;
	__le64 length;
	__le64 pages;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_map_mr_sg_rsp {
	__le32 npages;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_reg_user_mr_req {
	__le32 pdn;
	__le32 access;
	__le64 start;
	__le64 length;
	__le64 virt_addr;
	__le64 pages;
	__le32 npages;
	/* with F_VERSION_1; only npages and before are mandatory */
	__le32 page_shift;
	__le32 levels;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_dereg_mr_req {
	__le32 mrn;
} VIRTIO_RDMA_ABI;

/* flags of REREG_MR: what changes */
#define VIRTIO_RDMA_REREG_TRANSLATION	(1 << 0)
#define VIRTIO_RDMA_REREG_PD		(1 << 1)
#define VIRTIO_RDMA_REREG_ACCESS	(1 << 2)

/* The response is struct virtio_rdma_mr_rsp. */
struct virtio_rdma_rereg_mr_req {
	__le32 mrn;
	__le32 flags;
	struct virtio_rdma_reg_user_mr_req mr;
} VIRTIO_RDMA_ABI;

#define VIRTIO_RDMA_MW_TYPE_1	1
#define VIRTIO_RDMA_MW_TYPE_2	2

struct virtio_rdma_alloc_mw_req {
	__le32 pdn;
	__le32 type;
} VIRTIO_RDMA_ABI;

/* mwn comes from the same numbers as mrn. */
struct virtio_rdma_alloc_mw_rsp {
	__le32 mwn;
	__le32 rkey;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_dealloc_mw_req {
	__le32 mwn;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_create_srq_req {
	__le32 pdn;
	__le32 max_wr;
	__le32 max_sge;
	__le32 limit;
	/* with F_DIRECT; only limit and before are mandatory */
	__le32 flags;
	/* with VIRTIO_RDMA_SRQ_DIRECT: its memory, as a page list */
	__le64 queue_pages;
	__le32 queue_npages;
	__u8 queue_levels;
	__u8 depth_shift;		/* log2 of the number of slots */
	__u8 slot_shift;		/* log2 of the bytes of a slot */
	__u8 reserved0;
	__le16 doorbell;		/* number of its doorbell page */
	__u8 reserved[6];
} VIRTIO_RDMA_ABI;

/* flags of CREATE_SRQ, with F_DIRECT */
#define VIRTIO_RDMA_SRQ_DIRECT		(1 << 0)
/* DESTROY_SRQ and QUERY_SRQ request, CREATE_SRQ response. */
struct virtio_rdma_srqn {
	__le32 srqn;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_modify_srq_req {
	__le32 srqn;
	__le32 limit;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_query_srq_rsp {
	__le32 max_wr;
	__le32 max_sge;
	__le32 limit;
} VIRTIO_RDMA_ABI;

/* ATTACH_MCAST and DETACH_MCAST */
struct virtio_rdma_mcast_req {
	__le32 qpn;
	__u8 gid[16];
} VIRTIO_RDMA_ABI;

struct virtio_rdma_query_counters_req {
	__u8 port;
} VIRTIO_RDMA_ABI;

/* The response of QUERY_COUNTERS is __le64[num_counters], in this order. */
enum virtio_rdma_counter {
	VIRTIO_RDMA_TX_PACKETS,
	VIRTIO_RDMA_TX_BYTES,
	VIRTIO_RDMA_RX_PACKETS,
	VIRTIO_RDMA_RX_BYTES,
	VIRTIO_RDMA_LOOPBACK_PACKETS,
	VIRTIO_RDMA_RX_ICRC_ERRORS,
	VIRTIO_RDMA_RX_MALFORMED,
	VIRTIO_RDMA_RX_DROPPED,
	VIRTIO_RDMA_RX_DUPLICATES,
	VIRTIO_RDMA_RX_OUT_OF_SEQUENCE,
	VIRTIO_RDMA_RETRANSMITS,
	VIRTIO_RDMA_TIMEOUTS,
	VIRTIO_RDMA_RNR_NAKS_SENT,
	VIRTIO_RDMA_RNR_NAKS_RECEIVED,
	VIRTIO_RDMA_NAKS_SENT,
	VIRTIO_RDMA_NAKS_RECEIVED,
	VIRTIO_RDMA_BAD_PKEY,
	VIRTIO_RDMA_BAD_QKEY,
	VIRTIO_RDMA_TX_MCAST_PACKETS,
	VIRTIO_RDMA_RX_MCAST_PACKETS,
	VIRTIO_RDMA_NUM_COUNTERS
};

/*
 * QUERY_QP_COUNTERS: the sums of what so many QPs count, in a response like
 * that of QUERY_COUNTERS.
 */
#define VIRTIO_RDMA_MAX_COUNTER_QPS	32

struct virtio_rdma_query_qp_counters_req {
	__le32 num_qps;
	__le32 qpn[VIRTIO_RDMA_MAX_COUNTER_QPS];
} VIRTIO_RDMA_ABI;

struct virtio_rdma_create_qp_req {
	__le32 pdn;
	__u8 qp_type;
	__u8 sq_sig_type;
	__le32 max_send_wr;
	__le32 max_send_sge;
	__le32 send_cqn;
	__le32 max_recv_wr;
	__le32 max_recv_sge;
	__le32 recv_cqn;
	__le32 max_inline_data;
	__le32 flags;
	__le32 srqn;
	/* with VIRTIO_RDMA_QP_DIRECT: the memory of its queues, as a page list */
	__le64 queue_pages;
	__le32 queue_npages;
	__u8 queue_levels;
	__u8 sq_depth_shift;		/* log2 of the number of slots */
	__u8 sq_slot_shift;		/* log2 of the bytes of a slot */
	__u8 rq_depth_shift;
	__u8 rq_slot_shift;
	__u8 reserved0;
	__le16 doorbell;		/* number of its doorbell page */
	__u8 reserved[4];
} VIRTIO_RDMA_ABI;

/* flags of CREATE_QP */
#define VIRTIO_RDMA_QP_SRQ			(1 << 0) /* with F_VERSION_1 */
#define VIRTIO_RDMA_QP_BLOCK_MCAST_LOOPBACK	(1 << 1) /* with F_VERSION_1 */
#define VIRTIO_RDMA_QP_DIRECT			(1 << 2) /* with F_DIRECT */

/* sq_sig_type */
#define VIRTIO_RDMA_SIGNAL_ALL_WR	0
#define VIRTIO_RDMA_SIGNAL_REQ_WR	1

/* DESTROY_QP request, CREATE_QP response. */
struct virtio_rdma_qpn {
	__le32 qpn;
} VIRTIO_RDMA_ABI;

/* CREATE_QP response with F_HOST_NUMBERS */
struct virtio_rdma_create_qp_rsp {
	/* in commands, completions and events, and of the virtqueues */
	__le32 qpn;
	/* what users and peers know it by */
	__le32 wire_qpn;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_ah_attr {
	__u8 dgid[16];
	__le32 flow_label;
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 sl;
	__u8 static_rate;
	__u8 port_num;
	__u8 ah_flags;
	__u8 dmac[6];
} VIRTIO_RDMA_ABI;

struct virtio_rdma_qp_cap {
	__le32 max_send_wr;
	__le32 max_recv_wr;
	__le32 max_send_sge;
	__le32 max_recv_sge;
	__le32 max_inline_data;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_qp_attr {
	__u8 qp_state;
	__u8 cur_qp_state;
	__u8 path_mtu;
	__u8 path_mig_state;
	__le32 qkey;
	__le32 rq_psn;
	__le32 sq_psn;
	__le32 dest_qp_num;
	__le32 qp_access_flags;
	__le16 pkey_index;
	__le16 alt_pkey_index;
	__u8 en_sqd_async_notify;
	__u8 sq_draining;
	__u8 max_rd_atomic;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 port_num;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 alt_port_num;
	__u8 alt_timeout;
	__le32 rate_limit;
	struct virtio_rdma_qp_cap cap;
	struct virtio_rdma_ah_attr ah_attr;
	struct virtio_rdma_ah_attr alt_ah_attr;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_modify_qp_req {
	__le32 qpn;
	__le32 attr_mask;
	struct virtio_rdma_qp_attr attr;
} VIRTIO_RDMA_ABI;

/* The response is struct virtio_rdma_qp_attr. */
struct virtio_rdma_query_qp_req {
	__le32 qpn;
	__le32 attr_mask;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_query_pkey_req {
	__le32 port;
	__le16 index;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_query_pkey_rsp {
	__le16 pkey;
} VIRTIO_RDMA_ABI;

#define VIRTIO_RDMA_GID_TYPE_ROCE_V2	2

struct virtio_rdma_add_gid_req {
	__u8 gid[16];
	__le32 gid_type;
	__le16 index;
	__le32 port_num;
	/* with F_VERSION_1: 1..4094, or 0 for none; not mandatory */
	__le16 vlan;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_del_gid_req {
	__le16 index;
	__le32 port_num;
} VIRTIO_RDMA_ABI;

#define VIRTIO_RDMA_NOTIFY_SOLICITED		(1 << 0)
#define VIRTIO_RDMA_NOTIFY_NEXT_COMPLETION	(1 << 1)

struct virtio_rdma_req_notify_cq_req {
	__le32 cqn;
	__le32 flags;
} VIRTIO_RDMA_ABI;

/* With F_DIRECT: give a page of doorbells a shadow, or none. */
struct virtio_rdma_set_shadow_req {
	__le16 doorbell;		/* number of the page */
	__le16 flags;
	__le32 reserved;
	__le64 addr;			/* of the shadow */
} VIRTIO_RDMA_ABI;

/* flags of SET_SHADOW */
#define VIRTIO_RDMA_SHADOW_ON		(1 << 0)

/* Work queues. */
struct virtio_rdma_sge {
	__le64 addr;
	__le32 length;
	__le32 lkey;
} VIRTIO_RDMA_ABI;

struct virtio_rdma_av {
	__le32 port;
	__le32 pdn;
	__le32 sl_tclass_flowlabel;
	__u8 dgid[16];
	__u8 gid_index;
	__u8 static_rate;
	__u8 hop_limit;
	__u8 dmac[6];
	__u8 reserved[6];
} VIRTIO_RDMA_ABI;

#define VIRTIO_RDMA_AV_FLOW_LABEL_MASK	0x000fffff
#define VIRTIO_RDMA_AV_TCLASS_SHIFT	20
#define VIRTIO_RDMA_AV_SL_SHIFT		28

/* type of FLUSH; what it asks of the peer, which may refuse */
#define VIRTIO_RDMA_FLUSH_GLOBAL	(1 << 0)
#define VIRTIO_RDMA_FLUSH_PERSISTENT	(1 << 1)
/* level of FLUSH */
#define VIRTIO_RDMA_FLUSH_RANGE		0
#define VIRTIO_RDMA_FLUSH_MR		1

/* Followed by num_sge virtio_rdma_sge, or by inline data. */
struct virtio_rdma_sq_wqe {
	__le32 num_sge;
	__le32 send_flags;
	__le32 opcode;
	__le64 wr_id;
	union {
		__u8 imm_data[4];
		__le32 invalidate_rkey;
	} VIRTIO_RDMA_ABI ex;
	union {
		struct {
			__le64 remote_addr;
			__le32 rkey;
		} VIRTIO_RDMA_ABI rdma;
		struct {
			__le64 remote_addr;
			__le64 compare_add;
			__le64 swap;
			__le32 rkey;
		} VIRTIO_RDMA_ABI atomic;
		struct {
			__le32 remote_qpn;
			__le32 remote_qkey;
			struct virtio_rdma_av av;
		} VIRTIO_RDMA_ABI ud;
		struct {
			__le32 mrn;
			__le32 key;
			__le32 access;
			/* with F_VERSION_1; 0: what MAP_MR_SG brought */
			__le32 npages;
			__le64 start;
			__le64 length;
			__le64 pages;
		} VIRTIO_RDMA_ABI reg;
		/* with F_VERSION_1 */
		struct {
			__le32 rkey;		/* of the window, now */
			__le32 new_rkey;
			__le32 lkey;		/* of the region */
			__le32 access;
			__le64 addr;
			__le64 length;
		} VIRTIO_RDMA_ABI bind;
		/* with F_FLUSH */
		struct {
			__le64 remote_addr;
			__le32 rkey;
			__le32 length;		/* bytes */
			__le32 type;
			__le32 level;
		} VIRTIO_RDMA_ABI flush;
	} VIRTIO_RDMA_ABI wr;
} VIRTIO_RDMA_ABI;

/* Followed by num_sge virtio_rdma_sge. */
struct virtio_rdma_rq_wqe {
	__le32 num_sge;
	__le64 wr_id;
} VIRTIO_RDMA_ABI;

/* wc_flags */
#define VIRTIO_RDMA_WC_GRH		(1 << 0)
#define VIRTIO_RDMA_WC_WITH_IMM		(1 << 1)
#define VIRTIO_RDMA_WC_WITH_INVALIDATE	(1 << 2)
/* with F_VERSION_1 */
#define VIRTIO_RDMA_WC_WITH_SMAC	(1 << 4)
#define VIRTIO_RDMA_WC_WITH_VLAN	(1 << 5)
#define VIRTIO_RDMA_WC_WITH_HDR_TYPE	(1 << 6)

/* opcode; the others are those of ibverbs */
#define VIRTIO_RDMA_CQE_OP_REG_MR	8
#define VIRTIO_RDMA_CQE_OP_FLUSH	14
#define VIRTIO_RDMA_CQE_OP_ATOMIC_WRITE	15

struct virtio_rdma_cqe {
	__le64 wr_id;
	__u8 status;
	__u8 opcode;
	__le32 vendor_err;
	__le32 byte_len;
	union {
		__u8 imm_data[4];
		__le32 invalidate_rkey;
	} VIRTIO_RDMA_ABI ex;
	__le32 qp_num;
	__le32 src_qp;
	__le32 wc_flags;
	__le16 pkey_index;
	__u8 sl;
	__u8 port_num;
} VIRTIO_RDMA_ABI;

/* qp_num of a receive from an SRQ whose QP was destroyed or reset */
#define VIRTIO_RDMA_CQE_QPN_NONE	0xffffffffu

#define VIRTIO_RDMA_HDR_IPV4	2
#define VIRTIO_RDMA_HDR_IPV6	3

struct virtio_rdma_cqe_ex {
	struct virtio_rdma_cqe cqe;
	__u8 smac[6];
	__le16 vlan;
	__u8 hdr_type;
	__u8 reserved;
} VIRTIO_RDMA_ABI;

/* What the driver's buffers in the event virtqueue are filled with. */
struct virtio_rdma_event {
	/* IBTA 11.6.3 */
	__le32 type;
	/* qpn, cqn, srqn or port number, by type */
	__le32 id;
} VIRTIO_RDMA_ABI;

enum virtio_rdma_event_type {
	VIRTIO_RDMA_EVENT_CQ_ERR = 0,
	VIRTIO_RDMA_EVENT_QP_FATAL = 1,
	VIRTIO_RDMA_EVENT_QP_REQ_ERR = 2,
	VIRTIO_RDMA_EVENT_QP_ACCESS_ERR = 3,
	VIRTIO_RDMA_EVENT_COMM_EST = 4,
	VIRTIO_RDMA_EVENT_SQ_DRAINED = 5,
	VIRTIO_RDMA_EVENT_PORT_ACTIVE = 9,
	VIRTIO_RDMA_EVENT_PORT_ERR = 10,
	VIRTIO_RDMA_EVENT_SRQ_ERR = 14,
	VIRTIO_RDMA_EVENT_SRQ_LIMIT_REACHED = 15,
	VIRTIO_RDMA_EVENT_LAST_WQE_REACHED = 16,
	VIRTIO_RDMA_EVENT_GID_CHANGE = 18,
};

#include "virtio_rdma_direct.h"

#endif /* _LINUX_VIRTIO_RDMA_H */
