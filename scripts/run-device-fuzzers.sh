#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run-device-fuzzers.sh BUILD SECONDS [TARGET...]: run the fuzzers of the device
# in BUILD, all or the given ones, for so many seconds each, starting from
# tests/fuzz/corpus. BUILD/corpus keeps new inputs, BUILD/found those of
# failures.
#
# run-device-fuzzers.sh --run BUILD TARGET ARGUMENT...: run one fuzzer with
# these arguments of libFuzzer, for example an input.
set -u
here=$(realpath "$(dirname "$0")/..")
all=(rdma-split rdma-packed rdma-iommu rdma-direct rdma-eject rdma-demo
    rdma-wire rdma-shm rdma-stream rdma-generic rdma-pvrdma rdma-generic-pv
    rdma-net-roce rdma-vfio-user rdma-vhost-user)

# QEMU never frees some global allocations, so do not report leaks. By default
# the quarantine of freed memory has 256 MB, many times the guest's memory.
export ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=32
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# For QEMU's own generic fuzzer
export QEMU_FUZZ_ARGS="-machine q35 -nodefaults -bios blank.bin \
-netdev hubport,id=n0,hubid=0 -blockdev null-co,node-name=b0 \
-device virtio-rdma-pci,netdev=n0,max-qp=8,max-cq=4,max-srq=2 \
-device virtio-blk-pci,drive=b0"
export QEMU_FUZZ_OBJECTS="virtio-rdma* virtio-blk* virtio-pci*"
pvrdma_args="-machine q35 -nodefaults -bios blank.bin \
-netdev hubport,id=n0,hubid=0 \
-device pvrdma,netdev=n0,addr=7.1,max-qp=16,max-cq=8,max-uar=8"

fuzz() { # BUILD TARGET ARGUMENT...
    local build=$1 target=$2
    shift 2
    case $target in
    rdma-generic-pv)
        local QEMU_FUZZ_ARGS=$pvrdma_args QEMU_FUZZ_OBJECTS='pvrdma*'
        target=generic-fuzz
        ;;
    rdma-generic) target=generic-fuzz ;;
    esac
    # Given a name that it does not know, the program succeeds with its usage.
    if ! "$build/qemu-fuzz-x86_64" 2>&1 | grep -q "^ \* $target "; then
        echo "$build/qemu-fuzz-x86_64 has no fuzzer $target: build it again"
        return 1
    fi
    truncate -s 64K "$build/blank.bin"
    rm -rf "$build"/shm.*
    (cd "$build" && exec ./qemu-fuzz-x86_64 "--fuzz-target=$target" \
        -timeout=20 -max_len=1024 -len_control=0 -print_funcs=0 "$@" 2>&1)
}

if [ "$1" = --run ]; then
    build=$2 target=$3 arguments=()
    shift 3
    for argument; do # absolute paths, because the fuzzer runs in BUILD
        [ ! -e "$argument" ] || argument=$(realpath "$argument")
        arguments+=("$argument")
    done
    fuzz "$build" "$target" "${arguments[@]}"
    exit
fi

build=$(realpath "$1") seconds=$2
shift 2
[ $# != 0 ] || set -- "${all[@]}"
failed=0
mkdir -p "$build/found"
for target; do
    if [[ " ${all[*]} " != *" $target "* ]]; then
        echo "no fuzzer $target; expected one of: ${all[*]}"
        failed=$((failed + 1))
        continue
    fi
    case $target in
    rdma-split | rdma-packed | rdma-iommu | rdma-direct | rdma-eject | \
        rdma-demo)
        packed=rdma-all
        ;;
    *) packed=$target ;;
    esac
    corpus=$build/corpus/$target seeds=$build/seeds/$target
    rm -rf "$seeds"
    mkdir -p "$corpus" "$seeds"
    archive=$here/tests/fuzz/corpus/$packed.tar.xz
    if [ -f "$archive" ]; then
        tar -C "$seeds" -xJf "$archive" || exit
    fi
    echo "== $target, $seconds s"
    # Drop messages of the device and QEMU about the guest.
    fuzz "$build" "$target" -max_total_time="$seconds" \
        -print_final_stats=1 -artifact_prefix="$build/found/$target-" \
        "$corpus" "$seeds" |
        grep -avE -e '^(x86_64|rom|qemu|INFO): |^####|^".* # Uses' \
            -e '^#[0-9]+.*(NEW|REDUCE|pulse|REL)'
    if [ "${PIPESTATUS[0]}" != 0 ]; then
        failed=$((failed + 1))
        echo "FAIL $target; to repeat it, with the steps of the input:"
        echo "  FUZZ_VERBOSE=1 $0 --run $build $target FILE"
    fi
done
echo "$(($# - failed)) of $# fuzzers of the device found nothing"
[ "$failed" = 0 ]
