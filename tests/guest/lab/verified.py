# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic that verifies each byte while a test does something to its
guests."""
import re
import time
from contextlib import contextmanager

from .runner import Skip

# An ACK timeout of 2.1 s, with seven retries: the other guests of the machine
# take processor time, too.
PATIENCE = '-k 19'


def wait_for_more(job, count, than, seconds=60):
    end = time.monotonic() + seconds
    while count(job) <= than:
        assert time.monotonic() < end and job.alive(), \
            job.peek().out[-2000:]
        time.sleep(0.05)


def rounds_done(job):
    """Return the number of rounds that a running rdma_verify has verified."""
    numbers = re.findall(r'^round (\d+) done$', job.peek().out, re.M)
    return int(numbers[-1]) if numbers else 0


def rounds(job):
    """Return the number of rounds that rdma_verify has completed, from its
    output."""
    return int(re.search(r'(\d+) rounds', job.out)[1])


def require_alive(jobs, when):
    for job in jobs:
        assert job.alive(), f'ended {when}: {job.peek()}'


def _end(jobs):
    """End the client, and with it the server. Return both results."""
    jobs[1].kill(15)
    return [job.wait(60) for job in reversed(jobs)]


@contextmanager
def verified_traffic(bench, options):
    """Run rdma_verify during the block. It must succeed. Yield its jobs:
    (server, client)."""
    server, client = bench.verify_commands(
        f'{PATIENCE} -r 1000000 -T 600 -V {options}')
    jobs = bench.two.spawn(server, 18515), bench.one.spawn(f'exec {client}')
    wait_for_more(jobs[1], rounds_done, 0)
    try:
        yield jobs
    except Skip:
        _end(jobs)
        raise
    require_alive(jobs, 'early')
    wait_for_more(jobs[1], rounds_done, rounds_done(jobs[1]))
    for result in _end(jobs):
        assert result.ok and '\nOK: ' in '\n' + result.out, str(result)
        assert rounds(result) >= 2, str(result)
