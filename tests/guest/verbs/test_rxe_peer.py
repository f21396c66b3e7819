# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 1 runs in User-mode Linux and uses its rxe by rdma-verbs. Guest 2 has
Linux's rxe, and no part of this project."""
from lab.nested import NestedPair, on_rxe
from lab.perftest import ROW

PAIR = NestedPair
GUESTS = {'devices': on_rxe, 'peer_rdma': False}
SECOND = 'rxe'
SECONDS = 120


def perftest(bench, command):
    result = bench.exchange(command, command, '-d {} -x {}', timeout=120)
    assert ROW.search(result.client.out), str(result)


def test_pingpong_with_events_over_both_families(bench):
    for family in (4, 6):
        bench.exchange('ibv_rc_pingpong -e -c -n 100',
                       'ibv_rc_pingpong -e -c -n 100', family=family)


def test_pingpong_of_unreliable_services(bench):
    bench.exchange('ibv_uc_pingpong -e -c -n 100',
                   'ibv_uc_pingpong -e -c -n 100')
    bench.exchange('ibv_ud_pingpong -e -c -n 100 -s 1024',
                   'ibv_ud_pingpong -e -c -n 100 -s 1024')


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 16 -r 1 -V', timeout=120)


def test_uc_every_operation(bench):
    bench.verify('-t uc -s 4096 -n 16 -r 1 -V -R 64', timeout=120)


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1000 -n 32 -r 1 -V -R 64', timeout=120)


def test_perftest_sends_with_events(bench):
    perftest(bench, 'ib_send_bw -F -e -n 100 -s 16384')
    perftest(bench, 'ib_send_lat -F -e -n 100 -s 64')
