# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of one host whose adapters send by shared memory."""
from lab.pair import address, by_memory
from lab.programs import cm_exchange
from lab.runner import Skip

GUESTS = {'link': 'shm'}


def verify(bench, options, family=4):
    """Run rdma_verify: hardly a frame may take the netdev."""
    if bench.stack == 'rxe':
        raise Skip('rxe sends by its netdev')
    before = [by_memory(vm) for vm in bench.pair.vms]
    counted = bench.counters()['hw_counters/tx_packets']
    bench.verify(options, family)
    sent, got = (after - old for after, old in
                 zip(by_memory(bench.one), before[0]))
    counted = bench.counters()['hw_counters/tx_packets'] - counted
    # Until the ports have met; then all go one way.
    assert counted - 300 <= sent <= counted, (sent, counted)
    far_sent, far_got = (after - old for after, old in
                         zip(by_memory(bench.two), before[1]))
    assert (sent, got) == (far_got, far_sent), (sent, got, far_got, far_sent)
    assert sent > 300, sent


def test_every_operation(bench):
    verify(bench, '-s 16384 -n 256 -q 4 -V')


def test_every_operation_on_ipv6(bench):
    verify(bench, '-s 16384 -n 256 -q 4 -V', family=6)


def test_large_messages(bench):
    verify(bench, '-s 1048576 -n 16 -q 2 -m 4096 -r 2')


def test_unreliable_connections(bench):
    verify(bench, '-t uc -s 16384 -n 512 -q 2 -R 512')


def test_datagrams(bench):
    verify(bench, '-t ud -s 1024 -n 512 -q 2 -R 512')


def test_connections_by_rdma_cm(bench):
    options = f'-a {address(2)} -C 50 -v -V -S 5000'
    result = cm_exchange(bench.two, bench.one, f'rping -s {options}',
                         f'rping -c {options}')
    assert result.ok, str(result)
