#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
check-width.py FILE...: print lines that are too long for their kind of file.

checkpatch checks C files, and pylint checks Python. Descriptions of QAPI have
the form that the parser of QEMU 10.2 requires, for all series: a width, and
two spaces between sentences.
"""
import re
import sys

PROSE, CODE, QAPI = 100, 80, 70
# A row of a Markdown table is one line, which cannot be wrapped.
TABLE = re.compile(r'\s*\|')
FENCE = re.compile(r'\s*(```|~~~)')
# In descriptions of QAPI, without the comment mark
LITERAL = re.compile(r'(\.\. +qmp-example)? *::$')
LINK = re.compile(r' *(https?|ftp)://[^ ]*$')
ONE_SPACE = re.compile(r'(\be\.g\.|^ *\d\.|([.!?])) [A-Z0-9(]')


def is_one_word(line):
    """Whether a line is one word, such as a link, perhaps in a list."""
    return len(re.sub(r'^\s*([-*#]|\.\.)\s', '', line).split()) <= 1


def too_long_markdown(lines):
    code = False
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            code = not code
        elif not (code or TABLE.match(line) or line.startswith('    ') or
                  is_one_word(line)) and len(line) > PROSE:
            yield number, PROSE


def at_most(lines, found):
    """Messages for the lines that too_long_...() has found."""
    for number, limit in found:
        yield number, f'{len(lines[number - 1])} characters, at most {limit}'


def bad_qapi(lines):
    literal = None      # in an example: its indentation, 0 until known
    for number, line in enumerate(lines, 1):
        text = line[2:].rstrip()
        indentation = len(text) - len(text.lstrip())
        if not line.startswith('# '):
            literal = literal if line == '#' else None
        elif LITERAL.match(text):
            literal = 0
        elif literal is not None and indentation >= literal:
            literal = literal or indentation
        else:
            literal = None
            if len(line.rstrip()) > QAPI and not LINK.match(text):
                yield number, f'{len(line)} characters, at most {QAPI}'
            if any(match[2] for match in ONE_SPACE.finditer(text)):
                yield number, 'one space between sentences, expected two'


def too_long(lines, limit):
    for number, line in enumerate(lines, 1):
        if len(line) > limit and not is_one_word(line):
            yield number, limit


def main():
    bad = 0
    for name in sys.argv[1:]:
        with open(name, encoding='utf-8') as file:
            lines = file.read().splitlines()
        if name.endswith('.md'):
            found = at_most(lines, too_long_markdown(lines))
        elif name.endswith('.json'):
            found = bad_qapi(lines)
        else:
            found = at_most(lines, too_long(
                lines, PROSE if name.endswith('.rst') else CODE))
        for number, what in found:
            print(f'{name}:{number}: {what}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
