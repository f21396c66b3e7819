# SPDX-License-Identifier: GPL-2.0-or-later
"""Two containers in one guest. Each has a NIC with an adapter, which belong to
its network namespace."""
import tempfile

from guestkit.adapter import MTU

# Additional NICs and adapters, besides the pair's eth0 and vrdma0: number and
# PCI slot
SLOTS = {1: '14', 2: '15'}
LINK = tempfile.TemporaryDirectory(prefix='vrdma-containers-')
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


class Container:
    """A network namespace with the NIC and adapter of this number. `netns` is
    its name for ip and rdma. `enter` is the words before a command in it,
    `run` those before a program that a user runs there."""

    def __init__(self, vm, number, netns, enter, run=None):
        self.vm = vm
        self.number = number
        self.enter = enter
        self.run = run or enter
        vm.must(f'ip link set eth{number} netns {netns} && '
                f'rdma dev set vrdma{number} netns {netns}')
        self.must(f'ip link set lo up && ip link set eth{number} up && '
                  f'ip addr add 10.9.0.{number}/24 dev eth{number}')

    def must(self, command, seconds=30):
        return self.vm.must(f"{self.enter} sh -c '{command}'", seconds)

    def options(self):
        """Return a pingpong's options for the GID of the IPv4 address."""
        base = f'/sys/class/infiniband/vrdma{self.number}/ports/1/gids'
        found = self.must(
            f'timeout 20 sh -c "until grep -l ffff:0a09 {base}/*; do '
            'sleep 0.1; done"')
        gid = found.split()[0].rpartition('/')[2]
        return f'-d vrdma{self.number} -g {gid} -c'

    def wait_until(self, condition):
        self.must(f'timeout 40 sh -c "until {condition}; do sleep 0.1; done"',
                  60)


def talk(server, client, commands, listens):
    """Run a program in both containers. The client starts as soon as the
    command `listens` succeeds on the server's side."""
    job = server.vm.spawn(f'{server.run} {commands[0]}')
    server.wait_until(listens)
    result = client.vm.run(f'{client.run} {commands[1]}', 60)
    assert result.ok, str(result)
    result = job.wait(15)
    assert result.ok, str(result)


def talk_by_verbs_and_cm(server, client):
    """Run ibv_rc_pingpong and rping between two containers."""
    talk(server, client,
         [f'ibv_rc_pingpong {server.options()}',
          f'ibv_rc_pingpong {client.options()} {SERVER}'],
         'ss -Hltn sport = 18515 | grep -q .')
    talk(server, client,
         [f'rping -s -a {SERVER} -C 20 -V', f'rping -c -a {SERVER} -C 20 -V'],
         'rdma resource show cm_id | grep -q LISTEN')
