/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The far end of a dgram netdev, held by a test that reads, forwards or keeps
 * every frame.
 */
#ifndef TESTS_RDMA_WIRE_H
#define TESTS_RDMA_WIRE_H

#include <sys/un.h>

#define FRAME_MAX 9100

/* Timeouts for a frame that must come, and for one that must not */
#define SOON_MS 10000
#define NEVER_MS 100

typedef struct Wire {
    char *dir;
    char *netdev;                   /* arguments of -netdev, without id */
    struct sockaddr_un to;
    struct sockaddr_un from;
    int fd;
} Wire;

void wire_open(Wire *w);
void wire_close(Wire *w);
void wire_send(Wire *w, const void *frame, size_t size);
/* The next frame's size, or 0 if none comes. */
size_t wire_recv(Wire *w, uint8_t frame[FRAME_MAX], int timeout_ms);

/* Make a UDP frame that is not RoCE. Returns its size. */
size_t make_udp(uint8_t *frame, uint8_t tag);

#endif
