# SPDX-License-Identifier: GPL-2.0-or-later
"""Users in the kernel, with work requests in flight, on a device that needs a
reset: they must release it."""
from guestkit.adapter import address
from lab import nvme
from lab.dead import DRIVER, break_control_queue, virtio_name

GUESTS = {'smp': 2}


def break_device(bench, vm):
    """Break the adapter, and let the driver notice."""
    device = bench.device(vm)
    break_control_queue(vm)
    vm.run(f'ibv_devinfo -d {device}', 20)
    vm.must('for i in $(seq 50); do dmesg | grep -q "needs a reset" && exit 0;'
            ' sleep 0.1; done; exit 1')


def rebind(bench, vm, name):
    """Unbind the driver, which has to return, and bind it again, without an
    error."""
    vm.must(f'echo {name} > {DRIVER}/unbind', 60)
    said = vm.must('dmesg')
    for word in ('failed to drain', 'WARNING:', 'BUG:', 'hung_task'):
        assert word not in said, said[said.index(word) - 200:][:3000]
    vm.must(f'echo {name} > {DRIVER}/bind')
    bench.stacks[vm].wait(vm)


def test_a_host_of_nvme_lets_go_of_a_dead_device(bench):
    vm = bench.one
    name = virtio_name(vm)
    nvme.export(bench.two, address(2))
    disk = nvme.connect(vm, address(2))
    reader = vm.spawn(f'while dd if=/dev/{disk}n1 of=/dev/null bs=64k '
                      'iflag=direct status=none; do :; done')
    break_device(bench, vm)
    rebind(bench, vm, name)
    reader.kill()
    reader.wait(10)
    vm.must(f'rmmod {nvme.HOST_MODULES}')
    nvme.withdraw(bench.two)
    bench.verify('-s 4096 -n 32 -r 1 -V')


def test_a_target_of_nvme_lets_go_of_a_dead_device(bench):
    vm = bench.two
    name = virtio_name(vm)
    nvme.export(vm, address(2))
    # The initiator must not search for it again
    disk = nvme.connect(bench.one, address(2), options=',ctrl_loss_tmo=0')
    reader = bench.one.spawn(f'while dd if=/dev/{disk}n1 of=/dev/null bs=64k '
                             'iflag=direct status=none; do :; done')
    break_device(bench, vm)
    rebind(bench, vm, name)
    bench.one.must(f'for i in $(seq 600); do [ -e /sys/class/nvme/{disk} ] || '
                   'exit 0; sleep 0.1; done; exit 1', 70)
    reader.kill()
    reader.wait(10)
    bench.one.must(f'rmmod {nvme.HOST_MODULES}')
    nvme.withdraw(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
