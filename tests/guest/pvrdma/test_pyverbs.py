# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests on pvrdma."""
from lab import pvrdma, pyverbs

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'smp': 2}


def test_verbs(bench):
    pyverbs.prepare()
    results = pyverbs.run_in(bench.one, bench.stacks[bench.one])
    bench.note(pyverbs.summary(results))
    bad = pyverbs.failures(results)
    assert not bad, '\n'.join(map(str, bad))
