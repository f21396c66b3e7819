#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the documentation names is there: files, functions, the tree, ..."""
import fnmatch
import hashlib
import re
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
DEVEL = TOP / 'docs/devel'
FEATURES = TOP / 'docs/system/devices/virtio-rdma-features.rst'
SOURCES = ('backends', 'docs', 'guest', 'hw', 'include', 'qemu', 'scripts',
           'tests', 'tools')
# File names of these kinds, perhaps with the front left out or with a word in
# capitals that stands for any
FILE = re.compile(r'``([\w./*…-]+\.(?:[chs]|sh|py|rst|patch|stream))``')
LINK = re.compile(r'\]\(([^)#:]+)(?:#[^)]*)?\)')
FUNCTION = re.compile(r'``((?:roce|rdma_roce|virtio_rdma|vrdma)_\w+)\(\)')
EVENT = re.compile(r'``((?:virtio_rdma|rdma_roce|rdma_backend)_\w+)')


def all_files():
    return [path.relative_to(TOP).as_posix() for part in SOURCES
            for path in (TOP / part).rglob('*') if path.is_file()]


def stems(folder):
    return {path.stem for path in (TOP / folder).glob('*.c')}


def picture_of(text, start):
    """Words of the tree's picture from the line @start to the next entry."""
    lines = text[text.index(start):].splitlines()[1:]
    words = []
    for line in lines:
        if not line.startswith('     '):
            break
        words.append(line.split())
    return words


class Docs(unittest.TestCase):
    def test_each_feature_names_its_tests(self):
        text, missing = FEATURES.read_text(encoding='utf-8').split(
            'What does not work\n---')
        tables = text.split('.. list-table::')[1:]
        count = 0
        for table in tables:
            for row in table.split('\n   * - ')[2:]:
                feature, *tests = row.split('\n     - ')
                count += 1
                self.assertEqual(len(tests), 1, feature)
                self.assertRegex(tests[0], r'``(make |[\w./*-]+\.(c|py)``)',
                                 feature)
        self.assertGreater(count, 50)
        self.assertIn('\n   * - ', missing)

    def test_files_that_pages_name_exist(self):
        files = all_files()
        for page in (*sorted(DEVEL.glob('*.rst')), FEATURES):
            for name in FILE.findall(page.read_text(encoding='utf-8')):
                pattern = re.sub('^[…-]+|…|[A-Z]{2,}', '*', name)
                self.assertTrue(
                    any(fnmatch.fnmatchcase('/' + file, '*/' + pattern)
                        for file in files), f'{page.name}: no {name}')

    def test_functions_that_internals_name_exist(self):
        text = ''.join((TOP / file).read_text(encoding='utf-8')
                       for file in all_files()
                       if file.endswith(('.c', '.h')))
        words = set(re.findall(r'\w+', text))
        for page in sorted(DEVEL.glob('*.rst')):
            for name in FUNCTION.findall(page.read_text(encoding='utf-8')):
                self.assertTrue(name in words, f'{page.name}: no {name}()')

    def test_diagrams_are_those_of_their_sources(self):
        sources = [*(TOP / 'docs').rglob('*.dot')]
        self.assertTrue(sources)
        for source in sources:
            digest = hashlib.sha256(source.read_bytes()).hexdigest()
            picture = source.with_suffix('.svg').read_text(encoding='utf-8')
            self.assertIn(digest, picture,
                          f'{source.name} has changed: run "make docs"')

    def test_files_and_functions_that_diagrams_name_exist(self):
        files = all_files()
        folders = {file.rpartition('/')[0] for file in files}
        words = {word for file in files if file.endswith(('.c', '.h'))
                 for word in re.findall(r'\w+', (TOP / file).read_text(
                     encoding='utf-8'))}
        for source in (TOP / 'docs').rglob('*.dot'):
            text = source.read_text(encoding='utf-8').replace('\\n', ' ')
            for name in re.findall(r'(\w+)\(\)', text):
                self.assertIn(name, words, source.name)
            for name in re.findall(r'\b[\w/-]+\.[ch]\b', text):
                self.assertTrue(any(f'/{file}'.endswith(f'/{name}')
                                    for file in files),
                                f'{source.name}: no {name}')
            for name in re.findall(r'\b(?:hw|backends|guest)/[\w/-]+\b',
                                   text):
                self.assertIn(name, folders, source.name)

    def test_links_of_markdown_lead_to_files(self):
        for page in TOP.glob('*.md'):
            for name in LINK.findall(page.read_text(encoding='utf-8')):
                self.assertTrue((TOP / name).exists(),
                                f'{page.name}: no {name}')

    def test_trace_events_that_pages_name_exist(self):
        events = ''.join(
            (TOP / part / 'trace-events').read_text(encoding='utf-8')
            for part in ('hw/rdma/hca', 'hw/rdma/pvrdma', 'hw/rdma/virtio',
                         'hw/rdma/virtio-net-roce', 'backends/rdma'))
        names = set(re.findall(r'^(\w+)\(', events, re.M))
        for name in EVENT.findall(
                (DEVEL / 'virtio-rdma-debug.rst').read_text(encoding='utf-8')):
            self.assertTrue(
                name in names or name + '_' in ' '.join(names),
                f'no trace event {name}')

    def test_tables_keep_text_out_of_the_gaps_between_columns(self):
        for page in sorted((TOP / 'docs').rglob('*.rst')):
            gaps = None     # of the current table
            for number, line in enumerate(
                    page.read_text(encoding='utf-8').splitlines(), 1):
                text = line.lstrip()
                if re.fullmatch('==+( +==+)+', text):
                    gaps = [m.start() for m in re.finditer(' ', line)
                            if m.start() > len(line) - len(text)]
                elif not text:
                    gaps = None
                for at in gaps or ():
                    self.assertIn(line[at:at + 1], ('', ' '),
                                  f'{page.name}:{number}, column {at + 1}')

    def test_picture_has_the_files_of_the_engine(self):
        text = (DEVEL / 'virtio-rdma.rst').read_text(encoding='utf-8')
        start = text.index('   backends/rdma/roce/  ')
        found = {}
        folder = None
        for words in picture_of(text[start:], '   backends/rdma/roce/  '):
            if words[0] == '(top)' or words[0].endswith('/'):
                folder, *words = words
                found[folder] = set()
            if folder:
                found[folder].update(words)
        self.assertIn('wire/', found)
        for folder, names in found.items():
            real = folder.replace('(top)', '')
            self.assertEqual(names, stems('backends/rdma/roce/' + real),
                             f'files of {folder}')

    def test_picture_has_the_files_of_the_device(self):
        text = (DEVEL / 'virtio-rdma.rst').read_text(encoding='utf-8')
        for folder in ('hw/rdma/hca', 'hw/rdma/pvrdma', 'hw/rdma/virtio',
                       'hw/rdma/virtio-net-roce'):
            words = {word for line in picture_of(text, f'   {folder}/')
                     for word in line}
            for stem in stems(folder):
                self.assertTrue(any(fnmatch.fnmatchcase(stem, word)
                                    for word in words), f'no {folder}/{stem}')


if __name__ == '__main__':
    tap.main()
