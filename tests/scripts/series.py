#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The series of QEMU that the tree lies over: the patches have the form that
qemu/overlay.py wants, and other series are refused."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / 'qemu'))

import overlay    # noqa: E402 pylint: disable=wrong-import-position

PATCHES = TOP / 'qemu/patches'
PAGE = TOP / 'docs/devel/virtio-rdma-series.rst'
SERIES = (TOP / 'qemu/series').read_text(encoding='utf-8').split()

HUNK = re.compile(r'^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@$')


def patches():
    return sorted(PATCHES.glob('*.patch'))


class Hunk:
    """One hunk: what it says of itself, and its lines."""
    def __init__(self, names, header):
        self.old_name, self.new_name = names
        self.where = header[0]
        self.old_len, self.new_len = int(header[2] or 1), int(header[4] or 1)
        self.old, self.new = [], []

    def is_full(self):
        return (len(self.old) >= self.old_len and
                len(self.new) >= self.new_len)

    def take(self, line):
        if line[:1] != '+':
            self.old.append(line[1:])
        if line[:1] != '-':
            self.new.append(line[1:])


def hunks(path):
    """Those of a patch, in order."""
    names, found = ['', ''], []
    for line in path.read_text(encoding='utf-8').splitlines():
        if found and not found[-1].is_full():
            found[-1].take(line)
        elif line.startswith('--- '):
            names[0] = line[4:]
        elif line.startswith('+++ '):
            names[1] = line[4:]
        elif HUNK.match(line):
            found.append(Hunk(names, HUNK.match(line)))
    return found


class Patches(unittest.TestCase):
    def test_series_are_in_order(self):
        self.assertEqual(SERIES, sorted(SERIES, key=overlay.series_number))
        self.assertIn('10.0', SERIES)

    def test_nothing_else_is_among_the_patches(self):
        for path in PATCHES.iterdir():
            self.assertEqual(path.suffix, '.patch', path)

    def test_begins_with_what_it_is_for(self):
        for path in patches():
            head = path.read_text(encoding='utf-8').split('\n--- ')[0]
            self.assertRegex(head, r'^[A-Z][^@]*\.\n', path)
            for line in head.splitlines():
                self.assertLessEqual(len(line), 80, path)

    def test_head_has_known_words(self):
        names = {path.stem for path in patches()}
        for path in patches():
            head = overlay.read_head(path)
            self.assertIn(head['Kind'], overlay.KINDS, path)
            self.assertLessEqual(set(head.get('Needs', '').split()), names,
                                 path)
            found = re.fullmatch(r'(from|until) (\S+)',
                                 head.get('Series', f'from {SERIES[0]}'))
            self.assertIn(found[2], SERIES, path)
            if 'Only-if' in head:
                re.compile(head['Only-if'].partition(' ')[2])

    def test_few_patches_are_needed(self):
        needed = [path.stem for path in patches()
                  if overlay.read_head(path)['Kind'] == 'needed' and
                  overlay.is_for_series(overlay.read_head(path), SERIES[-1])]
        self.assertLessEqual(len(needed), 6, needed)

    def test_hunks_are_as_long_as_they_say(self):
        for path in patches():
            self.assertTrue(hunks(path), path)
            for hunk in hunks(path):
                where = f'{path}: {hunk.where}'
                self.assertEqual(len(hunk.old), hunk.old_len, where)
                self.assertEqual(len(hunk.new), hunk.new_len, where)
                self.assertNotEqual(hunk.old, hunk.new, where)

    def test_names_one_file_before_and_after(self):
        for path in patches():
            for hunk in hunks(path):
                self.assertTrue(hunk.new_name.startswith('b/'), path)
                self.assertIn(hunk.old_name,
                              ('/dev/null', 'a' + hunk.new_name[1:]), path)

    def test_changes_no_file_of_this_tree(self):
        for path in patches():
            for hunk in hunks(path):
                name = hunk.new_name[2:]
                # At the top both trees have files of some names.
                self.assertTrue('/' not in name or not (TOP / name).exists(),
                                f'{path}: {name}')


    def test_page_has_each(self):
        rows = re.findall(r'^   \* - ``(.+)``\n     - (\w+)\n     - (.+)\n',
                          PAGE.read_text(encoding='utf-8'), re.M)
        heads = {path.stem: overlay.read_head(path) for path in patches()}
        self.assertEqual(rows, [(name, head['Kind'],
                                 head.get('Series', 'all'))
                                for name, head in sorted(heads.items())])


