/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The types of verbs that the device, the backends and the engine share.
 *
 * They are plain structures in host byte order. Enums have the values of the
 * virtio-rdma guest ABI, which are those of Linux except some RDMA_WC_ opcodes.
 * GIDs, MAC addresses and immediate data are bytes in network order, which are
 * copied and never swapped. Nothing here depends on QEMU, and the functions may
 * run in any thread.
 *
 * Sources: IBTA Architecture Specification Vol 1 Release 1.4, chapters 9
 * (transport), 10 (software interface) and 11 (verbs); Annex A17 (RoCEv2),
 * Annex A19 (memory placement extensions).
 */
#ifndef RDMA_VERBS_H
#define RDMA_VERBS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes */
#define RDMA_GID_LEN 16
#define RDMA_MAC_LEN 6

/* The smallest page of a page list, as a power of 2 and in bytes */
#define RDMA_PAGE_SHIFT 12
#define RDMA_PAGE_SIZE  (1u << RDMA_PAGE_SHIFT)

/* The only port of a device. */
#define RDMA_PORT_NUM 1

/* The only partition key of the port: the default one, of a full member. */
#define RDMA_DEFAULT_PKEY 0xffff

/* A PSN, a QPN and an MSN have 24 bits (IBTA 9.2). */
#define RDMA_24BIT_MASK 0xffffffu

/* A flow label has 20 bits (RFC 8200, 3; IBTA 8.3.3). */
#define RDMA_FLOW_LABEL_MASK 0xfffffu

/*
 * The largest ACK timeout and RNR timer codes (5 bits) and retry counts (3
 * bits) of a QP (IBTA 9.7.5.2.8, 11.2.5.2)
 */
#define RDMA_MAX_TIMEOUT    31
#define RDMA_RNR_TIMER_MASK 0x1fu
#define RDMA_MAX_RETRIES    7

/* QPN 0 is the SMI, QPN 1 the GSI (IBTA 3.5.4); 0xffffff is multicast. */
#define RDMA_QPN_SMI   0u
#define RDMA_QPN_GSI   1u
#define RDMA_QPN_MCAST 0xffffffu

/* The well-known Q_Key of the GSI (IBTA 3.5.3). */
#define RDMA_GSI_QKEY 0x80010000u

/*
 * If the Q_Key of a WR has this bit, the QP's own Q_Key is sent instead (IBTA
 * 10.2.5, controlled Q_Keys).
 */
#define RDMA_QKEY_CONTROLLED 0x80000000u

typedef enum RdmaMtu {
    RDMA_MTU_256 = 1,
    RDMA_MTU_512 = 2,
    RDMA_MTU_1024 = 3,
    RDMA_MTU_2048 = 4,
    RDMA_MTU_4096 = 5,
} RdmaMtu;

/* The size of @mtu, a valid RdmaMtu, in bytes of payload */
static inline uint32_t rdma_mtu_bytes(uint8_t mtu)
{
    return 128u << mtu;
}

typedef enum RdmaPortState {
    RDMA_PORT_DOWN = 1,
    RDMA_PORT_ACTIVE = 4,
} RdmaPortState;

typedef enum RdmaQpType {
    RDMA_QPT_SMI = 0,
    RDMA_QPT_GSI = 1,
    RDMA_QPT_RC = 2,
    RDMA_QPT_UC = 3,
    RDMA_QPT_UD = 4,
} RdmaQpType;

/* Does each send of a QP of this type name its peer? Others are connected. */
static inline bool rdma_qp_is_datagram(RdmaQpType type)
{
    return type == RDMA_QPT_UD || type == RDMA_QPT_GSI;
}

/* The types of objects, with the number that names one */
typedef enum RdmaObjectType {
    RDMA_OBJECT_GID,                /* index in the table */
    RDMA_OBJECT_PD,                 /* pdn */
    RDMA_OBJECT_CQ,                 /* cqn */
    RDMA_OBJECT_MR,                 /* mrn; for inspection also an mwn */
    RDMA_OBJECT_MW,                 /* mwn */
    RDMA_OBJECT_SRQ,                /* srqn */
    RDMA_OBJECT_QP,                 /* qpn */
} RdmaObjectType;

