# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of the documentation: their programs and scripts, which tests run."""
import re

from guestkit.paths import TOP, LabError

DEVICES = TOP / 'docs' / 'system' / 'devices'


def listing(page, name):
    """Return the text of a file that a page shows under its name."""
    path = DEVICES / f'{page}.rst'
    text = path.read_text(encoding='utf-8')
    found = re.search(rf'^\.\. code-block:: \S+\n   :caption: '
                      rf'{re.escape(name)}\n\n((?:   .*\n|\n)+)', text, re.M)
    if not found:
        raise LabError(f'{path.name} shows no file {name}')
    lines = found.group(1).rstrip('\n').split('\n')
    return '\n'.join(line[3:] for line in lines) + '\n'
