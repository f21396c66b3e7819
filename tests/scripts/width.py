#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/check-width.py: which lines may be wide, and which may not."""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import tap

SCRIPT = Path(__file__).resolve().parents[2] / 'scripts/check-width.py'


class Width(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='width-test-'))
        self.addCleanup(shutil.rmtree, self.base)

    def found(self, name, *lines):
        """The numbers of the lines that are too long"""
        path = self.base / name
        path.write_text('\n'.join(lines) + '\n', encoding='utf-8')
        done = subprocess.run([sys.executable, SCRIPT, path], text=True,
                              check=False, stdout=subprocess.PIPE)
        numbers = [int(line.removeprefix(f'{path}:').split(':')[0])
                   for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 1 if numbers else 0)
        return numbers

    def test_prose_has_100_columns(self):
        for name in ('a.md', 'a.rst'):
            self.assertEqual(self.found(name, 'é ' * 50, 'é ' * 50 + 'é'),
                             [2])

    def test_scripts_have_80(self):
        for name in ('a.sh', 'Makefile', 'meson.build', 'a.toml'):
            self.assertEqual(self.found(name, 'a ' * 40, 'a ' * 40 + 'a'),
                             [2])

    def test_rows_and_code_of_markdown_are_free(self):
        wide = 'a ' * 60
        self.assertEqual(self.found('a.md', f'| {wide} |', f'    {wide}',
                                    '```', wide, '```', wide), [6])

    def test_descriptions_of_qapi_have_70(self):
        wide = 'a ' * 35
        self.assertEqual(self.found(
            'a.json', '##', f'# {wide}', '#', '# .. qmp-example::', '#',
            f'#     {wide}', '#', f'#     {wide}', f'# {wide}', '##',
            f'  {wide}'), [2, 9])

    def test_only_what_qemu_takes_for_one_is_an_example(self):
        wide = 'a ' * 35
        self.assertEqual(self.found(
            'a.json', '##', '# .. note::', '#', f'#     {wide}', '#',
            '# ::', '#', f'#     {wide}', f'#   {wide}', '##', '##',
            f'# {"a" * 70}', f'#  https://{"a" * 70}', f'# {wide}::', '##'),
                         [4, 9, 12, 14])

    def test_sentences_of_qapi_have_two_spaces_between(self):
        self.assertEqual(self.found(
            'a.json', '##', '# One. Two', '# One.  Two', '# Why? (So)',
            '# e.g. This', '# 1. First', '# ::', '#', '#     One. Two',
            '##'), [2, 4])

    def test_links_are_free(self):
        link = 'https://' + 'a' * 120
        for name in ('a.md', 'a.rst', 'a.sh'):
            self.assertEqual(self.found(name, link, f'# {link}', f'- {link}'),
                             [])


if __name__ == '__main__':
    tap.main()
