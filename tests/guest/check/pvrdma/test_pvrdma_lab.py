# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab up --adapter pvrdma."""
from lab import pvrdma
from lab.userlab import UserBench, UserLab, exchange

GUESTS = {'guests': 2, 'up': ('--adapter', 'pvrdma')}
SECONDS = 20


def lab(tag, **options):
    pvrdma.prepare()
    return UserLab(tag, **options)


PAIR, STACK, BENCH = lab, pvrdma.STACK, UserBench


def test_a_program_runs_in_its_guests(bench):
    command = 'ibv_rc_pingpong -c -d $VRDMA_DEVICE -g $VRDMA_GID'
    out = exchange(bench.lab, 1, 2, 18515, command, command)
    assert '1000 iters in' in out, out


def test_the_status_names_driver_and_adapter(bench):
    status = bench.lab.status()
    assert status['stack'] == 'pvrdma', status
    assert [guest['device'] for guest in status['guests']] == \
        ['vmw_pvrdma0'] * 2, status
    found = bench.lab.call('qmp', '1', 'query-rdma').out
    assert '"device": "rdma0"' in found, found
