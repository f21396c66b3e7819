#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# check-ci-jobs.sh: run the unchanged CI jobs of the page about vrdma-lab, each
# on a fresh system like its container's. Prints one stream of TAP. Checkouts
# are clones of this tree, and the second job gets the first one's build from
# the cache. From the environment: B (build directory), PYTHON; optional:
# PACKAGES, SOURCE_CACHE and KEEP.
set -euo pipefail
cd "$(dirname "$0")/.."

# shellcheck source=scripts/fresh.sh
. scripts/fresh.sh
fresh_begin "$0" "$@"
mkdir -p "$B/fresh"

project=/builds/project
cached=$project/virtio-rdma/build
cache=$B/fresh/ci-cache

show() { # NAME ROOT: write a file of the page into the project
    "$PYTHON" - "$1" > "$2$project/$1" <<'END'
import sys
sys.dont_write_bytecode = True
sys.path[:0] = ['tests/guest', 'tools/lab']
from lab.pages import listing
print(listing('virtio-rdma-lab', sys.argv[1]), end='')
END
}

make_project() { # ROOT
    mkdir -p "$1$project"
    show hello.c "$1"
    show test.sh "$1"
    chmod 755 "$1$project/test.sh"
}

serve() { # ROOT: serve the page's address of virtio-rdma for git there
    git clone -q --bare --no-hardlinks "$PWD" "$1/srv/virtio-rdma"
    cat > "$1/root/.gitconfig" <<'END'
[url "file:///srv/virtio-rdma"]
    insteadOf = https://example.org/OWNER/virtio-rdma
END
}

run_job() { # FILE ROOT
    local lines line
    mapfile -t lines < <("$PYTHON" scripts/ci-job.py "$1")
    [ "${#lines[@]}" -gt 1 ]
    make_system "${lines[0]#debian:}" "$2" ''
    make_project "$2"
    if grep -q 'git clone' <<< "${lines[*]}"; then
        serve "$2"
    else
        # like actions/checkout
        git clone -q --no-hardlinks "$PWD" "$2$project/virtio-rdma"
    fi
    if [ -e "$cache" ]; then
        mkdir -p "$2$project/virtio-rdma"
        mv "$cache" "$2$cached"
    fi
    for line in "${lines[@]:1}"; do
        echo "\$ $line"
        echo "$line" > "$2/step"
        enter "$2" "cd $project && timeout 3600 sh -e /step"
    done
    # Count the files of QEMU that this job has compiled.
    grep -c '] Compiling ' "$2$cached/logs/qemu.log" > "$B/fresh/compiled" || :
    mv "$2$cached" "$cache"
    release "$2"
}

number=0
bad=0
all=''
rm -rf "$cache"
for job in .github/workflows/rdma.yml .gitlab-ci.yml; do
    number=$((number + 1))
    root=$B/fresh/ci-$number
    began=$SECONDS
    how=$([ -e "$cache" ] && echo 'with a cache' || echo 'without a cache')
    good=ok
    # Run it in the background: in a condition, set -e would have no effect.
    run_job "$job" "$root" > "$root.log" 2>&1 &
    wait $! || good='not ok'
    if [ "$good" = ok ]; then
        compiled=$(cat "$B/fresh/compiled")
        all=${all:-$compiled}
        how="$how, $compiled files compiled"
        # The page promises that the cache saves the build.
        [ "$number" = 1 ] || [ "$compiled" -lt $((all / 10)) ] || good='not ok'
    fi
    echo "$good $number - $job, $how # $((SECONDS - began)) s"
    if [ "$good" != ok ]; then
        tail -n 30 "$root.log" | sed 's/^/# /'
        bad=1
    elif [ -z "${KEEP:-}" ]; then
        rm -rf --one-file-system "$root"
    fi
done
rm -rf "$cache" "$B/fresh/compiled"
echo "1..$number"
exit "$bad"
