# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock programs of rdma-core and perftest, with all that the provider of
pvrdma supports."""
from lab import pvrdma, stock
from lab.programs import PORT, perftest_cm_exchange
from lab.stock import perftest, pingpong

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'smp': 2}


def test_ibv_rc_pingpong(bench):
    pingpong(bench, 'ibv_rc_pingpong')
    pingpong(bench, 'ibv_rc_pingpong', '-e')
    pingpong(bench, 'ibv_rc_pingpong', '-s 262144 -m 4096', 50)


def test_ibv_ud_pingpong(bench):
    pingpong(bench, 'ibv_ud_pingpong', '-s 1024')
    pingpong(bench, 'ibv_ud_pingpong', '-s 2048 -e')


def test_ibv_srq_pingpong(bench):
    for options in '', '-e', '-q 1 -s 65536':
        pingpong(bench, 'ibv_srq_pingpong', options)


def test_bandwidth_of_every_size(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-a -n 5')


def test_bandwidth_both_ways_and_with_events(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-b -s 4096 -n 200')
    # perftest has no events for WRITE.
    for tool in 'ib_send_bw', 'ib_read_bw':
        perftest(bench, tool, '-e -s 4096 -n 200')


def test_bandwidth_of_four_queue_pairs(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-q 4 -s 65536 -n 100')


def test_bandwidth_with_a_shared_receive_queue(bench):
    perftest(bench, 'ib_send_bw', '--use-srq -q 2 -s 4096 -n 200')


def test_sends_of_datagrams(bench):
    for tool in 'ib_send_bw', 'ib_send_lat':
        perftest(bench, tool, '-c UD -s 2048 -n 200')


def test_latency_of_every_size(bench):
    for tool in 'ib_send_lat', 'ib_write_lat', 'ib_read_lat':
        perftest(bench, tool, '-a -n 5')


def test_atomics_of_both_kinds(bench):
    for kind in 'FETCH_AND_ADD', 'CMP_AND_SWAP':
        for tool in 'ib_atomic_bw', 'ib_atomic_lat':
            perftest(bench, tool, f'-A {kind} -n 200')


def test_perftest_through_the_connection_manager(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-R -s 4096 -n 100', perftest_cm_exchange)


def test_rping_over_both_families_and_both_ways(bench):
    stock.rping(bench)


def test_ucmatose_connects_many_at_once(bench):
    stock.ucmatose(bench)


def test_udaddy_resolves_and_sends_datagrams(bench):
    stock.udaddy(bench, (4,))


def test_the_provider_refuses_datagrams_to_global_ipv6_addresses(bench):
    """This is why other tests of datagrams use IPv4."""
    command = 'ibv_ud_pingpong ' + bench.where(bench.one, '-d {} -g {}', 6)
    server = bench.one.spawn(command, PORT)
    bench.one.run(f'{command} 127.0.0.1', 20)
    its = server.wait(10)
    assert 'Failed to create AH' in its.out, str(its)


def test_rdma_client_exchanges_a_message(bench):
    stock.rdma_client(bench)


def test_rstream_over_an_rsocket(bench):
    stock.rstream(bench)
