# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of many queue pairs: `make bench-qps`.

A program of a guest writes 64 bytes at a time on 1, 16, 128... queue pairs in
turn, each connected to itself, and reports the rate and the latency. The test
reads the memory of QEMU and of the kernel while this many queue pairs are
idle.
"""
import re
import statistics
import time

from guestkit.paths import LabError
from guestkit.stack import VirtioRdma

from .leaks import kernel_kib, resident_kib
from .pair import Pair
from .programs import build_self_qp

COUNTS = (1, 16, 128, 1024, 4000)
ROUNDS = 3
TIMEOUT = 300
GO = '/tmp/go'


class Program:
    """The program qp_rates, which waits for a line before each measurement of
    memory."""

    def __init__(self, vm, stack, counts, options=''):
        self.vm = vm
        self.pid = vm.process.pid
        binary = build_self_qp('qp_rates')
        vm.must(f'rm -f {GO}; mkfifo {GO}')
        self.job = vm.spawn(f'exec {binary} -d {stack.device} -g '
                            f'{stack.gid(4)} {options} '
                            f'{" ".join(map(str, counts))} <>{GO}')
        self.seen = 0

    def _await(self, pattern):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            said = self.job.peek().out
            found = re.compile(pattern).search(said, self.seen)
            if found:
                self.seen = found.end()
                return found
            if 'FAIL' in said or 'stuck' in said:
                break
            time.sleep(0.1)
        raise LabError(f'qp_rates did not print {pattern!r}:\n{said}')

    def _memory(self):
        return resident_kib(self.pid), kernel_kib(self.vm)

    def _go(self):
        self.vm.must(f'echo > {GO}')

    def begin(self, count):
        """Create this many queue pairs, and let them write. Return the KiB of
        QEMU and of the kernel that each idle one has added."""
        self._await('none\n')
        before = self._memory()
        self._go()
        self._await('idle\n')
        after = self._memory()
        self._go()
        return [(b - a) / count for a, b in zip(before, after)]

    def end(self, count):
        """Return (messages/s, us) when they are done."""
        found = self._await(rf'qps {count} rate (\d+) latency ([\d.]+)\n')
        return int(found.group(1)), float(found.group(2))

    def measure(self, count):
        """Return (messages/s, us, KiB of QEMU, of the kernel) with this
        many."""
        memory = self.begin(count)
        return (*self.end(count), *memory)


def main(counts=COUNTS, rounds=ROUNDS):
    """Print the table; the exit code."""
    with Pair('bench-qps') as pair:
        stack = VirtioRdma()
        stack.up(pair.one)
        program = Program(pair.one, stack, [1, *counts] * rounds)
        found = {count: [] for count in counts}
        for _ in range(rounds):
            # Do not count what QEMU allocates for the first run.
            program.measure(1)
            for count in counts:
                found[count].append(program.measure(count))
        complaints = pair.one.complaints()
    rows = {count: [statistics.median(v) for v in zip(*values)]
            for count, values in found.items()}
    first = rows[counts[0]]
    print(f'{"QPs":>5}{"writes/s":>11}{"of first":>9}{"us":>8}{"of first":>9}'
          f'{"QEMU KiB/QP":>13}{"guest slab KiB/QP":>19}')
    for count, (rate, latency, qemu, kernel) in rows.items():
        print(f'{count:5}{rate:11.0f}{rate / first[0]:9.2f}{latency:8.1f}'
              f'{latency / first[1]:9.2f}{qemu:13.1f}{kernel:19.1f}')
    if complaints:
        print(complaints)
    return 1 if complaints else 0
