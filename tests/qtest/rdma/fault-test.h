/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults of virtio-rdma devices, for tests. Devices have the ID "d0", or "d1"
 * for the second one of a machine.
 */
#ifndef TESTS_RDMA_FAULT_TEST_H
#define TESTS_RDMA_FAULT_TEST_H

#include "net-test.h"

/* Arguments of rdma-fault-add besides the device */
void fault_add(QRdma *d, const char *fmt, ...) G_GNUC_PRINTF(2, 3);
/* Expect that @args are refused, with @word in the message. */
void fault_refused(QRdma *d, const char *args, const char *word);
void fault_remove(QRdma *d, const char *id);
void fault_remove_all(QRdma *d);
uint64_t fault_matches(QRdma *d, const char *id);
uint64_t fault_hits(QRdma *d, const char *id);
void fault_expect(QRdma *d, const char *id, uint64_t matches, uint64_t hits,
                  bool active);
/* How many faults the device has */
unsigned fault_count(QRdma *d);
/* The entry of @id in query-rdma-faults, which the caller unrefs. */
QDict *fault_query(QRdma *d, const char *id);

#endif
