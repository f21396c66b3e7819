#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The runner of guest tests loses no failure, shares guests only where it may,
and says of which file a failure is. The guests here are made of paper.
"""
import contextlib
import io
import re
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import tap

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'guest'))

from lab import runner, workers    # noqa: E402


class Paper:
    """A pair, and the bench on it. What is left in it stays there."""

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


def bench(pair, *_):
    return pair


class Workers(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='workers-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        runner.Pair, runner.Bench = Paper, bench
        workers.GUEST_TESTS = workers.LOGS = self.base

    def check(self, jobs=2, suite='', **files):
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
        self.assertEqual(self.tags('', suite='long'), ['a', 'b'])

    def test_ended_guests_are_not_used_again(self):
        _, _, out = self.check(
            jobs=1, a='first = []\n\n@ends_guests\n'
            'def test_one(b): first.append(b)\n'
            'def test_two(b): assert b is not first[0]\n')
        self.assertNotIn('not ok', out)


if __name__ == '__main__':
    tap.main()
