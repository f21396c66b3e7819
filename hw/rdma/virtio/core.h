/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "core" of the virtio-rdma device: the device without its objects, that
 * is its limits, features, configuration space, counters, the tables that
 * objects will lie in, and virtqueues as such.
 *
 * Context of all layers: everything runs under the BQL, or in the device's
 * iothread, between rdma_hca_enter() and rdma_hca_leave(). Under the BQL
 * the transport's reentrancy guard is engaged meanwhile, so that a buffer that
 * lies in the device's own registers cannot call it again. The iothread does
 * the work of direct queues only, and touches nothing but RAM.
 */
#ifndef HW_RDMA_VIRTIO_CORE_H
#define HW_RDMA_VIRTIO_CORE_H

#include "hw/virtio/virtio-rdma.h"
#include "qemu/main-loop.h"
#include "rdma/work.h"
#include "codec.h"

/* The limits that properties are checked against. */
#define VIRTIO_RDMA_MAX_CQ          16384
#define VIRTIO_RDMA_MAX_QP          16384
/* Keys have 24 bits for the number. */
#define VIRTIO_RDMA_MAX_MR          0xfffffe
#define VIRTIO_RDMA_MAX_PD          65536
#define VIRTIO_RDMA_MAX_MR_SIZE     (1ull << 40)    /* bytes */
#define VIRTIO_RDMA_MAX_SGE         256
#define VIRTIO_RDMA_MAX_INLINE      4096
#define VIRTIO_RDMA_MAX_RD_ATOMIC   128
#define VIRTIO_RDMA_MAX_GIDS        256
/* Pages of a fast-registration MR. */
#define VIRTIO_RDMA_MAX_PAGE_LIST   RDMA_HCA_MAX_PAGE_LIST
#define VIRTIO_RDMA_MAX_CQE         (1u << VIRTIO_RDMA_MAX_CQE_SHIFT)
#define VIRTIO_RDMA_MAX_CQE_SHIFT   20
#define VIRTIO_RDMA_MAX_SRQ         16384
#define VIRTIO_RDMA_MAX_SRQ_WR      (1u << 16)
#define VIRTIO_RDMA_MAX_MCAST       16384
/*
 * Descriptors of a buffer for a completion, or for an event of an event queue.
 * A device may have a reasonable limit (virtio 1.2, 2.7.4.1): these are written
 * in the turn of some queue pair, which pays the same for each.
 */
#define VIRTIO_RDMA_MAX_BUF_DESCS   16
/* Slots of a direct queue, and pages that those of a QP lie in */
#define VIRTIO_RDMA_MIN_DEPTH       4   /* that each driver can have */
#define VIRTIO_RDMA_MAX_DEPTH_SHIFT 15
#define VIRTIO_RDMA_MAX_DEPTH       (1u << VIRTIO_RDMA_MAX_DEPTH_SHIFT)
#define VIRTIO_RDMA_MAX_SLOT_SHIFT  13
#define VIRTIO_RDMA_MAX_DIRECT_PAGES \
    (1 + 2 * (VIRTIO_RDMA_MAX_DEPTH << (VIRTIO_RDMA_MAX_SLOT_SHIFT - \
                                        RDMA_PAGE_SHIFT)))
/* Those of a direct CQ: one of counters, and slots of 2^6 bytes */
#define VIRTIO_RDMA_MAX_DIRECT_CQ_PAGES \
    (1 + (VIRTIO_RDMA_MAX_CQE >> (RDMA_PAGE_SHIFT - \
                                  VIRTIO_RDMA_CQE_SLOT_SHIFT)))

/* Those of a direct SRQ, whose depth has a limit of its own */
#define VIRTIO_RDMA_MAX_SRQ_DEPTH_SHIFT 16
#define VIRTIO_RDMA_MAX_DIRECT_SRQ_PAGES \
    (1 + (1u << (VIRTIO_RDMA_MAX_SRQ_DEPTH_SHIFT + \
                 VIRTIO_RDMA_MAX_SLOT_SHIFT - RDMA_PAGE_SHIFT)))

/* The last of VIRTIO_RDMA_F_* */
#define VIRTIO_RDMA_F_MAX           VIRTIO_RDMA_F_ATOMIC_WRITE

/*
 * Bits of RdmaBackend.pending that the virtio device adds: a change of the
 * status, and resets of virtqueues and of the device
 */
#define VIRTIO_RDMA_PENDING_STATUS  RDMA_HCA_PENDING_GUEST(0)
#define VIRTIO_RDMA_PENDING_VQS     RDMA_HCA_PENDING_GUEST(1)
#define VIRTIO_RDMA_PENDING_RESET   RDMA_HCA_PENDING_GUEST(2)

/*
 * May this thread use virtqueues, and interrupt? The iothread leaves that to
 * the main loop's bottom half.
 */
static inline bool virtio_rdma_may_use_vqs(const VirtIORdma *s)
{
    return !s->hca.ctx || bql_locked();
}

/* May guest memory be touched and the backend be given work? */
static inline bool virtio_rdma_active(VirtIORdma *s)
{
    VirtIODevice *vdev = &s->parent_obj;

    if (!virtio_rdma_may_use_vqs(s)) {
        /* The others change without the device's lock */
        return s->hca.running;
    }
    return vdev->vm_running && (vdev->status & VIRTIO_CONFIG_S_DRIVER_OK) &&
           !virtio_device_disabled(vdev) && !s->hca.unrealizing &&
           !(qatomic_read(&s->hca.backend->pending) &
             VIRTIO_RDMA_PENDING_RESET);
}

