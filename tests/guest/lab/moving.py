# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that migrate from one QEMU process to another.

The link between two such guests is a hub in a third QEMU, with two sockets
for each guest: source and destination take turns.
"""
import concurrent.futures
import shutil
import tempfile
import time

from guestkit.adapter import backend, net_up, pvrdma_functions
from guestkit.hub import Hub, to_hub
from guestkit.paths import LOGS, LabError
from guestkit.vm import Vm

from . import image, wire
from .pair import TwoGuests, functions

# Bytes per second
UNLIMITED = 100 << 30
SLOW = 20 << 20             # dirty data left when postcopy begins

CAPABILITIES = ('multifd', 'postcopy-ram')


class Move:
    """How a migration went; times are seconds."""

    def __init__(self, info, stopped, resumed, total):
        self.downtime = resumed - stopped
        self.total = total
        self.ram = info['ram']['transferred']
        self.info = info

    def __str__(self):
        return (f'{self.total:.2f} s, downtime {self.downtime * 1000:.0f} '
                f'ms, {self.ram / 1e6:.0f} MB')


def _stamp(event):
    at = event['timestamp']
    return at['seconds'] + at['microseconds'] / 1e6


class MovingVm(Vm):
    """A guest with its root in memory. @devices(number): returns the QEMU
    arguments of a QEMU process. Processes are counted from 0. @attach(number,
    up): connects a process to the link, or disconnects it. @emulators: the
    programs of the processes in turn, if not the one under test."""

    def __init__(self, name, directory, devices, attach=None, mem='512M',
                 emulators=(), **options):
        super().__init__(name, mem=mem, **options)
        self.make_devices, self.directory = devices, directory
        self.attach = attach or (lambda number, up: None)
        self.emulators = emulators
        self.image = image.build()
        self.number = -1
        self.moves = []

    def _emulator(self):
        if not self.emulators:
            return super()._emulator()
        return self.emulators[self.number % len(self.emulators)]

    def _root(self):
        return self.image, '', []

    def start(self, *extra):
        self.number += 1
        self.tag = f'{self.name}.{self.number % 2}'
        self.log = LOGS / f'{self.tag}.console'
        self.devices = self.make_devices(self.number) + list(extra)
        return super().start()

    def _hold(self):
        return (self.process, self.agent, self.qmp_channel, self.tag,
                self.log, self.devices)

    def _be(self, held):
        (self.process, self.agent, self.qmp_channel, self.tag, self.log,
         self.devices) = held

    def prepare_move(self):
        """Start the destination. self becomes the destination; return the
        source."""
        source = self._hold()
        self.attach(self.number + 1, False)
        self.start('-incoming', 'defer')
        self.qmp('qmp_capabilities')
        return source

    def move(self, timeout=60, capabilities=(), source=None, uri=None,
             downtime_limit=300):
        """Migrate to a new QEMU process, as `migrate` and
        `migrate-incoming` do it; @capabilities: some of CAPABILITIES,
        @downtime_limit: milliseconds, 300 is QEMU's default."""
        began = time.monotonic()
        source = source or self.prepare_move()
        old = source[2]
        path = f'{self.directory}/{self.name}.migrate'
        uri = uri or f'unix:{path}'
        wanted = [{'capability': c, 'state': c in capabilities}
                  for c in CAPABILITIES]
        postcopy = 'postcopy-ram' in capabilities

        def tell(command, **arguments):
            return old.execute(command, arguments, timeout)

        try:
            tell('migrate-set-capabilities', capabilities=wanted)
            self.qmp('migrate-set-capabilities', capabilities=wanted)
            tell('migrate-set-parameters',
                 **{'max-bandwidth': SLOW if postcopy else UNLIMITED,
                    'downtime-limit': downtime_limit})
            self.qmp('migrate-incoming', uri=uri)
            tell('migrate', uri=uri)
            while True:
                info = tell('query-migrate')
                if postcopy and info.get('status') == 'active':
                    tell('migrate-start-postcopy')
                    postcopy = False
                if info.get('status') == 'completed':
                    break
                if info.get('status') in ('failed', 'cancelled'):
                    raise LabError(f'{self.name}: migration failed: '
                                   f'{info.get("error-desc")}\n'
                                   f'{self.errors()}')
                if time.monotonic() - began > timeout:
                    raise LabError(f'{self.name}: migration has no end: '
                                   f'{info}')
                if not self.alive():
                    raise LabError(f'{self.name}: the destination ended\n'
                                   f'{self.errors()}')
                time.sleep(0.02)
            self.attach(self.number, True)
            stopped = _stamp(old.event('STOP', timeout))
            resumed = _stamp(self.qmp_channel.event('RESUME', timeout))
        except BaseException:
            self.kill()
            self._be(source)
            raise
        source[0].kill()
        source[0].wait()
        move = Move(info, stopped, resumed, time.monotonic() - began)
        self.moves.append(move)
        return move

    def save(self, path, timeout=60):
        """Migrate to a file. The guest is stopped afterwards."""
        self.qmp('migrate-set-capabilities', capabilities=[
            {'capability': c, 'state': False} for c in CAPABILITIES])
        self.qmp('migrate', uri=f'file:{path}')
        end = time.monotonic() + timeout
        while True:
            info = self.qmp('query-migrate')
            if info.get('status') == 'completed':
                return info
            if info.get('status') == 'failed' or time.monotonic() > end:
                raise LabError(f'{self.name}: {info}')
            time.sleep(0.02)

    def go_on(self):
        """Continue after save()."""
        self.qmp('cont')


