#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# with_packages.sh DIR COMMAND...: runs a command that sees the Debian packages
# unpacked in DIR as if they were installed. No other process sees them.
set -e
root=$1
shift
layers() {
    mount -t overlay packages -o "lowerdir=$root/usr:/usr" /usr
    [ ! -d "$root/etc" ] ||
        mount -t overlay packages -o "lowerdir=$root/etc:/etc" /etc
}
if [ "$WITH_PACKAGES" = "$root" ]; then
    layers
    unset WITH_PACKAGES
    exec "$@"
fi
WITH_PACKAGES=$root exec unshare --mount "$0" "$root" "$@"
