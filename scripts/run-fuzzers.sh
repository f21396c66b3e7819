#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# run-fuzzers.sh BUILD SECONDS [NAME...]: run each fuzzer of tests/fuzz, or the
# named ones, for so many seconds, starting from the build's seeds. BUILD/corpus
# keeps the corpus, BUILD/found the inputs of failures.
set -u
build=$1 seconds=$2
shift 2
shopt -s nullglob
if [ $# = 0 ]; then
    for fuzzer in "$build"/tests/fuzz/fuzz-*; do
        if [ -f "$fuzzer" ] && [ -x "$fuzzer" ]; then
            set -- "$@" "${fuzzer##*/fuzz-}"
        fi
    done
fi
failed=0 ran=0
mkdir -p "$build/found"
for name; do
    fuzzer=$build/tests/fuzz/fuzz-$name
    ran=$((ran + 1))
    if [ ! -x "$fuzzer" ]; then
        echo "FAIL $name: no such fuzzer"
        failed=$((failed + 1))
        continue
    fi
    corpus=$build/corpus/$name
    mkdir -p "$corpus"
    from=("$corpus" "$build/tests/fuzz/seeds/$name")
    [ -d "${from[1]}" ] || from=("$corpus")
    echo "== $name, $seconds s"
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
        -artifact_prefix="$build/found/$name-" \
        -print_funcs=0 "${from[@]}" 2>&1 |
        grep -vE '^#[0-9]+.*(NEW|REDUCE|pulse|RELOAD)|^(#####|.* # Uses)'
    [ "${PIPESTATUS[0]}" = 0 ] || { failed=$((failed + 1)); echo "FAIL $name"; }
done
echo "$((ran - failed)) of $ran fuzzers found nothing"
[ "$ran" != 0 ] && [ "$failed" = 0 ]