class Refusal(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='series-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        self.top = self.base / 'top'
        (self.top / 'qemu').mkdir(parents=True)
        for name in ('configure', 'Makefile', 'VERSION', 'qemu/series'):
            shutil.copy(TOP / name, self.top / name)

    def qemu(self, version):
        """A directory that passes for a source tree."""
        tree = self.base / f'qemu-{version}'
        (tree / 'hw/virtio').mkdir(parents=True)
        (tree / 'hw/virtio/virtio.c').touch()
        (tree / 'VERSION').write_text(f'{version}\n', encoding='utf-8')
        return tree

    def run_in_top(self, *command):
        """(exit status, all that it said)"""
        # The make that runs this has its own idea of variables.
        env = {name: value for name, value in os.environ.items()
               if name in ('PATH', 'HOME', 'LANG')}
        done = subprocess.run(command, cwd=self.top, text=True, check=False,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=env)
        return done.returncode, done.stdout

    def must_refuse(self, *command):
        code, said = self.run_in_top(*command)
        self.assertNotEqual(code, 0, said)
        for series in SERIES:
            self.assertIn(series, said)
        self.assertFalse((self.top / 'config.mk').exists())
        return said

    def test_configure_refuses_the_source_of_another_series(self):
        for version in ('9.2.4', '10.1.3', '11.0.50', '11.1.91'):
            said = self.must_refuse('./configure',
                                    f'--qemu-src={self.qemu(version)}')
            self.assertIn(f'QEMU {version}', said)

    def test_configure_refuses_another_series(self):
        self.must_refuse('./configure', '--qemu-series=11.0')

    def test_configure_refuses_a_source_that_is_not_of_the_series(self):
        code, said = self.run_in_top(
            './configure', '--qemu-series=10.2',
            f'--qemu-src={self.qemu("10.0.3")}')
        self.assertNotEqual(code, 0)
        self.assertIn('not of the series 10.2', said)

    def test_make_refuses_another_series(self):
        self.must_refuse('make', 'help', 'QEMU_SERIES=11.0')
        self.must_refuse('make', 'help', f'QEMU_SRC={self.qemu("9.2.4")}')

    def test_make_refuses_a_source_that_is_not_of_the_series(self):
        code, said = self.run_in_top('make', 'help', 'QEMU_SERIES=10.2',
                                     f'QEMU_SRC={self.qemu("10.0.3")}')
        self.assertNotEqual(code, 0)
        self.assertIn('set one of them only', said)

    def test_make_refuses_a_directory_without_qemu(self):
        code, said = self.run_in_top('make', 'help', f'QEMU_SRC={self.top}/x')
        self.assertNotEqual(code, 0)
        self.assertIn('expected a source tree of QEMU', said)

    def test_configure_takes_the_series_of_a_source(self):
        for series in SERIES:
            code, said = self.run_in_top(
                './configure', f'--qemu-src={self.qemu(series + ".7")}')
            self.assertEqual(code, 0, said)
            code, said = self.run_in_top('make', '-s', '--eval',
                                         'tell: ; @echo $(QEMU_SERIES)',
                                         'tell')
            self.assertEqual((code, said), (0, f'{series}\n'))

    def test_each_series_is_built_in_a_directory_of_its_own(self):
        told = [self.run_in_top('make', '-s', f'QEMU_SERIES={series}',
                                '--eval', 'tell: ; @echo $(QEMU)', 'tell')
                for series in SERIES]
        self.assertEqual({code for code, _ in told}, {0})
        self.assertEqual(len({said for _, said in told}), len(SERIES))


if __name__ == '__main__':
    tap.main()
