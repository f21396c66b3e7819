# SPDX-License-Identifier: GPL-2.0-or-later
"""librpma in guest 1, whose adapter has faults: librpma reports the failed
completion to the program."""
from lab import librpma
from lab.faults import fault

PORT = 7205
LATE = 400                      # ms


def test_faults(bench):
    for kind, arguments, fails in (
            ('completion-error', {'opcode': 'rdma-write',
                                  'status': 'rem-access-err'}, True),
            ('remote-access', {'opcode': 'rdma-read'}, True),
            ('completion-delay', {'opcode': 'rdma-read', 'delay': LATE},
             False)):
        with fault(bench.one, kind, **arguments) as made:
            result = librpma.verify(bench, PORT)
            assert made.hits == 1, f'{made.info}\n{result}'
        assert result.client.ok != fails, f'{kind}: {result}'
        bench.note(f'{kind}: {result.client.out.strip().splitlines()[-1]}')
    assert librpma.verify(bench, PORT).ok