/* Work queues. The QPN names the two of a QP, the srqn names an SRQ. */
typedef enum RdmaQueue {
    RDMA_SQ,
    RDMA_RQ,
    RDMA_SRQ,
} RdmaQueue;

typedef enum RdmaQpState {
    RDMA_QPS_RESET = 0,
    RDMA_QPS_INIT = 1,
    RDMA_QPS_RTR = 2,
    RDMA_QPS_RTS = 3,
    RDMA_QPS_SQD = 4,
    RDMA_QPS_SQE = 5,
    RDMA_QPS_ERR = 6,
} RdmaQpState;

/* The name of @state, a valid RdmaQpState, in IBTA; a constant */
static inline const char *rdma_qp_state_name(uint8_t state)
{
    static const char *const names[] = {
        [RDMA_QPS_RESET] = "RESET",
        [RDMA_QPS_INIT] = "INIT",
        [RDMA_QPS_RTR] = "RTR",
        [RDMA_QPS_RTS] = "RTS",
        [RDMA_QPS_SQD] = "SQD",
        [RDMA_QPS_SQE] = "SQE",
        [RDMA_QPS_ERR] = "ERR",
    };

    return names[state];
}

/* Path migration states (IBTA 17.2.8); only MIGRATED is supported. */
#define RDMA_MIG_MIGRATED 0

/* Access flags of MRs and QPs (IBTA 10.6.3). */
enum {
    RDMA_ACCESS_LOCAL_WRITE = 1u << 0,
    RDMA_ACCESS_REMOTE_WRITE = 1u << 1,
    RDMA_ACCESS_REMOTE_READ = 1u << 2,
    RDMA_ACCESS_REMOTE_ATOMIC = 1u << 3,
    RDMA_ACCESS_MW_BIND = 1u << 4,
    RDMA_ACCESS_ZERO_BASED = 1u << 5,
    RDMA_ACCESS_ON_DEMAND = 1u << 6,
    RDMA_ACCESS_HUGETLB = 1u << 7,
    RDMA_ACCESS_FLUSH_GLOBAL = 1u << 8,
    RDMA_ACCESS_FLUSH_PERSISTENT = 1u << 9,
    RDMA_ACCESS_RELAXED_ORDERING = 1u << 20,
};

#define RDMA_ACCESS_REMOTE (RDMA_ACCESS_REMOTE_WRITE | \
                            RDMA_ACCESS_REMOTE_READ | \
                            RDMA_ACCESS_REMOTE_ATOMIC)
/* Access flags of a region that are accepted and have no effect */
#define RDMA_ACCESS_HINTS (RDMA_ACCESS_ZERO_BASED | RDMA_ACCESS_HUGETLB | \
                           RDMA_ACCESS_RELAXED_ORDERING)
/* Access flags that let a peer flush, but neither read nor write (IBTA A19) */
#define RDMA_ACCESS_FLUSH (RDMA_ACCESS_FLUSH_GLOBAL | \
                           RDMA_ACCESS_FLUSH_PERSISTENT)

/* Send WR opcodes (IBTA 11.4.1.1). */
typedef enum RdmaWrOpcode {
    RDMA_WR_RDMA_WRITE = 0,
    RDMA_WR_RDMA_WRITE_WITH_IMM = 1,
    RDMA_WR_SEND = 2,
    RDMA_WR_SEND_WITH_IMM = 3,
    RDMA_WR_RDMA_READ = 4,
    RDMA_WR_ATOMIC_CMP_AND_SWP = 5,
    RDMA_WR_ATOMIC_FETCH_AND_ADD = 6,
    RDMA_WR_LOCAL_INV = 7,
    RDMA_WR_BIND_MW = 8,
    RDMA_WR_SEND_WITH_INV = 9,
    RDMA_WR_RDMA_READ_WITH_INV = 11,
    RDMA_WR_FLUSH = 14,
    RDMA_WR_ATOMIC_WRITE = 15,
    RDMA_WR_REG_MR = 0x20,
} RdmaWrOpcode;

