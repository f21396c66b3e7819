# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that suppress interrupts by flags alone. Also: the driver refuses the
device of the original proposal."""
import time

from lab.hotplug import DEVICE, plug, unplug
from lab.runner import Skip

GUESTS = {'options': lambda index: 'event_idx=off', 'hotplug': True}
SECONDS = 20


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V')


def test_rc_waits_for_events(bench):
    bench.verify('-s 4096 -n 64 -r 6 -V -e -q 2')


def test_rc_waits_for_events_in_its_own_guest(bench):
    for vm in bench.pair.vms:
        bench.verify('-s 4096 -n 64 -r 6 -V -e', server=vm, client=vm)


def test_ibv_rc_pingpong_with_events(bench):
    bench.exchange('ibv_rc_pingpong -e -c -n 2000',
                   'ibv_rc_pingpong -e -c -n 2000')


def test_the_driver_refuses_a_device_without_version_1(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe is not a device of QEMU')
    vm = bench.one
    unplug(bench, vm)
    said = len(vm.kernel_log())
    vm.qmp('device_add', **DEVICE, netdev='n0', **{'version-1': False})
    end = time.monotonic() + 30
    while 'no VIRTIO_RDMA_F_VERSION_1' not in vm.kernel_log()[said:]:
        assert time.monotonic() < end, vm.kernel_log()[said:]
        time.sleep(0.1)
    unplug(bench, vm)
    plug(bench, vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
