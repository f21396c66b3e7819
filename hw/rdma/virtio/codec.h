/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "codec" of the virtio-rdma device: the layout of guest bytes, which is
 * that of docs/specs/virtio-rdma.rst, little-endian and without padding.
 *
 * This is the only code that knows where a field lies in a work queue element
 * or a completion. Handlers of control commands read their request and write
 * their response, config.c writes configuration space, and eq.c and event-vq.c
 * write events. All else in the device works on host structures.
 */
#ifndef HW_RDMA_VIRTIO_CODEC_H
#define HW_RDMA_VIRTIO_CODEC_H

#include "hw/virtio/virtio-rdma.h"
#include "rdma/verbs.h"
#include "rdma/work.h"
#include "system/rdma-ram.h"
#include "standard-headers/linux/virtio_rdma.h"

#define VIRTIO_RDMA_CMD_MAX VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS

/* Room for any completion, in bytes. */
#define VIRTIO_RDMA_CQE_ROOM 48
/* Room for a WQE without SGEs and inline data, in bytes. */
#define VIRTIO_RDMA_WQE_ROOM 128

/* Bytes in guest memory */
#define VIRTIO_RDMA_CQE_SIZE      sizeof(struct virtio_rdma_cqe)
#define VIRTIO_RDMA_CQE_EX_SIZE   sizeof(struct virtio_rdma_cqe_ex)
/* WQEs without their SGEs or inline data */
#define VIRTIO_RDMA_SEND_WQE_SIZE sizeof(struct virtio_rdma_sq_wqe)
#define VIRTIO_RDMA_RECV_WQE_SIZE sizeof(struct virtio_rdma_rq_wqe)
#define VIRTIO_RDMA_SGE_SIZE      sizeof(struct virtio_rdma_sge)
/* The header of a slot of a direct queue: the length of the WQE after it */
#define VIRTIO_RDMA_SLOT_SIZE     sizeof(struct virtio_rdma_direct_slot)
/* The size of the slots of a direct CQ */
#define VIRTIO_RDMA_CQE_SLOT_SHIFT 6
/* The offset of @field in a page of the driver: direct_page or shadow_page */
#define VIRTIO_RDMA_AT(page, field) offsetof(struct virtio_rdma_##page, field)

/* codec-mem.c: completions in guest memory */

/*
 * Write a CQE of @size bytes, for which there is room. With @status_last the
 * status byte is written after all others, so that a driver that polls it can
 * read the rest.
 */
void virtio_rdma_codec_write_cqe(const VirtQueueElement *elem,
                                 const uint8_t *cqe, size_t size,
                                 bool status_last);
/*
 * Write a CQE of VIRTIO_RDMA_CQE_ROOM bytes to a slot of a direct CQ, and then
 * @number, by which the driver sees that the CQE is complete. False if the slot
 * is not in RAM.
 */
bool virtio_rdma_codec_write_slot(const RdmaRam *ram, uint64_t addr,
                                  const uint8_t *cqe, uint32_t number);

/*
 * codec-demo.c: the layout of docs/specs/virtio-rdma-demo.rst. These functions
 * convert in place, from and to the layout of all other functions.
 */

#define VIRTIO_RDMA_DEMO_CONFIG_SIZE    648
#define VIRTIO_RDMA_DEMO_CQE_SIZE       48
#define VIRTIO_RDMA_DEMO_SEND_WQE_SIZE  88
/* Levels of page tables, in REG_USER_MR and MAP_MR_SG */
#define VIRTIO_RDMA_DEMO_LEVELS         2

/* @config: struct virtio_rdma_config, with room for the longer one */
void virtio_rdma_demo_put_config(uint8_t *config);
/*
 * The mandatory bytes of a request, and the bytes of a response; @min and @size
 * in the usual layout. @cmd is at most VIRTIO_RDMA_CMD_MAX.
 */
size_t virtio_rdma_demo_request_min(uint8_t cmd, size_t min);
size_t virtio_rdma_demo_response_size(uint8_t cmd, size_t size);
void virtio_rdma_demo_get_request(uint8_t cmd, uint8_t *req);
void virtio_rdma_demo_put_response(uint8_t cmd, uint8_t *rsp);
/*
 * WQEs have @len bytes in guest memory, of which at most @room are at @wqe.
 * Return @len in the usual layout. A WQE with both SGEs and RDMA_SEND_INLINE
 * loses that flag.
 */
size_t virtio_rdma_demo_get_send(uint8_t *wqe, size_t len, size_t room);
size_t virtio_rdma_demo_get_recv(uint8_t *wqe, size_t len, size_t room);
/* @cqe has VIRTIO_RDMA_CQE_ROOM bytes. */
void virtio_rdma_demo_put_cqe(uint8_t *cqe);

/* codec-qp.c: attributes of a QP */

void virtio_rdma_codec_get_qp_attr(const struct virtio_rdma_qp_attr *p,
                                   RdmaQpAttr *attr);
void virtio_rdma_codec_put_qp_attr(struct virtio_rdma_qp_attr *p,
                                   const RdmaQpAttr *attr);

/* codec-wqe.c: work queue elements and completions */

/*
 * Decode the part of a WQE before its SGEs or inline data. Does not set the
 * status and the lists of @wr. @ud: the WR has the address of its peer. Sets
 * @pages for REG_MR only.
 */
void virtio_rdma_codec_get_send(const void *buf, bool ud, RdmaSendWr *wr,
                                RdmaHcaPages *pages);
/* The length that a slot of a direct queue names, in bytes */
uint32_t virtio_rdma_codec_get_slot(const void *buf);
void virtio_rdma_codec_get_recv(const void *buf, RdmaRecvWr *wr);
void virtio_rdma_codec_get_sges(const void *buf, uint32_t n, RdmaSge *sge);

/* Fills VIRTIO_RDMA_CQE_SIZE bytes, or VIRTIO_RDMA_CQE_EX_SIZE with @ex. */
void virtio_rdma_codec_put_cqe(void *buf, const RdmaWc *wc, bool ex);
bool virtio_rdma_codec_cqe_is_recv(const void *cqe);
void virtio_rdma_codec_set_cqe_qpn(void *cqe, uint32_t qpn);

#endif
