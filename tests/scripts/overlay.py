#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""qemu/overlay.py on a small tree that stands for QEMU's."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parent.parent.parent

VERSION_HEADER = 'hw/rdma/virtio/version.h'

PATCH = '''Why this is needed.

Kind: needed

--- a/hw/meson.build
+++ b/hw/meson.build
@@ -1,2 +1,3 @@
 subdir('pci')
+subdir('rdma')
 subdir('rtc')
'''

# Needs a line before it that another patch has to bring
PATCH_AFTER = '''Why this is needed.

Kind: needed

--- a/hw/meson.build
+++ b/hw/meson.build
@@ -2,2 +2,3 @@
 subdir('{}')
+subdir('{}')
 subdir('rtc')
'''

NEW_FILE = '''Why this is needed.

Kind: needed

--- /dev/null
+++ b/hw/pci/new.c
@@ -0,0 +1 @@
+new
'''


class Overlay(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='overlay-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        self.qemu = self.base / 'qemu'
        self.top = self.base / 'top'
        self.out = self.base / 'out'
        self.write(self.qemu / 'VERSION', '10.0.1\n')
        self.write(self.qemu / 'hw/meson.build',
                   "subdir('pci')\nsubdir('rtc')\n")
        self.write(self.qemu / 'hw/pci/pci.c', 'pristine\n')
        self.write(self.top / 'qemu/patches/hooks.patch', PATCH)
        self.write(self.top / 'qemu/series', '10.0\n10.2\n11.1\n')
        self.write(self.top / 'VERSION', '1.2.3\n')
        self.write(self.top / 'hw/rdma/device.c', 'one\n')
        self.write(self.top / 'tests/unit/engine.c', 'not for QEMU\n')
        shutil.copy(TOP / 'qemu/overlay.py', self.top / 'qemu')

    def write(self, path, text):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')

    def run_overlay(self, *options):
        """(exit status, names of the files that were written)."""
        done = subprocess.run(
            [sys.executable, self.top / 'qemu/overlay.py', *options, self.qemu,
             self.out], text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, check=False)
        self.message = done.stderr
        return done.returncode, set(done.stdout.split())

    def text(self, name):
        return (self.out / name).read_text(encoding='utf-8')

    def test_copies_patches_and_lays_over(self):
        self.assertEqual(self.run_overlay(),
                         (0, {'hw/meson.build', 'hw/rdma/device.c',
                              VERSION_HEADER}))
        self.assertEqual(self.text('hw/pci/pci.c'), 'pristine\n')
        self.assertIn("subdir('rdma')", self.text('hw/meson.build'))
        self.assertFalse((self.out / 'tests/unit/engine.c').exists())

    def test_pages_are_laid_over_without_their_own_index_and_settings(self):
        self.write(self.qemu / 'docs/index.rst', 'of QEMU\n')
        for name in ('index.rst', 'html/conf.py', 'devel/page.rst'):
            self.write(self.top / 'docs' / name, 'ours\n')
        status, written = self.run_overlay()
        self.assertEqual(status, 0, self.message)
        self.assertEqual({name for name in written if 'docs' in name},
                         {'docs/devel/page.rst'})
        self.assertEqual(self.text('docs/index.rst'), 'of QEMU\n')

    def test_second_run_writes_nothing(self):
        self.run_overlay()
        before = {p: p.stat().st_mtime_ns for p in self.out.rglob('*')
                  if p.is_file() and p.name[0] != '.'}
        self.assertEqual(self.run_overlay(), (0, set()))
        self.assertEqual(before, {p: p.stat().st_mtime_ns for p in before})

    def test_only_the_changed_file_is_written(self):
        self.run_overlay()
        self.write(self.top / 'hw/rdma/device.c', 'two\n')
        self.assertEqual(self.run_overlay(), (0, {'hw/rdma/device.c'}))
        self.assertEqual(self.text('hw/rdma/device.c'), 'two\n')

    def test_removed_file_leaves_the_tree(self):
        self.run_overlay()
        (self.top / 'hw/rdma/device.c').unlink()
        self.assertEqual(self.run_overlay(), (0, {'hw/rdma/device.c'}))
        self.assertFalse((self.out / 'hw/rdma/device.c').exists())

    def test_removed_patch_restores_the_file(self):
        self.run_overlay()
        (self.top / 'qemu/patches/hooks.patch').unlink()
        self.assertEqual(self.run_overlay(), (0, {'hw/meson.build'}))
        self.assertNotIn('rdma', self.text('hw/meson.build'))

    def test_new_source_replaces_the_tree(self):
        self.run_overlay()
        self.write(self.qemu / 'VERSION', '10.0.2\n')
        self.write(self.qemu / 'hw/pci/pci.c', 'newer\n')
        self.assertEqual(self.run_overlay()[0], 0)
        self.assertEqual(self.text('hw/pci/pci.c'), 'newer\n')

    def test_patch_whose_condition_fails_is_left_out(self):
        self.write(self.top / 'qemu/patches/hooks.patch',
                   'Only-if: hw/meson.build ^no-such-line\n' + PATCH)
        self.assertEqual(self.run_overlay(),
                         (0, {'hw/rdma/device.c', VERSION_HEADER}))

    def test_patch_may_add_a_file(self):
        self.write(self.top / 'qemu/patches/new.patch', NEW_FILE)
        self.assertEqual(self.run_overlay()[0], 0)
        self.assertEqual(self.text('hw/pci/new.c'), 'new\n')
        (self.top / 'qemu/patches/new.patch').unlink()
        self.assertEqual(self.run_overlay(), (0, {'hw/pci/new.c'}))
        self.assertFalse((self.out / 'hw/pci/new.c').exists())

    def test_patch_that_adds_a_file_of_qemu_is_refused(self):
        self.write(self.top / 'qemu/patches/new.patch', NEW_FILE)
        self.write(self.qemu / 'hw/pci/new.c', 'of QEMU\n')
        self.assertEqual(self.run_overlay()[0], 1)
        self.assertIn('which QEMU has', self.message)

    def test_patch_for_some_series_is_left_out_for_others(self):
        path = self.top / 'qemu/patches/hooks.patch'
        for limit, fits in (('from 10.0', (True, True, True)),
                            ('from 10.2', (False, True, True)),
                            ('from 11.0', (False, False, True)),
                            ('until 10.2', (True, True, False)),
                            ('until 9.2', (False, False, False))):
            self.write(path, f'Series: {limit}\n' + PATCH)
            for version, fit in zip(('10.0.1', '10.2.2', '11.1.1'), fits):
                self.write(self.qemu / 'VERSION', f'{version}\n')
                self.assertEqual(self.run_overlay()[0], 0, self.message)
                self.assertEqual('rdma' in self.text('hw/meson.build'), fit,
                                 f'{limit} {version}')

    def test_patches_can_be_left_out_by_name_and_by_kind(self):
        after = PATCH_AFTER.format('rdma', 'two')
        # With another form for an older series
        self.write(self.top / 'qemu/patches/more.patch',
                   'Series: until 9.2\n' + after.replace('needed', 'speed'))
        self.write(self.top / 'qemu/patches/more-data.patch',
                   'Needs: hooks\n' + after.replace('needed', 'speed'))
        for words, lines in (('', ['pci', 'rdma', 'two', 'rtc']),
                             ('more', ['pci', 'rdma', 'rtc']),
                             ('speed', ['pci', 'rdma', 'rtc']),
                             ('hooks', ['pci', 'rtc']),
                             ('speed needed', ['pci', 'rtc'])):
            self.assertEqual(self.run_overlay('--leave-out', words)[0], 0,
                             self.message)
            self.assertEqual(self.text('hw/meson.build').split(),
                             [f"subdir('{name}')" for name in lines])
        self.assertEqual(self.run_overlay('--leave-out', 'no-such')[0], 1)
        self.assertIn('"no-such" is neither a patch nor a kind', self.message)

    def test_tests_of_patches_that_are_left_out_are_listed(self):
        for name, kind, limit in (
                ('one', 'fix', 'from 10.2'), ('two', 'speed', 'from 10.0'),
                ('ten', 'fix', 'until 10.2'), ('six', 'fix', 'from 11.1')):
            self.write(self.top / f'qemu/patches/{name}.patch',
                       f'Tests: {name}-\nSeries: {limit}\n' +
                       NEW_FILE.replace('needed', kind))
        for words, tests in (('', ''), ('needed', ''), ('two', 'two-'),
                             ('fix', 'one-|ten-'),
                             ('speed ten', 'ten-|two-')):
            self.assertEqual(
                self.run_overlay('--list-tests', '--series', '10.2',
                                 '--leave-out', words),
                (0, set(filter(None, [tests]))))

    def test_stock_tree_has_only_patches_for_the_build(self):
        self.assertEqual(self.run_overlay('--stock'), (0, set()))
        self.write(self.top / 'qemu/patches/hooks.patch',
                   PATCH.replace('needed', 'build'))
        self.assertEqual(self.run_overlay('--stock'), (0, {'hw/meson.build'}))

    def test_patches_apply_in_order_of_their_names(self):
        self.write(self.top / 'qemu/patches/hooks-2.patch',
                   PATCH_AFTER.format('rdma', 'two'))
        self.write(self.top / 'qemu/patches/hooks-3.patch',
                   PATCH_AFTER.format('two', 'three'))
        (self.top / 'qemu/patches/hooks.patch').rename(
            self.top / 'qemu/patches/hooks-1.patch')
        self.assertEqual(self.run_overlay()[0], 0)
        self.assertEqual(self.text('hw/meson.build').split(),
                         [f"subdir('{name}')" for name in
                          ('pci', 'rdma', 'two', 'three', 'rtc')])

    def test_other_series_is_refused_with_those_that_are_known(self):
        for version in ('9.2.4', '10.1.50', '10.10.0', '11.0.0', '11.10.0',
                        '10.0.90', '10.2.50', '11.1.91'):
            self.write(self.qemu / 'VERSION', f'{version}\n')
            self.assertEqual(self.run_overlay()[0], 1)
            self.assertIn(f'QEMU {version}', self.message)
            self.assertIn('10.0, 10.2, 11.1', self.message)
            self.assertFalse(self.out.exists())

    def test_device_gets_the_version(self):
        self.run_overlay()
        self.write(self.top / 'VERSION', '1.2.4\n')
        self.assertEqual(self.run_overlay(), (0, {VERSION_HEADER}))
        self.assertEqual(self.text(VERSION_HEADER),
                         '#define VIRTIO_RDMA_VERSION "1.2.4"\n')
        self.assertEqual(self.text('VERSION'), '10.0.1\n')

    def test_never_replaces_a_file_of_qemu(self):
        self.write(self.top / 'hw/pci/pci.c', 'ours\n')
        self.assertEqual(self.run_overlay()[0], 1)
        self.assertIn('would replace a file of QEMU', self.message)

    def test_patch_that_does_not_apply_is_named(self):
        self.write(self.qemu / 'hw/meson.build', 'something else\n')
        self.assertEqual(self.run_overlay()[0], 1)
        self.assertIn('hooks.patch does not apply', self.message)

    def test_foreign_directory_is_left_alone(self):
        self.write(self.out / 'precious', 'data\n')
        self.assertEqual(self.run_overlay()[0], 1)
        self.assertEqual(self.text('precious'), 'data\n')


if __name__ == '__main__':
    tap.main()
