# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 1 has pvrdma. It runs in User-mode Linux, and uses its rxe by
rdma-verbs. Guest 2 has virtio-rdma on rdma-roce."""
from lab import pvrdma
from lab.stock import perftest, pingpong

PAIR, STACK, SECOND = pvrdma.nested_pair, pvrdma.STACK, 'virtio-rdma'
SECONDS = 90


def test_pingpong_with_a_peer_of_the_host(bench):
    pingpong(bench, 'ibv_rc_pingpong', '-e', 100)
    pingpong(bench, 'ibv_ud_pingpong', '-s 1024', 100)


def test_perftest_of_each_operation(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-s 4096 -n 50')
    for kind in 'FETCH_AND_ADD', 'CMP_AND_SWAP':
        perftest(bench, 'ib_atomic_bw', f'-A {kind} -n 50')


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 16 -r 1 -V')
