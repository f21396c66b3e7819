/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of a device, which some of its queue pairs have as well.
 *
 * They count since the last reset of the device. Their order is the order of
 * the guest ABI: new counters come at the end. A frame is an Ethernet frame
 * without FCS.
 */
#ifndef RDMA_COUNTERS_H
#define RDMA_COUNTERS_H

typedef enum RdmaCounter {
    RDMA_COUNTER_TX_PACKETS,        /* frames sent to the wire */
    RDMA_COUNTER_TX_BYTES,          /* bytes of these frames */
    RDMA_COUNTER_RX_PACKETS,        /* RoCE frames received from the wire */
    RDMA_COUNTER_RX_BYTES,          /* bytes of these frames */
    RDMA_COUNTER_LOOPBACK_PACKETS,  /* packets to QPs of the same device */
    RDMA_COUNTER_RX_ICRC_ERRORS,    /* frames with a wrong ICRC */
    RDMA_COUNTER_RX_MALFORMED,      /* frames with wrong headers or lengths */
    RDMA_COUNTER_RX_DROPPED,        /* valid packets that no QP accepted */
    RDMA_COUNTER_RX_DUPLICATES,     /* packets received before (IBTA 9.7) */
    RDMA_COUNTER_RX_OUT_OF_SEQUENCE, /* requests with an unexpected PSN */
    RDMA_COUNTER_RETRANSMITS,       /* times a requester went back */
    RDMA_COUNTER_TIMEOUTS,          /* local ACK timeouts (IBTA 9.9.2) */
    RDMA_COUNTER_RNR_NAKS_SENT,
    RDMA_COUNTER_RNR_NAKS_RECEIVED,
    RDMA_COUNTER_NAKS_SENT,         /* without RNR NAKs */
    RDMA_COUNTER_NAKS_RECEIVED,     /* without RNR NAKs */
    RDMA_COUNTER_BAD_PKEY,          /* packets with a wrong P_Key */
    RDMA_COUNTER_BAD_QKEY,          /* packets with a wrong Q_Key */
    RDMA_COUNTER_TX_MCAST_PACKETS,  /* multicast frames sent to the wire */
    RDMA_COUNTER_RX_MCAST_PACKETS,  /* multicast frames of a joined group */
    RDMA_NUM_COUNTERS
} RdmaCounter;

#endif /* RDMA_COUNTERS_H */
