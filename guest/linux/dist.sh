#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# dist.sh DIR: lay out the driver's source in DIR as DKMS wants it, complete
# in itself. Files whose contents do not change are not written.
set -eu

dest=$1
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
abi=$top/include/standard-headers/linux

put() {
    cmp -s "$1" "$2" || cp "$1" "$2"
}

mkdir -p "$dest/include/linux"
for file in "$here"/*.c "$here"/*.h "$here/Kbuild" "$here/Makefile" \
            "$top/VERSION"; do
    put "$file" "$dest/${file##*/}"
done
for file in virtio_rdma.h virtio_rdma_direct.h; do
    put "$abi/$file" "$dest/include/linux/$file"
done

conf=$(mktemp)
trap 'rm -f "$conf"' EXIT
sed "s/#MODULE_VERSION#/$(cat "$top/VERSION")/" "$here/dkms.conf" > "$conf"
chmod 644 "$conf"
put "$conf" "$dest/dkms.conf"
