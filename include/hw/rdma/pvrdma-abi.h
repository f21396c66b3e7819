/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest ABI of pvrdma: the interface that the driver "vmw_pvrdma" of Linux
 * and the provider "vmw_pvrdma" of rdma-core expect of PCI device 15ad:0820.
 *
 * Numbers are little-endian, unless a comment says otherwise, and aligned to
 * their size. Pages have 4096 bytes. There is no public specification; names
 * are this project's own.
 */
#ifndef HW_RDMA_PVRDMA_ABI_H
#define HW_RDMA_PVRDMA_ABI_H

#include "rdma/verbs.h"

#define PVRDMA_PCI_VENDOR 0x15ad
#define PVRDMA_PCI_DEVICE 0x0820

enum {
    PVRDMA_BAR_MSIX,
    PVRDMA_BAR_REGS,
    PVRDMA_BAR_UAR,
};

/* Vectors of MSI-X; bit 1 << vector of ICR and IMR */
enum {
    PVRDMA_VECTOR_RESPONSE,
    PVRDMA_VECTOR_EVENT,
    PVRDMA_VECTOR_COMPLETION,
    PVRDMA_NUM_VECTORS,
};

/* Registers, of 32 bits */
enum {
    PVRDMA_REG_VERSION = 0x00,
    PVRDMA_REG_DSR_LOW = 0x04,
    PVRDMA_REG_DSR_HIGH = 0x08,
    PVRDMA_REG_CTL = 0x0c,
    PVRDMA_REG_REQUEST = 0x10,
    PVRDMA_REG_ERR = 0x14,
    PVRDMA_REG_ICR = 0x18,
    PVRDMA_REG_IMR = 0x1c,
    PVRDMA_REG_MAC_LOW = 0x20,
    PVRDMA_REG_MAC_HIGH = 0x24,
};

enum {
    PVRDMA_CTL_ACTIVATE,
    PVRDMA_CTL_UNQUIESCE,
    PVRDMA_CTL_RESET,
};

/* VERSION of a device, and the version that a driver knows */
enum {
    PVRDMA_VERSION_ROCE_V2 = 18,
    PVRDMA_VERSION_WIDE_PFN = 19,   /* page frame numbers of 64 bits */
    PVRDMA_VERSION_HANDLES = 20,    /* the handle of a QP is not its QPN */
};

/* Offsets in a page of BAR 2, and bits that are written with the handle */
enum {
    PVRDMA_UAR_QP = 0,
    PVRDMA_UAR_CQ = 4,
    PVRDMA_UAR_SRQ = 8,
};
#define PVRDMA_UAR_HANDLE 0xffffffu
#define PVRDMA_UAR_QP_SEND (1u << 30)
#define PVRDMA_UAR_QP_RECV (1u << 31)
#define PVRDMA_UAR_CQ_ARM_SOLICITED (1u << 29)
#define PVRDMA_UAR_CQ_ARM (1u << 30)
#define PVRDMA_UAR_CQ_POLL (1u << 31)
#define PVRDMA_UAR_SRQ_RECV (1u << 30)

/* Page directories: a page of addresses of pages of addresses of pages */
#define PVRDMA_DIR_LEVELS 2
#define PVRDMA_MAX_PAGES (512 * 512)

/* The two indices of a ring, which run from 0 to twice its entries - 1 */
typedef struct PvrdmaRingState {
    uint32_t tail;                  /* the producer's */
    uint32_t head;                  /* the consumer's */
} PvrdmaRingState;

/*
 * The first page of all rings. A CQ, an SRQ, and the rings of the device are
 * at @rx.
 */
typedef struct PvrdmaStatePage {
    PvrdmaRingState tx;
    PvrdmaRingState rx;
} PvrdmaStatePage;

/*
 * The rings of the device, whose elements are in the second page. Drivers
 * derive the number of entries from three pages of elements, which is not a
 * power of two. These are the resulting numbers.
 */
#define PVRDMA_EVENT_RING_SIZE 512
#define PVRDMA_COMPLETION_RING_SIZE 1024

