# SPDX-License-Identifier: GPL-2.0-or-later
"""Traffic of which each byte is verified while something happens to its
guests."""
import re
import time
from contextlib import contextmanager

# 2.1 s, seven times: guests have to wait for a busy machine.
PATIENCE = '-k 19'


def rounds(job):
    """How many rounds rdma_verify has completed, by what it says."""
    return int(re.search(r'(\d+) rounds', job.out)[1])


@contextmanager
def verified_traffic(bench, options):
    """rdma_verify runs meanwhile, and has to end well."""
    server, client = bench.verify_commands(
        f'{PATIENCE} -r 1000000 -T 600 -V {options}')
    jobs = bench.two.spawn(server, 18515), bench.one.spawn(f'exec {client}')
    time.sleep(1)
    yield
    for job in jobs:
        assert job.alive(), f'ended early: {job.peek()}'
    jobs[1].kill(15)
    for job in reversed(jobs):
        result = job.wait(60)
        assert result.ok and '\nOK: ' in '\n' + result.out, str(result)
        assert rounds(result) >= 2, str(result)
