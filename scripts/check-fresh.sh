#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check-fresh.sh: what the README promises, on fresh systems. For each suite
# of $SUITES, make a pristine minimal Debian in a directory, clone the tree
# into it and run each command of $COMMANDS (separated by ;) there as root.
#
# Packages come from where this machine's apt gets them: the same archive,
# keyring and proxy, with the other suite's name. All is done in mount and
# process namespaces of its own: mounts and processes end with the script,
# whatever ends it. From the environment: B (build directory), LOGS, PYTHON;
# and, if set, SUITES, COMMANDS, JOBS, PACKAGES, SOURCE_CACHE and KEEP.
set -euo pipefail
cd "$(dirname "$0")/.."
SUITES=${SUITES:-bookworm trixie}
COMMANDS=${COMMANDS:-make demo; make check}

die() {
    echo "check-fresh: $*" >&2
    exit 1
}

[ "$(id -u)" = 0 ] ||
    die "only root can make and enter the systems: run 'sudo make check-fresh'"
if [ -z "${FRESH_NAMESPACE:-}" ]; then
    [ "${PACKAGES:-}" = no ] || scripts/setup-packages.sh fresh
    FRESH_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child \
        --mount-proc "$0" "$@"
fi
mkdir -p "$LOGS" "$B/fresh"
git diff --quiet HEAD ||
    echo "note: changes that are not committed are not in the clones"

# shellcheck source=scripts/fresh.sh
. scripts/fresh.sh

results=()
bad=0

note() { # SUITE COMMAND RESULT SECONDS LOG
    results+=("$(printf '%-9s %-24s %-7s %5d s  %s' "$@")")
    [ "$3" = ok ] || bad=1
}

IFS=';' read -r -a commands <<< "$COMMANDS"
for suite in $SUITES; do
    root=$B/fresh/$suite
    log=$LOGS/fresh-$suite.log
    began=$SECONDS
    echo "== $suite: making the system in $root"
    good=1
    (set -e
        make_system "$suite" "$root" ca-certificates,git,make
        git clone -q "$PWD" "$root/src") > "$log" 2>&1 || {
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
