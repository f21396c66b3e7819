# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest: a QEMU process, its QMP channel and the agent inside.

QMP and the agent use socket pairs that QEMU inherits. So their paths cannot
collide, and both ends close together.
"""
import ctypes
import os
import re
import shlex
import signal
import socket
import subprocess

from . import foreign, kernel
from .agent import Channel, Guest
from .arch import NATIVE
from .paths import INSIDE, LOGS, STATE, TOP, LabError

_PR_SET_PDEATHSIG = 1
# Limit of bytes to read from a log, whose length the guest decides
LOG_MAX = 1 << 20


def host_tsc_khz():
    """The frequency of the host's TSC, or 0 if the guest has to measure it. On
    a busy machine a guest measures too low a frequency, and its clock is too
    fast. If the processor's clock varies, /proc/cpuinfo does not have the
    TSC's frequency."""
    if os.path.isdir('/sys/devices/system/cpu/cpu0/cpufreq'):
        return 0
    with open('/proc/cpuinfo', encoding='ascii') as f:
        found = re.search(r'^cpu MHz\s*: (\d+)\.(\d{3})', f.read(), re.M)
    return int(found.group(1) + found.group(2)) if found else 0


def die_with_parent():
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def prefer_threads(tids):
    """Give threads priority over vCPUs, which may poll on all processors.
    Return whether that is permitted."""
    for tid in tids:
        try:
            os.sched_setscheduler(tid, os.SCHED_RR | os.SCHED_RESET_ON_FORK,
                                  os.sched_param(1))
        except PermissionError:
            return False
    return True


def about_preference(preferred):
    """A line for the user about the result of prefer_main_loop()."""
    if preferred:
        return "QEMU's main loops have priority over vCPUs (SCHED_RR)"
    return "QEMU's main loops have no priority: CAP_SYS_NICE is missing"


def read_log(path):
    """The end of a log."""
    with open(path, 'rb') as f:
        f.seek(max(0, os.fstat(f.fileno()).st_size - LOG_MAX))
        return f.read(LOG_MAX).decode(errors='replace')


def end_of(text):
    """The most useful lines of a log: those around a panic, or the last."""
    lines = text.splitlines()
    for n, line in enumerate(lines):
        if 'Kernel panic' in line:
            # An oops comes before it, the stack after it.
            return lines[max(0, n - 40):n + 30]
    return lines[-30:]


def clock_parameters():
    """Kernel parameters for the TSC of a guest."""
    return f'tsc=reliable tsc_early_khz={host_tsc_khz()}'


def command_line(name, *more, arch=NATIVE):
    """The kernel's command line of a lab guest."""
    return ' '.join((
        f'console={arch.console} quiet panic=-1 mitigations=off nokaslr',
        arch.append, 'nowatchdog',
        'audit=0 apparmor=0 selinux=0 cryptomgr.notests net.ifnames=0',
        f'lab.init={INSIDE}/init.sh', f'lab.name={name}', *more))


