# SPDX-License-Identifier: GPL-2.0-or-later
"""With vhost-user, a guest reboots or pauses, its VMM or its server ends."""
import os
import time

from lab import lifetimes
from lab.lifetimes import works
from lab.places import PROGRAMS
from lab.runner import ends_guests
from lab.vmm import VhostUserPair

PAIR = VhostUserPair
SECONDS = 120


def wait_for_server(vm):
    """Wait until a VMM has connected to its server again."""
    end = time.monotonic() + 20
    while any(device['filename'].startswith('disconnected:')
              for device in vm.qmp('query-chardev')):
        assert time.monotonic() < end, 'the VMM does not connect'
        time.sleep(0.1)


def test_a_guest_reboots(bench):
    lifetimes.reboot(bench)


def test_the_server_serves_the_next_vmm(bench):
    lifetimes.end_vmm(bench)


def test_a_guest_pauses(bench):
    """The adapter keeps its state, and the connection goes on."""
    server, client = bench.verify_commands('-s 4096 -n 64 -r 40 -V')
    its = bench.two.spawn(server)
    job = bench.one.spawn(client)
    for _ in range(3):
        time.sleep(0.3)
        bench.two.qmp('stop')
        time.sleep(0.2)
        bench.two.qmp('cont')
    assert job.wait(60).rc == 0, job.peek()
    assert its.wait(60).rc == 0, its.peek()


def test_a_guest_enables_virtqueues_twice(bench):
    device = os.path.basename(bench.one.must(
        'readlink -f /sys/class/infiniband/*/device').strip())
    enabled = bench.one.must(f'{PROGRAMS}/enable_queue.py {device}')
    bench.note(f'{enabled.strip()} virtqueues')
    assert int(enabled) >= 3
    works(bench)


@ends_guests
def test_a_guest_outlives_its_server(bench):
    vm = bench.two
    lifetimes.end_server(bench)
    # Without a server, the driver cannot start the device.
    vm.must('rmmod virtio_rdma')
    vm.must('modprobe virtio_rdma', 40)
    assert not vm.run('ibv_devinfo', 60).ok
    # The VMM connects to the next server. The driver has to be bound again.
    bench.pair.servers[1].start()
    wait_for_server(vm)
    vm.must('rmmod virtio_rdma')
    works(bench)
