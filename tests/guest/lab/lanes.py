# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic that runs until it is told to end, or until a test kills one end:
programs in two guests that check each byte.

One thread sends all requests to the guests, in short calls: a call that is in
flight when a guest migrates gets no answer.
"""
import re
import time

from guestkit.paths import LabError

STOP = '/run/lanes-stop'


class Lane:
    """rdma_verify with its server in guest 2 and its client in guest 1, on a
    TCP port of their own."""

    def __init__(self, bench, name, port, options, qps):
        self.bench, self.name, self.port = bench, name, port
        self.options, self.qps = f'{options} -q {qps}', qps
        self.jobs = {}          # by guest
        self.results = {}       # by guest, of the jobs that have ended
        self.struck = set()     # guests in which the process was killed
        self.unready = False    # killed before the first round: kill both
        self.ending = False
        self.rounds = 0         # verified rounds of all runs
        self.breaks = 0

    def commands(self, seed):
        """Return (server's command, client's command)."""
        server, client = self.bench.verify_commands(
            f'-p {self.port} -x {seed} {self.options}')
        return f'{server} -p {self.port}', client

    def start(self, seed):
        server, client = self.commands(seed)
        one, two = self.bench.one, self.bench.two
        self.jobs = {two: two.spawn(server, self.port)}
        self.jobs[one] = one.spawn(client)
        self.results, self.struck = {}, set()
        self.unready = self.ending = False

    def running(self):
        return len(self.results) < len(self.jobs)

    def ready(self):
        """Return whether both ends are past their preparations."""
        return all('round 1 done' in job.peek().out
                   for job in self.jobs.values())

    def mark(self):
        """Remember the traffic so far, for begun()."""

    def begun(self):
        """Return whether traffic flows."""
        return self.ready()

    def strike(self, vms):
        """Kill the processes in some guests. Kill those in all guests if one
        end could wait for the other for ever."""
        if not self.struck and not self.ready():
            self.unready = True
        for vm in self.jobs if self.unready else vms:
            if vm not in self.results:
                self.jobs[vm].kill()
            self.struck.add(vm)

    def stop(self):
        """Request an orderly end."""
        self.ending = True
        if self.bench.one not in self.results and not self.struck:
            self.jobs[self.bench.one].kill(15)

    def poll(self):
        """Note which ends have finished. After both have, check their
        results."""
        for vm, job in self.jobs.items():
            if vm not in self.results:
                result = job.peek()
                if result.rc is not None:
                    self.results[vm] = result
        if not self.running():
            self.judge()
            return
        if self.results and not self.struck and not self.ending:
            raise LabError(f'{self.name} ended by itself:\n{self}')

    def judge(self):
        for vm, result in self.results.items():
            self.rounds += self.count(result.out) / 2
            if vm in self.struck:
                continue
            broken = 'BROKEN as expected' in result.out
            if not result.ok or '\nOK: ' not in result.out or \
                    broken != bool(self.struck):
                raise LabError(f'{self.name}: a wrong end in {vm.name}\n'
                               f'{self}')
            self.breaks += broken

    @staticmethod
    def count(out):
        """Return the rounds that one end has verified."""
        numbers = re.findall(r'^round (\d+) done$', out, re.M)
        return int(numbers[-1]) if numbers else 0

    def __str__(self):
        shown = {vm: self.results.get(vm) or job.peek()
                 for vm, job in self.jobs.items()}
        return '\n'.join(f'--- {vm.name}: {str(result)[-2500:]}'
                         for vm, result in shown.items())


class LossyLane(Lane):
    """A Lane of a service that loses messages: short runs in sequence. A run
    may lose all messages, if the link is down or the peer migrates for as long
    as the run sends."""

    RUN = re.compile(r'^OK: (\d+) requests completed, '
                     r'(\d+) messages received$', re.M)
    good_before = 0         # good_runs() at mark()
    LOOP = ('n={seed}; while [ ! -e {stop}-{port} ]; do n=$((n + 1)); '
            '{command} || exit 1; done')

    def commands(self, seed):
        server, client = self.bench.verify_commands(
            f'-p {self.port} -x $n {self.options}')
        return tuple(
            self.LOOP.format(seed=seed, stop=STOP, port=self.port,
                             command=command)
            for command in (f'{server} -p {self.port}', client))

    def start(self, seed):
        for vm in (self.bench.one, self.bench.two):
            vm.must(f'rm -f {STOP}-{self.port}')
        super().start(seed)

    def ready(self):
        """Return False, so that strike() always kills both ends: neither
        notices when the other dies."""
        return False

    def good_runs(self):
        """Return in how many runs an end has received most messages. Of the
        two ends, the one with fewer such runs counts."""
        return min(sum(2 * int(received) >= int(sent) for sent, received in
                       self.RUN.findall(job.peek().out))
                   for job in self.jobs.values())

    def mark(self):
        self.good_before = self.good_runs()

    def begun(self):
        return self.good_runs() > self.good_before

    def stop(self):
        self.ending = True
        self.bench.one.must(f': > {STOP}-{self.port}')

    def poll(self):
        super().poll()
        one, two = self.bench.one, self.bench.two
        if self.running() and self.ending and one in self.results:
            # The server waits for the next client, which never connects.
            self.jobs[two].kill()
            self.results[two] = self.jobs[two].wait(10)
            self.judge()

    def judge(self):
        for vm, result in self.results.items():
            self.rounds += self.count(result.out) / 2
            if not self.struck and ('FAIL' in result.out or
                                    vm is self.bench.one and not result.ok):
                raise LabError(f'{self.name}: a wrong end in {vm.name}\n'
                               f'{self}')

    @staticmethod
    def count(out):
        return len(re.findall(r'^OK: ', out, re.M))


class Lanes:
    """All lanes. @seed: a function that returns a number for each start."""

    # The time until broken connections are noticed on a busy machine
    PATIENCE = 120

    def __init__(self, lanes, seed):
        self.all, self.seed = lanes, seed

    def start(self):
        """Start the lanes that do not run."""
        for lane in self.all:
            if not lane.running():
                lane.start(self.seed())

    def poll(self):
        for lane in self.all:
            if lane.running():
                lane.poll()

    def watch(self, seconds):
        """Let time pass. A lane that ends by itself is an error; one that was
        struck starts again."""
        end = time.monotonic() + seconds
        while True:
            self.poll()
            self.start()
            if time.monotonic() >= end:
                return
            time.sleep(0.3)

    def until(self, done, what):
        """Wait until the condition holds for each lane."""
        end = time.monotonic() + self.PATIENCE
        while True:
            self.poll()
            late = [lane for lane in self.all if not done(lane)]
            if not late:
                return
            if time.monotonic() > end:
                raise LabError(f'{late[0].name}: {what} after '
                               f'{self.PATIENCE} s\n{late[0]}')
            time.sleep(0.3)

    def flow(self):
        """Wait until all lanes carry traffic."""
        self.until(lambda lane: not lane.struck or not lane.running(),
                   'still runs')
        self.start()
        for lane in self.all:
            lane.mark()
        self.until(lambda lane: lane.begun(), 'does not begin')

    def stop(self):
        """Stop all lanes in an orderly way."""
        for lane in self.all:
            if lane.running():
                lane.stop()
        self.until(lambda lane: not lane.running(), 'still runs')

    def strike(self, vm):
        """Kill all processes of the lanes in a guest."""
        for lane in self.all:
            if lane.running():
                lane.strike((vm,))


def rc(bench, name, port, options, qps):
    return Lane(bench, name, port,
                f'-r 0 -k 18 -T 3600 {options}', qps)


def lossy(bench, name, port, options, qps):
    # On a busy machine the clock of a guest may jump by a minute.
    return LossyLane(bench, name, port, f'-L 0 -r 1 -T 3600 {options}', qps)


def mixed(bench):
    """Return lanes with 64 queue pairs of three services, and every
    operation."""
    return [
        rc(bench, 'RC all', 18600, '-s 8192 -n 16 -S 8 -V -e', 16),
        rc(bench, 'RC small', 18601,
           '-s 1024 -n 32 -S 8 -V -e -I 256 -G 4', 16),
        rc(bench, 'RC large', 18602,
           '-s 65536 -n 4 -m 4096 -V -e -o send,write,read,write_imm', 8),
        rc(bench, 'RC unready', 18603,
           '-s 2048 -n 16 -R 2 -V -e -o send,send_imm,write_imm,fadd,cas', 8),
        lossy(bench, 'UC', 18604,
              '-t uc -s 8192 -n 64 -R 64 -V -e -o send_imm,write_imm', 8),
        lossy(bench, 'UD', 18605,
              '-t ud -s 1024 -n 64 -R 64 -V -e -o send_imm', 8),
    ]
