# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of the device (tests/qtest) in a host with an RDMA device, which the
backend under test can use: rxe in User-mode Linux, or virtio-rdma in a
guest."""
import re
import shlex
import time

from guestkit.adapter import MTU, mac, net_up
from guestkit.paths import LOGS, TOP, qemu_binary
from guestkit.stack import STACKS
from guestkit.vm import Vm

from .cannot import RESULT, Cannot
from .pair import functions
from .pyverbs import NETDEV
from .uml import Uml, wire

RUN_TESTS = TOP / 'scripts' / 'run-tests.py'
# A variable that the fixtures of tests/qtest read
IBDEV = 'RDMA_TEST_IBDEV'
# Shorten the waits of tests that are expected to fail.
IMPATIENT = {'RDMA_TEST_WAIT': '3'}
PROGRAMS = 'virtio-rdma-net-test'
# Tests that are fast on any device. Most of their time is the start of an
# emulator in an emulated guest. So CI runs some on virtio-rdma and others on
# rxe.
ON_VIRTIO_RDMA = ('rc/(send|read|atomics)|uc/operations|mw/each-operation|'
                  'srq/two-qps-share|error/recovery')
ON_RXE = 'rc/(write|inline)|mr-table/large-pages|rereg/translation|ud/inline'
SAMPLE = f'{ON_VIRTIO_RDMA}|{ON_RXE}'


def resources(vm):
    return vm.must('rdma resource show')


def verdict(title, trouble):
    """Return lines of TAP: a failure if there is a text."""
    return [f'{"not ok" if trouble else "ok"} 0 - {title}',
            *(f'#   {line}' for line in trouble.splitlines())]


class Selection:
    """Which of the device's tests: regular expressions for programs, for
    paths, and for paths that are left out."""

    def __init__(self, programs, paths='', but=None):
        self.programs, self.paths, self.but = programs, paths, but

    def command(self, timeout):
        but = ('--but', self.but) if self.but else ()
        build = qemu_binary().parent
        return shlex.join((
            '/usr/bin/python3', '-B', str(RUN_TESTS), str(build), '--select',
            self.programs, '--paths', self.paths, *but,
            '--jobs', '1', '--share', '20', '--timeout', str(timeout)))


def run(vm, tests, timeout, **env):
    """Run in @vm a selection of the tests: lines of TAP without numbers, and
    the output of what failed."""
    given = ''.join(f'{name}={value} ' for name, value in env.items())
    before = resources(vm)
    done = vm.run(f'{given}{tests.command(timeout)} > /out/tap 2>&1', timeout)
    lines = (vm.out / 'tap').read_text(errors='replace').splitlines()
    if done.rc is None:
        lines.append(f'not ok 0 - no end after {timeout} s')
    elif f'1..{sum(bool(RESULT.match(line)) for line in lines)}' not in lines:
        lines.append(f'not ok 0 - exit code {done.rc}')
    after = resources(vm)
    lines += verdict('the tests leave nothing in the host',
                     '' if after == before else
                     f'before:\n{before}after:\n{after}')
    return lines


def run_sample(bench, vm, device, sample=SAMPLE):
    """A test: the sample passes on a device of @vm, and leaves no objects."""
    lines = run(vm, Selection(PROGRAMS, f'/hub/({sample})$'), 600,
                **{IBDEV: device})
    assert not any(line.startswith('not ok') for line in lines), \
        '\n'.join(lines)
    bench.note(f'{sum(f"{PROGRAMS}: " in line for line in lines)} of them')


class Qtests:
    """A host with an RDMA stack. @ibdev: whether tests use its device; else
    they run as on this machine."""

    def __init__(self, stack, ibdev=True):
        self.stack, self.ibdev = STACKS[stack](), ibdev
        self.cannot = Cannot(stack if ibdev else None)
        name = f'qtest-{stack}'
        if stack == 'rxe':
            self.link = wire()     # no one receives these frames
            self.vm = Uml(name, self.link[0].fileno(), mac(1), MTU)
        else:
            self.vm = Vm(name, *NETDEV, *functions(1))

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

    def run(self, programs, paths, timeout):
        """Run all tests that match, with less patience for those that the
        table rules out. Return lines of TAP, changed as the table says."""
        env = {IBDEV: self.stack.device} if self.ibdev else {}
        lines = run(self.vm, Selection(programs, paths, self.cannot.regex()),
                    timeout, **env)
        listed = self.cannot.regex_tried()
        if listed:
            both = f'^(?=.*({listed}))(?=.*({paths}))'
            lines += [self.cannot.judge(line) for line in
                      run(self.vm, Selection(programs, both), timeout,
                          **env, **IMPATIENT)]
        if not paths and programs == PROGRAMS:
            lines += self.cannot.left_out() + self.cannot.unused()
        return lines + verdict("the host's kernel has no complaint",
                               self.vm.complaints())


def main(stack, programs, paths, timeout, ibdev=True):
    """Run them and print TAP; the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with Qtests(stack, ibdev) as host:
        lines = host.run(programs, paths, timeout)
        cannot = host.cannot
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
    cannot_be = sum(cannot.counts.values())
    print(f'# on {stack}: {counts["ok"]} passed, {counts["not ok"]} failed, '
          f'{cannot_be} cannot be ({cannot.summary() or "none"}), '
          f'{counts["skip"] - cannot_be} skipped '
          f'in {time.monotonic() - began:.0f} s')
    return 1 if counts['not ok'] or not counts['ok'] else 0
