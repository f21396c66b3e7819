# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory of a guest's kernel and of its QEMU, to find leaks."""
import os
import re

# Larger mappings are the guest's memory and TCG's code.
LARGEST = 128 << 10


def qemu_kib(pid):
    """Resident KiB of QEMU's own heap."""
    total = 0
    with open(f'/proc/{pid}/smaps', encoding='ascii') as f:
        for mapping in re.split(r'(?m)^(?=[0-9a-f]+-[0-9a-f]+ )', f.read()):
            size = re.search(r'^Size:\s+(\d+)', mapping, re.M)
            if size and int(size.group(1)) < LARGEST:
                total += int(re.search(r'^Anonymous:\s+(\d+)', mapping,
                                       re.M).group(1))
    return total


def resident_kib(pid):
    """Resident KiB of a process."""
    with open(f'/proc/{pid}/status', encoding='ascii') as f:
        return int(re.search(r'^VmRSS:\s+(\d+)', f.read(), re.M).group(1))


def open_files(pid):
    """Return the number of files that a process has open."""
    return len(os.listdir(f'/proc/{pid}/fd'))


def kernel_kib(vm):
    """KiB that the guest's kernel cannot reclaim."""
    vm.must('sync; echo 3 > /proc/sys/vm/drop_caches')
    text = vm.must('cat /proc/meminfo')
    return int(re.search(r'SUnreclaim:\s+(\d+)', text).group(1))


class Watch:
    """Measures growth between two points of a test."""

    def __init__(self, vms):
        self.before = {vm: self.sample(vm) for vm in vms}

    @staticmethod
    def sample(vm):
        return kernel_kib(vm), qemu_kib(vm.process.pid)

    def growth(self):
        """(guest's kernel, its QEMU) in KiB, the largest of all guests."""
        rows = [[now - before for now, before in zip(self.sample(vm), old)]
                for vm, old in self.before.items()]
        return max(r[0] for r in rows), max(r[1] for r in rows)
