/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest ABI of virtio-net-roce: RoCE as a part of virtio-net, as proposed
 * for virtio in May 2022. docs/specs/virtio-net-roce.rst describes it.
 *
 * Numbers are little-endian, unless a comment says otherwise, and aligned to
 * their size. Structures have no implicit padding.
 */
#ifndef HW_RDMA_NET_ROCE_ABI_H
#define HW_RDMA_NET_ROCE_ABI_H

#include "rdma/verbs.h"

/* The feature bit. Later versions of virtio use it for GUEST_USO6. */
#define NET_ROCE_F_ROCE 55

#define NET_ROCE_HDR_SIZE 12        /* before each Ethernet frame */
#define NET_ROCE_LINK_UP 1          /* of NetRoceConfig.status */

typedef struct NetRoceConfig {
    uint8_t mac[RDMA_MAC_LEN];
    uint16_t status;
    uint16_t max_virtqueue_pairs;
    uint16_t mtu;
    uint8_t not_offered[12];        /* speed to supported_hash_types */
    uint32_t max_rdma_qps;
    uint32_t max_rdma_cqs;
} NetRoceConfig;

/* Virtqueues, with one pair of queues for frames */
#define NET_ROCE_RX_VQ 0
#define NET_ROCE_TX_VQ 1
#define NET_ROCE_CTRL_VQ 2
#define NET_ROCE_CQ_VQ(cqn) (3 + (cqn))
#define NET_ROCE_SQ_VQ(max_cqs, qpn) (3 + (max_cqs) + 2 * (qpn))
#define NET_ROCE_RQ_VQ(max_cqs, qpn) (NET_ROCE_SQ_VQ(max_cqs, qpn) + 1)
#define NET_ROCE_NUM_VQS(max_cqs, max_qps) NET_ROCE_SQ_VQ(max_cqs, max_qps)

/* Commands: the class, a command, and its data; the reply begins with ACK */
#define NET_ROCE_CLASS 6

enum {
    NET_ROCE_ACK_OK,
    NET_ROCE_ACK_ERR,
};

enum {
    NET_ROCE_CMD_QUERY_DEVICE,
    NET_ROCE_CMD_QUERY_PORT,
    NET_ROCE_CMD_CREATE_CQ,
    NET_ROCE_CMD_DESTROY_CQ,
    NET_ROCE_CMD_CREATE_PD,
    NET_ROCE_CMD_DESTROY_PD,
    NET_ROCE_CMD_GET_DMA_MR,
    NET_ROCE_CMD_REG_USER_MR,
    NET_ROCE_CMD_DEREG_MR,
    NET_ROCE_CMD_CREATE_QP,
    NET_ROCE_CMD_MODIFY_QP,
    NET_ROCE_CMD_QUERY_QP,
    NET_ROCE_CMD_DESTROY_QP,
    NET_ROCE_CMD_CREATE_AH,
    NET_ROCE_CMD_DESTROY_AH,
    NET_ROCE_CMD_ADD_GID,
    NET_ROCE_CMD_DEL_GID,
    NET_ROCE_CMD_REQ_NOTIFY_CQ,
    NET_ROCE_NUM_CMDS,
};

/* A CQN, PDN, MRN, QPN or address handle */
typedef struct NetRoceId {
    uint32_t id;
} NetRoceId;

#define NET_ROCE_CAP_RC_RNR_NAK_GEN 1

typedef struct NetRoceDevice {
    uint64_t device_cap_flags;
    uint64_t max_mr_size;
    uint64_t page_size_cap;
    uint32_t hw_ver;
    uint32_t max_qp_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_sge_rd;
    uint32_t max_cqe;
    uint32_t max_mr;
    uint32_t max_pd;
    uint32_t max_qp_rd_atom;
    uint32_t max_qp_init_rd_atom;
    uint32_t max_ah;
    uint8_t local_ca_ack_delay;
    uint8_t pad[3];
    uint32_t reserved[14];
} NetRoceDevice;

typedef struct NetRocePort {
    uint32_t gid_tbl_len;
    uint32_t max_msg_sz;
    uint32_t reserved[6];
} NetRocePort;

