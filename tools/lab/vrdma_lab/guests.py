# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest of a lab."""
import ipaddress
import os
import re
import shlex
import signal
import socket
import threading

from guestkit.adapter import (address, backend, functions, load_nic, net_up,
                              pvrdma_functions)
from guestkit.agent import BOOT_TIMEOUT, COMPLAINT
from guestkit.paths import LabError
from guestkit.stack import IPV4_GID, STACKS
from guestkit.vm import Vm, read_log

from . import confine, installed
from .session import Past

PANIC = re.compile(r'Kernel panic - not syncing: (.*?)\s*$', re.M)
# No cache: the guests' next command reads what a command on the host wrote.
MOUNT = 'trans=virtio,version=9p2000.L,msize=512000,cache=mmap'


def hostname(index):
    return f'guest{index}'


def gid_of(ipv4):
    """The GID of an address, in the form of sysfs."""
    return IPV4_GID + ipaddress.IPv4Address(ipv4).packed.hex(':', 2)


class LabGuest(Vm):
    """A guest. Its name is its host name; other labs may have the same."""

    def __init__(self, index, plan, network, logs, kernel=None):
        self.index, self.plan = index, plan
        self.tty, tty = socket.socketpair()
        netdev, inherited = network.netdev(index)
        super().__init__(
            hostname(index), *netdev, *self._adapter(network),
            '-chardev', f'socket,id=tty,fd={tty.fileno()}',
            '-device', 'virtconsole,chardev=tty', *plan.qemu,
            series=plan.series, smp=plan.smp, mem=plan.memory, logs=logs,
            append='lab.logs=none', made=kernel)
        self.fds = [tty.fileno(), *inherited]
        self.tty_far = tty
        self.its = self._stack(kernel)
        self.in_shell = threading.Lock()
        self.shell = None       # the last one
        self.past = Past()
        self.gid = None         # last known index of its address's GID
        self.log_lock = threading.Lock()
        self.preferred = False  # its main loop has priority over its vCPUs
        self.fate = None        # how it ended
        self.watcher = None     # the thread that waits for its end

    def _adapter(self, network):
        """QEMU's arguments for NIC and adapter."""
        way = self.plan.wire, network.directory
        options = {'options': 'id=rdma0', 'mtu': self.plan.mtu,
                   'hardware': network.mac(self.index)}
        if self.plan.stack == 'pvrdma':
            return pvrdma_functions(self.index, *way, **options)
        return functions(self.index, self.plan.stack == 'virtio-rdma',
                         where=backend(*way), **options)

    def _stack(self, kernel):
        """Its RDMA stack, not loaded."""
        return (installed.STACKS if kernel else STACKS)[self.plan.stack]()

    def _root(self):
        initramfs, append, arguments = super()._root()
        # Leave out the directory that tests write to.
        return initramfs, append, arguments[:4] + self._shares()

    def _shares(self):
        arguments = []
        for number, path in enumerate(self.plan.shares):
            escaped = path.replace(',', ',,')
            arguments += [
                '-fsdev', f'local,id=share{number},path={escaped},'
                'security_model=none,multidevs=remap',
                '-device', f'virtio-9p-pci,fsdev=share{number},'
                f'mount_tag=share{number}']
        return arguments

    def _accelerator(self):
        return 'kvm' if self.plan.accelerator == 'kvm' \
            else super()._accelerator()

    def _clock(self):
        return '' if self.plan.accelerator == 'kvm' else super()._clock()

    def _before_qemu(self):
        super()._before_qemu()
        confine.confine()

    def start(self):
        super().start()
        self.tty_far.close()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()
        return self

    def _watch(self):
        code = self.process.wait()
        if code < 0:
            self.fate = f'QEMU was killed by {signal.Signals(-code).name}'
        elif code:
            self.fate = f'QEMU ended with exit code {code}'
        else:
            panic = PANIC.search(read_log(self.log))
            self.fate = f'its kernel panicked: {panic.group(1)}' if panic \
                else 'it was switched off'

    def hears(self, timeout=BOOT_TIMEOUT):
        # All guests boot at once, and share the processors.
        return super().hears(timeout * (1 + self.plan.guests // 2))

    def bring_up(self):
        """Wait until it has booted, and set up hosts, shares, NIC and RDMA."""
        self.wait_ready()
        hosts = ''.join(f'{address(i)} {hostname(i)}\n'
                        f'{address(i, 6)} {hostname(i)}-6\n'
                        for i in range(1, self.plan.of + 1))
        commands = [f'printf %s {shlex.quote(hosts)} >> /etc/hosts']
        for number, path in enumerate(self.plan.shares):
            path = shlex.quote(path)
            commands.append(f'mkdir -p {path} && mount -t 9p -o {MOUNT} '
                            f'share{number} {path}')
        self.must(' && '.join(commands))
        if self.plan.is_bridged:
            self._be_the_only_one()
        net_up(self, self.index, mtu=self.plan.mtu)
        self.its.up(self)
        self._look_up()
        self.preferred = self.prefer_main_loop()
        self.new_complaints()

    def _be_the_only_one(self):
        """Require that no guest of another lab has the address."""
        asked = self.run(
            f'{load_nic()} && ip link set eth0 up && busybox arping '
            f'-D -q -I eth0 -c 2 -w 2 {address(self.index)}')
        if asked.rc == 1:
            raise LabError(f'{address(self.index)} is taken, probably by '
                           f'guest {self.index} of another lab on this '
                           'network: choose other numbers with --first')
        if asked.rc:
            raise LabError(str(asked))

    def new_complaints(self):
        """The first complaint in the new part of its kernel's log, or ''."""
        with self.log_lock:
            before = len(self.said)
            try:
                log = self.kernel_log()[before:]
            except LabError:
                return ''
        found = COMPLAINT.search(log)
        return log[max(0, found.start() - 300):][:3000] if found else ''

    def _look_up(self):
        """Find its adapter and the GID of its address again, because commands
        in the guest may have changed both."""
        mine = gid_of(address(self.index))
        self.its.device = self.its.find(self) or self.its.device
        self.gid = next((index for index, gid in self.its.gids(self).items()
                         if gid == mine), None)

    def environment(self):
        """Variables about the lab for programs in the guest."""
        self._look_up()
        return {'VRDMA_GUEST': str(self.index),
                'VRDMA_GUESTS': str(self.plan.of),
                'VRDMA_DEVICE': self.its.device,
                'VRDMA_GID': '' if self.gid is None else str(self.gid),
                'VRDMA_ADDRESS': address(self.index)}

    def command(self, words, directory, extra=()):
        """A command for the guest's shell. @extra: NAME=VALUE."""
        values = dict(self.environment())
        values.update(item.split('=', 1) for item in extra)
        exports = ' '.join(f'{name}={shlex.quote(value)}'
                           for name, value in values.items())
        return (f'export {exports}; cd {shlex.quote(directory)} || exit 125; '
                f'exec {shlex.join(words)}')

    def require_folder(self, path):
        if not self.has_folder(path):
            share = f' in the guest: boot it with "up --share {path}"' \
                if os.path.isdir(path) else ' in the guest or on this machine'
            raise LabError(f'no directory {path}{share}')

    def describe(self):
        """The entry of the guest in the status."""
        return {'guest': self.index, 'name': self.name, 'fate': self.fate,
                'ipv4': address(self.index), 'ipv6': address(self.index, 6),
                'device': self.its.device, 'gid': self.gid,
                'kernel': self.kernel.release, 'image': None,
                'console': str(self.log), 'pid': self.process.pid}
