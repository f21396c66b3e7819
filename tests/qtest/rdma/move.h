/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two devices of one QEMU that move to another QEMU together
 */
#ifndef TESTS_RDMA_MOVE_H
#define TESTS_RDMA_MOVE_H

#include "libqos/virtio-rdma.h"

/* A saved state, in a directory of its own */
typedef struct Move {
    char *dir;
    char *state;                    /* file of the stream */
    char *uri;
    char *log;                      /* of a destination */
} Move;

/* Save the state of @host. move_end() removes it. */
Move move_save(QRdmaHost *host);
void move_end(Move *m);

/*
 * Another QEMU, with the options @args for the devices, replaces that of @host
 * at the same virtual time.
 */
void move_host(QRdmaHost *host, const char *args);
/* The same, but the link of @netdev is down before the state is loaded. */
void move_host_unplugged(QRdmaHost *host, const char *args,
                         const char *netdev);

/* A destination with @args refuses the stream of @m. Its error has @text. */
void move_expect_refused(const Move *m, const char *args, const char *text);

/* Words to find in the stream, and a new value for one of them */
typedef struct MoveSpoilt {
    uint32_t find[4];
    unsigned words;                 /* of find */
    unsigned word;                  /* index of the one to replace */
    uint32_t by;
    const char *text;               /* in the destination's error */
} MoveSpoilt;

/* Save the state. A destination refuses the stream with each of @cases. */
void move_refuse_spoilt(QRdmaHost *host, const char *args,
                        const MoveSpoilt *cases, unsigned n);

#endif
