# SPDX-License-Identifier: GPL-2.0-or-later
"""User-mode Linux: a kernel of its own with rxe, as a process of this machine.

Programs in it run at the machine's own speed, except for system calls. So it
serves as the host of guests that need a host with an RDMA device. QEMU in it
emulates once; a guest in a lab guest would be emulated twice.

The kernel is built from Debian's package of the kernel's source, at about the
version that other guests run, with lab/uml.config.
"""
import os
import shutil
import signal
import socket
import subprocess
import tempfile

from guestkit import kernel
from guestkit.agent import Guest
from guestkit.kernel import read_info, write_info
from guestkit.paths import INSIDE, LOGS, STATE, LabError, say, state_lock
from guestkit.source import unpack_source
from guestkit.vm import die_with_parent

from .places import GUEST_TESTS, PROGRAMS

CONFIG = GUEST_TESTS / 'lab' / 'uml.config'
KERNELS = STATE / 'uml'

# Large parts of the source that User-mode Linux does not use stay packed.
NOT_NEEDED = [f'--exclude=*/{directory}/*.[chS]' for directory in (
    'drivers/gpu', 'drivers/media', 'drivers/net/ethernet', 'sound',
    'drivers/net/wireless', 'drivers/staging', 'tools/testing',
    'arch/[a-tv-wy-z]*')] + ['--exclude=*/boot/dts/*']

SO_SNDBUFFORCE = 32     # socket(7); Python does not name it
WIRE_BYTES = 16 << 20

# Serial lines for what runs inside, besides the agent's
LINES = 4


def _run(command, log, **options):
    with open(log, 'a', encoding='utf-8') as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=out, check=False, **options)
    if done.returncode != 0:
        tail = '\n'.join(log.read_text(errors='replace').splitlines()[-20:])
        raise LabError(f'no User-mode Linux: {command[0]} failed, see '
                       f'{log}:\n{tail}')


def _configure(tree, log):
    make = ['make', '-C', str(tree), 'ARCH=um']
    _run([*make, f'KCONFIG_ALLCONFIG={CONFIG}', 'allnoconfig'], log)
    got = (tree / '.config').read_text().splitlines()
    lost = [line for line in CONFIG.read_text().splitlines()
            if line.startswith('CONFIG_') and line not in got]
    if lost:
        raise LabError('this Linux does not have the options '
                       f'{", ".join(lost)} of {CONFIG}')
    return make


def _build(series, root, log):
    with tempfile.TemporaryDirectory(dir=KERNELS) as temp:
        version, tree = unpack_source(series, KERNELS / temp, log, NOT_NEEDED)
        make = _configure(tree, log)
        say(f'User-mode Linux {version}: building, which takes some minutes')
        _run([*make, f'-j{os.cpu_count()}', 'linux'], log)
        release = (tree / 'include' / 'config' / 'kernel.release'
                   ).read_text().strip()
        # Tell modprobe that all modules are built in
        modules = root / 'lib' / 'modules' / release
        modules.mkdir(parents=True)
        for name in ('modules.builtin', 'modules.builtin.modinfo'):
            shutil.copy(tree / name, modules)
        (modules / 'modules.order').touch()
        subprocess.run(['/sbin/depmod', '-b', str(root), release],
                       check=True)
        shutil.copy(tree / 'linux', root / 'linux')
    write_info(root, release=release, version=version,
               config=CONFIG.read_text())


class Kernel:
    """User-mode Linux, built."""

    def __init__(self, series, info):
        self.series, self.release = series, info['release']
        self.root = KERNELS / series
        self.program = self.root / 'linux'
        self.modules = self.root / 'lib' / 'modules' / self.release


def prepare(series=None):
    """Build the kernel of a series, or find it built."""
    series = series or kernel.DEFAULT or kernel.machine_series()
    root = KERNELS / series
    with state_lock():
        info = read_info(root)
        if not info or info['config'] != CONFIG.read_text():
            missing = [name for name in ('flex', 'bison', 'bc', 'make')
                       if not shutil.which(name)]
            if missing:
                raise LabError('no User-mode Linux without the packages ' +
                               ' '.join(missing))
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir(parents=True)
            log = STATE / f'uml-{series}.log'
            log.unlink(missing_ok=True)
            _build(series, root, log)
            info = read_info(root)
    return Kernel(series, info)


def wire():
    """Return both ends of a wire, sockets on which each datagram is a frame.
    Such a pair limits the bytes of queued datagrams, not their number."""
    ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for end in ends:
        try:    # more than the limit for users, if permitted
            end.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, WIRE_BYTES)
        except PermissionError:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, WIRE_BYTES)
    return ends


class Uml(Guest):
    """A User-mode Linux that has not been started yet. @link: its end of a
    wire, a file descriptor. @append: more parameters of the kernel."""

    def __init__(self, name, link, mac, mtu, mem='3G', series=None,
                 append=''):
        super().__init__(name)
        self.append = append
        self.kernel = prepare(series)
        self.link, self.mac, self.mtu, self.mem = link, mac, mtu, mem
        self.process = None
        self.lines = []     # (device inside, socket outside), free for use
        self.log = LOGS / f'{name}.console'
        self.out = LOGS / name
        self.directory = None

    def _command(self, fds):
        # vec=0: with the vector driver, a peer that receives nothing for half
        # a second, as on a busy machine, causes a BUG().
        lines = [f'ssl{i}=fd:{fd}' for i, fd in enumerate(fds)]
        return [
            str(self.kernel.program), f'mem={self.mem}', *lines,
            'root=/dev/root', 'rootfstype=hostfs', 'rootflags=/', 'ro',
            f'init={PROGRAMS}/uml.sh',
            'con=null', 'con0=null,fd:1', f'uml_dir={self.directory}',
            f'umid={self.name}', 'quiet', 'panic=-1',
            f'vec0:transport=fd,fd={self.link},mac={self.mac},'
            f'mtu={self.mtu},vec=0',
            f'lab.init={INSIDE}/init.sh',
            f'lab.modules={self.kernel.modules}', f'lab.name={self.name}',
            f'lab.logs={LOGS}', 'lab.agent=/dev/ttyS0', *self.append.split()]

    def start(self):
        """Start it, and return at once; see wait_ready()."""
        self.out.mkdir(parents=True, exist_ok=True)
        shutil.copyfile('/proc/cpuinfo', self.out / 'cpuinfo')
        self.directory = tempfile.mkdtemp(prefix='vrdma-uml-')
        far = [self.connect()]
        for i in range(1, LINES + 1):
            near, there = socket.socketpair()
            self.lines.append((f'/dev/ttyS{i}', near))
            far.append(there)
        fds = [end.fileno() for end in far]
        with open(self.log, 'wb') as console:
            # Its processes are this machine's, in one process group.
            self.process = subprocess.Popen(
                self._command(fds), stdin=subprocess.DEVNULL, stdout=console,
                stderr=console, pass_fds=[*fds, self.link],
                start_new_session=True, preexec_fn=die_with_parent)
        for end in far:
            end.close()
        return self

    def wait_ready(self):
        """Wait until the agent answers. Return the seconds since its boot."""
        try:
            return self.hears()
        except LabError as e:
            self.kill()
            raise LabError(f'{e}\n{self.errors()}') from e

    def errors(self):
        """Return the last lines of its console."""
        text = self.log.read_text(errors='replace').splitlines()[-30:]
        return '\n'.join([f'--- {self.log.name}:', *text])

    def line(self):
        """Reserve a serial line. Return (device inside, socket outside)."""
        return self.lines.pop(0)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """Kill it and all its processes at once."""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)
