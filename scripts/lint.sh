#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# lint.sh: the style of all files that git knows. QEMU's checkpatch.pl judges
# the C code; the rest is checked here. From the environment: QEMU_TREE,
# PYTHON.
set -u
cd "$(dirname "$0")/.." || exit
max_lines=800
bad=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

complain() {
    echo "$*"
    bad=$((bad + 1))
}

mapfile -t files < <(git ls-files -co --exclude-standard |
    while read -r name; do [ -f "$name" ] && echo "$name"; done)

of_kind() { # REGEX: the files that match it
    printf '%s\n' "${files[@]}" | grep -E "$1"
}

echo "== SPDX line within the first three lines"
while read -r name; do
    head -n 3 "$name" | grep -q 'SPDX-License-Identifier: .*GPL-2.0' ||
        complain "$name: no SPDX line"
done < <(of_kind '(\.([ch]|py|sh|build|rst)|Kconfig|Kbuild|Makefile|trace-events)$|\.(conf|list)$|^scripts/stage$|^configure$|^\.ci/')

echo "== length, at most $max_lines lines"
while read -r name; do
    lines=$(wc -l < "$name")
    [ "$lines" -le "$max_lines" ] || complain "$name: $lines lines"
done < <(of_kind '\.([ch]|py|sh|build|rst|md)$')

echo "== blanks at line ends, promises, paths of a machine"
while read -r name; do
    found=$(grep -nE '[[:blank:]]+$' "$name") && complain "$name: $found"
    found=$(grep -nwE 'TODO|FIXME|XXX|HACK' "$name") &&
        [ "$name" != scripts/lint.sh ] && complain "$name: $found"
    found=$(grep -nE '(^|[^a-zA-Z0-9_.])/(root|home)/' "$name") &&
        [ "$name" != scripts/lint.sh ] && complain "$name: $found"
done < <(of_kind '\.([ch]|py|sh|build|rst|md)$|Makefile$|Kconfig$|^configure$|^scripts/')

echo "== shell syntax"
while read -r name; do
    case $(head -n 1 "$name") in
    '#!'*bash) bash -n "$name" || complain "$name: bash -n" ;;
    '#!'*/sh) sh -n "$name" || complain "$name: sh -n" ;;
    esac
done < <(printf '%s\n' "${files[@]}" | grep -vE '\.(c|h|rst|pcap|stream)$')

echo "== Python syntax"
of_kind '\.py$' | xargs -d '\n' "$PYTHON" -c '
import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name, encoding="utf-8").read(), name)
' || complain "Python syntax"

echo "== checkpatch, QEMU's rules"
checkpatch=$QEMU_TREE/scripts/checkpatch.pl
if [ ! -f "$checkpatch" ]; then
    echo "SKIP: $QEMU_TREE has no scripts/checkpatch.pl"
else
    # The guest side follows the kernel's style; checkpatch takes every file
    # of standard-headers for an import from Linux
    of_kind '\.[ch]$' | grep -vE '^(guest|include/standard-headers)/' |
        xargs -d '\n' -n 8 -P "$(nproc)" \
            perl "$checkpatch" --no-tree --terse --quiet -f > "$out" 2>&1 ||
        complain "checkpatch"
    grep -v '^total: 0 errors, 0 warnings' "$out"
fi

echo "== checkpatch, the kernel's rules"
# U-Boot, which comes with QEMU's source, has the kernel's
checkpatch=$QEMU_TREE/roms/u-boot/scripts/checkpatch.pl
judge_guest() { # REGEX OPTIONS...
    local names=$1
    shift
    of_kind "$names" |
        xargs -d '\n' perl "$checkpatch" --no-tree --terse --quiet "$@" -f \
            > "$out" 2>&1 || complain "checkpatch of $names"
    grep -v '^total: 0 errors, 0 warnings' "$out"
}
if [ ! -f "$checkpatch" ]; then
    echo "SKIP: $QEMU_TREE has no U-Boot"
else
    judge_guest '^guest/linux/.*\.[ch]$' --strict --ignore MACRO_ARG_REUSE
    # rdma-core has positive error numbers and its own licence line
    judge_guest '^guest/rdma-core/.*\.[ch]$' \
        --ignore SPDX_LICENSE_TAG,USE_NEGATIVE_ERRNO,LINE_SPACING
fi

echo "$bad complaints"
[ "$bad" = 0 ]
