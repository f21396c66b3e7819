# SPDX-License-Identifier: GPL-2.0-or-later
"""Devices that a server serves, and memory, are plugged in and unplugged."""
import json
import shlex
import time

from guestkit.adapter import net_up
from lab.stock import perftest
from lab.vmm import ServedPair

PAIR = ServedPair
GUESTS = {'hotplug': True}
SECONDS = 60
ANONYMOUS = '/machine/peripheral-anon'
MORE = 1 << 30


def served_devices(vm):
    """Return the paths of the NIC and the adapter in the VMM."""
    made = vm.qmp('qom-list', path=ANONYMOUS)
    return [f'{ANONYMOUS}/{its["name"]}' for its in made
            if its['type'] == 'child<vfio-user-pci>']


def wait_until(vm, command):
    vm.must(f'for i in $(seq 100); do {command} && exit; sleep 0.1; done; '
            'exit 1')


def plug(bench, vm, server):
    """Plug in what the server printed, function 0 last."""
    for line in reversed(server.options.read_text().splitlines()):
        device = json.loads(shlex.split(line)[1])
        vm.qmp('device_add', id=f'served{device["addr"][-1]}', **device)
    wait_until(vm, '[ -e /sys/class/net/eth0 ]')
    net_up(vm, 2, mtu=bench.pair.mtu)
    bench.stacks[vm].wait(vm)


def unplug(vm, path, count):
    vm.qmp('device_del', id=path)
    for _ in range(count):
        vm.qmp_channel.event('DEVICE_DELETED', 40)
    wait_until(vm, '[ ! -e /sys/class/net/eth0 ]')


def test_the_slot_is_unplugged_and_plugged_in(bench):
    vm, server = bench.two, bench.pair.servers[1]
    paths = served_devices(vm)
    assert len(paths) == 2, paths
    for _ in range(2):
        unplug(vm, paths[0], len(paths))
        plug(bench, vm, server)
        bench.verify('-s 65536 -n 64 -r 2 -V')
        paths = ['served0', 'served1']


def test_memory_that_is_plugged_in(bench):
    """Buffers that are larger than the memory that the guest booted with"""
    for vm in bench.pair.vms:
        vm.qmp('object-add', **{'qom-type': 'memory-backend-memfd',
                                'id': 'more', 'size': MORE, 'share': True})
        vm.qmp('device_add', driver='pc-dimm', id='dimm0', memdev='more')
        end = time.monotonic() + 30
        online = ('for m in /sys/devices/system/memory/memory*/state; do '
                  'grep -q online $m || echo online > $m; done; '
                  "awk '/MemTotal/ { print $2 }' /proc/meminfo")
        while int(vm.must(online)) << 10 < MORE * 3 // 2:
            assert time.monotonic() < end, 'the memory did not come'
            time.sleep(0.2)
    perftest(bench, 'ib_write_bw', f'-s {600 << 20} -n 5')
