/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets by which ports of a host meet: their paths, the message with the
 * memory of a ring, and wake-ups. No function blocks.
 */
#ifndef BACKENDS_RDMA_ROCE_SHM_SOCKET_H
#define BACKENDS_RDMA_ROCE_SHM_SOCKET_H

#include <sys/un.h>

/* The path of the port with this MAC address; freed by the caller. */
char *rdma_roce_shm_socket_path(const char *dir, const uint8_t *mac);
void rdma_roce_shm_set_address(struct sockaddr_un *un, const char *path);
/* A descriptor, or -1 and errno. */
int rdma_roce_shm_new_socket(void);

/* Send the welcome, the first message, with the memory of a ring. */
bool rdma_roce_shm_send_welcome(int fd, int memory);
/* Receive a welcome. Returns the descriptor of the memory, or -1. */
int rdma_roce_shm_receive_welcome(int fd);

void rdma_roce_shm_wake(int fd);
/*
 * Read one wake-up; most often there is only one, and another one is the next
 * event. False: the other side has ended.
 */
bool rdma_roce_shm_drain(int fd);

#endif
