# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of guests during migrations, for tests. No program may notice more
than a pause. MOVES in the environment is the number of moves."""
import os
import re
import time

from guestkit.adapter import address

from .programs import wait_listening
from .runner import Skip
from .verified import require_alive, verified_traffic, wait_for_more

MOVES = int(os.environ.get('MOVES') or 2)


def require_device(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe is not a device of QEMU')


def verify_while(bench, move, options, moves=MOVES):
    """Move repeatedly during verified traffic."""
    require_device(bench)
    with verified_traffic(bench, options) as jobs:
        for i in range(moves):
            move(bench)
            require_alive(jobs, f'at move {i}')
            time.sleep(0.3)


# Programs that report their progress

def travel(bench, move, job, count):
    """Move repeatedly. After each move the job has to make progress beyond the
    work that may have been in flight."""
    wait_for_more(job, count, 0)
    for _ in range(MOVES):
        move(bench)
        wait_for_more(job, count, count(job) + 1)


def rates(job):
    """Return the number of intervals in which perftest moved data."""
    return len(re.findall(r'^\s*65536\s+[1-9]\d*\s.*\n', job.peek().out,
                          re.M))


def perftest_while(bench, move, tool):
    require_device(bench)
    command = f'exec stdbuf -oL {tool} -F --run_infinitely -D 1 -s 65536 ' \
        '-u 19 -d {} -x {}'
    server = bench.two.spawn(bench.where(bench.two, command), 18515)
    client = bench.one.spawn(
        f'{bench.where(bench.one, command)} {address(2)} 2>&1')
    travel(bench, move, client, rates)
    assert server.alive(), str(server.peek())
    for job in (client, server):
        job.kill(15)
        said = job.wait(20).out
        assert 'ompletion with error' not in said, said[-2000:]


def pings(job):
    """Return rping's number of pings, from the last whole line that it
    wrote."""
    out = job.peek().out
    numbers = re.findall(r'^ping data: rdma-ping-(\d+):.*\n', out, re.M)
    return int(numbers[-1]) if numbers else 0


def rping_while(bench, move):
    """Run rping, which compares the returned data, until the moves are
    over."""
    require_device(bench)
    serve = f'rping -s -a {address(2)} -V -S 10000'
    server = bench.two.spawn(f'exec {serve}')
    wait_listening(bench.two, serve)
    client = bench.one.spawn(
        f'stdbuf -oL rping -c -a {address(2)} -V -v -S 10000 2>&1 | '
        'stdbuf -oL cut -c 1-40')
    travel(bench, move, client, pings)
    client.kill(15)
    for job in (client, server):
        said = job.wait(20).out
        assert 'mismatch' not in said and 'completion' not in said, \
            said[-2000:]
