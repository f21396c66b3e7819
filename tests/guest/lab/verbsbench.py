# SPDX-License-Identifier: GPL-2.0-or-later
"""Speed of rdma-verbs: `make bench-verbs`.

The same programs run, with the same peer, in a host with rxe (User-mode Linux)
and in a guest of it that uses this rxe by rdma-verbs. The host has one
processor: while the host measures itself, the guest is stopped. Programs wait
for events instead of polling if they can.

The split of a message's time comes from the clocks of QEMU's threads in the
host's kernel: those of a run of many messages less those of a run of few.
"""
import json
import os
import re
import statistics
import time
from contextlib import contextmanager

from guestkit.adapter import address
from guestkit.paths import LabError
from guestkit.stack import Rxe, VirtioRdma

from . import perftest
from .demo import number
from .nested import NestedPair, on_rxe
from .places import RESULTS
from .programs import exchange

ROUNDS = 3
PINGPONG = 'ibv_rc_pingpong 64 B'
# Programs that cannot wait for events
POLLS = ('ib_write_bw', 'ib_write_lat')
# Runs of perftest until it finds the processor's clock, see perftest.NO_CLOCK
TRIES = 60
# perftest's client has as many READs in flight as the host can have, which is
# more than the peer can take.
READS = ' -o 16'
# The tests whose time is split, and how many more messages the long run has
# than the short one
SPLIT = (('ib_send_bw', 64, 6000), ('ib_write_bw', 64, 6000),
         ('ib_send_lat', 64, 2000))
FEW = 200
TIMEOUT = 180


class Side:
    """One end of the comparison: the machine that runs the client, and the
    peer. perftest.run() uses it as a Pair. @factor: multiplies the number of
    messages. @other: a guest that is stopped meanwhile."""

    def __init__(self, name, vm, peer, stacks, factor, other=None):
        self.name, self.one, self.two = name, vm, peer
        self.stacks, self.factor, self.other = stacks, factor, other

    @contextmanager
    def alone(self):
        if self.other:
            self.other.qmp('stop')
        yield
        if self.other:
            self.other.qmp('cont')


class Test(perftest.Test):
    """A row of the table."""

    def command(self, stack, factor):
        options = '' if self.tool in POLLS else ' -e'
        if 'read' in self.tool:
            options += READS
        return super().command(stack, factor) + options


def matrix():
    counts = {64: 1000, 4096: 1000, 65536: 300, 1 << 20: 24}
    tests = [Test(tool, size, count) for tool in perftest.BANDWIDTH
             for size, count in counts.items()]
    return tests + [Test(tool, 64, 20 if tool in POLLS else 400)
                    for tool in perftest.LATENCY]


def pingpong(side):
    """Return half a round trip, in microseconds."""
    count = 200 * side.factor
    client, server = side.stacks
    command = 'ibv_rc_pingpong -e -d {} -g {} -s 64 -n {}'
    result = exchange(
        side.two, side.one,
        command.format(server.device, server.gid(4), count),
        command.format(client.device, client.gid(4), count) +
        f' {address(2)}')
    found = re.search(r'= ([\d.]+) usec/iter', result.client.out)
    if not result.ok or not found:
        raise LabError(str(result))
    return float(found.group(1)) / 2


def measure(side, test):
    result, figures = perftest.run(test, side, side.stacks, side.factor,
                                   TIMEOUT, TRIES)
    if not figures or not figures['value']:
        raise LabError(str(result))
    return figures['value']


class Clocks:
    """Processor time of the host so far, in ticks by part."""

    PARTS = {
        'guest': 'the guest and its program, under TCG',
        'vCPU': "the host's kernel for the thread of the vCPU",
        'QEMU': "QEMU's main loop",
        'verbs': "the host's kernel for the main loop",
        'else': 'all else in the host, with its interrupts while idle',
        'idle': 'no work: the host waits for the peer',
    }

    def __init__(self, host, vm):
        self.host = host
        self.vcpu = vm.qmp('query-cpus-fast')[0]['thread-id']
        self.main = int(re.search(
            r'^Tgid:\s+(\d+)', host.read(f'/proc/{self.vcpu}/status'),
            re.M).group(1))

    def _thread(self, tid):
        """Return (user, system)."""
        fields = self.host.read(f'/proc/{self.main}/task/{tid}/stat')
        return [int(n) for n in fields.rsplit(')', 1)[1].split()[11:13]]

    def read(self):
        guest, vcpu = self._thread(self.vcpu)
        qemu, verbs = self._thread(self.main)
        times = [int(n) for n in
                 self.host.read('/proc/stat').split('\n', 1)[0].split()[1:]]
        idle = times[3] + times[4]
        known = guest + vcpu + qemu + verbs
        return {'guest': guest, 'vCPU': vcpu, 'QEMU': qemu, 'verbs': verbs,
                'else': sum(times[:8]) - idle - known, 'idle': idle}


