#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-packages.sh: make Debian packages of the tree in $B/packages, with
# packaging/debian, and check them with lintian. From the environment: B (build
# directory).
#
# The version comes from the file VERSION, the date from the last commit, so
# that the same tree at the same path makes the same packages.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(cat VERSION)
out=$B/packages
tree=$out/virtio-rdma-$version

# Print the files of the tree, which is a checkout or an unpacked tarball.
files() {
    git ls-files -z --cached --others --exclude-standard 2> /dev/null ||
        find . -path "./${B#"$PWD"/}" -prune -o -path ./.git -prune -o \
            -type f -print0
}

date=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null ||
    stat -c %Y VERSION)}

echo "== copy"
rm -rf "$tree" "$out"/*.{deb,buildinfo,changes}
mkdir -p "$tree"
files | while read -r -d '' name; do
    # git also lists files whose removal is not committed.
    [ ! -e "$name" ] || printf '%s\0' "$name"
done | tar -c --null -T - | tar -x -C "$tree"
cp -a "$tree/packaging/debian" "$tree/debian"
maintainer=$(sed -n 's/^Maintainer: //p' "$tree/debian/control")
cat > "$tree/debian/changelog" <<END
virtio-rdma ($version) unstable; urgency=medium

  * Version $version; see CHANGELOG.md.

 -- $maintainer  $(LC_ALL=C date -u -R -d "@$date")
END

echo "== build"
export SOURCE_DATE_EPOCH=$date VRDMA_BUILD=$B
# Do not inherit jobs and variables of the calling make.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
cd "$tree"
DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" \
    dpkg-buildpackage --build=binary --no-sign --no-check-builddeps

echo "== lintian"
cd ..
rm -rf "$tree"
lintian --allow-root --fail-on error,warning --info \
    "virtio-rdma_${version}_$(dpkg-architecture -qDEB_HOST_ARCH).changes"
