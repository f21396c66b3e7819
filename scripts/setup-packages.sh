#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# setup-packages.sh [--check] GROUP...: install missing packages of these groups
# in packages.list, as root. Without root, print the command that installs them,
# and fail. With --check, only return whether all are installed.
set -eu
check=
if [ "$1" = --check ]; then
    check=1
    shift
fi
list=$(dirname "$0")/packages.list

one_line() {
    echo "$1" | tr '\n' ' '
}

wanted=$(awk -v groups=" $* " '
    /^\[.*\]$/ { group = substr($0, 2, length($0) - 2); next }
    /^[a-z0-9]/ { if (index(groups, " " group " ")) print $1 }' "$list")

if ! command -v dpkg-query > /dev/null; then
    [ -n "$check" ] ||
        echo "Not a Debian system. Install the equivalents of:" \
            "$(one_line "$wanted")" >&2
    exit 0
fi

# A virtual package counts as installed if a package provides it.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}, ${Provides}\n' |
    sed -n 's/^installed //p' | tr ',' '\n' | awk 'NF { print $1 }' | sort -u)
missing=$(echo "$wanted" | sort -u | while read -r name; do
    printf '%s\n' "$installed" | grep -qxF -- "$name" || echo "$name"
done)
[ -n "$missing" ] || exit 0
[ -z "$check" ] || exit 1

if [ "$(id -u)" != 0 ]; then
    echo "Packages are missing. Install them with:" >&2
    echo "  sudo apt-get install --no-install-recommends" \
        "$(one_line "$missing")" >&2
    exit 1
fi
echo "installing: $(one_line "$missing")"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086 # several words
apt-get install -q -y --no-install-recommends $missing
