#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-packages.sh: make Debian packages of the tree in $B/packages, with
# packaging/debian, and check them with lintian. From the environment: B (build
# directory), PYTHON.
#
# The provider for rdma-core 65 is in a directory of its own, rdma-core-65, so
# that *.deb are packages for one system. If rdma-core 65 is not available, that
# package is left out, and the file left-out says so.
#
# The version comes from the file VERSION, the date from the last commit, so
# that the same tree at the same path makes the same packages.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(cat VERSION)
out=$B/packages
optional=ibverbs-provider-virtio-rdma-abi65
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
rm -rf "$tree" "$out"/*.{deb,buildinfo,changes} "$out/rdma-core-65"
mkdir -p "$tree"
: > "$out/left-out"
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

echo "== rdma-core 65"
work=$out/rdma-core-abi65
"$PYTHON" scripts/fetch.py --work "$work/fetch" \
        source rdma-core 65 "$work/source" || {
    rm -rf "$out/provider-abi65"
    echo "The archive lacks the source of rdma-core 65: make packages omits" \
        "$optional. make SOURCE_CACHE=DIR takes the source from a directory." |
        tee "$out/left-out"
    # The parts of the file are separated by empty lines.
    awk -v RS= -v ORS='\n\n' "!/^Package: $optional\n/" \
        "$tree/packaging/debian/control" > "$tree/debian/control"
}

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
[ -s left-out ] || {
    mkdir rdma-core-65
    mv "${optional}_${version}"_*.deb rdma-core-65/
}
