# SPDX-License-Identifier: GPL-2.0-or-later
"""librpma in guest 1, whose adapter has faults: the program is told of the
completion that has failed."""
from lab import unpacked
from lab.faults import fault
from lab.pair import address
from lab.paths import GUEST_TESTS, LabError
from lab.programs import build, cm_exchange

PORT = 7205
LATE = 400                      # ms


def program():
    """The command rpma_verify."""
    root = unpacked.tree('librpma', ('librpma0', 'librpma-dev'))
    found = sorted(root.glob('usr/lib/*/librpma.so'))
    if not found:
        raise LabError(f'no librpma below {root}')
    binary = build('rpma_verify', [GUEST_TESTS / 'rpma' / 'rpma_verify.c'],
                   f'-I{root}/usr/include', f'-L{found[0].parent}', '-lrpma')
    return f'{unpacked.inside(root)} {binary}'


def run(bench):
    command = f'{program()} {address(2)} {PORT}'
    return cm_exchange(bench.two, bench.one, command, f'{command} go',
                       listener='rpma_verify')


def test_faults(bench):
    for kind, arguments, fails in (
            ('completion-error', {'opcode': 'rdma-write',
                                  'status': 'rem-access-err'}, True),
            ('remote-access', {'opcode': 'rdma-read'}, True),
            ('completion-delay', {'opcode': 'rdma-read', 'delay': LATE},
             False)):
        with fault(bench.one, kind, **arguments) as made:
            result = run(bench)
            assert made.hits == 1, f'{made.info}\n{result}'
        assert result.client.ok != fails, f'{kind}: {result}'
        bench.note(f'{kind}: {result.client.out.strip().splitlines()[-1]}')
    assert run(bench).ok
