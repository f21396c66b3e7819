# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest of a lab."""
import ipaddress
import os
import re
import shlex
import signal
import socket
import threading
import time
from dataclasses import asdict, dataclass

from guestkit.adapter import (address, backend, functions, load_nic, net_up,
                              nic, pvrdma_functions)
from guestkit.agent import BOOT_TIMEOUT, COMPLAINT
from guestkit.paths import LabError
from guestkit.stack import IPV4_GID, STACKS
from guestkit.vm import Vm, read_log

from . import confine, installed
from .session import Past

GIDS_BY = 20            # seconds until all adapters have their GIDs
PANIC = re.compile(r'Kernel panic - not syncing: (.*?)\s*$', re.M)
# No cache: the guests' next command reads what a command on the host wrote.
MOUNT = 'trans=virtio,version=9p2000.L,msize=512000,cache=mmap'


def hostname(index, number=1):
    """The name of a guest at its adapter @number."""
    return f'guest{index}' if number == 1 else f'guest{index}.{number}'


def gid_of(ipv4):
    """The GID of an address, in the form of sysfs."""
    return IPV4_GID + ipaddress.IPv4Address(ipv4).packed.hex(':', 2)


@dataclass
class Adapter:
    """An adapter of a guest. Commands in the guest may change its device and
    its GID."""
    number: int
    name: str           # of the guest there
    ipv4: str
    ipv6: str
    qmp: str            # its name in QMP
    device: str = ''    # last known name in the guest
    gid: int = None     # last known index of the GID of its IPv4 address
    link_up: bool = True


