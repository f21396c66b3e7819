# SPDX-License-Identifier: GPL-2.0-or-later
"""librpma: a program that writes, flushes and reads what a region of the other
guest holds; its atomic writes are WRITEs of 8 bytes."""
from lab import unpacked
from lab.pair import address
from lab.paths import GUEST_TESTS, LabError
from lab.programs import build, cm_exchange

PORT = 7204


def program():
    """The command rpma_verify."""
    root = unpacked.tree('librpma', ('librpma0', 'librpma-dev'))
    found = sorted(root.glob('usr/lib/*/librpma.so'))
    if not found:
        raise LabError(f'no librpma below {root}')
    binary = build('rpma_verify', [GUEST_TESTS / 'rpma' / 'rpma_verify.c'],
                   f'-I{root}/usr/include', f'-L{found[0].parent}', '-lrpma')
    return f'{unpacked.inside(root)} {binary}'


def test_write_flush_and_read(bench):
    command = f'{program()} {address(2)} {PORT}'
    result = cm_exchange(bench.two, bench.one, command, f'{command} go',
                         listener='rpma_verify')
    assert result.ok, str(result)
    for side in (result.client, result.server):
        assert 'rpma_verify: fine' in side.out, str(result)
