# SPDX-License-Identifier: GPL-2.0-or-later
"""Which way frames take between guests. WIRE in the environment says it for
pairs of guests that do not say so themselves."""
import os

from guestkit.paths import LabError

# shm: by shared memory, whatever the link is
WIRES = ('stream', 'dgram', 'shm')


def chosen():
    """What WIRE says, or ''."""
    wire = os.environ.get('WIRE', '')
    if wire and wire not in WIRES:
        raise LabError(f'WIRE={wire}: there are {", ".join(WIRES)}')
    return wire


def link():
    """The kind of netdev of a pair that may have any."""
    return 'dgram' if chosen() == 'dgram' else 'stream'


def way(its_link):
    """What is RDMA takes memory on any link, if WIRE says so."""
    return 'shm' if chosen() == 'shm' else its_link


def objects(vm):
    """Names of what -object and object-add have made."""
    return {entry['name'] for entry in vm.qmp('qom-list', path='/objects')}


def by_memory(vm):
    """(sent, received): frames that took shared memory."""
    return tuple(vm.qmp('qom-get', path='/objects/r0',
                        property=f'shm-{way}-frames') for way in ('tx', 'rx'))


class Memory:
    """What guests send and receive by shared memory from now on, as far as
    the QEMUs know that they have in the end."""

    def __init__(self, vms):
        self.vms = vms
        self.before = self._read()

    def _read(self):
        """Frames by the process id of a QEMU; those whose adapter has no
        shared memory are left out."""
        found = {}
        for vm in self.vms:
            if not getattr(vm, 'process', None) or not vm.alive():
                continue
            if 'r0' in objects(vm):
                found[vm.process.pid] = sum(by_memory(vm))
        return found

    def frames(self):
        """How many, or None if no adapter has shared memory."""
        now = self._read()
        if not now and not self.before:
            return None
        return sum(count - self.before.get(pid, 0)
                   for pid, count in now.items())
