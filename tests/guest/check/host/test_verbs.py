# SPDX-License-Identifier: GPL-2.0-or-later
"""Run some of the device's tests in a guest. The guest is the host of the
tests' QEMU: its RDMA device is the one that rdma-verbs uses. `make
check-verbs` runs all of them on both stacks."""
from guestkit.stack import Rxe
from lab.qtests import ON_RXE, ON_VIRTIO_RDMA, run_sample
from lab.runner import Skip, slow

SECONDS = 60


@slow
def test_the_device_passes_its_own_tests_on_virtio_rdma(bench):
    if bench.stack == 'rxe':
        raise Skip('the guest has no virtio-rdma')
    run_sample(bench, bench.one, bench.device(bench.one), ON_VIRTIO_RDMA)


def test_the_device_passes_its_own_tests_on_rxe(bench):
    """rxe on the guest's NIC, besides virtio-rdma."""
    if bench.stack == 'rxe':
        run_sample(bench, bench.one, bench.device(bench.one), ON_RXE)
        return
    rxe = Rxe()
    rxe.up(bench.one)
    try:
        run_sample(bench, bench.one, rxe.device, ON_RXE)
    finally:
        rxe.unload(bench.one)
