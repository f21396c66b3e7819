# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of programs in guests whose adapters are in another process. The test
files of each kind of server import these tests."""
from . import nvme, stock
from .stock import perftest, pingpong


def test_ibv_rc_pingpong(bench):
    pingpong(bench, 'ibv_rc_pingpong')
    pingpong(bench, 'ibv_rc_pingpong', '-e')


def test_ibv_ud_pingpong(bench):
    pingpong(bench, 'ibv_ud_pingpong', '-s 1024')
    pingpong(bench, 'ibv_ud_pingpong', '-s 2048 -e')


def test_ibv_srq_pingpong(bench):
    pingpong(bench, 'ibv_srq_pingpong', '-e')


def test_bandwidth_of_every_operation(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-s 65536 -n 200')
    perftest(bench, 'ib_send_bw', '-e -s 4096 -n 200')


def test_latency(bench):
    for tool in 'ib_send_lat', 'ib_write_lat':
        perftest(bench, tool, '-s 64 -n 500')


def test_rping_over_both_families_and_both_ways(bench):
    stock.rping(bench)


def test_ucmatose_connects_many_at_once(bench):
    stock.ucmatose(bench)


def test_every_operation_arrives_as_it_was_sent(bench):
    for family in (4, 6):
        bench.verify('-s 65536 -n 64 -r 2 -V', family=family)
    bench.verify('-t ud -s 1024 -n 32 -r 2 -V -R 64')


def test_a_disk_of_nvme(bench):
    nvme.use_disk(bench)
