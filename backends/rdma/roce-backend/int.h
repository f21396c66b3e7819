/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the RoCE backend share. @rb is an rdma-roce that a device
 * is attached to.
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

/* late.c: what a request that is overdue waits for */
typedef struct RdmaRoceLate {
    /* the main loop's */
    QEMUBH *bh;
    int64_t since;                  /* waits for frames that came by then */
    unsigned turns;                 /* since then; 0: does not wait */
    unsigned quiet;                 /* of these the last, without a frame */
    bool any_frame;                 /* in this turn */
    /* the engine's */
    int64_t netdev_heard;           /* the netdev has none from before */
    int64_t heard;                  /* all of these are in the engine */
    unsigned engine_turns;          /* since netdev_heard, that left some */
} RdmaRoceLate;

/* Bits of RdmaBackend.pending: run the engine; the netdev has changed */
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

    /* while a device is attached */
    RoceEngine *engine;
    RdmaRoceNet *net;
    RdmaRoceShm *shm;               /* NULL: none */
    RdmaRoceNetPort port;
    bool port_off;                  /* the device wants it down */
    QEMUBH *bh;
    QEMUBH *turn;                   /* the next turn begins */
    QEMUTimer *timer;
    int64_t armed;                  /* when the timer fires */
    RdmaRoceLate late;
    bool running;                   /* the VM is */
    bool in_engine;                 /* do not call into the engine */
    bool woken;                     /* wake() was called while in_engine */
    bool net_blocked;               /* no frame more for the netdev */
    bool shm_blocked;               /* a frame waits for room in a ring */
    bool ran_on_rx;                 /* in this turn of the main loop */
    bool rx_corked;                 /* the netdev has more frames, maybe */
    bool rx_entered;                /* rdma_backend_enter() for them */
    int64_t rx_time;                /* when they came in */
    uint64_t work_before;           /* roce_work() when this turn began */
    uint64_t shm_rx_end;            /* then it is the turn of what is sent */
    RdmaRoceFrames deferred;        /* received, for the engine */
    RdmaRoceFrames leaving;         /* with an iothread: for the netdev */
    QEMUBH *net_bh;                 /* likewise: sends them */
    bool net_waits;                 /* likewise: for the netdev's queue */
    RoceTxFrame tx;
    uint8_t rx_buf[ROCE_MAX_FRAME];
};

static inline RoceEngine *rdma_roce_engine(RdmaBackend *rb)
{
    return container_of(rb, RdmaRoce, parent_obj)->engine;
}

/* The highest number of an MR or a window. */
static inline uint32_t rdma_roce_max_mrn(const RdmaBackend *rb)
{
    return rb->limits.max_mr + rb->limits.max_mw;
}

/* ctrl.c: objects and work requests */
void rdma_roce_ctrl_class_init(RdmaBackendClass *rbc);

/* ops.c: of an engine whose opaque pointer is the backend */
RoceOps rdma_roce_ops(const RdmaBackend *rb);

/* props.c */
void rdma_roce_add_properties(ObjectClass *oc);

/* run.c: when the engine works */
int64_t rdma_roce_now(void);
/* Nothing works before, and nothing after what had begun has ended. */
void rdma_roce_run_begin(RdmaRoce *r);
/* Not between rdma_backend_enter() and leave(). The memory is closed. */
void rdma_roce_run_end(RdmaRoce *r);
/* Let the engine send what it has, as far as the netdev takes it. */
void rdma_roce_run(RdmaRoce *r);
/* What the netdev calls, see RdmaRoceNetOps. */
bool rdma_roce_on_receive(void *opaque, const struct iovec *iov, int iovcnt,
                          size_t offset);
void rdma_roce_on_cork(void *opaque, bool cork);
void rdma_roce_on_sent(void *opaque);
extern const RdmaRoceShmOps rdma_roce_shm_ops;

/* late.c: answers that are read late */
void rdma_roce_late_begin(RdmaRoce *r);
/* In the main loop; the engine does not work any more. */
void rdma_roce_late_end(RdmaRoce *r);
/*
 * Run the timers of the engine, which is entered. @took_all: it has just taken
 * all frames that came by memory, or waited for this turn.
 */
void rdma_roce_late_expire(RdmaRoce *r, int64_t now, bool took_all);

/* vmstate.c */
extern const VMStateDescription vmstate_rdma_roce;

#endif
