# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's librpma between two guests: a program writes, flushes and reads
what a region of the other guest holds."""
from guestkit.adapter import address
from guestkit.paths import LabError

from . import unpacked
from .places import PROGRAMS
from .programs import build, cm_exchange


def _command():
    root = unpacked.tree('librpma', ('librpma0', 'librpma-dev'))
    found = sorted(root.glob('usr/lib/*/librpma.so'))
    if not found:
        raise LabError(f'no librpma below {root}')
    binary = build('rpma_verify', [PROGRAMS / 'rpma_verify.c'],
                   f'-I{root}/usr/include', f'-L{found[0].parent}', '-lrpma')
    return f'{unpacked.inside(root)} {binary}'


def verify(bench, port):
    """Run rpma_verify: guest 2 listens at @port, and guest 1 connects. Return
    the Exchange."""
    command = f'{_command()} {address(2)} {port}'
    return cm_exchange(bench.two, bench.one, command, f'{command} go',
                       listener='rpma_verify')
