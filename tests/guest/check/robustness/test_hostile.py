# SPDX-License-Identifier: GPL-2.0-or-later
"""Unprivileged processes misuse the device in both guests while others work
with it. The kernels check for use of freed objects, and for writes outside of
objects."""
import os
import re

from lab.leaks import Watch
from lab.programs import build_bad_response, build_hostile
from lab.runner import Skip
from lab.stock import pingpong

# A small buffer for translated code: see test_scale.py.
GUESTS = {'smp': 2, 'accel': ',tb-size=32', 'mem': '512M',
          'append': 'slub_debug=FZP,kmalloc-* page_poison=1 oops=panic '
                    'sysctl.kernel.hung_task_timeout_secs=30'}
SECONDS = 60
# HOSTILE_SECONDS makes the attack longer than in CI. HOSTILE_SEED repeats a
# run.
TIME = int(os.environ.get('HOSTILE_SECONDS', 5))
SEED = os.environ.get('HOSTILE_SEED', '')
WARM_UP = 3
# KiB by which memory may vary without a leak: a process may just have ended
KERNEL_NOISE = 4096
QEMU_NOISE = 24576


def attack(bench, seconds):
    jobs = [vm.spawn(f'{build_hostile()} {bench.device(vm)} {seconds} {SEED}')
            for vm in bench.pair.vms]
    for job in jobs:
        result = job.wait(seconds + 60)
        for line in result.out.splitlines():
            bench.note(line)
        assert result.ok, str(result)


def rounds(job):
    """Return the number of rounds that rdma_verify has completed."""
    now = job.peek()
    assert now.rc is None, str(now)
    found = re.findall(r'round (\d+) done', now.out)
    return int(found[-1]) if found else 0


def test_hostile_processes_harm_no_others(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe has no queues in memory that processes map')
    for vm in bench.pair.vms:
        vm.must('chmod 666 /dev/infiniband/uverbs*')
    attack(bench, WARM_UP)
    bench.nothing_left(bench.baseline)
    watch = Watch(bench.pair.vms)
    server, client = bench.verify_commands('-s 4096 -n 16 -r 0 -V -q 2 '
                                           f'-T {TIME + 60}')
    jobs = [bench.two.spawn(server, 18515), bench.one.spawn(client)]
    jobs[1].wait_for('round 1 done')
    before = rounds(jobs[1])
    attack(bench, TIME)
    assert rounds(jobs[1]) > before, str(jobs[1].peek())
    for job in reversed(jobs):
        job.kill()
        job.wait(10)
    bench.nothing_left(bench.baseline)
    kernel, qemu = watch.growth()
    bench.note(f'kernel grew by {kernel} KiB, QEMU by {qemu} KiB')
    assert kernel < KERNEL_NOISE and qemu < QEMU_NOISE, (kernel, qemu)
    bench.verify('-s 4096 -n 32 -r 1 -V')


def test_a_process_that_delays_its_response_stops_no_other(bench):
    """The memory for the response of CREATE_CQ waits for the process."""
    if bench.stack == 'rxe':
        raise Skip('its response of CREATE_CQ is shorter')
    job = bench.one.spawn(f'exec {build_bad_response()} '
                          f'{bench.device(bench.one)} wait')
    job.wait_for('the kernel waits')
    pingpong(bench, 'ibv_rc_pingpong', '-e')
    job.kill()
    job.wait(10)
    bench.nothing_left(bench.baseline)


def test_an_object_whose_response_cannot_be_written_does_not_stay(bench):
    if bench.stack == 'rxe':
        raise Skip('its response of CREATE_CQ is shorter')
    bench.one.must(f'{build_bad_response()} {bench.device(bench.one)} fault')
    bench.nothing_left(bench.baseline)
    pingpong(bench, 'ibv_rc_pingpong')
