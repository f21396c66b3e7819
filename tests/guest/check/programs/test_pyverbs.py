# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests, except those of RDMA CM, on the device only. `make
check-pyverbs` runs all of them, on rxe as well."""
import re

from lab import pyverbs
from lab.runner import Skip, slow

GUESTS = {'smp': 2}
SECONDS = 60
# At least so many have to pass, so that no test is skipped unnoticed.
PASSED = 91
# All tests except those of other devices, or of features that this one lacks
OWN = (r'^tests\.test_(?!mlx5|efa|odp|flow|parent_domain|tag_matching|rss|'
       r'cuda)')


@slow
def test_verbs(bench):
    pyverbs.prepare()
    results = pyverbs.run_in(bench.one, bench.stacks[bench.one], cm=False,
                             pattern=OWN)
    pyverbs.require(results, 0 if bench.stack == 'rxe' else PASSED)


@slow
def test_their_runner_finds_the_nic(bench):
    """run_tests.py finds the address in device/net, and skips tests without
    it."""
    if bench.stack == 'rxe':
        raise Skip('rxe is not a PCI function')
    pyverbs.prepare()
    vm = bench.one
    done = vm.run(f'cd {pyverbs.tests()} && /usr/bin/python3 -B run_tests.py '
                  f'--dev {bench.device(vm)} --port 1 --gid {bench.gid(vm)} '
                  '-v test_rdmacm.CMTestCase.test_rdmacm_sync_traffic '
                  'test_qp.QPTest.test_query_rc_qp', 90)
    said = done.out
    assert done.ok and re.search(r'^OK$', said, re.M), str(done)
