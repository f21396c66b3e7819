# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a query of 1000 queue pairs: `make bench-query`.

A program of a guest writes 64 bytes at a time on all of them, while query-rdma
lists them now and then. The time is that of a client, from the command to the
last byte of the answer. The rate is that of the guest.
"""
import json
import shutil
import socket
import statistics
import tempfile
import threading
import time

from guestkit.paths import LabError
from guestkit.stack import VirtioRdma

from .pair import Pair
from .qpbench import Program

COUNT = 1000
ROUNDS = 3
WRITES = 3000000
# Queries per second during the writes
RATES = {'no query': 0, 'one query a second': 1, 'ten queries a second': 10}
# Seconds between two checks for the end while there are no queries
NAP = 0.1


class Monitor:
    """A QMP client that only reads the answers."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.answers = self.sock.makefile('rb')
        self.answers.readline()
        self.ask('qmp_capabilities')

    def ask(self, command, **arguments):
        """(ms, bytes of the answer)"""
        request = json.dumps({'execute': command, 'arguments': arguments})
        began = time.monotonic()
        self.sock.sendall(request.encode() + b'\n')
        answer = self.answers.readline()
        took = (time.monotonic() - began) * 1e3
        if not answer.startswith(b'{"return"'):
            raise LabError(f'{command}: {answer.decode()}')
        return took, answer


class Asker(threading.Thread):
    """Sends a number of queries per second until it is told to stop."""

    def __init__(self, monitor, per_second):
        super().__init__()
        self.monitor, self.per_second = monitor, per_second
        self.times, self.size = [], 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(1 / self.per_second if self.per_second
                                 else NAP):
            if self.per_second:
                took, answer = self.monitor.ask('query-rdma', objects=['qp'])
                # The program destroys the queue pairs before it ends.
                if answer.count(b'"rc"') == COUNT:
                    self.times.append(took)
                    self.size = len(answer)

    def stop(self):
        self.over.set()
        self.join()


def measure(program, monitor, per_second):
    """Return (writes per second, the Asker)."""
    program.begin(COUNT)
    asker = Asker(monitor, per_second)
    asker.start()
    try:
        rate, _ = program.end(COUNT)
    finally:
        asker.stop()
    return rate, asker


def main(rounds=ROUNDS):
    """Print the table; the exit code."""
    directory = tempfile.mkdtemp(prefix='vrdma-')
    path = f'{directory}/qmp'
    found = {name: [] for name in RATES}
    try:
        with Pair('bench-query', extra=lambda index: [
                '-qmp', f'unix:{path},server=on,wait=off']
                if index == 1 else []) as pair:
            stack = VirtioRdma()
            stack.up(pair.one)
            monitor = Monitor(path)
            program = Program(pair.one, stack,
                              [COUNT] * (len(RATES) * rounds),
                              f'-n {WRITES} -a 100')
            for _ in range(rounds):
                for name, per_second in RATES.items():
                    found[name].append(measure(program, monitor, per_second))
            complaints = pair.one.complaints()
    finally:
        shutil.rmtree(directory)
    print(f'{"":24}{"writes/s":>10}{"of first":>9}{"answers":>9}'
          f'{"median ms":>11}{"95 % ms":>9}{"worst ms":>10}')
    quiet = statistics.median(rate for rate, _ in found['no query'])
    for name, runs in found.items():
        rate = statistics.median(rate for rate, _ in runs)
        times = sorted(ms for _, asker in runs for ms in asker.times)
        line = f'{name:24}{rate:10.0f}{rate / quiet:9.2f}{len(times):9}'
        if times:
            line += (f'{statistics.median(times):11.1f}'
                     f'{times[int(0.95 * len(times))]:9.1f}{times[-1]:10.1f}')
        print(line)
    size = max(asker.size for runs in found.values() for _, asker in runs)
    lowest = min(rate for rate, _ in found['no query'])
    highest = max(rate for rate, _ in found['no query'])
    print(f'An answer has {size} bytes. Runs without queries differ by '
          f'{1 - lowest / highest:.0%}.')
    if complaints:
        print(complaints)
    return 1 if complaints else 0
