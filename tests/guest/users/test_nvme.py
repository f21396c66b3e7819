# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA: nvmet-rdma in guest 2, nvme-rdma in guest 1."""
from lab import nvme

GUESTS = {'smp': 2}


def test_ipv4(bench):
    nvme.use_disk(bench)


def test_ipv6_and_two_queues(bench):
    nvme.use_disk(bench, family=6, queues=2)


def test_the_other_way_round(bench):
    nvme.use_disk(bench, target=bench.one)


def test_the_target_receives_from_shared_queues(bench):
    nvme.use_disk(bench, queues=2, srq=True)


def test_ten_connects_and_disconnects(bench):
    nvme.connect_repeatedly(bench, 10)


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
        nvme.use_disk(bench)
    finally:
        load_core(bench, bench.two, '')


def test_the_driver_unloads_afterwards(bench):
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
