# SPDX-License-Identifier: GPL-2.0-or-later
"""Unplug the adapter, and plug it in again."""
import time

from lab.hotplug import plug, unplug
from lab.runner import Skip

GUESTS = {'hotplug': True}
SECONDS = 35
TIMEOUT = '/sys/module/virtio_rdma/parameters/command_timeout'
# The port's power controller and power indicator, in its Slot Control register
POWER = '''
import sys
f = open('/sys/bus/pci/devices/0000:00:06.0/config', 'r+b', buffering=0)
data = f.read(256)
at = data[0x34]
while data[at] != 0x10:
    at = data[at + 1]
f.seek(at + 0x18)
f.write((0x100 if int(sys.argv[1]) else 0x700).to_bytes(2, 'little'))
'''


def require_device(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe is not a device of QEMU')


def test_an_idle_adapter_is_unplugged_and_plugged_in(bench):
    require_device(bench)
    for _ in range(2):
        unplug(bench, bench.one)
        plug(bench, bench.one)
        bench.verify('-s 4096 -n 32 -r 1 -V')


def test_an_adapter_is_unplugged_under_traffic(bench):
    require_device(bench)
    server, client = bench.verify_commands('-s 16384 -n 32 -r 0 -V -q 2')
    jobs = (bench.two.spawn(server, 18515), bench.one.spawn(client))
    end = time.monotonic() + 60
    while 'round 2 done' not in jobs[1].peek().out:
        assert time.monotonic() < end, str(jobs[1].peek())
        time.sleep(0.1)
    unplug(bench, bench.one)
    # The process on the vanished device may fail in any way.
    jobs[1].kill()
    jobs[1].wait(10)
    result = jobs[0].wait(60)
    assert result.ok and 'BROKEN as expected' in result.out, str(result)
    plug(bench, bench.one)
    bench.verify('-s 4096 -n 32 -r 2 -V')
    assert bench.nic_works()


def power(vm, on):
    """Turn the power of the slot on or off. The driver gets no notice."""
    vm.must(f'python3 -E -s -c "{POWER}" {int(on)}')


def test_an_adapter_vanishes_under_traffic(bench):
    require_device(bench)
    server, client = bench.verify_commands('-s 16384 -n 32 -r 0 -V -q 2')
    jobs = (bench.two.spawn(server, 18515), bench.one.spawn(client))
    jobs[1].wait_for('round 2 done', 60)
    vm = bench.one
    device = bench.device(vm)
    where = vm.must(f'cd -P /sys/class/infiniband/{device}/device && '
                    'pwd').strip()
    power(vm, False)
    # The driver notices when a command has no response.
    vm.must(f'echo 2 > {TIMEOUT}')
    found = vm.run(f'ibv_devinfo -d {device}', 40)
    assert found.rc, str(found)
    assert 'no response to command' in vm.must('dmesg')
    jobs[1].kill()
    jobs[1].wait(20)
    vm.must(f'echo 1 > {where}/remove', 40)
    assert bench.stacks[vm].find(vm) is None, vm.run('rdma link').out
    vm.must(f'echo 60 > {TIMEOUT}')
    result = jobs[0].wait(60)
    assert result.ok and 'BROKEN as expected' in result.out, str(result)
    power(vm, True)
    vm.must('echo 1 > /sys/bus/pci/rescan')
    bench.stacks[vm].wait(vm)
    bench.verify('-s 4096 -n 32 -r 2 -V')
