/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user-server: a virtio transport whose driver is at the other end of a
 * vhost-user socket. A subclass contains the device, which can be any virtio
 * device.
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
/* Regions in one SET_MEM_TABLE, and in total with ADD_MEM_REG */
#define VUS_TABLE_REGIONS 8
#define VUS_MAX_REGIONS 509
/* Bytes of the configuration space in one message: the protocol's limit */
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
        struct {
            uint64_t size;
            uint64_t offset;        /* in the file */
        } log;
        struct {
            uint32_t direction;
            uint32_t phase;
        } state;
    } body;
    int fds[VUS_MAX_FDS];           /* -1: a handler owns the descriptor */
    uint32_t nfds;
    bool reply;                     /* send the body as the reply */
    int reply_fd;                   /* goes with the reply; -1 if none */
} VusMessage;

/* A part of a file, in memory */
typedef struct VusMap {
    void *pages;                    /* or NULL */
    size_t len;                     /* of @pages */
    uint8_t *data;                  /* in @pages */
} VusMap;

typedef struct VusMemory VusMemory;

typedef QLIST_HEAD(, VusMemory) VusMemoryList;

typedef struct VusRing {
    uint32_t num;
    uint32_t base;
    struct vhost_vring_addr addr;
    bool started;                   /* from SET_VRING_KICK to GET_VRING_BASE */
    bool enabled;
    int kick_fd;                    /* -1 if not set, like the next two */
    int call_fd;
    int err_fd;
    /* Guest addresses of @addr, from vus_ring_locate() */
    hwaddr desc, avail, used;
} VusRing;

/* The bitmap of pages that the device has written, for migration */
typedef struct VusLog {
    VusMap map;
    uint64_t size;                  /* bytes at map.data */
    QEMUTimer *timer;               /* or NULL */
} VusLog;

struct VhostUserServerClass {
    DeviceClass parent_class;

    /* Realize the device by vhost_user_server_plug(), when the bus exists. */
    void (*plug)(VhostUserServer *s, Error **errp);
    /* The state of the device, for migration by the front end */
    const VMStateDescription *state;
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
    VusMessage msg;                 /* the message that is being received */
    size_t received;                /* bytes of @msg */

    uint64_t features;              /* from SET_FEATURES */
    uint64_t protocol_features;
    VusMemoryList memory;
    bool memory_removed;            /* and it may not be free yet */
    bool tracks_writes;             /* to memory */
    VusLog log;
    int state_fd;                   /* file with the device's state, or -1 */
    bool loads_state;               /* the front end writes that file */
    VusRing rings[VUS_MAX_RINGS];
    uint32_t num_rings;
    int kicks;                      /* epoll of each running ring's kick_fd */
    int backend_fd;                 /* socket of the server's requests, or -1 */
    bool running;
};

/* Realize @vdev on the bus of @s. VhostUserServerClass.plug() calls this. */
void vhost_user_server_plug(VhostUserServer *s, VirtIODevice *vdev,
                            Error **errp);

#endif
