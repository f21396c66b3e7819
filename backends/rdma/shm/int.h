/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of shared memory share: a port, the ports that it sends to
 * and those that send to it.
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_INT_H
#define BACKENDS_RDMA_ROCE_SHM_INT_H

#include "block/aio.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "shm.h"
#include "ring.h"

typedef struct RoceShmOutbox RoceShmOutbox;

/* A port that frames come from. */
typedef struct RoceShmInbox {
    RdmaRoceShm *shm;
    int fd;                         /* -1: it has ended */
    RoceShmRing ring;
    bool awake;                     /* its sender need not wake the port */
    bool gone;                      /* an event may still be on its way */
    bool waits;                   /* its socket does, for the lock */
} RoceShmInbox;

struct RdmaRoceShm {
    char *dir;
    AioContext *ctx;                /* of an iothread, or NULL */
    const RdmaRoceShmOps *ops;
    void *opaque;
    int fd;                         /* listens; -1: closed */
    QEMUTimer *listen_again;        /* does so only then */
    bool warned;
    bool waits;                   /* its socket does, for the lock */
    bool any_waits;               /* this or other sockets */
    char *path, *nic_path;          /* of its socket */
    ino_t ino;
    GHashTable *outboxes;           /* by MAC address */
    RoceShmOutbox *last;            /* found last */
    QSIMPLEQ_HEAD(, RoceShmOutbox) to_wake;
    GPtrArray *inboxes;
    unsigned next;                  /* inbox that is looked at first */
    int64_t poll_max;               /* ns to look for frames, before ... */
    int64_t rested_at;              /* ... it sleeps, which was then */
    unsigned polls_left;            /* unless that was in vain */
    uint64_t tx_frames, rx_frames;
    size_t tx_size, rx_size;        /* of the last one */
};

/* event.c: sockets and timers, in the iothread or main loop */

/* Milliseconds */
int64_t rdma_roce_shm_now(void);
QEMUTimer *rdma_roce_shm_timer_new(RdmaRoceShm *shm, QEMUTimerCB *cb,
                                   void *opaque);
/* @readable: NULL for nobody */
void rdma_roce_shm_set_handler(RdmaRoceShm *shm, int fd, IOHandler *readable,
                               void *opaque);
/* It is not used any more, but closed only when no event is under way. */
void rdma_roce_shm_close_socket(RdmaRoceShm *shm, int *fd);
/*
 * Enter for an event of the socket @fd, in its handler. False: somebody else
 * has entered. The event would come again at once, so that the iothread would
 * not sleep, and if it goes before other threads, who has entered might get no
 * processor. So the socket has no handler then until rdma_roce_shm_retry(),
 * which gives it back to what is @waits.
 */
bool rdma_roce_shm_enter(RdmaRoceShm *shm, const int *fd, bool *waits);
/* Returns whether @waits was so, and ends it. */
bool rdma_roce_shm_stop_waiting(bool *waits);
/*
 * Events of what goes away may be on their way in the iothread. They are over
 * when that comes to this.
 */
void rdma_roce_shm_free_later(RdmaRoceShm *shm, QEMUBHFunc *free_it,
                              void *opaque);

/* outbox.c: who frames are sent to */

/* Let the socket have its events again, if they were put off. */
void rdma_roce_shm_outbox_retry(RoceShmOutbox *ob);
/* Functions of the hash table */
guint rdma_roce_shm_outbox_hash(gconstpointer key);
gboolean rdma_roce_shm_outbox_equal(gconstpointer a, gconstpointer b);
void rdma_roce_shm_outbox_free(void *opaque);

/* inbox.c: who frames come from */

/* Let sockets have their events again, if they were put off. */
void rdma_roce_shm_inboxes_retry(RdmaRoceShm *shm);
/* Takes @fd, of a socket that was accepted. */
void rdma_roce_shm_inbox_new(RdmaRoceShm *shm, int fd);
/* Function of the array */
void rdma_roce_shm_inbox_free(void *opaque);

#endif /* BACKENDS_RDMA_ROCE_SHM_INT_H */
