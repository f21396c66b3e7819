# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the tests of a suite, which is a directory of tests/guest.

A test file may set these names:

PAIR       makes the pair of guests; default: pair.Pair
GUESTS     keyword arguments for PAIR
STACK      the stack of the guests, if it is not the one under test
SECOND     the stack of guest 2, if it is another one
SECONDS    how long the file takes, about; default: 10
ON_NETDEV  true: skip the tests if frames use shared memory, because they need
           frames on the netdev
BENCH      makes the argument of the tests from the pair, STACK and SECOND;
           default: Bench
AROUND     makes a context manager from that argument; each test runs in one

Each function test_* is a test. One pair serves all tests of a file, and of
other files that want the same guests. The runner boots it again after a test
that has ended a guest or left it unusable. A test fails by an exception, and
skips by raising Skip.
"""
import contextlib
import importlib.util
import re
import time
import traceback

from guestkit.adapter import address, net_up
from guestkit.agent import GuestGone
from guestkit.paths import LabError
from guestkit.stack import STACKS

from . import wire
from .pair import Pair
from .programs import build_verify, exchange


# An ACK timeout of half a second: on a busy machine, a guest may have to wait
# that long for a processor.
ACK_TIMEOUT = 17


def port_counters(vm, device):
    """Return {name: value} of the counters of a device's port. The RDMA core
    refreshes them at most every 10 ms."""
    text = vm.must(f'sleep 0.05; cd /sys/class/infiniband/{device}/ports/1 && '
                   'grep -s . counters/* hw_counters/*')
    return {name: int(value) for name, value in
            re.findall(r'^(\S+):(\d+)$', text, re.M)}


class Skip(Exception):
    """The machine lacks something that the test needs; the text names it."""


def ends_guests(test):
    """Mark a test whose guests cannot be used afterwards."""
    test.ends_guests = True
    return test


def slow(test):
    """Mark a test that a sample of the suite leaves out."""
    test.slow = True
    return test


class Bench:
    """The environment of a test: two guests with an RDMA stack in each."""

    def __init__(self, pair, stack, second=None):
        self.pair = pair
        self.stack = stack
        self.one, self.two = pair.vms
        self.stacks = {self.one: STACKS[stack](),
                       self.two: STACKS[second or stack]()}
        for vm, its in self.stacks.items():
            its.up(vm)
        for vm in pair.vms:
            build_verify(vm.arch)
        self.baseline = self.resources()
        self.notes = []

    def note(self, text):
        """Add a note to the result of the running test."""
        self.notes.append(text)

    def restart_two(self):
        """Boot guest 2 again after its end. Guest 1 has the server's end of
        the link, and waits for it."""
        self.two.kill()
        self.two.start().wait_ready()
        net_up(self.two, 2)
        self.stacks[self.two].up(self.two)

    def device(self, vm):
        return self.stacks[vm].device

    def gid(self, vm, family=4):
        return self.stacks[vm].gid(family)

    def where(self, vm, form, family=4):
        """Return device and GID arguments, e.g. form '-d {} -g {}'."""
        return form.format(self.device(vm), self.gid(vm, family))

    def exchange(self, server_cmd, client_cmd, form='-d {} -g {}', family=4,
                 timeout=60, how=exchange):
        """Run a program on both sides and require success. With cm_exchange
        the two find each other by RDMA CM."""
        result = how(
            self.two, self.one,
            f'{server_cmd} {self.where(self.two, form, family)}',
            f'{client_cmd} {self.where(self.one, form, family)} '
            f'{address(2)}', timeout=timeout)
        assert result.ok, str(result)
        return result

    def verify_commands(self, options, family=4, server=None, client=None):
        """Return command lines of rdma_verify: (server's, client's)."""
        server, client = server or self.two, client or self.one
        host = address(self.pair.vms.index(server) + 1)
        form = '-d {} -g {}'
        return (f'{build_verify(server.arch)} '
                f'{self.where(server, form, family)}',
                f'{build_verify(client.arch)} '
                f'{self.where(client, form, family)} '
                f'-k {ACK_TIMEOUT} {options} {host}')

    def verify(self, options, family=4, timeout=60, server=None,
               client=None):
        """Run rdma_verify to its end, and require success."""
        commands = self.verify_commands(options, family, server, client)
        result = exchange(server or self.two, client or self.one, *commands,
                          timeout=timeout)
        assert result.ok, str(result)
        return result

    @staticmethod
    def used(rows):
        """Return the number of listed resources. CQs of the RDMA core's pool
        that have no user do not count: they stay for the next one."""
        return sum(' users 0 ' not in row + ' ' for row in rows.splitlines())

    def count(self, vm, kind):
        """Return how many resources of a kind a guest's RDMA core has."""
        return self.used(vm.must(f'rdma resource show {kind}'))

    def counters(self):
        """Return {name: value} of guest 1's port."""
        return port_counters(self.one, self.device(self.one))

    def resources(self):
        """Return the resources of each guest's RDMA core, by kind."""
        def counts(vm):
            totals, _, cqs = vm.must(
                'rdma resource show; echo --; rdma resource show cq'
            ).partition('--\n')
            found = {kind: sum(map(int, re.findall(rf' {kind} (\d+)', totals)))
                     for kind in ('pd', 'qp', 'cm_id', 'mr', 'srq')}
            return {**found, 'cq': self.used(cqs)}
        return [counts(vm) for vm in self.pair.vms]

    def nothing_left(self, before):
        """Require that the guests have no more resources than at the start of
        the test. The connection manager keeps ended connections for a
        moment."""
        after = []
        for _ in range(200):
            after = self.resources()
            if after == before:
                return
            time.sleep(0.2)
        assert after == before, f'left behind: {after}, was: {before}'

    def nic_works(self):
        """Return whether guest 2 answers guest 1. No program listens on the
        port, so the answer is a refusal."""
        result = self.one.run(
            f'timeout 5 bash -c "exec 3<>/dev/tcp/{address(2)}/7"')
        return 'refused' in result.out

    def healthy(self):
        """Return whether later tests can use these guests."""
        try:
            for vm, its in self.stacks.items():
                if not vm.alive() or its.find(vm) != its.device:
                    return False
                if vm.complaints():
                    return False
        except LabError:
            return False
        return True


