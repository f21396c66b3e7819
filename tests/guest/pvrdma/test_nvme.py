# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA: memory registration by work requests, and invalidation."""
from guestkit.adapter import address
from lab import nvme, pvrdma, storage

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'smp': 2}


def round_trip(bench, family=4, queues=1):
    before = bench.resources()
    nvme.export(bench.two, address(2, family), family)
    name = nvme.connect(bench.one, address(2, family), queues)
    device = f'/dev/{name}n1'
    storage.blocks(bench.one, device, bench.two, nvme.DISK)
    storage.parallel(bench.one, device)
    storage.file_system(bench.one, device)
    nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)
    bench.nothing_left(before)


def test_ipv4(bench):
    round_trip(bench)


def test_ipv6_and_two_queues(bench):
    round_trip(bench, 6, 2)


def test_five_connects_and_disconnects(bench):
    before = bench.resources()
    nvme.export(bench.two, address(2))
    for _ in range(5):
        name = nvme.connect(bench.one, address(2))
        storage.blocks(bench.one, f'/dev/{name}n1', sizes=(('64k', 1),))
        nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)
    bench.nothing_left(before)
