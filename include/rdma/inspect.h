/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reports of a backend about an object, for people who inspect it on the host
 * (query-rdma). Nothing here depends on QEMU.
 *
 * All structures are values in host byte order. Reading them changes nothing.
 */
#ifndef RDMA_INSPECT_H
#define RDMA_INSPECT_H

#include "rdma/verbs.h"

/*
 * Counters of one QP since it was created; RESET does not clear them. Frames
 * are Ethernet frames without FCS. Received multicast copies are not counted,
 * since one frame may give copies to many QPs.
 */
typedef struct RdmaQpStats {
    uint64_t tx_frames;             /* sent to the wire */
    uint64_t tx_bytes;              /* of these frames */
    uint64_t rx_frames;             /* received from the wire */
    uint64_t rx_bytes;              /* of these frames */
    uint64_t loopback_frames;       /* sent to QPs of the same device */
    uint64_t retransmits;           /* times the requester went back */
    uint64_t timeouts;              /* of the local ACK timer */
    uint64_t rnr_naks_sent;
    uint64_t rnr_naks_received;
    uint64_t naks_sent;             /* without RNR NAKs */
    uint64_t naks_received;         /* without RNR NAKs */
    uint64_t rx_duplicates;
    uint64_t rx_out_of_sequence;
    uint64_t bad_qkey;
    /*
     * Times that an ACK timer or the wait for credits ran out while the answer
     * had arrived and was still unread. These are not timeouts; see
     * roce_expire().
     */
    uint64_t timeouts_late;
} RdmaQpStats;

typedef struct RdmaQpInspection {
    /*
     * The attributes in @attr that the backend knows, as bits of RDMA_QP_*.
     * RDMA_QP_STATE is always set.
     */
    uint32_t known;
    RdmaQpAttr attr;
    /* Work requests that the backend holds and that have not completed */
    uint32_t sends;
    uint32_t recvs;
    /*
     * The state of the requester; valid only if @has_progress. @una_psn is the
     * oldest unacknowledged PSN, @next_psn the next one to send. @retries and
     * @rnr_retries are the ones left.
     */
    bool has_progress;
    uint32_t una_psn;
    uint32_t next_psn;
    uint8_t retries;
    uint8_t rnr_retries;
    bool has_stats;
    RdmaQpStats stats;              /* only if @has_stats */
} RdmaQpInspection;

typedef struct RdmaSrqInspection {
    uint32_t recvs;                 /* WRs that the backend holds */
    bool has_limit;
    uint32_t limit;                 /* WRs; 0: not armed */
} RdmaSrqInspection;

/* A region as it is mapped, or a window as it is bound */
typedef struct RdmaMrInspection {
    uint32_t lkey;                  /* 0: a window */
    uint32_t rkey;                  /* 0: peers have no access */
    bool valid;                     /* if false, the fields below are 0 */
    uint32_t access;                /* RDMA_ACCESS_* */
    uint64_t iova;                  /* first address that peers name */
    uint64_t length;                /* bytes */
} RdmaMrInspection;

typedef struct RdmaGidInspection {
    uint8_t gid[RDMA_GID_LEN];      /* network byte order */
    uint16_t vlan;                  /* 1..RDMA_MAX_VLAN, or RDMA_NO_VLAN */
} RdmaGidInspection;

/* Which member is valid depends on the RdmaObjectType of the request. */
typedef struct RdmaInspection {
    union {
        RdmaQpInspection qp;
        RdmaSrqInspection srq;
        RdmaMrInspection mr;        /* of a window, too */
        RdmaGidInspection gid;
    };
} RdmaInspection;

#endif /* RDMA_INSPECT_H */
