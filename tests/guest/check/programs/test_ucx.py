# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX of Debian between two guests. It sets attributes that adapters tolerate,
such as a flow label of all ones, and requests queues of 4096 receives."""
from lab.pair import queues
from lab.runner import Skip
from lab.ucx import perftest

SECONDS = 20


def need_deep_queues():
    """Skip if queues are not deep enough: UD takes 4096 receives."""
    if queues():
        raise Skip('a virtqueue has room for 1024 receives')


def test_rc_connects(bench):
    for test in ('am_lat -D short -s 8', 'get -D zcopy -s 4096'):
        perftest(bench, f'-x rc_verbs -d {{device}} -t {test}')


def test_rc_has_atomics(bench):
    for test in 'fadd', 'cswap':
        perftest(bench, f'-x rc_verbs -d {{device}} -t {test} -s 8')


def test_ud_connects(bench):
    need_deep_queues()
    perftest(bench, '-x ud_verbs -d {device} -t am_lat -D bcopy '
             '-s 512')


def test_a_large_message_takes_both(bench):
    need_deep_queues()
    perftest(bench, '-s 65536 -t tag_lat', 'UCX_TLS=rc_verbs,ud_verbs')
