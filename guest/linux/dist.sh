#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# dist.sh DIR: lay out the driver's source in DIR as DKMS wants it, complete
# in itself. Files that are up to date are left alone.
set -eu

dest=$1
here=$(cd "$(dirname "$0")" && pwd)
abi=$here/../../include/standard-headers/linux/virtio_rdma.h

put() {
    cmp -s "$1" "$2" || cp "$1" "$2"
}

mkdir -p "$dest/include/linux"
for file in "$here"/*.c "$here"/*.h "$here/Kbuild" "$here/Makefile" \
            "$here/dkms.conf"; do
    put "$file" "$dest/${file##*/}"
done
put "$abi" "$dest/include/linux/virtio_rdma.h"
