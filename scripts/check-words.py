#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
check-words.py [--lower] [FILE...]: name phrases that a busy reader stumbles
over, in comments, documentation, messages and titles of tests.

words.toml has the patterns, each with what to write instead, and the number of
hits that an area of the tree has left. An area is a folder of the top level or
of the one below. Numbers only fall: more hits than the number are a failure,
and so is a number above the hits. --lower writes the numbers that are left
after a clean-up.

The script reads all files that git knows. With FILE, it judges only the areas
of these files: it reads all files there, because a number is for an area.
"""
import argparse
import ast
import collections
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

RULES = Path(__file__).resolve().with_name('words.toml')
# Where numbers begin in the file of rules; --lower replaces what follows
NUMBERS = '[left]\n'
SHOWN = 20
KIND = re.compile(r'\.(c|h|py|sh|md|rst|build|toml|list|json|[1-8](\.in)?)$|'
                  r'(^|/)(Makefile|Kconfig|trace-events|configure)$')
SCRIPT = '#!/usr/bin/python3'
# In a pattern: where a sentence, or a whole text, begins
PLACES = {'<start>': r'(?:\A\s*|(?<=[.;:!?])\s+)', '<first>': r'\A\s*'}
C_TEXT = re.compile(r'/\*(.*?)\*/|//([^\n]*)|"((?:[^"\\\n]|\\.)*)"', re.S)
HASH_COMMENT = re.compile(r'(?:^|(?<=\s))#[ !]?(.*)')
QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'([^\'\n]*)\'')
# What a page quotes is not its own text
LITERAL = re.compile(r'``[^`]+``|`[^`\n]+`|:\w+:`[^`]+`')
FENCE = re.compile(r'^(```|~~~).*?^\1', re.M | re.S)


class Text(NamedTuple):
    """A piece of prose, and the line that it begins in."""
    line: int
    words: str


def blank(match):
    """As many lines of nothing, so that lines keep their numbers."""
    return 'x' + '\n' * match.group().count('\n')


def c_texts(source):
    for match in C_TEXT.finditer(source):
        comment = match[1] or match[2]
        line = source.count('\n', 0, match.start()) + 1
        if comment:
            yield Text(line, re.sub(r'^[ \t]*\*+ ?', '', comment, flags=re.M))
        elif match[3]:
            yield Text(line, match[3])


def hash_texts(source, strings=True):
    """Comments that follow each other are one text."""
    first, comment = 0, []
    for number, line in enumerate(source.splitlines() + [''], 1):
        match = HASH_COMMENT.search(line)
        whole = match and not line[:match.start()].strip()
        if comment and not whole:
            yield Text(first, '\n'.join(comment))
            comment = []
        if whole:
            first = first if comment else number
            comment.append(match[1])
        elif match:
            yield Text(number, match[1])
        if strings and not whole:
            for quoted in QUOTED.finditer(line):
                yield Text(number, quoted[1] or quoted[2] or '')


def python_texts(source):
    yield from hash_texts(source, strings=False)
    parts = set()
    # A string in parts comes before its parts
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            parts.update(map(id, node.values))
            yield Text(node.lineno, ''.join(
                part.value if isinstance(part, ast.Constant) else 'x'
                for part in node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in parts:
                yield Text(node.lineno, node.value)
        elif isinstance(node, ast.FunctionDef) and \
                node.name.startswith('test_'):
            yield Text(node.lineno, node.name.replace('_', ' '))


def page_texts(source):
    line = 1
    for part in re.split(r'(\n\s*\n)', LITERAL.sub(
            blank, FENCE.sub(blank, source))):
        yield Text(line, part)
        line += part.count('\n')


def texts_of(name, source):
    if name.endswith(('.c', '.h')):
        return c_texts(source)
    if name.endswith('.py') or source.startswith(SCRIPT):
        return python_texts(source)
    if re.search(r'\.(md|rst|in|txt|[1-8])$', name):
        return page_texts(source)
    return hash_texts(source)


class Pattern(NamedTuple):
    name: str
    why: str
    regex: re.Pattern

    @classmethod
    def of(cls, name, rule):
        # Titles of tests have - between words, and lines end in sentences
        regex = rule['match'].replace('\\\n', '').replace(' ', r'[\s-]+')
        for place, where in PLACES.items():
            regex = regex.replace(place, where)
        return cls(name, rule['why'], re.compile(regex, re.I))


def is_script(name):
    with open(name, 'rb') as f:
        return f.readline().startswith(SCRIPT.encode())


def tracked_files():
    names = subprocess.run(
        ['git', 'ls-files', '-co', '--exclude-standard'], check=True,
        text=True, stdout=subprocess.PIPE).stdout.splitlines()
    return [name for name in names if Path(name).is_file() and
            (KIND.search(name) or is_script(name))]


def area_of(name):
    return '/'.join(name.split('/')[:-1][:2]) or '.'


def hits_in(name, patterns):
    """(pattern, line, phrase) of each."""
    source = Path(name).read_text(encoding='utf-8')
    for text in texts_of(name, source):
        for pattern in patterns:
            for match in pattern.regex.finditer(text.words):
                start = match.start() + len(match[0]) - len(match[0].lstrip())
                line = text.line + text.words.count('\n', 0, start)
                yield pattern, line, ' '.join(match[0].split())


def write_numbers(found, left, areas):
    """Lower the numbers of these areas in words.toml to the hits there."""
    lines = []
    for area, numbers in sorted(left.items()):
        if area in areas:
            numbers = {name: min(number, len(found[area, name]))
                       for name, number in numbers.items()}
        rest = [f'"{name}:{number}"'
                for name, number in sorted(numbers.items()) if number]
        if rest:
            lines += [f'"{area}" = [', *textwrap.wrap(
                ', '.join(rest) + ',', 78, initial_indent='  ',
                subsequent_indent='  ', break_on_hyphens=False), ']']
    text = RULES.read_text(encoding='utf-8')
    RULES.write_text(text[:text.index(NUMBERS)] + NUMBERS +
                     ''.join(line + '\n' for line in lines), encoding='utf-8')


def select(files, left):
    """Return (areas to judge, names of all files in these areas), with @files
    first. Without @files: all areas."""
    top = RULES.parents[1]
    for name in files:
        if not Path(name).is_file():
            sys.exit(f'check-words: {name}: not a file')
    chosen = [os.path.relpath(name, top) for name in files]
    os.chdir(top)
    tracked = tracked_files()
    areas = {*map(area_of, chosen)} if files else \
        {*left, *map(area_of, tracked)}
    return areas, dict.fromkeys(
        [*chosen, *(name for name in tracked if area_of(name) in areas)])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.strip().splitlines()[0])
    parser.add_argument('--lower', action='store_true')
    parser.add_argument('file', nargs='*')
    args = parser.parse_args()
    rules = tomllib.loads(RULES.read_text(encoding='utf-8'))
    patterns = [Pattern.of(*item) for item in rules['phrases'].items()]
    left = {area: {name: int(number) for name, number in
                   (entry.split(':') for entry in entries)}
            for area, entries in rules['left'].items()}
    found = collections.defaultdict(list)
    areas, names = select(args.file, left)
    for name in names:
        if name not in rules['skipped']:
            for pattern, line, phrase in hits_in(name, patterns):
                found[area_of(name), pattern.name].append(
                    f'{name}:{line}: "{phrase}": {pattern.why}')
    if args.lower:
        write_numbers(found, left, areas)
        return 0
    bad = 0
    for (area, name), hits in sorted(found.items()):
        most = left.get(area, {}).get(name, 0)
        if len(hits) > most:
            bad = 1
            print('\n'.join(hits[:SHOWN]))
            print(f'{area}: {len(hits)} of "{name}", at most {most}')
    for area in sorted(areas & left.keys()):
        for name, number in left[area].items():
            if len(found[area, name]) < number:
                bad = 1
                print(f'{area}: {len(found[area, name])} of "{name}", and '
                      f'words.toml has {number}: run it with --lower')
    return bad


if __name__ == '__main__':
    sys.exit(main())
