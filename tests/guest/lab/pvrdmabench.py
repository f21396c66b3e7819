# SPDX-License-Identifier: GPL-2.0-or-later
"""pvrdma beside virtio-rdma, in guests of the same kind: `make bench
BENCH=pvrdma`."""
import statistics

from guestkit.paths import LabError
from guestkit.stack import STACKS

from . import perftest, pvrdma
from .pair import Pair

ROUNDS = 3
# Multiplies the iterations of perftest.Test, which take about half a second
# with rxe.
FACTOR = 4
PAIRS = {'pvrdma': pvrdma.pair, 'virtio-rdma': Pair}


def measure(name, rounds):
    """Return {row: median} of an adapter."""
    values = {test.name: [] for test in perftest.matrix()}
    with PAIRS[name]('bench-pvrdma') as pair:
        stacks = [STACKS[name]() for _ in pair.vms]
        for vm, stack in zip(pair.vms, stacks):
            stack.up(vm)
        print(f'{name}: {pair.prefer_main_loops()}', flush=True)
        for _ in range(rounds):
            for test in perftest.matrix():
                result, figures = perftest.run(test, pair, stacks, FACTOR)
                if figures is None:
                    raise LabError(f'{name}: {test.name}:\n{result}')
                values[test.name].append(figures['value'])
    return {test: statistics.median(runs) for test, runs in values.items()}


def main(rounds=ROUNDS):
    """Print the table; the exit code."""
    found = {name: measure(name, rounds) for name in PAIRS}
    print(f'\n{"median of " + str(rounds):24}{"":>5}' +
          ''.join(f'{name:>13}' for name in PAIRS) + f'{"ratio":>8}')
    for test in perftest.matrix():
        ours, other = (found[name][test.name] for name in PAIRS)
        ratio = other / ours if test.latency else ours / other
        print(f'{test.name:24}{test.unit:>5}{ours:13.2f}{other:13.2f}'
              f'{ratio:8.2f}')
    print('\nratio: pvrdma to virtio-rdma; more is better for pvrdma')
    return 0
