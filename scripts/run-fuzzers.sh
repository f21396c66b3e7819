#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run-fuzzers.sh BUILD SECONDS: run every fuzzer of tests/fuzz for so long,
# from the seeds that the build made. The corpus is kept in BUILD/corpus, and
# what broke a fuzzer in BUILD/found.
set -u
build=$1 seconds=$2
shopt -s nullglob
fuzzers=("$build"/tests/fuzz/fuzz-*)
failed=0 ran=0
mkdir -p "$build/found"
for fuzzer in "${fuzzers[@]}"; do
    [ -f "$fuzzer" ] && [ -x "$fuzzer" ] || continue
    name=${fuzzer##*/fuzz-}
    corpus=$build/corpus/$name
    mkdir -p "$corpus"
    seeds=$build/tests/fuzz/seeds/$name
    ran=$((ran + 1))
    echo "== $name, $seconds s"
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
        -artifact_prefix="$build/found/$name-" \
        -print_funcs=0 "$corpus" $([ -d "$seeds" ] && echo "$seeds") 2>&1 |
        grep -vE '^#[0-9]+.*(NEW|REDUCE|pulse|RELOAD)|^(#####|.* # Uses)'
    [ "${PIPESTATUS[0]}" = 0 ] || { failed=$((failed + 1)); echo "FAIL $name"; }
done
echo "$((ran - failed)) of $ran fuzzers found nothing"
[ "$ran" != 0 ] && [ "$failed" = 0 ]
