/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations for all files of the RoCE backend. @rb is an rdma-roce object
 * that a device is attached to.
 */
#ifndef BACKENDS_RDMA_ROCE_INT_H
#define BACKENDS_RDMA_ROCE_INT_H

#include "migration/vmstate.h"
#include "qom/object.h"
#include "rdma/roce.h"
#include "frames.h"
#include "../net/netdev.h"
#include "../shm/shm.h"
#include "system/rdma-backend.h"

#define TYPE_RDMA_BACKEND_ROCE "rdma-roce"
OBJECT_DECLARE_SIMPLE_TYPE(RdmaRoce, RDMA_BACKEND_ROCE)

/* late.c: what an overdue request waits for */
typedef struct RdmaRoceLate {
    /* used by the main loop */
    QEMUBH *bh;
    int64_t since;                  /* waits for frames that came by then */
    unsigned turns;                 /* since then; 0: not waiting */
    unsigned quiet;                 /* how many of the last had no frame */
    bool any_frame;                 /* in this turn */
    /* used after entering the backend */
    int64_t netdev_heard;           /* the netdev has no frame from before */
    int64_t heard;                  /* the engine has all frames from before */
    unsigned engine_turns;          /* since netdev_heard with frames left */
} RdmaRoceLate;

/* Bits of RdmaBackend.pending: run the engine; update the port */
#define ROCE_PENDING_RUN RDMA_PENDING_BACKEND(0)
#define ROCE_PENDING_PORT RDMA_PENDING_BACKEND(1)

struct RdmaRoce {
    RdmaBackend parent_obj;

    /* properties */
    char *netdev_id;
    uint32_t mtu;
    MACAddr mac;
    uint32_t dcqcn_rate;            /* Mbit/s; 0: no DCQCN */
    char *shm_dir;                  /* NULL: none */
    bool shm_icrc;
    uint32_t shm_poll_max;          /* ns */

    /* while a device is attached; attach() clears all from here on */
    RoceEngine *engine;
    RdmaRoceNet *net;
    RdmaRoceShm *shm;               /* NULL: none */
    RdmaRoceNetPort port;
    bool port_off;                  /* the device has set it down */
    QEMUBH *bh;
    QEMUBH *turn;                   /* starts the next turn */
    QEMUTimer *timer;
    int64_t armed;                  /* when the timer fires */
    RdmaRoceLate late;
    bool running;                   /* the VM runs and has a driver */
    bool in_engine;                 /* the engine must not be entered again */
    bool woken;                     /* wake() was called while in_engine */
    bool net_blocked;               /* the netdev takes no more frames */
    bool shm_blocked;               /* a frame waits for room in a ring */
    bool ran_on_rx;                 /* in this turn of the main loop */
    bool rx_corked;                 /* the netdev may have more frames */
    bool rx_entered;                /* the backend was entered for them */
    int64_t rx_time;                /* when it was entered */
    uint64_t work_before;           /* roce_work() when this turn began */
    uint64_t shm_rx_end;            /* roce_work() at which sending starts */
    RdmaRoceFrames deferred;        /* received, for the engine */
    /* With an iothread: */
    RdmaRoceFrames leaving;         /* frames for the netdev */
    QEMUBH *net_bh;                 /* main loop: sends these frames */
    bool net_waits;                 /* net_bh waits for the netdev's queue */
    RoceTxFrame tx;
    uint8_t rx_buf[ROCE_MAX_FRAME];
};

static inline RoceEngine *rdma_roce_engine(RdmaBackend *rb)
{
    return container_of(rb, RdmaRoce, parent_obj)->engine;
}

/* ctrl.c: objects and work requests */
void rdma_roce_ctrl_class_init(RdmaBackendClass *rbc);

/* ops.c: callbacks of an engine whose opaque pointer is the RdmaRoce */
RoceOps rdma_roce_ops(const RdmaBackend *rb);

/* props.c */
void rdma_roce_add_properties(ObjectClass *oc);

/* run.c: when the engine works */
int64_t rdma_roce_now(void);
/* Start the timer and bottom halves of a device that attaches. */
void rdma_roce_run_begin(RdmaRoce *r);
/* Stop them, and wait for the iothread. Without the lock; shm is closed. */
void rdma_roce_run_end(RdmaRoce *r);
/* Run the engine: frames, timers, and sends as far as the netdev takes them. */
void rdma_roce_run(RdmaBackend *rb);
/*
 * Have the engine run after the thread has left the backend, unless it runs
 * before.
 */
void rdma_roce_run_soon(RdmaRoce *r);
/* Callbacks of the netdev, see RdmaRoceNetOps */
bool rdma_roce_on_receive(void *opaque, const struct iovec *iov, int iovcnt,
                          size_t offset);
void rdma_roce_on_cork(void *opaque, bool cork);
void rdma_roce_on_sent(void *opaque);
extern const RdmaRoceShmOps rdma_roce_shm_ops;

/* late.c: timeouts of requests whose answers are read late */
void rdma_roce_late_begin(RdmaRoce *r);
/* In the main loop, after the engine has stopped */
void rdma_roce_late_end(RdmaRoce *r);
/*
 * Run the engine's timers. The backend is entered. @took_all: the engine has
 * just taken all frames from shared memory and all deferred frames.
 */
void rdma_roce_late_expire(RdmaRoce *r, int64_t now, bool took_all);

/* vmstate.c */
extern const VMStateDescription vmstate_rdma_roce;

#endif