class TwoMovingGuests(TwoGuests):
    """The guests are MovingVms."""

    def move_both(self, **options):
        """Migrate both guests at the same time."""
        sources = [vm.prepare_move() for vm in self.vms]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            ends = [pool.submit(vm.move, source=source, **options)
                    for vm, source in zip(self.vms, sources)]
            return [end.result() for end in ends]


class MovingPair(TwoMovingGuests):
    """Two guests that can migrate; replaces a Pair. @objects: arguments of
    object-add, for each object that the hub gets at start. @cut: connect a
    destination to the link only when it runs. Without @cut, earlier frames
    wait in its socket until then. @shm: every second QEMU of a guest sends by
    shared memory, beginning with the first. @machine, @emulators: see
    MovingVm. @adapter: that of both guests."""

    def __init__(self, tag, rdma=True, smp=1, mem='512M', extra=None,
                 objects=(), hotplug=False, accel='', cut=False, shm=False,
                 machine='q35', emulators=(), adapter='virtio-rdma'):
        self.tag, self.link = tag, wire.link()
        self.adapter = adapter
        self.directory = tempfile.mkdtemp(prefix='vrdma-')
        self.hub = None
        self.objects, self.hotplug, self.shm = objects, hotplug, shm
        self.vms = []
        for index in (1, 2):
            self.vms.append(MovingVm(
                f'{tag}-{index}', self.directory,
                lambda number, i=index: self._devices(i, number, rdma,
                                                      extra),
                (lambda number, up, i=index: self._connect(i, number, up))
                if cut else None, mem=mem, smp=smp, accel=accel,
                machine=machine, emulators=emulators))

    @staticmethod
    def _port(index, number):
        return 2 * (index - 1) + number % 2

    def _connect(self, index, number, up):
        # Set the link of the hub's port, not of the netdev with the socket:
        # QEMU sets that one up whenever the socket is connected.
        self.hub.qmp('set_link', name=f'h{self._port(index, number)}', up=up)

    def _backend(self, number):
        if self.shm and number % 2:
            return 'rdmadev=r0', ['-object', 'rdma-roce,id=r0,netdev=n0']
        return backend('shm' if self.shm else wire.way(self.link),
                       self.directory)

    def _devices(self, index, number, rdma, extra):
        port = self._port(index, number)
        devices = [*to_hub(self.link, self.directory, port),
                   *(extra(index) if extra else [])]
        if self.adapter == 'pvrdma':
            return devices + pvrdma_functions(
                index, wire.way(self.link), self.directory)
        return devices + functions(index, rdma, hotplug=self.hotplug,
                                   where=self._backend(number))

    def start(self):
        try:
            self.hub = Hub(self.tag, self.directory, 4, link=self.link)
            for arguments in self.objects:
                self.hub.qmp('object-add', **arguments)
            for vm in self.vms:
                vm.start()
            for index, vm in enumerate(self.vms, 1):
                vm.wait_ready()
                net_up(vm, index)
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self):
        for vm in self.vms:
            vm.kill()
        if self.hub:
            self.hub.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
