# SPDX-License-Identifier: GPL-2.0-or-later
"""A fast part of `make check-verbs`: rxe of User-mode Linux by rdma-verbs.
Guest 1 is nested in it, guest 2 is its peer."""
from guestkit.stack import Rxe
from lab.nested import NestedPair, on_rxe
from lab.qtests import run_sample

PAIR = NestedPair
GUESTS = {'devices': on_rxe}
SECONDS = 40


def test_pingpong_with_a_peer_of_the_host(bench):
    bench.exchange('ibv_rc_pingpong -e -n 20', 'ibv_rc_pingpong -e -n 20',
                   timeout=180)


def test_the_device_passes_its_own_tests_there(bench):
    host = bench.pair.host
    run_sample(bench, host, Rxe().find(host))
