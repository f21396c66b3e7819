# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 1 runs in User-mode Linux and uses its rxe by rdma-verbs. Guest 2 has
virtio-rdma on rdma-roce."""
from guestkit.adapter import address
from guestkit.paths import qemu_binary
from lab.nested import NestedPair, on_rxe

PAIR = NestedPair
GUESTS = {'devices': on_rxe}
SECONDS = 60


def test_pingpong_with_a_peer_of_the_host(bench):
    bench.exchange('ibv_rc_pingpong -e -n 100', 'ibv_rc_pingpong -e -n 100')


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 16 -r 1 -V')


def test_no_rdma_cm_where_the_host_has_its_own(bench):
    """The guest's programs fail at once, and QEMU has reported the reason."""
    host = address(2, 6)
    its = bench.one.run(f'ucmatose -s {host} -c 1', 30)
    assert its.rc not in (0, None), str(its)
    assert 'Invalid argument' in its.out, str(its)
    assert 'its module ib_cm has them' in bench.one.qemu_said()


def test_an_iwarp_device_of_the_host_is_refused(bench):
    host = bench.pair.host
    host.must('rdma link add siw0 type siw netdev eth0')
    try:
        its = host.run(
            f'{qemu_binary()} -accel qtest -machine q35,memory-backend=ram '
            '-m 64 -nodefaults -display none '
            '-object memory-backend-memfd,id=ram,size=64M,share=on '
            '-object rdma-verbs,id=r0,ibdev=siw0 '
            '-device virtio-rdma-pci,rdmadev=r0')
    finally:
        host.must('rdma link del siw0')
    assert its.rc == 1, str(its)
    assert "RDMA device 'siw0' is not RoCE" in its.out, str(its)
    assert 'it is iWARP' in its.out, str(its)
