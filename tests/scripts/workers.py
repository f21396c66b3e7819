#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The runner of guest tests loses no failure, shares guests only where it may,
and says of which file a failure is. The guests here are made of paper.
"""
import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import tap

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / 'tests' / 'guest'), str(TOP / 'tools' / 'lab')]

from guestkit import source    # noqa: E402
from guestkit.paths import LabError, Unavailable    # noqa: E402
from lab import main, newer, pvrdma, runner, workers    # noqa: E402


class Paper:
    """A pair, and the bench on it. Leftovers stay in the pair."""

    def __init__(self, tag, *_, **options):
        self.vms, self.pair, self.notes = [], self, []
        self.tag, self.options = tag, options
        self.baseline = self.left = 0

    def start(self):
        return self

    def kill(self):
        pass

    def healthy(self):
        return True

    def nothing_left(self, before):
        assert self.left == before, 'something is left'


class PaperVm:
    """A guest whose adapter has shared memory, if an object says so."""

    def __init__(self, has_memory, pid=1):
        self.process = types.SimpleNamespace(pid=pid)
        self.objects = ['r0'] if has_memory else []
        self.frames = 100

    def alive(self):
        return True

    def qmp(self, command, **arguments):
        if command == 'qom-list':
            return [{'name': name} for name in self.objects]
        assert arguments['path'] == '/objects/r0'
        return {'shm-tx-frames': self.frames,
                'shm-rx-frames': 0}[arguments['property']]

    def complaints(self):
        return ''


class PaperWithGuests(Paper):
    def __init__(self, tag, *_, has_memory=True, **options):
        super().__init__(tag, **options)
        self.vms = [PaperVm(has_memory)]


def bench(pair, *_):
    return pair


class Workers(unittest.TestCase):
    def setUp(self):
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        os.environ.pop('WIRE', None)
        self.base = Path(tempfile.mkdtemp(prefix='workers-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        runner.Pair, runner.Bench = Paper, bench
        workers.GUEST_TESTS = workers.LOGS = self.base

    def check(self, jobs=2, suite=workers.CHECK, **files):
        """Run test files; (exit code, [(state, title)], output)."""
        (self.base / suite).mkdir(exist_ok=True)
        for name, text in files.items():
            (self.base / suite / f'test_{name}.py').write_text(
                'from lab.runner import Skip, ends_guests\n' + text,
                encoding='utf-8')
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = workers.Check('virtio-rdma', '', suite, jobs).run()
        text = out.getvalue()
        found = re.findall(r'^((?:not )?ok) \d+ - guest/(.*?) #', text, re.M)
        self.assertIn(f'1..{len(found)}\n', text)
        return status, sorted(found, key=lambda f: f[1]), text

    def test_files_pass_side_by_side(self):
        one = 'def test_it(b): pass\n'
        for jobs in (1, 2, 5):
            status, found, out = self.check(jobs, a=one, b=one, c=one)
            self.assertEqual(status, 0, out)
            self.assertEqual(found, [('ok', 'a: it'), ('ok', 'b: it'),
                                     ('ok', 'c: it')])

    def test_failures_faults_and_skips_are_told_apart(self):
        status, found, out = self.check(
            a='def test_bad(b): assert False, "so bad"\n'
              'def test_fault(b): 1 / 0\n'
              'def test_good(b): b.notes.append("by the way")\n'
              'def test_skip(b): raise Skip("no tape")\n')
        self.assertEqual(status, 1)
        self.assertEqual(found, [('not ok', 'a: bad'), ('not ok', 'a: fault'),
                                 ('ok', 'a: good'), ('ok', 'a: skip')])
        for text in ('#   so bad\n', 'ZeroDivisionError', '#   by the way\n',
                     '# SKIP no tape\n'):
            self.assertIn(text, out)

    def test_a_worker_that_dies_fails_its_file_alone(self):
        status, found, _ = self.check(
            a='import os\n\ndef test_end(b): os._exit(0)\n',
            b='GUESTS = {"smp": 2}\n\ndef test_it(b): pass\n',
            c='GUESTS = {"smp": 3}\n\ndef test_it(b): pass\n')
        self.assertEqual(status, 1)
        self.assertEqual(found, [('not ok', 'a: the worker ended'),
                                 ('ok', 'b: it'), ('ok', 'c: it')])

    def test_what_is_left_fails_its_file_and_spares_the_next(self):
        status, found, _ = self.check(
            jobs=1, a='def test_it(b): b.left = 1\n',
            b='def test_it(b): assert not b.left\n')
        self.assertEqual(status, 1)
        self.assertEqual(found, [('ok', 'a: it'),
                                 ('not ok', 'a: leaves nothing behind'),
                                 ('ok', 'b: it')])

    def tags(self, second, **how):
        """Which pair the second of two files gets."""
        tell = 'def test_it(b): b.notes.append(f"pair {b.tag}")\n'
        _, _, out = self.check(jobs=1, a=tell, b=second + tell, **how)
        return re.findall(r'pair check-(\w+)', out)

    def test_files_share_only_the_guests_they_both_want(self):
        self.assertEqual(self.tags(''), ['a', 'a'])
        self.assertEqual(self.tags('GUESTS = {"smp": 2}\n'), ['a', 'b'])
        self.assertEqual(self.tags('SECOND = "rxe"\n'), ['a', 'b'])
        self.assertEqual(self.tags('STACK = "pvrdma"\n'), ['a', 'b'])
        self.assertEqual(self.tags('', suite='long'), ['a', 'b'])

    def test_a_file_may_have_a_stack_of_its_own(self):
        tell = 'def test_it(b): b.notes = [str(b.stacks)]\n'
        runner.Bench = self.bench_with_stacks
        _, _, out = self.check(
            jobs=1, a=tell, b='STACK = "pvrdma"\n' + tell,
            c='STACK, SECOND = "pvrdma", "rxe"\n' + tell)
        self.assertEqual(re.findall(r"#   (\(.*\))", out), [
            "('virtio-rdma', None)", "('pvrdma', None)",
            "('pvrdma', 'rxe')"])

    @staticmethod
    def bench_with_stacks(pair, *stacks):
        pair.stacks = stacks
        return pair

    def test_only_what_no_archive_has_skips_tests(self):
        """A driver that does not build is a failure."""
        for error, kind in ((Unavailable('no package'), runner.Skip),
                            (LabError('cannot build it'), LabError)):
            for prepared, pair in ((pvrdma.pvrdma, pvrdma.pair),
                                   (newer.driver, newer.pair)):
                with mock.patch.object(prepared, 'prepare',
                                       side_effect=error), \
                        self.assertRaisesRegex(kind, str(error)):
                    pair('tag')
        with mock.patch.object(source.suites, 'sources', return_value=()), \
                self.assertRaises(Unavailable):
            source.unpack_source('6.1', Path('/'), Path('/'))

    def test_ended_guests_are_not_used_again(self):
        _, _, out = self.check(
            jobs=1, a='first = []\n\n@ends_guests\n'
            'def test_one(b): first.append(b)\n'
            'def test_two(b): assert b is not first[0]\n')
        self.assertNotIn('not ok', out)

    def test_a_file_that_ends_its_guests_comes_last(self):
        tell = 'def test_it(b): b.notes.append(f"pair {b.tag}")\n'
        _, _, out = self.check(
            jobs=1, a=f'SECONDS = 90\n\n@ends_guests\n{tell}', b=tell,
            c='GUESTS = {"smp": 2}\n' + tell)
        self.assertEqual(re.findall(r'guest/(\w): it.*\n#   pair check-(\w)',
                                    out), [('b', 'b'), ('a', 'b'), ('c', 'c')])

    def test_what_is_around_the_tests_of_a_file_is_around_each(self):
        _, found, out = self.check(
            jobs=1, a='import contextlib\n\n@contextlib.contextmanager\n'
            'def wall(b):\n    b.left = 1\n    yield\n    b.left = 0\n\n'
            'AROUND = wall\n\ndef test_one(b): assert b.left\n'
            'def test_two(b): assert b.left\n',
            b='def test_it(b): assert not b.left\n')
        self.assertEqual({kind for kind, _ in found}, {'ok'}, out)

    def test_with_shared_memory_it_tells_who_has_not_used_it(self):
        runner.Pair = PaperWithGuests
        files = {
            'a': 'def test_sends(b): b.vms[0].frames += 7\n'
                 'def test_idle(b): pass\n'
                 'def test_moves(b):\n'
                 '    b.vms[0].process.pid, b.vms[0].frames = 2, 3\n'
                 'def test_skip(b): raise Skip("no tape")\n',
            'b': 'GUESTS = {"has_memory": False}\n'
                 'def test_it(b): pass\n',
            'c': 'ON_NETDEV = True\n'
                 'def test_loss(b): b.notes.append("was run")\n'}
        with mock.patch.dict(os.environ, WIRE='shm'):
            _, found, out = self.check(**files)
        self.assertEqual({kind for kind, _ in found}, {'ok'}, out)
        for line in ('a: sends #.*\n#   7 frames by shared memory',
                     'a: idle #.*\n#   0 frames by shared memory',
                     'a: moves #.*\n#   3 frames by shared memory',
                     'c: loss # SKIP .* no filter of a netdev',
                     '# by shared memory: 2 tests that passed',
                     '# 1 sent nothing by it: guest/a 1',
                     '# 1 had no adapter with it: guest/b 1'):
            self.assertRegex(out, re.compile(f'{line}$', re.M))
        with mock.patch.dict(os.environ, WIRE='stream'):
            out = self.check(**files)[2]
        self.assertNotIn('memory', out)
        self.assertIn('was run', out)

    def test_a_wire_that_is_not_there_is_refused(self):
        said = io.StringIO()
        with mock.patch.dict(os.environ, WIRE='pigeon'), \
                contextlib.redirect_stderr(said):
            self.assertEqual(main.main(['check', 'nothing']), 1)
        self.assertIn('WIRE=pigeon: there are stream, dgram, shm',
                      said.getvalue())


class Files(unittest.TestCase):
    def test_each_file_belongs_to_a_suite_and_has_tests(self):
        guest = TOP / 'tests' / 'guest'
        found = set()
        for suite in main.SUITES:
            names = set()
            for path in workers.files_of(guest / suite):
                tests = runner.Tests(path, re.compile(''))
                self.assertTrue(tests.tests, path)
                # Names of tests and of logs begin with that of the file.
                self.assertNotIn(tests.tag, names, path)
                names.add(tests.tag)
                found.add(path)
            self.assertTrue(names, suite)
        self.assertEqual(found, set(guest.rglob('test_*.py')))


if __name__ == '__main__':
    tap.main()
