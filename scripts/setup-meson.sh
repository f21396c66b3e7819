#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# setup-meson.sh TOOLS WORK: find a meson that QEMU accepts, or unpack Debian's
# package into TOOLS, without changing the system. Writes TOOLS/meson-path, the
# directory for PYTHONPATH (empty if the system's meson is used), and
# TOOLS/meson.py, which runs meson.
set -eu
tools=$1 work=$2
mkdir -p "$tools"
path=
if ! "$PYTHON" - <<EOF
import importlib.metadata, sys
try:
    version = importlib.metadata.version('meson')
except importlib.metadata.PackageNotFoundError:
    sys.exit(1)
sys.exit([int(n) for n in version.split('.')[:2]] < [1, 5])
EOF
then
    "$PYTHON" "$(dirname "$0")/fetch.py" --work "$work" deb meson "$tools/meson"
    path=$tools/meson/usr/lib/python3/dist-packages
fi
cat > "$tools/meson.py" <<EOF
import sys
sys.path[:0] = [p for p in ['$path'] if p]
from mesonbuild.mesonmain import main
sys.exit(main())
EOF
echo "$path" > "$tools/meson-path"
