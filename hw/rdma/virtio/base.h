/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "base" of the virtio-rdma device: the device without its objects. It
 * has limits, features, configuration space, and virtqueues in general.
 *
 * Context of all layers: a caller holds the BQL, or runs in the device's
 * iothread; work on objects is between rdma_hca_enter() and rdma_hca_leave().
 * Under the BQL the transport's reentrancy guard is engaged meanwhile, so that
 * a buffer in the device's own registers cannot cause another call. The
 * iothread serves direct queues only, and accesses only RAM.
 */
#ifndef HW_RDMA_VIRTIO_BASE_H
#define HW_RDMA_VIRTIO_BASE_H

#include "hw/virtio/virtio-rdma.h"
#include "qemu/main-loop.h"
#include "rdma/work.h"
#include "codec.h"

/* The limits that properties are checked against. */
#define VIRTIO_RDMA_MAX_CQ          16384
#define VIRTIO_RDMA_MAX_QP          16384
/* A key has 24 bits for the number. */
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
 * The most descriptors of a buffer for a completion, or for an event of an
 * event queue. A device may have a reasonable limit (virtio 1.2, 2.7.4.1). The
 * limit bounds the cost of a completion: the QP pays the same for each buffer.
 */
#define VIRTIO_RDMA_MAX_BUF_DESCS   16
/* Slots of a queue of a QP, of an SRQ, and their size */
#define VIRTIO_RDMA_MIN_DEPTH       4   /* the least that max-qp-wr can be */
#define VIRTIO_RDMA_MAX_DEPTH_SHIFT 15
#define VIRTIO_RDMA_MAX_DEPTH       (1u << VIRTIO_RDMA_MAX_DEPTH_SHIFT)
#define VIRTIO_RDMA_MAX_SRQ_DEPTH_SHIFT 16
#define VIRTIO_RDMA_MAX_SLOT_SHIFT  13

/* The last of VIRTIO_RDMA_F_* */
#define VIRTIO_RDMA_F_MAX           VIRTIO_RDMA_F_VERSION_1

/*
 * Bits for rdma_hca_put_off() that the virtio device adds: a change of the
 * status, and resets of virtqueues and of the device
 */
#define VIRTIO_RDMA_PENDING_STATUS  RDMA_HCA_PENDING_GUEST(0)
#define VIRTIO_RDMA_PENDING_VQS     RDMA_HCA_PENDING_GUEST(1)
#define VIRTIO_RDMA_PENDING_RESET   RDMA_HCA_PENDING_GUEST(2)

/*
 * May this thread use virtqueues, and notify the driver? The iothread leaves
 * both to the bottom half of the main loop.
 */
static inline bool virtio_rdma_may_use_vqs(const VirtIORdma *s)
{
    return !s->hca.ctx || bql_locked();
}

/* May the device access guest memory and give the backend work? */
static inline bool virtio_rdma_active(VirtIORdma *s)
{
    VirtIODevice *vdev = &s->parent_obj;

    if (!virtio_rdma_may_use_vqs(s)) {
        /* The fields below change without the device's lock. */
        return s->hca.running;
    }
    return vdev->vm_running && (vdev->status & s->ready_status) &&
           !virtio_device_disabled(vdev) && !s->hca.unrealizing &&
           !rdma_hca_is_pending(&s->hca, VIRTIO_RDMA_PENDING_RESET);
}

/* Is the feature offered? Before realize: does the user want it offered? */
static inline bool virtio_rdma_offers(const VirtIORdma *s, unsigned bit)
{
    return s->rdma_features & (1ULL << bit);
}

/*
 * Can there be QPs, CQs and SRQs without virtqueues? The transport makes pages
 * of doorbells only if the user wants F_DIRECT.
 */
static inline bool virtio_rdma_may_be_direct(const VirtIORdma *s)
{
    return s->doorbells;
}

/*
 * Did the driver accept VIRTIO_RDMA_F_* @bit? Without F_VERSION_1 no other
 * feature counts. The device refuses such features, but a driver may go on.
 */