def split(side, clocks, tool, size, more):
    """Return the shares of a message's time, by part."""
    def run(count):
        before = clocks.read()
        measure(side, Test(tool, size, count))
        after = clocks.read()
        return {part: after[part] - before[part] for part in before}

    few, many = run(FEW), run(FEW + more)
    spent = {part: max(0, many[part] - few[part]) for part in few}
    total = sum(spent.values())
    return {part: ticks / total for part, ticks in spent.items()}


class VerbsBench:
    def __init__(self, rounds):
        self.rounds = rounds
        self.began = time.monotonic()
        self.rows = {}
        self.splits = {}

    def say(self, text):
        print(f'[{time.monotonic() - self.began:6.1f} s] {text}', flush=True)

    def row(self, sides, name, unit, once):
        """Measure both sides in turn, so that other load of the machine
        affects the ratio least."""
        values = {side.name: [] for side in sides}
        for _ in range(self.rounds):
            for side in sides:
                with side.alone():
                    values[side.name].append(once(side))
        self.rows[name] = {'unit': unit}
        for side, found in values.items():
            self.rows[name][side] = statistics.median(found)
            self.say(f'{side:7}{name:22}' +
                     ''.join(f'{number(v):>9}' for v in found) + f' {unit}')

    def measure(self, sides):
        self.row(sides, PINGPONG, 'us', pingpong)
        for test in matrix():
            self.row(sides, test.name, test.unit,
                     lambda side, test=test: measure(side, test))

    def run(self):
        self.say('booting a host, its guest and a peer')
        with NestedPair('bench-verbs', on_rxe) as pair:
            host, nested, peer = Rxe(), VirtioRdma(), VirtioRdma()
            host.wait(pair.host)
            nested.up(pair.nested)
            peer.up(pair.peer)
            side = Side('nested', pair.nested, pair.peer, (nested, peer), 1)
            self.measure([Side('host', pair.host, pair.peer, (host, peer), 4,
                               pair.nested), side])
            clocks = Clocks(pair.host, pair.nested)
            for tool, size, more in SPLIT:
                name = f'{tool} {perftest.SIZES[size]}'
                self.say(f'where the time goes: {name}')
                self.splits[name] = split(side, clocks, tool, size, more)
            complaints = [vm.complaints() for vm in pair.vms]
        self.save()
        print('\n' + table(self.rows, self.splits) + '\n')
        self.say(f'the load of the machine is {os.getloadavg()[1]:.1f} with '
                 f'{os.cpu_count()} processors: the bench itself needs 2')
        for text in filter(None, complaints):
            print(text)
        return 1 if any(complaints) else 0

    def save(self):
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / 'bench-verbs.json'
        path.write_text(json.dumps({'rows': self.rows, 'shares': self.splits},
                                   indent=1) + '\n')
        self.say(f'figures in {path}')


def table(rows, splits):
    """The results as plain text."""
    lines = [f'{"test":24}{"unit":>6}{"host":>10}{"nested":>10}'
             f'{"nested/host":>14}']
    lines.append('-' * len(lines[0]))
    for name, row in rows.items():
        lines.append(f'{name:24}{row["unit"]:>6}{number(row["host"]):>10}'
                     f'{number(row["nested"]):>10}'
                     f'{row["nested"] / row["host"]:>14.2f}')
    lines += ['', 'Where the time of a message in the nested guest goes, %',
              f'{"test":24}' + ''.join(f'{p:>8}' for p in Clocks.PARTS)]
    for name, shares in splits.items():
        lines.append(f'{name:24}' + ''.join(
            f'{100 * shares[part]:>8.0f}' for part in Clocks.PARTS))
    lines.append('')
    lines += [f'{part + ":":8}{what}' for part, what in Clocks.PARTS.items()]
    return '\n'.join(lines)


def main(rounds):
    return VerbsBench(rounds).run()
