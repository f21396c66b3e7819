# SPDX-License-Identifier: GPL-2.0-or-later
"""RDMA CM of a nested guest whose host has no connection manager of its own:
rdma-verbs provides QP 1. Guest 1 is the nested one."""
from guestkit.adapter import address
from lab.nested import NestedPair, on_rxe
from lab.programs import cm_exchange

# As if these modules were not loaded
NO_CM = 'initcall_blacklist=ib_cm_init,cma_init,ucma_init'

PAIR = NestedPair
GUESTS = {'devices': on_rxe, 'host_append': NO_CM}
SECONDS = 60


def connect(bench, server_cmd, client_cmd, server):
    """Run a program on both sides and require success."""
    # RDMA CM must not resolve the address by the NIC for TCP.
    bench.one.run(f'ip route del {address(2)} dev eth1')
    client = bench.one if server is bench.two else bench.two
    result = cm_exchange(server, client, server_cmd, client_cmd, 60)
    assert result.ok, str(result)
    return result.client


def test_rping_over_both_families_and_both_ways(bench):
    for server, index in ((bench.two, 2), (bench.one, 1)):
        for family in (4, 6):
            host = address(index, family)
            its = connect(bench, f'rping -s -a {host} -C 5 -V',
                          f'rping -c -a {host} -C 5 -V -v', server)
            assert its.out.count('ping data') == 5, str(its)


def test_ucmatose_connects_many_at_once(bench):
    for server, index in ((bench.two, 2), (bench.one, 1)):
        host = address(index)
        connect(bench, f'ucmatose -b {host} -c 10 -C 5 -S 1024',
                f'ucmatose -s {host} -c 10 -C 5 -S 1024', server)


def test_reloaded_driver_connects_again(bench):
    stack = bench.stacks[bench.one]
    stack.unload(bench.one)
    stack.up(bench.one)
    host = address(2, 6)
    connect(bench, f'rping -s -a {host} -C 5 -V',
            f'rping -c -a {host} -C 5 -V', bench.two)


def test_a_refused_connection_says_so(bench):
    its = bench.one.run(f'rping -c -a {address(2, 6)} -C 1 -v', 30)
    assert 'REJECTED' in its.out, str(its)
    assert its.rc not in (0, None), str(its)
    assert 'ping data' not in its.out, str(its)
