# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA CM between two guests: the programs that come with librdmacm."""
from guestkit.adapter import address
from lab import stock
from lab.stock import connect

# Two vCPUs: one for a program that polls, one for the connection manager.
GUESTS = {'smp': 2}


def test_rping_over_both_families_and_both_ways(bench):
    stock.rping(bench)


def test_rping_with_large_messages(bench):
    host = address(2)
    connect(bench, f'rping -s -a {host} -C 10 -V -S 60000',
            f'rping -c -a {host} -C 10 -V -S 60000')


def test_ucmatose_connects_many_at_once(bench):
    stock.ucmatose(bench)


def test_udaddy_resolves_and_sends_datagrams(bench):
    stock.udaddy(bench)


def test_rdma_client_exchanges_a_message(bench):
    stock.rdma_client(bench)


def test_rdma_xclient_sends_inline_without_asking_for_room(bench):
    # The server listens at IPv4 addresses only.
    host = address(2)
    for mode in ('', ' -c r'):
        connect(bench, f'rdma_xserver{mode}', f'rdma_xclient -s {host}{mode}')


def test_rdma_xclient_is_refused_queue_pairs_of_xrc(bench):
    its = bench.one.run(f'rdma_xclient -s {address(2)} -c x', 30)
    assert 'rdma_create_ep: Operation not supported' in its.out, str(its)


def test_rstream_over_an_rsocket(bench):
    stock.rstream(bench)


def test_connections_leave_nothing_behind(bench):
    before = bench.resources()
    host = address(2)
    for _ in range(5):
        connect(bench, f'ucmatose -b {host} -c 10 -C 2',
                f'ucmatose -s {host} -c 10 -C 2')
    bench.nothing_left(before)


def test_a_refused_connection_says_so(bench):
    its = bench.one.run(f'rping -c -a {address(2)} -C 1 -v', 30)
    assert its.rc not in (0, None), str(its)
    assert 'ping data' not in its.out, str(its)
