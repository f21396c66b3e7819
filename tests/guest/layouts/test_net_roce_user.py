# SPDX-License-Identifier: GPL-2.0-or-later
"""The RoCE half of virtio-net-roce-pci, which no driver uses: a program in
user space maps its registers, and talks to a virtio-rdma adapter."""
import tempfile

from guestkit.adapter import address, functions, mac
from lab import pyverbs
from lab.places import PROGRAMS
from lab.runner import Skip

LINK = tempfile.TemporaryDirectory(prefix='vrdma-net-roce-')
MTU = 1500
NIC = '/sys/class/net/eth1'
PORT = 18600


def link(index):
    """Plug the device into guest 1, and another adapter into guest 2."""
    netdev = ['-netdev', 'dgram,id=n1,local.type=unix,'
              f'local.path={LINK.name}/{index},remote.type=unix,'
              f'remote.path={LINK.name}/{3 - index}']
    if index == 2:
        return netdev + functions(2, mtu=MTU, where=('netdev=n1', []),
                                  number=2)
    return netdev + [
        '-device', f'virtio-net-roce-pci,netdev=n1,addr=14.0,'
        f'mac={mac(1, 2)},host_mtu={MTU},max-cq=2,max-qp=8,queue-size=64']


GUESTS = {'extra': link}
SECONDS = 60


def gid_of(vm, host):
    """Return (device, index) of the GID of an address on eth1."""
    words = ''.join(f'{int(part):02x}' for part in host.split('.'))
    path = vm.must(
        'grep -l "ffff:' + words[:4] + ':' + words[4:] + '" '
        '/sys/class/infiniband/*/ports/1/gids/* 2> /dev/null | '
        'while read f; do n=${f##*/}; grep -qs "RoCE v2" '
        '${f%/gids/*}/gid_attrs/types/$n && echo $f; done').split('/')
    return path[4], path[-1].strip()


def test_a_program_in_user_space_uses_the_roce_half(bench):
    if bench.stack == 'rxe':
        raise Skip('the device is the same for each stack')
    pyverbs.version()
    one, two = bench.pair.vms
    here, there = (address(index, number=2) for index in (1, 2))
    device = one.must(
        f'basename $(readlink -f {NIC}/device/..)').strip()
    one.must(f'echo {device} > /sys/bus/pci/devices/{device}/driver/unbind')
    # No driver answers ARP in guest 1.
    two.must(f'ip addr add {there}/24 dev eth1; ip link set eth1 up; '
             f'ip neigh add {here} lladdr {mac(1, 2)} dev eth1')
    adapter, gid = gid_of(two, there)
    peer = two.spawn(f'/usr/bin/python3 -B {PROGRAMS}/net_roce/peer.py '
                     f'{adapter} {gid} {PORT}', PORT)
    user = one.run(f'/usr/bin/python3 -B {PROGRAMS}/net_roce/user.py '
                   f'{device} ::ffff:{here} {mac(2, 2)} {address(2)} {PORT}',
                   90)
    other = peer.wait(30)
    for result in user, other:
        assert result.ok and 'all data arrived' in result.out, \
            f'{user}\n{other}'
    one.must(f'echo {device} > /sys/bus/pci/drivers/virtio-pci/bind; '
             f'timeout 10 sh -c "until [ -e {NIC} ]; do sleep 0.1; done"')
