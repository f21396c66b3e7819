/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames to and from other ports of this host, by shared memory.
 *
 * The ports meet in a directory, where each listens on a socket that is named
 * by its MAC address. Whoever sends to a MAC address connects there, and gets
 * the memory of a ring that it alone writes to. Until it has that, after the
 * other one has gone, and for multicast, frames take the netdev. The sockets
 * wake the other side, and tell when it ends.
 *
 * Any process that may open the directory's sockets may send to a port, as any
 * peer may on a network. A port does not trust it, nor whoever it sends to: who
 * breaks the rules is cut off.
 *
 * Context: everything here is called between RdmaRoceShmOps.enter() and
 * leave(), or as these do, and calls back so.
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_H
#define BACKENDS_RDMA_ROCE_SHM_H

#include "net/net.h"

/* Others that a port sends to or receives from at once. */
#define ROCE_SHM_MAX_PEERS 64
/*
 * A receiver that has no room holds the port up. It may do so for this long,
 * and gets the time back at a quarter of the speed of the clock; then it is cut
 * off.
 */
#define ROCE_SHM_PATIENCE_MS 100
/* After so long a port that was not there, or was cut off, is tried again. */
#define ROCE_SHM_RETRY_MS 500
/* How long a port looks for frames before it sleeps, by default: a wake-up. */
#define ROCE_SHM_POLL_MAX_NS 10000

typedef struct RdmaRoceShm RdmaRoceShm;

typedef struct RdmaRoceShmOps {
    /*
     * What comes by events is between these two; if enter() fails, the event
     * comes again after rdma_roce_shm_retry().
     */
    bool (*enter)(void *opaque);
    void (*leave)(void *opaque);
    /* There are frames: call rdma_roce_shm_receive(), but not from here. */
    void (*ready)(void *opaque);
    /*
     * A frame. It may change meanwhile. @checked: it has an ICRC. Called by
     * rdma_roce_shm_receive(). Returns false if that shall end behind it.
     */
    bool (*receive)(void *opaque, const uint8_t *frame, size_t size,
                    bool checked);
    /* After rdma_roce_shm_send() has returned ROCE_SHM_WAIT: go on. */
    void (*sent)(void *opaque);
} RdmaRoceShmOps;

typedef enum RdmaRoceShmSent {
    ROCE_SHM_SENT,
    ROCE_SHM_NOT_THERE,             /* the frame has to take the netdev */
    ROCE_SHM_WAIT,                  /* the frame is queued, send no others */
} RdmaRoceShmSent;

/* Can sockets have paths in @dir? */
bool rdma_roce_shm_check_dir(const char *dir, Error **errp);

/*
 * @dir is copied. No memory is shared before rdma_roce_shm_open(). Events come
 * in @ctx, that of an iothread, or if it is NULL in the main loop. @poll_max:
 * nanoseconds to look for frames before the port sleeps, 0: not at all.
 */
RdmaRoceShm *rdma_roce_shm_new(const char *dir, AioContext *ctx,
                               uint32_t poll_max, const RdmaRoceShmOps *ops,
                               void *opaque);
/*
 * With an iothread: after rdma_roce_shm_close(), when what had begun in @ctx
 * then has ended.
 */
void rdma_roce_shm_free(RdmaRoceShm *shm);

/*
 * Listen as @mac and as @nic_mac, and send. If that cannot be done, the user is
 * warned, and all frames take the netdev.
 */
void rdma_roce_shm_open(RdmaRoceShm *shm, const MACAddr *mac,
                        const MACAddr *nic_mac);
/* Leave all peers. Frames that were not received yet are lost. */
void rdma_roce_shm_close(RdmaRoceShm *shm);

/* In @ctx, when RdmaRoceShmOps.enter() has failed: it succeeds now. */
void rdma_roce_shm_retry(RdmaRoceShm *shm);

/* Is the port with this MAC address reached by memory now? */
bool rdma_roce_shm_reaches(RdmaRoceShm *shm, const uint8_t *mac);
/* Send the Ethernet frame in @iov; @checked: it has an ICRC. */
RdmaRoceShmSent rdma_roce_shm_send(RdmaRoceShm *shm, const struct iovec *iov,
                                   int iovcnt, size_t size, bool checked);
/* Wake those who have got frames. */
void rdma_roce_shm_flush(RdmaRoceShm *shm);
/*
 * Receive what is there, as far as @budget goes, in bytes copied, which becomes
 * less by that. False: there may be more.
 */
bool rdma_roce_shm_receive(RdmaRoceShm *shm, uint32_t *budget);
/*
 * Nothing is left to do: have senders wake the port from now on. If frames
 * came soon after each other of late, it looks for more before, for a while
 * that is over at @until, a time of get_clock(). @cannot_send: nothing can be
 * sent until a frame comes. True: there are some, receive them.
 */
bool rdma_roce_shm_rest(RdmaRoceShm *shm, bool cannot_send, int64_t until);

/* Frames so far, by memory */
uint64_t rdma_roce_shm_tx_frames(const RdmaRoceShm *shm);
uint64_t rdma_roce_shm_rx_frames(const RdmaRoceShm *shm);

#endif /* BACKENDS_RDMA_ROCE_SHM_H */
