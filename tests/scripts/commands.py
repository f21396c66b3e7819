#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands of the Makefile: few, documented once, clear about mistakes."""
import fnmatch
import re
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / 'tools' / 'lab'))

from guestkit import arch    # noqa: E402

PAGE = TOP / 'docs/devel/virtio-rdma-make.rst'
PAGES = [*TOP.glob('*.md'), *(TOP / 'docs').rglob('*.rst')]
MAX_HELP = 20
MAX_README = 200
# A command as pages show it, maybe broken by the end of a line
COMMAND = re.compile(r'`make\s+((?:[^`]|\n)*?)`')
# What the README shows a user first
SHOWN = ('demo', 'check', 'lab', 'bench', 'fuzz', 'docs', 'lint',
         'packages', 'install', 'check-fresh')


def make(*args):
    """Never run a recipe: those of "check" would start whole builds."""
    return subprocess.run(
        ['make', '--no-print-directory', '-C', TOP, *args], text=True,
        capture_output=True, check=False,
        env={'PATH': '/usr/sbin:/usr/bin:/sbin:/bin'})


def known(name):
    words = make('--eval', f'show:;@echo $({name})', 'show').stdout.split()
    assert words, f'the Makefile has no {name}'
    return words


def rows(title):
    """First cells of the table in the section of the page."""
    text = PAGE.read_text(encoding='utf-8')
    section = text[text.index(f'\n{title}\n==='):]
    table = re.split(r'^==+ ==+$', section, flags=re.M)[2]
    return re.findall(r'^``([^`]+)``', table, re.M)


def commands():
    """Page, goals and variables of each command that a page shows."""
    for page in PAGES:
        for text in COMMAND.findall(page.read_text(encoding='utf-8')):
            for part in text.split('; make '):
                words = shlex.split(part)
                if not part.startswith('-'):    # make in another directory
                    yield (page.name,
                           [word for word in words if '=' not in word],
                           dict(word.split('=', 1) for word in words
                                if '=' in word))


