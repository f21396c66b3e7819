# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest whose QEMU runs in User-mode Linux as its host."""
import shlex

from guestkit.adapter import MTU, address, mac, net_up, pvrdma_pair
from guestkit.agent import Channel
from guestkit.paths import LOGS
from guestkit.stack import Rxe
from guestkit.vm import Vm

from . import image
from .pair import functions
from .uml import Uml, wire

# Guest RAM that the host can map a second time
RAM = '512M'
SHARED_RAM = ('-object', f'memory-backend-memfd,id=ram,size={RAM},share=on')


class Process:
    """A command in the host, with the interface of subprocess."""

    def __init__(self, host, command):
        self.host = host
        self.job = host.spawn(command)

    def poll(self):
        """The exit code; None while it runs."""
        return self.job.peek().rc if self.host.alive() else -9

    def kill(self):
        if self.host.alive():
            self.job.kill()

    def wait(self, timeout=60):
        if self.host.alive():
            self.job.wait(timeout)


class Nested(Vm):
    """A guest of a guest, with its root in memory. Otherwise it is a Vm: files
    of this machine have the same paths in the host."""

    def __init__(self, host, name, *devices, **options):
        super().__init__(name, *SHARED_RAM, *devices, mem=RAM,
                         machine='q35,memory-backend=ram', **options)
        self.host = host
        self.image = image.build(self.kernel.series)

    def _root(self):
        return self.image, '', []

    def _line(self):
        """Return (QEMU's name for a serial line of the host, its near end)."""
        device, near = self.host.line()
        self.host.must(f'stty -F {device} raw -echo')
        return f'serial,path={device}', near

    def start(self):
        self.out.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        agent, near = self._line()
        self.agent = Channel(self.name, near)
        qmp, near = self._line()
        self.qmp_channel = Channel(f'{self.name} (QMP)', near)
        command = shlex.join(self._command(agent, qmp))
        (LOGS / f'{self.tag}.cmdline').write_text(command + '\n')
        self.process = Process(
            self.host, f'exec {command} > {LOGS}/{self.tag}.qemu 2>&1')
        return self


class NestedPair:
    """A nested guest and a peer of its host; replaces guests 1 and 2 of a
    Pair. @devices: a function from the running host to the QEMU arguments that
    make the nested guest's netdev and adapter. @peer_rdma: whether the peer
    has virtio-rdma. @host_append: more parameters of the host's kernel."""

    def __init__(self, tag, devices, rdma=True, series=None, peer_rdma=True,
                 host_append=''):
        self.tag, self.devices = tag, devices
        self.link = wire()
        near, far = (end.fileno() for end in self.link)
        self.peer = Vm(f'{tag}-2', '-netdev',
                       f'dgram,id=n0,local.type=fd,local.str={far}',
                       *functions(2, rdma and peer_rdma), series=series)
        self.peer.fds.append(far)
        self.host = Uml(f'{tag}-host', near, mac(1), MTU, series=series,
                        append=host_append)
        self.nested = Nested(self.host, f'{tag}-1', series=series)

    @property
    def vms(self):
        return [self.nested, self.peer]

    def start(self):
        try:
            self.peer.start()
            self.host.start()
            self.host.wait_ready()
            net_up(self.host, 1)
            self.nested.devices += self.devices(self.host)
            self.nested.start()
            self.peer.wait_ready()
            net_up(self.peer, 2)
            self.nested.wait_ready()
            net_up(self.nested, 1)
            self.nested.must(ROUTES.format(
                peer=address(2), peer6=address(2, 6), mac=mac(2)))
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self):
        self.host.kill()
        self.peer.kill()
        for end in self.link:
            end.close()

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.kill()


# The nested guest reaches the peer with TCP by its second NIC, whose packets
# get the host's address. No packet leaves by the first NIC, so ARP does not
# work there: ROUTES sets the peer's MAC address.
WAY_OUT = '-netdev', 'user,id=n1', '-device'
ROUTES = '''
ip link set eth1 up && ip addr add 10.0.2.15/24 dev eth1 &&
ip route add {peer} via 10.0.2.2 dev eth1 &&
ip neigh replace {peer} lladdr {mac} dev eth0 nud permanent &&
ip neigh replace {peer6} lladdr {mac} dev eth0 nud permanent
'''


def _with_rxe(host, devices, nic):
    """Arguments for a nested guest on the host's rxe by rdma-verbs. @devices
    have the adapter and the NIC beside it, which provides the addresses: these
    have to be the host's. @nic: the model of the second NIC"""
    stack = Rxe()
    stack.up(host)
    return ['-object', f'rdma-verbs,id=r0,ibdev={stack.device}',
            '-netdev', 'user,id=n0,restrict=on', *devices,
            *WAY_OUT, f'{nic},netdev=n1,addr=7,romfile=']


def on_rxe(host):
    return _with_rxe(host, [*functions(1, rdma=False), '-device',
                            'virtio-rdma-pci,rdmadev=r0,addr=4.1'],
                     'virtio-net-pci')


def pvrdma_on_rxe(host):
    # The guest loads the drivers of NICs one by one, and eth0 is the first.
    return _with_rxe(host, pvrdma_pair('rdmadev=r0', 1), 'vmxnet3')