/* Flags of send WRs (IBTA 11.4.1.1). */
enum {
    RDMA_SEND_FENCE = 1u << 0,
    RDMA_SEND_SIGNALED = 1u << 1,
    RDMA_SEND_SOLICITED = 1u << 2,
    RDMA_SEND_INLINE = 1u << 3,
    RDMA_SEND_IP_CSUM = 1u << 4,
};

/* All flags of send WRs */
#define RDMA_SEND_FLAGS (RDMA_SEND_FENCE | RDMA_SEND_SIGNALED | \
                         RDMA_SEND_SOLICITED | RDMA_SEND_INLINE | \
                         RDMA_SEND_IP_CSUM)

/* The placement types of a FLUSH, one or both (IBTA A19) */
enum {
    RDMA_FLUSH_GLOBAL = 1u << 0,    /* visible to all */
    RDMA_FLUSH_PERSISTENT = 1u << 1,
};

/* The selectivity levels of a FLUSH (IBTA A19): which memory it flushes */
enum {
    RDMA_FLUSH_RANGE = 0,           /* the address range of the request */
    RDMA_FLUSH_MR = 1,              /* the whole region */
};

/*
 * Optional operations, which the driver negotiates with the device. A backend
 * neither sends nor accepts one until the device enables it.
 */
enum {
    RDMA_EXT_FLUSH = 1u << 0,
    RDMA_EXT_ATOMIC_WRITE = 1u << 1,
};

/* Completion opcodes. */
typedef enum RdmaWcOpcode {
    RDMA_WC_SEND = 0,
    RDMA_WC_RDMA_WRITE = 1,
    RDMA_WC_RDMA_READ = 2,
    RDMA_WC_COMP_SWAP = 3,
    RDMA_WC_FETCH_ADD = 4,
    RDMA_WC_BIND_MW = 5,
    RDMA_WC_LOCAL_INV = 6,
    RDMA_WC_REG_MR = 8,
    RDMA_WC_FLUSH = 14,
    RDMA_WC_ATOMIC_WRITE = 15,
    RDMA_WC_RECV = 128,
    RDMA_WC_RECV_RDMA_WITH_IMM = 129,
} RdmaWcOpcode;

/* Completion status (IBTA 11.6.2). */
typedef enum RdmaWcStatus {
    RDMA_WC_SUCCESS = 0,
    RDMA_WC_LOC_LEN_ERR = 1,
    RDMA_WC_LOC_QP_OP_ERR = 2,
    RDMA_WC_LOC_EEC_OP_ERR = 3,
    RDMA_WC_LOC_PROT_ERR = 4,
    RDMA_WC_WR_FLUSH_ERR = 5,
    RDMA_WC_MW_BIND_ERR = 6,
    RDMA_WC_BAD_RESP_ERR = 7,
    RDMA_WC_LOC_ACCESS_ERR = 8,
    RDMA_WC_REM_INV_REQ_ERR = 9,
    RDMA_WC_REM_ACCESS_ERR = 10,
    RDMA_WC_REM_OP_ERR = 11,
    RDMA_WC_RETRY_EXC_ERR = 12,
    RDMA_WC_RNR_RETRY_EXC_ERR = 13,
    RDMA_WC_LOC_RDD_VIOL_ERR = 14,
    RDMA_WC_REM_INV_RD_REQ_ERR = 15,
    RDMA_WC_REM_ABORT_ERR = 16,
    RDMA_WC_INV_EECN_ERR = 17,
    RDMA_WC_INV_EEC_STATE_ERR = 18,
    RDMA_WC_FATAL_ERR = 19,
    RDMA_WC_RESP_TIMEOUT_ERR = 20,
    RDMA_WC_GENERAL_ERR = 21,
} RdmaWcStatus;

