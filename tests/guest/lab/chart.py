# SPDX-License-Identifier: GPL-2.0-or-later
"""The figures of the demo as bars side by side: an SVG picture, and a page
with it that needs no network. Each row has a scale of its own."""
import html
from xml.etree import ElementTree

from . import tcp

STACKS = {'virtio-rdma': '#1f5fa8', 'rxe': '#d08030', tcp.NAME: '#8c8c8c'}
# Sizes in pixels
WIDTH, LABEL, VALUE, MARGIN = 760, 210, 90, 16
BAR, GAP, HEADING = 13, 12, 34
TIME = 'us'


class Picture:
    """An SVG picture that grows downwards"""

    def __init__(self):
        self.root = ElementTree.Element('svg', {
            'xmlns': 'http://www.w3.org/2000/svg',
            'font-family': 'sans-serif', 'font-size': '12'})
        self.ground = self.box(0, 0, WIDTH, 0, 'white')
        self.y = MARGIN

    def box(self, x, y, width, height, colour):
        return ElementTree.SubElement(self.root, 'rect', {
            'x': f'{x:.0f}', 'y': f'{y:.0f}', 'width': f'{width:.1f}',
            'height': f'{height:.0f}', 'fill': colour})

    def write(self, x, y, text, **attributes):
        ElementTree.SubElement(self.root, 'text', {
            'x': f'{x:.0f}', 'y': f'{y:.0f}', 'fill': '#202020',
            **attributes}).text = text

    def legend(self):
        x = LABEL
        for name, colour in STACKS.items():
            self.box(x, self.y, BAR, BAR, colour)
            self.write(x + BAR + 5, self.y + BAR - 2, name)
            x += 110
        self.write(x, self.y + BAR - 2, 'each test has its own scale')
        self.y += BAR + GAP

    def heading(self, text):
        self.write(MARGIN, self.y + HEADING - GAP, text,
                   **{'font-weight': 'bold'})
        self.y += HEADING

    def row(self, name, bars):
        """Add bars of one test, whose longest one is as wide as there is
        room. @bars: (colour, value, text); without a value, text alone"""
        most = max((value for _, value, _ in bars if value), default=1)
        self.write(MARGIN, self.y + BAR, name)
        for colour, value, text in bars:
            width = 0
            if value:
                room = WIDTH - LABEL - VALUE - MARGIN
                width = max(1, room * value / most)
                self.box(LABEL, self.y, width, BAR - 2, colour)
            self.write(LABEL + width + 5, self.y + BAR - 3, text,
                       **{'font-size': '11'})
            self.y += BAR
        self.y += GAP

    def text(self):
        height = f'{self.y + MARGIN:.0f}'
        self.ground.set('height', height)
        self.root.set('viewBox', f'0 0 {WIDTH} {height}')
        self.root.set('width', str(WIDTH))
        self.root.set('height', height)
        ElementTree.indent(self.root)
        return ElementTree.tostring(self.root, 'unicode') + '\n'


def bars_of(cells, number):
    """Return the bars of a row, for the stacks that ran this test."""
    return [(colour, cell['value'], f'{number(cell["value"])} {cell["unit"]}')
            if cell['ok'] else (colour, None, 'failed')
            for stack, colour in STACKS.items()
            if (cell := cells.get(stack))]


def svg(figures, number):
    """Return the picture. @figures: {row: {stack: cell}} as in demo.json;
    number() formats a value."""
    picture = Picture()
    picture.legend()
    for title, in_time in (('Rates: longer bars are better', False),
                           ('Times: shorter bars are better', True)):
        rows = {row: cells for row, cells in figures.items()
                if in_time == any(cell['unit'] == TIME
                                  for cell in cells.values())}
        if rows:
            picture.heading(title)
        for row, cells in rows.items():
            picture.row(row, bars_of(cells, number))
    return picture.text()


def page(figures, number, about):
    """Return the page. @about: where the figures were measured"""
    title = 'virtio-rdma, rxe and TCP between two guests'
    return f'''<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font-family: sans-serif">
<h1>{title}</h1>
<p>{html.escape(about)}</p>
{svg(figures, number)}</body>
</html>
'''
