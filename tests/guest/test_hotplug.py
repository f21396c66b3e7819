# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter is unplugged and plugged in again."""
import time

from lab.paths import LabError
from lab.runner import Skip

GUESTS = {'hotplug': True}
DEVICE = {'driver': 'virtio-rdma-pci', 'id': 'rdma0', 'netdev': 'n0',
          'bus': 'rp0', 'addr': '0'}


def unplug(bench, vm):
    if bench.stack == 'rxe':
        raise Skip('rxe is no device')
    vm.qmp('device_del', id='rdma0')
    end = time.monotonic() + 40
    while True:
        event = vm.qmp_channel.event('DEVICE_DELETED', 40)
        if event['data'].get('device') == 'rdma0':
            break
        if time.monotonic() > end:
            raise LabError('rdma0 was not released')
    assert bench.stacks[vm].find(vm) is None, vm.run('rdma link').out


def plug(bench, vm):
    vm.qmp('device_add', **DEVICE)
    bench.stacks[vm].wait(vm)


def test_an_idle_adapter_is_unplugged_and_plugged_in(bench):
    for _ in range(2):
        unplug(bench, bench.one)
        plug(bench, bench.one)
        bench.verify('-s 4096 -n 32 -r 1 -V')


def test_an_adapter_is_unplugged_under_traffic(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe is no device')
    server, client = bench.verify_commands('-s 16384 -n 32 -r 0 -V -q 2')
    jobs = (bench.two.spawn(server, 18515), bench.one.spawn(client))
    end = time.monotonic() + 60
    while 'round 2 done' not in jobs[1].peek().out:
        assert time.monotonic() < end, str(jobs[1].peek())
        time.sleep(0.1)
    unplug(bench, bench.one)
    # The process on the vanished device may notice in any way it likes.
    jobs[1].kill()
    jobs[1].wait(10)
    result = jobs[0].wait(60)
    assert result.ok and 'BROKEN as expected' in result.out, str(result)
    plug(bench, bench.one)
    bench.verify('-s 4096 -n 32 -r 2 -V')
    assert bench.nic_works()
