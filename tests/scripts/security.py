#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""SECURITY.md: each test that it names is there."""
import functools
import re
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / 'SECURITY.md'
# Where tests of a kind are
FOLDERS = {'': 'tests/qtest', 'net': 'tests/qtest',
           'migration': 'tests/qtest', 'verbs': 'tests/qtest',
           'pvrdma': 'tests/qtest', 'net-roce': 'tests/qtest',
           'unit': 'tests/unit'}
FUNCTION = re.compile(r'`(\w+)\(\)`')
# Where functions that the page names are; virtqueue_pop() is QEMU's
SOURCES = ('hw', 'backends', 'include', 'guest', 'tools')
NAME = re.compile(
    r'`(?:(net|migration|pvrdma|net-roce|verbs|unit|guest|lab):)?([\w./*-]+)`')
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


@functools.cache
def sources(folder):
    return [path.read_text(encoding='utf-8')
            for path in sorted((TOP / folder).rglob('*.c'))]


def strings(text):
    """String literals, those that are written in parts put together."""
    return set(STRING.findall(re.sub(r'"\s*\n\s*"', '', text)))


@functools.cache
def tables(folder):
    """Names of the tests in tables, as the functions that register tables
    make them."""
    names, texts = [], sources(folder)
    prefixes = {table: prefix for prefix, table in re.findall(
        r'(?:qrdma_add_tests|test_add_layouts)\("([^"]*)",\s*(\w+)\)',
        '\n'.join(texts))}
    for text in texts:
        for table, rows in re.findall(
                r'^(?:static )?const QRdmaTest (\w+)\[\] = \{\n(.*?)^\};',
                text, re.MULTILINE | re.DOTALL):
            for name in re.findall(r'^    \{ "([^"]*)"', rows, re.MULTILINE):
                names.append(prefixes[table] + name)
    return names


def registered(name, folder):
    """Whether a test is registered by that name, by a format for it or, for
    a name that ends in *, with that beginning."""
    group, _, last = name.rpartition('/')
    if any(f'/{name[:-1]}' in one if last.endswith('*') else
           one.endswith(f'/{name}') for one in tables(folder)):
        return True
    for text in sources(folder):
        found = strings(text)
        if last.endswith('*'):
            start = f'{group}/{last[:-1]}'
            if any(start in one or f'{group}/%s' in one for one in found):
                return True
        elif any(one.endswith(name) for one in found):
            return True
        elif last in found and any(f'{group}/%s' in one for one in found):
            return True
    return False


def rows():
    """The cells of the tables that have a column of tests."""
    column = None
    for line in PAGE.read_text(encoding='utf-8').splitlines():
        cells = [cell.strip() for cell in line.split('|')[1:-1]]
        if 'tests' in cells:
            column = cells.index('tests')
        elif not cells:
            column = None
        elif column is not None and not set(line) <= set('|-'):
            yield cells[0], cells[column]


class Security(unittest.TestCase):
    def test_each_attack_has_a_test(self):
        for attack, tests in rows():
            self.assertTrue(NAME.search(tests), f'{attack}: no test')

    def test_each_test_is_there(self):
        count = 0
        for attack, tests in rows():
            for kind, name in NAME.findall(tests):
                count += 1
                if kind == 'guest':
                    there = (TOP / 'tests/guest' / name).is_file()
                elif kind == 'lab':
                    there = any(f'def test_{name.replace("-", "_")}(self):'
                                in path.read_text(encoding='utf-8') for path in
                                (TOP / 'tests/scripts').glob('vrdma_lab*.py'))
                else:
                    there = registered(name, FOLDERS[kind])
                self.assertTrue(there, f'{attack}: there is no {name}')
        self.assertGreater(count, 100)

    def test_each_function_is_there(self):
        text = PAGE.read_text(encoding='utf-8')
        known = {'virtqueue_pop'}
        for folder in SOURCES:
            for path in (TOP / folder).rglob('*'):
                if path.suffix in ('.c', '.h', '.py', '.sh'):
                    known.update(re.findall(
                        r'\b(\w+)\(', path.read_text(encoding='utf-8')))
        for name in FUNCTION.findall(text):
            self.assertTrue(name in known, f'there is no {name}()')


if __name__ == '__main__':
    tap.main()
