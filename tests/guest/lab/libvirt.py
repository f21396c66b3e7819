# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's libvirt in session mode, unpacked but not installed. The page about
libvirt has the domain XML of its guests."""
import json
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
import xml.etree.ElementTree as ET
from pathlib import Path

from guestkit import kernel
from guestkit.adapter import MTU, mac, net_up
from guestkit.agent import Channel, Guest
from guestkit.paths import LOGS, LabError, firmware_dirs, qemu_binary
from guestkit.vm import clock_parameters, command_line, end_of

from . import image, unpacked
from .hosts import OVERHEAD, LinuxBridge, make_hosts
from .pages import listing
from .pair import TwoGuests
from .runner import Skip

PAGE, EXAMPLE = 'virtio-rdma-libvirt', 'guest1.xml'
PACKAGES = ('libvirt-daemon', 'libvirt-daemon-driver-qemu', 'libvirt-clients')
QEMU_NAMESPACE = 'http://libvirt.org/schemas/domain/qemu/1.0'
AGENT = 'lab.agent'
# Option of rdma_verify: an ACK timeout of 8.6 s, after which it retries seven
# times
PATIENCE = '-k 21'


def ordinary_user():
    """Return (uid, gid) for libvirtd: the caller's, or another user's if the
    caller is root. As root, libvirtd would serve the system instead of a
    session."""
    if os.geteuid():
        return os.geteuid(), os.getegid()
    user = next(u for u in pwd.getpwall() if u.pw_uid)
    return user.pw_uid, user.pw_gid


class Session:
    """A libvirtd of a user, on a host. All that it starts ends with it."""

    def __init__(self, host, directory):
        self.host = host
        self.directory = Path(directory) / f'host{host.number}'
        self.directory.mkdir()
        self.log = LOGS / f'libvirtd-{host.number}'
        self.root = str(unpacked.tree('libvirt', PACKAGES))
        host.require_packages(self.root)
        # virsh must not start a libvirtd of its own, which would not end.
        self.environment = {**os.environ, 'LC_ALL': 'C',
                            'HOME': str(self.directory),
                            'LIBVIRT_AUTOSTART': '0'}
        for name in ('RUNTIME_DIR', 'CONFIG_HOME', 'CACHE_HOME', 'DATA_HOME',
                     'STATE_HOME'):
            # A short path, because there is a limit for paths of sockets
            path = self.directory / name[:3].lower()
            path.mkdir(mode=0o700)
            self.environment[f'XDG_{name}'] = str(path)
        self.process = None
        # Both hosts have the UUID of the machine. libvirt does not migrate to
        # a host with the UUID of its own.
        self._configure(f'host_uuid = "{uuid.uuid4()}"\n')

    def _configure(self, text):
        path = Path(self.environment['XDG_CONFIG_HOME']) / 'libvirt'
        path.mkdir()
        (path / 'libvirtd.conf').write_text(text, encoding='utf-8')

    @property
    def socket(self):
        return f'{self.environment["XDG_RUNTIME_DIR"]}/libvirt/libvirt-sock'

    def _as_user(self, *words):
        """Return the words that run a command with libvirt's packages. The
        command sees the IDs of ordinary_user(), in a user namespace. The
        kernel grants it the rights of the caller."""
        uid, gid = ordinary_user()
        return [unpacked.SCRIPT, self.root, 'unshare', '--user',
                f'--map-user={uid}', f'--map-group={gid}', '--', *words]

    def start(self):
        with open(self.log, 'wb') as said:
            # QEMU leaves the session of libvirtd, but not the process
            # namespace, which ends with its first process: the shell. The
            # shell also reaps orphans. It must not exec libvirtd, which
            # changes its user: that cancels the signal of --kill-child.
            self.process = subprocess.Popen(
                [*self.host.lasting, 'unshare', '--pid', '--fork',
                 '--kill-child', '--mount-proc', '--',
                 'bash', '-c', '"$@" & wait', 'bash',
                 *self._as_user('libvirtd')],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=said,
                stderr=said)
        end = time.monotonic() + 60
        while self.virsh('list', check=False).returncode:
            if self.process.poll() is not None or time.monotonic() > end:
                raise LabError('no libvirtd:\n' + self.log.read_text())
            time.sleep(0.2)
        return self

    def virsh(self, *words, timeout=120, check=True):
        """Run virsh, and require success."""
        done = subprocess.run(
            [*self.host.enter, *self._as_user(
                'virsh', '-q', '-c', 'qemu:///session', *words)],
            env=self.environment, text=True, capture_output=True,
            timeout=timeout, check=False)
        # QEMU 11 has removed this argument, which libvirt 9 sends.
        if "'detach' is unexpected" in done.stderr:
            raise Skip('this libvirt is too old to migrate guests of this '
                       f'QEMU: {done.stderr.strip()}')
        if check and done.returncode:
            raise LabError(f'$ virsh {shlex.join(words)}\n{done.stdout}'
                           f'{done.stderr}')
        return done

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()


class Domain(Guest):
    """A guest with the page's XML, except for its name, tap, MAC address and
    emulator. It has TCG instead of KVM, a kernel and a root in memory instead
    of a disk, a file as console, and a channel for the agent."""

    def __init__(self, name, index, session, directory, emulator):
        super().__init__(name)
        self.index, self.session = index, session
        self.directory = Path(directory)
        self.kernel = kernel.prepare(None)
        self.log = LOGS / f'{name}.console'
        self.xml = self.directory / f'{name}.xml'
        self.xml.write_text(self._changed(emulator), encoding='utf-8')

    def _changed(self, emulator):
        ET.register_namespace('qemu', QEMU_NAMESPACE)
        top = ET.fromstring(listing(PAGE, EXAMPLE))
        top.set('type', 'qemu')
        top.find('name').text = self.name
        devices = top.find('devices')
        devices.find('emulator').text = str(emulator)
        nic = devices.find('interface')
        nic.find('mac').set('address', mac(self.index))
        nic.find('target').set('dev', f'tap{self.index}')
        devices.remove(devices.find('disk'))
        boot = top.find('os')
        for key, value in (('kernel', self.kernel.vmlinux),
                           ('initrd', image.build()),
                           ('cmdline', command_line(self.name,
                                                    clock_parameters()))):
            ET.SubElement(boot, key).text = str(value)
        devices.remove(devices.find('console'))
        devices.append(ET.fromstring(
            f'<serial type="file"><source path="{self.log}"/></serial>'))
        devices.append(ET.fromstring(
            f'<channel type="unix"><target type="virtio" name="{AGENT}"/>'
            '</channel>'))
        return ET.tostring(top, encoding='unicode')

    def hear(self):
        """Connect to the agent of a QEMU that has just started."""
        now = ET.fromstring(self.virsh('dumpxml'))
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(now.find('devices/channel/source').get('path'))
        self.agent = Channel(self.name, sock)

    def wait_ready(self):
        try:
            self.hears()
        except LabError as e:
            raise LabError(f'{e}\n{self.errors()}') from e

    def virsh(self, command, *words, **options):
        return self.session.virsh(command, self.name, *words,
                                  **options).stdout.strip()

    def monitor(self, command, **arguments):
        """Run a QMP command, and return its result."""
        said = self.virsh('qemu-monitor-command', json.dumps(
            {'execute': command, 'arguments': arguments}))
        answer = json.loads(said)
        if 'error' in answer:
            raise LabError(f'{self.name}: {command}: {said}')
        return answer['return']

    def _own(self, text):
        """Change the names that the page has for guest 1 to those of this
        guest."""
        return text.replace(mac(1), mac(self.index)).replace(
            'tap1', f'tap{self.index}')

    def page_text(self, name):
        return self._own(listing(PAGE, name))

    def page_file(self, name):
        path = self.directory / f'{self.name}-{name}'
        path.write_text(self.page_text(name), encoding='utf-8')
        return str(path)

    def lacks(self, *ids, seconds=60):
        """Wait until QEMU has none of these devices."""
        end = time.monotonic() + seconds
        while True:
            there = {entry['name'] for entry in
                     self.monitor('qom-list', path='/machine/peripheral')}
            if not there & set(ids):
                return
            if time.monotonic() > end:
                raise LabError(f'{self.name} still has {there & set(ids)}')
            time.sleep(0.2)

    def net_up(self):
        net_up(self, self.index)

    def save_and_restore(self, with_adapter_at=None):
        """Save the guest to a file, and restore it. @with_adapter_at: the bus
        of an adapter that was plugged in by QMP, unknown to libvirt."""
        path = str(self.directory / f'{self.name}.saved')
        more = []
        if with_adapter_at:
            text = self.virsh('dumpxml', '--migratable')
            edited = self.xml.with_suffix('.edited')
            edited.write_text(text.replace('pci.1', with_adapter_at).replace(
                '0.1&quot;', '0&quot;'), encoding='utf-8')
            more = ['--xml', str(edited)]
        self.virsh('save', path, *more)
        self.session.virsh('restore', path)
        self.hear()

    def migrate(self, session):
        """Migrate the running guest to another host."""
        self.virsh('migrate', '--live', '--persistent', '--undefinesource',
                   f'qemu+unix:///session?socket={session.socket}',
                   f'tcp://{session.host.address}')
        self.session = session
        self.hear()

    def alive(self):
        done = self.session.virsh('domstate', self.name, check=False)
        return done.stdout.strip() == 'running'

    def errors(self):
        """Return the last lines of QEMU and of the guest's console."""
        said = []
        base = Path(self.session.environment['XDG_CACHE_HOME'])
        for path in (base / 'libvirt' / 'qemu' / 'log' / f'{self.name}.log',
                     self.log):
            if path.exists():
                text = path.read_text(errors='replace')
                said.append(f'--- {path.name}:\n' + '\n'.join(end_of(text)))
        return '\n'.join(said)