enum {
    RDMA_WC_GRH = 1u << 0,
    RDMA_WC_WITH_IMM = 1u << 1,
    RDMA_WC_WITH_INVALIDATE = 1u << 2,
    RDMA_WC_WITH_SMAC = 1u << 4,
    RDMA_WC_WITH_VLAN = 1u << 5,
    RDMA_WC_WITH_HDR_TYPE = 1u << 6,
};

/* Attribute mask of modify and query QP (IBTA 11.2.5.2). */
enum {
    RDMA_QP_STATE = 1u << 0,
    RDMA_QP_CUR_STATE = 1u << 1,
    RDMA_QP_EN_SQD_ASYNC_NOTIFY = 1u << 2,
    RDMA_QP_ACCESS_FLAGS = 1u << 3,
    RDMA_QP_PKEY_INDEX = 1u << 4,
    RDMA_QP_PORT = 1u << 5,
    RDMA_QP_QKEY = 1u << 6,
    RDMA_QP_AV = 1u << 7,
    RDMA_QP_PATH_MTU = 1u << 8,
    RDMA_QP_TIMEOUT = 1u << 9,
    RDMA_QP_RETRY_CNT = 1u << 10,
    RDMA_QP_RNR_RETRY = 1u << 11,
    RDMA_QP_RQ_PSN = 1u << 12,
    RDMA_QP_MAX_QP_RD_ATOMIC = 1u << 13,
    RDMA_QP_ALT_PATH = 1u << 14,
    RDMA_QP_MIN_RNR_TIMER = 1u << 15,
    RDMA_QP_SQ_PSN = 1u << 16,
    RDMA_QP_MAX_DEST_RD_ATOMIC = 1u << 17,
    RDMA_QP_PATH_MIG_STATE = 1u << 18,
    RDMA_QP_CAP = 1u << 19,
    RDMA_QP_DEST_QPN = 1u << 20,
    RDMA_QP_RATE_LIMIT = 1u << 25,
};

/* Asynchronous events (IBTA 11.6.3), with libibverbs' numbers. */
typedef enum RdmaEventType {
    RDMA_EVENT_CQ_ERR = 0,
    RDMA_EVENT_QP_FATAL = 1,
    RDMA_EVENT_QP_REQ_ERR = 2,
    RDMA_EVENT_QP_ACCESS_ERR = 3,
    RDMA_EVENT_COMM_EST = 4,
    RDMA_EVENT_SQ_DRAINED = 5,
    RDMA_EVENT_PORT_ACTIVE = 9,
    RDMA_EVENT_PORT_ERR = 10,
    RDMA_EVENT_SRQ_ERR = 14,
    RDMA_EVENT_SRQ_LIMIT_REACHED = 15,
    RDMA_EVENT_LAST_WQE_REACHED = 16,
    RDMA_EVENT_GID_CHANGE = 18,
} RdmaEventType;

/*
 * An asynchronous event. The type decides whether @id is a qpn, cqn, srqn or
 * port number.
 */
typedef struct RdmaEvent {
    RdmaEventType type;
    uint32_t id;
} RdmaEvent;

/*
 * A local scatter/gather element: @length bytes at address @addr of the region
 * that @lkey names
 */
typedef struct RdmaSge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
} RdmaSge;

/*
 * The address vector of a path (IBTA 11.2.2.1; RoCEv2: Annex A17.4).
 * @sgid_index names an entry of the local GID table. @flow_label has 20 bits.
 * @static_rate is a code of IBTA 15.2.5.16; 0 means no limit.
 */
typedef struct RdmaAv {
    uint8_t dgid[RDMA_GID_LEN];
    uint8_t dmac[RDMA_MAC_LEN];
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t traffic_class;
    uint8_t sl;
    uint8_t static_rate;
    uint8_t port_num;
    uint8_t ah_flags;
    uint32_t flow_label;
} RdmaAv;

/*
 * A send work request. The SGE list and the inline data belong to the consumer;
 * the backend copies them when it takes the request.
 *
 * A @status other than RDMA_WC_SUCCESS means that the consumer could not decode
 * the WQE. The request keeps its place in the queue and completes in order with
 * that status.
 */
