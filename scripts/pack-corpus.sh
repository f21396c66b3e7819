#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# pack-corpus.sh BUILD TARGET [BYTES]: replace a corpus of tests/fuzz/corpus.
# The new one has the fewest inputs of the old one, and of those that the
# fuzzers of the device in BUILD found, that reach the same code on TARGET's
# device: small ones first, together at most BYTES (90000).
set -eu
build=$(realpath "$1") target=$2 limit=${3:-90000}
here=$(realpath "$(dirname "$0")/..")
# As in run-device-fuzzers.sh, these targets share a corpus.
case $target in
rdma-split | rdma-packed | rdma-iommu | rdma-direct | rdma-eject | rdma-demo)
    packed=rdma-all
    sources=(rdma-split rdma-packed rdma-iommu rdma-direct rdma-eject rdma-demo)
    ;;
*) packed=$target sources=("$target") ;;
esac
archive=$here/tests/fuzz/corpus/$packed.tar.xz

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/old" "$tmp/merged" "$tmp/kept"
[ ! -f "$archive" ] || tar -C "$tmp/old" -xJf "$archive"
from=("$tmp/old")
for source in "${sources[@]}"; do
    [ ! -d "$build/corpus/$source" ] || from+=("$build/corpus/$source")
done
"$here/scripts/run-device-fuzzers.sh" --run "$build" "$target" -merge=1 \
    "$tmp/merged" "${from[@]}" > "$build/merge.log" || {
    tail -n 20 "$build/merge.log" >&2
    echo "pack-corpus: cannot merge the inputs of $target, see" \
        "$build/merge.log" >&2
    exit 1
}

size=0
while read -r bytes name; do
    size=$((size + bytes))
    [ "$size" -le "$limit" ] || break
    mv "$tmp/merged/$name" "$tmp/kept"
done < <(find "$tmp/merged" -type f -printf '%s %f\n' | sort -n)
tar -C "$tmp/kept" --sort=name --mtime=@0 --owner=0 --group=0 \
    --numeric-owner -cf - . | xz -9e > "$archive"
echo "$archive: $(find "$tmp/kept" -type f | wc -l) inputs," \
    "$(stat -c %s "$archive") bytes"
