# SPDX-License-Identifier: GPL-2.0-or-later
"""An adapter that fails on demand; `make check-faults` has more programs and
faults."""
from lab.faults import fault
from lab.programs import exchange
from lab.runner import Skip


def test_an_error_and_a_queue_pair_that_is_stuck(bench):
    if bench.stack == 'rxe':
        raise Skip('QEMU has no information about rxe')
    commands = bench.verify_commands('-s 4096 -n 32 -r 1 -V')
    with fault(bench.one, 'completion-error', opcode='rdma-write', after=2,
               status='rnr-retry-exc-err') as made:
        result = exchange(bench.two, bench.one, *commands)
        assert made.hits == 1, made.info
    assert not result.client.ok, str(result)
    assert 'RNR retry counter exceeded' in result.client.out, str(result)
    with fault(bench.one, 'qp-stuck', after=5, duration=300) as made:
        bench.verify('-s 4096 -n 32 -r 1 -V')
        assert made.hits == 1, made.info
