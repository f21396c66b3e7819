/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A disk that an interrupt of an adapter resets. The reset waits for the disk's
 * request in a nested event loop, inside the work that sent the interrupt.
 */
#ifndef TESTS_QTEST_RDMA_DISK_H
#define TESTS_QTEST_RDMA_DISK_H

#include "libqos/virtio-rdma.h"

/* QEMU's options: in this slot, with requests that take @ns, a string */
#define TEST_DISK(slot, ns) \
    "-blockdev null-co,node-name=slow,read-zeroes=on,latency-ns=" ns " " \
    "-device virtio-blk-pci,drive=slow,addr=" stringify(slot)

typedef struct TestDisk {
    QRdmaHost *host;
    QVirtioPCIDevice *pci;
    QVirtQueue *vq;
} TestDisk;

TestDisk test_disk_open(QRdmaHost *host, int slot);
/*
 * Give the disk a request, which takes @ns of TEST_DISK(). A reset waits for
 * it.
 */
void test_disk_busy(TestDisk *disk);
/* The disk's device status, which is 0 after a reset */
uint8_t test_disk_status(TestDisk *disk);
void test_disk_close(TestDisk *disk);

/* Let the next interrupt of @ring of an adapter reset the disk. */
void test_disk_aim(TestDisk *disk, QRdmaRing *ring);

#endif /* TESTS_QTEST_RDMA_DISK_H */