class Vm(Guest):
    """A guest in a QEMU that start() starts."""

    def __init__(self, name, *devices, series=None, smp=1, mem='2G',
                 machine=None, accel='', append='', logs=LOGS, made=None,
                 arch=NATIVE, cpu=None, kvm=False):
        """@made: a kernel to use instead of that of a series; @accel: more
        options of TCG."""
        super().__init__(name)
        self.arch = arch
        self.devices = list(devices)
        self.kernel = made or kernel.prepare(series, arch)
        self.smp, self.mem = smp, mem
        self.machine, self.cpu = machine or arch.machine, cpu or arch.model
        self.kvm, self.accel, self.append = kvm, accel, append
        self.process = self.qmp_channel = None
        self.fds = []       # further descriptors that QEMU inherits
        self.tag = name     # beginning of the names of its QEMU's files
        self.logs = logs
        self.log = logs / f'{name}.console'
        self.out = logs / name

    def _emulator(self):
        return self.arch.qemu_binary()

    def _firmware(self):
        """QEMU's arguments for its firmware."""
        return self.arch.firmware()

    @staticmethod
    def _share(tag, path, addr):
        """QEMU's arguments for a directory that the guest can only read."""
        return ['-fsdev', f'local,id={tag},path={path},security_model=none,'
                'readonly=on,multidevs=remap',
                '-device',
                f'virtio-9p-pci,fsdev={tag},mount_tag={tag},addr={addr}']

    def _root(self):
        """(initramfs, kernel parameters, QEMU's arguments) for its root."""
        append = f'lab.modules={self.kernel.modules}'
        root, shares = '/', []
        if self.arch.foreign:
            root = foreign.root(self.arch)
            append += f' lab.shares=source:{TOP},state:{STATE}'
            shares = [*self._share('source', TOP, 'c'),
                      *self._share('state', STATE, 'd')]
        return (
            self.kernel.initramfs, append,
            [*self._share('hostroot', root, '8'), *shares,
             '-fsdev', f'local,id=out,path={self.out},security_model=none',
             '-device', 'virtio-9p-pci,fsdev=out,mount_tag=labout,addr=9'])

    def _accelerator(self):
        return 'kvm' if self.kvm else f'tcg,thread=multi{self.accel}'

    def _clock(self):
        """Kernel parameters about its TSC."""
        return '' if self.arch.foreign or self.kvm else clock_parameters()

    def _command(self, agent, qmp):
        """The command line of QEMU. @agent, @qmp: options of the character
        devices of the two channels."""
        initramfs, append, root = self._root()
        cmdline = command_line(self.name, self._clock(), append,
                               self.append, arch=self.arch)
        command = [
            str(self._emulator()), '-name', self.name,
            *self._firmware(),
            '-M', self.machine, '-accel', self._accelerator(),
            '-cpu', self.cpu,
            '-smp', str(self.smp), '-m', self.mem, '-nodefaults',
            '-no-user-config', '-display', 'none', '-no-reboot',
            '-serial', f'file:{self.log}',
            '-kernel', str(self.kernel.vmlinux),
            '-initrd', str(initramfs), '-append', cmdline, *root,
            '-device', 'virtio-rng-pci,addr=a',
            '-chardev', f'{agent},id=agent',
            # By default this device has 64 virtqueues. The main loop polls a
            # descriptor of each in each turn.
            '-device', 'virtio-serial-pci,max_ports=2,addr=b',
            '-device', 'virtserialport,chardev=agent,name=lab.agent',
            '-chardev', f'{qmp},id=qmp',
            '-qmp', 'chardev:qmp']
        return command + self.devices

    def _enter(self):
        """The prefix of QEMU's command line, for example for a namespace."""
        return []

    def _before_qemu(self):
        """Run in the child process before it executes QEMU."""
        die_with_parent()

    def start(self):
        """Start QEMU and return at once; see wait_ready()."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        agent_far = self.connect()
        qmp, qmp_far = socket.socketpair()
        fds = (agent_far.fileno(), qmp_far.fileno())
        command = self._command(*(f'socket,fd={fd}' for fd in fds))
        (self.logs / f'{self.tag}.cmdline').write_text(
            shlex.join(command) + '\n')
        with open(self.logs / f'{self.tag}.qemu', 'wb') as errors:
            # QEMU ends with the thread that starts it, so call this from the
            # main thread.
            self.process = subprocess.Popen(
                [*self._enter(), *command], stdin=subprocess.DEVNULL,
                stdout=errors, stderr=errors, pass_fds=[*fds, *self.fds],
                preexec_fn=self._before_qemu)
        agent_far.close()
        qmp_far.close()
        self.qmp_channel = Channel(f'{self.name} (QMP)', qmp)
        return self

    def wait_ready(self):
        """Wait until the guest's agent answers; the guest's uptime."""
        try:
            uptime = self.hears()
            self.qmp('qmp_capabilities')
        except LabError as e:
            self.kill()
            raise LabError(f'{e}\n{self.errors()}') from e
        return uptime

    def errors(self):
        """The end of the output of QEMU and of the guest's console."""
        said = []
        for path in (self.logs / f'{self.tag}.qemu', self.log):
            try:
                text = read_log(path).strip()
            except OSError:
                continue
            if text:
                said.append(f'--- {path.name}:\n' + '\n'.join(end_of(text)))
        return '\n'.join(said)

    def qemu_said(self):
        """The output of QEMU: warnings, and the log of -d."""
        return (self.logs / f'{self.tag}.qemu').read_text(errors='replace')

    # QEMU's monitor

    def qmp(self, command, /, timeout=60, **arguments):
        """Execute a QMP command; its return value."""
        return self.execute(command, arguments, timeout)

    def execute(self, command, arguments, timeout=60):
        """Execute a QMP command whose arguments may have any name, also
        `timeout`."""
        return self.qmp_channel.execute(command, arguments, timeout)

    def hmp(self, line):
        return self.qmp('human-monitor-command', **{'command-line': line})

    def prefer_main_loop(self):
        """Give QEMU's main loop and its iothreads priority, like libvirt's
        emulatorsched and iothreadsched. Return whether that is permitted."""
        iothreads = self.qmp('query-iothreads')
        return prefer_threads([self.process.pid,
                               *(io['thread-id'] for io in iothreads)])

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """End QEMU at once, as a crash would."""
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def quit(self):
        """End QEMU in an orderly way."""
        if self.alive():
            try:
                self.qmp('quit', timeout=10)
                self.process.wait(15)
            except (LabError, subprocess.TimeoutExpired):
                pass
        self.kill()
