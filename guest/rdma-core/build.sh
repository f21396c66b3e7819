#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build.sh OUTDIR [WORKDIR]: build the libibverbs provider in rdma-core's tree,
# and its man page.
# The source comes from the directory $SOURCE_CACHE if it is there, else from
# Debian's archive. Environment:
#   RDMA_CORE      version of rdma-core; 56.1 by default, whose private ABI, 34,
#                  is also that of Debian 12's
#   PACKAGE        leave out the RPATH, for a package
#   CROSS_COMPILE  prefix of the compiler for another machine, such as
#                  aarch64-linux-gnu-
set -eu

outdir=$1
workdir=${2:-$outdir/../rdma-core}
cache=${SOURCE_CACHE:-}
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..

mkdir -p "$outdir" "$workdir"
outdir=$(cd "$outdir" && pwd)
workdir=$(cd "$workdir" && pwd)
src=$workdir/source
build=$workdir/build

python3 "$top/scripts/fetch.py" ${cache:+--cache "$cache"} \
    --work "$workdir/fetch" source rdma-core "${RDMA_CORE:-56.1}" "$src"
abi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\([0-9]*\)")$/\1/p' \
    "$src/CMakeLists.txt")
library=libvirtio_rdma-rdmav$abi.so

# Write only what has changed, since ninja compares times
put() {
    cmp -s "$1" "$2" || cp "$1" "$2"
}

provider=$src/providers/virtio_rdma
mkdir -p "$provider/linux" "$provider/man"
(cd "$here/providers/virtio_rdma" && find . -type f) | while read -r file; do
    put "$here/providers/virtio_rdma/$file" "$provider/$file"
done
put "$top/VERSION" "$provider/VERSION"
for file in virtio_rdma.h virtio_rdma_direct.h; do
    put "$top/include/standard-headers/linux/$file" "$provider/linux/$file"
done
put "$top/guest/linux/virtio_rdma-abi.h" \
    "$src/kernel-headers/rdma/virtio_rdma-abi.h"

# Name the provider and its ABI where all are listed
if ! grep -q virtio_rdma-abi.h "$src/kernel-headers/CMakeLists.txt"; then
    sed -i 's,^  rdma/vmw_pvrdma-abi\.h$,&\n  rdma/virtio_rdma-abi.h,' \
        "$src/kernel-headers/CMakeLists.txt"
fi
if ! grep -q virtio_rdma "$src/CMakeLists.txt"; then
    all='^add_subdirectory(providers/vmw_pvrdma)$'
    sed -i "s,$all,&\nadd_subdirectory(providers/virtio_rdma)," \
        "$src/CMakeLists.txt"
fi

if [ ! -f "$build/build.ninja" ]; then
    set -- -GNinja -DNO_PYVERBS=1 -DNO_MAN_PAGES=1 \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo ${PACKAGE:+-DCMAKE_SKIP_RPATH=1}
    # The provider calls nothing of libnl, which need not be there for the
    # other machine.
    [ -z "${CROSS_COMPILE:-}" ] ||
        set -- "$@" -DCMAKE_SYSTEM_NAME=Linux \
            -DCMAKE_SYSTEM_PROCESSOR="${CROSS_COMPILE%%-*}" \
            -DCMAKE_C_COMPILER="${CROSS_COMPILE}gcc" -DENABLE_RESOLVE_NEIGH=0
    cmake -S "$src" -B "$build" "$@"
fi
ninja -C "$build" -j "${JOBS:-2}" "lib/$library"

put "$build/lib/$library" "$outdir/$library"
put "$build/providers/virtio_rdma/virtio_rdma.driver" \
    "$outdir/virtio_rdma.driver"
sed "s/@VRDMA_VERSION@/$(cat "$top/VERSION")/" \
    "$provider/man/virtio_rdma.7.in" > "$outdir/virtio_rdma.7"
