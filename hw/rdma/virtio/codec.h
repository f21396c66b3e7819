/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "codec" of the virtio-rdma device: the layout of guest bytes, which is
 * that of docs/specs/virtio-rdma.rst, little-endian and without padding.
 *
 * This is the only code that knows where a field lies in a request, a
 * response, a work queue element, a completion or configuration space. All
 * else in the device works on host structures.
 */
#ifndef HW_RDMA_VIRTIO_CODEC_H
#define HW_RDMA_VIRTIO_CODEC_H

#include "hw/virtio/virtio-rdma.h"
#include "rdma/verbs.h"
#include "system/rdma-backend.h"
#include "system/rdma-ram.h"
#include "standard-headers/linux/virtio_rdma.h"

#define VIRTIO_RDMA_CMD_MAX VIRTIO_RDMA_CMD_QUERY_QP_COUNTERS

/* Room for any request, response or completion, in bytes. */
#define VIRTIO_RDMA_REQ_ROOM 256
#define VIRTIO_RDMA_RSP_ROOM 256
#define VIRTIO_RDMA_CQE_ROOM 48
/* Room for a WQE without SGEs and inline data, in bytes. */
#define VIRTIO_RDMA_WQE_ROOM 128

/* Memory of the queues of a direct QP, as the driver describes it: unchecked */
typedef struct VirtIORdmaDirectQp {
    RdmaHcaPages pages;
    /* log2 of the number of slots, and of the bytes of each */
    uint8_t sq_depth_shift;
    uint8_t sq_slot_shift;
    uint8_t rq_depth_shift;
    uint8_t rq_slot_shift;
    uint16_t doorbell;              /* page of doorbells */
} VirtIORdmaDirectQp;

/* Memory of a direct CQ, as the driver describes it: unchecked */
typedef struct VirtIORdmaDirectCq {
    RdmaHcaPages pages;
    uint8_t depth_shift;            /* log2 of the number of slots */
} VirtIORdmaDirectCq;

/* Memory of a direct SRQ, as the driver describes it: unchecked */
typedef struct VirtIORdmaDirectSrq {
    RdmaHcaPages pages;
    /* log2 of the number of slots, and of the bytes of each */
    uint8_t depth_shift;
    uint8_t slot_shift;
    uint16_t doorbell;              /* page of doorbells */
} VirtIORdmaDirectSrq;

/* A control request. Each command uses one member. */
typedef union VirtIORdmaReq {
    struct {
        uint8_t port;
    } query_port;
    struct {
        /* Not the last member, for which compilers do not check bounds */
        uint32_t qpn[VIRTIO_RDMA_MAX_COUNTER_QPS];
        uint32_t num_qps;           /* unchecked */
    } qp_counters;
    struct {
        uint32_t cqe;
        uint32_t flags;             /* VIRTIO_RDMA_CQ_* */
        uint32_t eqn;
        VirtIORdmaDirectCq direct;
    } create_cq;
    /* destroy_*, dereg_mr: the number of the object */
    struct {
        uint32_t id;
    } destroy;
    /* GET_DMA_MR, CREATE_MR, REG_USER_MR and REREG_MR */
    struct {
        uint32_t mrn;
        uint32_t flags;             /* RDMA_REREG_* */
        uint32_t pdn;
        uint32_t access;
        uint32_t max_num_sg;
        uint64_t start;
        RdmaHcaPages pages;
    } mr;
    struct {
        uint32_t mrn;
        RdmaHcaPages pages;
    } map_mr;
    struct {
        uint32_t pdn;
        uint32_t type;
    } alloc_mw;
    struct {
        RdmaSrqAttr attr;
        uint32_t flags;             /* VIRTIO_RDMA_SRQ_* */
        VirtIORdmaDirectSrq direct;
    } create_srq;
    /* MODIFY_SRQ and QUERY_SRQ */
    struct {
        uint32_t srqn;
        uint32_t limit;
    } srq;
    struct {
        uint32_t qpn;
        uint8_t gid[RDMA_GID_LEN];
    } mcast;
    struct {
        uint16_t doorbell;
        uint16_t flags;             /* VIRTIO_RDMA_SHADOW_* */
        uint64_t addr;
    } set_shadow;
    struct {
        uint32_t pdn;
        uint8_t qp_type;
        uint8_t sq_sig_type;
        uint32_t send_cqn;
        uint32_t recv_cqn;
        RdmaQpCap cap;
        uint32_t flags;             /* VIRTIO_RDMA_QP_* */
        uint32_t srqn;
        VirtIORdmaDirectQp direct;
    } create_qp;
    /* MODIFY_QP and QUERY_QP */
    struct {
        uint32_t qpn;
        uint32_t attr_mask;
        RdmaQpAttr attr;
    } qp;
    struct {
        uint32_t port;
        uint16_t index;
    } query_pkey;
    /* ADD_GID and DEL_GID */
    struct {
        uint8_t gid[RDMA_GID_LEN];
        uint32_t gid_type;
        uint16_t index;
        uint32_t port;
        uint16_t vlan;
    } gid;
    struct {
        uint32_t cqn;
        uint32_t flags;
    } notify;
    struct {
        uint32_t cqn;
        uint32_t cqe;
        uint32_t used;
        VirtIORdmaDirectCq direct;
    } resize_cq;
} VirtIORdmaReq;

