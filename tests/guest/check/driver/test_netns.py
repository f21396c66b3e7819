# SPDX-License-Identifier: GPL-2.0-or-later
"""Containers of one guest, each with an adapter of its own: RDMA devices that
belong to network namespaces ("rdma system set netns exclusive")."""
import re
import tempfile

from guestkit.adapter import MTU
from lab.runner import Skip, ends_guests

# Additional adapters, besides the pair's eth0 and vrdma0, by number of
# namespace
SLOTS = {1: '14', 2: '15'}
LINK = tempfile.TemporaryDirectory(prefix='vrdma-netns-')

SERVER = '10.9.0.1'


def two_more(index):
    """Plug two more NICs with adapters into guest 1, at the two ends of one
    link."""
    if index != 1:
        return []
    made = []
    for number, slot in SLOTS.items():
        made += ['-netdev', f'dgram,id=c{number},local.type=unix,'
                 f'local.path={LINK.name}/{number},remote.type=unix,'
                 f'remote.path={LINK.name}/{3 - number}',
                 '-device', f'virtio-net-pci,netdev=c{number},addr={slot}.0,'
                 f'multifunction=on,mac=52:54:00:00:01:{number:02x},'
                 f'host_mtu={MTU},romfile=',
                 '-device', f'virtio-rdma-pci,netdev=c{number},'
                 f'addr={slot}.1']
    return made


GUESTS = {'extra': two_more}
SECONDS = 30


def inside(number, command):
    return f'ip netns exec c{number} {command}'


def contain(vm, number):
    """Move a NIC and its adapter to a network namespace."""
    vm.must(f'ip netns add c{number} && '
            f'ip link set eth{number} netns c{number} && '
            f'rdma dev set vrdma{number} netns c{number} && '
            f'ip -n c{number} link set lo up && '
            f'ip -n c{number} link set eth{number} up && '
            f'ip -n c{number} addr add 10.9.0.{number}/24 dev eth{number}')


def gid(vm, number):
    """Return the index of an adapter's IPv4 GID."""
    base = f'/sys/class/infiniband/vrdma{number}/ports/1/gids'
    found = vm.must(inside(
        number, f'timeout 20 sh -c "until grep -l ffff:0a09 {base}/*; do '
        'sleep 0.1; done"'), 30)
    return found.split()[0].rpartition('/')[2]


def talk(vm, server, client, listens):
    """Run a program in both namespaces. The client starts once the command
    `listens` succeeds there."""
    job = vm.spawn(inside(1, server))
    result = vm.run(f'timeout 20 sh -c "until {inside(1, listens)}; do '
                    f'sleep 0.1; done" && {inside(2, client)}', 60)
    assert result.ok, str(result)
    result = job.wait(15)
    assert result.ok, str(result)


@ends_guests
def test_containers_with_an_adapter_each(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe gets its network namespace from its NIC')
    vm = bench.one
    vm.must('rdma system set netns exclusive')
    for number in SLOTS:
        contain(vm, number)
    seen = [re.findall(r'^ +(vrdma\d)', vm.must(inside(n, 'ibv_devices')),
                       re.M) for n in SLOTS]
    assert seen == [['vrdma1'], ['vrdma2']], seen
    assert 'vrdma1' not in vm.must('rdma dev show; ibv_devices')

    options = [f'-d vrdma{n} -g {gid(vm, n)} -c' for n in SLOTS]
    talk(vm, f'ibv_rc_pingpong {options[0]}',
         f'ibv_rc_pingpong {options[1]} {SERVER}',
         'ss -Hltn sport = 18515 | grep -q .')
    talk(vm, f'rping -s -a {SERVER} -C 20 -V',
         f'rping -c -a {SERVER} -C 20 -V',
         'rdma resource show cm_id | grep -q LISTEN')
    # A namespace does not see the adapters of others.
    bench.verify('-s 4096 -n 32 -r 1 -V')

    # An adapter returns when its namespace ends.
    vm.must('ip netns del c1')
    vm.must('timeout 20 sh -c "until rdma dev show vrdma1; do sleep 0.1; '
            'done"', 30)