/* Is the feature offered? Before realize: does the user want it to be? */
static inline bool virtio_rdma_offers(const VirtIORdma *s, unsigned bit)
{
    return s->rdma_features & (1ULL << bit);
}

/*
 * May there be QPs, CQs and SRQs without virtqueues? The transport has
 * doorbells if the user wants F_DIRECT.
 */
static inline bool virtio_rdma_may_be_direct(const VirtIORdma *s)
{
    return s->doorbells;
}

/*
 * Did the driver accept VIRTIO_RDMA_F_* @bit? None counts without F_VERSION_1,
 * also if the driver goes on after the device has refused its features.
 */
static inline bool virtio_rdma_has(VirtIORdma *s, unsigned bit)
{
    return virtio_vdev_has_feature(&s->parent_obj, VIRTIO_RDMA_F_VERSION_1) &&
           virtio_vdev_has_feature(&s->parent_obj, bit);
}

/* Does the driver know more than the device of the RFC? */
static inline bool virtio_rdma_is_v1(VirtIORdma *s)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_VERSION_1);
}

/* props.c: properties */

void virtio_rdma_props_init(ObjectClass *klass);
bool virtio_rdma_conf_check(VirtIORdma *s, Error **errp);
/* How many QPs and SRQs are to have virtqueues; of CQs, virtio_rdma_vq_cqs() */
uint32_t virtio_rdma_vq_qps(const VirtIORdma *s);
uint32_t virtio_rdma_vq_srqs(const VirtIORdma *s);

/* features.c: feature bits */

/* The name of a feature bit: that of its property, if there is one. */
const char *virtio_rdma_feature_name(unsigned bit);
/*
 * Offer what the transport and the attached backend can do. False: the backend
 * needs a feature that the user has turned off.
 */
bool virtio_rdma_features_restrict(VirtIORdma *s, Error **errp);
/* Of VirtioDeviceClass: can the driver do with what it has accepted? */
int virtio_rdma_validate_features(VirtIODevice *vdev);
/* Tell the backend which of RDMA_EXT_* the driver accepted. */
void virtio_rdma_extensions_start(VirtIORdma *s);

/* config.c: configuration space */

/* Fill it in anew, as the port is now. The driver is not told. */
void virtio_rdma_config_update(VirtIORdma *s);

/* ring.c: virtqueues */

/* The work of popping @elem, besides that of an element with few descriptors */
uint32_t virtio_rdma_elem_work(const VirtQueueElement *elem);

/*
 * Have the driver notified of what was put into the virtqueue when the backend
 * is left: the message may go to any address.
 */
void virtio_rdma_vq_notify(VirtIORdma *s, VirtQueue *vq);
/* Send these notifications. */
void virtio_rdma_vqs_flush(VirtIORdma *s);
/* Undo the last virtqueue_pop(), unlike virtqueue_unpop() of any chain. */
void virtio_rdma_vq_unpop(VirtIORdma *s, VirtQueue *vq,
                          VirtQueueElement *elem);
/* Unmap the buffers of @elem: the used ring needs none of them. */
void virtio_rdma_vq_unmap(VirtIORdma *s, VirtQueueElement *elem);
/*
 * Has the driver made no more buffers available than @vq has entries? If it
 * has, the device is broken from then on, and this returns false. The ring is
 * looked at only when all buffers of the last look, up to *@seen, are popped.
 */
bool virtio_rdma_ring_check(VirtIORdma *s, VirtQueue *vq, uint16_t *seen);
/* Return all available buffers of @vq as used, unread. Paid by the command. */
void virtio_rdma_ring_drain(VirtIORdma *s, VirtQueue *vq);
/* The same, after @n buffers were returned without a notification. */
void virtio_rdma_ring_drain_after(VirtIORdma *s, VirtQueue *vq, uint32_t n);
/*
 * Can virtqueue @n serve a new object that needs @size entries? -ENOMEM if
 * it is not set up, or was not reset after its last owner; -EINVAL if the
 * driver made its ring too small.
 */
int virtio_rdma_vq_check(VirtIORdma *s, uint32_t n, uint32_t size);
/* virtio_rdma_vq_check() for all virtqueues of an object with number @id. */
typedef int VirtIORdmaCheckId(VirtIORdma *s, uint32_t id,
                              const VirtIORdmaReq *req);
/*
 * Find a free number of @first to @end - 1 that @check returns 0 for. -EINVAL
 * if the rings of some free number are only too small, else -ENOMEM.
 */
int virtio_rdma_vq_find_id(VirtIORdma *s, RdmaHcaTable *t,
                           uint32_t first, uint32_t end,
                           VirtIORdmaCheckId *check,
                           const VirtIORdmaReq *req, uint32_t *id);
/*
 * Count the buffers that are available and were not popped. False if that
 * cannot be done: the ring is not set up, or not in RAM.
 */
bool virtio_rdma_ring_count(VirtIORdma *s, VirtQueue *vq, uint32_t *n);
/* The owner of virtqueue @n is gone: it must be reset before its next use. */
void virtio_rdma_vq_abandon(VirtIORdma *s, uint32_t n);

#endif
