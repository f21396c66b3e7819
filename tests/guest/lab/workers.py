# SPDX-License-Identifier: GPL-2.0-or-later
"""Run files of guest tests in parallel, and print one TAP stream.

Each worker is a process with a pair of guests, which it keeps while there are
files left that want such guests.
"""
import collections
import multiprocessing
import os
import re
import time
from multiprocessing.connection import wait

from guestkit.paths import LOGS
from guestkit.vm import die_with_parent

from . import wire
from .places import GUEST_TESTS
from .runner import Runner, Tests

# The suite of `make check`: its files run in parallel and share guests.
CHECK = 'check'
# More pairs need more memory than every machine has.
MOST = 4
FORK = multiprocessing.get_context('fork')


def files_of(folder):
    """Return the files of tests in a folder and in its folders, by name."""
    return sorted(folder.rglob('test_*.py'), key=lambda path: path.name)


def work(stack, files, link):
    """The process of a worker: run the files whose numbers it gets."""
    die_with_parent()
    runner = Runner(stack, lambda *report: link.send(report))
    try:
        for number in iter(link.recv, None):
            runner.file(files[number])
            link.send(None)
    except KeyboardInterrupt:
        pass
    finally:
        runner.close()


class Worker:
    def __init__(self, stack, files):
        self.files = files
        self.number = None
        self.link, far = FORK.Pipe()
        self.process = FORK.Process(target=work, args=(stack, files, far))
        self.process.start()
        far.close()

    @property
    def tests(self):
        """Return the tests that it runs, or ran last."""
        return None if self.number is None else self.files[self.number]

    def run(self, number):
        self.number = number
        self.link.send(number)

    def end(self):
        self.link.send(None)
        self.process.join()


class Check:
    """The tests of a suite whose names match the pattern. Without a pattern
    and @take_slow, those of CHECK are a sample."""

    def __init__(self, stack, pattern, suite=CHECK, jobs=None,
                 take_slow=False):
        self.stack = stack
        wanted = re.compile(pattern or '')
        # The long tests of a suite have the machine and their guests to
        # themselves.
        alone = suite != CHECK
        take_slow = take_slow or bool(pattern) or alone
        self.files = [Tests(path, wanted, take_slow, alone) for path in
                      files_of(GUEST_TESTS / suite)]
        jobs = jobs or (1 if alone else min(os.cpu_count(), MOST))
        self.todo = {number for number, tests in enumerate(self.files)
                     if tests.tests}
        self.jobs = min(jobs, len(self.todo))
        self.workers = []
        self.counts = {'ok': 0, 'not ok': 0, 'skip': 0}
        self.memory = []    # (name, frames) of tests that have passed

    def report(self, kind, name, seconds, detail='', frames=None):
        self.counts[kind] += 1
        if kind == 'ok':
            self.memory.append((name, frames))
        number = sum(self.counts.values())
        if kind == 'skip':
            print(f'ok {number} - {name} # SKIP {detail}', flush=True)
            return
        lines = [f'{kind} {number} - {name} # {seconds:.1f} s']
        lines += [f'#   {line}' for line in detail.rstrip().splitlines()]
        if frames is not None:
            lines.append(f'#   {frames} frames by shared memory')
        print('\n'.join(lines), flush=True)

    def report_memory(self):
        """With WIRE=shm: report which tests passed without shared memory."""
        def files(names):
            count = collections.Counter(name.split(':')[0] for name in names)
            return ', '.join(f'{file} {n}' for file, n in
                             sorted(count.items())) or '-'
        sent = [name for name, frames in self.memory if frames]
        idle = [name for name, frames in self.memory if frames == 0]
        none = [name for name, frames in self.memory if frames is None]
        print(f'# by shared memory: {len(sent)} tests that passed')
        print(f'# {len(idle)} sent nothing by it: {files(idle)}')
        print(f'# {len(none)} had no adapter with it: {files(none)}')

    def choose(self, worker):
        """Choose the best next file for a worker: one for its present guests,
        else one for guests that no other worker has. Of these choose the file
        whose guests have most work left. A file that ends its guests comes
        last."""
        mine = worker.tests and worker.tests.guests()
        others = [w.tests.guests() for w in self.workers
                  if w is not worker and w.tests]

        def rank(number):
            guests = self.files[number].guests()
            work = sum(self.files[n].seconds for n in self.todo
                       if self.files[n].guests() == guests)
            return (guests == mine, guests not in others, work,
                    not self.files[number].end_guests,
                    self.files[number].seconds, -number)
        return max(self.todo, key=rank)

    def next(self, worker):
        if self.todo:
            number = self.choose(worker)
            self.todo.remove(number)
            worker.run(number)
        else:
            self.workers.remove(worker)
            worker.end()

    def answer(self, worker):
        """Handle a message of a worker."""
        try:
            report = worker.link.recv()
        except EOFError:
            self.workers.remove(worker)
            worker.process.join()
            self.report('not ok', f'guest/{worker.tests.tag}: the worker '
                        'ended', 0, f'exit code {worker.process.exitcode}')
            if self.todo:
                self.start()
            return
        if report:
            self.report(*report)
        else:
            self.next(worker)

    def start(self):
        worker = Worker(self.stack, self.files)
        self.workers.append(worker)
        self.next(worker)

    def run(self):
        """The exit code."""
        LOGS.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        try:
            for _ in range(self.jobs):
                self.start()
            while self.workers:
                links = {worker.link: worker for worker in self.workers}
                for link in wait(list(links)):
                    self.answer(links[link])
        except KeyboardInterrupt:
            for worker in self.workers:
                worker.process.join()
            raise
        counts = self.counts
        print(f'1..{sum(counts.values())}')
        if wire.chosen() == 'shm':
            self.report_memory()
        print(f'# guest: {counts["ok"]} passed, {counts["not ok"]} failed, '
              f'{counts["skip"]} skipped in '
              f'{time.monotonic() - began:.0f} s')
        if not sum(counts.values()):
            print('# no test has such a name')
        return 1 if counts['not ok'] or not sum(counts.values()) else 0
