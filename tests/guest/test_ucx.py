# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX of Debian between two guests. It fills in attributes as adapters let
it, a flow label of all ones, and asks for queues of 4096 receives."""
from lab.ucx import perftest

SECONDS = 20


def test_rc_connects(bench):
    for test in ('am_lat -D short -s 8', 'get -D zcopy -s 4096'):
        perftest(bench, f'-x rc_verbs -d {{device}} -t {test}')


def test_rc_has_atomics(bench):
    for test in 'fadd', 'cswap':
        perftest(bench, f'-x rc_verbs -d {{device}} -t {test} -s 8')


def test_ud_connects(bench):
    perftest(bench, '-x ud_verbs -d {device} -t am_lat -D bcopy '
             '-s 512')


def test_a_large_message_takes_both(bench):
    perftest(bench, '-s 65536 -t tag_lat', 'UCX_TLS=rc_verbs,ud_verbs')
