/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What others in QEMU wait for while a guest floods the device: the longest
 * turn of the main loop, as tests/bench/turn-meter.c has it in the file that
 * TURN_METER names, and the longest time that the read of a register took.
 */
#ifndef TESTS_QTEST_RDMA_FLOOD_METER_H
#define TESTS_QTEST_RDMA_FLOOD_METER_H

#include "libqos/virtio-rdma.h"

typedef struct FloodMeter {
    const char *name;               /* of the flood */
    gint64 begin;                   /* us */
    gint64 wait;                    /* us, the longest */
} FloodMeter;

/* More options for QEMU, by the environment */
const char *flood_options(void);

void flood_meter_start(FloodMeter *m, const char *name);
/* Read a register of @d: it waits for whoever has the BQL. */
void flood_meter_look(FloodMeter *m, QRdma *d);
void flood_meter_end(const FloodMeter *m);
/* g_test_run(), and a table of all floods. Returns what that returns. */
int flood_run_all(void);

#endif /* TESTS_QTEST_RDMA_FLOOD_METER_H */
