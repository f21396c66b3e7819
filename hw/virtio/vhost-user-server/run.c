/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start, stop and reset of the device.
 *
 * A front end does not pass the device status on. It stops the rings when the
 * guest resets the device, and also when the VM pauses. So a stop of the rings
 * only stops the device. If the rings start again where they stopped, the
 * device continues with its state. Otherwise the guest has reset the device.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "trace.h"
#include "server.h"

uint64_t vus_features(VhostUserServer *s)
{
    /* Rings have guest addresses: the server handles no IOTLB messages. */
    uint64_t missing = 1ULL << VIRTIO_F_IOMMU_PLATFORM |
                       1ULL << VIRTIO_F_RING_PACKED;

    if (!s->ring_reset) {
        missing |= 1ULL << VIRTIO_F_RING_RESET;
    }
    return (vus_vdev(s)->host_features & ~missing) | VUS_FRONT_END_FEATURES;
}

uint64_t vus_guest_features(uint64_t features)
{
    /* VIRTIO_F_IOMMU_PLATFORM makes the device use get_dma_as(). */
    return (features & ~VUS_FRONT_END_FEATURES) |
           1ULL << VIRTIO_F_IOMMU_PLATFORM;
}

static void set_vectors(VhostUserServer *s)
{
    VirtIODevice *vdev = vus_vdev(s);

    for (uint32_t n = 0; n < s->num_rings; n++) {
        virtio_queue_set_vector(vdev, n, n);
    }
    vdev->config_vector = VUS_CONFIG_VECTOR;
}

void vus_reset(VhostUserServer *s)
{
    trace_vhost_user_server_reset(s);
    s->running = false;
    virtio_bus_reset(&s->bus);
    set_vectors(s);
}

void vus_run_stop(VhostUserServer *s)
{
    VirtIODevice *vdev = vus_vdev(s);

    trace_vhost_user_server_stop(s);
    s->running = false;
    for (uint32_t n = 0; n < s->num_rings; n++) {
        vus_ring_unwatch(s, n);
        if (virtio_queue_get_desc_addr(vdev, n)) {
            /* The front end may enable it again without SET_VRING_BASE. */
            s->rings[n].base = virtio_queue_get_last_avail_idx(vdev, n);
        }
    }
    virtio_set_status(vdev, vdev->status & ~VIRTIO_CONFIG_S_DRIVER_OK);
    vus_log_update(s);
}

/* Whether the device can continue with a ring that it has used */
static bool ring_can_continue(VhostUserServer *s, uint32_t n)
{
    VirtIODevice *vdev = vus_vdev(s);
    const VusRing *ring = &s->rings[n];

    if (!virtio_queue_get_desc_addr(vdev, n)) {
        return true;
    }
    return ring->started &&
           ring->num == virtio_queue_get_num(vdev, n) &&
           ring->desc == virtio_queue_get_desc_addr(vdev, n) &&
           ring->avail == virtio_queue_get_avail_addr(vdev, n) &&
           ring->used == virtio_queue_get_used_addr(vdev, n) &&
           ring->base == virtio_queue_get_last_avail_idx(vdev, n);
}

static bool device_can_continue(VhostUserServer *s)
{
    VirtIODevice *vdev = vus_vdev(s);

    if (!(vdev->status & VIRTIO_CONFIG_S_FEATURES_OK) ||
        vdev->guest_features != vus_guest_features(s->features)) {
        return false;
    }
    for (uint32_t n = 0; n < s->num_rings; n++) {
        if (!ring_can_continue(s, n)) {
            return false;
        }
    }
    return true;
}

static bool negotiate(VhostUserServer *s, Error **errp)
{
    VirtIODevice *vdev = vus_vdev(s);
    uint8_t status = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;

    virtio_set_status(vdev, status);
    if (virtio_set_features(vdev, vus_guest_features(s->features)) < 0 ||
        virtio_set_status(vdev, status | VIRTIO_CONFIG_S_FEATURES_OK) < 0) {
        error_setg(errp, "the device refuses the features 0x%" PRIx64
                   ": it offers 0x%" PRIx64, s->features, vus_features(s));
        return false;
    }
    return true;
}

static void set_ring(VhostUserServer *s, uint32_t n)
{
    VirtIODevice *vdev = vus_vdev(s);
    const VusRing *ring = &s->rings[n];

    virtio_queue_set_num(vdev, n, ring->num);
    virtio_queue_set_rings(vdev, n, ring->desc, ring->avail, ring->used);
    virtio_queue_set_last_avail_idx(vdev, n, ring->base);
    virtio_queue_update_used_idx(vdev, n);
    virtio_queue_invalidate_signalled_used(vdev, n);
}

static bool set_rings(VhostUserServer *s, Error **errp)
{
    for (uint32_t n = 0; n < s->num_rings; n++) {
        if (s->rings[n].started && !vus_ring_locate(s, n, errp)) {
            return false;
        }
    }
    if (!device_can_continue(s)) {
        vus_reset(s);
        if (!negotiate(s, errp)) {
            return false;
        }
    }
    for (uint32_t n = 0; n < s->num_rings; n++) {
        if (s->rings[n].started &&
            !virtio_queue_get_desc_addr(vus_vdev(s), n)) {
            set_ring(s, n);
        }
    }
    return true;
}

static bool add_ring(VhostUserServer *s, uint32_t n, Error **errp)
{
    VirtIODevice *vdev = vus_vdev(s);

    if (!vus_ring_locate(s, n, errp) || !vus_ring_watch(s, n, errp)) {
        return false;
    }
    set_ring(s, n);
    virtio_queue_enable(vdev, n);
    return true;
}

bool vus_run_reset_ring(VhostUserServer *s, uint32_t n)
{
    VirtIODevice *vdev = vus_vdev(s);

    /* The device cannot run without ring 0: see may_run(). */
    if (!s->running || !n ||
        !virtio_vdev_has_feature(vdev, VIRTIO_F_RING_RESET)) {
        return false;
    }
    vus_ring_unwatch(s, n);
    virtio_queue_reset(vdev, n);
    virtio_queue_set_vector(vdev, n, n);
    return true;
}

static bool start(VhostUserServer *s, Error **errp)
{
    VirtIODevice *vdev = vus_vdev(s);

    if (!set_rings(s, errp)) {
        return false;
    }
    trace_vhost_user_server_start(s);
    s->running = true;
    virtio_set_status(vdev, vdev->status | VIRTIO_CONFIG_S_DRIVER_OK);
    for (uint32_t n = 0; n < s->num_rings; n++) {
        if (s->rings[n].started && !vus_ring_watch(s, n, errp)) {
            vus_run_stop(s);
            return false;
        }
    }
    return true;
}

/*
 * A front end starts all rings, and then enables them one by one. So the device
 * waits until each started ring is enabled. Each device has ring 0.
 */
static bool may_run(VhostUserServer *s)
{
    for (uint32_t n = 0; n < s->num_rings; n++) {
        if (s->rings[n].started && !s->rings[n].enabled) {
            return false;
        }
    }
    return s->rings[0].started;
}

bool vus_run_update(VhostUserServer *s, uint32_t n, Error **errp)
{
    bool wanted = s->rings[n].started && s->rings[n].enabled;

    if (!s->running) {
        return may_run(s) ? start(s, errp) : true;
    }
    if (wanted == !!virtio_queue_get_desc_addr(vus_vdev(s), n)) {
        return true;
    }
    if (wanted) {
        return add_ring(s, n, errp);
    }
    vus_run_stop(s);
    return true;
}
