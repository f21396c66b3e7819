/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Declarations for all files of shared memory: a port, its outboxes (ports that
 * it sends to) and its inboxes (ports that send to it).
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_INT_H
#define BACKENDS_RDMA_ROCE_SHM_INT_H

#include "qemu/aio.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "shm.h"
#include "ring.h"

typedef struct RoceShmOutbox RoceShmOutbox;

/* A port that sends frames to this port */
typedef struct RoceShmInbox {
    RdmaRoceShm *shm;
    int fd;                         /* -1: it has ended */
    RoceShmRing ring;
    bool awake;                     /* the sender need not wake this port */
    bool gone;                      /* a last event may still come */
    bool waits;                     /* the event of @fd waits for the lock */
} RoceShmInbox;

struct RdmaRoceShm {
    char *dir;
    AioContext *ctx;                /* of an iothread, or NULL */
    const RdmaRoceShmOps *ops;
    void *opaque;
    int fd;                         /* listens; -1: closed */
    QEMUTimer *listen_again;        /* pending: @fd has no handler until then */
    bool warned;
    bool waits;                     /* the event of @fd waits for the lock */
    bool any_waits;                 /* the event of some socket waits for it */
    char *path, *nic_path;          /* of @fd */
    ino_t ino;
    GHashTable *outboxes;           /* by MAC address */
    RoceShmOutbox *last;            /* result of the last look-up */
    QSIMPLEQ_HEAD(, RoceShmOutbox) to_wake;
    GPtrArray *inboxes;
    unsigned next;                  /* inbox to serve first */
    int64_t poll_max;               /* ns to poll before the port sleeps */
    int64_t slept_at;               /* ns, when it last went to sleep */
    unsigned polls_left;            /* polls without a frame before it stops */
    uint64_t tx_frames, rx_frames;
    size_t tx_size, rx_size;        /* of the last frame */
};

/* event.c: sockets and timers, in the iothread or main loop */

/* Milliseconds */
int64_t rdma_roce_shm_now(void);
QEMUTimer *rdma_roce_shm_timer_new(RdmaRoceShm *shm, QEMUTimerCB *cb,
                                   void *opaque);
/* @readable may be NULL. */
void rdma_roce_shm_set_handler(RdmaRoceShm *shm, int fd, IOHandler *readable,
                               void *opaque);
/* Stop using *@fd. It is closed when no handler can run any more. */
void rdma_roce_shm_close_socket(RdmaRoceShm *shm, int *fd);
/*
 * Enter in the handler of socket @fd. False: another thread has entered. The
 * event would then come again at once, and an iothread of high priority would
 * keep the other thread from the CPU. So this function removes the handler and
 * sets *@waits; rdma_roce_shm_retry() installs the handler again.
 */
bool rdma_roce_shm_enter(RdmaRoceShm *shm, const int *fd, bool *waits);
/* Clear *@waits. Returns whether it was set. */
bool rdma_roce_shm_stop_waiting(bool *waits);
/*
 * Free something whose events may be in progress in the iothread: they are over
 * when the iothread calls @free_now.
 */
void rdma_roce_shm_free_later(RdmaRoceShm *shm, QEMUBHFunc *free_now,
                              void *opaque);

/* outbox.c: ports that frames are sent to */

/* Install the handler of the socket again if its event waits. */
void rdma_roce_shm_outbox_retry(RoceShmOutbox *ob);
/* Function of the hash table */
void rdma_roce_shm_outbox_free(void *opaque);

/* inbox.c: ports that frames come from */

/* Install the handlers of sockets again whose events wait. */
void rdma_roce_shm_inboxes_retry(RdmaRoceShm *shm);
/* Takes @fd, an accepted socket. */
void rdma_roce_shm_inbox_new(RdmaRoceShm *shm, int fd);
/* Function of the array */
void rdma_roce_shm_inbox_free(void *opaque);

#endif /* BACKENDS_RDMA_ROCE_SHM_INT_H */
