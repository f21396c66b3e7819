# SPDX-License-Identifier: GPL-2.0-or-later
"""Loading and unloading the stack's kernel module."""
from lab import driver, kernel
from lab.dead import DRIVER, break_control_queue, virtio_name
from lab.paths import LabError
from lab.runner import Skip


def test_unload_and_load_again(bench):
    for _ in range(3):
        for vm, stack in bench.stacks.items():
            stack.unload(vm)
            assert stack.find(vm) is None, vm.run('rdma link').out
        for vm, stack in bench.stacks.items():
            stack.up(vm)
        bench.verify('-s 4096 -n 32 -r 1 -V')


def test_unload_leaves_the_nic_working(bench):
    stack = bench.stacks[bench.one]
    stack.unload(bench.one)
    try:
        assert bench.nic_works()
    finally:
        stack.up(bench.one)


def test_addresses_come_and_go_as_gids(bench):
    stack = bench.stacks[bench.one]
    before = stack.gids(bench.one)
    bench.one.must('ip addr add 10.0.7.1/24 dev eth0; sleep 0.3')
    wanted = '0000:0000:0000:0000:0000:ffff:0a00:0701'
    assert wanted in stack.gids(bench.one).values(), stack.gids(bench.one)
    bench.one.must('ip addr del 10.0.7.1/24 dev eth0; sleep 0.3')
    assert stack.gids(bench.one) == before, stack.gids(bench.one)


def test_a_killed_process_leaves_nothing_behind(bench):
    device = bench.device(bench.one)
    before = bench.one.must(f'rdma resource show {device}')
    server, client = bench.verify_commands('-s 4096 -n 64 -r 0 -q 4 -e')
    jobs = [bench.two.spawn(server, 18515), bench.one.spawn(client)]
    jobs[1].wait_for('round 2 done')
    for job in jobs:
        job.kill()
        job.wait(10)
    after = bench.one.must(f'rdma resource show {device}')
    assert after == before, f'{before}\n{after}'
    bench.verify('-s 4096 -n 32 -r 1 -V')


def test_a_device_that_needs_a_reset_is_given_up(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe has no rings')
    vm, stack = bench.one, bench.stacks[bench.one]
    name = virtio_name(vm)
    device = bench.device(vm)
    watch = vm.spawn(f'ibv_asyncwatch -d {device}')
    watch.wait_for('event FD')
    break_control_queue(vm)
    # The driver asks, and has to find out by itself that there is no answer
    result = vm.run(f'ibv_devinfo -d {device}', 20)
    assert result.rc is not None and not result.ok, str(result)
    watch.wait_for('DEVICE_FATAL')
    watch.kill()
    watch.wait(10)
    vm.must(f'echo {name} > {DRIVER}/unbind', 20)
    vm.must(f'echo {name} > {DRIVER}/bind')
    stack.wait(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')


def test_the_driver_builds_for_linux_6_12(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe comes with the kernel')
    try:
        kernel.headers('6.12')
    except LabError as e:
        raise Skip(str(e)) from e
    driver.module('6.12')
