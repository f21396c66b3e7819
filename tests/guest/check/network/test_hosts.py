# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests on two hosts, which are network namespaces, with the bridges and
VXLAN of the page about several hosts. `make check-hosts` runs more tests."""
from lab.hosts import HostedPair, settled
from lab.runner import slow
from lab.verified import verified_traffic

PAIR = HostedPair
SECONDS = 30


@slow
def test_a_guest_moves_to_the_other_host_and_back_during_traffic(bench):
    settled(bench.pair, 1, ['tap1', 'vx0'])
    with verified_traffic(bench, '-s 16384 -n 64 -q 2 -m 4096 -e'):
        for where in (['vx0', 'tap1'], ['tap1', 'vx0']):
            bench.note(str(bench.one.move()))
            settled(bench.pair, 1, where)
