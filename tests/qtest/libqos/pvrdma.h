/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver of the pvrdma device, for tests: the same steps as Linux's driver,
 * in the same order, with the structures of hw/rdma/pvrdma-abi.h.
 *
 * The objects of a device live until qpvrdma_close(). Functions that return an
 * object assert success. Functions that return uint32_t return the ERR
 * register, for the test to judge.
 */
#ifndef TESTS_LIBQOS_PVRDMA_H
#define TESTS_LIBQOS_PVRDMA_H

#include "hw/rdma/pvrdma-abi.h"
#include "virtio-rdma.h"

/* The MSI-X message of a vector */
#define QPVRDMA_MSI(vector) (0x7000 + (vector))

/* A page directory, whose pages follow each other in guest memory */
typedef struct QPvrdmaDir {
    uint64_t dir;
    uint64_t mem;
    uint32_t npages;
} QPvrdmaDir;

/* A ring: indices as the driver counts them */
typedef struct QPvrdmaRing {
    uint64_t state;
    uint64_t elements;
    uint32_t size;
    uint32_t stride;
    uint32_t index;
} QPvrdmaRing;

typedef struct QPvrdma {
    QRdmaHost *host;
    QPCIDevice *pci;
    QPCIBar regs;
    QPCIBar uar;
    uint64_t msi;                   /* a word for each vector */
    uint64_t dsr;
    uint64_t request;
    uint64_t response;
    QPvrdmaRing events;
    QPvrdmaRing completions;
    PvrdmaCaps caps;
    uint8_t mac[RDMA_MAC_LEN];
} QPvrdma;

typedef struct QPvrdmaMr {
    uint32_t handle;
    uint32_t lkey;
    uint32_t rkey;
    QPvrdmaDir dir;
    uint64_t addr;                  /* in WQEs */
} QPvrdmaMr;

typedef struct QPvrdmaCq {
    uint32_t handle;
    uint32_t page;                  /* of its context */
    QPvrdmaRing ring;
} QPvrdmaCq;

typedef struct QPvrdmaQp {
    uint32_t handle;
    uint32_t qpn;
    uint32_t page;
    QPvrdmaRing sq;
    QPvrdmaRing rq;
} QPvrdmaQp;

typedef struct QPvrdmaSrq {
    uint32_t handle;
    uint32_t page;
    QPvrdmaRing ring;
} QPvrdmaSrq;

/* Assert that ERR, or err of a reply, is 0; or is not. */
#define assert_done(call) g_assert_cmpint((call), ==, 0)
#define assert_fails(call) g_assert_cmpint((call), !=, 0)

/* The function of @devfn, which is not set up. */
QPvrdma *qpvrdma_open(QRdmaHost *host, int devfn);
void qpvrdma_close(QPvrdma *d);

uint32_t qpvrdma_read(QPvrdma *d, uint32_t reg);
void qpvrdma_write(QPvrdma *d, uint32_t reg, uint32_t value);
void qpvrdma_ring_doorbell(QPvrdma *d, uint32_t page, uint32_t offset,
                           uint32_t value);
/* Was an interrupt with this vector sent since the last call? */
bool qpvrdma_interrupted(QPvrdma *d, unsigned vector);

/* Steps 1 to 4 of the probe, up to the shared region; and the whole probe */
void qpvrdma_set_dsr(QPvrdma *d);
void qpvrdma_start(QPvrdma *d);

