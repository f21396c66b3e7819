# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's Open vSwitch, unpacked but not installed, on hosts that are network
namespaces.

ovs-vswitchd forwards the frames itself (datapath_type=netdev), so the kernel
does not need the module openvswitch. Packets of a tunnel then leave by a
second bridge, which has the host's link and the host's address.
"""
import os
import subprocess
import tempfile
import time
from pathlib import Path

from guestkit.paths import LabError

from . import unpacked
from .hosts import BRIDGE, OVERHEAD, PAGE, UPLINK
from .pages import listing

PACKAGES = ('openvswitch-switch', 'openvswitch-common')
DAEMONS = '/usr/lib/openvswitch-switch'
SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'
OUTER = 'br-phy'


class Vswitch:
    """Both daemons of a host."""

    def __init__(self, host, root):
        self.host, self.root = host, root
        self.directory = Path(tempfile.mkdtemp(prefix='vrdma-'))
        self.environment = {
            **os.environ, **{name: str(self.directory) for name in (
                'OVS_RUNDIR', 'OVS_LOGDIR', 'OVS_DBDIR')}}
        self.daemons = []

    def _start(self, *words):
        with open(self.directory / 'said', 'ab') as said:
            self.daemons.append(subprocess.Popen(
                [*self.host.lasting, unpacked.SCRIPT, self.root, *words],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=said,
                stderr=said))

    def run(self, *words, text=None):
        return self.host.run(unpacked.SCRIPT, self.root, *words, text=text,
                             env=self.environment)

    def start(self):
        database = self.directory / 'conf.db'
        socket = self.directory / 'db.sock'
        self.run('ovsdb-tool', 'create', str(database), SCHEMA)
        self._start('ovsdb-server', str(database), f'--remote=punix:{socket}',
                    f'--unixctl={self.directory}/db.ctl')
        end = time.monotonic() + 30
        while not socket.exists():
            if time.monotonic() > end or self.daemons[0].poll() is not None:
                raise LabError('no ovsdb-server:\n' +
                               (self.directory / 'said').read_text())
            time.sleep(0.05)
        self.run('ovs-vsctl', '--no-wait', 'init')
        self._start(f'{DAEMONS}/ovs-vswitchd', f'unix:{socket}',
                    f'--unixctl={self.directory}/vswitchd.ctl')

    def learnt(self, hardware):
        """Return the number of the port at which an address was last seen."""
        shown = self.run('ovs-appctl', '-t',
                         f'{self.directory}/vswitchd.ctl', 'fdb/show', BRIDGE)
        for row in map(str.split, shown.splitlines()):
            if row[2] == hardware:
                return row[0]
        return None

    def port_of(self, hardware):
        number = self.learnt(hardware)
        for name in self.run('ovs-vsctl', 'list-ports', BRIDGE).split():
            if number == self.run('ovs-vsctl', 'get', 'interface', name,
                                  'ofport').strip():
                return name
        return None

    def end(self):
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()


class OpenVswitch:
    """A bridge of Open vSwitch on each host, as the page sets it up."""

    def __init__(self, hosts):
        root = str(unpacked.tree('openvswitch', PACKAGES))
        hosts[0].require_packages(root)
        self.switches = {host: Vswitch(host, root) for host in hosts}

    def up(self):
        for host, switch in self.switches.items():
            switch.start()
            others = [h.address for h in self.switches if h is not host]
            self._script(switch, 'ovs.sh', 'netdev', *others)
            switch.run('ovs-vsctl', 'add-br', OUTER, '--', 'set', 'bridge',
                       OUTER, 'datapath_type=netdev', '--', 'add-port', OUTER,
                       UPLINK)
            host.run('ip', 'addr', 'flush', 'dev', UPLINK)
            host.run('ip', 'link', 'set', OUTER, 'up')
            host.run('ip', 'addr', 'add', f'{host.address}/24', 'dev', OUTER)

    @staticmethod
    def _script(switch, name, *words):
        switch.run('sh', '-e', '-s', '-', *words, text=listing(PAGE, name))

    def add_tap(self, host, name):
        self._script(self.switches[host], 'ovs-tap.sh', name,
                     str(self.mtu()))

    def mtu(self):
        return min(host.mtu(UPLINK) for host in self.switches) - OVERHEAD

    def port_of(self, host, hardware):
        return self.switches[host].port_of(hardware)

    def down(self):
        for switch in self.switches.values():
            switch.end()
