# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA: a short test of a user in the kernel. `make
check-kernel-users` runs the long ones."""
from guestkit.adapter import address
from lab import nvme, storage


def test_a_disk_over_nvme_of(bench):
    before = bench.resources()
    nvme.export(bench.two, address(2))
    name = nvme.connect(bench.one, address(2))
    device = f'/dev/{name}n1'
    storage.blocks(bench.one, device, bench.two, nvme.DISK,
                   (('4k', 1), ('64k', 4), ('1M', 8)))
    storage.file_system(bench.one, device, 8)
    nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)
    bench.nothing_left(before)
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
