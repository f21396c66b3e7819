# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic that verifies each byte while a test does something to its
guests."""
import re
from contextlib import contextmanager

from .runner import Skip
from .travel import PATIENCE, rounds_done, wait_for_more


def rounds(job):
    """Return the number of rounds that rdma_verify has completed, from its
    output."""
    return int(re.search(r'(\d+) rounds', job.out)[1])


def _end(jobs):
    """End the client, and with it the server. Return both results."""
    jobs[1].kill(15)
    return [job.wait(60) for job in reversed(jobs)]


@contextmanager
def verified_traffic(bench, options):
    """Run rdma_verify during the block. It must succeed."""
    server, client = bench.verify_commands(
        f'{PATIENCE} -r 1000000 -T 600 -V {options}')
    jobs = bench.two.spawn(server, 18515), bench.one.spawn(f'exec {client}')
    wait_for_more(jobs[1], rounds_done, 0)
    try:
        yield
    except Skip:
        _end(jobs)
        raise
    for job in jobs:
        assert job.alive(), f'ended early: {job.peek()}'
    wait_for_more(jobs[1], rounds_done, 1)
    for result in _end(jobs):
        assert result.ok and '\nOK: ' in '\n' + result.out, str(result)
        assert rounds(result) >= 2, str(result)
