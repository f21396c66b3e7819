# SPDX-License-Identifier: GPL-2.0-or-later
"""A part of `make check-verbs` that takes little time: rxe of User-mode Linux
by rdma-verbs. Guest 1 is nested in it, guest 2 is its peer."""
from lab import qtests
from lab.nested import NestedPair, on_rxe
from lab.stack import Rxe

PAIR = NestedPair
GUESTS = {'devices': on_rxe}
SECONDS = 40

SAMPLE = ('/hub/(rc/(send|write|read|atomics|inline)|uc/operations|'
          'mw/each-operation|srq/two-qps-share|mr-table/levels|'
          'error/recovery|ud/inline)$')


def test_pingpong_with_a_peer_of_the_host(bench):
    bench.exchange('ibv_rc_pingpong -e -n 20', 'ibv_rc_pingpong -e -n 20',
                   timeout=180)


def test_the_device_passes_its_own_tests_there(bench):
    host = bench.pair.host
    tests = qtests.Selection(qtests.PROGRAMS, SAMPLE)
    lines = qtests.run(host, tests, 600, **{qtests.IBDEV: Rxe().find(host)})
    failed = [line for line in lines if line.startswith('not ok')]
    assert not failed, '\n'.join(lines)
    bench.note(f'{sum(line.startswith("ok") for line in lines)} of them')
