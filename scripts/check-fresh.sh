#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check-fresh.sh: what the README promises, on fresh systems. For each suite
# of $RELEASES, make a pristine minimal Debian in a directory, clone the tree
# into it and run each command of $COMMANDS (separated by ;) there as root.
#
# Packages come from where this machine's apt gets them: the same archive,
# keyring and proxy, with the other suite's name. From the environment: B
# (build directory), LOGS, PYTHON; and, if set, RELEASES, COMMANDS, JOBS,
# PACKAGES, SOURCE_CACHE and KEEP.
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASES=${RELEASES:-bookworm trixie}
COMMANDS=${COMMANDS:-make demo; make check}

# shellcheck source=scripts/fresh.sh
. scripts/fresh.sh
fresh_begin "$0" "$@"
mkdir -p "$LOGS" "$B/fresh"
git diff --quiet HEAD ||
    echo "note: changes that are not committed are not in the clones"

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
    # In the background -e holds, where it would not in a condition
    { make_system "$suite" "$root" ca-certificates,git,make
        git clone -q "$PWD" "$root/src"; } > "$log" 2>&1 &
    wait $! || {
        tail -n 20 "$log"
        note "$suite" 'fresh system' FAILED $((SECONDS - began)) "$log"
        continue
    }
    for i in "${!commands[@]}"; do
        command=$(xargs <<< "${commands[i]}")
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
    # What failed is left to be looked at, until the next run
    [ -z "$good" ] || [ -n "${KEEP:-}" ] ||
        rm -rf --one-file-system "$root"
done
echo
printf '%s\n' "${results[@]}"
exit "$bad"
