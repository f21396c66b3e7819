# SPDX-License-Identifier: GPL-2.0-or-later
"""What two guests of one host reach, beside what cannot be beaten there and
beside rxe: `make bench-guests`.

The floor of a rate is a copy of messages of the same size between the
memories of two guests, that of a latency the way to a process that has to wake
up: tests/bench/copy-floor.c, in the same run.
"""
import re
import statistics
import subprocess

from . import perftest
from .pair import Pair
from .paths import TOP, LabError
from .programs import build
from .stack import STACKS

ROUNDS = 3
RXE = 'rxe, stream'
# name: (stack, link, in an iothread)
WIRES = {
    'stream': ('virtio-rdma', 'stream', False),
    'memory': ('virtio-rdma', 'shm', False),
    'memory, iothread': ('virtio-rdma', 'shm', True),
    RXE: ('rxe', 'stream', False),
}
# Iterations that take rxe about half a second, see perftest.Test
TESTS = [perftest.Test('ib_write_bw', 65536, 300),
         perftest.Test('ib_write_bw', 1 << 20, 24),
         perftest.Test('ib_read_bw', 65536, 300),
         perftest.Test('ib_read_bw', 1 << 20, 24),
         perftest.Test('ib_write_bw', 64, 4000),
         perftest.Test('ib_write_lat', 64, 400),
         perftest.Test('ib_send_lat', 64, 400)]
FACTOR = {'rxe': 1, 'virtio-rdma': 8}


def floor():
    """{size: MB/s} of a copy, and us of a hop as that of size 0."""
    sizes = sorted({test.size for test in TESTS if not test.latency})
    binary = build('copy-floor', [TOP / 'tests/bench/copy-floor.c'])
    said = subprocess.run([str(binary), *map(str, sizes)], check=True,
                          capture_output=True, text=True).stdout
    found = {int(size): float(rate) for size, rate in
             re.findall(r'^copy (\d+) ([\d.]+)$', said, re.M)}
    return found | {0: float(re.search(r'^hop ([\d.]+)$', said, re.M)[1])}


def threads(in_thread):
    """What a pair needs for adapters in iothreads."""
    if not in_thread:
        return {}
    return {'options': lambda index: 'iothread=io0',
            'extra': lambda index: ['-object', 'iothread,id=io0']}


def measure(name, rounds):
    """{test: [value, ...]} of one wire, and the floors of each round."""
    stack, link, in_thread = WIRES[name]
    rdma = stack == 'virtio-rdma'
    values, floors = {test: [] for test in TESTS}, []
    with Pair('bench-guests', link, rdma=rdma, **threads(in_thread)) as pair:
        stacks = (STACKS[stack](), STACKS[stack]())
        for vm, one in zip(pair.vms, stacks):
            one.up(vm)
        print(f'{name}: {pair.prefer_main_loops()}', flush=True)
        for _ in range(rounds):
            floors.append(floor())
            for test in TESTS:
                result, figures = perftest.run(test, pair, stacks,
                                               FACTOR[stack])
                if figures is None:
                    raise LabError(f'{name}: {test.name}:\n{result}')
                values[test].append(figures['value'])
    return values, floors


def row(test, name, value, bound, peer):
    """A line: how near the floor, and how far from rxe."""
    to_floor = bound / value if test.latency else value / bound
    to_peer = peer / value if test.latency else value / peer
    return (f'{test.name:20}{name:20}{value:10.1f} {test.unit:6}'
            f'{bound:10.1f}{to_floor:10.3f}{to_peer:9.1f}')


def main(rounds=ROUNDS):
    """Print the table; the exit code."""
    found, floors = {}, []
    for name in WIRES:
        print(f'{name}: {rounds} rounds', flush=True)
        found[name], more = measure(name, rounds)
        floors += more
    print(f'\n{"test":20}{"wire":20}{"median":>10} {"":6}{"floor":>10}'
          f'{"of floor":>10}{"of rxe":>9}')
    for test in TESTS:
        bound = statistics.median(
            f[0 if test.latency else test.size] for f in floors)
        peer = statistics.median(found[RXE][test])
        for name, values in found.items():
            print(row(test, name, statistics.median(values[test]), bound,
                      peer))
    print('\nfloor: a copy of messages of that size from one process\'s '
          'memory to another\'s;\nfor latencies the way to a process that '
          'has to wake up. Ratios: more is better')
    return 0
