# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of programs that wait for completion events. The test files of each
kind of adapter import these tests."""


def test_rc_waits_for_events(bench):
    bench.verify('-s 4096 -n 64 -r 6 -V -e -q 2')


def test_rc_waits_for_events_in_its_own_guest(bench):
    for vm in bench.pair.vms:
        bench.verify('-s 4096 -n 64 -r 6 -V -e', server=vm, client=vm)


def test_ibv_rc_pingpong_with_events(bench):
    bench.exchange('ibv_rc_pingpong -e -c -n 2000',
                   'ibv_rc_pingpong -e -c -n 2000')