/* An entry of the ring of events; @type is an RdmaEventType */
typedef struct PvrdmaEvent {
    uint32_t type;
    uint32_t info;                  /* handle, or port */
} PvrdmaEvent;

/* Ranges of the shared region */
typedef struct PvrdmaRingDir {
    uint32_t num_pages;
    uint32_t reserved;
    uint64_t dir;
} PvrdmaRingDir;

typedef struct PvrdmaCaps {
    uint64_t fw_ver;
    uint8_t node_guid[8];           /* big-endian, as the next */
    uint8_t sys_image_guid[8];
    uint64_t max_mr_size;
    uint64_t page_size_cap;
    uint64_t atomic_arg_sizes;
    uint32_t ex_comp_mask;
    uint32_t device_cap_flags2;
    uint32_t max_fa_bit_boundary;
    uint32_t log_max_atomic_inline_arg;
    uint32_t vendor_id;
    uint32_t vendor_part_id;
    uint32_t hw_ver;
    uint32_t max_qp;
    uint32_t max_qp_wr;
    uint32_t device_cap_flags;
    uint32_t max_sge;
    uint32_t max_sge_rd;
    uint32_t max_cq;
    uint32_t max_cqe;
    uint32_t max_mr;
    uint32_t max_pd;
    uint32_t max_qp_rd_atom;
    uint32_t max_ee_rd_atom;
    uint32_t max_res_rd_atom;
    uint32_t max_qp_init_rd_atom;
    uint32_t unused[9];             /* EE, RDD, MW, raw, multicast */
    uint32_t max_ah;
    uint32_t max_fmr;
    uint32_t max_map_per_fmr;
    uint32_t max_srq;
    uint32_t max_srq_wr;
    uint32_t max_srq_sge;
    uint32_t max_uar;
    uint32_t gid_tbl_len;
    uint16_t max_pkeys;
    uint8_t local_ca_ack_delay;
    uint8_t phys_port_cnt;
    uint8_t mode;                   /* 0: RoCE */
    uint8_t atomic_ops;             /* PVRDMA_ATOMIC_* */
    uint8_t bmme_flags;             /* PVRDMA_BMME_* */
    uint8_t gid_types;              /* PVRDMA_GID_TYPE_* */
    uint32_t max_fast_reg_page_list_len;
} PvrdmaCaps;

#define PVRDMA_ATOMIC_CAS (1u << 0)
#define PVRDMA_ATOMIC_FAA (1u << 1)
#define PVRDMA_BMME_LOCAL_INV (1u << 0)
#define PVRDMA_BMME_REMOTE_INV (1u << 1)
#define PVRDMA_BMME_FAST_REG (1u << 2)
#define PVRDMA_BMME (PVRDMA_BMME_LOCAL_INV | PVRDMA_BMME_REMOTE_INV | \
                     PVRDMA_BMME_FAST_REG)
#define PVRDMA_GID_TYPE_ROCE_V2 (1u << 1)
#define PVRDMA_MAX_PAGE_LIST 128

/* The shared region, a page: the driver fills in all but @caps */
typedef struct PvrdmaDsr {
    uint32_t driver_version;
    uint32_t reserved;
    uint64_t gos_info;
    uint64_t request;               /* addresses of pages */
    uint64_t response;
    PvrdmaRingDir events;
    PvrdmaRingDir completions;
    uint64_t uar_pfn;
    PvrdmaCaps caps;
} PvrdmaDsr;

/* Commands */
enum {
    PVRDMA_CMD_QUERY_PORT,
    PVRDMA_CMD_QUERY_PKEY,
    PVRDMA_CMD_CREATE_PD,
    PVRDMA_CMD_DESTROY_PD,
    PVRDMA_CMD_CREATE_MR,
    PVRDMA_CMD_DESTROY_MR,
    PVRDMA_CMD_CREATE_CQ,
    PVRDMA_CMD_RESIZE_CQ,
    PVRDMA_CMD_DESTROY_CQ,
    PVRDMA_CMD_CREATE_QP,
    PVRDMA_CMD_MODIFY_QP,
    PVRDMA_CMD_QUERY_QP,
    PVRDMA_CMD_DESTROY_QP,
    PVRDMA_CMD_CREATE_UC,
    PVRDMA_CMD_DESTROY_UC,
    PVRDMA_CMD_CREATE_BIND,
    PVRDMA_CMD_DESTROY_BIND,
    PVRDMA_CMD_CREATE_SRQ,
    PVRDMA_CMD_MODIFY_SRQ,
    PVRDMA_CMD_QUERY_SRQ,
    PVRDMA_CMD_DESTROY_SRQ,
    PVRDMA_NUM_CMDS,
};

