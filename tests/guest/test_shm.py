# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of one host whose adapters send by shared memory."""
from lab.pair import address
from lab.programs import cm_exchange
from lab.runner import Skip
from lab.wire import by_memory

GUESTS = {'link': 'shm'}


ATTEMPTS = 5


class Frames:
    """What has gone by memory since this was made."""

    def __init__(self, bench):
        self.bench = bench
        self.before = [by_memory(vm) for vm in bench.pair.vms]
        self.all_before = self.sent_by_any_way()

    def sent_by_any_way(self):
        return self.bench.counters()['hw_counters/tx_packets']

    def by_guest(self):
        """(sent, received) of each."""
        return [tuple(now - old for now, old in zip(by_memory(vm), before))
                for vm, before in zip(self.bench.pair.vms, self.before)]

    def sent(self):
        """By guest 1, by any way."""
        return self.sent_by_any_way() - self.all_before


def meet(bench, family):
    """The first frames take the netdev, until the ports have met."""
    frames = Frames(bench)
    for _ in range(ATTEMPTS):
        bench.verify('-s 64 -n 16', family)
        if all(sent and got for sent, got in frames.by_guest()):
            return
    raise AssertionError(f'the ports do not meet: {frames.by_guest()}')


def verify(bench, options, family=4):
    """Run rdma_verify: no frame may take the netdev. Where the host gives a
    guest no time for so long that its port is cut off, once more."""
    if bench.stack == 'rxe':
        raise Skip('rxe sends by its netdev')
    for _ in range(ATTEMPTS):
        meet(bench, family)
        frames = Frames(bench)
        bench.verify(options, family)
        here, there = frames.by_guest()
        if here[0] == frames.sent():
            assert here[0] > 300 and here == there[::-1], (here, there)
            return
    raise AssertionError(f'{here[0]} of {frames.sent()} by memory')


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
