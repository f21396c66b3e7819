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

# The archives of this machine for another suite, as a .sources file
sources() { # SUITE
    "$PYTHON" - "$1" <<'END'
import sys
sys.path.insert(0, 'scripts')
import fetch
print(fetch.sources_for(sys.argv[1]))
END
}

field() { # NAME < .sources
    sed -n "s/^$1: //p" | head -n 1
}

# The archive's settings in apt's configuration, other than the lists
apt_settings() {
    local names='https?|Check-[A-Za-z-]+|Retries|ForceIPv[46]'
    apt-config dump | grep -E "^Acquire::($names)(::[A-Za-z:.-]+)? "
}

make_system() { # SUITE ROOT
    local suite=$1 root=$2 list uri keyring proxy
    list=$(sources "$suite")
    uri=$(field URIs <<< "$list")
    keyring=$(field Signed-By <<< "$list")
    proxy=$(apt-config shell p Acquire::http::Proxy)
    proxy=$(eval "$proxy"; echo "${p:-}")
    rm -rf --one-file-system "$root"
    ${proxy:+env http_proxy="$proxy"} debootstrap --variant=minbase \
        --include=ca-certificates,git,make ${keyring:+--keyring="$keyring"} \
        "$suite" "$root" "$uri"
    rm -f "$root/etc/apt/sources.list"
    echo "$list" > "$root/etc/apt/sources.list.d/debian.sources"
    apt_settings > "$root/etc/apt/apt.conf.d/90machine" || :
    [ ! -f "$keyring" ] || [ -e "$root$keyring" ] ||
        install -D -m 644 "$keyring" "$root$keyring"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    # Services that packages bring are not started
    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
    git clone -q "$PWD" "$root/src"
}

enter() { # ROOT COMMAND
    local root=$1 name keep=()
    for name in http_proxy https_proxy no_proxy TERM JOBS; do
        [ -z "${!name:-}" ] || keep+=("$name=${!name}")
    done
    mountpoint -q "$root/proc" || {
        mount -t proc proc "$root/proc"
        mount -t sysfs -o ro sysfs "$root/sys"
        mount --rbind /dev "$root/dev"
        mount -t tmpfs tmpfs "$root/run"
    }
    if [ -n "${SOURCE_CACHE:-}" ]; then
        keep+=(SOURCE_CACHE=/mnt)
        mountpoint -q "$root/mnt" ||
            mount --bind -o ro "$SOURCE_CACHE" "$root/mnt"
    fi
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        "${keep[@]}" chroot "$root" /bin/bash -c "cd /src && $2"
}

release() { # ROOT: undo the mounts, so that it can be removed
    local at
    for at in mnt run dev sys proc; do
        ! mountpoint -q "$1/$at" || umount -R "$1/$at"
    done
}

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
    (set -e; make_system "$suite" "$root") > "$log" 2>&1 || {
        tail -n 20 "$log"
        note "$suite" 'fresh system' FAILED $((SECONDS - began)) "$log"
        continue
    }
    for i in "${!commands[@]}"; do
        command=$(xargs <<< "${commands[i]}")
        log=$LOGS/fresh-$suite-$((i + 1)).log
        began=$SECONDS
        echo "== $suite: $command"
        if enter "$root" "$command" 2>&1 | tee "$log"; then
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
