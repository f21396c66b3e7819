# SPDX-License-Identifier: GPL-2.0-or-later
"""Unplug and plug in the adapter of a guest, which is in a port of its own."""
import time

from guestkit.paths import LabError

from . import wire

DEVICE = {'driver': 'virtio-rdma-pci', 'id': 'rdma0', 'bus': 'rp0',
          'addr': '0'}


def unplug(bench, vm):
    """Unplug the adapter. Return when the guest has released it."""
    vm.qmp('device_del', id='rdma0')
    end = time.monotonic() + 40
    while True:
        event = vm.qmp_channel.event('DEVICE_DELETED', 40)
        if event['data'].get('device') == 'rdma0':
            break
        if time.monotonic() > end:
            raise LabError('rdma0 was not released')
    assert bench.stacks[vm].find(vm) is None, vm.run('rdma link').out


def plug(bench, vm):
    """Plug the adapter in again, with the same backend and iothread. Return
    when the guest can use it."""
    objects = wire.objects(vm)
    how = {'rdmadev': 'r0'} if 'r0' in objects else {'netdev': 'n0'}
    if 'io0' in objects:
        how['iothread'] = 'io0'
    vm.qmp('device_add', **DEVICE, **how)
    bench.stacks[vm].wait(vm)