typedef struct NetRoceGetDmaMr {
    uint32_t pdn;
    uint32_t access;                /* RDMA_ACCESS_*, NET_ROCE_ACCESS */
} NetRoceGetDmaMr;

#define NET_ROCE_ACCESS (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE_WRITE | \
                         RDMA_ACCESS_REMOTE_READ)

/* Followed by the addresses of the pages, 64 bits each */
typedef struct NetRoceRegUserMr {
    uint32_t pdn;
    uint32_t access;
    uint64_t virt_addr;
    uint64_t length;
    uint32_t npages;
    uint32_t pad;
} NetRoceRegUserMr;

typedef struct NetRoceMr {
    uint32_t mrn;
    uint32_t lkey;
    uint32_t rkey;
} NetRoceMr;

typedef struct NetRoceCap {
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;
    uint32_t pad;
} NetRoceCap;

typedef struct NetRoceCreateQp {
    uint32_t pdn;
    uint8_t qp_type;                /* RdmaQpType */
    uint8_t sq_sig_all;
    uint8_t pad[2];
    uint32_t send_cqn;
    uint32_t recv_cqn;
    NetRoceCap cap;
    uint32_t reserved[4];
} NetRoceCreateQp;

typedef struct NetRoceAv {
    uint8_t dgid[RDMA_GID_LEN];
    uint32_t flow_label;
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t traffic_class;
    uint8_t pad;
    uint8_t dmac[RDMA_MAC_LEN];
    uint8_t reserved[10];
} NetRoceAv;

/* Bits of masks of attributes */
enum {
    NET_ROCE_QP_STATE = 1u << 0,
    NET_ROCE_QP_CUR_STATE = 1u << 1,
    NET_ROCE_QP_ACCESS = 1u << 2,
    NET_ROCE_QP_QKEY = 1u << 3,
    NET_ROCE_QP_AV = 1u << 4,
    NET_ROCE_QP_PATH_MTU = 1u << 5,
    NET_ROCE_QP_TIMEOUT = 1u << 6,
    NET_ROCE_QP_RETRY_CNT = 1u << 7,
    NET_ROCE_QP_RNR_RETRY = 1u << 8,
    NET_ROCE_QP_RQ_PSN = 1u << 9,
    NET_ROCE_QP_MAX_RD_ATOMIC = 1u << 10,
    NET_ROCE_QP_MIN_RNR_TIMER = 1u << 11,
    NET_ROCE_QP_SQ_PSN = 1u << 12,
    NET_ROCE_QP_MAX_DEST_RD_ATOMIC = 1u << 13,
    NET_ROCE_QP_CAP = 1u << 14,
    NET_ROCE_QP_DEST_QPN = 1u << 15,
    NET_ROCE_QP_RATE_LIMIT = 1u << 16,
};

typedef struct NetRoceModifyQp {
    uint32_t qpn;
    uint32_t attr_mask;
    uint8_t qp_state;
    uint8_t cur_qp_state;
    uint8_t path_mtu;
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t min_rnr_timer;
    uint8_t timeout;
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t pad[7];
    uint32_t qkey;
    uint32_t rq_psn;
    uint32_t sq_psn;
    uint32_t dest_qp_num;
    uint32_t qp_access_flags;
    uint32_t rate_limit;            /* kb/s */
    NetRoceCap cap;
    NetRoceAv av;
    uint32_t reserved[4];
} NetRoceModifyQp;

typedef struct NetRoceQueryQp {
    uint32_t qpn;
    uint32_t attr_mask;
} NetRoceQueryQp;

typedef struct NetRoceQpAttr {
    uint8_t qp_state;
    uint8_t path_mtu;
    uint8_t sq_draining;
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t min_rnr_timer;
    uint8_t timeout;
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t pad[7];
    uint32_t qkey;
    uint32_t rq_psn;
    uint32_t sq_psn;
    uint32_t dest_qp_num;
    uint32_t qp_access_flags;
    uint32_t rate_limit;
    NetRoceCap cap;
    NetRoceAv av;
    uint32_t reserved[4];
} NetRoceQpAttr;

