# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests, but for those of RDMA CM, on the device alone;
`make check-pyverbs` runs all of them, beside rxe."""
from lab import pyverbs

GUESTS = {'smp': 2}
SECONDS = 60
# What an earlier run had passed: no test may vanish into the skipped ones.
PASSED = 85


def test_verbs(bench):
    pyverbs.prepare()
    results = pyverbs.run_in(bench.one, bench.stacks[bench.one], cm=False)
    bad = pyverbs.failures(results)
    if bench.stack != 'rxe':
        passed = pyverbs.counts(results)[0]
        assert passed >= PASSED, \
            f'only {passed} pass: {pyverbs.summary(results)}'
    assert not bad, '\n'.join(map(str, bad))
