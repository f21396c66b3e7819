# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that send by shared memory migrate to QEMUs that do not, and back,
during verified traffic. MOVES in the environment is the number of moves, as in
test_migration.py."""
import os
import time

from lab.moving import MovingPair
from lab.runner import Skip, slow
from lab.verified import require_alive, verified_traffic
from lab.wire import by_memory

PAIR = MovingPair
GUESTS = {'smp': 2, 'shm': True}
SECONDS = 30
MOVES = 10 if os.environ.get('MOVES') else 2


def both_ways(bench):
    """Return the frames that went by memory since the guests' QEMUs
    started."""
    return sum(sum(by_memory(vm)) for vm in bench.pair.vms)


def await_frames(bench, jobs, when):
    """Wait for some hundred frames by memory; the time depends on the
    machine's load."""
    before, end = both_ways(bench), time.monotonic() + 60
    while both_ways(bench) - before < 100:
        require_alive(jobs, when)
        assert time.monotonic() < end, f'no frames by memory {when}'
        time.sleep(0.1)


def verify_while(bench, move, options):
    if bench.stack == 'rxe':
        raise Skip('rxe sends by its netdev')
    with verified_traffic(bench, options) as jobs:
        await_frames(bench, jobs, 'at first')
        for i in range(MOVES):
            move(bench)
            # Every second move ends without shared memory.
            if i % 2:
                await_frames(bench, jobs, f'after move {i}')
                continue
            before = both_ways(bench)
            time.sleep(1.5)
            require_alive(jobs, f'at move {i}')
            came = both_ways(bench) - before
            assert not came, f'move {i}: {came} frames by memory'


@slow
def test_one_guest_moves_to_a_netdev_and_back(bench):
    verify_while(bench, lambda bench: bench.one.move(),
                 '-s 16384 -n 64 -q 4 -e')


@slow
def test_both_guests_move_to_a_netdev_and_back(bench):
    verify_while(bench, lambda bench: bench.pair.move_both(),
                 '-s 16384 -n 64 -q 2 -e')
