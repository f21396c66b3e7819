/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Direct queues for floods that need many of them. Their slots share memory,
 * which the device does not check.
 */
#ifndef TESTS_BENCH_DEVICE_FLOOD_DIRECT_H
#define TESTS_BENCH_DEVICE_FLOOD_DIRECT_H

#include "libqos/virtio-rdma.h"

/*
 * Make an SRQ of @n WQEs, a power of 2, with 32 SGEs each. Its counter says
 * that @posted are posted. Returns its number. All slots are in the page at
 * @slots.
 */
uint32_t flood_direct_srq(QRdmaPd *pd, uint32_t n, uint32_t posted,
                          uint64_t slots);
/* Make a UD QP; all of its memory is the page at @page, which is zeroed. */
QRdmaQp flood_direct_ud(QRdmaPd *pd, uint32_t cqn, uint64_t page);

#endif /* TESTS_BENCH_DEVICE_FLOOD_DIRECT_H */
