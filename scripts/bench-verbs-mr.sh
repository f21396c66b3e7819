#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-verbs-mr.sh: measure how long rdma-verbs takes to register 1 GiB, and
# the longest turn of QEMU's main loop meanwhile. Raises vm.max_map_count for
# its run, if it may. From the environment: V_DIR (build directory);
# MR_BENCH_MIB (1024); MR_BENCH_IBDEV: this machine's RDMA device, to compare
# with the host alone; default: a double of libibverbs that takes no time.
set -eu
dir=$(mktemp -d)
maps=/proc/sys/vm/max_map_count
before=$(cat "$maps")
tidy() {
    rm -rf "$dir"
    [ "$(cat "$maps")" = "$before" ] || echo "$before" > "$maps"
}
trap tidy EXIT

export MR_BENCH_MIB=${MR_BENCH_MIB:-1024}
want=$((MR_BENCH_MIB * 256 + 8192))
[ "$before" -ge "$want" ] || echo "$want" 2> /dev/null > "$maps" ||
    echo "SKIP: regions in parts of 4 KiB need vm.max_map_count of $want"

cd "$V_DIR/qemu"
preload="LD_PRELOAD=$V_DIR/standalone/tests/bench/libturn-meter.so"
TURN_METER=$dir/meter \
    QTEST_QEMU_BINARY="env $preload ./qemu-system-x86_64" \
    tests/bench/device/rdma-verbs-mr-bench > "$dir/log" 2>&1 || {
    cat "$dir/log"
    exit 1
}
sed -n '/^# ms;/,$s/^# //p' "$dir/log"
