# SPDX-License-Identifier: GPL-2.0-or-later
"""pvrdma and vmxnet3, served to guests that have nothing of this project."""
from lab import pvrdma, stock
from lab.stock import perftest, pingpong
from lab.vmm import ServedPair

STACK = pvrdma.STACK
SECONDS = 60


def PAIR(tag, **options):   # pylint: disable=invalid-name
    pvrdma.prepare()
    return ServedPair(tag, adapter=STACK, **options)


def test_ibv_rc_pingpong(bench):
    pingpong(bench, 'ibv_rc_pingpong')
    pingpong(bench, 'ibv_rc_pingpong', '-e')


def test_bandwidth(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-s 65536 -n 100')


def test_rping_over_both_families_and_both_ways(bench):
    stock.rping(bench)
