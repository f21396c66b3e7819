# SPDX-License-Identifier: GPL-2.0-or-later
"""One guest: a QEMU process, its QMP channel and the agent inside.

QMP and the agent talk over socket pairs that QEMU inherits, so there are no
paths to collide and both ends vanish together.
"""
import ctypes
import itertools
import json
import queue
import re
import shlex
import signal
import socket
import subprocess
import threading
import time

from . import kernel
from .paths import (GUEST_TESTS, LOGS, LabError, firmware_dirs, qemu_binary)

BOOT_TIMEOUT = 120
COMPLAINT = re.compile(r'BUG[: ]|WARNING:|Oops|Call Trace|'
                       r'blocked for more than|pagealloc: ')
_PR_SET_PDEATHSIG = 1


def host_tsc_khz():
    """A guest that measures it on a busy machine gets it wrong, and then has
    a clock that is too fast. 0: let it measure."""
    with open('/proc/cpuinfo', encoding='ascii') as f:
        found = re.search(r'^cpu MHz\s*: (\d+)\.(\d{3})', f.read(), re.M)
    return int(found.group(1) + found.group(2)) if found else 0


class GuestGone(LabError):
    """The guest went away while something was asked of it."""


def die_with_parent():
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Channel:
    """JSON lines over a socket; answers are matched to requests by id."""

    def __init__(self, name, sock):
        self.name = name
        self.sock = sock
        self.numbers = itertools.count(1)
        self.pending = {}
        self.events = queue.Queue()
        self.lock = threading.Lock()
        self.closed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            with self.sock.makefile('r', encoding='utf-8') as lines:
                for line in lines:
                    self._dispatch(json.loads(line))
        except (OSError, ValueError):
            pass
        with self.lock:
            self.closed = True
            waiting = list(self.pending.values())
        for answers in waiting:
            answers.put(None)
        self.events.put(None)

    def _dispatch(self, message):
        with self.lock:
            answers = self.pending.get(message.get('id'))
        if answers:
            answers.put(message)
        else:
            self.events.put(message)

    def call(self, request, timeout):
        """Send a request, wait for its answer."""
        number = next(self.numbers)
        answers = queue.Queue()
        with self.lock:
            if self.closed:
                raise GuestGone(f'{self.name}: guest is gone')
            self.pending[number] = answers
            data = (json.dumps({**request, 'id': number}) + '\n').encode()
            try:
                self.sock.sendall(data)
            except OSError as e:
                raise GuestGone(f'{self.name}: guest is gone') from e
        try:
            answer = answers.get(timeout=timeout)
        except queue.Empty:
            raise LabError(f'{self.name}: no answer in {timeout:.0f} s to '
                           f'{str(request)[:200]}') from None
        finally:
            with self.lock:
                del self.pending[number]
        if answer is None:
            raise GuestGone(f'{self.name}: guest went away')
        return answer

    def event(self, name, timeout):
        """Wait for an event; others that arrive meanwhile are dropped."""
        end = time.monotonic() + timeout
        while True:
            try:
                message = self.events.get(
                    timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise LabError(f'{self.name}: no event {name} in '
                               f'{timeout:.0f} s') from None
            if message is None:
                raise GuestGone(f'{self.name}: guest went away')
            if message.get('event') == name:
                return message


class Result:
    """What became of a command: rc is None when it had to be killed."""

    def __init__(self, cmd, rc, out, seconds=0.0):
        self.cmd = cmd
        self.rc = rc
        self.out = out
        self.seconds = seconds

    @property
    def ok(self):
        return self.rc == 0

    def __str__(self):
        how = 'timed out' if self.rc is None else f'exit code {self.rc}'
        return f'$ {self.cmd}\n{self.out.rstrip()}\n[{how}]'


class Vm:
    """A guest that has not been started yet; see start()."""

    def __init__(self, name, *devices, series=None, smp=1, mem='2G',
                 machine='q35', accel='', append=''):
        self.name = name
        self.devices = list(devices)
        self.kernel = kernel.prepare(series)
        self.smp, self.mem = smp, mem
        self.machine, self.accel, self.append = machine, accel, append
        self.process = self.agent = self.qmp_channel = None
        self.tag = name     # of the files that its QEMU writes
        self.log = LOGS / f'{name}.console'
        self.said = ''      # by the guest's kernel, as far as asked for
        self.forgiven = []
        self.out = LOGS / name

    def _root(self):
        """(initramfs, kernel parameters, QEMU arguments) of its root."""
        return (
            self.kernel.initramfs, f'lab.modules={self.kernel.modules}',
            ['-fsdev', 'local,id=root,path=/,security_model=none,'
             'readonly=on,multidevs=remap',
             '-device', 'virtio-9p-pci,fsdev=root,mount_tag=hostroot,addr=8',
             '-fsdev', f'local,id=out,path={self.out},security_model=none',
             '-device', 'virtio-9p-pci,fsdev=out,mount_tag=labout,addr=9'])

    def _command(self, fds):
        initramfs, append, root = self._root()
        cmdline = ' '.join((
            'console=ttyS0 quiet panic=-1 mitigations=off nokaslr',
            'random.trust_cpu=on no_timer_check tsc=reliable nowatchdog',
            f'tsc_early_khz={host_tsc_khz()}',
            'audit=0 apparmor=0 selinux=0 cryptomgr.notests',
            'net.ifnames=0',
            f'lab.init={GUEST_TESTS}/guest/init.sh',
            f'lab.name={self.name}', append, self.append))
        command = [str(qemu_binary()), '-name', self.name]
        for directory in firmware_dirs():
            command += ['-L', directory]
        command += [
            '-M', self.machine, '-accel', f'tcg,thread=multi{self.accel}',
            '-cpu', 'max',
            '-smp', str(self.smp), '-m', self.mem, '-nodefaults',
            '-no-user-config', '-display', 'none', '-no-reboot',
            '-serial', f'file:{self.log}',
            '-kernel', str(self.kernel.vmlinux),
            '-initrd', str(initramfs), '-append', cmdline, *root,
            '-device', 'virtio-rng-pci,addr=a',
            '-chardev', f'socket,id=agent,fd={fds[0]}',
            '-device', 'virtio-serial-pci,addr=b',
            '-device', 'virtserialport,chardev=agent,name=lab.agent',
            '-chardev', f'socket,id=qmp,fd={fds[1]}',
            '-mon', 'chardev=qmp,mode=control']
        return command + self.devices

    def start(self):
        """Start QEMU; returns at once, see wait_ready()."""
        self.out.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        agent, agent_far = socket.socketpair()
        qmp, qmp_far = socket.socketpair()
        fds = (agent_far.fileno(), qmp_far.fileno())
        command = self._command(fds)
        (LOGS / f'{self.tag}.cmdline').write_text(
            shlex.join(command) + '\n')
        with open(LOGS / f'{self.tag}.qemu', 'wb') as errors:
            # Only the main thread's death takes QEMU along: start guests
            # from there.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors,
                stderr=errors, pass_fds=fds, preexec_fn=die_with_parent)
        agent_far.close()
        qmp_far.close()
        self.agent = Channel(self.name, agent)
        self.qmp_channel = Channel(f'{self.name} (QMP)', qmp)
        return self

    def wait_ready(self):
        """Wait until the guest's agent answers; seconds the guest took."""
        try:
            event = self.agent.event('ready', BOOT_TIMEOUT)
            self.qmp('qmp_capabilities')
        except LabError as e:
            self.kill()
            raise LabError(f'{e}\n{self.errors()}') from e
        return event['uptime']

    def errors(self):
        """The last words of QEMU and of the guest's console."""
        said = []
        for path in (LOGS / f'{self.tag}.qemu', self.log):
            try:
                text = path.read_text(errors='replace').strip()
            except OSError:
                continue
            if text:
                said.append(f'--- {path.name}:\n' +
                            '\n'.join(text.splitlines()[-30:]))
        return '\n'.join(said)

    def qemu_said(self):
        """What QEMU has written: warnings, and what -d asks for."""
        return (LOGS / f'{self.tag}.qemu').read_text(errors='replace')

    # The agent's services.

    def _ask(self, limit, **request):
        answer = self.agent.call(request, limit)
        if 'error' in answer:
            raise LabError(f'{self.name}: {request["op"]}: '
                           f'{answer["error"]}')
        return answer

    def run(self, cmd, timeout=60):
        """Run a shell command to its end."""
        start = time.monotonic()
        answer = self._ask(timeout + 30, op='run', cmd=cmd, timeout=timeout)
        return Result(cmd, answer['rc'], answer['out'],
                      time.monotonic() - start)

    def must(self, cmd, timeout=60):
        """The output of a command that has to succeed."""
        result = self.run(cmd, timeout)
        if not result.ok:
            raise LabError(f'{self.name}: {result}')
        return result.out

    def spawn(self, cmd, port=None, wait=60):
        """Start a command; with a port, return once it listens there."""
        answer = self._ask(wait + 30, op='start', cmd=cmd, port=port,
                           wait=wait)
        return Job(self, cmd, answer['job'])

    def forgive(self, pattern):
        """Overlook what matches in the kernel's log from now on: a fault of
        Linux that is known."""
        self.forgiven.append(pattern)

    def complaints(self):
        """What the guest's kernel complains about, or ''."""
        try:
            log = self.kernel_log()
        except LabError:
            return ''
        for pattern in self.forgiven:
            log = re.sub(pattern, '', log, flags=re.S)
        found = COMPLAINT.search(log)
        return log[max(0, found.start() - 300):][:3000] if found else ''

    def read(self, path):
        return self._ask(30, op='read', path=path)['text']

    def names(self, path):
        """What is in a directory."""
        return self._ask(30, op='list', path=path)['names']

    def kernel_log(self):
        """All that the guest's kernel has said."""
        self.said += self._ask(30, op='log')['text']
        return self.said

    # QEMU's services.

    def qmp(self, command, timeout=60, **arguments):
        """Execute a QMP command, return what it returns."""
        answer = self.qmp_channel.call(
            {'execute': command, 'arguments': arguments}, timeout)
        if 'error' in answer:
            raise LabError(f'{self.name}: {command}: '
                           f'{answer["error"]["desc"]}')
        return answer['return']

    def hmp(self, line):
        return self.qmp('human-monitor-command', **{'command-line': line})

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


class Job:
    """A command running in a guest."""

    def __init__(self, vm, cmd, number):
        self.vm, self.cmd, self.number = vm, cmd, number
        self.began = time.monotonic()

    def wait(self, timeout=60):
        answer = self.vm._ask(timeout + 30, op='wait', job=self.number,
                              timeout=timeout)
        return Result(self.cmd, answer['rc'], answer['out'],
                      time.monotonic() - self.began)

    def peek(self):
        answer = self.vm._ask(30, op='peek', job=self.number)
        return Result(self.cmd, answer['rc'], answer['out'],
                      time.monotonic() - self.began)

    def wait_for(self, text, timeout=30):
        """Wait until it has said something."""
        end = time.monotonic() + timeout
        while text not in (now := self.peek()).out:
            if now.rc is not None or time.monotonic() > end:
                raise LabError(f'{self.vm.name}: no "{text}" from\n{now}')
            time.sleep(0.1)

    def alive(self):
        return self.peek().rc is None

    def kill(self, number=9):
        self.vm._ask(30, op='kill', job=self.number, signal=number)
