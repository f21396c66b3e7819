# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests, except those of RDMA CM, in an arm64 guest."""
from check.programs.test_pyverbs import PASSED
from guestkit.arch import ARM64, NATIVE
from lab import pyverbs

GUESTS = {'archs': (ARM64, NATIVE), 'smp': 2}


def test_verbs(bench):
    pyverbs.prepare_foreign(ARM64)
    results = pyverbs.run_in(bench.one, bench.stacks[bench.one], cm=False)
    bench.note(pyverbs.summary(results))
    pyverbs.require(results, PASSED)