#define PVRDMA_CMD_ROOM 184         /* bytes that drivers copy, or read */
#define PVRDMA_RSP_ROOM 176
#define PVRDMA_ACK 0x80000000u      /* | command */

typedef struct PvrdmaCmdHead {
    uint64_t response;              /* comes back in the reply */
    uint32_t cmd;
    uint32_t reserved;
} PvrdmaCmdHead;

typedef struct PvrdmaRspHead {
    uint64_t response;
    uint32_t ack;
    uint8_t err;                    /* of MODIFY_QP only */
    uint8_t reserved[3];
} PvrdmaRspHead;

/* DESTROY_*, QUERY_SRQ, and CREATE_PD, whose handle is that of a context */
typedef struct PvrdmaCmdHandle {
    PvrdmaCmdHead head;
    uint32_t handle;
    uint32_t reserved;
} PvrdmaCmdHandle;

/* CREATE_PD, CREATE_UC, CREATE_SRQ */
typedef struct PvrdmaRspHandle {
    PvrdmaRspHead head;
    uint32_t handle;
    uint32_t reserved;
} PvrdmaRspHandle;

typedef struct PvrdmaCmdQueryPort {
    PvrdmaCmdHead head;
    uint8_t port;
    uint8_t index;                  /* QUERY_PKEY */
    uint8_t reserved[6];
} PvrdmaCmdQueryPort;

typedef struct PvrdmaRspQueryPort {
    PvrdmaRspHead head;
    uint32_t state;                 /* RdmaPortState */
    uint32_t max_mtu;               /* RdmaMtu */
    uint32_t active_mtu;
    uint32_t gid_tbl_len;
    uint32_t cap_flags;
    uint32_t max_msg_sz;
    uint32_t bad_pkey;
    uint32_t qkey_viol;
    uint16_t pkey_tbl_len;
    uint16_t lid;
    uint16_t sm_lid;
    uint8_t lmc;
    uint8_t max_vl;
    uint8_t sm_sl;
    uint8_t subnet_timeout;
    uint8_t init_type;
    uint8_t width;
    uint8_t speed;
    uint8_t phys_state;             /* PVRDMA_PHYS_* */
    uint8_t reserved[2];
} PvrdmaRspQueryPort;

#define PVRDMA_PHYS_DISABLED 3
#define PVRDMA_PHYS_LINK_UP 5

typedef struct PvrdmaRspQueryPkey {
    PvrdmaRspHead head;
    uint16_t pkey;
    uint8_t reserved[6];
} PvrdmaRspQueryPkey;

typedef struct PvrdmaCmdCreateMr {
    PvrdmaCmdHead head;
    uint64_t start;                 /* also the first address in WQEs */
    uint64_t length;
    uint64_t dir;
    uint32_t pd;
    uint32_t access;
    uint32_t flags;                 /* PVRDMA_MR_*; 0: of a process */
    uint32_t nchunks;
} PvrdmaCmdCreateMr;

#define PVRDMA_MR_DMA (1u << 0)
#define PVRDMA_MR_FAST_REG (1u << 1)

typedef struct PvrdmaRspCreateMr {
    PvrdmaRspHead head;
    uint32_t handle;
    uint32_t lkey;
    uint32_t rkey;
    uint32_t reserved;
} PvrdmaRspCreateMr;

typedef struct PvrdmaCmdCreateCq {
    PvrdmaCmdHead head;
    uint64_t dir;
    uint32_t ctx;
    uint32_t cqe;
    uint32_t nchunks;
    uint32_t reserved;
} PvrdmaCmdCreateCq;