class NoGuests:
    """Replaces PAIR and BENCH of tests that need no guests."""

    baseline = None
    vms = ()

    def __init__(self, *_, **__):
        self.pair = self
        self.notes = []

    def note(self, text):
        self.notes.append(text)

    def start(self):
        return self

    def healthy(self):
        return True

    def nothing_left(self, _):
        pass

    def kill(self):
        pass


class Tests:
    """The tests of one file whose names match the pattern."""

    def __init__(self, path, pattern, take_slow=True, alone=False):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.tag = path.stem.removeprefix('test_')
        self.make = getattr(module, 'PAIR', Pair)
        self.options = getattr(module, 'GUESTS', {})
        self.stack = getattr(module, 'STACK', None)
        self.second = getattr(module, 'SECOND', None)
        self.bench = getattr(module, 'BENCH', Bench)
        self.on_netdev = getattr(module, 'ON_NETDEV', False)
        self.around = getattr(module, 'AROUND', contextlib.nullcontext)
        self.alone = alone
        self.seconds = getattr(module, 'SECONDS', 10)
        self.tests = []
        for key, test in vars(module).items():
            name = f'guest/{self.tag}: ' + \
                key.removeprefix('test_').replace('_', ' ')
            if key.startswith('test_') and callable(test) and \
                    pattern.search(name) and \
                    (take_slow or not getattr(test, 'slow', False)):
                self.tests.append((name, test))
        self.end_guests = any(getattr(test, 'ends_guests', False)
                              for _, test in self.tests)

    def guests(self):
        """Return a key: tests of two files with the same key can share a
        pair."""
        return (self.make, self.options, self.stack, self.second, self.bench,
                self.tag if self.alone else '')


class Runner:
    """Runs tests in sequence. It calls tell(kind, name, seconds, detail,
    frames) for each test. The kind is 'ok', 'not ok' or 'skip'. With WIRE=shm,
    frames is the number from wire.Memory."""

    def __init__(self, stack, tell):
        self.stack = stack
        self.tell = tell
        self.bench = None
        self.guests = None     # the key of the bench's pair

    def close(self):
        if self.bench:
            self.bench.pair.kill()
        self.bench = None

    def open(self, tests):
        if self.bench and not self.bench.healthy():
            self.close()
        if self.bench:
            return
        stack = tests.stack or self.stack
        pair = tests.make(f'check-{tests.tag}', rdma=stack != 'rxe',
                          **tests.options).start()
        try:
            self.bench = tests.bench(pair, stack, tests.second)
        except BaseException:
            pair.kill()
            raise
        self.guests = tests.guests()

    def by_memory(self):
        """Return whether frames use shared memory by default."""
        return wire.chosen() == 'shm' and self.stack != 'rxe'

    def trouble(self, error):
        """Return the details to report for a failed test."""
        detail = str(error) or traceback.format_exc()
        for vm in self.bench.pair.vms if self.bench else ():
            gone = isinstance(error, GuestGone) or not vm.alive()
            detail += '\n' + (vm.errors() if gone else vm.complaints())
        return detail

    def one(self, tests, name, test):
        start = time.monotonic()
        detail, frames = '', None
        try:
            self.open(tests)
            self.bench.notes = []
            memory = self.by_memory() and wire.Memory(self.bench.pair.vms)
            with tests.around(self.bench):
                test(self.bench)
            frames = memory.frames() if memory else None
            complaints = [vm.complaints() for vm in self.bench.pair.vms
                          if vm.alive()]
            assert not any(complaints), \
                "the guest's kernel complains:\n" + '\n'.join(complaints)
        except Skip as e:
            self.tell('skip', name, 0, str(e))
            return
        except (AssertionError, LabError) as e:
            detail = self.trouble(e)
        except Exception:    # an error in the test itself
            detail = traceback.format_exc()
        took = time.monotonic() - start
        if detail:
            self.tell('not ok', name, took, detail)
        else:
            self.tell('ok', name, took, '\n'.join(self.bench.notes), frames)
        # No failure may affect the next test.
        if detail or getattr(test, 'ends_guests', False):
            self.close()

    def file(self, tests):
        """Run the tests of a file. Keep its guests for the next file with the
        same key, if the tests left nothing behind in them."""
        if self.guests != tests.guests():
            self.close()
        for name, test in tests.tests:
            if tests.on_netdev and self.by_memory():
                self.tell('skip', name, 0, 'frames by shared memory pass no '
                          'filter of a netdev')
            else:
                self.one(tests, name, test)
        start = time.monotonic()
        try:
            if self.bench:
                self.bench.nothing_left(self.bench.baseline)
        except (AssertionError, LabError) as e:
            self.tell('not ok', f'guest/{tests.tag}: leaves nothing behind',
                      time.monotonic() - start, self.trouble(e))
            self.close()
