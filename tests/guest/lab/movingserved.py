# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests that migrate, whose adapters are those of vhost-user servers. Each
QEMU process of a guest has a server of its own."""
import shlex
import shutil
import tempfile
from pathlib import Path

from guestkit.adapter import MTU, functions, mac, net_up
from guestkit.hub import Hub, to_hub

from .moving import MovingVm, TwoMovingGuests
from .pages import listing
from .vmm import PAGE, Server

# Ports of a hub that a guest has: NIC and adapter of both processes in turn
PORTS = 4


class MovedServer(Server):
    """The server of one process of a guest."""

    def __init__(self, tag, index, number, directory, port):
        super().__init__(tag, index, directory, '--protocol', 'vhost-user',
                         '--mtu', str(MTU))
        self.name = f'guest{index}.{number % 2}'
        self.socket = Path(directory) / f'{self.name}.sock'
        self.options = Path(directory) / f'{self.name}.options'
        netdev = to_hub('stream', directory, port)[1]
        self.arguments[0] = netdev.replace('id=n0,', '')
        assert self.arguments[2] == mac(index)


class ServedMovingPair(TwoMovingGuests):
    """Two guests of our QEMU, which has the NICs."""

    def __init__(self, tag, rdma=True, smp=1, mem='512M'):
        assert rdma, 'rxe needs no server'
        self.tag, self.mem = tag, mem
        self.directory = tempfile.mkdtemp(prefix='vrdma-')
        (Path(self.directory) / 'server.sh').write_text(
            listing(PAGE, 'server.sh'), encoding='utf-8')
        self.hub = None
        self.servers = {}
        self.vms = [MovingVm(f'{tag}-{index}', self.directory,
                             lambda number, i=index: self._devices(i, number),
                             mem=mem, smp=smp) for index in (1, 2)]

    def _server(self, index, number):
        """Start the server of a process. It replaces that of the last but one
        process, which has ended."""
        place = index, number % 2
        if place in self.servers:
            self.servers[place].kill()
        port = PORTS * (index - 1) + 2 + number % 2
        server = MovedServer(self.tag, index, number, self.directory, port)
        self.servers[place] = server
        server.start()
        return server

    def _devices(self, index, number):
        options = self._server(index, number).options.read_text()
        port = PORTS * (index - 1) + number % 2
        return [*to_hub('stream', self.directory, port),
                '-object', f'memory-backend-memfd,id=mem,size={self.mem},'
                'share=on', '-machine', 'memory-backend=mem',
                *functions(index, rdma=False), *shlex.split(options)]

    def start(self):
        try:
            self.hub = Hub(self.tag, self.directory, 2 * PORTS)
            for vm in self.vms:
                vm.start()
            for index, vm in enumerate(self.vms, 1):
                vm.wait_ready()
                net_up(vm, index)
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self):
        for vm in self.vms:
            vm.kill()
        for server in self.servers.values():
            server.kill()
        if self.hub:
            self.hub.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
