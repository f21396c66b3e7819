#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/mutate.py: what it makes of sources, its list of mutants that change
nothing, and a sample of the engine's mutants, which must die."""
import importlib.util
import json
import os
import shutil
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]
SCRIPT = TOP / 'scripts/mutate.py'
spec = importlib.util.spec_from_file_location('mutate_script', SCRIPT)
mutate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(mutate)
BUILD = Path(os.environ.get('B', TOP / 'build'))
MESON = [sys.executable, BUILD / 'tools/meson.py']

SOURCE = '''\
#define LIMIT (1 + 1)
static const int table[2] = {
    [0] = 7,
};

/* a == b */
static int f(int a, bool b)
{
    int c[4];

    if (!b || a < 8) {
        g("a == b", a);
        return false;
    }
    c[0] = a & LIMIT;
    return a;
}
'''

# A file of the engine, a line of it and what becomes of it, what notices
SAMPLE = (
    ('transport/credit.c', 'return ROCE_AETH_ACK | code;',
     'return ROCE_AETH_ACK & code;', 'roce-credit'),
    ('transport/req-rx.c', 'if (pkt->info->flags & ROCE_OP_AETH) {',
     'if (!(pkt->info->flags & ROCE_OP_AETH)) {', 'roce-credit'),
    ('queue/rings.c', 'g_free(sges);', ';', 'roce-alloc'),
    ('mem/mem-wr.c', '(!(access & (RDMA_ACCESS_REMOTE_WRITE |',
     '((access & (RDMA_ACCESS_REMOTE_WRITE |', 'roce-errors'),
    ('core/qp-check.c', 'VALUE_OK(DEST_QPN, dest_qp_num, 0, RDMA_24BIT_MASK) '
     '&&', 'VALUE_OK(DEST_QPN, dest_qp_num, 1, RDMA_24BIT_MASK) &&',
     'roce-states'),
    # These programs do not measure work
    ('queue/complete.c', 'e->work += RDMA_WORK_WR;', ';', 'survives'),
)


class Sources(unittest.TestCase):
    def made_of(self, text):
        base = Path(tempfile.mkdtemp(prefix='mutate-test-'))
        self.addCleanup(shutil.rmtree, base)
        (base / 'a.c').write_text(text, encoding='utf-8')
        return list(mutate.mutants(base, ['*.c']))

    def test_mutants_of_a_file(self):
        self.assertEqual(
            [(m.number, m.function, m.new.strip())
             for m in self.made_of(SOURCE)],
            [(3, 'table', '[1] = 7,'), (3, 'table', '[0] = 8,'),
             (11, 'f', 'if (b || a < 8) {'), (11, 'f', 'if (!b && a < 8) {'),
             (11, 'f', 'if (!b || a <= 8) {'),
             (11, 'f', 'if (!b || a < 9) {'),
             (11, 'f', 'if (!(!b || a < 8)) {'),
             (12, 'f', ';'), (13, 'f', 'return true;'), (13, 'f', ';'),
             (15, 'f', 'c[0] = a | LIMIT;'), (15, 'f', 'c[1] = a & LIMIT;'),
             (15, 'f', ';')])

    def test_the_list_goes_by_text(self):
        known = [{'file': '*.c', 'old': 'c[0] = a & LIMIT;', 'new': 'c[0]*',
                  'reason': 'why'}]
        said = [mutate.equivalent(m, known) for m in self.made_of(SOURCE)]
        self.assertEqual(said[-3:], ['why', None, None])
        self.assertEqual(set(said[:-3]), {None})

    def test_what_is_listed_is_there(self):
        known = tomllib.loads(mutate.EQUIVALENT.read_text())['mutant']
        every = [m for patterns in mutate.PARTS.values()
                 for m in mutate.mutants(TOP, patterns)]
        for entry in known:
            with self.subTest(entry):
                self.assertTrue(any(mutate.equivalent(m, [entry])
                                    for m in every))
                self.assertGreater(len(entry['reason']), 10)


class Baseline(unittest.TestCase):
    def device(self, program):
        build = Path(tempfile.mkdtemp(prefix='mutate-test-'))
        self.addCleanup(shutil.rmtree, build)
        info = build / 'qemu/meson-info/intro-tests.json'
        info.parent.mkdir(parents=True)
        info.write_text(json.dumps([{
            'name': 'qtest/a-test', 'cmd': [program],
            'env': {}}]), encoding='utf-8')
        with mock.patch.object(mutate.Device, 'command'), \
                mock.patch.object(mutate.Device, 'good', set()):
            return mutate.Device(build / 'work', build, ['a-test'])

    def test_a_device_test_that_fails_anyway_kills_nothing(self):
        with self.assertRaisesRegex(SystemExit, 'without any mutation'):
            self.device('false')
        self.assertEqual(len(self.device('true').tests), 1)


class Sample(unittest.TestCase):
    def test_mutants_of_the_engine_die(self):
        work = Path(tempfile.mkdtemp(prefix='mutate-test-'))
        self.addCleanup(shutil.rmtree, work)
        engine = mutate.Engine(work, MESON, only={s[3] for s in SAMPLE})
        every = list(mutate.mutants(TOP, mutate.PARTS['engine']))
        for file, old, new, killer in SAMPLE:
            with self.subTest(new):
                fitting = [m for m in every if m.file.endswith(file) and
                           m.old.strip() == old and m.new.strip() == new]
                self.assertTrue(fitting)
                self.assertEqual(engine.judge(fitting[0]), killer)


if __name__ == '__main__':
    tap.main()