class Commands(unittest.TestCase):
    def test_help_is_short_and_fits_a_terminal(self):
        shown = make('help')
        self.assertEqual(shown.returncode, 0, shown.stderr)
        lines = shown.stdout.splitlines()
        self.assertLessEqual(len(lines), MAX_HELP)
        self.assertLessEqual(max(map(len, lines)), 80)
        for name in (*known('KNOWN_SUITES'), *known('KNOWN_BENCHES')):
            self.assertIn(name, shown.stdout.split())

    def test_page_has_each_suite_and_benchmark(self):
        self.assertEqual(rows('Suites'), known('KNOWN_SUITES'))
        self.assertEqual(rows('Benchmarks'), known('KNOWN_BENCHES'))

    def test_each_suite_and_benchmark_has_a_rule(self):
        for name in known('KNOWN_SUITES'):
            for goal in (f'needs-{name}', f'check-{name}'):
                done = make('-n', 'PACKAGES=no', '-o', 'check', goal)
                self.assertEqual(done.returncode, 0, done.stderr)
        for stage in known('ALL_STAGES'):
            done = make('-n', 'PACKAGES=no', f'run-{stage}')
            self.assertEqual(done.returncode, 0, done.stderr)
        for name in known('KNOWN_BENCHES'):
            done = make('-n', 'PACKAGES=no', f'bench-{name}')
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_each_stage_of_a_suite_is_summed_up(self):
        reports = known('REPORTS')
        for suite in ('', *known('KNOWN_SUITES')):
            words = [f'SUITE={suite}'] if suite else []
            shown = make('-n', 'PACKAGES=no', 'check', *words).stdout
            removed = re.findall(r'logs/(\S+)\.log', ''.join(
                re.findall(r'^rm -f .*', shown, re.M)))
            run = re.findall(r'scripts/stage \S+ (\S+?)!? ',
                             shown.partition('\nfor stage in ')[2])
            summed = re.findall(r'summary\.py \S+ (.*)', shown)
            if suite in reports:
                self.assertEqual((removed, run, summed), ([], [], []), suite)
            else:
                self.assertTrue(run, suite)
                self.assertEqual(summed, [' '.join(run)], suite)
                self.assertEqual(removed, run, suite)
        self.assertTrue(reports)

    def test_unknown_names_are_refused_with_those_that_exist(self):
        for words, name, others in (
                ('SUITE=qtests', 'qtests', 'KNOWN_SUITES'),
                ('SUITE=unit nothing', 'nothing', 'KNOWN_SUITES'),
                ('BENCH=memory', 'memory', 'KNOWN_BENCHES')):
            done = make('-n', 'check', words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f'"{name}" is unknown', done.stderr)
            self.assertIn(' '.join(known(others)), done.stderr)
        for words in ((), ('TEST=qp-test',), ('TEST=qp/states',)):
            done = make('-n', 'qtest', *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(' '.join(known('KNOWN_TESTS')), done.stderr)
        done = make('-n', 'check-fresh', 'SUITES=trixie')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('RELEASES=', done.stderr)

    def test_one_qtest_is_a_program_or_a_part_of_it(self):
        for test, paths in (('virtio-rdma-test', []),
                            ('virtio-rdma-test/qp/states', ['/qp/states'])):
            done = make('-n', 'PACKAGES=no', 'qtest', f'TEST={test}')
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('--select \'^virtio-rdma-test$\'', done.stdout)
            self.assertEqual(re.findall(r"--paths '(.*?)'", done.stdout),
                             paths)

    def test_a_build_directory_may_be_relative(self):
        shown = make('BUILDDIR=x', '--eval', 'show:;@echo $(B)', 'show')
        self.assertEqual(shown.stdout, f'{TOP}/x\n')

    def test_clean_removes_what_is_compiled_and_keeps_what_is_fetched(self):
        script = (TOP / 'scripts/build-qemu.sh').read_text(encoding='utf-8')
        qemus = {'qemu-coverage', 'qemu-aarch64',
                 *re.findall(r'out=\$[SV]_DIR/([\w-]+)', script)}
        self.assertLessEqual({'qemu', 'qemu-stock', 'qemu-tsan'}, qemus)
        guests = {'broken', 'provider-65', 'rdma-core/build',
                  'rdma-core-65/build', 'arm64/rdma-core/build',
                  'images/driver'}
        kept = {'kernel', 'headers', 'debs', 'images', 'images/headers',
                'rdma-core/source'}
        for each in arch.NATIVE, arch.ARM64, arch.ARM64_16K:
            guests.update(str(path.relative_to(arch.STATE)) for path in (
                each.modules, each.drivers, each.provider, each.bin))
            kept.update(str(path.relative_to(arch.STATE)) for path in (
                each.kernels, each.headers))
        shown = make('-n', 'clean', 'BUILDDIR=/b').stdout.split()
        self.assertEqual(shown[:2], ['rm', '-rf'])

        def is_removed(path):
            return any(fnmatch.fnmatchcase(path, word) for word in shown[2:])
        for build in '/b', '/b-11.1':
            for name in (*qemus, 'standalone', 'fuzz', 'coverage', 'docs',
                         *(f'guest/{name}' for name in guests)):
                self.assertTrue(is_removed(f'{build}/{name}'), name)
            for name in ('src', 'qemu-src', 'download', 'tools', 'guest',
                         *(f'guest/{name}' for name in kept)):
                self.assertFalse(is_removed(f'{build}/{name}'), name)
            self.assertTrue(is_removed(f'{build}-asan'))

    def test_lab_names_the_qemu_that_it_built(self):
        for words, said in (([], "'Next: tools"),
                            (['QEMU_SERIES=11.1'],
                             f'QEMU={TOP}/build-11.1/qemu/.* tools'),
                            (['BUILDDIR=x'], f'BUILD_DIR={TOP}/x QEMU=')):
            with self.subTest(words):
                self.assertRegex(make('-n', '-o', 'qemu', '-o', 'guest',
                                      'lab', *words).stdout, said)

    def test_pages_name_commands_that_exist_and_no_aliases(self):
        text = (TOP / 'Makefile').read_text(encoding='utf-8')
        there = {goal for rule in re.findall(r'^(\w[\w -]*):(?!=)', text, re.M)
                 for goal in rule.split()}
        names = {'SUITE': {*known('KNOWN_SUITES')},
                 'BENCH': {*known('KNOWN_BENCHES')},
                 'TEST': {*known('KNOWN_TESTS')}}
        aliases = {*known('ALIASES'), 'interop', 'soak',
                   *(f'bench-{name}' for name in names['BENCH'])}
        count = 0
        for page, goals, values in commands():
            for goal in goals:
                self.assertNotIn(goal, aliases, page)
                self.assertIn(goal, there, page)
            for variable, those in names.items():
                words = [word.split('/')[0] for word in
                         values.get(variable, '').replace('…', '').split()]
                self.assertLessEqual({*words}, those, page)
                count += len(words)
        self.assertGreater(count, 30)


class Readme(unittest.TestCase):
    def test_is_short(self):
        text = (TOP / 'README.md').read_text(encoding='utf-8')
        self.assertLessEqual(len(text.splitlines()), MAX_README)

    def test_shows_each_command_that_a_user_needs(self):
        text = (TOP / 'README.md').read_text(encoding='utf-8')
        for name in SHOWN:
            self.assertRegex(text, fr'make {name}\b')

    def test_pictures_are_there(self):
        text = (TOP / 'README.md').read_text(encoding='utf-8')
        pictures = re.findall(r'!\[[^]]+\]\(([^)]+)\)', text)
        self.assertTrue(pictures)
        for name in pictures:
            self.assertTrue((TOP / name).is_file(), name)


if __name__ == '__main__':
    tap.main()
