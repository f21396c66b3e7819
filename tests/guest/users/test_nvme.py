# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA: nvmet-rdma in guest 2, nvme-rdma in guest 1."""
from guestkit.adapter import address
from lab import nvme, storage

GUESTS = {'smp': 2}


def round_trip(bench, family=4, queues=1, target=None, srq=False):
    """Connect, use the disk and unload; guest 1 or 2 is the initiator."""
    target = target or bench.two
    host = bench.one if target is bench.two else bench.two
    traddr = address(bench.pair.vms.index(target) + 1, family)
    before = bench.resources()
    nvme.export(target, traddr, family,
                # more than a virtqueue holds, all posted at once
                options='use_srq=1 srq_size=4000' if srq else '')
    name = nvme.connect(host, traddr, queues)
    assert bool(bench.count(target, 'srq')) == srq
    device = f'/dev/{name}n1'
    storage.blocks(host, device, target, nvme.DISK)
    storage.parallel(host, device)
    storage.file_system(host, device)
    nvme.disconnect(host, name)
    nvme.withdraw(target)
    bench.nothing_left(before)


def test_ipv4(bench):
    round_trip(bench)


def test_ipv6_and_two_queues(bench):
    round_trip(bench, family=6, queues=2)


def test_the_other_way_round(bench):
    round_trip(bench, target=bench.one)


def test_the_target_receives_from_shared_queues(bench):
    round_trip(bench, queues=2, srq=True)


def test_ten_connects_and_disconnects(bench):
    before = bench.resources()
    nvme.export(bench.two, address(2))
    for _ in range(10):
        name = nvme.connect(bench.one, address(2))
        storage.blocks(bench.one, f'/dev/{name}n1', sizes=(('64k', 1),))
        nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)
    bench.nothing_left(before)


def load_core(bench, vm, option):
    """Load the RDMA core again, with an option."""
    bench.stacks[vm].unload(vm)
    vm.must('rmmod rdma_ucm rdma_cm iw_cm ib_cm ib_umad ib_uverbs ib_core && '
            f'modprobe ib_core {option}')
    bench.stacks[vm].up(vm)


def test_the_target_registers_memory(bench):
    """The target maps again before the LOCAL_INV of the old mapping has
    executed."""
    load_core(bench, bench.two, 'force_mr=Y')
    try:
        round_trip(bench)
    finally:
        load_core(bench, bench.two, '')


def test_the_driver_unloads_afterwards(bench):
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
