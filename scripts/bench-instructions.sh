#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench-instructions.sh: count the instructions of QEMU in doorbells and bottom
# halves of the device for a message of 64 bytes. The count is the difference
# between a long and a short run, so it does not vary.
# From the environment: V_DIR (build directory).
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cd "$V_DIR/qemu"
few=100
many=300

# instructions OPERATION MESSAGES
instructions() {
    local qemu="valgrind -q --tool=callgrind --callgrind-out-file=$dir/out"

    qemu+=" --toggle-collect=virtio_rdma_doorbell"
    qemu+=" --toggle-collect=hca_bh --toggle-collect=roce_bh"
    MESSAGES=$2 QTEST_QEMU_BINARY="$qemu ./qemu-system-x86_64" \
        tests/bench/device/virtio-rdma-message-bench \
        -p "/x86_64/virtio-rdma/message/$1" > "$dir/log" 2>&1 || {
        cat "$dir/log" >&2
        return 1
    }
    sed -n 's/^totals: //p' "$dir/out"
}

for op in write send; do
    a=$(instructions $op $few)
    b=$(instructions $op $many)
    echo "instructions for a $op of 64 bytes: $(((b - a) / (many - few)))"
done