class LibvirtPair(TwoGuests):
    """Two domains, each with a host and a libvirtd of its own; replaces a
    Pair."""

    def __init__(self, tag, rdma=True):
        self.tag, self.rdma = tag, rdma
        self.directory = tempfile.mkdtemp(prefix='vrdma-')
        self.hosts, self.sessions, self.vms = [], [], []

    def _emulator(self):
        """Write a script that runs QEMU with the path of its firmware, which a
        QEMU that is not installed does not know. Return its path."""
        path = Path(self.directory) / 'qemu'
        options = ' '.join(f'-L {d}' for d in firmware_dirs())
        path.write_text('#!/bin/sh\n'
                        f'exec {qemu_binary()} {options} "$@"\n')
        path.chmod(0o755)
        return path

    def start(self):
        try:
            LOGS.mkdir(parents=True, exist_ok=True)
            make_hosts(self.hosts, MTU + OVERHEAD)
            switch = LinuxBridge(self.hosts)
            switch.up()
            emulator = self._emulator()
            for index, host in enumerate(self.hosts, 1):
                for tap in ('tap1', 'tap2'):
                    switch.add_tap(host, tap)
                self.sessions.append(Session(host, self.directory))
                self.vms.append(Domain(f'guest{index}', index,
                                       self.sessions[-1], self.directory,
                                       emulator))
            for session in self.sessions:
                session.start()
            for vm in self.vms:
                vm.session.virsh('define', str(vm.xml))
                vm.virsh('start')
                vm.hear()
            for vm in self.vms:
                vm.wait_ready()
                vm.net_up()
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self):
        for session in self.sessions:
            session.end()
        for host in reversed(self.hosts):
            host.end()
        shutil.rmtree(self.directory, ignore_errors=True)
