#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
run-tests.py, stage and summary.py lose no failure: programs that end in every
bad way, and what is counted in the end.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
SCRIPTS = TOP / 'scripts'


class Results(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='results-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        (self.base / 'meson-info').mkdir()

    def call(self, script, *args):
        done = subprocess.run([sys.executable, SCRIPTS / script, *args],
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def run_program(self, text, *options):
        """Run an executable with this text."""
        path = self.base / 'program'
        path.write_text(text, encoding='utf-8')
        path.chmod(0o755)
        return self.run_commands(*options, victim=[str(path)])

    def run_shell(self, **scripts):
        """Run shell scripts as test programs; (status, output)."""
        return self.run_commands(**{name: ['/bin/sh', '-c', text]
                                    for name, text in scripts.items()})

    def run_commands(self, *options, **commands):
        info = [{'name': f'suite/{name}', 'cmd': cmd, 'env': {},
                 'timeout': 1} for name, cmd in commands.items()]
        (self.base / 'meson-info/intro-tests.json').write_text(
            json.dumps(info), encoding='utf-8')
        return self.call('run-tests.py', self.base, *options)

    def summary(self, **stages):
        """Run stages that print a text and exit, with 0 or as the second of
        a pair says, and sum them up; (status, output)."""
        for stage, told in stages.items():
            text, status = told if isinstance(told, tuple) else (told, 0)
            subprocess.run(
                [SCRIPTS / 'stage', self.base, stage, 'done', '/bin/sh', '-c',
                 'printf %s "$1"; exit "$2"', 'sh', text, str(status)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                check=False)
        return self.call('summary.py', self.base, *stages)

    def assert_fails(self, text, pattern):
        status, out = self.run_shell(victim=text)
        self.assertEqual(status, 1, out)
        self.assertTrue(re.search(rf'^not ok \d+ - victim: {pattern}', out,
                                  re.M), out)

    def test_good_program_passes(self):
        status, out = self.run_shell(
            good='echo 1..2; echo "ok 1 /a"; echo "ok 2 /b # SKIP no kvm"')
        self.assertEqual(status, 0, out)
        self.assertIn('# SKIP no kvm', out)

    def test_failed_test_fails(self):
        self.assert_fails('echo 1..1; echo "not ok 1 /a"; exit 1', 'a')

    def test_crash_fails(self):
        self.assert_fails('echo 1..2; echo "ok 1 /a"; kill -SEGV $$',
                          'killed by signal 11')

    def test_exit_status_fails(self):
        self.assert_fails('echo 1..1; echo "ok 1 /a"; exit 3',
                          'exit status 3')

    def test_early_end_fails(self):
        self.assert_fails('echo 1..3; echo "ok 1 /a"', 'only 1 of 3')

    def test_silence_fails(self):
        self.assert_fails(':', 'no test ran')

    def test_hang_fails(self):
        self.assert_fails('echo 1..1; echo "ok 1 /a"; sleep 60',
                          'no end after 1 s')

    def test_crash_does_not_hide_the_tests_behind_it(self):
        # Like GLib's programs: -l lists the tests, -s skips one
        status, out = self.run_program("""#!/bin/sh
            [ "$1" != -l ] || { echo /a; echo /b; echo /c; exit; }
            skip=" $* "
            number=0
            echo 1..3
            for test in a b c; do
                case $skip in
                *" /$test "*) echo "ok 1 /$test # SKIP by request"; continue ;;
                esac
                [ $test != b ] || kill -ABRT $$
                echo "ok 1 /$test"
            done
            """)
        self.assertEqual(status, 1)
        self.assertEqual(re.findall(r'^(ok|not ok) \d+ - (.*)$', out, re.M), [
            ('ok', 'victim: a'),
            ('not ok', 'victim: b: killed by signal 6'),
            ('ok', 'victim: c')])

    # Like GLib's programs: -l lists the tests, -p selects some of them
    SHARED = """#!/bin/sh
        [ "$1" != -l ] || { printf '/%s\\n' a b c d e; exit; }
        chosen=$*
        for test in a b c d e; do
            case " $chosen " in
            *" -s /$test "*) echo "ok 1 /$test # SKIP by request" ;;
            *" -p /$test "*) one $test ;;
            esac
        done
        """

    def test_shares_make_the_whole(self):
        status, out = self.run_program(
            self.SHARED.replace('one $test', 'echo "ok 1 /$test $#"'),
            '--share', '2')
        self.assertEqual(status, 0, out)
        self.assertEqual(sorted(re.findall(r'^ok \d+ - victim: (.*)$', out,
                                           re.M)),
                         ['a 2', 'b 4', 'c 4', 'd 4', 'e 4'])

    def test_slow_mode_is_asked_for_in_each_share(self):
        told = self.SHARED.replace('one $test', 'echo "ok 1 /$test $1 $2"')
        for options, mode in ((), '-p /.'), (('--slow',), '-m slow'):
            status, out = self.run_program(told, '--share', '2', *options)
            self.assertEqual(status, 0, out)
            self.assertEqual(
                len(re.findall(rf'^ok \d+ - victim: . {mode}$', out, re.M)),
                5, out)

    def test_a_crash_ends_only_one_test_of_its_share(self):
        status, out = self.run_program(
            self.SHARED.replace('one $test', '[ $test != c ] || '
                                'kill -ABRT $$; echo "ok 1 /$test"'),
            '--share', '2')
        self.assertEqual(status, 1)
        self.assertEqual(
            sorted(re.findall(r'^(?:not )?ok \d+ - (.*)$', out, re.M)),
            ['victim: a', 'victim: b', 'victim: c: killed by signal 6',
             'victim: d', 'victim: e'])

    def test_a_share_that_ends_early_fails(self):
        status, out = self.run_program(
            self.SHARED.replace('one $test', '[ $test != e ] || exit 0; '
                                'echo "ok 1 /$test"'), '--share', '2')
        self.assertEqual(status, 1)
        self.assertIn('victim: only 1 of 2 tests ran', out)

    def chosen(self, *options, mark=''):
        """Which tests of such a program run."""
        status, out = self.run_program(
            self.SHARED.replace('one $test', 'echo "ok 1 /$test"').replace(
                '/%s', mark + '/%s'), *options)
        return status, ''.join(sorted(re.findall(
            r'^ok \d+ - victim: (.*)$', out, re.M)))

    def test_paths_choose_tests(self):
        self.assertEqual(self.chosen('--paths', '[bcd]'), (0, 'bcd'))
        self.assertEqual(self.chosen('--paths', '[bcd]', '--share', '2'),
                         (0, 'bcd'))
        # GLib 2.84 lists them as comments of TAP
        self.assertEqual(self.chosen('--paths', '[bcd]', mark='# '),
                         (0, 'bcd'))

    def test_paths_may_be_left_out(self):
        self.assertEqual(self.chosen('--but', '[bcd]', '--share', '2'),
                         (0, 'ae'))
        self.assertEqual(self.chosen('--paths', '[abc]', '--but', 'b'),
                         (0, 'ac'))

    def test_paths_of_no_test_fail(self):
        status, out = self.run_program(self.SHARED, '--paths', 'x')
        self.assertEqual(status, 1)
        self.assertIn('no path of a test matches --paths', out)

    def test_no_program_at_all_fails(self):
        status, out = self.run_shell()
        self.assertEqual(status, 1)
        self.assertIn('no program matches --select', out)

    def test_summary_adds_up_the_stages(self):
        status, out = self.summary(
            unit='ok 1 - a\nok 2 - b # SKIP why\n1..2\n',
            guest='ok 1 - c # 2.5 s\n1..1\n')
        self.assertEqual(status, 0)
        self.assertEqual(out, 'SKIP unit: b: why\n'
                              '2 passed, 0 failed, 1 skipped\n')

    def test_summary_fails_with_skips_where_there_may_be_none(self):
        logs = {'unit': 'ok 1 - a\nok 2 - b # SKIP why\n1..2\n'}
        with unittest.mock.patch.dict(os.environ, SKIPS_FAIL='1'):
            status, out = self.summary(**logs)
            self.assertEqual(self.summary(unit='ok 1 - a\n1..1\n')[0], 0)
        self.assertEqual(status, 1)
        self.assertIn('SKIP unit: b: why\n', out)

    def test_summary_names_what_failed(self):
        status, out = self.summary(
            unit=('ok 1 - a\nnot ok 2 - b\n1..2\n', 1))
        self.assertEqual(status, 1)
        self.assertEqual(out, 'FAIL unit: b\n1 passed, 1 failed, 0 skipped\n')

    def test_summary_counts_a_stage_that_died(self):
        status, out = self.summary(unit='ok 1 - a\n1..1\n',
                                   qtest='ok 1 - a\n')
        self.assertEqual(status, 1)
        self.assertTrue(out.endswith('2 passed, 1 failed, 0 skipped\n'), out)

    def test_summary_counts_a_stage_that_was_interrupted(self):
        self.summary(unit='ok 1 - a\n1..1\n')
        log = self.base / 'unit.log'
        log.write_text('ok 1 - a\n1..1\n', encoding='utf-8')
        status, out = self.call('summary.py', self.base, 'unit')
        self.assertEqual(status, 1)
        self.assertIn('FAIL unit: did not run to its end', out)

    def test_summary_counts_a_command_that_failed_after_its_tests(self):
        # The second text ends within a line
        for text in 'ok 1 - a\n1..1\n', '1..1\nok 1 - a\n# busy':
            status, out = self.summary(packages=(text, 32))
            self.assertEqual(status, 1, out)
            self.assertRegex(out, r'(?m)^FAIL packages: exit status 32 .*\n'
                             r'1 passed, 1 failed, 0 skipped$')

    def test_summary_counts_results_that_are_lost(self):
        status, out = self.summary(unit='1..2\nok 1 - a\nnoise ok 2 - b\n')
        self.assertEqual(status, 1, out)
        self.assertIn('1 passed, 1 failed, 0 skipped\n', out)

    def test_summary_adds_up_the_plans_of_a_log(self):
        whole = '1..2\nok 1 - a\nok 2 - b\n'
        for text, count, good in (
                (whole + whole, 4, True),
                (whole + '1..2\nok 1 - a\n', 3, False),
                ('1..2\nok 1 - a\n1..1\nok 1 - c\n', 2, False),
                # Plans may also come last.
                ('ok 1 - a\n1..1\nok 1 - c\nok 2 - d\n1..2\n', 3, True)):
            status, out = self.summary(packages=text)
            self.assertEqual(status, 0 if good else 1, out)
            self.assertEqual('FAIL packages: did not run to its end' in out,
                             not good)
            self.assertIn(f'{count} passed, {0 if good else 1} failed', out)

    def test_summary_takes_no_failure_for_a_skip(self):
        status, out = self.summary(
            unit=('ok 1 - a\nnot ok 2 - b # SKIP why\n1..2\n', 1))
        self.assertEqual(status, 1, out)
        self.assertIn('1 passed, 1 failed, 0 skipped\n', out)

    def test_make_sums_up_every_stage_whose_failure_it_passes_over(self):
        # Other than those of "make check": commands.py has these
        recipes = re.findall(r'(?m)^[a-z][^=\n]*:.*(?:\\\n.*)*\n((?:\t.*\n)+)',
                             (TOP / 'Makefile').read_text(encoding='utf-8'))
        passing = [recipe for recipe in recipes if '|| :' in recipe]
        self.assertTrue(passing)
        for recipe in passing:
            summed = re.search(r'\$\(SUMMARY\) (.*)\n\Z', recipe)
            self.assertIsNotNone(summed, recipe)
            self.assertEqual(len(summed[1].split()), recipe.count('|| :'),
                             recipe)

    def test_summary_of_nothing_fails(self):
        self.assertEqual(self.summary(unit='1..0\n')[0], 1)


if __name__ == '__main__':
    # The run's own
    os.environ.pop('SKIPS_FAIL', None)
    tap.main()