static inline bool virtio_rdma_has(VirtIORdma *s, unsigned bit)
{
    return virtio_vdev_has_feature(&s->parent_obj, VIRTIO_RDMA_F_VERSION_1) &&
           virtio_vdev_has_feature(&s->parent_obj, bit);
}

/* Does the driver know more than the device of the RFC of 2022? */
static inline bool virtio_rdma_is_v1(VirtIORdma *s)
{
    return virtio_rdma_has(s, VIRTIO_RDMA_F_VERSION_1);
}

/* props.c: properties */

void virtio_rdma_props_init(ObjectClass *klass);
bool virtio_rdma_conf_check(VirtIORdma *s, Error **errp);
/* The numbers of QPs and SRQs with virtqueues; CQs: virtio_rdma_vq_cqs() */
uint32_t virtio_rdma_vq_qps(const VirtIORdma *s);
uint32_t virtio_rdma_vq_srqs(const VirtIORdma *s);

/* features.c: feature bits */

/* Before all else in realize: make s->conf.layout effective. */
void virtio_rdma_layout_init(VirtIORdma *s);
/* What to offer of @features, which the transport supports, and besides them */
uint64_t virtio_rdma_features(const VirtIORdma *s, uint64_t features);
/* The name of a feature bit for messages: its property, if it has one. */
const char *virtio_rdma_feature_name(unsigned bit);
/*
 * Set the offered features to those that the transport and the attached backend
 * support. False: the backend needs a feature that the user has turned off.
 */
bool virtio_rdma_features_restrict(VirtIORdma *s, Error **errp);
/*
 * VirtioDeviceClass.validate_features(): 0, or -ENOTSUP if the driver did not
 * accept a feature that the device needs.
 */
int virtio_rdma_validate_features(VirtIODevice *vdev);
/* Tell the backend which of RDMA_EXT_* the driver accepted. */
void virtio_rdma_extensions_start(VirtIORdma *s);

/* config.c: configuration space */

/* Fill it in from the current port. This does not notify the driver. */
void virtio_rdma_config_update(VirtIORdma *s);

/* vq.c: virtqueues */

/* Undo the last virtqueue_pop(), also of a chain of a packed ring. */
void virtio_rdma_vq_unpop(VirtIORdma *s, VirtQueue *vq,
                          VirtQueueElement *elem);
/*
 * Check that the driver has made no more buffers available than @vq has
 * entries. False: it has, and the device is broken from then on. This reads the
 * ring only when all buffers up to the index of the last check were popped.
 */
bool virtio_rdma_ring_check(VirtIORdma *s, VirtQueue *vq);
/* Virtqueue @n is that of a new object, or of one that was loaded. */
VirtQueue *virtio_rdma_vq_use(VirtIORdma *s, uint32_t n);
/*
 * Can virtqueue @n serve a new object that needs @size entries? 0; -ENOMEM if
 * the driver has not set it up, or has not reset it after its last object;
 * -EINVAL if the ring is too small.
 */
int virtio_rdma_vq_check(VirtIORdma *s, uint32_t n, uint32_t size);
/* Calls virtio_rdma_vq_check() for all virtqueues of an object @id */
typedef int VirtIORdmaCheckId(VirtIORdma *s, uint32_t id, const void *req);
/*
 * Find a free number from @first to @end - 1 for which @check returns 0.
 * Otherwise -EINVAL if the rings of a free number are only too small, or
 * -ENOMEM. Logs a guest error.
 */
int virtio_rdma_vq_find_id(VirtIORdma *s, RdmaHcaTable *t,
                           uint32_t first, uint32_t end,
                           VirtIORdmaCheckId *check, const void *req,
                           uint32_t *id);
/*
 * Can the loaded object have a virtqueue? @served: the device serves it;
 * @field: its number; @max: how many can; @depth_shift: of slots, which it does
 * not have
 */
bool virtio_rdma_vq_check_loaded(const RdmaHcaRecord *r, bool served,
                                 const char *field, uint32_t max,
                                 uint8_t depth_shift);
/*
 * The object of virtqueue @n is gone: the driver must reset the virtqueue. The
 * driver of the demo starts again at index 0 instead, and so does the device.
 */
void virtio_rdma_vq_abandon(VirtIORdma *s, uint32_t n);

#endif
