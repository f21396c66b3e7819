# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 1 is in User-mode Linux, and has its rxe by rdma-verbs. Guest 2 has
virtio-rdma with an engine of its own."""
from lab.nested import NestedPair, on_rxe
from lab.pair import address

PAIR = NestedPair
GUESTS = {'devices': on_rxe}
SECONDS = 60


def test_pingpong_with_a_peer_of_the_host(bench):
    bench.exchange('ibv_rc_pingpong -e -n 100', 'ibv_rc_pingpong -e -n 100')


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 16 -r 1 -V')


def test_no_rdma_cm_where_the_host_has_its_own(bench):
    """The guest's programs fail at once, and QEMU has said why."""
    host = address(2, 6)
    its = bench.one.run(f'ucmatose -s {host} -c 1', 30)
    assert its.rc not in (0, None), str(its)
    assert 'Invalid argument' in its.out, str(its)
    assert 'its module ib_cm has them' in bench.one.qemu_said()