typedef struct RdmaSendWr {
    uint64_t wr_id;
    RdmaWcStatus status;
    uint32_t cost;                  /* extra work of the consumer, in */
                                    /* the unit of rdma/work.h */
    uint32_t opcode;                /* RdmaWrOpcode, checked by the backend */
    uint32_t send_flags;            /* RDMA_SEND_*, checked by the backend */
    uint32_t num_sge;
    const RdmaSge *sg_list;
    const uint8_t *inline_data;     /* with RDMA_SEND_INLINE, else NULL */
    uint32_t inline_len;            /* bytes */
    union {
        uint8_t imm_data[4];        /* network order, opaque */
        uint32_t invalidate_rkey;
    } ex;
    union {
        /*
         * WRITE, READ and ATOMIC_WRITE. An ATOMIC_WRITE has 8 bytes, which may
         * be inline whatever max_inline_data of the QP is.
         */
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
        struct {
            uint64_t remote_addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
        } atomic;
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
            uint32_t length;        /* bytes; RDMA_FLUSH_RANGE */
            uint32_t type;          /* RDMA_FLUSH_GLOBAL, _PERSISTENT */
            uint32_t level;         /* RDMA_FLUSH_RANGE or _MR */
        } flush;
        /* On UD and GSI this is the valid member, whatever the opcode is. */
        struct {
            uint32_t remote_qpn;
            uint32_t remote_qkey;
            RdmaAv av;
        } ud;
        /*
         * REG_MR. If @npages is not 0, the WR carries the mapping; otherwise
         * it commits the one of MAP_MR_SG (roce_mr_map()). @pages is
         * g_malloc()ed. If @status is RDMA_WC_SUCCESS, the backend takes it
         * over with the WR. The consumer has checked the mapping as RdmaMrAttr
         * demands, with pages of 4096 bytes.
         */
        struct {
            uint32_t mrn;
            uint32_t key;           /* the new lkey, and rkey if remote */
            uint32_t access;
            uint32_t npages;
            uint64_t iova;
            uint64_t length;        /* bytes */
            uint64_t *pages;        /* DMA addresses */
        } reg;
        /*
         * BIND_MW. @rkey names the window: type 1 by its current rkey, type 2
         * by the upper 24 bits. A @length of 0 unbinds a window of type 1.
         */
        struct {
            uint32_t rkey;
            uint32_t new_rkey;
            uint32_t lkey;          /* of the region */
            uint32_t access;
            uint64_t addr;          /* in the region */
            uint64_t length;        /* bytes */
        } bind;
    } wr;
} RdmaSendWr;

/* A receive work request. @status and ownership are as in RdmaSendWr. */
typedef struct RdmaRecvWr {
    uint64_t wr_id;
    RdmaWcStatus status;
    uint32_t cost;                  /* as in RdmaSendWr */
    uint32_t num_sge;
    const RdmaSge *sg_list;
} RdmaRecvWr;

/* The network header of a datagram, with the numbers of Linux */
typedef enum RdmaHdrType {
    RDMA_HDR_IPV4 = 2,
    RDMA_HDR_IPV6 = 3,
} RdmaHdrType;

/* A work completion (IBTA 11.4.2.1). */
typedef struct RdmaWc {
    uint64_t wr_id;
    RdmaWcStatus status;
    RdmaWcOpcode opcode;
    uint32_t vendor_err;
    uint32_t byte_len;              /* bytes of the message */
    union {
        uint8_t imm_data[4];        /* network order, opaque */
        uint32_t invalidate_rkey;
    } ex;
    uint32_t qp_num;                /* the qpn, even if wire_qpn differs */
    uint32_t src_qp;                /* the peer's number on the wire */
    uint32_t wc_flags;              /* RDMA_WC_GRH and so on */
    uint16_t pkey_index;
    uint8_t sl;
    uint8_t port_num;
    /* Of a received datagram; @wc_flags tell which fields are valid. */
    uint8_t smac[RDMA_MAC_LEN];
    uint16_t vlan;
    uint8_t hdr_type;               /* RdmaHdrType */
} RdmaWc;

