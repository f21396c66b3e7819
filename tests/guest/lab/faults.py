# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of a guest's adapter, which QEMU injects on request."""
import contextlib
import time

from guestkit.paths import LabError

PATIENCE = 30


def name(vm):
    """Return the name of the guest's adapter for rdma-fault-add."""
    found = vm.qmp('query-rdma')
    assert len(found) == 1, found
    return found[0].get('device', found[0]['path'])


class Fault:
    """A fault that was added. Underscores in arguments here are dashes
    there."""

    def __init__(self, vm, kind, **arguments):
        self.vm, self.device, self.id = vm, name(vm), f'test-{kind}'
        vm.qmp('rdma-fault-add', device=self.device, id=self.id, kind=kind,
               **{key.replace('_', '-'): value
                  for key, value in arguments.items()})

    @property
    def info(self):
        return next(info for info in
                    self.vm.qmp('query-rdma-faults', device=self.device)
                    if info['fault']['id'] == self.id)

    @property
    def hits(self):
        return self.info['hits']

    def wait(self, hits=1):
        """Wait until the fault has struck this many times."""
        end = time.monotonic() + PATIENCE
        while self.hits < hits:
            if time.monotonic() > end:
                raise LabError(f'the fault did not strike: {self.info}')
            time.sleep(0.05)

    def remove(self):
        self.vm.qmp('rdma-fault-remove', device=self.device, id=self.id)


@contextlib.contextmanager
def fault(vm, kind, **arguments):
    """Inject a fault for the duration of the block."""
    made = Fault(vm, kind, **arguments)
    try:
        yield made
    finally:
        made.remove()
