# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver with a faulty device, beside a correct one. The driver must not
crash, wait for ever or leak memory, and has to report the fault.

The faulty device is a module of the guest, programs/broken. Its user in the
kernel posts work requests to it.
"""
import os
import re
import time

from lab import builds
from lab.leaks import Watch
from lab.runner import Skip, slow

# The kernel fills all of its memory with a pattern when it boots.
GUESTS = {'smp': 2, 'accel': ',tb-size=32', 'mem': '512M',
          'append': 'slub_debug=FZP,kmalloc-* page_poison=1 oops=panic '
                    'sysctl.kernel.hung_task_timeout_secs=30'}
SECONDS = 80
ROUNDS = int(os.environ.get('BROKEN_ROUNDS', 1))
SEED = int(os.environ.get('BROKEN_SEED', 1))
# Bits of the parameter faults, as in broken.h
FAULTS = {name: 1 << bit for bit, name in enumerate((
    'silent', 'short', 'status', 'response', 'cqe', 'twice', 'used id',
    'used idx', 'event', 'gone', 'needs reset', 'no vq reset', 'keep',
    'endless', 'no vqs', 'config 0', 'config max', 'config any',
    'port max'))}
ANYTHING = ('short', 'status', 'response', 'cqe', 'twice', 'used id',
            'used idx', 'event', 'no vq reset')
TIMEOUT = '/sys/module/virtio_rdma/parameters/command_timeout'
# Seconds
PATIENCE = 30
WRONG_CQE = r'broken device: CQ \d+: QP \d+ has no request'
# KiB by which memory may vary without a leak
KERNEL_NOISE = 4096


def wait_for(vm, start, pattern):
    """Wait until the kernel log after position @start matches a pattern."""
    end = time.monotonic() + PATIENCE
    while not re.search(pattern, vm.kernel_log()[start:]):
        assert time.monotonic() < end, \
            f'no {pattern!r} in:\n{vm.said[start:]}'
        time.sleep(0.1)


def trial(bench, *faults, after=0, one_in=1, seed=SEED, seconds=1,
          direct=False, until=None):
    """Have the driver use a device with these faults for some seconds, or
    until the kernel log matches @until. Return (kernel log, number of
    completed work requests)."""
    if bench.stack == 'rxe':
        raise Skip('rxe is not a device of QEMU')
    vm = bench.one
    module = builds.broken_device(vm.kernel.series)
    mask = sum(FAULTS[name] for name in faults)
    vm.kernel_log()
    start = len(vm.said)
    vm.must(f'echo 1 > {TIMEOUT} && insmod {module} faults={mask} '
            f'after={after} one_in={one_in} seed={seed} '
            f'direct={int(direct)}', 60)
    if until:
        wait_for(vm, start, until)
    else:
        time.sleep(seconds)
    vm.must(f'rmmod broken_device && echo 60 > {TIMEOUT}', 60)
    said = vm.kernel_log()[start:]
    assert not vm.complaints(), \
        f'{faults} after {after}, one in {one_in}, seed {seed}:\n{said}'
    done = re.search(r'(\d+) work requests completed', said)
    return said, int(done.group(1))


def test_a_device_that_does_right(bench):
    said, done = trial(bench, seconds=2)
    bench.note(f'{done} work requests')
    assert done > 100, said
    assert 'broken device' not in said, said


def test_direct_completion_queues_of_a_device_that_does_right(bench):
    said, done = trial(bench, direct=True, seconds=2)
    bench.note(f'{done} work requests')
    assert done > 100, said
    assert 'broken device' not in said, said


def test_direct_completion_queues_with_anything_in_them(bench):
    for fault in ('cqe', 'twice'):
        trial(bench, fault, after=200, one_in=8, direct=True,
              until=WRONG_CQE)


@slow
def test_event_queues_with_anything_in_them(bench):
    """The driver ignores events of CQs that were not armed or do not exist.
    Their size has to be right."""
    _, done = trial(bench, 'event', direct=True, one_in=2, after=100,
                    seconds=2)
    bench.note(f'{done} work requests')
    trial(bench, 'event', 'short', after=200, direct=True, one_in=2,
          until='broken device')
    for fault in ('used id', 'used idx', 'response', 'status', 'silent',
                  'gone', 'needs reset', 'no vq reset'):
        for seed in range(SEED, SEED + ROUNDS):
            trial(bench, fault, after=17 * seed % 300, one_in=8, seed=seed,
                  direct=True)


def test_commands_without_a_response(bench):
    for after in (0, 3, 40):
        trial(bench, 'silent', after=after, until='no response to command')


def test_completions_without_a_request(bench):
    trial(bench, 'cqe', after=200, one_in=8, until=WRONG_CQE)


def test_completions_that_come_twice(bench):
    trial(bench, 'twice', after=200, until=WRONG_CQE)


def test_completions_without_end(bench):
    """A poll ends although the device fills each buffer at once."""
    trial(bench, 'endless', after=200,
          until=r'broken device: CQ \d+: more than \d+ completions')


def test_buffers_that_are_not_the_next(bench):
    for fault in ('used id', 'used idx'):
        trial(bench, fault, after=200, one_in=8,
              until='broken device|is not a head|out of range')


def test_buffers_of_completed_requests_that_are_kept(bench):
    trial(bench, 'keep', after=200,
          until=r'broken device: the device keeps \d+ of \d+ buffers')


def test_responses_that_are_wrong(bench):
    for fault in ('short', 'status', 'response'):
        for seed in range(SEED, SEED + ROUNDS):
            trial(bench, fault, after=seed % 50, one_in=3, seed=seed)


def test_events_of_anything(bench):
    for seed in range(SEED, SEED + 2 * ROUNDS):
        trial(bench, 'event', seed=seed)


def test_a_device_that_vanishes_or_gives_up(bench):
    for fault in ('gone', 'needs reset'):
        said, _ = trial(bench, fault, after=300, seconds=2)
        assert 'needs a reset' in said, said


def test_virtqueues_that_are_not_reset(bench):
    for seed in range(SEED, SEED + 3 * ROUNDS):
        trial(bench, 'no vq reset', after=100, one_in=2 + seed % 2,
              seed=seed, seconds=2)


def test_configurations_that_make_no_sense(bench):
    for fault in ('no vqs', 'config 0', 'config max', 'config any'):
        trial(bench, fault)


def test_tables_of_a_port_that_are_too_large(bench):
    """The driver asks for one P_Key, not for 65535 that a device reports."""
    said, _ = trial(bench, 'port max')
    commands = int(re.search(r'(\d+) commands executed', said).group(1))
    bench.note(f'{commands} commands')
    assert commands < 1000, commands


def test_anything(bench):
    """Faults of all kinds, each one rare."""
    trial(bench, *ANYTHING, after=SEED, one_in=50, seconds=2)
    trial(bench, *ANYTHING, after=SEED, one_in=50, seconds=2, direct=True)
    watch = Watch([bench.one])
    for seed in range(SEED, SEED + 3 * ROUNDS):
        trial(bench, *ANYTHING, after=37 * seed % 400, one_in=100,
              seed=seed, direct=seed % 2)
    kernel, _ = watch.growth()
    bench.note(f'kernel grew by {kernel} KiB')
    assert kernel < KERNEL_NOISE, kernel
    bench.verify('-s 4096 -n 32 -r 1 -V')
