# SPDX-License-Identifier: GPL-2.0-or-later
"""An adapter of virtio-rdma-server beside one in the QEMU of its guest: `make
bench BENCH=vmm`."""
import socket
import statistics

from guestkit.agent import Channel
from guestkit.paths import LabError
from guestkit.stack import STACKS

from . import perftest
from .calls import DOORBELL
from .pair import Pair
from .programs import rping_time
from .vmm import ServedPair, VhostUserPair

ROUNDS = 3
FACTOR = 4
PINGS = 200
TESTS = [perftest.Test('ib_write_bw', 64, 4000),
         perftest.Test('ib_write_bw', 65536, 300),
         perftest.Test('ib_write_lat', 64, 2000),
         perftest.Test('ib_send_lat', 64, 2000)]
# Doorbells of the short run are subtracted.
STREAMS = [(perftest.Test('ib_write_bw', size, count),
            perftest.Test('ib_write_bw', size, 128))
           for size, count in ((64, 16000), (65536, 4000))]
RPING = 'rping 64 B (mean)'


class OwnPair:
    """The adapter is in the QEMU of its guest."""

    name = 'in QEMU'

    def __init__(self):
        self.pair = Pair('bench-vmm', 'dgram')

    def trace(self, on):
        """Log doorbells of guest 1, or end that."""
        self.pair.one.qmp('trace-event-set-state', name=DOORBELL, enable=on)

    def log(self):
        return self.pair.one.qemu_said()


class VfioUser(OwnPair):
    """The NIC and the adapter are in a server."""

    name = 'vfio-user'

    def __init__(self):
        self.pair = ServedPair('bench-vmm-vfio')
        self.server = self.pair.servers[0]
        self.path = f'{self.server.directory}/monitor'
        self.server.arguments += ['--qmp', self.path]

    def trace(self, on):
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(self.path)
            channel = Channel('server', monitor)
            # A refusal must not look like a run without doorbells.
            channel.execute('qmp_capabilities', {}, 30)
            channel.execute('trace-event-set-state',
                            {'name': DOORBELL, 'enable': on}, 30)
            # The channel's thread keeps the socket open.
            monitor.shutdown(socket.SHUT_RDWR)

    def log(self):
        return self.server.log.read_text()


class VhostUser(OwnPair):
    """Only the adapter is in a server. Its queues have no doorbells."""

    name = 'vhost-user'

    def __init__(self):
        self.pair = VhostUserPair('bench-vmm-vhost')

    def trace(self, on):
        pass

    def log(self):
        return None


def run(place, test, stacks, factor=1):
    result, figures = perftest.run(test, place.pair, stacks, factor)
    if figures is None:
        raise LabError(f'{place.name}: {test.name}:\n{result}')
    return figures['value']


def doorbells(place, test, stacks):
    """Return the number of doorbells of guest 1 during a test."""
    before = place.log().count(DOORBELL)
    place.trace(True)
    run(place, test, stacks)
    place.trace(False)
    return place.log().count(DOORBELL) - before


def measure(place, rounds):
    """Return ({row: median}, {test: doorbells per work request})."""
    values = {test.name: [] for test in TESTS} | {RPING: []}
    rung = {}
    with place.pair as pair:
        stacks = [STACKS['virtio-rdma']() for _ in pair.vms]
        for vm, stack in zip(pair.vms, stacks):
            stack.up(vm)
        for _ in range(rounds):
            for test in TESTS:
                values[test.name].append(run(place, test, stacks, FACTOR))
            result, took = rping_time(pair, PINGS)
            if not took:
                raise LabError(f'{place.name}: {RPING}:\n{result}')
            values[RPING].append(took * 1e6)
        for long, short in STREAMS if place.log() is not None else ():
            more = doorbells(place, long, stacks) - \
                doorbells(place, short, stacks)
            rung[long.name] = more / (long.count - short.count)
    return {row: statistics.median(of) for row, of in values.items()}, rung


def main(rounds=ROUNDS):
    """Print the table; the exit code."""
    places = (OwnPair, VfioUser, VhostUser)
    found = {}
    for kind in places:
        print(f'{kind.name}: {rounds} rounds', flush=True)
        found[kind] = measure(kind(), rounds)
    print(f'\n{"median of " + str(rounds):24}{"":>5}' +
          ''.join(f'{kind.name:>12}' for kind in places))
    units = {test.name: test.unit for test in TESTS} | {RPING: 'us'}
    for row, unit in units.items():
        print(f'{row:24}{unit:>5}' +
              ''.join(f'{found[kind][0][row]:12.2f}' for kind in places))
    print('\ndoorbells per work request')
    for long, _ in STREAMS:
        print(f'{long.name:29}' + ''.join(
            f'{found[kind][1][long.name]:12.3f}' for kind in places
            if found[kind][1]))
    return 0
