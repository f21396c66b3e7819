#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
The table of tests that cannot pass on a device of the host hides no other
failure, and no line of it outlives its reason.
"""
import re
import sys
import unittest
from pathlib import Path

import tap

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / 'tests' / 'guest'), str(TOP / 'tools' / 'lab')]

from guestkit.paths import LabError    # noqa: E402
from lab import cannot    # noqa: E402

TABLE = """
[kinds]
rxe = "faults of rxe"
lab = "too slow"
[[cannot]]
kind = "rxe"
on = ["rxe"]
paths = ['/mw/(ends|zero)']
reason = "no bounds"
[[cannot]]
kind = "rxe"
sometimes = true
paths = ['/rc/late']
reason = "a race"
[[cannot]]
kind = "lab"
link = "stream"
paths = ['/loss/killed']
reason = "two machines"
[[cannot]]
kind = "lab"
link = ""
paths = ['/hotplug/memory']
reason = "one machine"
[[cannot]]
kind = "lab"
run = false
paths = ['/life/long']
reason = "hours"
"""


class Table(unittest.TestCase):
    def setUp(self):
        self.table = cannot.Cannot('rxe', TABLE)

    def test_what_fails_is_called_by_its_reason(self):
        self.assertEqual(
            self.table.judge('not ok 3 - prog: x86/mw/ends: killed'),
            'ok 0 - prog: x86/mw/ends # SKIP rxe: no bounds')
        self.assertEqual(self.table.counts, {'rxe': 1, 'lab': 0})

    def test_what_passes_fails(self):
        line = self.table.judge('ok 3 - prog: x86/mw/ends')
        self.assertTrue(line.startswith('not ok'), line)

    def test_what_sometimes_passes_may(self):
        line = 'ok 3 - prog: x86/rc/late'
        self.assertEqual(self.table.judge(line), line)

    def test_other_lines_stay(self):
        for line in ('not ok 3 - prog: x86/mw/ends-late: killed',
                     'not ok 3 - prog: x86/rc/send', 'ok 3 - x', '# /mw/ends',
                     'ok 3 - prog: x86/mw/ends # SKIP no device'):
            self.assertEqual(self.table.judge(line), line)

    def test_what_matches_no_test_fails(self):
        for path in ('mw/zero', 'loss/killed', 'hotplug/memory'):
            self.table.judge(f'not ok 3 - prog: x86/{path}: killed')
        lines = self.table.left_out() + self.table.unused()
        self.assertEqual([line.split(' ')[0] for line in lines],
                         ['ok', 'not'])
        self.assertIn('/rc/late', lines[1])

    def test_what_is_not_run_is_told(self):
        self.assertNotIn('long', self.table.regex_tried())
        self.assertIn('long', self.table.regex())

    def test_what_fails_is_tried_on_one_link(self):
        tried = re.compile(self.table.regex_tried())
        self.assertTrue(tried.search('/x86/hub/mw/ends'))
        self.assertFalse(tried.search('/x86/stream/mw/ends'))
        self.assertTrue(tried.search('/x86/stream/loss/killed'))
        self.assertFalse(tried.search('/x86/hub/loss/killed'))
        self.assertTrue(tried.search('/x86/hotplug/memory'))

    def test_other_stacks_have_their_own_lines(self):
        line = 'not ok 3 - prog: x86/mw/ends: killed'
        self.assertEqual(cannot.Cannot('siw', TABLE).judge(line), line)
        self.assertEqual(cannot.Cannot(None, TABLE).entries, [])

    def test_a_kind_that_is_not_explained_is_refused(self):
        with self.assertRaisesRegex(LabError, 'no such kind'):
            cannot.Cannot('rxe', TABLE.replace('kind = "lab"', 'kind = "?"'))

    def test_the_table_there_is_can_be_read(self):
        self.assertTrue(cannot.Cannot('rxe').entries)


if __name__ == '__main__':
    tap.main()
