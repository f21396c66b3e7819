# SPDX-License-Identifier: GPL-2.0-or-later
"""Unplug and plug in the adapter of a guest, which is in a port of its own. A
pvrdma goes together with its NIC, which is in the same slot."""
import time

from guestkit.paths import LabError

from . import wire

DEVICE = {'driver': 'virtio-rdma-pci', 'id': 'rdma0', 'bus': 'rp0',
          'addr': '0'}


def request_unplug(vm):
    """Ask the guest to release the adapter."""
    vm.qmp('device_del', id='rdma0')


def wait_unplugged(bench, vm):
    """Return when the guest has released the adapter."""
    left = {'rdma0', 'nic0'} if bench.stack == 'pvrdma' else {'rdma0'}
    end = time.monotonic() + 40
    while left:
        event = vm.qmp_channel.event('DEVICE_DELETED', 40)
        left.discard(event['data'].get('device'))
        if time.monotonic() > end:
            raise LabError(f'not released: {left}')
    assert bench.stacks[vm].find(vm) is None, vm.run('rdma link').out


def unplug(bench, vm):
    """Unplug the adapter. Return when the guest has released it."""
    request_unplug(vm)
    wait_unplugged(bench, vm)


def plug(bench, vm):
    """Plug the adapter in again, with the same backend and iothread. Return
    when the guest can use it."""
    objects = wire.objects(vm)
    how = {'rdmadev': 'r0'} if 'r0' in objects else {'netdev': 'n0'}
    if 'io0' in objects:
        how['iothread'] = 'io0'
    vm.qmp('device_add', **DEVICE, **how)
    bench.stacks[vm].wait(vm)
