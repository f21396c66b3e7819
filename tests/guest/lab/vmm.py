# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests whose adapters come from virtio-rdma-server: with their NICs, for
Debian's own QEMU, or by vhost-user, for ours. The scripts of the page about it
start servers and guests."""
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from guestkit import buildroot
from guestkit.adapter import MTU, functions, mac, net_up
from guestkit.paths import LOGS, STATE, TOP, LabError, Unavailable, \
    qemu_binary, say, state_lock
from guestkit.vm import Vm, die_with_parent, read_log

from .pages import listing
from .pair import TwoGuests
from .runner import Skip

PAGE = 'virtio-rdma-server'
# The suites that Debian's QEMU comes from. It is a client of vfio-user from
# 10.1 on; Debian 13 itself has 10.0.
SUITES = os.environ.get('CLIENT_SUITES', 'trixie-backports trixie')
PACKAGE = 'qemu-system-x86'
LIBRARIES = 'usr/lib/x86_64-linux-gnu'
# A slot for devices and one for memory that are plugged in
ROOM = ('-device', 'pcie-root-port,id=rp1,chassis=1', '-m',
        'slots=1,maxmem=4G')
FIRMWARE = ('seabios', 'qemu', 'ipxe/qemu')


def debian_qemu():
    """Return the root of Debian's QEMU. Skip if it is not available."""
    name = SUITES.split(maxsplit=1)[0]
    root = STATE / f'{PACKAGE}-{name}'
    with state_lock():
        if not (root / 'ready').exists():
            say(f'{PACKAGE} of {name}: fetching')
            try:
                buildroot.fill(root, SUITES, [PACKAGE])
            except Unavailable as e:
                raise Skip(str(e)) from e
            (root / 'ready').touch()
    return root


def write_program(root, path):
    """Write a program that runs the QEMU of a root with the C library and the
    firmware of its release."""
    words = ['env', f'QEMU_MODULE_DIR={root}/{LIBRARIES}/qemu',
             f'{root}/usr/lib64/ld-linux-x86-64.so.2', '--library-path',
             f'{root}/{LIBRARIES}', f'{root}/usr/bin/qemu-system-x86_64']
    for name in FIRMWARE:
        words += ['-L', f'{root}/usr/share/{name}']
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)


def stock_qemu():
    """The path of a QEMU without patches that was built for these tests, or
    None for Debian's packages"""
    return os.environ.get('STOCK_QEMU')


class ServedVm(Vm):
    """A guest with the devices of a server."""

    def __init__(self, name, server, *devices, **options):
        super().__init__(name, *devices, **options)
        self.server = server

    def _options(self):
        """A file with the options for its devices."""
        return self.server.options

    def _command(self, agent, qmp):
        emulator, *words = super()._command(agent, qmp)
        return ['sh', f'{self.server.directory}/guest.sh', emulator,
                str(self._options()), self.mem, *words]

    def reboot(self, command=''):
        """Reset the machine, or let a command in the guest reboot it, and wait
        for the agent."""
        self.qmp('set-action', reboot='reset')
        if command:
            self.spawn(f'sleep 0.2; {command}')
        else:
            self.qmp('system_reset')
        try:
            self.hears()
        except LabError as e:
            raise LabError(f'{e}\n{self.errors()}\n{self._registers()}') from e

    def _registers(self):
        """Where the guest's processors are, and whether they run."""
        try:
            status = self.qmp('query-status', timeout=10)
            return f'{status}\n{self.hmp("info registers -a")}'
        except LabError as e:
            return str(e)


class StockVm(ServedVm):
    """A guest with the devices of a server, in a QEMU without patches:
    Debian's, or STOCK_QEMU."""

    def _emulator(self):
        return f'{self.server.directory}/qemu'

    def _firmware(self):
        return []


