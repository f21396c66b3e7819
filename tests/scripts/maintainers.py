#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""MAINTAINERS: each file has one area, and each pattern has a file."""
import fnmatch
import os
import subprocess
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
STATUS = ('Supported', 'Maintained', 'Odd Fixes', 'Orphan', 'Obsolete')


def matches(pattern, name):
    """As QEMU's get_maintainer.pl does: DIR/ is deep, and * crosses no /."""
    if pattern.endswith('/'):
        return name.startswith(pattern)
    return (pattern.count('/') == name.count('/') and
            fnmatch.fnmatchcase(name, pattern))


def areas_of(text):
    """{name: [(tag, value), ...]} of the sections that have tags."""
    areas, name = {}, None
    lines = text.splitlines()
    for line, after in zip(lines, lines[1:] + ['']):
        if line and after and set(after) <= set('-='):
            name = line
            areas[name] = []
        elif line[1:3] == ': ' and name:
            areas[name].append((line[0], line[3:].strip()))
    return {name: tags for name, tags in areas.items() if tags}


def tracked_files():
    """What git knows or would take; all files where there is no git."""
    try:
        out = subprocess.run(
            ['git', 'ls-files', '-co', '--exclude-standard'], cwd=TOP,
            check=True, capture_output=True, text=True).stdout
        names = out.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = []
        for path, dirs, files in os.walk(TOP):
            dirs[:] = [d for d in dirs if d not in ('.git', 'build')]
            names += [str((Path(path) / name).relative_to(TOP))
                      for name in files]
    return [name for name in names if (TOP / name).is_file()]


class Rules(unittest.TestCase):
    def test_patterns(self):
        self.assertTrue(matches('hw/rdma/', 'hw/rdma/a/b.c'))
        self.assertTrue(matches('hw/rdma/*', 'hw/rdma/b.c'))
        self.assertFalse(matches('hw/rdma/*', 'hw/rdma/a/b.c'))
        self.assertFalse(matches('*.md', 'docs/a.md'))
        self.assertTrue(matches('include/rdma/roce*.h',
                                'include/rdma/roce-state.h'))

    def test_areas(self):
        text = 'Title\n=====\n\nArea\n----\nwhat it is\nM: me\nF: a/\n'
        self.assertEqual(areas_of(text),
                         {'Area': [('M', 'me'), ('F', 'a/')]})


class Maintainers(unittest.TestCase):
    def setUp(self):
        text = (TOP / 'MAINTAINERS').read_text(encoding='utf-8')
        self.areas = areas_of(text)
        self.files = tracked_files()

    def test_each_area_has_maintainer_status_and_files(self):
        self.assertTrue(self.areas)
        for name, tags in self.areas.items():
            self.assertLessEqual({'M', 'S', 'F'}, {tag for tag, _ in tags},
                                 name)
            for tag, value in tags:
                self.assertIn(tag, 'MSF', name)
                self.assertTrue(tag != 'S' or value in STATUS, name)

    def test_each_file_is_in_one_area(self):
        for file in self.files:
            owners = [name for name, tags in self.areas.items()
                      if any(tag == 'F' and matches(value, file)
                             for tag, value in tags)]
            self.assertEqual(len(owners), 1, f'{file} is in {owners}')

    def test_each_pattern_has_a_file(self):
        for name, tags in self.areas.items():
            for tag, value in tags:
                self.assertTrue(
                    tag != 'F' or any(matches(value, file)
                                      for file in self.files),
                    f'{name}: nothing matches {value}')


if __name__ == '__main__':
    tap.main()
