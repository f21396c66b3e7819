/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sockets by which ports of a host meet: their paths, the message that
 * brings a ring's memory, and wake-ups. Nothing here blocks.
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_SOCKET_H
#define BACKENDS_RDMA_ROCE_SHM_SOCKET_H

#include <sys/un.h>

/* The path of the port with this MAC address; freed by the caller. */
char *rdma_roce_shm_socket_path(const char *dir, const uint8_t *mac);
void rdma_roce_shm_set_address(struct sockaddr_un *un, const char *path);
/* A descriptor, or -1 and errno. */
int rdma_roce_shm_new_socket(void);

/* Send the memory of a ring, as the first message. */
bool rdma_roce_shm_send_welcome(int fd, int memory);
/* The descriptor that comes with such a message, or -1. */
int rdma_roce_shm_receive_welcome(int fd);

void rdma_roce_shm_wake(int fd);
/*
 * Take a wake-up off a socket, which mostly has one only; another one is the
 * next event. False: the other side has ended.
 */
bool rdma_roce_shm_drain(int fd);

#endif
