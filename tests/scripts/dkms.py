#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make dkms` installs is complete, and built as dkms.conf says."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parent.parent.parent

# Stands for that of a kernel's build directory.
KERNEL = """modules clean:
\t@echo '$@ of $(M)'
"""


class Dkms(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='dkms-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        self.run_in(TOP, 'make', '-s', '-C', 'guest/linux', 'dkms',
                    f'DESTDIR={self.base}')
        self.tree, = (self.base / 'usr/src').iterdir()

    def run_in(self, where, *command):
        done = subprocess.run(command, cwd=where, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def told(self, expression, kernel='/kernel'):
        """What a line of bash says that knows what is in dkms.conf, which
        may ask for the kernel's directory."""
        return self.run_in(self.tree, 'bash', '-euc',
                           f'kernel_source_dir={kernel}; . ./dkms.conf; ' +
                           expression)

    def test_directory_has_name_and_version(self):
        self.assertEqual(
            self.told('echo "$PACKAGE_NAME-$PACKAGE_VERSION"').strip(),
            self.tree.name)
        version = (TOP / 'VERSION').read_text(encoding='utf-8').strip()
        self.assertEqual(self.tree.name, f'virtio-rdma-{version}')
        self.assertEqual((self.tree / 'VERSION').read_text().strip(), version)

    def test_module_is_the_one_that_is_built(self):
        built = re.search(r'^obj-m := (\w+)\.o$',
                          (self.tree / 'Kbuild').read_text(), re.M)[1]
        self.assertEqual(self.told('echo "$BUILT_MODULE_NAME"').strip(),
                         built)

    def test_every_object_has_its_source(self):
        objects = re.search(r'^virtio_rdma-y := ((?:.*\\\n)*.*)$',
                            (self.tree / 'Kbuild').read_text(), re.M)[1]
        names = re.findall(r'(\w+)\.o', objects)
        self.assertGreater(len(names), 5)
        for name in names:
            self.assertTrue((self.tree / f'{name}.c').is_file(), name)

    def test_headers_are_there(self):
        wanted = {name for path in self.tree.glob('*.[ch]')
                  for name in re.findall(r'^#include "(.*)"$',
                                         path.read_text(), re.M)}
        self.assertIn('vrdma.h', wanted)
        for name in wanted:
            self.assertTrue((self.tree / name).is_file(), name)
        self.assertTrue(
            (self.tree / 'include/linux/virtio_rdma.h').is_file())

    def test_kernels_differ_in_compat_h_only(self):
        """A macro that Kbuild defines and no file uses, or the other way
        round, would choose the wrong branch without a word."""
        tested = re.findall(r'^ccflags-y .*[,D](VRDMA_HAVE_\w+)\)$',
                            (self.tree / 'Kbuild').read_text(), re.M)
        self.assertGreater(len(tested), 1)
        used = {path.name: set(re.findall(r'VRDMA_HAVE_\w+',
                                          path.read_text()))
                for path in self.tree.glob('*.[ch]')}
        self.assertEqual({name: macros for name, macros in used.items()
                          if macros}, {'compat.h': set(tested)})
        asked = {path.name for path in self.tree.glob('*.[ch]')
                 if re.search(r'LINUX_VERSION_CODE|KERNEL_VERSION',
                              path.read_text())}
        self.assertLessEqual(asked, {'compat.h'})

    def test_commands_reach_the_kernel_that_they_are_for(self):
        kernel = self.base / 'kernel'
        kernel.mkdir()
        (kernel / 'Makefile').write_text(KERNEL, encoding='utf-8')
        for command, target in ('${MAKE[0]}', 'modules'), ('$CLEAN', 'clean'):
            self.assertIn(f'{target} of {self.tree}\n',
                          self.told(command, kernel))


if __name__ == '__main__':
    # What the make that runs this test has been told
    os.environ.pop('MAKEFLAGS', None)
    tap.main()
