# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory, and the devices of a server, are plugged into a running guest."""
import json
import shlex
import time

from lab.runner import ends_guests
from lab.vmm import ServedPair, Server

PAIR = ServedPair
GUESTS = {'hotplug': True, 'mem': '768M'}
SECONDS = 60
MORE = 1 << 30


def populated_zones(vm):
    """Return the zones of the kernel's allocator that have memory."""
    return vm.must("awk '/^Node/ { zone = $0 } "
                   "$1 == \"present\" && $2 > 0 { print zone }' "
                   '/proc/zoneinfo')


def test_memory_is_plugged_in(bench):
    """Only the new memory is in zone Normal. The kernel takes memory from that
    zone first, so the buffers of the next program are in the new memory."""
    online = ('for m in /sys/devices/system/memory/memory*/state; do '
              'grep -q online $m || echo online > $m; done; '
              "awk '/MemTotal/ { print $2 }' /proc/meminfo")
    for vm in bench.pair.vms:
        assert 'zone   Normal' not in populated_zones(vm)
        vm.qmp('object-add', **{'qom-type': 'memory-backend-memfd',
                                'id': 'more', 'size': MORE, 'share': True})
        vm.qmp('device_add', driver='pc-dimm', id='dimm0', memdev='more')
        end = time.monotonic() + 30
        while int(vm.must(online)) << 10 < MORE * 3 // 2:
            assert time.monotonic() < end, 'the kernel lacks the new memory'
            time.sleep(0.2)
        assert 'zone   Normal' in populated_zones(vm)
    bench.verify('-s 1048576 -n 64 -r 2 -V')


@ends_guests
def test_a_second_adapter_is_plugged_in(bench):
    vm = bench.two
    server = Server('check-hotplug', 3, bench.pair.directory, '--bus', 'rp1')
    server.start()
    try:
        # The guest scans the slot when function 0 appears: plug the NIC last.
        for line in reversed(server.options.read_text().splitlines()):
            device = json.loads(shlex.split(line)[1])
            vm.qmp('device_add', id=f'served{device["addr"][-1]}', **device)
        vm.must('for i in $(seq 200); do '
                'ibv_devinfo -d vrdma1 && exit; sleep 0.1; done; exit 1')
        assert vm.must('ls /sys/class/infiniband/vrdma1/device/../*.0/virtio*/'
                       'net').split() == ['eth1']
        bench.verify('-s 65536 -n 64 -r 2 -V')
    finally:
        server.kill()
