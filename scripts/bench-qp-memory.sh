#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-qp-memory.sh: count the bytes that QEMU allocates for a queue pair of
# the greatest depth with all its work requests posted.
# From the environment: V_DIR (build directory).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cd "$V_DIR/qemu"
preload="LD_PRELOAD=$V_DIR/standalone/tests/bench/libheap-meter.so"

HEAP_METER=$dir/meter QTEST_QEMU_BINARY="env $preload ./qemu-system-x86_64" \
    tests/bench/device/virtio-rdma-qp-memory-bench > "$dir/log" 2>&1 || {
    cat "$dir/log" >&2
    exit 1
}
sed -n 's/^# bytes of/bytes of/p' "$dir/log"
