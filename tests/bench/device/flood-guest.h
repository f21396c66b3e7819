/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What floods of virtqueues use: rings that are written at once, and objects.
 */
#ifndef TESTS_BENCH_DEVICE_FLOOD_GUEST_H
#define TESTS_BENCH_DEVICE_FLOOD_GUEST_H

#include "flood-bench.h"

#define QUEUE_SIZE 1024
#define NQP 125
#define WINDOW (2 * 1024 * 1024u)
#define PAGE 4096
#define FEATURES (QRDMA_F(VIRTIO_F_VERSION_1) | \
                  QRDMA_F(VIRTIO_RDMA_F_VERSION_1) | \
                  QRDMA_DIRECT_QPS | \
                  QRDMA_DIRECT_SRQS)

/* What all floods use. */
struct Flood {
    QRdmaHost *host;
    QRdma *d;
    QRdmaPd *pd;
    QRdmaMr *mr;                    /* all of memory */
    uint64_t data;                  /* WINDOW bytes */
    uint64_t scratch;               /* a WQE, a response or CQEs: a page */
    uint64_t reqs;                  /* control requests of 256 bytes */
    uint32_t ncq;
    uint32_t cqns[NQP];
    uint32_t nqp;
    QRdmaQp qps[NQP];
    size_t wqe_len;                 /* of the WQE of all SRQs */
    uint16_t commands;              /* in the control virtqueue */
};

/* Make @n buffers available, all at @addr. */
void fill(Flood *f, uint32_t index, uint64_t addr, uint32_t len,
          bool write, unsigned n);
void command(Flood *f, uint8_t cmd, const void *req, size_t len);
/* Kick once for all buffers. */
void send_commands(Flood *f);
bool all_used(Flood *f, uint32_t index);
void new_cqs(Flood *f, uint32_t n, uint32_t cqe, bool buffers);
RdmaQpInitAttr qp_init(Flood *f, RdmaQpType type);
void new_qps(Flood *f, uint32_t n, RdmaQpType type);
bool qpn_taken(Flood *f, uint32_t qpn);
uint32_t sq_of(Flood *f, uint32_t i);
uint32_t rq_of(Flood *f, uint32_t i);
void kick(Flood *f, uint32_t index);
RdmaSge sge(Flood *f, uint32_t len);
/* Post @n receives on each QP, and wait until the engine has them. */
void post_receives(Flood *f, unsigned n);
/* Put the same WR @n times into the send queues of @nqp QPs, without a kick. */
void prepare_sends(Flood *f, uint32_t nqp, const RdmaSendWr *wr,
                   unsigned n);
bool sends_done(Flood *f);
bool receives_done(Flood *f);
bool commands_done(Flood *f);
/* Kicks wait while the VM is stopped, so that all arrive in one turn. */
void kick_sends_at_once(Flood *f);
Flood *flood_new(QRdmaHost *host, QRdma *d);

#endif /* TESTS_BENCH_DEVICE_FLOOD_GUEST_H */