QPvrdmaDir qpvrdma_dir(QPvrdma *d, uint32_t npages);
/* Request a command, and fill in its head. Returns ERR. */
uint32_t qpvrdma_request(QPvrdma *d, uint32_t cmd, void *req, size_t size);
/* The same for PVRDMA_CMD_@name, whose request is *@req */
#define qpvrdma_begin(d, name, req) \
    qpvrdma_request(d, PVRDMA_CMD_##name, req, sizeof(*(req)))
/* Wait for the interrupt of a reply, and return what it acknowledges. */
uint32_t qpvrdma_await_reply(QPvrdma *d);
/*
 * Execute a command, and fill in its head. Returns ERR. If ERR is 0 and the
 * driver waits for the command, @rsp gets the reply.
 */
uint32_t qpvrdma_cmd(QPvrdma *d, uint32_t cmd, void *req, size_t size,
                     void *rsp, size_t rsp_size);
/* The same for PVRDMA_CMD_@name; @req and @rsp are all of their objects. */
#define qpvrdma_call(d, name, req, rsp) \
    qpvrdma_cmd(d, PVRDMA_CMD_##name, req, sizeof(*(req)), rsp, sizeof(*(rsp)))
/* DESTROY_* of an object with that handle */
uint32_t qpvrdma_destroy(QPvrdma *d, uint32_t cmd, uint32_t handle);

/* The frame of the first doorbell page */
uint64_t qpvrdma_uar_pfn(QPvrdma *d);
/* A context with that UAR page */
void qpvrdma_create_uc(QPvrdma *d, uint32_t page);
uint32_t qpvrdma_create_pd(QPvrdma *d, uint32_t ctx);
/* One MR of all memory, or one of @npages that begins with address @start */
QPvrdmaMr qpvrdma_get_dma_mr(QPvrdma *d, uint32_t pd);
QPvrdmaMr qpvrdma_reg_mr(QPvrdma *d, uint32_t pd, uint64_t start,
                         uint32_t npages, uint32_t access);
QPvrdmaCq qpvrdma_create_cq(QPvrdma *d, uint32_t ctx, uint32_t cqe);
/* @req may leave sizes out: SQ and RQ then have 16 entries of 2 SGEs. */
uint32_t qpvrdma_try_create_qp(QPvrdma *d, uint32_t page,
                               PvrdmaCmdCreateQp *req, QPvrdmaQp *qp);
QPvrdmaQp qpvrdma_create_qp(QPvrdma *d, uint32_t page, uint32_t pd,
                            const QPvrdmaCq *scq, const QPvrdmaCq *rcq,
                            RdmaQpType type);
/* @req may leave sizes out: the ring then has 16 entries of 2 SGEs. */
uint32_t qpvrdma_try_create_srq(QPvrdma *d, uint32_t page,
                                PvrdmaCmdCreateSrq *req, QPvrdmaSrq *srq);
uint32_t qpvrdma_create_bind(QPvrdma *d, uint32_t index,
                             const uint8_t gid[RDMA_GID_LEN]);
/* Returns err of the reply. */
uint8_t qpvrdma_modify_qp(QPvrdma *d, uint32_t handle, uint32_t mask,
                          const PvrdmaQpAttr *attr);
void qpvrdma_query_qp(QPvrdma *d, uint32_t handle, PvrdmaQpAttr *attr);

/* Rings: the address for the next element of the driver; publish the element */
uint64_t qpvrdma_ring_next(QPvrdmaRing *ring);
void qpvrdma_ring_push(QPvrdma *d, QPvrdmaRing *ring);
/* Take the next element of the device. False: there is none. */
bool qpvrdma_ring_pop(QPvrdma *d, QPvrdmaRing *ring, void *element);
/* The head of a ring that the device consumes */
uint32_t qpvrdma_ring_head(QPvrdma *d, const QPvrdmaRing *ring);

void qpvrdma_post_send(QPvrdma *d, QPvrdmaQp *qp, const PvrdmaSendWqe *wqe,
                       const PvrdmaSge *sge);
void qpvrdma_post_recv(QPvrdma *d, QPvrdmaQp *qp, uint64_t wr_id,
                       const PvrdmaSge *sge);
void qpvrdma_post_srq_recv(QPvrdma *d, QPvrdmaSrq *srq, uint64_t wr_id,
                           const PvrdmaSge *sge);
bool qpvrdma_poll_cq(QPvrdma *d, QPvrdmaCq *cq, PvrdmaCqe *cqe);
/* Wait for the next completion. */
PvrdmaCqe qpvrdma_wait_cq(QPvrdma *d, QPvrdmaCq *cq);

#endif
