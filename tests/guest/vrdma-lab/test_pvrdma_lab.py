# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab up --adapter pvrdma, with two adapters in each guest."""
import json

from lab import pvrdma
from lab.perftest import ROW
from lab.userlab import UserBench, UserLab, exchange

GUESTS = {'guests': 2, 'up': ('--adapter', 'pvrdma', '--adapters', '2')}
SECONDS = 25


def lab(tag, **options):
    pvrdma.prepare()
    return UserLab(tag, **options)


PAIR, STACK, BENCH = lab, pvrdma.STACK, UserBench


def test_a_program_runs_on_each_adapter(bench):
    for number in (1, 2):
        # ibv_rc_pingpong fails if a busy host stops a guest for 1.8 s.
        command = f'ib_send_lat -F -u 20 -n 200 -d $VRDMA_DEVICE_{number} ' \
            f'-x $VRDMA_GID_{number}'
        out = exchange(bench.lab, 1, 2, 18515, command, command)
        assert ROW.search(out), out


def test_a_link_goes_down_and_up(bench):
    for state in ('DOWN', 'ACTIVE'):
        bench.lab.call('link', '2.2', 'down' if state == 'DOWN' else 'up')
        bench.lab.call('run', '-g', '2', '-t', '60', '--', 'sh', '-c',
                       f'until ibv_devinfo -d $VRDMA_DEVICE_2 | '
                       f'grep PORT_{state}; do sleep 0.1; done')


def test_the_status_names_driver_and_adapter(bench):
    status = bench.lab.status()
    assert status['stack'] == 'pvrdma', status
    assert [[adapter['device'] for adapter in guest['adapters']]
            for guest in status['guests']] == \
        [['vmw_pvrdma0', 'vmw_pvrdma1']] * 2, status
    found = json.loads(bench.lab.call('qmp', '1', 'query-rdma').out)
    assert [adapter['device'] for adapter in found] == ['rdma0', 'rdma1'], \
        found
