#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# coverage.sh STANDALONE QEMU: print, for each part, a table with the lines that
# no test reached in these builds for gcov. Fails if a part has less coverage
# than its minimum.
set -u
standalone=$1 qemu=$2
top=$(dirname "$standalone")
src=$top/qemu-src
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
failed=0

# Exclude Meson's own checks, which have counters, but no sources.
gcovr --root . --object-directory "$standalone" \
    --exclude-directories '.*/meson-private' \
    --json "$found/standalone.json" "$standalone" || failed=1
gcovr --root "$src" --object-directory "$qemu" \
    --exclude-directories '.*/meson-private' --exclude '.*trace-events$' \
    --json "$found/qemu.json" "$qemu" || failed=1

part() { # TITLE LEAST ROOT JSON OPTION...: print the table of a part
    local title=$1 least=$2 root=$3 json=$4
    shift 4
    echo "== $title"
    gcovr --root "$root" --add-tracefile "$found/$json.json" "$@" \
        --fail-under-line "$least" || {
        echo "FAIL $title: less than $least % of the lines"
        failed=1
    }
}

part 'engine, by unit tests and corpora' 95 . standalone \
    --filter 'backends/rdma/roce/'
part 'codec of the device, by device tests' 95 "$src" qemu \
    --filter "$src/hw/rdma/virtio/codec"
part 'device, by device tests' 90 "$src" qemu \
    --filter "$src/hw/rdma/" \
    --filter "$src/hw/virtio/(virtio-rdma-|vhost-user-(rdma|server))" \
    --exclude "$src/hw/rdma/virtio/codec"
part 'backends, by device tests' 90 "$src" qemu \
    --filter "$src/backends/rdma/" \
    --exclude "$src/backends/rdma/roce/"
exit "$failed"
