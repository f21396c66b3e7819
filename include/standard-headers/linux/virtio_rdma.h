/* SPDX-License-Identifier: GPL-2.0-or-later WITH Linux-syscall-note */
/*
 * virtio-rdma guest ABI; see docs/specs/virtio-rdma.rst.
 *
 * All integers are little-endian, structures have no padding. GIDs, GUIDs
 * and immediate data are opaque bytes in network order. The device never
 * casts guest memory to these structures: it takes offsets and sizes from
 * them.
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
 * Feature bits. A driver that accepts none of them gets the plain device.
 */
/* The control status tells why a command failed. */
#define VIRTIO_RDMA_F_EXT_STATUS	0
/* mac and mtu in configuration space are valid. */
#define VIRTIO_RDMA_F_MAC_MTU		1
/*
 * The status byte of a CQE is written after all its other bytes, with
 * release ordering, and before the used ring entry: who sets it to
 * VIRTIO_RDMA_CQE_EMPTY beforehand can poll the buffer itself.
 */
#define VIRTIO_RDMA_F_CQE_STATUS_LAST	2

#define VIRTIO_RDMA_CQE_EMPTY		0xff

/* Virtqueue numbers; n_cq and n_qp are max_cq and max_qp of the config. */
#define VIRTIO_RDMA_CTRL_VQ			0
#define VIRTIO_RDMA_CQ_VQ(cqn)			(1 + (cqn))
#define VIRTIO_RDMA_SQ_VQ(n_cq, qpn)		(1 + (n_cq) + 2 * (qpn))
#define VIRTIO_RDMA_RQ_VQ(n_cq, qpn)		(2 + (n_cq) + 2 * (qpn))
#define VIRTIO_RDMA_NUM_VQS(n_cq, n_qp)		(1 + (n_cq) + 2 * (n_qp))

/* device_cap_flags */
#define VIRTIO_RDMA_CAP_BAD_PKEY_CNTR		(1ULL << 1)
#define VIRTIO_RDMA_CAP_BAD_QKEY_CNTR		(1ULL << 2)
#define VIRTIO_RDMA_CAP_SYS_IMAGE_GUID		(1ULL << 11)
#define VIRTIO_RDMA_CAP_RC_RNR_NAK_GEN		(1ULL << 12)
#define VIRTIO_RDMA_CAP_MEM_MGT_EXTENSIONS	(1ULL << 21)

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
	/* with VIRTIO_RDMA_F_MAC_MTU: the paired NIC's */
	__u8 mac[6];
	__le16 mtu;
	/* largest inline payload of a send WQE, bytes */
	__le32 max_inline_data;
	__u8 reserved[500];
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
};

/* Control status; without F_EXT_STATUS every failure reads 1. */
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
} VIRTIO_RDMA_ABI;

struct virtio_rdma_dereg_mr_req {
	__le32 mrn;
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
	__u8 reserved[32];
} VIRTIO_RDMA_ABI;

/* sq_sig_type */
#define VIRTIO_RDMA_SIGNAL_ALL_WR	0
#define VIRTIO_RDMA_SIGNAL_REQ_WR	1

/* DESTROY_QP request, CREATE_QP response. */
struct virtio_rdma_qpn {
	__le32 qpn;
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
		} VIRTIO_RDMA_ABI reg;
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

#endif /* _LINUX_VIRTIO_RDMA_H */
