#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
check-subjects.py [BASE]: print the commits after BASE whose subject is not
"part: Verb object" or is too long; fail if there are any. words.toml has the
verbs and the maximum length.

Without BASE, the script takes main, or else origin/main: the first of these
branches that HEAD has commits after. If there is none, it checks the last 20
commits.
"""
import re
import subprocess
import sys
import tomllib
from pathlib import Path

RULES = Path(__file__).resolve().with_name('words.toml')
BASES = ('main', 'origin/main')
LAST = 20
PART = r'[\w.-]+(?:/[\w.-]+)*'
# Subjects that git writes by itself
REVERT = re.compile(r'Revert ".*"$')


def git(*args):
    """The lines of its output; None if it fails."""
    done = subprocess.run(['git', *args], check=False, text=True,
                          capture_output=True)
    return None if done.returncode else done.stdout.splitlines()


def commits(base):
    """(hash, subject) of each, the newest first; None without a base."""
    lines = git('log', '--no-merges', '--format=%h %s', f'{base}..HEAD')
    return lines and [tuple(line.split(' ', 1)) for line in lines]


def fault(subject, rules):
    """The fault of a subject, or None."""
    if len(subject) > rules['width']:
        return f'{len(subject)} characters, at most {rules["width"]}'
    verbs = '|'.join(rules['verbs'])
    if not (REVERT.match(subject) or
            re.match(rf'{PART}: (?:{verbs}) \S', subject)):
        return ('is not "part: Verb object" with one of the verbs '
                f'{", ".join(rules["verbs"])}')
    return None


def main():
    rules = tomllib.loads(RULES.read_text(encoding='utf-8'))['subjects']
    if len(sys.argv) > 1:
        found = commits(sys.argv[1])
        if found is None and git('rev-parse', '--verify', '-q',
                                 sys.argv[1]) is None:
            sys.exit(f'check-subjects: there is no commit {sys.argv[1]}')
    else:
        found = next(filter(None, map(commits, BASES)), None)
        if not found and git('rev-parse', '-q', '--verify', 'HEAD'):
            found = [tuple(line.split(' ', 1)) for line in git(
                'log', '--no-merges', '--format=%h %s', f'-{LAST}')]
    bad = 0
    for number, subject in found or ():
        what = fault(subject, rules)
        if what:
            print(f'{number} "{subject}": {what}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
