# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the tests of tests/guest/test_*.py, or of a suite in a directory there.

A test file may say in GUESTS how its pair of guests is made (arguments of
pair.Pair, or of what PAIR names instead), and in SECOND which stack guest 2
uses if not the one under test. Each function test_* gets a Bench. One pair
serves all tests of a file; it is booted again when a test has ended a guest
or left it in a bad way. A test fails by an exception, and skips by raising
Skip.
"""
import importlib.util
import re
import time
import traceback

from .pair import Pair, address
from .paths import GUEST_TESTS, LOGS, LabError
from .programs import build_verify, exchange
from .stack import STACKS
from .vm import GuestGone


# Half a second: a guest may have to wait that long for a busy machine.
ACK_TIMEOUT = 17


class Skip(Exception):
    """The machine lacks something the test needs; the text says what."""


def ends_guests(test):
    """Mark a test after which its guests are of no use."""
    test.ends_guests = True
    return test


class Bench:
    """What a test works with: two guests with an RDMA stack in each."""

    def __init__(self, pair, stack, second=None):
        self.pair = pair
        self.stack = stack
        self.one, self.two = pair.vms
        self.stacks = {self.one: STACKS[stack](),
                       self.two: STACKS[second or stack]()}
        for vm, its in self.stacks.items():
            its.up(vm)
        self.binary = build_verify()

    def device(self, vm):
        return self.stacks[vm].device

    def gid(self, vm, family=4):
        return self.stacks[vm].gid(family)

    def where(self, vm, form, family=4):
        """Device and GID arguments, e.g. form '-d {} -g {}'."""
        return form.format(self.device(vm), self.gid(vm, family))

    def exchange(self, server_cmd, client_cmd, form='-d {} -g {}', family=4,
                 timeout=60, port=18515):
        """Run a program on both sides and require success."""
        result = exchange(
            self.two, self.one,
            f'{server_cmd} {self.where(self.two, form, family)}',
            f'{client_cmd} {self.where(self.one, form, family)} '
            f'{address(2)}', timeout=timeout, port=port)
        assert result.ok, str(result)
        return result

    def verify_commands(self, options, family=4, server=None, client=None):
        """Command lines of rdma_verify: (server's, client's)."""
        server, client = server or self.two, client or self.one
        host = address(self.pair.vms.index(server) + 1)
        form = '-d {} -g {}'
        return (f'{self.binary} {self.where(server, form, family)}',
                f'{self.binary} {self.where(client, form, family)} '
                f'-k {ACK_TIMEOUT} {options} {host}')

    def verify(self, options, family=4, timeout=60, server=None,
               client=None):
        """Run rdma_verify to its end and require success."""
        commands = self.verify_commands(options, family, server, client)
        result = exchange(server or self.two, client or self.one, *commands,
                          timeout=timeout)
        assert result.ok, str(result)
        return result

    @staticmethod
    def count(vm, kind):
        """How many resources of a kind a guest's RDMA core knows of. CQs of
        its pool, which stay for the next user, do not count while they have
        none."""
        rows = vm.must(f'rdma resource show {kind}').splitlines()
        return sum(' users 0 ' not in row + ' ' for row in rows)

    def resources(self):
        """What each guest's RDMA core knows of."""
        return [{kind: self.count(vm, kind)
                 for kind in ('pd', 'cq', 'qp', 'cm_id', 'mr', 'srq')}
                for vm in self.pair.vms]

    def nothing_left(self, before):
        """Require that the guests have no more resources than before. The
        connection manager keeps what has ended for a moment."""
        after = []
        for _ in range(40):
            after = self.resources()
            if after == before:
                return
            time.sleep(1)
        assert after == before, f'left behind: {after}, was: {before}'

    def nic_works(self):
        """Whether guest 2 answers guest 1: nobody listens on the port, and
        a refusal is as good an answer as any."""
        result = self.one.run(
            f'timeout 5 bash -c "exec 3<>/dev/tcp/{address(2)}/7"')
        return 'refused' in result.out

    def healthy(self):
        """Whether later tests can use these guests."""
        try:
            for vm, its in self.stacks.items():
                if not vm.alive() or its.find(vm) != its.device:
                    return False
                if vm.complaints():
                    return False
        except LabError:
            return False
        return True


class Runner:
    def __init__(self, stack, pattern, suite=''):
        self.stack = stack
        self.directory = GUEST_TESTS / suite
        self.pattern = re.compile(pattern or '')
        self.counts = {'ok': 0, 'not ok': 0, 'skip': 0}
        self.bench = None
        self.began = time.monotonic()

    def report(self, kind, name, seconds, detail=''):
        self.counts[kind] += 1
        number = sum(self.counts.values())
        if kind == 'skip':
            print(f'ok {number} - {name} # SKIP {detail}', flush=True)
            return
        print(f'{kind} {number} - {name} # {seconds:.1f} s', flush=True)
        for line in detail.rstrip().splitlines():
            print(f'#   {line}', flush=True)

    def close(self):
        if self.bench:
            self.bench.pair.kill()
        self.bench = None

    def open(self, tag, make, options, second):
        if self.bench and not self.bench.healthy():
            self.close()
        if not self.bench:
            pair = make(f'check-{tag}', rdma=self.stack != 'rxe',
                        **options).start()
            try:
                self.bench = Bench(pair, self.stack, second)
            except BaseException:
                pair.kill()
                raise

    def one(self, tag, module, name, test):
        start = time.monotonic()
        try:
            self.open(tag, getattr(module, 'PAIR', Pair),
                      getattr(module, 'GUESTS', {}),
                      getattr(module, 'SECOND', None))
            test(self.bench)
            complaints = [vm.complaints() for vm in self.bench.pair.vms
                          if vm.alive()]
            assert not any(complaints), \
                "the guest's kernel complains:\n" + '\n'.join(complaints)
        except Skip as e:
            self.report('skip', name, 0, str(e))
            return
        except (AssertionError, LabError) as e:
            detail = str(e) or traceback.format_exc()
            if self.bench:
                for vm in self.bench.pair.vms:
                    if isinstance(e, GuestGone) or not vm.alive():
                        detail += '\n' + vm.errors()
                    else:
                        detail += '\n' + vm.complaints()
            self.report('not ok', name, time.monotonic() - start, detail)
            # Whatever went wrong must not spoil the next test.
            self.close()
        except Exception:    # a fault of the test itself
            self.report('not ok', name, time.monotonic() - start,
                        traceback.format_exc())
            self.close()
        else:
            self.report('ok', name, time.monotonic() - start)
        if getattr(test, 'ends_guests', False):
            self.close()

    def file(self, path):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        tag = path.stem.removeprefix('test_')
        try:
            for key, test in list(vars(module).items()):
                name = f'guest/{tag}: ' + \
                    key.removeprefix('test_').replace('_', ' ')
                if key.startswith('test_') and callable(test) and \
                        self.pattern.search(name):
                    self.one(tag, module, name, test)
        finally:
            self.close()

    def run(self):
        """Run all files; the exit code."""
        LOGS.mkdir(parents=True, exist_ok=True)
        for path in sorted(self.directory.glob('test_*.py')):
            self.file(path)
        counts = self.counts
        print(f'1..{sum(counts.values())}')
        print(f'# guest: {counts["ok"]} passed, {counts["not ok"]} failed, '
              f'{counts["skip"]} skipped in '
              f'{time.monotonic() - self.began:.0f} s')
        return 1 if counts['not ok'] else 0
