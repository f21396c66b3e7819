# SPDX-License-Identifier: GPL-2.0-or-later
"""Trouble of all kinds, repeatedly, during verified traffic: `make soak`, and
once each in `make check-guest`.

A cycle starts the lanes of traffic, makes each kind of trouble in an order
that the seed gives, ends the traffic in an orderly way and checks what is
left. Memory is compared at the ends of cycles, where the state is alike.

A guest that migrates gets a new QEMU. So only guest 1 migrates in the first
two thirds of the time, and only guest 2 in the last: the QEMU of the other
guest stays, and its memory shows leaks.
"""
import collections
import random
import statistics
import time

from guestkit.adapter import address, mac
from guestkit.paths import LOGS, LabError

from . import hotplug, lanes
from .leaks import kernel_kib, open_files, qemu_kib, resident_kib
from .moving import MovingPair
from .runner import Bench, port_counters

WARM_UP = 2             # cycles after which memory has to be flat
LIKE = 3                # cycles at each end whose medians are compared
GROWTH = 0.05           # share by which memory may grow without a leak
# KiB by which a heap may grow without a leak, because it keeps free memory of
# its largest use. Only in the small heap of the hub this is more than GROWTH.
SLACK = {'heap': 1024}
CYCLE = 60              # seconds, at least
FLAPS = 0.1, 1.5        # seconds
PAUSES = 0.5, 4         # seconds between events

# Of 10000 frames, each way. Both ports of guest 1 have a filter: a frame
# between the guests passes one of them.
LOSS = [{'qom-type': 'filter-impair', 'id': f'loss{port}',
         'netdev': f's{port}', 'drop': 100, 'dup': 20, 'reorder': 20,
         'seed': port} for port in (0, 1)]

# For comparable memory: all memory of a guest is in use from the start, and a
# small buffer for translated code is full soon.
#
# cut: frames that waited for a destination could arrive at new queue pairs
# that have the numbers of older ones.
GUESTS = {'smp': 2, 'hotplug': True, 'objects': LOSS, 'cut': True,
          'accel': ',tb-size=32',
          'extra': lambda index: ['-mem-prealloc', '-d', 'guest_errors']}


class Trouble:
    """The trouble that the script makes for the guests. Each method is one
    kind. Its argument is the guest that may migrate, and it returns a text for
    the log."""

    def __init__(self, bench, traffic, dice):
        self.bench, self.traffic, self.dice = bench, traffic, dice

    def guest(self):
        return self.dice.choice(self.bench.pair.vms)

    def flap(self, _):
        """Take the link down for a moment."""
        vm, seconds = self.guest(), self.dice.uniform(*FLAPS)
        vm.qmp('set_link', name='n0', up=False)
        self.traffic.watch(seconds)
        vm.qmp('set_link', name='n0', up=True)
        return f'{vm.name} for {seconds:.1f} s'

    def kill(self, _):
        """Kill a process. Only its peer may notice."""
        vm, lane = self.guest(), self.dice.choice(self.traffic.all)
        if not lane.struck:
            lane.strike((vm,))
        return f'{lane.name} in {vm.name}'

    def unplug(self, _):
        """Unplug the adapter, with all work in flight, and plug it in
        again."""
        vm = self.guest()
        self.traffic.flow()
        hotplug.unplug(self.bench, vm)
        self.traffic.strike(vm)
        hotplug.plug(self.bench, vm)
        self.traffic.flow()
        return vm.name

    def move(self, mover):
        """Migrate a guest."""
        move = mover.move()
        return f'{mover.name}, down for {move.downtime * 1000:.0f} ms'


KINDS = ('flap', 'kill', 'unplug', 'move')
# Repeat the kinds that take little time
MIX = ('flap', 'kill', 'flap', 'kill', 'unplug', 'move', 'move')


class Memory:
    """The memory in use at the ends of cycles, with the lifetime of its
    owner."""

    def __init__(self):
        self.rows = collections.defaultdict(list)
        self.newest = {}

    def sample(self, pair):
        """Sample KiB: slab of each guest, heap and resident memory of each
        QEMU; and the number of its open files."""
        self.newest = {('slab', vm.name): kernel_kib(vm) for vm in pair.vms}
        for name, process in [(vm.name, vm.process) for vm in pair.vms] + \
                [('hub', pair.hub.process)]:
            for what, measure in (('heap', qemu_kib), ('RSS', resident_kib),
                                  ('files', open_files)):
                self.newest[what, f'{name}, pid {process.pid}'] = \
                    measure(process.pid)
        for key, value in self.newest.items():
            self.rows[key].append(value)

    def last(self):
        """Return the last samples, in short."""
        return ', '.join(
            f'{kind} ' + ' '.join(
                f'{value / 1024:.1f}' for (what, _), value in
                self.newest.items() if what == kind)
            for kind in ('slab', 'heap', 'RSS'))

    def verdicts(self):
        """Yield (name, samples, before, after, growth) for owners that lived
        long enough."""
        for (what, name), row in self.rows.items():
            if len(row) >= WARM_UP + 2 * LIKE:
                row = row[WARM_UP:]
                before = statistics.median(row[:LIKE])
                after = statistics.median(row[-LIKE:])
                yield (f'{what} of {name}', len(row), before, after,
                       after / before - 1)


