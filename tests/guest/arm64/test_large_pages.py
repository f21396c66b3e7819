# SPDX-License-Identifier: GPL-2.0-or-later
"""An arm64 guest with pages of 16 KiB. One of them has four of the device's
pages of queues, or of doorbells."""
import re

from check.api.test_verify import *    # pylint: disable=wildcard-import,unused-wildcard-import
from guestkit import driver
from guestkit.adapter import address
from guestkit.arch import ARM64_16K, NATIVE
from lab import nvme, storage
from lab.pair import Pair
from lab.programs import run_no_syscalls
from lab.stock import pingpong

# With force_mr the target of NVMe-oF registers memory, too: in pages of its
# own kernel, while the initiator registers in pages of 4 KiB.
GUESTS = {'archs': (ARM64_16K, NATIVE), 'smp': 2,
          'append': 'ib_core.force_mr=1'}


def PAIR(*args, **options):    # pylint: disable=invalid-name
    driver.prepare(arch=ARM64_16K)
    return Pair(*args, **options)


def test_pages_have_16_kib(bench):
    assert bench.one.must('getconf PAGESIZE').strip() == '16384'


def test_queues_are_direct(bench):
    """The queues are deeper than the 1024 entries of a virtqueue."""
    for vm in bench.pair.vms:
        text = vm.must(f'ibv_devinfo -v -d {bench.device(vm)}')
        depth = int(re.search(r'max_qp_wr:\s+(\d+)', text)[1])
        assert depth > 1024, depth


def test_processes_have_doorbells(bench):
    """Processes post without system calls, and two processes do not share a
    page of doorbells."""
    run_no_syscalls(bench)
    bench.verify('-s 4096 -n 64 -r 3 -V -q 4', server=bench.one,
                 client=bench.one)


def test_ibv_rc_pingpong_validates(bench):
    pingpong(bench, 'ibv_rc_pingpong')


def disk_of(bench, target, host):
    """Use a disk of one guest in the other, by NVMe over RDMA."""
    where = address(bench.pair.vms.index(target) + 1)
    before = bench.resources()
    nvme.export(target, where)
    name = nvme.connect(host, where)
    storage.blocks(host, f'/dev/{name}n1', target, nvme.DISK,
                   (('16k', 1), ('64k', 4), ('1M', 8)))
    nvme.disconnect(host, name)
    nvme.withdraw(target)
    bench.nothing_left(before)


def test_a_disk_of_the_x86_guest(bench):
    disk_of(bench, bench.two, bench.one)


def test_a_disk_of_the_arm64_guest(bench):
    disk_of(bench, bench.one, bench.two)
