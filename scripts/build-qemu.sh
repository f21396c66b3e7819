#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-qemu.sh TARGET...: lay the tree over QEMU's, configure it where that
# is due, and have ninja build these targets. From the environment, see the
# Makefile: B (build directory), S_DIR (that of the series of QEMU), V_DIR (that
# of this variant), QEMU_TREE, PREFIX, ASAN, WERROR, PYTHON, JOBS; FUZZ=1 for
# the fuzzers of the device, in a directory of their own, with what they need
# and no more; TSAN=1 for one with ThreadSanitizer, likewise; COVERAGE=1 for one
# that counts which lines of ours run; PACKAGE=version for that of the Debian
# package, which has Debian's paths; TARGET=aarch64 for an emulator of such a
# machine, in a directory of its own; LEAN=1 for one of x86-64 machines that has
# only what the tests start (configs/devices/*/rdma-tests.mak), and no debug
# information: it compiles in two thirds of the time.
set -eu
cd "$(dirname "$0")/.."
src=$S_DIR/qemu-src out=$V_DIR/qemu${COVERAGE:+-coverage}
[ -z "${FUZZ:-}" ] || out=$S_DIR/qemu-fuzz
[ -z "${TSAN:-}" ] || out=$S_DIR/qemu-tsan
[ -z "${PACKAGE:-}" ] || out=$B/packages/qemu
target=${TARGET:-x86_64}
[ "$target" = x86_64 ] || out+=-$target
meson_path=$(cat "$B/tools/meson-path")
firmware=(/usr/share/seabios /usr/share/qemu /usr/lib/ipxe/qemu)
mkdir -p "$S_DIR" "$out"

# Two at a time in one directory would spoil each other. The tree is shared by
# all variants, what is compiled is not.
exec 9> "$S_DIR/.lock-overlay"
flock 9
echo "== overlay"
"$PYTHON" qemu/overlay.py "$QEMU_TREE" "$src"
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
    [ -z "${LEAN:-}" ] || [ "$target" != x86_64 ] ||
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
    )
fi
# Its machines are described to the guest by device trees
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
    # QEMU does not ask for it by itself. Sanitizers see more than this does.
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
    # ninja runs meson later on, without our environment
    [ -z "$meson_path" ] ||
        for dir in "$out"/pyvenv/lib/python3*/site-packages; do
            echo "$meson_path" > "$dir/meson-path.pth"
        done
    # A QEMU that runs from its build directory looks for firmware here
    for dir in "${firmware[@]}"; do
        mkdir -p "$out/qemu-bundle${dir%/*}"
        [ -d "$out/qemu-bundle$dir" ] || ln -s "$dir" "$out/qemu-bundle$dir"
    done
    echo "$QEMU_TREE ${options[*]}" > "$stamp"
fi

echo "== build"
exec ninja -C "$out" ${JOBS:+-j"$JOBS"} "$@"
