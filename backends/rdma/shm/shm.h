/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames between ports of one host by shared memory.
 *
 * The ports meet in a directory, where each listens on a socket named after its
 * MAC address. A sender connects to the socket of a MAC address and gets the
 * memory of a ring that only this sender writes to. Until then, after the
 * receiver has gone, and for multicast, frames take the netdev. The sockets
 * also carry wake-ups, and report the end of the other side.
 *
 * Any process that may open a port's socket may send to it, like any peer on a
 * network. Ports do not trust each other: one that breaks the rules is cut off.
 *
 * Context: functions are called, and call back, between RdmaRoceShmOps.enter()
 * and leave(), or in another section that has entered the backend.
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_H
#define BACKENDS_RDMA_ROCE_SHM_H

#include "net/net.h"

/* Ports that a port sends to, and that it receives from, at most */
#define ROCE_SHM_MAX_PEERS 64
/*
 * A receiver without room blocks the port. It is cut off when it has done so
 * for this long. It regains a quarter of the time that passes otherwise.
 */
#define ROCE_SHM_PATIENCE_MS 100
/* When to try a port again that was absent or cut off */
#define ROCE_SHM_RETRY_MS 500
/* How long a port polls before it sleeps, by default: the cost of a wake-up */
#define ROCE_SHM_POLL_MAX_NS 10000

typedef struct RdmaRoceShm RdmaRoceShm;

typedef struct RdmaRoceShmOps {
    /*
     * Handlers of events run between these two. If enter() fails, the event
     * comes again after rdma_roce_shm_retry().
     */
    bool (*enter)(void *opaque);
    void (*leave)(void *opaque);
    /* There are frames: call rdma_roce_shm_receive(), here or soon. */
    void (*ready)(void *opaque);
    /*
     * rdma_roce_shm_receive() has a frame. The sender may change it meanwhile.
     * @checked: it has an ICRC. Returns false to stop after this frame.
     */
    bool (*receive)(void *opaque, const uint8_t *frame, size_t size,
                    bool checked);
    /* The frame of a send that returned ROCE_SHM_WAIT is sent: continue. */
    void (*sent)(void *opaque);
} RdmaRoceShmOps;

typedef enum RdmaRoceShmSent {
    ROCE_SHM_SENT,
    ROCE_SHM_NOT_THERE,             /* the frame must take the netdev */
    ROCE_SHM_WAIT,                  /* the frame is queued; send no other */
} RdmaRoceShmSent;

/* Check that @dir exists and that paths of sockets in it are short enough. */
bool rdma_roce_shm_check_dir(const char *dir, Error **errp);

/*
 * Copies @dir. Shares no memory before rdma_roce_shm_open(). Events come in the
 * context @ctx of an iothread, or if that is NULL in the main loop. @poll_max:
 * nanoseconds to poll before the port sleeps; 0: none.
 */
RdmaRoceShm *rdma_roce_shm_new(const char *dir, AioContext *ctx,
                               uint32_t poll_max, const RdmaRoceShmOps *ops,
                               void *opaque);
/*
 * With an iothread, call rdma_roce_shm_close() before, and wait until handlers
 * in @ctx have ended.
 */
void rdma_roce_shm_free(RdmaRoceShm *shm);

/*
 * Listen as @mac and as @nic_mac, and allow sending. On failure warn the user;
 * all frames then take the netdev.
 */
void rdma_roce_shm_open(RdmaRoceShm *shm, const MACAddr *mac,
                        const MACAddr *nic_mac);
/* Disconnect from all ports. Frames that were not received are lost. */
void rdma_roce_shm_close(RdmaRoceShm *shm);

/* In @ctx: RdmaRoceShmOps.enter(), which has failed, succeeds now. */
void rdma_roce_shm_retry(RdmaRoceShm *shm);

/* Do frames to this MAC address take shared memory now? */
bool rdma_roce_shm_reaches(RdmaRoceShm *shm, const uint8_t *mac);
/* Send the Ethernet frame in @iov; @checked: it has an ICRC. */
RdmaRoceShmSent rdma_roce_shm_send(RdmaRoceShm *shm, const struct iovec *iov,
                                   int iovcnt, size_t size, bool checked);
/* Wake receivers that have new frames. */
void rdma_roce_shm_flush(RdmaRoceShm *shm);
/*
 * Receive frames up to *@budget, in bytes copied, and subtract their cost from
 * it. False: there may be more frames.
 */
bool rdma_roce_shm_receive(RdmaRoceShm *shm, uint32_t *budget);
/*
 * No work is left: senders must wake the port from now on. If recent frames
 * came in quick succession, poll before that, at most until @until, a time of
 * get_clock(). @cannot_send: no frame can be sent until one comes. True: there
 * are frames to receive.
 */
bool rdma_roce_shm_idle(RdmaRoceShm *shm, bool cannot_send, int64_t until);

/* Frames so far by shared memory */
void rdma_roce_shm_frames(const RdmaRoceShm *shm, uint64_t *tx, uint64_t *rx);

#endif /* BACKENDS_RDMA_ROCE_SHM_H */
