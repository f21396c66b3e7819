# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest's QEMU is killed, or its link is cut, during traffic."""
import os
import signal
import time

from guestkit.adapter import address
from lab.runner import Skip, ends_guests

SECONDS = 50


def retries(bench, count):
    """Return the option for a number of retries. rxe treats 7 as endless, so
    it gets at most 6."""
    return f'-y {min(count, 6) if bench.stack == "rxe" else count}'


def start_endless(bench, options):
    """Start rdma_verify without an end: (server job, client job), with traffic
    flowing."""
    server, client = bench.verify_commands(f'-r 0 -T 40 {options}')
    jobs = (bench.two.spawn(server, 18515), bench.one.spawn(client))
    jobs[1].wait_for('round 3 done', 60)
    return jobs


def check_survivor(bench, vm, job):
    """Require RETRY_EXC, each request flushed once, and a device that still
    works."""
    result = job.wait(60)
    assert result.ok and 'BROKEN as expected' in result.out, str(result)
    bench.verify('-s 8192 -n 32 -r 2 -V -q 2', server=vm, client=vm)


def test_a_process_that_dies_breaks_only_its_peer(bench):
    jobs = start_endless(bench, '-s 4096 -n 32 -V -q 2 ' +
                         retries(bench, 7))
    jobs[0].kill()
    jobs[0].wait(10)
    check_survivor(bench, bench.one, jobs[1])
    bench.verify('-s 4096 -n 32 -r 2 -V')


def test_the_port_follows_the_link(bench):
    device = bench.device(bench.one)

    def port_is(state):
        end = time.monotonic() + 10
        while True:
            text = bench.one.must('rdma link')
            if f'{device}/1 state {state} ' in text:
                return
            assert time.monotonic() < end, f'not {state}:\n{text}'
            time.sleep(0.1)

    bench.one.qmp('set_link', name='n0', up=False)
    port_is('DOWN')
    bench.one.qmp('set_link', name='n0', up=True)
    port_is('ACTIVE')
    bench.verify('-s 4096 -n 32 -r 1 -V')


def test_traffic_outlives_a_short_outage(bench):
    jobs = start_endless(bench, '-s 16384 -n 32 -V -q 2 -T 90')
    for _ in range(3):
        bench.one.qmp('set_link', name='n0', up=False)
        time.sleep(0.1)
        bench.one.qmp('set_link', name='n0', up=True)
        rounds = jobs[1].peek().out.count(' done')
        # The round that the outage interrupted, and one more
        jobs[1].wait_for(f'round {rounds + 2} done', 60)
    jobs[1].kill(signal.SIGTERM)
    for job in jobs:
        result = job.wait(30)
        assert result.ok and 'OK: ' in result.out and \
            'BROKEN' not in result.out, str(result)


def test_killing_the_server_leaves_the_client_working(bench):
    jobs = start_endless(bench, '-s 16384 -n 32 -V -q 4 ' +
                         retries(bench, 7))
    bench.two.kill()
    check_survivor(bench, bench.one, jobs[1])
    bench.restart_two()


def test_killing_a_server_that_does_not_read_leaves_the_client_working(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe treats seven retries as endless')
    command = 'ib_write_bw -F -s 65536 -D 60 -d {} -x {}'
    bench.two.spawn(bench.where(bench.two, command), 18515)
    before = bench.counters()['hw_counters/tx_packets']
    job = bench.one.spawn(f'{bench.where(bench.one, command)} {address(2)}')
    end = time.monotonic() + 30
    while bench.counters()['hw_counters/tx_packets'] < before + 1000:
        assert time.monotonic() < end, str(job.peek())
    # Fill the link, so that frames wait when it breaks.
    os.kill(bench.two.process.pid, signal.SIGSTOP)
    time.sleep(0.3)
    bench.two.kill()
    result = job.wait(30)
    assert result.rc and 'ompletion with error' in result.out, str(result)
    bench.verify('-s 8192 -n 32 -r 2 -V -q 2', server=bench.one,
                 client=bench.one)
    bench.restart_two()


@ends_guests
def test_killing_the_client_leaves_the_server_working(bench):
    jobs = start_endless(bench, '-s 16384 -n 32 -V -q 4 -e ' +
                         retries(bench, 4))
    bench.one.kill()
    check_survivor(bench, bench.two, jobs[0])