typedef struct PvrdmaRspCreateCq {
    PvrdmaRspHead head;
    uint32_t handle;
    uint32_t cqe;
} PvrdmaRspCreateCq;

typedef struct PvrdmaCmdResizeCq {
    PvrdmaCmdHead head;
    uint32_t handle;
    uint32_t cqe;
} PvrdmaCmdResizeCq;

typedef struct PvrdmaRspResizeCq {
    PvrdmaRspHead head;
    uint32_t cqe;
    uint32_t reserved;
} PvrdmaRspResizeCq;

typedef struct PvrdmaCmdCreateQp {
    PvrdmaCmdHead head;
    uint64_t dir;
    uint32_t pd;
    uint32_t send_cq;
    uint32_t recv_cq;
    uint32_t srq;
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;
    uint32_t lkey;
    uint32_t access;
    uint16_t total_chunks;
    uint16_t send_chunks;
    uint16_t max_atomic_arg;
    uint8_t sq_sig_all;
    uint8_t qp_type;                /* RdmaQpType */
    uint8_t is_srq;
    uint8_t reserved[3];
} PvrdmaCmdCreateQp;

/* @handle exists if device and driver have VERSION_HANDLES or later. */
typedef struct PvrdmaRspCreateQp {
    PvrdmaRspHead head;
    uint32_t qpn;
    uint32_t handle;
} PvrdmaRspCreateQp;

typedef struct PvrdmaAh {
    uint8_t dgid[RDMA_GID_LEN];
    uint32_t flow_label;
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t traffic_class;
    uint8_t reserved;
    uint16_t dlid;
    uint16_t vlan;
    uint8_t sl;
    uint8_t src_path_bits;
    uint8_t static_rate;
    uint8_t ah_flags;
    uint8_t port_num;
    uint8_t dmac[RDMA_MAC_LEN];
    uint8_t reserved2;
} PvrdmaAh;

typedef struct PvrdmaQpAttr {
    uint32_t qp_state;
    uint32_t cur_qp_state;
    uint32_t path_mtu;
    uint32_t path_mig_state;
    uint32_t qkey;
    uint32_t rq_psn;
    uint32_t sq_psn;
    uint32_t dest_qp_num;
    uint32_t access;
    uint16_t pkey_index;
    uint16_t alt_pkey_index;
    uint8_t en_sqd_async_notify;
    uint8_t sq_draining;
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t min_rnr_timer;
    uint8_t port_num;
    uint8_t timeout;
    uint8_t retry_cnt;
    uint8_t rnr_retry;
    uint8_t alt_port_num;
    uint8_t alt_timeout;
    uint8_t reserved[5];
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;
    uint32_t reserved2;
    PvrdmaAh ah;
    PvrdmaAh alt_ah;
} PvrdmaQpAttr;

typedef struct PvrdmaCmdModifyQp {
    PvrdmaCmdHead head;
    uint32_t handle;
    uint32_t mask;
    PvrdmaQpAttr attr;              /* not in QUERY_QP */
} PvrdmaCmdModifyQp;

typedef struct PvrdmaRspQueryQp {
    PvrdmaRspHead head;
    PvrdmaQpAttr attr;
} PvrdmaRspQueryQp;

typedef struct PvrdmaCmdCreateUc {
    PvrdmaCmdHead head;
    uint64_t pfn;                   /* 32 bits before VERSION_WIDE_PFN */
} PvrdmaCmdCreateUc;

typedef struct PvrdmaCmdCreateBind {
    PvrdmaCmdHead head;
    uint32_t mtu;
    uint32_t vlan;
    uint32_t index;
    uint8_t gid[RDMA_GID_LEN];
    uint8_t gid_type;               /* PVRDMA_GID_TYPE_* */
    uint8_t reserved[3];
} PvrdmaCmdCreateBind;

typedef struct PvrdmaCmdDestroyBind {
    PvrdmaCmdHead head;
    uint32_t index;
    uint8_t gid[RDMA_GID_LEN];
    uint32_t reserved;
} PvrdmaCmdDestroyBind;

