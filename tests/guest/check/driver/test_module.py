# SPDX-License-Identifier: GPL-2.0-or-later
"""Loading and unloading the stack's kernel module."""
from guestkit import driver, kernel
from guestkit.paths import TOP, Unavailable
from guestkit.vm import Vm
from lab.dead import DRIVER, break_control_queue, virtio_name
from lab.pair import functions
from lab.programs import build_hold
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
    # The device does not answer, and the driver has to notice by itself.
    result = vm.run(f'ibv_devinfo -d {device}', 20)
    assert result.rc is not None and not result.ok, str(result)
    watch.wait_for('DEVICE_FATAL')
    watch.kill()
    watch.wait(10)
    vm.must(f'echo {name} > {DRIVER}/unbind', 20)
    vm.must(f'echo {name} > {DRIVER}/bind')
    stack.wait(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')


def test_shutting_down_resets_the_device(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe is not a device of QEMU')
    vm = bench.two
    path = next(d['path'] for d in vm.qmp('x-query-virtio')
                if d['name'] == 'virtio-rdma')

    def status():
        return vm.qmp('x-query-virtio-status', path=path)['status']

    assert 'DRIVER_OK' in str(status()), status()
    holder = vm.spawn(f'{build_hold()} {bench.device(vm)} 1')
    holder.wait_for('registered')
    # The machine is off, but has the state that the kernel left.
    vm.qmp('set-action', shutdown='pause')
    vm.spawn('busybox poweroff -f')
    vm.qmp_channel.event('SHUTDOWN', 60)
    assert 'DRIVER_OK' not in str(status()), status()
    bench.restart_two()


def test_a_guest_that_needs_bounce_buffers_gets_no_adapter(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe does no DMA of its own')
    vm = Vm('check-bounce', '-netdev', 'user,id=n0', *functions(3),
            append='swiotlb=force', mem='512M').start()
    try:
        vm.wait_ready()
        vm.must('modprobe ib_uverbs && '
                f'insmod {bench.stacks[bench.one].module(vm)}')
        assert 'DMA takes bounce buffers' in vm.must('dmesg')
        assert not vm.must('ls /sys/class/infiniband').strip()
    finally:
        vm.quit()


def test_functions_in_ftrace_have_the_prefix(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe comes with the kernel')
    bench.one.must('mountpoint -q /sys/kernel/tracing || '
                   'mount -t tracefs tracefs /sys/kernel/tracing')
    shown = bench.one.must('grep -F "[virtio_rdma]" '
                           '/sys/kernel/tracing/available_filter_functions')
    names = [line.split()[0] for line in shown.splitlines()]
    assert 'vrdma_post_send' in names, shown
    others = [name for name in names if not name.startswith('vrdma_')]
    assert not others, others


def test_device_driver_and_provider_have_one_version(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe comes with the kernel')
    version = (TOP / 'VERSION').read_text().strip()
    vm = bench.one
    assert vm.must('cat /sys/module/virtio_rdma/version').strip() == version
    places = '/machine/peripheral-anon', '/machine/peripheral'
    devices = [f'{place}/{item["name"]}' for place in places
               for item in vm.qmp('qom-list', path=place)
               if item['type'] == 'child<virtio-rdma-pci>']
    assert devices
    for device in devices:
        assert vm.qmp('qom-get', path=f'{device}/virtio-backend',
                      property='version') == version
    assert f'virtio_rdma provider {version}\0'.encode() in \
        driver.provider().read_bytes()


def test_the_driver_builds_for_linux_6_12(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe comes with the kernel')
    try:
        kernel.headers('6.12')
    except Unavailable as e:
        raise Skip(str(e)) from e
    driver.module('6.12')
