# SPDX-License-Identifier: GPL-2.0-or-later
"""Adapters that run in an iothread, in guests with one CPU each."""
import os

from lab.pair import queues
from lab.programs import build_self_qp
from lab.runner import Skip

# `make check-scale` sets FULL: with fewer writes a missed write often does not
# occur.
ALONE = 1500000 if os.environ.get('FULL') else 400000


def thread(_):
    return '' if queues() else 'iothread=io1'


GUESTS = {'options': thread,
          'extra': lambda index: ['-object', 'iothread,id=io1']}
SECONDS = 35


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V')


def test_rc_waits_for_events(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V -e')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_writes_that_are_alone_are_all_seen(bench):
    if bench.stack == 'rxe' or queues():
        raise Skip('for queues that the device looks at by itself')
    binary = build_self_qp('qp_rates')
    where = bench.where(bench.one, '-d {} -g {}')
    said = bench.one.must(f'yes | timeout 300 {binary} {where} -n 100000 '
                          f'-a {ALONE} 128', timeout=320)
    assert 'qps 128 rate' in said and 'stuck' not in said, said