/* The data of a successful response. */
typedef union VirtIORdmaRsp {
    struct {
        RdmaPortAttr attr;
        uint32_t bad_pkey_cntr;
        uint32_t qkey_viol_cntr;
        uint32_t gid_tbl_len;
        uint32_t port_cap_flags;
        uint16_t pkey_tbl_len;
        uint8_t phys_state;
    } port;
    /* create_*: the number of the object */
    struct {
        uint32_t id;
        uint32_t wire_qpn;          /* CREATE_QP */
    } create;
    struct {
        uint32_t mrn;
        uint32_t lkey;
        uint32_t rkey;
    } mr;
    struct {
        uint32_t npages;
    } map_mr;
    struct {
        uint32_t mwn;
        uint32_t rkey;
    } mw;
    struct {
        RdmaSrqAttr attr;
    } query_srq;
    struct {
        RdmaQpAttr attr;
    } query_qp;
    struct {
        uint16_t pkey;
    } query_pkey;
    uint64_t counters[VIRTIO_RDMA_NUM_COUNTERS];
} VirtIORdmaRsp;

/* The contents of configuration space besides constants */
typedef struct VirtIORdmaConfigData {
    uint8_t sys_image_guid[8];
    const RdmaBackendLimits *limits;
    uint64_t page_size_cap;
    uint32_t max_page_list_len;
    uint32_t max_vq_qp;
    uint32_t max_vq_cq;
    uint32_t max_vq_srq;
    uint8_t mac[RDMA_MAC_LEN];
    uint16_t mtu;                   /* bytes; 0 with mac unknown */
    /* 0 without F_VERSION_1 */
    uint32_t max_cqe_deep;
    uint32_t num_counters;
    uint64_t mr_page_sizes;         /* bit n: pages of 2^n bytes */
    /* 0 without F_DIRECT */
    uint32_t max_qp_direct;
    uint32_t max_qp_wr_direct;
    uint32_t max_cq_direct;
    uint32_t max_srq_direct;
} VirtIORdmaConfigData;

/* Bytes of a command's request and response, without command and status */
typedef struct VirtIORdmaCmdLayout {
    uint16_t req_min;               /* later bytes may be missing: read as 0 */
    uint16_t rsp_min;               /* with less room the command fails */
    uint16_t rsp_host;              /* @rsp_min with F_HOST_NUMBERS; 0: same */
} VirtIORdmaCmdLayout;