class Server:
    """virtio-rdma-server with the devices of a guest. @more: options of its
    command line"""

    def __init__(self, tag, index, directory, *more):
        self.directory = directory
        self.name = f'guest{index}'
        self.socket = Path(directory) / f'{self.name}.sock'
        self.options = Path(directory) / f'{self.name}.options'
        self.log = LOGS / f'{tag}-{index}.server'
        self.arguments = [
            f'dgram,local.type=unix,local.path={directory}/end{index},'
            f'remote.type=unix,remote.path={directory}/end{3 - index}',
            '--mac', mac(index), *more]
        self.process = None

    def start(self):
        """Start it, and wait until its sockets are ready."""
        LOGS.mkdir(parents=True, exist_ok=True)
        self.options.unlink(missing_ok=True)
        with open(self.log, 'ab') as errors:
            # The server ends with this process, and its QEMU with the server.
            self.process = subprocess.Popen(
                ['sh', f'{self.directory}/server.sh', self.directory,
                 self.name, *self.arguments],
                stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                preexec_fn=die_with_parent,
                env={**os.environ, 'QEMU': str(qemu_binary()),
                     'PATH': f'{TOP}/tools/server:{os.environ["PATH"]}'})
        end = time.monotonic() + 30
        while not (self.options.exists() and
                   self.options.read_text().count('\n') == 2):
            if self.process.poll() is not None or time.monotonic() > end:
                raise LabError('virtio-rdma-server did not start:\n' +
                               read_log(self.log))
            time.sleep(0.05)

    @property
    def pid(self):
        """The process ID of its QEMU."""
        own = self.process.pid
        with open(f'/proc/{own}/task/{own}/children', encoding='ascii') as f:
            return int(f.read())

    def kill(self):
        """End its QEMU, as a crash would. Return the exit status."""
        if not self.process:
            return None
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
        status = self.process.wait()
        self.process = None
        return status


class Served(TwoGuests):
    """Base class for two guests, each with a server of its own."""

    def __init__(self, mtu):
        self.mtu = mtu
        self.directory = tempfile.mkdtemp(prefix='vrdma-')
        self.servers = self.vms = ()
        for name in ('server.sh', 'guest.sh'):
            (Path(self.directory) / name).write_text(listing(PAGE, name))

    def add_stock_qemu(self):
        path = Path(self.directory) / 'qemu'
        if stock_qemu():
            path.symlink_to(stock_qemu())
        else:
            write_program(debian_qemu(), path)

    def wait(self, index):
        """Wait until a guest is up, and bring its NIC up."""
        vm = self.vms[index - 1]
        vm.wait_ready()
        net_up(vm, index, mtu=self.mtu)

    def start(self):
        try:
            for server in self.servers:
                server.log.unlink(missing_ok=True)
                server.start()
            for vm in self.vms:
                vm.start()
            for index in (1, 2):
                self.wait(index)
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self):
        for vm in self.vms:
            vm.kill()
        for server in self.servers:
            server.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


class ServedPair(Served):
    """Guests of Debian's QEMU. Their servers have the NICs, too. @hotplug:
    more devices and memory can be plugged in"""

    def __init__(self, tag, rdma=True, adapter='virtio-rdma', mtu=MTU, smp=1,
                 mem='1G', hotplug=False):
        assert rdma, 'rxe needs no server'
        super().__init__(mtu)
        self.add_stock_qemu()
        self.servers = [Server(tag, index, self.directory, '--mtu', str(mtu),
                               '--adapter', adapter) for index in (1, 2)]
        self.vms = [StockVm(f'{tag}-{index}', server,
                             *(ROOM if hotplug else ()), smp=smp, mem=mem)
                    for index, server in enumerate(self.servers, 1)]


class SeedVm(ServedVm):
    """A guest whose adapter has the options of the proposal of May 2022."""

    def _options(self):
        path = self.server.options.with_suffix('.seed')
        path.write_text(
            f'-chardev socket,path={self.server.socket},id=vrdma '
            '-device vhost-user-rdma-pci,page-per-vq,chardev=vrdma\n')
        return path


class VhostUserPair(Served):
    """Guests of our QEMU, which has the NICs. Their servers have the adapters.
    @kinds: the class of each guest"""

    def __init__(self, tag, rdma=True, mtu=MTU, smp=1, mem='1G',
                 kinds=(ServedVm, ServedVm)):
        assert rdma, 'rxe needs no server'
        super().__init__(mtu)
        self.servers = [
            Server(tag, index, self.directory, '--protocol', 'vhost-user',
                   '--mtu', str(mtu)) for index in (1, 2)]
        self.vms = [
            kind(f'{tag}-{index}', server, '-netdev',
                 f'dgram,id=n0,local.type=unix,local.path={self.directory}/'
                 f'nic{index},remote.type=unix,'
                 f'remote.path={self.directory}/nic{3 - index}',
                 *functions(index, rdma=False, mtu=mtu), smp=smp, mem=mem)
            for index, (kind, server) in
            enumerate(zip(kinds, self.servers), 1)]
