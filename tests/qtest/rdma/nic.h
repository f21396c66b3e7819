/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtio-net NIC that does nothing but receive.
 */
#ifndef TESTS_RDMA_NIC_H
#define TESTS_RDMA_NIC_H

#include "libqos/virtio-rdma.h"

/* Initial number of buffers */
#define NIC_BUFS 16

typedef struct Nic {
    QRdmaHost *host;
    QVirtioPCIDevice *pci;
    QVirtQueue *rx;
    GArray *bufs;                   /* their addresses, by descriptor */
} Nic;

void nic_start(Nic *nic, QRdmaHost *host, int slot);
void nic_stop(Nic *nic);
/* Give the NIC one more buffer. */
void nic_add_buffer(Nic *nic);
/* The size of the next frame that the NIC got, or 0. */
size_t nic_recv(Nic *nic, uint8_t *frame);

#endif
