#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-standalone.sh OUT TARGETS MESON-OPTION...: configure the top-level
# meson.build in OUT if necessary, and build these ninja targets ('' for all).
# From the environment (see the Makefile): B, PYTHON, JOBS, WERROR.
set -eu
out=$1 targets=$2
shift 2
set -- -Dwerror="$([ -n "$WERROR" ] && echo true || echo false)" "$@"
mkdir -p "$out"
exec 9> "$out.lock"
flock 9
if [ "$(cat "$out/.configured" 2> /dev/null)" != "$*" ]; then
    rm -rf "$out"
    "$PYTHON" "$B/tools/meson.py" setup "$out" "$(dirname "$0")/.." "$@"
    echo "$*" > "$out/.configured"
fi
# shellcheck disable=SC2086 # several words
exec ninja -C "$out" ${JOBS:+-j"$JOBS"} $targets
