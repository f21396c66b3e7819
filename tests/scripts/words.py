#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""check-words.py and check-subjects.py: what phrases, which subjects."""
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
RULES = tomllib.loads((TOP / 'scripts/words.toml').read_text(encoding='utf-8'))

# Each pattern by a text with it, and one that is near and right
SAMPLES = {
    'who': ('No room: who rings tries again.', 'Who rings? The peer rings.'),
    'what': ('What is saved is validated, too.',
             'What a guest sees. What is it?'),
    'it': ('It has that then.', 'The queue sleeps. It has no work.'),
    'nobody': ('a datagram to nobody', 'a datagram to no one'),
    'somebody': ('somebody else has it', 'some body of a message'),
    'whoever': ('whoever has the lock', 'a peer, if ever'),
    'amid': ('migration amid traffic', 'the middle of a pyramid'),
    'anew': ('the port starts anew', 'a new port'),
    'behind': ('one behind it', 'the bus behind it'),
    'is-no': ('rxe is no device', 'there is no device; it is no longer here'),
    'is-none': ('this one is none', 'there is none'),
    'in-the-place-of': ('b in the place of a', 'in place, in the places'),
    'tell-of': ('the log tells of errors', 'the log tells errors'),
    'but-for': ('random, but for the counters',
                'not for all, but for each QP'),
    'its-like': ('READs and their like', 'it looks like it; its likely end'),
    'want-of': ('skipped for want of root', 'a want'),
    'today': ('the limit today', 'the limit'),
    'old': ('hence two options', 'whence; the fence'),
}


