/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Machines whose ports send by shared memory (rdma-roce,shm-dir=...). The test
 * holds the far end of each netdev, which gets all other frames, and may be the
 * other end of a ring.
 */
#ifndef TESTS_RDMA_SHM_TEST_H
#define TESTS_RDMA_SHM_TEST_H

#include <sys/resource.h>
#include <sys/un.h>
#include "libqos/virtio-rdma.h"
#include "rdma/wire.h"

#define SHM_LEN 1000                /* bytes of a datagram */

/* The ring, as docs/specs/virtio-rdma-shm.rst has it */
#define SHM_RING_HEAD 0
#define SHM_RING_WAITS 64
#define SHM_RING_TAIL 128
#define SHM_RING_AWAKE 192
#define SHM_RING_DATA 4096
#define SHM_RING_SIZE (1u << 20)
#define SHM_RECORD_LEN 8
#define SHM_RECORD_SKIP UINT32_MAX
#define SHM_RECORD_CHECKED 1
#define SHM_MAX_PEERS 64

typedef struct ShmWelcome {
    char magic[8];
    uint32_t version;
} ShmWelcome;

extern const ShmWelcome shm_welcome;

/* A machine with one port. */
typedef struct ShmNode {
    Wire wire;
    QRdmaHost *host;
    QRdma *dev;
    QRdmaMr *mr;
    QRdmaCq *scq, *rcq;
    QRdmaQp *qp;
} ShmNode;

/* One end of a ring, held by the test. */
typedef struct ShmRing {
    int fd;                         /* socket */
    int memory;
    uint8_t *mem;
    uint32_t pos;
    bool silent;                    /* does not wake the receiver */
} ShmRing;

/* Where ports meet */
extern char *shm_dir;

/* @options: more of rdma-roce; NULL: without shared memory */
ShmNode shm_node_start(int id, const char *options);
void shm_node_stop(ShmNode *n);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ShmNode, shm_node_stop)
/* The socket of port @id */
/* Set how many descriptors the QEMU of @n may have. */
void shm_limit_files(ShmNode *n, rlim_t files);
char *shm_node_path(int id);
struct sockaddr_un shm_address_of(int id);
/* Listen at the socket of port @id instead of the port. */
int shm_listen_as(int id, int type);

/* The property shm-tx-frames or shm-rx-frames */
uint64_t shm_frames(ShmNode *n, const char *which);
/* Send a datagram to @to; @av: its address, if not the usual one. */
void shm_post_send(ShmNode *n, ShmNode *to);
void shm_post_send_av(ShmNode *n, ShmNode *to, const RdmaAv *av);
void shm_post_recv(ShmNode *n);
void shm_expect_recv(ShmNode *n);
void shm_drain_wire(ShmNode *n);
/* Send datagrams until one goes by memory. */
void shm_reach(ShmNode *n, ShmNode *to);
/* Send datagrams until one takes the netdev. */
void shm_expect_netdev(ShmNode *n, ShmNode *to);
/* Send one datagram, which must arrive by memory. */
void shm_exchange(ShmNode *n, ShmNode *to);

void shm_ring_map(ShmRing *r, size_t size);
void shm_ring_free(ShmRing *r);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ShmRing, shm_ring_free)
void shm_ring_wake(ShmRing *r);
/* Connect to port @id as a sender. */
int shm_connect_to(int id);
ShmRing shm_sender_new(int id);
uint32_t shm_record_len(size_t len);
/* Write a record that takes @room bytes, and wake the receiver. */
void shm_ring_write(ShmRing *r, uint32_t size, uint32_t flags,
                    const void *data, size_t len, uint32_t room);
/*
 * The same with a frame, at the beginning of the ring if the end is too near.
 */
void shm_ring_frame(ShmRing *r, uint32_t flags, const void *frame,
                    size_t len);
/* Wait until the other side closes the connection. */
void shm_assert_cut_off(int fd);

extern const QRdmaTest shm_sender_tests[];
extern const QRdmaTest shm_receiver_tests[];

#endif
