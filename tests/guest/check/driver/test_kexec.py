# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest boots another kernel by kexec, without a reset of the machine."""
import time

from guestkit.adapter import net_up
from guestkit.paths import LabError
from lab.places import PROGRAMS
from lab.runner import Skip, ends_guests, port_counters, slow

# MiB of the next kernel's memory that the test fills, out of 2048, and the
# seconds for which the pattern has to stay
FILLED = 900
WATCHED = 3

# Seconds that the next kernel may take. Unlike the first one it unpacks
# itself, maybe on a machine that is busy with other guests.
NEXT_BOOT_TIMEOUT = 400


def status(vm):
    path = next(d['path'] for d in vm.qmp('x-query-virtio')
                if d['name'] == 'virtio-rdma')
    return str(vm.qmp('x-query-virtio-status', path=path)['status'])


def next_kernel(vm, peer):
    """Replace the guest's kernel by a new copy of it. The peer is stopped
    during the boot, so that the guest has a processor for itself."""
    image = vm.kernel.root / 'boot' / f'vmlinuz-{vm.kernel.release}'
    vm.spawn(f'{PROGRAMS}/kexec.py {image} {vm.kernel.initramfs}')
    end = time.monotonic() + NEXT_BOOT_TIMEOUT
    while 'DRIVER_OK' in status(vm):
        assert time.monotonic() < end, f'{vm.name} keeps its kernel'
        time.sleep(0.1)
    peer.qmp('stop')
    try:
        vm.agent.event('ready', NEXT_BOOT_TIMEOUT)
    except LabError as e:
        raise LabError(f'{e}\n{vm.errors()}') from e
    peer.qmp('cont')


def wait_for_packets(bench, vm, which, number=1000, timeout=60):
    """Wait until a guest has received or sent some more packets."""
    name = f'counters/port_{which}_packets'
    goal = port_counters(vm, bench.device(vm))[name] + number
    end = time.monotonic() + timeout
    while port_counters(vm, bench.device(vm))[name] < goal:
        assert time.monotonic() < end, f'{vm.name} has no traffic'


@slow
@ends_guests
def test_a_peer_cannot_write_to_the_next_kernel(bench):
    """UC WRITEs need no answer, so the peer never stops sending them."""
    if bench.stack == 'rxe':
        raise Skip('rxe ends with its kernel')
    vm, peer = bench.one, bench.two
    command = 'ib_write_bw -c UC -s 1048576 --run_infinitely -F -d {} -x {}'
    vm.spawn(bench.where(vm, command), 18515)
    writer = peer.spawn(bench.where(peer, command) + ' 10.0.0.1')
    wait_for_packets(bench, vm, 'rcv')
    assert 'DRIVER_OK' in status(vm), status(vm)

    next_kernel(vm, peer)
    assert 'DRIVER_OK' not in status(vm), status(vm)
    # Frames wait as long as the guest has no NIC.
    net_up(vm, 1)
    peer.qmp('stop')
    vm.must(f'dd if=/dev/zero of=/dev/shm/zeros bs=1M count={FILLED} '
            'status=none', 200)
    peer.qmp('cont')
    wait_for_packets(bench, peer, 'xmit')
    time.sleep(WATCHED)
    peer.qmp('stop')
    wrong = vm.must(r"tr -d '\0' < /dev/shm/zeros | wc -c; "
                    'rm /dev/shm/zeros', 200)
    peer.qmp('cont')
    assert wrong.strip() == '0', f'{wrong} bytes of {FILLED} MiB have changed'
    writer.kill()
    writer.wait(10)
    bench.stacks[vm].up(vm)
    bench.verify('-s 4096 -n 32 -r 2 -V')
