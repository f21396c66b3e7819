#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-qemu.sh TARGET...: lay the tree over QEMU's, configure it if necessary,
# and build these targets with ninja. From the environment (see the Makefile):
#
#   B                   build directory
#   S_DIR, V_DIR        directories of the series of QEMU, and of this variant
#   QEMU_TREE, PREFIX, ASAN, WERROR, PYTHON, JOBS
#   FUZZ=1              the fuzzers of the device, with no other devices
#   TSAN=1              a QEMU with ThreadSanitizer, with no other devices
#   COVERAGE=1          a QEMU that counts executed lines of our files
#   PACKAGE=version     the QEMU of the Debian package, with Debian's paths
#   STOCK=1             QEMU without anything of this project, as it is in
#                       distributions: a VMM for virtio-rdma-server
#   LEAVE_OUT="speed"   without these patches, or patches of these kinds
#   TARGET=aarch64      an emulator of arm64 machines
#   LEAN=1              only devices of the tests (configs/devices/*/
#                       rdma-tests.mak), no debug information: compiles in two
#                       thirds of the time
set -eu
cd "$(dirname "$0")/.."
src=$S_DIR/qemu-src out=$V_DIR/qemu${COVERAGE:+-coverage}
[ -z "${FUZZ:-}" ] || out=$S_DIR/qemu-fuzz
[ -z "${TSAN:-}" ] || out=$S_DIR/qemu-tsan
[ -z "${STOCK:-}" ] || src=$S_DIR/qemu-stock-src out=$S_DIR/qemu-stock
[ -z "${PACKAGE:-}" ] || out=$B/packages/qemu
target=${TARGET:-x86_64}
[ "$target" = x86_64 ] || out+=-$target
meson_path=$(cat "$B/tools/meson-path")
firmware=(/usr/share/seabios /usr/share/qemu /usr/lib/ipxe/qemu)
mkdir -p "$S_DIR" "$out"

# Let only one process at a time use a directory. All variants share the tree;
# each has its own directory of compiled files.
exec 9> "$S_DIR/.lock-overlay"
flock 9
echo "== overlay"
"$PYTHON" qemu/overlay.py ${STOCK:+--stock} --leave-out "${LEAVE_OUT:-}" \
    "$QEMU_TREE" "$src"
exec 9> "$V_DIR/.lock-qemu"
flock 9

options=(
    --target-list="$target-softmmu"
    --without-default-features
    --disable-download
    --disable-docs
    --disable-install-blobs
)
if [ -n "${FUZZ:-}${TSAN:-}" ]; then
    options+=(
        --without-default-devices
        --disable-tools
        --disable-guest-agent
        --disable-tcg
        --enable-kvm
    )
fi
if [ -n "${TSAN:-}" ]; then
    options+=(--with-devices-x86_64=rdma-tsan --enable-tsan)
elif [ -n "${FUZZ:-}" ]; then
    options+=(
        --with-devices-x86_64=rdma-fuzz
        --enable-fuzzing
        --enable-asan
        --enable-ubsan
        --cc=clang
        --cxx=clang++
        --host-cc=clang
    )
else
    # Only our sources have rdma-tests.mak, and only for x86-64.
    [ -z "${LEAN:-}" ] || [ -n "${STOCK:-}" ] || [ "$target" != x86_64 ] ||
        options+=(
            --without-default-devices
            --with-devices-x86_64=rdma-tests
            --disable-debug-info
        )
    options+=(
        --enable-tcg
        --enable-kvm
        --enable-slirp
        --enable-virtfs
        --enable-attr
        --enable-vhost-user
    )
fi
# For virtio-rdma-server. QEMU builds its server only for targets that have KVM
# on this machine.
[ "$target" != x86_64 ] || [ -n "${TSAN:-}${STOCK:-}" ] ||
    options+=(
        --enable-multiprocess
        --enable-vfio-user-server
        -Dlibvfio-user:default_library=static
    )
# Machines of other architectures need device trees.
[ "$target" = x86_64 ] || options+=(--enable-fdt=system)
[ -z "${PACKAGE:-}" ] ||
    options+=(
        --libexecdir=/usr/lib/qemu
        --with-pkgversion="virtio-rdma $PACKAGE"
    )
options+=(
    --python="$PYTHON"
    --prefix="$PREFIX"
    --firmwarepath="$(IFS=:; echo "${firmware[*]}")"
)
if [ -z "${FUZZ:-}${TSAN:-}" ]; then
    [ -z "$WERROR" ] || options+=(--enable-werror)
    [ -z "$ASAN" ] || options+=(--enable-asan --enable-ubsan)
    [ -z "${COVERAGE:-}" ] ||
        options+=(--cc="$PWD/scripts/cc-coverage ${CC:-gcc}"
                  --extra-ldflags=--coverage)
    # QEMU does not set _FORTIFY_SOURCE. Sanitizers detect more errors than it
    # does, so builds with sanitizers do without.
    [ -n "$ASAN${COVERAGE:-}" ] ||
        options+=(--extra-cflags="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
fi

stamp=$out/.configured
if [ "$(cat "$stamp" 2> /dev/null)" != "$QEMU_TREE ${options[*]}" ]; then
    echo "== configure"
    rm -rf "$out"
    mkdir -p "$out"
    [ -z "$meson_path" ] || export PYTHONPATH=$meson_path
    (cd "$out" && "$src/configure" "${options[@]}")
    # ninja may run meson later, without this environment.
    [ -z "$meson_path" ] ||
        for dir in "$out"/pyvenv/lib/python3*/site-packages; do
            echo "$meson_path" > "$dir/meson-path.pth"
        done
    # A QEMU that runs in its build directory looks for firmware here.
    for dir in "${firmware[@]}"; do
        mkdir -p "$out/qemu-bundle${dir%/*}"
        [ -d "$out/qemu-bundle$dir" ] || ln -s "$dir" "$out/qemu-bundle$dir"
    done
    echo "$QEMU_TREE ${options[*]}" > "$stamp"
fi

echo "== build"
exec ninja -C "$out" ${JOBS:+-j"$JOBS"} "$@"
