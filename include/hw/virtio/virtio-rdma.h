/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: an RDMA adapter that a guest drives through virtio.
 *
 * The guest ABI is in standard-headers/linux/virtio_rdma.h. A backend moves the
 * data: see system/rdma-backend.h.
 */
#ifndef HW_VIRTIO_RDMA_H
#define HW_VIRTIO_RDMA_H

#include "hw/rdma/virtqueue.h"
#include "hw/virtio/virtio.h"
#include "net/net.h"
#include "qom/object.h"
#include "system/iothread.h"
#include "standard-headers/linux/virtio_rdma.h"
#include "system/rdma-backend.h"

#define TYPE_VIRTIO_RDMA "virtio-rdma-device"
OBJECT_DECLARE_SIMPLE_TYPE(VirtIORdma, VIRTIO_RDMA)

typedef struct VirtIORdmaShadow VirtIORdmaShadow;
typedef struct VirtIORdmaScratch VirtIORdmaScratch;

/* Layouts of what driver and device exchange: values of the property */
#define VIRTIO_RDMA_LAYOUT_SPEC "spec"
#define VIRTIO_RDMA_LAYOUT_DEMO "demo"

/* Properties as the user has set them; props.c checks their limits */
typedef struct VirtIORdmaConf {
    char *netdev;
    RdmaBackend *rdmadev;
    IOThread *iothread;             /* or NULL */
    MACAddr mac;
    uint64_t sys_image_guid;
    uint32_t max_qp;
    uint32_t max_cq;
    uint32_t max_mr;
    uint32_t max_pd;
    uint64_t max_mr_pages;          /* 0: derived from the size of RAM */
    uint32_t queue_size;
    uint32_t max_qp_wr;
    uint32_t max_sge;
    uint32_t max_inline;            /* bytes */
    uint32_t max_rd_atomic;
    uint32_t gid_table_len;
    uint32_t max_cqe;
    uint32_t max_srq;
    uint32_t max_srq_wr;
    uint32_t max_mw;
    uint32_t max_mcast_grp;         /* groups, and QPs of each group */
    uint64_t poll_max_ns;           /* after the last WQE of a busy queue */
    char *allowed_gids;             /* NULL: all GIDs are allowed */
    char *layout;                   /* NULL, or VIRTIO_RDMA_LAYOUT_* */
} VirtIORdmaConf;

struct VirtIORdma {
    VirtIODevice parent_obj;
    RdmaHca hca;

    VirtIORdmaConf conf;
    /* 1 << VIRTIO_RDMA_F_*: wanted by the user; after realize: offered */
    uint64_t rdma_features;
    uint32_t doorbells;             /* pages of doorbells of the transport */
    bool is_demo;                   /* the layout is VIRTIO_RDMA_LAYOUT_DEMO */
    /* VIRTIO_CONFIG_S_* that lets the device access guest memory */
    uint8_t ready_status;
    bool had_driver;                /* @ready_status was set since a reset */

    /* Objects with lower numbers can have virtqueues, others are direct */
    uint32_t max_vq_qp;
    uint32_t max_vq_cq;
    uint32_t max_vq_srq;

    VirtQueue *event_vq;            /* NULL: F_VERSION_1 is not offered */
    uint8_t *ctrl_pending;          /* request in progress, or NULL */
    bool ctrl_waiting;              /* until RdmaHcaOps.resume() */

    VirtIORdmaScratch *scratch;     /* for one WQE */

    /* Direct CQs with completions for which no event was considered yet */
    QTAILQ_HEAD(, VirtIORdmaCq) completed_cqs;
    VirtIORdmaShadow *shadows;      /* one for each page of doorbells */
    QTAILQ_HEAD(, VirtIORdmaShadow) awake_shadows; /* the bottom half polls */
    /* SQs that wait for the end of an interval of polling */
    QTAILQ_HEAD(, VirtIORdmaPoll) polled_sqs;
    int64_t poll_at;                /* ns: the end of the interval of all */
    QEMUTimer *poll_timer;          /* polls them at that time */
    /* Work of the bottom half */
    bool sched_all;                 /* all that follow, and all work queues */
    bool sched_cqs;                 /* backlogs of CQs */
    bool sched_events;
    QTAILQ_HEAD(, VirtIORdmaCq) sched_eqs; /* event queues */
    uint32_t next_flush;            /* the CQ to begin with */
    bool restore_order;             /* see virtio_rdma_wqs_restore_order() */
    DECLARE_BITMAP(reset_vqs, VIRTIO_QUEUE_MAX); /* deferred resets */
    bool ioeventfd;                 /* the transport wants host notifiers */

    uint16_t vq_seen[VIRTIO_QUEUE_MAX]; /* for virtio_rdma_ring_check() */
    RdmaVqHidden hidden;            /* virtqueues, during a load */
    /* Virtqueues whose object was destroyed, and that were not reset since */
    DECLARE_BITMAP(stale_vqs, VIRTIO_QUEUE_MAX);
    /* Virtqueues of which the driver is notified when the backend is left */
    RdmaVqNotify notify;
    /* Virtqueues with a host notifier */
    DECLARE_BITMAP(notifiers, VIRTIO_QUEUE_MAX);

    struct virtio_rdma_config config;
};

/* Before realize: does the user want the layout of the demo's driver? */
static inline bool virtio_rdma_wants_demo(const VirtIORdma *s)
{
    return !g_strcmp0(s->conf.layout, VIRTIO_RDMA_LAYOUT_DEMO);
}

/*
 * Replace the values of s->conf that stand for defaults. Call after the
 * transport has set s->doorbells, and before the next function.
 */
void virtio_rdma_conf_set_defaults(VirtIORdma *s);
/* The number of virtqueues for CQs */
uint32_t virtio_rdma_vq_cqs(const VirtIORdma *s);

/*
 * For the transport: the driver has written @value to page @page of the
 * doorbells. @value is the number of a direct QP whose queues have work, or,
 * with VIRTIO_RDMA_DOORBELL_SRQ, of a direct SRQ.
 */
void virtio_rdma_doorbell(VirtIORdma *s, uint32_t page, uint32_t value);

/* Features and limits, which a destination must have before it loads more */
extern const VMStateDescription vmstate_virtio_rdma_limits;

#endif