class Scripts(unittest.TestCase):
    """Copies of the scripts, with rules of their own."""

    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='words-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        (self.base / 'scripts').mkdir()
        for name in ('check-words.py', 'check-subjects.py', 'words.toml'):
            shutil.copy(TOP / 'scripts' / name, self.base / 'scripts')

    def left(self, *lines):
        path = self.base / 'scripts/words.toml'
        text = path.read_text(encoding='utf-8')
        path.write_text(text[:text.index('[left]\n')] + '[left]\n' +
                        ''.join(line + '\n' for line in lines),
                        encoding='utf-8')

    def write(self, name, text):
        path = self.base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')

    def run_script(self, name, *args):
        done = subprocess.run(
            [sys.executable, self.base / 'scripts' / name, *args],
            cwd=self.base, text=True, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        return done.returncode, done.stdout


class Words(Scripts):
    def setUp(self):
        super().setUp()
        self.left()
        subprocess.run(['git', 'init', '-q', self.base], check=True)

    def found(self, name, *lines):
        """Line and phrase of each hit in a file, in order."""
        self.write(name, '\n'.join(lines) + '\n')
        status, out = self.run_script('check-words.py', name)
        (self.base / name).unlink()
        found = re.findall(rf'^{name}:(\d+): "([^"]*)"', out, re.M)
        self.assertEqual(status, 1 if found else 0, out)
        return sorted((int(line), phrase) for line, phrase in found)

    def test_each_pattern_finds_its_phrase_only(self):
        self.assertEqual({*SAMPLES}, {*RULES['phrases']})
        for name, (bad, good) in SAMPLES.items():
            self.write('a.rst', bad)
            status, out = self.run_script('check-words.py', 'a.rst')
            self.assertEqual(status, 1, bad)
            self.assertIn(f'.: 1 of "{name}", at most 0', out)
            self.assertIn(RULES['phrases'][name]['why'], out)
            self.assertEqual(self.found('a.rst', good), [], name)

    def test_comments_messages_and_titles_of_c(self):
        self.assertEqual(self.found(
            'a.c', '/*', ' * A table. Who', ' * asks gets nothing.', ' */',
            'int nobody(int anew)', '{',
            '    error("%s is no device", anew);    /* amid */',
            '    return 0; // nobody', '}',
            '    { "what-nobody-told-of", nobody },'),
            [(2, 'Who'), (7, 'amid'), (7, 'is no'), (8, 'nobody'),
             (10, 'nobody'), (10, 'told-of')])

    def test_a_phrase_may_go_over_a_line(self):
        self.assertEqual(self.found('a.h', '/*', ' * A file that is', ' * no',
                                    ' * device, in the place', ' *', ' * of',
                                    ' */'),
                         [(2, 'is no'), (4, 'in the place of')])
        self.assertEqual(self.found('a.sh', '# One text, but', '# for that.',
                                    'but', 'for i in a; do', '#'),
                         [(1, 'but for')])

    def test_comments_and_titles_of_python(self):
        self.assertEqual(self.found(
            'a.py', '"""A page. What is', 'lost stays lost."""',
            'def test_that_nobody_asks(nobody):', '    # It is amid',
            '    # it', '    return f"{nobody} tells of it"'),
            [(1, 'What is'), (3, 'nobody'), (4, 'It is'), (4, 'amid'),
             (6, 'tells of')])

    def test_code_in_pages_is_not_their_text(self):
        for name in ('a.md', 'a.rst'):
            self.assertEqual(self.found(
                name, 'Call ``nobody``', 'or `amid`, not nobody.', '',
                'Who', 'asks is told of it.'),
                [(2, 'nobody'), (4, 'Who'), (5, 'told of')])
        self.assertEqual(self.found('a.md', '```', 'nobody', '```', 'anew'),
                         [(4, 'anew')])

    def test_a_question_may_begin_with_who_or_what(self):
        self.assertEqual(self.found('a.md', 'Who asks whom? What is it,', '',
                                    'What is', 'it?'), [(1, 'What is')])

    def test_more_than_the_number_of_an_area_fails(self):
        self.left('"hw/rdma" = ["nobody:2"]')
        self.write('hw/rdma/a/b.c', '/* nobody */')
        self.write('hw/rdma/c.c', '/* nobody */')
        self.write('hw/d.c', '/* No words */')
        self.assertEqual(self.run_script('check-words.py'), (0, ''))
        self.write('hw/rdma/c.c', '/* nobody, nobody */')
        status, out = self.run_script('check-words.py')
        self.assertEqual(status, 1)
        self.assertIn('hw/rdma: 3 of "nobody", at most 2', out)
        self.write('hw/rdma/c.c', '/* nobody */')
        self.write('hw/d.c', '/* nobody */')
        status, out = self.run_script('check-words.py')
        self.assertEqual(status, 1)
        self.assertIn('hw: 1 of "nobody", at most 0', out)

    def test_files_are_judged_with_their_areas_and_no_others(self):
        self.left('"hw/rdma" = ["nobody:2"]', '"qapi" = ["amid:3"]')
        self.write('hw/rdma/a/b.c', '/* nobody */')
        self.write('hw/rdma/c.c', '/* nobody */')
        self.write('hw/rdma/d.c', '/* No words */')
        names = ['hw/rdma/c.c', 'hw/rdma/d.c']
        for name in (*names, str(self.base / names[0])):
            self.assertEqual(self.run_script('check-words.py', name), (0, ''))
        self.write('hw/rdma/d.c', '/* nobody, nobody */')
        for name in names:
            status, out = self.run_script('check-words.py', name)
            self.assertEqual(status, 1)
            # Hits of the named file come first.
            self.assertTrue(out.startswith(f'{name}:1: "nobody"'), out)
            self.assertIn('hw/rdma: 4 of "nobody", at most 2', out)
        for name in names:
            (self.base / name).unlink()
        status, out = self.run_script('check-words.py', 'hw/rdma/a/b.c')
        self.assertEqual(status, 1)
        self.assertIn('hw/rdma: 1 of "nobody", and words.toml has 2', out)
        self.assertNotIn('qapi', out)
        self.assertEqual(self.run_script('check-words.py', 'hw/none.c'),
                         (1, 'check-words: hw/none.c: not a file\n'))

    def test_numbers_are_lowered_and_never_raised(self):
        self.left('"hw" = ["amid:3", "nobody:1"]', '"qapi" = ["amid:1"]')
        self.write('hw/a.c', '/* amid; nobody, nobody */')
        status, out = self.run_script('check-words.py', 'hw/a.c')
        self.assertEqual(status, 1)
        self.assertIn('hw: 1 of "amid", and words.toml has 3', out)
        for words, others in (('hw/a.c',), {'qapi': ['amid:1']}), ((), {}):
            self.assertEqual(self.run_script('check-words.py', '--lower',
                                             *words)[0], 0)
            text = (self.base / 'scripts/words.toml').read_text(
                encoding='utf-8')
            self.assertEqual(tomllib.loads(text)['left'],
                             {'hw': ['amid:1', 'nobody:1'], **others})
        status, out = self.run_script('check-words.py', 'hw/a.c')
        self.assertEqual(status, 1)
        self.assertIn('hw: 2 of "nobody", at most 1', out)

    def test_files_about_the_phrases_are_skipped(self):
        for name in RULES['skipped']:
            self.assertTrue((TOP / name).is_file(), name)
        self.assertEqual(self.found('tests/scripts/words.py', '# nobody'), [])
        self.assertEqual(self.found('tests/scripts/a.py', '# nobody'),
                         [(1, 'nobody')])


class Subjects(Scripts):
    def setUp(self):
        super().setUp()
        self.git('init', '-q', '-b', 'main')
        self.commit('tests: Add a file')

    def git(self, *args):
        return subprocess.run(
            ['git', '-c', 'user.name=a', '-c', 'user.email=a@example.org',
             *args], cwd=self.base, check=True, text=True,
            stdout=subprocess.PIPE).stdout

    def commit(self, subject):
        self.git('commit', '-q', '--allow-empty', '-m', subject)

    def check(self, *args):
        """Whether all is well, and the subjects that are not."""
        status, out = self.run_script('check-subjects.py', *args)
        return status, re.findall(r'^\w+ "(.*)": ', out, re.M)

    def test_good_subjects_pass(self):
        for subject in ('hw/rdma: Fix a leak', 'README: Document the lab',
                        'a-b/c.d: Speed up a test', 'roce: ' + 'Add ' +
                        'b' * 62, 'Revert "anything at all"'):
            self.commit(subject)
        self.assertEqual(self.check(), (0, []))

    def test_bad_subjects_fail(self):
        bad = ['roce: Answer a READ', 'roce: Fixes a leak', 'Fix a leak',
               'roce: fix a leak', 'roce: Fix', 'roce Fix a leak',
               'roce:Fix a leak', 'roce: Add ' + 'b' * 63]
        for subject in bad:
            self.commit(subject)
        self.assertEqual(self.check(), (1, bad[::-1]))

    def test_a_branch_is_judged_from_main_on(self):
        self.commit('an old one')
        self.git('checkout', '-q', '-b', 'topic')
        self.commit('roce: Fix a leak')
        self.assertEqual(self.check(), (0, []))
        self.commit('a new one')
        self.assertEqual(self.check(), (1, ['a new one']))
        self.assertEqual(self.check('HEAD~3'),
                         (1, ['a new one', 'an old one']))

    def test_main_is_judged_by_its_last_commits(self):
        self.commit('too old')
        for number in range(20):
            self.commit(f'roce: Fix leak {number}')
        self.assertEqual(self.check(), (0, []))
        self.commit('a new one')
        self.assertEqual(self.check(), (1, ['a new one']))

    def test_an_unknown_base_fails(self):
        status, out = self.run_script('check-subjects.py', 'nothing')
        self.assertEqual(status, 1)
        self.assertIn('there is no commit nothing', out)

    def test_contributors_are_told_all_verbs(self):
        text = (TOP / 'CONTRIBUTING.md').read_text(encoding='utf-8')
        self.assertIn(', '.join(RULES['subjects']['verbs']),
                      ' '.join(text.split()))


if __name__ == '__main__':
    tap.main()
