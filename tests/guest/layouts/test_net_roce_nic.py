# SPDX-License-Identifier: GPL-2.0-or-later
"""virtio-net-roce-pci with the stock driver virtio_net: a plain NIC, although
the driver accepts bit 55, which means something else to it."""
import tempfile

from lab.runner import Skip

LINK = tempfile.TemporaryDirectory(prefix='vrdma-net-roce-')
MTU = 1500
GUEST = '/sys/class/net/eth1'


def nic(index):
    """Plug a NIC into each guest, at the two ends of one link."""
    return ['-netdev', f'dgram,id=c1,local.type=unix,local.path={LINK.name}/'
            f'{index},remote.type=unix,remote.path={LINK.name}/{3 - index}',
            '-device', f'virtio-net-roce-pci,netdev=c1,addr=14.0,'
            f'mac=52:54:00:00:02:{index:02x},host_mtu={MTU}']


GUESTS = {'extra': nic}
SECONDS = 40


def up(bench):
    for index, vm in enumerate(bench.pair.vms, 1):
        vm.must(f'ip addr add 10.9.1.{index}/24 dev eth1; '
                'ip link set eth1 up')


def send(bench, mib):
    """Send random bytes from guest 2 to guest 1, and compare checksums."""
    job = bench.one.spawn(
        'timeout 60 python3 -c "import socket, hashlib; '
        's = socket.create_server((\'10.9.1.1\', 7)); c = s.accept()[0]; '
        'h = hashlib.sha256(); '
        '[h.update(b) for b in iter(lambda: c.recv(65536), b\'\')]; '
        'print(h.hexdigest())"', 7)
    sent = bench.two.must(
        'python3 -c "import os, socket, hashlib; '
        f'b = os.urandom({mib} << 20); '
        's = socket.create_connection((\'10.9.1.1\', 7)); s.sendall(b); '
        'print(hashlib.sha256(b).hexdigest())"', 60)
    result = job.wait(60)
    assert result.ok and result.out.strip() == sent.strip(), str(result)


def test_the_stock_driver_uses_it_as_a_plain_nic(bench):
    if bench.stack == 'rxe':
        raise Skip('the NIC is the same for each stack')
    vm = bench.one
    assert vm.must(f'basename $(readlink {GUEST}/device/driver)').strip() == \
        'virtio_net'
    assert vm.must(f'cat {GUEST}/address {GUEST}/mtu').split() == \
        ['52:54:00:00:02:01', str(MTU)]
    features = vm.must(f'cat {GUEST}/device/features').strip()
    assert [bit for bit, on in enumerate(features) if on == '1'] == \
        [3, 5, 16, 17, 32, *([55] if features[55] == '1' else [])], features
    bench.note(f'bit 55 accepted: {features[55]}')
    up(bench)
    bench.two.must('busybox ping -c 5 -s 1472 -w 30 10.9.1.1')
    send(bench, 8)


def test_its_link_goes_down_and_up(bench):
    up(bench)
    for state in 0, 1:
        bench.one.qmp('set_link', name='c1', up=bool(state))
        bench.one.must(f'timeout 20 sh -c "until grep {state} '
                       f'{GUEST}/carrier; do sleep 0.1; done"', 30)
    bench.two.must('busybox ping -c 2 -w 20 10.9.1.1', 30)


def test_the_driver_is_unloaded_and_loaded_again(bench):
    bench.one.must('d=$(basename $(readlink -f '
                   f'{GUEST}/device)); cd /sys/bus/virtio/drivers/virtio_net; '
                   'echo $d > unbind; echo $d > bind')
    up(bench)
    bench.two.must('busybox ping -c 2 -w 20 10.9.1.1', 30)
    send(bench, 1)
