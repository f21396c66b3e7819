# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Functions to make fresh Debian systems in directories. A script that includes
# this file runs as root, in the top directory of the tree. From the
# environment: PYTHON; optional: JOBS, PACKAGES, SOURCE_CACHE, TERM and the
# variables of proxies.

# Restart a script in mount and process namespaces of its own, so that its
# mounts and processes end with it in any case. Errors name the make target that
# runs the script: both have the same name.
fresh_begin() { # SCRIPT ARGUMENT...
    local target

    target=$(basename "$1" .sh)
    [ "$(id -u)" = 0 ] || {
        echo "$target: needs root to make and enter systems:" \
            "run make with sudo" >&2
        exit 1
    }
    [ -z "${FRESH_NAMESPACE:-}" ] || return 0
    [ "${PACKAGES:-}" = no ] || scripts/setup-packages.sh fresh
    FRESH_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child \
        --mount-proc "$@"
}

# Print this machine's archives for another suite, as a .sources file.
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

# Print the settings for archives in apt's configuration, without the lists.
apt_settings() {
    local names='https?|Check-[A-Za-z-]+|Retries|ForceIPv[46]'
    apt-config dump | grep -E "^Acquire::($names)(::[A-Za-z:.-]+)? "
}

make_system() { # SUITE ROOT PACKAGES
    local suite=$1 root=$2 packages=$3 list uri keyring proxy
    list=$(sources "$suite")
    uri=$(field URIs <<< "$list")
    keyring=$(field Signed-By <<< "$list")
    proxy=$(apt-config shell p Acquire::http::Proxy)
    proxy=$(eval "$proxy"; echo "${p:-}")
    rm -rf --one-file-system "$root"
    ${proxy:+env http_proxy="$proxy"} debootstrap --variant=minbase \
        ${packages:+--include="$packages"} \
        ${keyring:+--keyring="$keyring"} \
        "$suite" "$root" "$uri"
    rm -f "$root/etc/apt/sources.list"
    echo "$list" > "$root/etc/apt/sources.list.d/debian.sources"
    apt_settings > "$root/etc/apt/apt.conf.d/90machine" || :
    [ ! -f "$keyring" ] || [ -e "$root$keyring" ] ||
        install -D -m 644 "$keyring" "$root$keyring"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
    # Do not start services of packages.
    printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
    chmod 755 "$root/usr/sbin/policy-rc.d"
}

enter() { # ROOT COMMAND
    local root=$1 name keep=()
    for name in http_proxy https_proxy no_proxy TERM JOBS; do
        [ -z "${!name:-}" ] || keep+=("$name=${!name}")
    done
    mountpoint -q "$root/proc" || {
        mount --rbind "$root" "$root"
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
    # A program can create user and mount namespaces only if its root is the
    # root of its mount namespace. The inner shell expands $0 and $1.
    # shellcheck disable=SC2016
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        "${keep[@]}" unshare --mount sh -c \
        'cd "$0" && mount --move . / && exec chroot . /bin/bash -c "$1"' \
        "$root" "$2"
}

processes_in() { # ROOT: print the processes with this root directory
    local at
    for at in /proc/[0-9]*; do
        # Compare inodes: names differ between mount namespaces.
        [ ! "$at/root" -ef "$1" ] || echo "${at#/proc/}"
    done
}

# Undo the mounts, so that the system can be removed. End daemons that still run
# there, which would keep the mounts busy.
release() { # ROOT
    local at left
    for _ in {1..100}; do
        left=$(processes_in "$1")
        [ -n "$left" ] || break
        # shellcheck disable=SC2086 # a word for each process
        kill -KILL $left 2> /dev/null || :
        sleep 0.1
    done
    for at in mnt run dev sys proc ''; do
        ! mountpoint -q "$1/$at" || umount -R "$1/$at"
    done
}
