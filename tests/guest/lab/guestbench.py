# SPDX-License-Identifier: GPL-2.0-or-later
"""The speed of two guests of one host, beside the limit of the host and beside
rxe: `make bench-guests`.

The limit of a rate is a copy of messages of the same size from one process's
memory to another's, through shared memory, as between two QEMUs. The table
also has the rate of one process that has both memories. The limit of a latency
is the time to wake up another process. tests/bench/copy-floor.c measures both
limits in the same run.
"""
import re
import statistics
import subprocess

from guestkit.paths import TOP, LabError
from guestkit.stack import STACKS

from . import calls, perftest
from .pair import Pair
from .programs import build

ROUNDS = 3
RXE = 'rxe, stream'
# name: (stack, link, in an iothread)
WIRES = {
    'stream': ('virtio-rdma', 'stream', False),
    'memory': ('virtio-rdma', 'shm', False),
    'memory, iothread': ('virtio-rdma', 'shm', True),
    RXE: ('rxe', 'stream', False),
}
# Iterations that take about half a second with rxe, see perftest.Test
TESTS = [perftest.Test('ib_write_bw', 65536, 300),
         perftest.Test('ib_write_bw', 1 << 20, 24),
         perftest.Test('ib_read_bw', 65536, 300),
         perftest.Test('ib_read_bw', 1 << 20, 24),
         perftest.Test('ib_write_bw', 64, 4000),
         perftest.Test('ib_write_lat', 64, 400),
         perftest.Test('ib_send_lat', 64, 400)]
# The run whose system calls are counted: some seconds' work. The short run is
# subtracted: it is loaded over 9p, connects and ends in the same way.
COUNTED = perftest.Test('ib_write_bw', 65536, 8192)
SHORT = perftest.Test('ib_write_bw', 65536, 64)
# The same for what each small message costs
SMALL = [[perftest.Test(tool, 64, count) for count in (32000, 128)]
         for tool in ('ib_send_bw', 'ib_write_bw')]
COSTS = {'wake-ups': 'ppoll', 'doorbells': calls.DOORBELL,
         'lock waits': 'futex'}
FACTOR = {'rxe': 1, 'virtio-rdma': 8}


def floor():
    """Return {('pass' or 'copy', size): MB/s} of two processes and of one, and
    us of a hop as ('pass', 0). MB are perftest's, of 2^20 bytes."""
    sizes = sorted({test.size for test in TESTS if not test.latency})
    binary = build('copy-floor', [TOP / 'tests/bench/copy-floor.c'])
    said = subprocess.run([str(binary), *map(str, sizes)], check=True,
                          capture_output=True, text=True).stdout
    found = {(what, int(size)): float(rate) * 1e6 / (1 << 20)
             for what, size, rate in
             re.findall(r'^(pass|copy) (\d+) ([\d.]+)$', said, re.M)}
    return found | {('pass', 0): float(re.search(r'^hop ([\d.]+)$', said,
                                                 re.M)[1])}


def threads(in_thread):
    """Return the arguments for a pair with adapters in iothreads."""
    if not in_thread:
        return {}
    return {'options': lambda index: 'iothread=io0',
            'extra': lambda index: ['-object', 'iothread,id=io0']}


def counted_calls(test, pair, stacks, doorbells=False):
    """Return the system calls of the QEMUs for one run, and its doorbells."""
    for _ in range(perftest.TRIES):
        with calls.counted(pair.vms, doorbells) as counts:
            # A second try would add its calls.
            result, figures = perftest.run(test, pair, stacks, tries=1)
        if figures:
            return counts
    raise LabError(f'{test.name}:\n{result}')


def told_calls(pair, stacks):
    """Return the calls for a million bytes, as text. Subtract SHORT from
    COUNTED, so that only calls for messages count."""
    base = counted_calls(SHORT, pair, stacks)
    counts = counted_calls(COUNTED, pair, stacks)
    sent = (COUNTED.count - SHORT.count) * COUNTED.size
    return ', '.join(
        '{}: {:.1f} to send or receive, {:.1f} write(), {:.1f} ppoll()'.format(
            who, *calls.per_million(count, less, sent))
        for who, count, less in zip(('sender', 'receiver'), counts, base))


def costs(long, short, pair, stacks):
    """Return the COSTS of the sender, then those of the receiver, for each
    message of @long. Subtract those of @short."""
    counts, base = (counted_calls(test, pair, stacks, True)
                    for test in (long, short))
    return [calls.increase(most, least, name) / (long.count - short.count)
            for most, least in zip(counts, base) for name in COSTS.values()]


def told_costs(pair, stacks, rounds):
    """Return a table of medians of costs(): SEND, WRITE, and their ratio."""
    rows = [f'{"for a message of 64 bytes":27}{"SEND":>9}{"WRITE":>9}'
            f'{"ratio":>9}']
    found = [[costs(*tests, pair, stacks) for tests in SMALL]
             for _ in range(rounds)]
    medians = [map(statistics.median, zip(*values)) for values in zip(*found)]
    names = [f'{who}, {what}' for who in ('sender', 'receiver')
             for what in COSTS]
    for name, send, write in zip(names, *medians):
        # Below that, connections and the guests' timers vary more.
        ratio = f'{send / write:9.2f}' if write >= 0.01 else ''
        rows.append(f'{name:27}{send:9.3f}{write:9.3f}{ratio}')
    return '\n'.join(rows)


def measure(name, rounds):
    """Return {test: [value, ...]} of one wire, and the limits of each
    round."""
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
        if rdma and not calls.refusal():
            print(f'{name}: calls for 1 MB of {COUNTED.name}: '
                  f'{told_calls(pair, stacks)}', flush=True)
            print(f'{name}: {told_costs(pair, stacks, rounds)}', flush=True)
    return values, floors


def row(test, name, value, bounds, peer):
    """Return a line of the table: a value, its floor, and its ratios to the
    floors and to rxe (@peer). @bounds: the floor of two processes, and that of
    one process or None"""
    def ratio(bound):
        if bound is None:
            return f'{"":10}'
        return f'{bound / value if test.latency else value / bound:10.3f}'

    to_peer = peer / value if test.latency else value / peer
    return (f'{test.name:20}{name:18}{value:9.1f} {test.unit:6}'
            f'{bounds[0]:9.1f}{ratio(bounds[0])}{ratio(bounds[1])}'
            f'{to_peer:9.1f}')


def main(rounds=ROUNDS):
    """Print the table; the exit code."""
    found, floors = {}, []
    print(calls.refusal() or 'system calls are counted by perf')
    for name in WIRES:
        print(f'{name}: {rounds} rounds', flush=True)
        found[name], more = measure(name, rounds)
        floors += more
    print(f'\n{"test":20}{"wire":18}{"median":>9} {"":6}'
          f'{"floor":>9}{"of floor":>10}{"of copy":>10}{"of rxe":>9}')
    for test in TESTS:
        bounds = [statistics.median(f[what, size] for f in floors)
                  if (what, size) in floors[0] else None for what, size in
                  (('pass', 0 if test.latency else test.size),
                   ('copy', test.size))]
        if bounds[0] is None:
            # A small message is less than a piece of a ring: compare it with
            # the copy of one process
            bounds[0] = bounds[1]
        peer = statistics.median(found[RXE][test])
        for name, values in found.items():
            print(row(test, name, statistics.median(values[test]), bounds,
                      peer))
    print('\nfloor: two processes pass messages of that size from the memory '
          'of one to that of\nthe other; for latencies the way to a process '
          'that has to wake up. copy: one process\nthat has both memories. '
          'Ratios: more is better')
    return 0
