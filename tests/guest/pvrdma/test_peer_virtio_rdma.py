# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 2 has virtio-rdma, with this project's driver and provider."""
from guestkit.adapter import address
from lab import interop, nvme, pvrdma, storage

PAIR, STACK, SECOND = pvrdma.pair, pvrdma.STACK, 'virtio-rdma'
GUESTS = {'peer': 'virtio-rdma', 'smp': 2}


def test_rc_every_operation(bench):
    bench.verify('-s 16384 -n 64 -r 3 -V -q 4')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_programs_both_ways(bench):
    for family, without in pvrdma.CANNOT.items():
        interop.programs_both_ways(bench, family, without)


def test_a_disk_of_each_guest_over_nvme_of(bench):
    for target in (1, 2):
        far, near = bench.pair.vms[target - 1], bench.pair.vms[2 - target]
        nvme.export(far, address(target))
        name = nvme.connect(near, address(target))
        storage.blocks(near, f'/dev/{name}n1', far, nvme.DISK)
        nvme.disconnect(near, name)
        nvme.withdraw(far)