typedef struct PvrdmaCmdCreateSrq {
    PvrdmaCmdHead head;
    uint64_t dir;
    uint32_t pd;
    uint32_t nchunks;
    uint32_t max_wr;
    uint32_t max_sge;
    uint32_t limit;
    uint32_t reserved;
    uint8_t srq_type;
    uint8_t reserved2[7];
} PvrdmaCmdCreateSrq;

typedef struct PvrdmaCmdModifySrq {
    PvrdmaCmdHead head;
    uint32_t handle;
    uint32_t mask;                  /* PVRDMA_SRQ_LIMIT */
    uint32_t max_wr;
    uint32_t max_sge;
    uint32_t limit;
    uint32_t reserved;
} PvrdmaCmdModifySrq;

#define PVRDMA_SRQ_LIMIT (1u << 1)

typedef struct PvrdmaRspQuerySrq {
    PvrdmaRspHead head;
    uint32_t max_wr;
    uint32_t max_sge;
    uint32_t limit;
    uint32_t reserved;
} PvrdmaRspQuerySrq;

/* Elements of rings */
typedef struct PvrdmaSge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
} PvrdmaSge;

typedef struct PvrdmaRecvWqe {
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t reserved;
    PvrdmaSge sge[];
} PvrdmaRecvWqe;

typedef struct PvrdmaAv {
    uint32_t port_pd;               /* port << 24 | PD */
    uint32_t tclass_flow;           /* traffic class << 20 | flow label */
    uint8_t dgid[RDMA_GID_LEN];
    uint8_t src_path_bits;
    uint8_t gid_index;
    uint8_t static_rate;
    uint8_t hop_limit;
    uint8_t dmac[RDMA_MAC_LEN];
    uint8_t reserved[6];
} PvrdmaAv;

typedef struct PvrdmaSendWqe {
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t reserved;
    uint32_t opcode;                /* PVRDMA_WR_* */
    uint32_t send_flags;            /* RDMA_SEND_* */
    union {
        uint8_t imm_data[4];
        uint32_t invalidate_rkey;
    } ex;
    uint32_t reserved2;
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
            uint32_t reserved;
        } rdma;
        struct {
            uint64_t remote_addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
            uint32_t reserved;
        } atomic;
        struct {
            uint64_t iova;
            uint64_t dir;
            uint32_t page_shift;
            uint32_t npages;
            uint32_t length;
            uint32_t access;
            uint32_t key;
            uint32_t reserved;
        } fast_reg;
        struct {
            uint32_t remote_qpn;
            uint32_t remote_qkey;
            PvrdmaAv av;
        } ud;
    } wr;
    PvrdmaSge sge[];
} PvrdmaSendWqe;

/* Values that differ from RdmaWrOpcode; in WQEs of the kernel only */
enum {
    PVRDMA_WR_SEND_WITH_INV = 8,
    PVRDMA_WR_LOCAL_INV = 10,
    PVRDMA_WR_FAST_REG = 11,
};

typedef struct PvrdmaCqe {
    uint64_t wr_id;
    uint64_t qp;                    /* handle */
    uint32_t opcode;
    uint32_t status;                /* RdmaWcStatus */
    uint32_t byte_len;
    union {
        uint8_t imm_data[4];
        uint32_t invalidate_rkey;
    } ex;
    uint32_t src_qp;
    uint32_t wc_flags;
    uint32_t vendor_err;
    uint16_t pkey_index;
    uint16_t slid;
    uint8_t sl;
    uint8_t path_bits;
    uint8_t port_num;
    uint8_t smac[RDMA_MAC_LEN];
    uint8_t hdr_type;               /* PVRDMA_HDR_* */
    uint8_t reserved[6];
} PvrdmaCqe;

/* Values that differ from RdmaWcOpcode and RdmaHdrType */
enum {
    PVRDMA_WC_LOCAL_INV = 7,
    PVRDMA_HDR_IPV4 = 1,
    PVRDMA_HDR_IPV6 = 2,
};

#endif
