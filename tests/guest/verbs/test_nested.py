# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 1 is in User-mode Linux, and has its rxe by rdma-verbs. Guest 2 has
virtio-rdma with an engine of its own."""
from lab.nested import NestedPair, on_rxe

PAIR = NestedPair
GUESTS = {'devices': on_rxe}
SECONDS = 60


def test_pingpong_with_a_peer_of_the_host(bench):
    bench.exchange('ibv_rc_pingpong -e -n 100', 'ibv_rc_pingpong -e -n 100')


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 16 -r 1 -V')
