# SPDX-License-Identifier: GPL-2.0-or-later
"""Adapters that need a reset."""
import socket
import tempfile
from pathlib import Path

DRIVER = '/sys/bus/virtio/drivers/virtio_rdma'


def virtio_name(vm):
    """Return the name of the guest's adapter in the driver's directory."""
    return vm.must(f'cd {DRIVER} && echo virtio*').strip()


def gdb(link, command):
    """Send a command of gdb's remote protocol, and wait for its end."""
    link.sendall(f'${command}#{sum(command.encode()) % 256:02x}'.encode())
    answer = b''
    while not answer.endswith(b'$OK#9a'):
        part = link.recv(100)
        assert part, f'{command}: {answer}'
        answer += part
    link.sendall(b'+')


def break_control_queue(vm):
    """Make the driver seem to have made available more requests than the ring
    has entries."""
    path = next(d['path'] for d in vm.qmp('x-query-virtio')
                if d['name'] == 'virtio-rdma')
    ring = vm.qmp('x-query-virtio-queue-status', path=path, queue=0)
    with tempfile.TemporaryDirectory() as name:
        where = Path(name) / 'gdb'
        vm.hmp(f'gdbserver unix:{where},server=on,wait=off')
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(10)
            link.connect(str(where))
            gdb(link, 'Qqemu.PhyMemMode:1')
            gdb(link, f'M{ring["vring-avail"] + 2:x},2:0080')
            gdb(link, 'D')
        vm.hmp('gdbserver none')
