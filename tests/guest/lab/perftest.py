# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest: the matrix of runs and the programs' output formats."""
import re

from guestkit.adapter import address

from .programs import exchange

BANDWIDTH = ('ib_send_bw', 'ib_write_bw', 'ib_read_bw')
LATENCY = ('ib_send_lat', 'ib_write_lat', 'ib_read_lat')
# perftest first measures the processor's clock with the kernel's. If these
# disagree, as after a pause of the guest, it reports 0 MB/s.
NO_CLOCK = 'Correlation coefficient r^2'
TRIES = 3
# The row of a finished run. If the clocks disagree, latencies are "inf".
ROW = re.compile(r'^\s*\d+\s+\d+\s+([\d.]+|inf)\s', re.M)
SIZES = {64: '64 B', 4096: '4 KiB', 65536: '64 KiB', 1 << 20: '1 MiB'}


class Test:
    """One row of the matrix. count is the number of iterations that take about
    half a second with rxe."""

    def __init__(self, tool, size, count):
        self.tool, self.size, self.count = tool, size, count
        self.latency = tool.endswith('_lat')
        self.unit = 'us' if self.latency else 'MB/s'
        if tool == 'ib_atomic_bw':
            self.unit = 'k/s'

    @property
    def name(self):
        if self.tool == 'ib_atomic_bw':
            return 'ib_atomic_bw fetch-add'
        return f'{self.tool} {SIZES[self.size]}'

    def command(self, stack, factor):
        size = f' -s {self.size}' if self.size else ''
        return (f'{self.tool} -d {stack.device} -x {stack.gid(4)} -F'
                f'{size} -n {self.count * factor}')


def matrix():
    """Bandwidth, latency and atomic rows, in the order of the table."""
    counts = {64: 4000, 4096: 2000, 65536: 300, 1 << 20: 24}
    tests = [Test(tool, size, count) for tool in BANDWIDTH
             for size, count in counts.items()]
    # The 99.9th percentile needs more than one sample above it.
    tests += [Test(tool, 64, 2000) for tool in LATENCY]
    return tests + [Test('ib_atomic_bw', None, 2000)]


def parse(test, text):
    """Return the figures of a run, from the row after the headings: {'value',
    ...}. Return None if there is no such row, or it has no usable value."""
    if NO_CLOCK in text:
        return None
    rows = [line.split() for line in text.splitlines()
            if ROW.match(line)]
    if not rows:
        return None
    row = rows[-1]
    if test.latency:
        return {'value': float(row[4]), 'average': float(row[5]),
                'p99': float(row[7]), 'p999': float(row[8])}
    figures = {'mbps': float(row[3]), 'krate': float(row[4]) * 1000}
    figures['value'] = figures['krate' if test.unit == 'k/s' else 'mbps']
    return figures


def run(test, pair, stacks, factor=1, timeout=60, tries=TRIES):
    """Run one test, with the server in guest 2. Return (Exchange, figures or
    None)."""
    client, server = stacks
    for _ in range(tries):
        result = exchange(
            pair.two, pair.one, test.command(server, factor),
            f'{test.command(client, factor)} {address(2)}',
            timeout=timeout)
        if NO_CLOCK not in result.client.out:
            break
    return result, parse(test, result.client.out) if result.ok else None