typedef struct RdmaQpCap {
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;       /* bytes */
} RdmaQpCap;

/* The attributes that a QP is created with (IBTA 11.2.5.1) */
typedef struct RdmaQpInitAttr {
    uint32_t qpn;
    /*
     * The QPN that peers see. It is @qpn unless the backend chooses another
     * one (RdmaBackendLimits.host_numbers). The engine ignores it.
     */
    uint32_t wire_qpn;
    uint32_t pdn;
    RdmaQpType qp_type;
    bool sq_sig_all;
    uint32_t send_cqn;
    uint32_t recv_cqn;
    RdmaQpCap cap;
    bool has_srq;                   /* then cap.max_recv_* count as 0 */
    uint32_t srqn;                  /* only if @has_srq */
    bool block_mcast_loopback;      /* no copies of its own multicasts */
} RdmaQpInitAttr;

/* A shared receive queue (IBTA 10.2.9). */
typedef struct RdmaSrqAttr {
    uint32_t srqn;
    uint32_t pdn;
    uint32_t max_wr;
    uint32_t max_sge;
    /*
     * If the SRQ has fewer WQEs than this, the event SRQ_LIMIT_REACHED is
     * raised and the limit becomes 0, which means not armed (IBTA 10.2.9.1).
     */
    uint32_t limit;
} RdmaSrqAttr;

/* The attributes of a QP. A mask of RDMA_QP_* tells which fields are valid. */
typedef struct RdmaQpAttr {
    uint8_t qp_state;
    uint8_t cur_qp_state;
    uint8_t path_mtu;               /* RdmaMtu */
    uint8_t path_mig_state;
    uint32_t qkey;
    uint32_t rq_psn;
    uint32_t sq_psn;
    uint32_t dest_qp_num;
    uint32_t qp_access_flags;
    uint16_t pkey_index;
    uint16_t alt_pkey_index;
    uint8_t en_sqd_async_notify;
    uint8_t sq_draining;
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t min_rnr_timer;          /* code of IBTA table 45 */
    uint8_t port_num;
    uint8_t timeout;                /* 4.096 us * 2^timeout; 0: no timeout */
    uint8_t retry_cnt;              /* 0..7 */
    uint8_t rnr_retry;              /* 0..7; 7: no limit */
    uint8_t alt_port_num;
    uint8_t alt_timeout;
    uint32_t rate_limit;            /* kb/s; 0: no limit */
    RdmaQpCap cap;
    RdmaAv ah_attr;
    RdmaAv alt_ah_attr;
} RdmaQpAttr;

typedef enum RdmaMrType {
    RDMA_MR_DMA,                    /* the device's whole address space */
    RDMA_MR_USER,                   /* a page list, valid once created */
    RDMA_MR_FAST_REG,               /* valid after MAP_MR_SG and REG_MR */
} RdmaMrType;

/*
 * The description of a memory region.
 *
 * @lkey and @rkey carry the mrn in their upper 24 bits, unless the backend
 * chooses them (RdmaBackendLimits.host_numbers). @rkey is 0 if the region
 * grants no remote access.
 *
 * @pages are DMA addresses of pages of 2^@page_shift bytes. The first byte of
 * the region lies in the first page, at offset @iova modulo the page size. The
 * creator of this structure has checked that @npages pages cover @length bytes
 * from there exactly, and that @iova + @length does not wrap.
 */
typedef struct RdmaMrAttr {
    uint32_t mrn;
    uint32_t pdn;
    RdmaMrType type;
    uint32_t access;
    uint32_t lkey;
    uint32_t rkey;
    uint64_t iova;
    uint64_t length;                /* bytes */
    uint32_t npages;
    uint64_t *pages;                /* NULL for DMA and unmapped MRs */
    uint32_t max_pages;             /* RDMA_MR_FAST_REG: of a mapping */
    uint8_t page_shift;             /* of @pages; 0: RDMA_PAGE_SHIFT */
} RdmaMrAttr;

