/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver of the virtio-net-roce device, for tests, with the structures of
 * hw/rdma/net-roce-abi.h.
 *
 * The device uses the buffers of each virtqueue in order, so buffer n lies at a
 * fixed place, and its descriptor is number n modulo the size of the ring.
 * Functions that return an object assert success; those that return uint8_t
 * return the acknowledgement, for the test to judge.
 */
#ifndef TESTS_LIBQOS_NET_ROCE_H
#define TESTS_LIBQOS_NET_ROCE_H

#include "hw/rdma/net-roce-abi.h"
#include "virtio-rdma.h"

/* What a driver of RoCE accepts */
#define QROCE_FEATURES (1ull << VIRTIO_F_VERSION_1 | 1ull << NET_ROCE_F_ROCE)
/* SGEs of a WQE */
#define QROCE_SGES 4

typedef struct QRoceRing {
    QVirtQueuePCI pci;
    uint64_t mem;                   /* of the ring, and of its buffers */
    uint64_t buf;
    uint32_t stride;                /* bytes of a buffer */
    uint16_t posted;                /* buffers made available */
    uint16_t used;                  /* used ones that were taken back */
} QRoceRing;

typedef struct QRoce {
    QRdmaHost *host;
    QVirtioPCIDevice *pci;
    NetRoceConfig config;
    uint32_t n_rings;
    QRoceRing *rings;
    uint64_t ctrl;                  /* memory for a request and its reply */
} QRoce;

typedef struct QRoceMr {
    NetRoceMr nums;
    uint64_t iova;
    uint64_t length;                /* bytes */
    uint64_t mem;
} QRoceMr;

typedef struct QRoceCq {
    uint32_t cqn;
    QRoceRing *ring;
    bool no_refill;                 /* do not give polled buffers back */
} QRoceCq;

typedef struct QRoceQp {
    uint32_t qpn;
    QRoceRing *sq;
    QRoceRing *rq;
} QRoceQp;

/* Assert that a command succeeds, or fails. */
#define assert_ack(call) g_assert_cmpint((call), ==, NET_ROCE_ACK_OK)
#define assert_refused(call) g_assert_cmpint((call), ==, NET_ROCE_ACK_ERR)

/* The device in @slot, after a reset. */
QRoce *qroce_open(QRdmaHost *host, int slot);
void qroce_close(QRoce *d);
/* Accept @features, and set up all virtqueues; then perhaps DRIVER_OK. */
void qroce_start(QRoce *d, uint64_t features, bool driver_ok);
void qroce_driver_ok(QRoce *d);
/* Features and queues by hand: only some virtqueues are set up. */
void qroce_accept(QRoce *d, uint64_t features);
void qroce_ring_setup(QRoce *d, uint32_t n);
NetRoceConfig qroce_config(QRoce *d);
/* Was an interrupt sent since the last call? */
bool qroce_interrupted(QRoce *d);

/* A command of any class */
typedef struct QRoceCmd {
    uint8_t class;
    uint8_t cmd;
    const void *req;
    size_t req_len;                 /* bytes in memory */
    size_t desc_len;                /* bytes of the descriptor */
    void *rsp;
    size_t rsp_room;                /* bytes after the acknowledgement */
    bool no_ack;                    /* no writable byte at all */
    uint32_t used_len;              /* out */
} QRoceCmd;

uint8_t qroce_cmd_raw(QRoce *d, QRoceCmd *c);
/* One as drivers send it; asserts that a successful reply is complete. */
uint8_t qroce_cmd(QRoce *d, uint8_t cmd, const void *req, size_t req_len,
                  void *rsp, size_t rsp_len);
/* The same for NET_ROCE_CMD_@name; @req and @rsp are all of their objects. */
#define qroce_call(d, name, req, rsp) \
    qroce_cmd(d, NET_ROCE_CMD_##name, req, sizeof(*(req)), rsp, sizeof(*(rsp)))
#define qroce_call_void(d, name, req) \
    qroce_cmd(d, NET_ROCE_CMD_##name, req, sizeof(*(req)), NULL, 0)
/* A command whose request is a number */
uint8_t qroce_id_cmd(QRoce *d, uint8_t cmd, uint32_t id);

uint32_t qroce_create_pd(QRoce *d);
QRoceCq qroce_create_cq(QRoce *d, uint32_t cqe);
/* Starts the ring again if the command succeeds; likewise for a QP. */
uint8_t qroce_destroy_cq(QRoce *d, QRoceCq *cq);
/* Contiguous zeroed memory for a region that begins at offset @iova % 4096 */
QRoceMr qroce_reg_mr(QRoce *d, uint32_t pdn, uint64_t iova, uint32_t npages,
                     uint32_t access);
/* With 16 WRs of QROCE_SGES SGEs, and inline data, if @req leaves that out */
uint8_t qroce_try_create_qp(QRoce *d, NetRoceCreateQp *req, QRoceQp *qp);
QRoceQp qroce_create_qp(QRoce *d, uint32_t pdn, const QRoceCq *scq,
                        const QRoceCq *rcq, RdmaQpType type);
uint8_t qroce_destroy_qp(QRoce *d, QRoceQp *qp);
uint8_t qroce_modify_qp(QRoce *d, uint32_t qpn, uint32_t mask,
                        const NetRoceModifyQp *attr);
NetRoceQpAttr qroce_query_qp(QRoce *d, uint32_t qpn);
uint8_t qroce_add_gid(QRoce *d, uint16_t index, const uint8_t *gid);
uint32_t qroce_create_ah(QRoce *d, uint32_t pdn, const NetRoceAv *av);
uint8_t qroce_destroy_ah(QRoce *d, uint32_t pdn, uint32_t ah);

/* Make the next buffer of @len bytes available, and kick. Returns its place. */
uint64_t qroce_post(QRoce *d, QRoceRing *ring, const void *bytes, size_t len,
                    bool write);
/*
 * Take the next used buffer back, and return its place; 0: there is none.
 * @len may be NULL.
 */
uint64_t qroce_reap(QRoce *d, QRoceRing *ring, uint32_t *len);
/* Take back all that are used. Returns those that the device still has. */
uint32_t qroce_in_device(QRoce *d, QRoceRing *ring);
/* The driver starts the ring again at index 0. */
void qroce_ring_restart(QRoce *d, QRoceRing *ring);

void qroce_post_send(QRoce *d, QRoceQp *qp, const NetRoceSendWqe *wqe,
                     const NetRoceSge *sge, uint32_t num_sge);
void qroce_post_recv(QRoce *d, QRoceQp *qp, uint64_t wr_id,
                     const NetRoceSge *sge, uint32_t num_sge);
bool qroce_poll_cq(QRoce *d, QRoceCq *cq, NetRoceCqe *cqe);
NetRoceCqe qroce_wait_cq(QRoce *d, QRoceCq *cq);

#endif
