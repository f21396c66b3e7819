#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# lint.sh: check the style of all files that git knows and of the last commits,
# the direction of calls and includes, and run clang's analyzer. QEMU's
# checkpatch.pl checks the C code. From the environment: QEMU_TREE, BUILD_DIR,
# PYTHON.
set -u
cd "$(dirname "$0")/.." || exit
max_lines=800
bad=0
out=$(mktemp)
analysis=$(mktemp)
trap 'rm -f "$out" "$analysis"' EXIT

# The analyzer takes most of the time, so it runs beside the other checks, which
# take one processor. It needs the build's compiler command lines for the device
# and the provider.
"$PYTHON" scripts/analyze.py "$BUILD_DIR" > "$analysis" 2>&1 &
analyzer=$!

complain() {
    echo "$*"
    bad=$((bad + 1))
}

skip() { # WHY: report a check that is left out; an error in CI
    echo "SKIP: $*"
    [ -z "${CI:-}" ] || complain "skipped: $*"
}

mapfile -t files < <(git ls-files -co --exclude-standard |
    while read -r name; do [ -f "$name" ] && echo "$name"; done)

of_kind() { # REGEX: print the files that match
    printf '%s\n' "${files[@]}" | grep -E "$1"
}

run() { # TITLE COMMAND...: run a checker, which prints findings and fails
    local title=$1
    shift
    echo "== $title"
    "$@" || complain "$title"
}

# One process for all files: a process for each file would take a minute.
in_files() { # REGEX COMMAND...: run it with the files that match
    local kind=$1
    shift
    of_kind "$kind" | xargs -d '\n' "$@"
}

none() { # COMMAND...: fail if the command prints anything
    ! "$@" 2>&1 | grep .
}

shell_scripts() {
    # shellcheck disable=SC2016 # awk's
    printf '%s\n' "${files[@]}" | grep -vE '\.(c|h|rst|pcap|stream)$' |
        xargs -d '\n' awk '
            FNR == 1 && /^#!.*(bash|\/sh)$/ { print FILENAME }
            { nextfile }'
}

of='(\.([ch]|py|sh|build|rst|toml|css|dot)|Kconfig|Kbuild|Makefile|trace-events)$'
of+='|\.(conf|list|words)$|^scripts/(stage|pylintrc)$|^configure$|^\.ci/'
# shellcheck disable=SC2016 # awk's
run "SPDX line within the first three lines" none in_files "$of" awk '
    FNR > 3 { nextfile }
    /SPDX-License-Identifier: .*GPL-2.0/ { good[FILENAME] }
    END {
        for (i = 1; i < ARGC; i++)
            if (!(ARGV[i] in good))
                print ARGV[i] ": no SPDX line"
    }'

# shellcheck disable=SC2016 # awk's
run "length, at most $max_lines lines" none in_files \
    '\.([ch]|py|sh|build|rst|md)$' awk -v max="$max_lines" '
    { lines[FILENAME] = FNR }
    END {
        for (name in lines)
            if (lines[name] > max)
                print name ": " lines[name] " lines"
    }'

of='\.([ch]|py|sh|build|rst|md|css|dot)$|Makefile$|Kconfig$|^configure$'
of+='|^scripts/'
run "blanks at line ends" none in_files "$of" grep -nHE '[[:blank:]]+$'

but_here() { # REGEX OPTIONS...: find lines in files other than this one
    in_files "$of" grep -nH "${@:2}" -e "$1" | grep -v '^scripts/lint\.sh:'
}
run "promises" none but_here 'TODO|FIXME|XXX|HACK' -wE
run "paths of a machine" none but_here '(^|[^a-zA-Z0-9_.])/(root|home)/' -E

of='\.(md|rst|sh|build|toml|list|words)$|(^|/)(Makefile|Kconfig)$'
of+='|^qapi/'
of+='|^configure$|^\.ci/|^scripts/(stage|pylintrc)$'
mapfile -t names < <(of_kind "$of")
run "width of lines" "$PYTHON" scripts/check-width.py "${names[@]}"

of='\.(c|h|py|sh|md|rst|build|toml|list|dot)$|Makefile$'
mapfile -t names < <(of_kind "$of")
run "spelling" codespell --ignore-words scripts/spelling.words "${names[@]}"

run "phrases that readers stumble over" "$PYTHON" scripts/check-words.py
run "subjects of commits" "$PYTHON" scripts/check-subjects.py

run "calls and includes go down" "$PYTHON" scripts/call-graph.py --check

mapfile -t names < <(shell_scripts)
run "shellcheck" shellcheck --external-sources "${names[@]}"

of='\.py$|^tests/guest/run$|^tools/(exporter|lab|server)/[a-z-]+$'
mapfile -t names < <(of_kind "$of")
# Not every machine has the modules of the guests; pylint sees no names of C
# modules.
run "pylint" "$PYTHON" -m pylint --rcfile scripts/pylintrc \
    --disable import-error,no-name-in-module "${names[@]}"

man_pages() { # FILE...: fail on warnings, with which groff succeeds
    ! groff -man -ww -z -Tutf8 "$@" 2>&1 | grep .
}
mapfile -t names < <(of_kind '/man/[^/]*\.[1-8]\.in$|\.1$')
run "man pages" man_pages "${names[@]}"

run "pages, by Sphinx" scripts/build-docs.sh "$BUILD_DIR/docs"

judged() { # WHAT: fail if checkpatch printed more than its sums
    ! grep -v '^total: 0 errors, 0 warnings' "$out" || complain "$1"
}

# Kernel modules of tests follow the kernel's style.
broken=tests/guest/programs/broken

echo "== checkpatch, QEMU's rules"
checkpatch=$QEMU_TREE/scripts/checkpatch.pl
if [ ! -f "$checkpatch" ]; then
    skip "$QEMU_TREE has no scripts/checkpatch.pl"
else
    # The guest side follows the kernel's style. checkpatch treats every file of
    # standard-headers as an import from Linux.
    of_kind '\.[ch]$' |
        grep -vE "^(guest|$broken|include/standard-headers)/" |
        xargs -d '\n' -n 8 -P "$(nproc)" \
            perl "$checkpatch" --no-tree --terse --quiet -f > "$out" 2>&1
    judged checkpatch
fi

echo "== checkpatch, the kernel's rules"
# U-Boot, in QEMU's source, has the kernel's checkpatch.
checkpatch=$QEMU_TREE/roms/u-boot/scripts/checkpatch.pl
judge_guest() { # REGEX OPTIONS...
    local kind=$1
    shift
    of_kind "$kind" |
        xargs -d '\n' perl "$checkpatch" --no-tree --terse --quiet "$@" -f \
            > "$out" 2>&1
    judged "checkpatch of $kind"
}
if [ ! -f "$checkpatch" ]; then
    skip "$QEMU_TREE has no U-Boot"
else
    judge_guest "^(guest/linux|$broken)/.*\.[ch]\$" --strict \
        --ignore MACRO_ARG_REUSE
    # rdma-core uses positive error numbers and its own licence line.
    judge_guest '^guest/rdma-core/.*\.[ch]$' \
        --ignore SPDX_LICENSE_TAG,USE_NEGATIVE_ERRNO,LINE_SPACING
fi

analyzed() { # print the output of the analyzer; its exit code
    local rc=0
    wait "$analyzer" || rc=$?
    cat "$analysis"
    return "$rc"
}
run "clang's analyzer" analyzed

echo "$bad complaints"
[ "$bad" = 0 ]
