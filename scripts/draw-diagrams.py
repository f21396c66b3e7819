#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
draw-diagrams.py: draw each .dot file below docs as an SVG file next to it,
with graphviz, unless that picture is of the same text already.

The pictures are committed, so that readers of the sources, and QEMU's manuals,
need no graphviz. A picture names the hash of its source, because the output of
dot depends on its version and on the fonts.
"""
import hashlib
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / 'docs'


def head(source):
    """The lines with which a picture of @source begins."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return ('<?xml version="1.0" encoding="UTF-8"?>\n'
            '<!-- SPDX-License-Identifier: GPL-2.0-or-later -->\n'
            f'<!-- "make docs" drew this from {source.name}, sha256\n'
            f'     {digest} -->\n')


def is_current(source):
    picture = source.with_suffix('.svg')
    return (picture.is_file() and
            picture.read_text(encoding='utf-8').startswith(head(source)))


def draw(source):
    svg = subprocess.run(['dot', '-Tsvg', str(source)], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    body = svg[svg.index('<svg'):]
    # Comments repeat the names of nodes.
    body = re.sub(r'<!--.*?-->\n?', '', body, flags=re.S)
    source.with_suffix('.svg').write_text(head(source) + body,
                                          encoding='utf-8')


def main():
    for source in sorted(DOCS.rglob('*.dot')):
        if not is_current(source):
            print(f'drawing {source.relative_to(DOCS)}')
            draw(source)


if __name__ == '__main__':
    sys.exit(main())
