#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-turns.sh: measure the longest turn of QEMU's main loop, and the longest
# read of a register, during floods from a guest: in the main loop, in an
# iothread, and in the main loop with -icount.
# From the environment: V_DIR (build directory).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cd "$V_DIR/qemu"
preload="LD_PRELOAD=$V_DIR/standalone/tests/bench/libturn-meter.so"

# run TITLE PROGRAM OPTION...: run a benchmark with these options for QEMU
run() {
    local program=$2
    echo "$1"
    shift 2
    TURN_METER=$dir/meter TURN_OPTIONS=$* \
        QTEST_QEMU_BINARY="env $preload ./qemu-system-x86_64" \
        "tests/bench/device/$program" > "$dir/log" 2>&1 || {
        cat "$dir/log"
        exit 1
    }
    sed -n '/^# longest/,$s/^# //p' "$dir/log"
}

# Firmware that halts, because the floods come from the benchmark
head -c 65536 /dev/zero | tr '\0' '\364' > "$dir/halt"
run 'qtest' virtio-rdma-turn-bench
run 'the device in an iothread' virtio-rdma-iothread-bench
run 'TCG, -icount shift=0' virtio-rdma-turn-bench \
    -accel tcg -icount shift=0 -bios "$dir/halt"
