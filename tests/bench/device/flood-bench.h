/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Floods from a guest, and what others in QEMU wait for meanwhile: the longest
 * turn of the main loop, without and with its waits for locks, as
 * tests/bench/turn-meter.c has it in the file that TURN_METER names, and the
 * longest time that the read of a register took.
 */
#ifndef TESTS_BENCH_DEVICE_FLOOD_BENCH_H
#define TESTS_BENCH_DEVICE_FLOOD_BENCH_H

#include "libqos/virtio-rdma.h"

/* What the floods of a bench use */
typedef struct Flood Flood;

typedef struct FloodOps {
    const char *name;
    void (*prepare)(Flood *f);      /* make its objects */
    void (*start)(Flood *f);
    bool (*done)(Flood *f);         /* called after each register read */
} FloodOps;

typedef struct FloodBench {
    const char *path;               /* of its tests, with a slash at the end */
    /* QEMU's, for a device on netdev n0, with PCI address 4 */
    const char *options;
    /* Its result is freed by g_free(). */
    Flood *(*new)(QRdmaHost *host, QRdma *d);
    const FloodOps *floods;
    size_t num_floods;
} FloodBench;

/*
 * A bench's main(): a test for each flood, then a table of them. QEMU has more
 * options from TURN_OPTIONS in the environment.
 */
int flood_bench_main(int argc, char **argv, const FloodBench *bench);

#endif /* TESTS_BENCH_DEVICE_FLOOD_BENCH_H */
