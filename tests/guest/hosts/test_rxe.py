# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest on the other host runs the kernel's rxe."""
from lab import interop
from lab.hosts import HostedPair, settled
from lab.verified import verified_traffic

PAIR = HostedPair
SECOND = 'rxe'
SECONDS = 90


def test_rc_every_operation_over_both_families(bench):
    for family in (4, 6):
        bench.verify('-s 16384 -n 32 -r 2 -V -m 4096', family=family)


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 32 -r 2 -V -R 64')


def test_programs_both_ways(bench):
    interop.programs_both_ways(bench, 4)


def test_the_guest_with_the_adapter_moves_and_comes_back(bench):
    with verified_traffic(bench, '-s 16384 -n 32 -m 4096 -e'):
        for where in (['vx0', 'tap1'], ['tap1', 'vx0']):
            bench.one.move()
            settled(bench.pair, 1, where)
