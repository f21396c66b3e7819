/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings as the front end describes them, and their eventfds
 */
#include "qemu/osdep.h"
#include <glib-unix.h>
#include <poll.h>
#include <sys/epoll.h>
#include "qapi/error.h"
#include "server.h"

void vus_rings_init(VhostUserServer *s)
{
    for (uint32_t n = 0; n < VUS_MAX_RINGS; n++) {
        s->rings[n] = (VusRing) {
            .kick_fd = -1,
            .call_fd = -1,
            .err_fd = -1,
        };
    }
}

void vus_rings_clear(VhostUserServer *s)
{
    for (uint32_t n = 0; n < VUS_MAX_RINGS; n++) {
        vus_fd_close(&s->rings[n].kick_fd);
        vus_fd_close(&s->rings[n].call_fd);
        vus_fd_close(&s->rings[n].err_fd);
    }
    vus_rings_init(s);
}

static bool is_eventfd(int fd)
{
    g_autofree char *name = g_strdup_printf("/proc/self/fd/%d", fd);
    g_autofree char *target = g_file_read_link(name, NULL);

    return !g_strcmp0(target, "anon_inode:[eventfd]");
}

bool vus_ring_set_fd(int *place, int fd, Error **errp)
{
    vus_fd_close(place);
    /*
     * Set O_NONBLOCK, which both sides share, again: the front end may rely on
     * it, and QIOChannel clears it on receipt.
     */
    if (fd >= 0 && (!is_eventfd(fd) ||
                    !g_unix_set_fd_nonblocking(fd, true, NULL))) {
        close(fd);
        error_setg(errp, "the file descriptor is not an eventfd");
        return false;
    }
    *place = fd;
    return true;
}

/*
 * The server logs all writes by guest addresses. Front ends that log a used
 * ring elsewhere have an IOMMU, which the server does not offer.
 */
static bool check_log(const VusRing *ring, uint32_t n, Error **errp)
{
    const struct vhost_vring_addr *addr = &ring->addr;

    if ((addr->flags & 1u << VHOST_VRING_F_LOG) &&
        addr->log_guest_addr != ring->used) {
        error_setg(errp, "ring %u logs writes to its used ring at 0x%" PRIx64
                   ": expected its guest address 0x%" PRIx64, n,
                   (uint64_t)addr->log_guest_addr, (uint64_t)ring->used);
        return false;
    }
    return true;
}

bool vus_ring_locate(VhostUserServer *s, uint32_t n, Error **errp)
{
    VusRing *ring = &s->rings[n];
    const struct vhost_vring_addr *addr = &ring->addr;
    uint32_t most = virtio_queue_get_max_num(vus_vdev(s), n);
    /* Including the words for VIRTIO_F_EVENT_IDX */
    uint64_t avail_len = sizeof(uint16_t) * (3 + (uint64_t)ring->num);
    uint64_t used_len = sizeof(uint16_t) * 3 + 8 * (uint64_t)ring->num;

    if (!is_power_of_2(ring->num) || ring->num > most) {
        error_setg(errp, "ring %u has %u entries: expected a power of 2 up to "
                   "%u", n, ring->num, most);
        return false;
    }
    /* QEMU takes a ring with descriptors at guest address 0 for unused. */
    if (!vus_memory_find(s, addr->desc_user_addr, 16 * (uint64_t)ring->num,
                         &ring->desc) ||
        !vus_memory_find(s, addr->avail_user_addr, avail_len, &ring->avail) ||
        !vus_memory_find(s, addr->used_user_addr, used_len, &ring->used) ||
        !ring->desc || (ring->desc & 15) || (ring->avail & 1) ||
        (ring->used & 3)) {
        error_setg(errp, "ring %u with %u entries has descriptors at 0x%" PRIx64
                   ", available ring at 0x%" PRIx64 ", used ring at 0x%" PRIx64
                   ": expected them in the memory of the guest, aligned to 16, "
                   "2 and 4, the descriptors not at address 0", n, ring->num,
                   (uint64_t)addr->desc_user_addr,
                   (uint64_t)addr->avail_user_addr,
                   (uint64_t)addr->used_user_addr);
        return false;
    }
    return check_log(ring, n, errp);
}

bool vus_ring_watch(VhostUserServer *s, uint32_t n, Error **errp)
{
    /*
     * Each kick is an edge, so that the server never reads the counter. A read
     * could block, because the front end may clear O_NONBLOCK.
     */
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u32 = n };

    if (epoll_ctl(s->kicks, EPOLL_CTL_ADD, s->rings[n].kick_fd, &event) < 0) {
        error_setg_errno(errp, errno, "cannot wait for kicks of ring %u", n);
        return false;
    }
    return true;
}

void vus_ring_unwatch(VhostUserServer *s, uint32_t n)
{
    if (s->rings[n].kick_fd >= 0) {
        epoll_ctl(s->kicks, EPOLL_CTL_DEL, s->rings[n].kick_fd, NULL);
    }
}

/*
 * Do not write to a full eventfd, which has signalled already. The write could
 * block, because the front end may clear O_NONBLOCK, which both sides share.
 */
static void signal_fd(int fd)
{
    static const uint64_t one = 1;
    struct pollfd pfd = { .fd = fd, .events = POLLOUT };

    if (fd >= 0 && poll(&pfd, 1, 0) > 0 && (pfd.revents & POLLOUT)) {
        ssize_t ignored G_GNUC_UNUSED = write(fd, &one, sizeof(one));
    }
}

void vus_ring_call(VhostUserServer *s, uint32_t n)
{
    signal_fd(s->rings[n].call_fd);
}

void vus_rings_fail(VhostUserServer *s)
{
    for (uint32_t n = 0; n < s->num_rings; n++) {
        signal_fd(s->rings[n].err_fd);
    }
}
