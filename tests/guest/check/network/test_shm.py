# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests of one host whose adapters send frames by shared memory."""
import contextlib
import re
import time

from guestkit.adapter import address
from lab.programs import PORT, cm_exchange
from lab.runner import Skip, ends_guests, port_counters, slow
from lab.wire import by_memory

GUESTS = {'link': 'shm'}
SECONDS = 100


ATTEMPTS = 5


class Frames:
    """Frames that went by memory since the object was made."""

    def __init__(self, bench):
        self.bench = bench
        self.before = [by_memory(vm) for vm in bench.pair.vms]
        self.all_before = self.sent_by_any_way()

    def sent_by_any_way(self):
        return [port_counters(vm, self.bench.device(vm))
                ['hw_counters/tx_packets'] for vm in self.bench.pair.vms]

    def by_guest(self):
        """Return (sent, received) of each guest."""
        return [tuple(now - old for now, old in zip(by_memory(vm), before))
                for vm, before in zip(self.bench.pair.vms, self.before)]

    def on_netdev(self):
        """Return the number of frames that each guest has sent by its
        netdev."""
        return [now - old - went for now, old, (went, _) in zip(
            self.sent_by_any_way(), self.all_before, self.by_guest())]


def meet(bench, family):
    """Wait until the ports are connected; the first frames use the netdev."""
    frames = Frames(bench)
    for _ in range(ATTEMPTS):
        bench.verify('-s 64 -n 16', family)
        if all(sent and got for sent, got in frames.by_guest()):
            return
    raise AssertionError(f'the ports do not meet: {frames.by_guest()}')


def require_memory(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe sends by its netdev')


def verify(bench, options, family=4):
    """Run rdma_verify; no frame may use the netdev. If the host stops a guest
    for so long that its port is cut off, run it once more and ignore the
    failure: frames by memory and by the netdev overtake each other, so that UC
    and UD lose messages."""
    require_memory(bench)
    for _ in range(ATTEMPTS):
        meet(bench, family)
        frames, failure = Frames(bench), None
        try:
            bench.verify(options, family)
        except AssertionError as e:
            failure = e
        on_netdev = frames.on_netdev()
        if not any(on_netdev):
            if failure:
                raise failure
            here, there = frames.by_guest()
            assert here[0] > 300 and here == there[::-1], (here, there)
            return
    raise AssertionError(f'by the netdev: {on_netdev} frames\n{failure}')


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


# Loss of frames

STOPS = 6               # the least number; stops go on until a frame is lost
MOST_STOPS = 60
LOSS = {'drop': 100, 'dup': 100, 'reorder': 100}      # of 10000, each way


def await_frames(bench, jobs):
    """Wait for some hundred frames by memory; the time depends on the
    machine's load."""
    frames, end = Frames(bench), time.monotonic() + 60
    while sum(sent for sent, _ in frames.by_guest()) < 300:
        for job in jobs:
            assert job.alive(), f'ended: {job.peek()}'
        assert time.monotonic() < end, f'{frames.by_guest()} by memory'
        time.sleep(0.05)


@contextlib.contextmanager
def lossy_netdev(bench):
    for seed, vm in enumerate(bench.pair.vms, 1):
        vm.qmp('object-add', **{'qom-type': 'filter-impair', 'id': 'loss',
                                'netdev': 'n0', 'seed': seed, **LOSS})
    yield
    for vm in bench.pair.vms:
        vm.qmp('object-del', id='loss')


def retransmits(bench):
    return sum(port_counters(vm, bench.device(vm))['hw_counters/retransmits']
               for vm in bench.pair.vms)


def verify_while_guests_stop(bench, options):
    """Frames in the memory of a stopped guest are lost, and so are frames by
    the netdev until the guest continues."""
    require_memory(bench)
    before, stops = retransmits(bench), 0
    server, client = bench.verify_commands(
        f'-r 1000000 -T 300 -V {options}')
    jobs = bench.two.spawn(server, PORT), bench.one.spawn(f'exec {client}')
    while stops < STOPS or retransmits(bench) == before:
        assert stops < MOST_STOPS, 'nothing is lost'
        await_frames(bench, jobs)
        vm = bench.pair.vms[stops % 2]
        vm.qmp('stop')
        time.sleep(0.2)
        vm.qmp('cont')
        stops += 1
    await_frames(bench, jobs)
    jobs[1].kill(15)
    for job in reversed(jobs):
        result = job.wait(60)
        assert result.ok and '\nOK: ' in '\n' + result.out, str(result)
        assert int(re.search(r'(\d+) rounds', result.out)[1]) >= 1


@slow
def test_every_operation_while_guests_stop_and_go_on(bench):
    verify_while_guests_stop(bench, '-s 16384 -n 64 -q 4 -e')


def test_every_operation_between_memory_and_a_lossy_netdev(bench):
    with lossy_netdev(bench):
        verify_while_guests_stop(bench, '-k 15 -s 16384 -n 64 -q 2 -R 2')


@ends_guests
def test_a_qemu_that_is_killed_breaks_connections_and_comes_back(bench):
    require_memory(bench)
    server, client = bench.verify_commands('-s 16384 -n 32 -r 0 -V -q 2')
    jobs = bench.two.spawn(server, PORT), bench.one.spawn(client)
    await_frames(bench, jobs)
    bench.two.kill()
    result = jobs[1].wait(60)
    assert result.ok and 'BROKEN as expected' in result.out, str(result)
    bench.restart_two()
    verify(bench, '-s 16384 -n 256 -q 2 -V')