typedef struct NetRoceCreateAh {
    uint32_t pdn;
    uint32_t pad;
    NetRoceAv av;
} NetRoceCreateAh;

typedef struct NetRoceDestroyAh {
    uint32_t pdn;
    uint32_t ah;
} NetRoceDestroyAh;

typedef struct NetRoceAddGid {
    uint16_t index;
    uint16_t pad[3];
    uint8_t gid[RDMA_GID_LEN];
} NetRoceAddGid;

typedef struct NetRoceDelGid {
    uint16_t index;
} NetRoceDelGid;

enum {
    NET_ROCE_NOTIFY_SOLICITED = 1,
    NET_ROCE_NOTIFY_NEXT = 2,
};

typedef struct NetRoceReqNotifyCq {
    uint32_t cqn;
    uint32_t flags;
} NetRoceReqNotifyCq;

typedef struct NetRoceSge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
} NetRoceSge;

#define NET_ROCE_MAX_INLINE 512
/*
 * The driver of the authors writes this for any combination of RDMA_SEND_*
 * flags.
 */
#define NET_ROCE_SEND_COMBINED 0xff

/* Followed by SGEs. Opcodes are RdmaWrOpcode, up to RDMA_WR_RDMA_READ. */
typedef struct NetRoceSendWqe {
    uint64_t wr_id;
    uint8_t opcode;
    uint8_t send_flags;
    uint8_t pad[2];
    uint8_t imm_data[4];            /* network order */
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
            uint32_t reserved;
        } rdma;
        struct {
            uint32_t remote_qpn;
            uint32_t remote_qkey;
            uint32_t ah;
            uint32_t reserved;
        } ud;
        uint8_t room[32];
    } wr;
    uint8_t inline_data[NET_ROCE_MAX_INLINE];
    union {
        uint32_t num_sge;
        uint16_t inline_len;        /* with RDMA_SEND_INLINE */
    } n;
    uint32_t reserved[3];
} NetRoceSendWqe;

/* Followed by SGEs */
typedef struct NetRoceRecvWqe {
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t reserved[3];
} NetRoceRecvWqe;

typedef enum NetRoceWcStatus {
    NET_ROCE_WC_SUCCESS,
    NET_ROCE_WC_LOC_LEN_ERR,
    NET_ROCE_WC_LOC_QP_OP_ERR,
    NET_ROCE_WC_LOC_PROT_ERR,
    NET_ROCE_WC_WR_FLUSH_ERR,
    NET_ROCE_WC_BAD_RESP_ERR,
    NET_ROCE_WC_LOC_ACCESS_ERR,
    NET_ROCE_WC_REM_INV_REQ_ERR,
    NET_ROCE_WC_REM_ACCESS_ERR,
    NET_ROCE_WC_REM_OP_ERR,
    NET_ROCE_WC_RETRY_EXC_ERR,
    NET_ROCE_WC_RNR_RETRY_EXC_ERR,
    NET_ROCE_WC_REM_ABORT_ERR,
    NET_ROCE_WC_FATAL_ERR,
    NET_ROCE_WC_RESP_TIMEOUT_ERR,
    NET_ROCE_WC_GENERAL_ERR,
} NetRoceWcStatus;

typedef enum NetRoceWcOpcode {
    NET_ROCE_WC_SEND,
    NET_ROCE_WC_RDMA_WRITE,
    NET_ROCE_WC_RDMA_READ,
    NET_ROCE_WC_RECV,
    NET_ROCE_WC_RECV_RDMA_WITH_IMM,
} NetRoceWcOpcode;

typedef struct NetRoceCqe {
    uint64_t wr_id;
    uint8_t status;                 /* NetRoceWcStatus */
    uint8_t opcode;                 /* NetRoceWcOpcode */
    uint8_t pad[2];
    uint32_t vendor_err;
    uint32_t byte_len;
    uint8_t imm_data[4];            /* network order */
    uint32_t qp_num;
    uint32_t src_qp;
    uint32_t wc_flags;              /* RDMA_WC_GRH and RDMA_WC_WITH_IMM */
    uint32_t reserved[3];
} NetRoceCqe;

#endif
