# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest with pvrdma is reset, or loses adapter and NIC, during traffic."""
import time

from guestkit.adapter import MTU, address, mac, net_up
from lab import pvrdma
from lab.hotplug import request_unplug, unplug, wait_unplugged
from lab.programs import PORT
from lab.runner import ends_guests
from lab.verified import PATIENCE, rounds_done, wait_for_more

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'hotplug': True, 'smp': 2}
# In about one pause of 200, a vCPU is in the middle of a doorbell.
PAUSES = 400
# Seconds until the guest has begun to remove the adapter: its hot-plug driver
# waits for 5 s, in which a second request would cancel the first one.
BEGUN = 8


def traffic(bench):
    """Start verified traffic without an end: (server, client)"""
    server, client = bench.verify_commands(
        f'{PATIENCE} -s 16384 -n 32 -r 0 -V -q 2')
    jobs = bench.two.spawn(server, 18515), bench.one.spawn(f'exec {client}')
    wait_for_more(jobs[1], rounds_done, 1)
    return jobs


def used(vm):
    """Return the objects that the device has, by kind."""
    count = vm.qmp('query-rdma')[0]['count']
    return {kind: its['used'] for kind, its in count.items() if its['used']}


def sent(vm):
    """Return how many packets the adapter has sent."""
    return vm.qmp('query-rdma')[0]['counters']['tx-packets']


def wait_for_sends(vm):
    """Wait until a program sends."""
    end, before = time.monotonic() + 60, sent(vm)
    while sent(vm) < before + 500:
        assert time.monotonic() < end, 'the program does not send'
        time.sleep(0.1)


def plug(bench):
    """Plug in adapter and NIC, as the manual shows. The guest looks at the
    slot when function 0 appears, so the NIC comes last."""
    vm = bench.one
    vm.qmp('object-add', **{'qom-type': 'rdma-roce', 'id': 'r1',
                            'netdev': 'n0', 'mac': mac(1), 'mtu': MTU})
    vm.qmp('netdev_add', type='user', id='n1', restrict=True)
    vm.qmp('device_add', driver='pvrdma', id='rdma0', rdmadev='r1', bus='rp0',
           addr='0.1')
    vm.qmp('device_add', driver='vmxnet3', id='nic0', netdev='n1', bus='rp0',
           addr='0.0', multifunction=True, mac=mac(1), romfile='')
    vm.must('for i in $(seq 100); do [ -e /sys/class/net/eth0 ] && exit; '
            'sleep 0.1; done; exit 1')
    net_up(vm, 1)
    bench.stacks[vm].wait(vm)


@ends_guests
def test_an_adapter_and_its_nic_are_unplugged_and_plugged_in(bench):
    """The NIC comes back with another netdev, so the guest has no TCP to the
    other one."""
    unplug(bench, bench.one)
    plug(bench)
    bench.verify('-s 16384 -n 64 -r 2 -V', server=bench.one, client=bench.one)


@ends_guests
def test_an_adapter_is_unplugged_when_its_last_program_ends(bench):
    """The driver cannot take the device from a program: until then, the
    traffic goes on."""
    server, client = traffic(bench)
    request_unplug(bench.one)
    time.sleep(BEGUN)
    wait_for_more(client, rounds_done, rounds_done(client) + 1)
    assert used(bench.one).get('qp', 0) > 2, used(bench.one)
    client.kill()
    client.wait(10)
    wait_unplugged(bench, bench.one)
    server.kill()
    server.wait(10)


def test_doorbells_count_while_the_vm_stops(bench):
    """A vCPU may be in the middle of a doorbell. If the device drops the
    doorbell that arms the CQ, the program waits for ever."""
    command = 'ib_send_lat -F -e -s 64 -n 1000000'
    form = '-d {} -x {}'
    server = bench.two.spawn(f'{command} {bench.where(bench.two, form)}', PORT)
    client = bench.one.spawn(
        f'{command} {bench.where(bench.one, form)} {address(2)}')
    wait_for_sends(bench.one)
    for _ in range(PAUSES):
        bench.one.qmp('stop')
        bench.one.qmp('cont')
    before = sent(bench.one)
    time.sleep(4)
    assert sent(bench.one) > before + 10, 'the program waits for an event'
    for job in client, server:
        job.kill()
        job.wait(10)


@ends_guests
def test_a_guest_is_reset(bench):
    vm = bench.one
    server, _ = traffic(bench)
    assert used(vm)['qp'] > 2, used(vm)
    # The guests of the lab end when they reboot.
    vm.qmp('set-action', reboot='reset')
    vm.qmp('system_reset')
    vm.hears()
    assert not used(vm), used(vm)
    server.kill()
    server.wait(10)
    net_up(vm, 1)
    bench.stacks[vm].up(vm)
    bench.verify('-s 4096 -n 32 -r 2 -V')
