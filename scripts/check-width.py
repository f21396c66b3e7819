#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
check-width.py FILE...: name the lines that are too long for their kind.

Prose has one width, so that a change of a word is a small difference. C is
left to checkpatch and Python to pylint. Descriptions of QAPI have that which
QEMU's own parser asks for since 10.1, whatever series is built.
"""
import re
import sys

PROSE, CODE, QAPI = 100, 80, 70
# A table of Markdown has one line a row, and cannot be wrapped
TABLE = re.compile(r'\s*\|')
FENCE = re.compile(r'\s*(```|~~~)')


def is_one_word(line):
    """With a mark of a list, maybe: a link that is long as it is."""
    return len(re.sub(r'^\s*([-*#]|\.\.)\s', '', line).split()) <= 1


def too_long_markdown(lines):
    code = False
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            code = not code
        elif not (code or TABLE.match(line) or line.startswith('    ') or
                  is_one_word(line)) and len(line) > PROSE:
            yield number, len(line), PROSE


def too_long_qapi(lines):
    example = None      # the indentation of what begins one
    for number, line in enumerate(lines, 1):
        text = line.removeprefix('#')
        indentation = len(text) - len(text.lstrip())
        if not line.startswith('#') or \
                text and example is not None and indentation <= example:
            example = None
        if text.endswith('::') and example is None:
            example = indentation
        elif line.startswith('#') and example is None and \
                len(line) > QAPI and not is_one_word(line):
            yield number, len(line), QAPI


def too_long(lines, limit):
    for number, line in enumerate(lines, 1):
        if len(line) > limit and not is_one_word(line):
            yield number, len(line), limit


def main():
    bad = 0
    for name in sys.argv[1:]:
        with open(name, encoding='utf-8') as file:
            lines = file.read().splitlines()
        if name.endswith('.md'):
            found = too_long_markdown(lines)
        elif name.endswith('.json'):
            found = too_long_qapi(lines)
        else:
            found = too_long(lines, PROSE if name.endswith('.rst') else CODE)
        for number, length, limit in found:
            print(f'{name}:{number}: {length} characters, at most {limit}')
            bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
