/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user-server: a virtio transport whose driver is at the other end of a
 * vhost-user socket. A subclass has the device, which can be any virtio device.
 */
#ifndef INCLUDE_HW_VIRTIO_VHOST_USER_SERVER_H
#define INCLUDE_HW_VIRTIO_VHOST_USER_SERVER_H

#include <linux/vhost.h>
#include "hw/virtio/virtio-bus.h"
#include "hw/virtio/virtio.h"
#include "io/net-listener.h"
#include "qom/object.h"
#include "system/memory.h"

#define TYPE_VHOST_USER_SERVER "vhost-user-server"
OBJECT_DECLARE_TYPE(VhostUserServer, VhostUserServerClass, VHOST_USER_SERVER)

/* The index of a ring has eight bits in SET_VRING_KICK and SET_VRING_CALL. */
#define VUS_MAX_RINGS 256
#define VUS_MAX_FDS 8
/* What SET_MEM_TABLE can describe, and what ADD_MEM_REG may add */
#define VUS_TABLE_REGIONS 8
#define VUS_MAX_REGIONS 509
/* The limit of the protocol */
#define VUS_MAX_CONFIG 256

/* Messages, in the byte order of the host */

typedef struct VusHeader {
    uint32_t request;
    uint32_t flags;
    uint32_t size;
} VusHeader;

typedef struct VusRegion {
    uint64_t guest_addr;
    uint64_t size;
    uint64_t user_addr;
    uint64_t offset;                /* in the file */
} VusRegion;

typedef struct VusMessage {
    VusHeader header;
    union {
        uint64_t u64;
        struct vhost_vring_state ring;
        struct vhost_vring_addr addr;
        struct {
            uint32_t count;
            uint32_t padding;
            VusRegion regions[VUS_TABLE_REGIONS];
        } table;
        struct {
            uint64_t padding;
            VusRegion region;
        } slot;
        struct {
            uint32_t offset;
            uint32_t size;
            uint32_t flags;
            uint8_t data[VUS_MAX_CONFIG];
        } config;
    } body;
    int fds[VUS_MAX_FDS];           /* -1: a handler has taken it */
    uint32_t nfds;
    bool reply;                     /* the handler has filled the body */
} VusMessage;

typedef struct VusMemory VusMemory;

typedef QLIST_HEAD(, VusMemory) VusMemoryList;

typedef struct VusRing {
    uint32_t num;
    uint32_t base;
    struct vhost_vring_addr addr;
    bool started;                   /* from SET_VRING_KICK to GET_VRING_BASE */
    bool enabled;
    int kick_fd;                    /* or -1, like the others */
    int call_fd;
    int err_fd;
    /* @addr in guest memory, for the start */
    hwaddr desc, avail, used;
} VusRing;

struct VhostUserServerClass {
    DeviceClass parent_class;

    /* Realizes the device. The bus is there. */
    void (*plug)(VhostUserServer *s, Error **errp);
};

struct VhostUserServer {
    DeviceState parent_obj;

    char *path;
    bool ring_reset;
    VirtioBusState bus;
    MemoryRegion root;
    MemoryRegion first_block;       /* see vus_memory_init() */
    AddressSpace as;

    QIONetListener *listener;
    QIOChannelSocket *client;       /* or NULL */
    VusMessage msg;                 /* the one that arrives */
    size_t received;                /* bytes of it */

    uint64_t features;              /* of SET_FEATURES */
    uint64_t protocol_features;
    VusMemoryList memory;
    bool memory_removed;            /* and it may not be free yet */
    VusRing rings[VUS_MAX_RINGS];
    uint32_t num_rings;
    int kicks;                      /* an epoll of kick_fd of running rings */
    int backend_fd;                 /* messages to the front end, or -1 */
    bool running;
};

/* For VhostUserServerClass.plug() */
void vhost_user_server_plug(VhostUserServer *s, VirtIODevice *vdev,
                            Error **errp);

#endif
