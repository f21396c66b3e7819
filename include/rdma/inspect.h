/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a backend knows of an object, for people on the host who look at it.
 * Nothing here depends on QEMU.
 */
#ifndef RDMA_INSPECT_H
#define RDMA_INSPECT_H

#include "rdma/verbs.h"

/*
 * What a QP has done and met since it was made, in packets, bytes of frames or
 * events. Copies of multicasts that it got are not among what it received: one
 * frame may have many.
 */
typedef struct RdmaQpStats {
    uint64_t tx_frames;
    uint64_t tx_bytes;
    uint64_t rx_frames;
    uint64_t rx_bytes;
    uint64_t loopback_frames;       /* that it sent to its own device */
    uint64_t retransmits;           /* how often it went back to send again */
    uint64_t timeouts;
    uint64_t rnr_naks_sent;
    uint64_t rnr_naks_received;
    uint64_t naks_sent;
    uint64_t naks_received;
    uint64_t rx_duplicates;
    uint64_t rx_out_of_sequence;
    uint64_t bad_qkey;
    uint64_t timeouts_late;         /* avoided: the answer was there, unread */
} RdmaQpStats;

typedef struct RdmaQpInspection {
    /*
     * What is known of the attributes: @known are bits of RDMA_QP_*, and those
     * of RDMA_QP_STATE are always set.
     */
    uint32_t known;
    RdmaQpAttr attr;
    /* Work requests that the backend has and that have not completed */
    uint32_t sends;
    uint32_t recvs;
    /*
     * How far the requester is; only if @has_progress. PSNs: the oldest that
     * is not acknowledged, and the one that is sent next. Of the retries what
     * is left.
     */
    bool has_progress;
    uint32_t una_psn;
    uint32_t next_psn;
    uint8_t retries;
    uint8_t rnr_retries;
    bool has_stats;
    RdmaQpStats stats;
} RdmaQpInspection;

typedef struct RdmaSrqInspection {
    uint32_t recvs;                 /* as those of a QP */
    bool has_limit;
    uint32_t limit;                 /* 0: not armed */
} RdmaSrqInspection;

/* Of a region as it is mapped, or of a window as it is bound */
typedef struct RdmaMrInspection {
    uint32_t lkey;                  /* 0: a window */
    uint32_t rkey;                  /* 0: peers have no access */
    bool valid;                     /* else the fields below are 0 */
    uint32_t access;
    uint64_t iova;
    uint64_t length;                /* bytes */
} RdmaMrInspection;

typedef struct RdmaGidInspection {
    uint8_t gid[RDMA_GID_LEN];
    uint16_t vlan;
} RdmaGidInspection;

typedef struct RdmaInspection {
    union {
        RdmaQpInspection qp;
        RdmaSrqInspection srq;
        RdmaMrInspection mr;
        RdmaGidInspection gid;
    };
} RdmaInspection;

#endif /* RDMA_INSPECT_H */
