#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check-fresh.sh: test the commands of the README on fresh systems. For each
# suite of $RELEASES, make a minimal Debian in a directory, clone the tree into
# it, and run each command of $COMMANDS (separated by ;) there as root.
#
# Packages come from the same archive as this machine's, with its keyring and
# proxy, and the other suite's name. From the environment: B (build directory),
# LOGS, PYTHON; optional: RELEASES, COMMANDS, JOBS, PACKAGES, SOURCE_CACHE and
# KEEP.
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASES=${RELEASES:-bookworm trixie}
COMMANDS=${COMMANDS:-make demo; make check}

# shellcheck source=scripts/fresh.sh
. scripts/fresh.sh
fresh_begin "$0" "$@"
mkdir -p "$LOGS" "$B/fresh"
git diff --quiet HEAD ||
    echo "note: the clones do not have changes that are not committed"

results=()
bad=0

note() { # SUITE COMMAND RESULT SECONDS LOG
    results+=("$(printf '%-9s %-24s %-7s %5d s  %s' "$@")")
    [ "$3" = ok ] || bad=1
}

IFS=';' read -r -a commands <<< "$COMMANDS"
for suite in $RELEASES; do
    root=$B/fresh/$suite
    log=$LOGS/fresh-$suite.log
    began=$SECONDS
    echo "== $suite: making the system in $root"
    good=1
    # Run it in the background: in a condition, set -e would have no effect.
    { make_system "$suite" "$root" ca-certificates,git,make
        git clone -q "$PWD" "$root/src"; } > "$log" 2>&1 &
    wait $! || {
        tail -n 20 "$log"
        note "$suite" 'fresh system' FAILED $((SECONDS - began)) "$log"
        continue
    }
    for i in "${!commands[@]}"; do
        read -r command <<< "${commands[i]}"    # without blanks around it
        log=$LOGS/fresh-$suite-$((i + 1)).log
        began=$SECONDS
        echo "== $suite: $command"
        if enter "$root" "cd /src && $command" 2>&1 | tee "$log"; then
            result=ok
        else
            result=FAILED good=
        fi
        note "$suite" "$command" "$result" $((SECONDS - began)) "$log"
    done
    release "$root"
    # Keep a failed system until the next run.
    [ -z "$good" ] || [ -n "${KEEP:-}" ] ||
        rm -rf --one-file-system "$root"
done
echo
printf '%s\n' "${results[@]}"
exit "$bad"