class Soak:
    """A run. @pair is a pair made with GUESTS. tell() gets a line of text for
    each event."""

    def __init__(self, bench, seed, tell):
        self.bench, self.tell = bench, tell
        self.pair = bench.pair
        for index, vm in enumerate(self.pair.vms, 1):
            # A guest must not look for a neighbour on a link that may be down.
            vm.must(f'ip neigh replace {address(3 - index)} '
                    f'lladdr {mac(3 - index)} dev eth0 nud permanent')
        self.dice = random.Random(seed)
        self.traffic = lanes.Lanes(lanes.mixed(bench),
                                   lambda: self.dice.randrange(1 << 31))
        self.trouble = Trouble(bench, self.traffic, self.dice)
        self.count = collections.Counter()
        self.memory = Memory()
        self.began = time.monotonic()

    def passed(self):
        return time.monotonic() - self.began

    def cycle(self, kinds, mover, seconds=0):
        """Make each kind of trouble once, in random order."""
        end = self.passed() + seconds
        self.traffic.flow()
        for kind in self.dice.sample(kinds, len(kinds)):
            self.tell(f'{self.passed():7.1f} s  {kind}: '
                      f'{getattr(self.trouble, kind)(mover)}')
            self.count[kind] += 1
            self.traffic.watch(self.dice.uniform(*PAUSES))
        self.traffic.watch(end - self.passed())
        self.traffic.flow()
        self.traffic.stop()
        self.settle()

    def settle(self):
        """Require that only errors with a known cause occurred."""
        self.bench.nothing_left(self.bench.baseline)
        for vm in self.pair.vms:
            complaints = vm.complaints()
            if complaints:
                raise LabError(f'{vm.name} complains:\n{complaints}')
            said = vm.qemu_said()
            if said:
                raise LabError(f'QEMU of {vm.name} says:\n{said}')
        if not any(port_counters(vm, self.bench.device(vm))
                   ['hw_counters/retransmits'] for vm in self.pair.vms):
            raise LabError('the link has lost nothing')
        self.memory.sample(self.pair)

    def line(self, number):
        rounds = sum(lane.rounds for lane in self.traffic.all)
        return (f'{self.passed():5.0f} s  cycle {number}: '
                f'{sum(self.count.values())} events, {rounds:.0f} rounds '
                f'right; MiB: {self.memory.last()}')

    def table(self):
        rows = ['', f'{"Traffic":14}{"QPs":>5}{"rounds":>9}{"broken":>8}']
        rows += [f'{lane.name:14}{lane.qps:5}{lane.rounds:9.0f}'
                 f'{lane.breaks:8}' for lane in self.traffic.all]
        rows += ['', 'Events: ' + ', '.join(
            f'{count} {kind}' for kind, count in sorted(self.count.items()))]
        rows += ['', f'{"Memory, KiB; files":34}{"cycles":>7}{"before":>9}'
                 f'{"after":>9}{"growth":>9}']
        rows += [f'{name:34}{count:7}{before:9.0f}{after:9.0f}'
                 f'{growth * 100:7.1f} %'
                 for name, count, before, after, growth in
                 self.memory.verdicts()]
        return '\n'.join(rows)


def main(seconds, seed):
    """Run for @seconds. Return the exit code."""
    events = LOGS / 'soak.events'
    print(f'soak: {seconds} s, SOAK_SEED={seed}; events in {events}',
          flush=True)
    with MovingPair('soak', **GUESTS) as pair, \
            open(events, 'w', encoding='ascii', buffering=1) as log:
        soak = Soak(Bench(pair, 'virtio-rdma'), seed,
                    lambda text: print(text, file=log))
        number = 0
        try:
            while soak.passed() < seconds:
                late = soak.passed() > seconds * 2 / 3
                soak.cycle(MIX, pair.vms[late], CYCLE)
                number += 1
                print(soak.line(number), flush=True)
        except (AssertionError, LabError) as e:
            print(f'FAILED after {soak.passed():.0f} s, in cycle '
                  f'{number + 1}:\n{e}')
            print('\n'.join(vm.errors() for vm in pair.vms))
            return 1
        finally:
            print(soak.table(), flush=True)
    verdicts = list(soak.memory.verdicts())
    grown = [name for name, _, before, after, growth in verdicts
             if growth > GROWTH and
             after - before > SLACK.get(name.split()[0], 0)]
    for name in grown:
        print(f'FAILED: {name} grew by more than {GROWTH * 100:.0f} %')
    print(f'soak: {"failed" if grown else "passed"}' +
          ('' if verdicts else '; too short to judge memory'))
    return 1 if grown else 0