class LabGuest(Vm):
    """A guest. Its name is its host name; other labs may have the same."""

    def __init__(self, index, plan, networks, logs, kernel=None):
        self.index, self.plan = index, plan
        self.adapters = [
            Adapter(number, hostname(index, number),
                    address(index, 4, number), address(index, 6, number),
                    f'rdma{number - 1}') for number in plan.adapter_numbers]
        self.tty, tty = socket.socketpair()
        devices, inherited = [], []
        for network in networks:
            netdev, fds = network.netdev(index)
            devices += [*netdev, *self._functions(network)]
            inherited += fds
        super().__init__(
            hostname(index), *devices,
            '-chardev', f'socket,id=tty,fd={tty.fileno()}',
            # QEMU chooses slots for shares, so adapters come first.
            '-device', 'virtconsole,chardev=tty', *self._shares(), *plan.qemu,
            series=plan.series, smp=plan.smp, mem=plan.memory, logs=logs,
            append='lab.logs=none', made=kernel,
            kvm=plan.accelerator.name == 'kvm')
        self.fds = [tty.fileno(), *inherited]
        self.tty_far = tty
        self.its = self._stack(kernel)
        self.in_shell = threading.Lock()
        self.shell = None       # the last one
        self.past = Past()
        self.log_lock = threading.Lock()
        self.preferred = False  # its main loop has priority over its vCPUs
        self.fate = None        # how it ended
        self.watcher = None     # the thread that waits for its end

    def _functions(self, network):
        """QEMU's arguments for NIC and adapter on a network."""
        number = network.number
        way = self.plan.wire, network.directory
        options = {'options': f'id={self.adapters[number - 1].qmp}',
                   'mtu': self.plan.mtu, 'number': number,
                   'hardware': network.mac(self.index)}
        if self.plan.stack == 'pvrdma':
            return pvrdma_functions(self.index, *way, **options)
        return functions(self.index, self.plan.stack == 'virtio-rdma',
                         where=backend(*way, number=number), **options)

    def _stack(self, kernel):
        """Its RDMA stack, not loaded."""
        stacks = installed.STACKS if kernel else STACKS
        return stacks[self.plan.stack](self.plan.adapters)

    def _root(self):
        initramfs, append, arguments = super()._root()
        # Leave out the directory that tests write to.
        return initramfs, append, arguments[:4]

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
        """Wait until it has booted, and set up hosts, shares, NICs, RDMA."""
        self.wait_ready()
        hosts = ''.join(f'{address(i, 4, n)} {hostname(i, n)}\n'
                        f'{address(i, 6, n)} {hostname(i, n)}-6\n'
                        for n in self.plan.adapter_numbers
                        for i in range(1, self.plan.of + 1))
        commands = [f'printf %s {shlex.quote(hosts)} >> /etc/hosts']
        for number, path in enumerate(self.plan.shares):
            path = shlex.quote(path)
            commands.append(f'mkdir -p {path} && mount -t 9p -o {MOUNT} '
                            f'share{number} {path}')
        self.must(' && '.join(commands))
        if self.plan.is_bridged:
            self._be_the_only_one()
        net_up(self, self.index, self.plan.mtu, self.plan.adapters)
        self.its.up(self)
        self._wait_for_gids()
        self.preferred = self.prefer_main_loop()
        self.new_complaints()

    def _be_the_only_one(self):
        """Require that no guest of another lab has the address."""
        asked = self.run(
            f'{load_nic()} && ip link set {nic(1)} up && busybox arping '
            f'-D -q -I {nic(1)} -c 2 -w 2 {address(self.index)}')
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
        """Find its adapters and the GIDs of their addresses again, because
        commands in the guest may have changed both."""
        found = {gid: (device, index)
                 for device, table in self.its.tables(self).items()
                 for index, gid in table.items()}
        for adapter in self.adapters:
            adapter.device, adapter.gid = found.get(
                gid_of(adapter.ipv4), (adapter.device, None))

    def _wait_for_gids(self):
        """Wait until each adapter has the GID of its address."""
        end = time.monotonic() + GIDS_BY
        while True:
            self._look_up()
            missing = [a for a in self.adapters if a.gid is None]
            if not missing:
                return
            if time.monotonic() > end:
                raise LabError(
                    f'{self.name}: adapter {missing[0].number} has no GID of '
                    f'{missing[0].ipv4} after {GIDS_BY} s\n' +
                    self.run('rdma link; ip addr; dmesg | tail -n 20').out)
            time.sleep(0.1)

    def environment(self):
        """Variables about the lab for programs in the guest."""
        self._look_up()
        variables = {'VRDMA_GUEST': str(self.index),
                     'VRDMA_GUESTS': str(self.plan.of),
                     'VRDMA_ADAPTERS': str(self.plan.adapters)}
        for adapter in self.adapters:
            its = {'DEVICE': adapter.device, 'ADDRESS': adapter.ipv4,
                   'GID': '' if adapter.gid is None else str(adapter.gid)}
            for name, value in its.items():
                variables[f'VRDMA_{name}_{adapter.number}'] = value
                if adapter.number == 1:
                    variables[f'VRDMA_{name}'] = value
        return variables

    def command(self, words, directory, extra=()):
        """A command for the guest's shell. @extra: NAME=VALUE."""
        values = dict(self.environment())
        values.update(item.split('=', 1) for item in extra)
        exports = ' '.join(f'{name}={shlex.quote(value)}'
                           for name, value in values.items())
        return (f'export {exports}; cd {shlex.quote(directory)} || exit 125; '
                f'exec {shlex.join(words)}')

    def set_link(self, network, up):
        """Set the link of the adapter on a network up or down."""
        self.qmp('set_link', name=network.name, up=up)
        self.adapters[network.number - 1].link_up = up

    def require_folder(self, path):
        if not self.has_folder(path):
            share = f' in the guest: boot it with "up --share {path}"' \
                if os.path.isdir(path) else ' in the guest or on this machine'
            raise LabError(f'no directory {path}{share}')

    def describe(self):
        """The entry of the guest in the status."""
        return {'guest': self.index, 'name': self.name, 'fate': self.fate,
                'adapters': [asdict(adapter) for adapter in self.adapters],
                'kernel': self.kernel.release, 'image': None,
                'console': str(self.log), 'pid': self.process.pid}
