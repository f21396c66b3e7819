#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""cc-coverage and coverage.sh count the lines of each file of the project. The
compiler and gcovr here are scripts that only keep their arguments."""
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
# Files of QEMU beside those of the project
FOREIGN = ('hw/virtio/virtio-net-pci.c', 'hw/virtio/vhost-user-fs.c',
           'hw/net/virtio-net.c', 'backends/rng.c')


def sources():
    """The C files that the overlay adds to QEMU itself."""
    return [path.relative_to(TOP).as_posix() for folder in ('backends', 'hw')
            for path in sorted((TOP / folder).rglob('*.c'))]


class Coverage(unittest.TestCase):
    def test_files_of_the_project_have_counters(self):
        self.assertIn('hw/virtio/vhost-user-server/ring.c', sources())
        for names, counted in (sources(), True), (FOREIGN, False):
            for name in names:
                words = subprocess.run(
                    [TOP / 'scripts/cc-coverage', 'echo', '-c',
                     f'../qemu-src/{name}'], text=True, check=True,
                    stdout=subprocess.PIPE).stdout.split()
                self.assertEqual('--coverage' in words, counted, name)

    def test_files_of_the_project_are_in_one_part_of_the_report(self):
        with tempfile.TemporaryDirectory(prefix='coverage-test-') as base:
            gcovr = Path(base, 'gcovr')
            gcovr.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n',
                             encoding='ascii')
            gcovr.chmod(0o755)
            shown = subprocess.run(
                [TOP / 'scripts/coverage.sh', f'{base}/engine',
                 f'{base}/qemu'], text=True, check=True, cwd=TOP,
                stdout=subprocess.PIPE, env={
                    **os.environ, 'PATH': f'{base}:{os.environ["PATH"]}'}
            ).stdout
            parts = [re.findall(r'^--(filter|exclude)\n(.*)', text, re.M)
                     for text in shown.split('\n== ')[1:]]
            # The engine's build has paths of the project itself.
            root = {number: '' if number == 0 else f'{base}/qemu-src/'
                    for number in range(len(parts))}
            for names, count in (sources(), 1), (FOREIGN, 0):
                for name in names:
                    found = [number for number, rules in enumerate(parts)
                             if self.is_in(root[number] + name, rules)]
                    self.assertEqual(len(found), count, (name, found))

    @staticmethod
    def is_in(path, rules):
        """Whether gcovr reports a file; it looks for the expressions at the
        beginning of paths."""
        return all(any(re.match(regex, path) for kind, regex in rules
                       if kind == wanted) == expected
                   for wanted, expected in (('filter', True),
                                            ('exclude', False)))


if __name__ == '__main__':
    tap.main()
