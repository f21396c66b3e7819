# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab up --wire shm: links of adapters that use shared memory."""
from lab.userlab import UserBench, UserLab, exchange

GUESTS = {'guests': 2, 'up': ('--wire', 'shm')}
PAIR, BENCH = UserLab, UserBench
SECONDS = 60
PORT = 18515
PINGPONG = 'ibv_rc_pingpong -d $VRDMA_DEVICE -g $VRDMA_GID'


def frames(lab, guest):
    """Return how many frames a guest's adapter has sent by memory."""
    return int(lab.call('qmp', str(guest), 'qom-get', 'path=/objects/r0',
                        'property=shm-tx-frames').out)


def wait_for_state(lab, guest, state):
    lab.call('run', '-g', str(guest), '-t', '60', '--', 'sh', '-c',
             f'until grep {state} /sys/class/infiniband/$VRDMA_DEVICE/ports/1/'
             'state; do sleep 0.1; done')


def test_a_link_that_is_down_stops_traffic_by_memory(bench):
    lab = bench.lab
    before = frames(lab, 2)
    endless = f'{PINGPONG} -n 100000000'
    server = lab.begin('run', '-t', '100', '-g', '1', '--', 'sh', '-c',
                       endless)
    client = lab.begin('run', '-t', '100', '-g', '2', '--after', f'1:{PORT}',
                       '--', 'sh', '-c', f'{endless} guest1')
    while frames(lab, 2) < before + 100:
        assert client.poll() is None, client.communicate()
    lab.call('link', '2.1', 'down')
    try:
        out, err = client.communicate(timeout=100)
        assert 'transport retry counter exceeded' in out + err, out + err
        wait_for_state(lab, 2, 'DOWN')
        stopped = frames(lab, 2)
    finally:
        lab.call('link', '2.1', 'up')
        server.communicate(timeout=100)
    wait_for_state(lab, 2, 'ACTIVE')
    out = exchange(lab, 1, 2, PORT, PINGPONG, PINGPONG)
    assert '1000 iters in' in out, out
    assert frames(lab, 2) > stopped
