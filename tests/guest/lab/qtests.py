# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the device (tests/qtest) in a host with an RDMA device, which the
backend of the device under test can use: rxe in User-mode Linux, or
virtio-rdma in a guest."""
import re
import shlex
import time

from .pair import MTU, functions, mac, net_up
from .paths import BUILD, LOGS, TOP
from .pyverbs import NETDEV
from .stack import STACKS
from .uml import Uml, wire
from .vm import Vm

RUN_TESTS = TOP / 'scripts' / 'run-tests.py'
# A variable that the fixtures of tests/qtest know
IBDEV = 'RDMA_TEST_IBDEV'
RESULT = re.compile(r'^(ok|not ok) \d+ - (.*?)( # SKIP .*)?$')


class Qtests:
    """A host with an RDMA stack. @ibdev: whether tests use its device; else
    they run as on this machine."""

    def __init__(self, stack, ibdev=True):
        self.stack, self.ibdev = STACKS[stack](), ibdev
        name = f'qtest-{stack}'
        if stack == 'rxe':
            self.link = wire()     # nobody takes what is sent
            self.vm = Uml(name, self.link[0].fileno(), mac(1), MTU)
        else:
            self.vm = Vm(name, *NETDEV, *functions(1), smp=2)

    def __enter__(self):
        try:
            self.vm.start()
            self.vm.wait_ready()
            net_up(self.vm, 1)
            self.stack.up(self.vm)
        except BaseException:
            self.vm.kill()
            raise
        return self

    def __exit__(self, *exc):
        self.vm.kill()

    def resources(self):
        return self.vm.must('rdma resource show')

    def run(self, programs, paths, timeout):
        """Run what matches of the tests: lines of TAP without numbers, and
        the output of what failed."""
        command = shlex.join((
            '/usr/bin/python3', '-B', str(RUN_TESTS), str(BUILD / 'qemu'),
            '--select', programs, '--paths', paths, '--jobs', '1',
            '--share', '20', '--timeout', str(timeout)))
        variable = f'{IBDEV}={self.stack.device} ' if self.ibdev else ''
        before = self.resources()
        done = self.vm.run(f'{variable}{command} > /out/tap 2>&1', timeout)
        lines = (self.vm.out / 'tap').read_text(errors='replace').splitlines()
        if done.rc is None:
            lines.append(f'not ok 0 - no end after {timeout} s')
        elif f'1..{sum(bool(RESULT.match(line)) for line in lines)}' \
                not in lines:
            lines.append(f'not ok 0 - exit code {done.rc}')
        self.judge(lines, 'the guest leaves nothing in its host',
                   '' if self.resources() == before else
                   f'before:\n{before}after:\n{self.resources()}')
        self.judge(lines, "the host's kernel has no complaint",
                   self.vm.complaints())
        return lines

    @staticmethod
    def judge(lines, title, trouble):
        lines.append(f'{"not ok" if trouble else "ok"} 0 - {title}')
        lines += [f'#   {line}' for line in trouble.splitlines()]


def main(stack, programs, paths, timeout, ibdev=True):
    """Run them and print TAP; the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with Qtests(stack, ibdev) as host:
        lines = host.run(programs, paths, timeout)
    counts = {'ok': 0, 'not ok': 0, 'skip': 0}
    for line in lines:
        found = RESULT.match(line)
        if found:
            counts['skip' if found[3] else found[1]] += 1
            print(f'{found[1]} {sum(counts.values())} - on {stack}: '
                  f'{found[2]}{found[3] or ""}')
        elif not re.match(r'1\.\.\d+$', line):
            print(line)
    print(f'1..{sum(counts.values())}')
    print(f'# on {stack}: {counts["ok"]} passed, {counts["not ok"]} failed, '
          f'{counts["skip"]} skipped in {time.monotonic() - began:.0f} s')
    return 1 if counts['not ok'] or not counts['ok'] else 0
