# SPDX-License-Identifier: GPL-2.0-or-later
"""Hosts that are network namespaces of this machine, and guests on them.

One link, eth0, connects the hosts: the underlay. On each host, scripts of the
page about several hosts make a bridge, and a tap for each guest. VXLAN makes
both bridges one network. A guest migrates from one host to the other by TCP
over the underlay.
"""
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time

from guestkit.adapter import MTU, mac, net_up
from guestkit.paths import LabError

from . import unpacked
from .moving import MovingVm, TwoMovingGuests
from .pages import listing
from .pair import functions
from .runner import Skip

PAGE = 'virtio-rdma-hosts'
UPLINK, BRIDGE = 'eth0', 'br0'
# Bytes of an underlay packet that VXLAN takes
OVERHEAD = 50


class Host:
    """A host. It ends with this process."""

    def __init__(self, number, above=None):
        """@above: a host whose user namespace this one shares. A user without
        root needs a user namespace to create network namespaces."""
        self.number = number
        self.address = f'192.0.2.{number}'
        owner = [] if above or os.geteuid() == 0 else \
            ['--user', '--map-root-user']
        # This process ends when its input ends, also because the test was
        # killed.
        self.process = subprocess.Popen(
            [*(above.enter if above else []), 'unshare', *owner, '--net',
             '--', 'sh', '-c', 'echo; exec cat'], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            why = self.process.communicate()[1].strip()
            raise Skip(f'no network namespaces here: {why}')
        user = [] if os.geteuid() == 0 else \
            ['--user', '--preserve-credentials']
        self.enter = ['nsenter', f'--target={self.process.pid}', '--net',
                      *user, '--']

    @property
    def lasting(self):
        """Return the words before a command that has to end with this process.
        They request the signal for that after nsenter: a process that enters
        another user namespace loses an earlier request."""
        return [*self.enter, 'setpriv', '--pdeathsig', 'KILL', '--']

    def run(self, *words, text=None, env=None):
        """Run a command on the host, which has to succeed, and return its
        output."""
        done = subprocess.run([*self.enter, *words], input=text, text=True,
                              capture_output=True, check=False, env=env)
        if done.returncode:
            command = shlex.join(map(str, words))
            raise LabError(f'host {self.number}: $ {command}\n'
                           f'{done.stderr}{done.stdout}'.rstrip())
        return done.stdout

    def _require(self, what, *words):
        """Skip the test if a command fails on the host: the machine lacks
        something."""
        try:
            self.run(*words)
        except LabError as e:
            raise Skip(f'no {what} here: {" ".join(str(e).split())}') from e

    def require(self, kind, *options):
        """Require a kind of network device."""
        self._require(kind, 'ip', 'link', 'add', 'probe', 'type', kind,
                      *options)
        self.run('ip', 'link', 'del', 'probe')

    def require_taps(self):
        tap = 'probe', 'mode', 'tap'
        self._require('taps', 'ip', 'tuntap', 'add', *tap)
        self.run('ip', 'tuntap', 'del', *tap)

    def require_packages(self, root):
        """Require unpacked packages, which commands see as installed."""
        self._require('overlay on /usr', unpacked.SCRIPT, str(root), 'true')

    def script(self, name, *words):
        """Run a script that the page shows."""
        return self.run('sh', '-e', '-s', '-', *words,
                        text=listing(PAGE, name))

    def mtu(self, link):
        return json.loads(self.run('ip', '-j', 'link', 'show',
                                   link))[0]['mtu']

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def make_hosts(hosts, underlay):
    """Create two hosts, with a link of this MTU, and append them to a list."""
    hosts.append(Host(1))
    hosts.append(Host(2, above=hosts[0]))
    one, two = hosts
    one.require('veth')
    one.require_taps()
    one.run('ip', 'link', 'add', UPLINK, 'type', 'veth', 'peer', 'name',
            UPLINK, 'netns', str(two.process.pid))
    for host in hosts:
        host.run('ip', 'link', 'set', 'lo', 'up')
        host.run('ip', 'link', 'set', UPLINK, 'mtu', str(underlay), 'up')
        host.run('ip', 'addr', 'add', f'{host.address}/24', 'dev', UPLINK)


class LinuxBridge:
    """A Linux bridge on each host, as the page sets it up."""

    def __init__(self, hosts):
        self.hosts = hosts

    @staticmethod
    def require(host):
        host.require('bridge')
        host.require('vxlan', 'id', '1', 'dstport', '4789')

    def up(self):
        self.require(self.hosts[0])
        for host in self.hosts:
            others = [h.address for h in self.hosts if h is not host]
            host.script('bridge.sh', UPLINK, host.address, *others)

    @staticmethod
    def add_tap(host, name):
        host.script('tap.sh', name)

    def mtu(self):
        return min(host.mtu(BRIDGE) for host in self.hosts)

    @staticmethod
    def port_of(host, hardware):
        """Return the port behind which a bridge last saw an address."""
        shown = host.run('bridge', '-j', 'fdb', 'show', 'br', BRIDGE)
        found = [entry['ifname'] for entry in json.loads(shown)
                 if entry['mac'] == hardware and 'master' in entry]
        return found[0] if found else None

    def down(self):
        """Nothing to do: the bridge ends with the namespaces."""


class HostedVm(MovingVm):
    """A guest that migrates from host to host. @home: the number of its first
    host, counted from 0."""

    def __init__(self, hosts, home, *args, **options):
        super().__init__(*args, **options)
        self.hosts, self.home = hosts, home

    @property
    def host(self):
        return self.hosts[(self.home + self.number) % len(self.hosts)]

    def _enter(self):
        return self.host.lasting

    def move(self, timeout=120, source=None, **options):
        """Migrate to the other host."""
        source = source or self.prepare_move()
        port = 4444 + self.home
        return super().move(timeout, source=source,
                            uri=f'tcp:{self.host.address}:{port}', **options)


class HostedPair(TwoMovingGuests):
    """Guest 1 on host 1 and guest 2 on host 2; replaces a Pair. @underlay: the
    MTU of the link between the hosts, @nic: more properties of the guests'
    NICs."""

    def __init__(self, tag, rdma=True, underlay=MTU + OVERHEAD, smp=2,
                 mem='512M', switch=LinuxBridge, nic=''):
        self.underlay, self.make_switch = underlay, switch
        self.nic = nic
        self.directory = tempfile.mkdtemp(prefix='vrdma-')
        self.hosts, self.vms = [], []
        self.switch, self.mtu = None, 0
        for home in (0, 1):
            self.vms.append(HostedVm(
                self.hosts, home, f'{tag}-{home + 1}', self.directory,
                lambda number, i=home + 1: self._devices(i, rdma), mem=mem,
                smp=smp))

    def _devices(self, index, rdma):
        return ['-netdev', f'tap,id=n0,ifname=tap{index},script=no,'
                'downscript=no',
                *functions(index, rdma, mtu=self.mtu, nic_options=self.nic)]

    def start(self):
        try:
            make_hosts(self.hosts, self.underlay)
            self.switch = self.make_switch(self.hosts)
            self.switch.up()
            for host in self.hosts:
                for index in (1, 2):
                    self.switch.add_tap(host, f'tap{index}')
            self.mtu = self.switch.mtu()
            for vm in self.vms:
                vm.start()
            for index, vm in enumerate(self.vms, 1):
                vm.wait_ready()
                net_up(vm, index, mtu=self.mtu)
        except BaseException:
            self.kill()
            raise
        return self

    def ports(self, index):
        """Return the port for each guest on each host's bridge."""
        return [self.switch.port_of(host, mac(index)) for host in self.hosts]

    def kill(self):
        for vm in self.vms:
            vm.kill()
        if self.switch:
            self.switch.down()
        for host in reversed(self.hosts):
            host.end()
        self.hosts.clear()
        shutil.rmtree(self.directory, ignore_errors=True)


def settled(pair, index, wanted, seconds=30):
    """Wait until the bridges have a guest behind these ports, one for each
    host. The guest or its adapter must have sent a frame."""
    end = time.monotonic() + seconds
    while (ports := pair.ports(index)) != wanted:
        if time.monotonic() > end:
            raise LabError(f'guest {index} is behind {ports} of the hosts, '
                           f'not {wanted}')
        time.sleep(0.2)
