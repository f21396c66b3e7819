#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check-packages.sh: install the packages of $B/packages on a fresh system of
# each suite of $RELEASES, use and remove them (tests/packages/check.py). Prints
# a stream of TAP for each suite. From the environment: B (build directory),
# PYTHON; optional: RELEASES, PACKAGES and KEEP.
set -euo pipefail
cd "$(dirname "$0")/.."
RELEASES=${RELEASES:-bookworm trixie}

# shellcheck source=scripts/fresh.sh
. scripts/fresh.sh
fresh_begin "$0" "$@"
mkdir -p "$B/fresh"

package_names() { # DEB...: print their names as an extended regular expression
    local deb all=()
    for deb; do
        all+=("$(dpkg-deb -f "$deb" Package)")
    done
    (IFS='|'; echo "${all[*]}")
}

# Packages to compile users' programs, Debian's QEMU, and to check a unit
also='gcc libc6-dev libibverbs-dev librdmacm-dev qemu-system-x86 systemd'
install='DEBIAN_FRONTEND=noninteractive apt-get install -q -y'

# Copy the packages for the suite to /debs, and the provider that does not fit
# its libibverbs to /debs/other.
copy_packages() {
    mkdir -p "$root/debs/other"
    cp "$B"/packages/*.deb "$root/debs/"
    case $suite in
    bookworm | trixie)
        [ ! -d "$B/packages/rdma-core-65" ] ||
            cp "$B"/packages/rdma-core-65/*.deb "$root/debs/other/"
        ;;
    *)
        mv "$root"/debs/ibverbs-provider-virtio-rdma_*.deb \
            "$root/debs/other/"
        cp "$B"/packages/rdma-core-65/*.deb "$root/debs/"
        ;;
    esac
}

make_systems() {
    make_system "$suite" "$root" ca-certificates
    enter "$root" "apt-get update -q &&
        $install --no-install-recommends $also"
    copy_packages
    release "$root"
    # A copy with the dependencies of the packages, but without the packages
    rm -rf --one-file-system "$beside"
    cp -a --one-file-system "$root" "$beside"
    wanted=$(enter "$beside" "$install --simulate /debs/*.deb" |
        sed -n 's/^Inst \([^ ]*\) .*/\1/p' |
        grep -vE "^($(package_names "$root"/debs/*.deb))$" | tr '\n' ' ')
    enter "$beside" "$install $wanted"
    release "$beside"
}

bad=0
for suite in $RELEASES; do
    root=$B/fresh/packages-$suite
    beside=$root-beside
    echo "# $suite: making the system in $root"
    # Run it in the background: in a condition, set -e would have no effect.
    make_systems > >(sed 's/^/# /') 2>&1 &
    wait $! || {
        echo "1..1"
        echo "not ok 1 - $suite: fresh system"
        bad=1
        continue
    }
    enter "$root" true
    # Keep a failed system until the next run. Its processes and mounts end with
    # this script.
    if ! "$PYTHON" tests/packages/check.py "$suite" "$root" "$beside"; then
        bad=1
        continue
    fi
    release "$root"
    [ -n "${KEEP:-}" ] || rm -rf --one-file-system "$root" "$beside"
done
exit "$bad"