/* Bytes in guest memory */
#define VIRTIO_RDMA_CONFIG_SIZE   sizeof(struct virtio_rdma_config)
#define VIRTIO_RDMA_CQE_SIZE      sizeof(struct virtio_rdma_cqe)
#define VIRTIO_RDMA_CQE_EX_SIZE   sizeof(struct virtio_rdma_cqe_ex)
#define VIRTIO_RDMA_EVENT_SIZE    sizeof(struct virtio_rdma_event)
#define VIRTIO_RDMA_CQN_SIZE      sizeof(struct virtio_rdma_cqn)
/* WQEs without their SGEs or inline data */
#define VIRTIO_RDMA_SEND_WQE_SIZE sizeof(struct virtio_rdma_sq_wqe)
#define VIRTIO_RDMA_RECV_WQE_SIZE sizeof(struct virtio_rdma_rq_wqe)
#define VIRTIO_RDMA_SGE_SIZE      sizeof(struct virtio_rdma_sge)
/* The header of a slot of a direct queue: the length of the WQE after it */
#define VIRTIO_RDMA_SLOT_SIZE     sizeof(struct virtio_rdma_direct_slot)
/* Words of the first page of a direct QP */
#define VIRTIO_RDMA_DIRECT_AT(field) \
    offsetof(struct virtio_rdma_direct_page, field)

/* Words of the first page of a direct SRQ */
#define VIRTIO_RDMA_DIRECT_SRQ_AT(field) \
    offsetof(struct virtio_rdma_direct_srq_page, field)

/* Words of the shadow of a page of doorbells */
#define VIRTIO_RDMA_SHADOW_AT(field) \
    offsetof(struct virtio_rdma_shadow_page, field)

/* Words of the first page of a direct CQ, and the size of its slots */
#define VIRTIO_RDMA_DIRECT_CQ_AT(field) \
    offsetof(struct virtio_rdma_direct_cq_page, field)
#define VIRTIO_RDMA_CQE_SLOT_SHIFT 6

/* codec-mem.c: buffers of virtqueues, and slots */

/*
 * Copy from the readable buffers of @elem, at most @room bytes, or to the
 * writable ones. Return how many bytes were copied.
 */
size_t virtio_rdma_codec_read(const VirtQueueElement *elem, void *buf,
                              size_t room);
size_t virtio_rdma_codec_write(const VirtQueueElement *elem, const void *buf,
                               size_t len);
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

/* codec.c: configuration space */

/* Fills VIRTIO_RDMA_CONFIG_SIZE bytes. */
void virtio_rdma_codec_put_config(uint8_t *buf,
                                  const VirtIORdmaConfigData *data);

/* codec-ctrl.c: control requests and responses */

extern const VirtIORdmaCmdLayout
    virtio_rdma_codec_cmds[VIRTIO_RDMA_CMD_MAX + 1];

/* @buf has VIRTIO_RDMA_REQ_ROOM bytes, with 0 for those the driver left out. */
void virtio_rdma_codec_get_request(uint8_t cmd, const uint8_t *buf,
                                   VirtIORdmaReq *req);
/* Write the response to @buf, which the caller has filled with zeros. */
void virtio_rdma_codec_put_response(uint8_t cmd, uint8_t *buf,
                                    const VirtIORdmaRsp *rsp);

/* codec-wqe.c: work queue elements, completions and events */

/*
 * Decode the part of a WQE before its SGEs or inline data. Does not set the
 * status and the lists of @wr. @ud: the WR has the address of its peer. Sets
 * @pages for REG_MR only.
 */
void virtio_rdma_codec_get_send(const uint8_t *buf, bool ud, RdmaSendWr *wr,
                                RdmaHcaPages *pages);
/* The length that a slot of a direct queue names, in bytes */
uint32_t virtio_rdma_codec_get_slot(const uint8_t *buf);
void virtio_rdma_codec_get_recv(const uint8_t *buf, RdmaRecvWr *wr);
void virtio_rdma_codec_get_sges(const uint8_t *buf, uint32_t n, RdmaSge *sge);

/* Fills VIRTIO_RDMA_CQE_SIZE bytes, or VIRTIO_RDMA_CQE_EX_SIZE with @ex. */
void virtio_rdma_codec_put_cqe(uint8_t *buf, const RdmaWc *wc, bool ex);
bool virtio_rdma_codec_cqe_is_recv(const uint8_t *cqe);
void virtio_rdma_codec_set_cqe_qpn(uint8_t *cqe, uint32_t qpn);
/* Fills VIRTIO_RDMA_CQN_SIZE bytes. */
void virtio_rdma_codec_put_cqn(uint8_t *buf, uint32_t cqn);
/* Fills VIRTIO_RDMA_EVENT_SIZE bytes. */
void virtio_rdma_codec_put_event(uint8_t *buf, const RdmaEvent *event);

#endif
