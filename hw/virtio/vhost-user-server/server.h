/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interfaces between the files of vhost-user-server. No file trusts the front
 * end. All functions run in the main loop.
 */
#ifndef HW_VIRTIO_VHOST_USER_SERVER_H
#define HW_VIRTIO_VHOST_USER_SERVER_H

#include "hw/virtio/vhost-user-server.h"

static inline VirtIODevice *vus_vdev(VhostUserServer *s)
{
    return virtio_bus_get_device(&s->bus);
}

static inline void vus_fd_close(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

/* memory.c: guest memory, which the front end has shared */

/* Map @size bytes at @offset of a file. */
bool vus_map(VusMap *map, int fd, uint64_t offset, uint64_t size, Error **errp);
void vus_unmap(VusMap *map);
/* Call before the first region is added. */
bool vus_memory_init(VhostUserServer *s, Error **errp);
/* Replace all regions, or change nothing. */
bool vus_memory_replace(VhostUserServer *s, const VusRegion *regions,
                        const int *fds, uint32_t n, Error **errp);
bool vus_memory_add(VhostUserServer *s, const VusRegion *region, int fd,
                    Error **errp);
bool vus_memory_remove(VhostUserServer *s, const VusRegion *region,
                       Error **errp);
void vus_memory_clear(VhostUserServer *s);
/* Find @len bytes at @user_addr of the front end in one region. */
bool vus_memory_find(VhostUserServer *s, uint64_t user_addr, uint64_t len,
                     hwaddr *guest_addr);
/* Begin or end to track the pages that the device writes. */
void vus_memory_track(VhostUserServer *s, bool on);
#define VUS_LOG_PAGE 4096
typedef void VusWritten(VhostUserServer *s, hwaddr page);
/* Call @written for the number of each page written since the last call. */
void vus_memory_take_written(VhostUserServer *s, VusWritten *written);

/* log.c: the front end's bitmap of written pages */

/* Use the bitmap of @size bytes at @offset of a file. */
bool vus_log_set(VhostUserServer *s, int fd, uint64_t offset, uint64_t size,
                 Error **errp);
void vus_log_enable(VhostUserServer *s, bool on);
/* Add the pages that the device has written until now. */
void vus_log_update(VhostUserServer *s);
void vus_log_clear(VhostUserServer *s);

/* ring.c: rings, and the file descriptors that signal for them */

void vus_rings_init(VhostUserServer *s);
/* Close all descriptors, and reset the state of all rings. */
void vus_rings_clear(VhostUserServer *s);
/* Replace *@place by @fd, an eventfd or -1. Takes ownership of @fd. */
bool vus_ring_set_fd(int *place, int fd, Error **errp);
/* Translate the addresses of a ring. Fails unless it is in guest memory. */
bool vus_ring_locate(VhostUserServer *s, uint32_t n, Error **errp);
bool vus_ring_watch(VhostUserServer *s, uint32_t n, Error **errp);
void vus_ring_unwatch(VhostUserServer *s, uint32_t n);
/* Interrupt the guest for ring @n. */
void vus_ring_call(VhostUserServer *s, uint32_t n);
/* Signal the error eventfds of all rings: the device is broken. */
void vus_rings_fail(VhostUserServer *s);

/* run.c: start, stop and reset the device */

/* Vector of configuration changes. The vector of a ring is its number. */
#define VUS_CONFIG_VECTOR VIRTIO_QUEUE_MAX

/* VHOST_USER_F_PROTOCOL_FEATURES */
#define VUS_F_PROTOCOL 30
/* Features that only the front end uses */
#define VUS_FRONT_END_FEATURES (1ULL << VUS_F_PROTOCOL | \
                                1ULL << VHOST_F_LOG_ALL)
/* Features that the server offers to front ends */
uint64_t vus_features(VhostUserServer *s);
/* Features of the device if the front end accepts @features */
uint64_t vus_guest_features(uint64_t features);
/*
 * Start the device, stop it, or add ring @n to it, whichever the change of this
 * ring demands.
 */
bool vus_run_update(VhostUserServer *s, uint32_t n, Error **errp);
/*
 * Reset a ring that the front end stops while the device runs. Returns false if
 * this stop does not mean a reset: the caller has to stop the device.
 */
bool vus_run_reset_ring(VhostUserServer *s, uint32_t n);
void vus_run_stop(VhostUserServer *s);
void vus_reset(VhostUserServer *s);

/* state.c: the state of the device, for migration by the front end */

typedef enum VusDirection {
    VUS_SAVE,
    VUS_LOAD,
} VusDirection;
/*
 * Return a file that has the state of the stopped device, or that the front end
 * has to write the state to. vus_state_close() closes the file. Reports why the
 * state cannot be saved, and returns -1.
 */
int vus_state_open(VhostUserServer *s, VusDirection direction);
/*
 * The front end has read or written the file: load the state. Returns false if
 * the state is refused. The device is reset then.
 */
bool vus_state_finish(VhostUserServer *s);
void vus_state_close(VhostUserServer *s);

/* message.c: requests of the front end */

/* Check the header of a message, before its body arrives. */
bool vus_message_check(const VusMessage *msg, Error **errp);
/* Execute a request. Sets msg->reply if the front end expects a reply. */
bool vus_message_execute(VhostUserServer *s, VusMessage *msg, Error **errp);

/* socket.c: the connection with the front end */

bool vus_socket_listen(VhostUserServer *s, Error **errp);
void vus_socket_close(VhostUserServer *s);
/* Execute the messages that have arrived. */
void vus_socket_run(VhostUserServer *s);
/* Notify the front end that the configuration space has changed. */
void vus_socket_notify_config(VhostUserServer *s);

#endif