/* The parts of a region that reregistration changes (IBTA 11.2.8.7) */
enum {
    RDMA_REREG_TRANSLATION = 1u << 0,
    RDMA_REREG_PD = 1u << 1,
    RDMA_REREG_ACCESS = 1u << 2,
};

/* All parts */
#define RDMA_REREG_FLAGS (RDMA_REREG_TRANSLATION | RDMA_REREG_PD | \
                          RDMA_REREG_ACCESS)

/* The opcode of the completion of a send WR with @opcode, an RdmaWrOpcode */
static inline RdmaWcOpcode rdma_wc_opcode(uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_RDMA_WRITE:
    case RDMA_WR_RDMA_WRITE_WITH_IMM:
        return RDMA_WC_RDMA_WRITE;
    case RDMA_WR_RDMA_READ:
    case RDMA_WR_RDMA_READ_WITH_INV:
        return RDMA_WC_RDMA_READ;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
        return RDMA_WC_COMP_SWAP;
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        return RDMA_WC_FETCH_ADD;
    case RDMA_WR_FLUSH:
        return RDMA_WC_FLUSH;
    case RDMA_WR_ATOMIC_WRITE:
        return RDMA_WC_ATOMIC_WRITE;
    case RDMA_WR_LOCAL_INV:
        return RDMA_WC_LOCAL_INV;
    case RDMA_WR_REG_MR:
        return RDMA_WC_REG_MR;
    case RDMA_WR_BIND_MW:
        return RDMA_WC_BIND_MW;
    default:
        return RDMA_WC_SEND;
    }
}

/* Is @gid an IPv4 address, mapped as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2)? */
static inline bool rdma_gid_is_ipv4(const uint8_t gid[RDMA_GID_LEN])
{
    static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(gid, prefix, sizeof(prefix)) == 0;
}

/* Is @gid a multicast address of IPv4 (RFC 1112, 4) or IPv6? */
static inline bool rdma_gid_is_multicast(const uint8_t gid[RDMA_GID_LEN])
{
    return rdma_gid_is_ipv4(gid) ? gid[12] >> 4 == 0xe : gid[0] == 0xff;
}

/* Types of memory windows (IBTA 10.6.7). Type 2 is 2B: bound to QP and PD. */
typedef enum RdmaMwType {
    RDMA_MW_TYPE_1 = 1,
    RDMA_MW_TYPE_2 = 2,
} RdmaMwType;

/*
 * The description of a memory window. @mwn is a number of the MR table. @rkey
 * carries it as the rkey of an MR does.
 */
typedef struct RdmaMwAttr {
    uint32_t mwn;
    uint32_t pdn;
    RdmaMwType type;
    uint32_t rkey;
} RdmaMwAttr;

/*
 * The VLAN of a GID that belongs to no VLAN, and the highest VLAN (IEEE 802.1Q,
 * 9.6)
 */
#define RDMA_NO_VLAN  0
#define RDMA_MAX_VLAN 4094

/* The scope in which operations of peers are atomic (IBTA 11.2.1.2) */
typedef enum RdmaAtomicCap {
    RDMA_ATOMIC_NONE = 0,
    RDMA_ATOMIC_HCA = 1,            /* operations of the same adapter */
    RDMA_ATOMIC_GLOB = 2,           /* also CPUs and other devices */
} RdmaAtomicCap;

/* Attributes of a port (IBTA 11.2.1.3). */
typedef struct RdmaPortAttr {
    RdmaPortState state;
    RdmaMtu max_mtu;
    RdmaMtu active_mtu;
    uint32_t phys_mtu;              /* bytes of the link's own MTU */
    uint32_t max_msg_sz;            /* bytes */
    uint8_t active_width;           /* ib_port_width */
    uint16_t active_speed;          /* ib_port_speed */
    uint8_t mac[RDMA_MAC_LEN];
} RdmaPortAttr;

#endif /* RDMA_VERBS_H */
