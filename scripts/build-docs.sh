#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build-docs.sh OUT: make HTML of all pages in the directory OUT. Warnings are
# errors. From the environment: PYTHON, JOBS.
set -eu
cd "$(dirname "$0")/.."
# Read all pages each time (-E): Sphinx warns only of pages that it reads.
"$PYTHON" -m sphinx -b html -c docs/html -E -a -q -W --keep-going \
    -j "${JOBS:-auto}" docs "$1"
