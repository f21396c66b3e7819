# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter of a guest that has it in a port of its own comes and goes."""
import time

from guestkit.paths import LabError

from . import wire

DEVICE = {'driver': 'virtio-rdma-pci', 'id': 'rdma0', 'bus': 'rp0',
          'addr': '0'}


def unplug(bench, vm):
    """Returns when the guest has released it."""
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
    """Returns when the guest can use it. Its backend and its iothread are
    those that it had."""
    objects = wire.objects(vm)
    how = {'rdmadev': 'r0'} if 'r0' in objects else {'netdev': 'n0'}
    if 'io0' in objects:
        how['iothread'] = 'io0'
    vm.qmp('device_add', **DEVICE, **how)
    bench.stacks[vm].wait(vm)
