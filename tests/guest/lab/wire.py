# SPDX-License-Identifier: GPL-2.0-or-later
"""The path of frames between guests. WIRE in the environment selects it for
pairs of guests that do not select one themselves."""
import os

from guestkit.paths import LabError

# shm: by shared memory, whatever the link is
WIRES = ('stream', 'dgram', 'shm')


def chosen():
    """Return the value of WIRE, or ''."""
    wire = os.environ.get('WIRE', '')
    if wire and wire not in WIRES:
        raise LabError(f'WIRE={wire}: there are {", ".join(WIRES)}')
    return wire


def link():
    """Return the kind of netdev of a pair that may have any."""
    return 'dgram' if chosen() == 'dgram' else 'stream'


def way(its_link):
    """Return the path: if WIRE says so, RDMA frames use memory on any link."""
    return 'shm' if chosen() == 'shm' else its_link


def objects(vm):
    """Return the names of objects that -object and object-add have created."""
    return {entry['name'] for entry in vm.qmp('qom-list', path='/objects')}


def by_memory(vm):
    """Return (sent, received): frames that used shared memory."""
    return tuple(vm.qmp('qom-get', path='/objects/r0',
                        property=f'shm-{way}-frames') for way in ('tx', 'rx'))


class Memory:
    """Counts the frames that guests send and receive by shared memory after
    its creation, except frames of QEMUs that have ended."""

    def __init__(self, vms):
        self.vms = vms
        self.before = self._read()

    def _read(self):
        """Return frames by the process id of a QEMU, without adapters that
        have no shared memory."""
        found = {}
        for vm in self.vms:
            if not getattr(vm, 'process', None) or not vm.alive():
                continue
            if 'r0' in objects(vm):
                found[vm.process.pid] = sum(by_memory(vm))
        return found

    def frames(self):
        """Return the number of frames, or None if no adapter has shared
        memory."""
        now = self._read()
        if not now and not self.before:
            return None
        return sum(count - self.before.get(pid, 0)
                   for pid, count in now.items())
