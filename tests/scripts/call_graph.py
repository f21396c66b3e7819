#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/call-graph.py on a small tree with layers."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tap

SCRIPT = Path(__file__).resolve().parents[2] / 'scripts/call-graph.py'

RULES = '''
[engine]
program = "qemu"
root = "eng"
files = ["eng/**/*.[ch]"]
folders = ["low", "high", "."]
above = ["device"]

[device]
program = "qemu"
files = ["dev/*.[ch]"]
order = "dev/list"

[driver]
program = "linux"
files = ["drv/*.[ch]"]
layers = [["ring*"], ["verbs*"]]
'''

TREE = {
    'rules.toml': RULES,
    'eng/low/low.h': 'int low(int a);\n',
    'eng/low/low.c': '#include "low.h"\n'
                     'static int help(int a)\n{\n    return a;\n}\n'
                     'int low(int a)\n{\n    return help(a);\n}\n',
    'eng/high/high.h': '#include "low/low.h"\n'
                       'int high(void);\n'
                       'static inline int twice(int a)\n{\n'
                       '    return low(a) + low(a);\n}\n',
    'eng/high/high.c': '#include "high.h"\n'
                       'static int help(int a)\n{\n    return a;\n}\n'
                       'int high(void)\n{\n    return help(low(1));\n}\n',
    'eng/top.c': '#include "high/high.h"\n'
                 'int top(void)\n{\n    return high() + twice(1);\n}\n',
    'dev/list': 'x.h y.h c.h b.c a.c',
    'dev/a.c': 'int b(void);\nint a(void)\n{\n    return b();\n}\n',
    'dev/b.c': '/* calls a() */\n'
               'int b(void)\n{\n    return printf("a(%d)", 1);\n}\n',
    'drv/ring.c': 'int high(void)\n{\n    return 1;\n}\n',
    'drv/verbs.c': 'int a(void)\n{\n    return high();\n}\n',
}


class CallGraph(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='call-graph-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        for name, text in TREE.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')

    def append(self, name, text):
        path = self.base / name
        self.write(name, path.read_text(encoding='utf-8') + text)

    def run_script(self, *args):
        return subprocess.run(
            [sys.executable, SCRIPT, '--root', self.base,
             '--rules', self.base / 'rules.toml', *args],
            text=True, check=False, stdout=subprocess.PIPE)

    def broken(self, *expected):
        """--check fails, with all of these in one line of its output"""
        done = self.run_script('--check')
        self.assertEqual(done.returncode, 1)
        self.assertTrue(any(all(part in line for part in expected)
                            for line in done.stdout.splitlines()),
                        done.stdout)

    def test_good_tree_passes(self):
        done = self.run_script('--check')
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_call_upward_is_refused(self):
        self.append('eng/low/low.c',
                    'int up(void)\n{\n    return high();\n}\n')
        self.broken('eng/low/low.c:12:', 'up calls high', '(low < high)')

    def test_address_of_a_function_above_is_refused(self):
        self.append('eng/low/low.c',
                    'int high(void);\nint (*up)(void) = high;\n')
        self.broken('eng/low/low.c:11:', 'initializer names high')

    def test_include_upward_is_refused(self):
        self.append('eng/low/low.c', '#include "high/high.h"\n')
        self.broken('eng/low/low.c:10:', 'includes high/high.h',
                    '(low < high)')

    def test_prototype_in_a_lower_header_is_refused(self):
        self.append('eng/low/low.h', 'int high(void);\n')
        self.broken('eng/low/low.h:2:', 'declares high, which high/high.c')

    def test_second_header_of_a_folder_is_refused(self):
        self.write('eng/low/other.h', 'int low(int a);\n')
        self.append('eng/high/high.c', '#include "low/other.h"\n')
        self.broken('eng/high/high.c', 'low/other.h', 'one is allowed')

    def test_unknown_folder_is_refused(self):
        self.write('eng/new/new.c', 'int new(void)\n{\n    return 1;\n}\n')
        self.broken('eng/new/new.c', 'in no folder')

    def test_private_header_of_another_component_is_refused(self):
        self.append('dev/a.c', '#include "eng/low/low.h"\n')
        self.broken('dev/a.c:6:', 'private to the engine')

    def test_call_of_a_component_above_is_refused(self):
        self.append('eng/top.c', 'int up(void)\n{\n    return b();\n}\n')
        self.broken('eng/top.c:8:', 'calls b of the device')

    def test_files_that_call_each_other_are_refused(self):
        self.append('dev/b.c', 'int c(void)\n{\n    return a();\n}\n')
        self.broken('2 files', 'a.c b.c')

    def test_cycle_through_an_inline_function_is_refused(self):
        self.write('dev/c.h', 'static inline int c(void)\n{\n'
                              '    return a();\n}\n')
        self.append('dev/b.c', '#include "c.h"\n'
                               'int d(void)\n{\n    return c();\n}\n')
        self.broken('2 files', 'a.c b.c')

    def test_layer_of_a_flat_directory_is_refused(self):
        self.append('drv/ring.c', 'int up(void)\n{\n    return a();\n}\n')
        self.broken('drv/ring.c:7:', 'up calls a of verbs.c')

    def test_call_of_a_file_that_is_listed_later_is_refused(self):
        self.write('dev/list', 'x.h y.h c.h a.c b.c')
        self.broken('dev/a.c:4:', 'a calls b of b.c',
                    'dev/list lists after it')

    def test_file_that_is_not_listed_is_refused(self):
        self.write('dev/d.c', 'int d(void)\n{\n    return 1;\n}\n')
        self.broken('dev/d.c:1:', 'not listed in dev/list')

    def test_cycle_of_includes_is_refused(self):
        self.write('dev/x.h', '#include "y.h"\n')
        self.write('dev/y.h', '#include "x.h"\n')
        self.broken('includes in a circle: x.h y.h')

    def test_programs_do_not_see_each_other(self):
        done = self.run_script('--calls', 'verbs.c', '.c')
        self.assertIn('a calls high (drv/ring.c)', done.stdout)
        self.assertNotIn('eng', done.stdout)

    def test_static_functions_are_found_in_their_own_file(self):
        done = self.run_script('engine')
        self.assertIn('high/high.c\n    calls low/low.c (1)\n', done.stdout)
        self.assertIn('no files, no functions', done.stdout)


if __name__ == '__main__':
    tap.main()
