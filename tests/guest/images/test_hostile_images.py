# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images of an attacker, who wants to read files of the host, run
commands there, or fill its disk. Each is the image of a system with one
defect. "vrdma-lab up" refuses the image, and leaves nothing on the host."""
import functools
import hashlib
import os
import re
import shutil
import socket
import stat
import subprocess

from guestkit import disks, kernel
from guestkit.diskread import MODULES_MAX
from guestkit.paths import STATE, firmware_dirs, qemu_binary
from lab.runner import Skip
from lab.testimages import ImageLab
from lab.userlab import UserBench

PAIR, BENCH = ImageLab, UserBench
SECONDS = 600
SECRET = b'a secret of the host, 7fa1c0de'
HUGE = 1 << 40      # bytes
STATUS = 'var/lib/dpkg/status'
VERSION = '6.1.1-1'


class System:
    """The files of a system that the lab accepts, except its programs."""

    def __init__(self, root):
        self.root = root
        made = kernel.prepare()
        self.release = made.release
        self.modules = f'usr/lib/modules/{self.release}'
        for path in ('etc', 'boot', 'run', 'usr/sbin', f'{self.modules}/x'):
            (root / path).mkdir(parents=True)
        for name in ('sbin', 'lib'):
            (root / name).symlink_to(f'usr/{name}')
        self.write('etc/os-release', 'ID=debian\nVERSION_ID="12"\n')
        for path in ('usr/bin/python3', 'usr/lib/systemd/systemd'):
            self.write(path, '')
        self.set_version(VERSION)
        for name in kernel.module_files(made.root, self.release, [
                'virtio_pci', 'virtio_blk', 'ext4', 'ib_uverbs', 'rdma_ucm']):
            shutil.copy(name, root / self.modules / 'x')
        self.index()
        shutil.copy(kernel.vmlinuz(made.root, self.release),
                    root / 'boot' / f'vmlinuz-{self.release}')

    def index(self):
        for name in ('order', 'builtin'):
            (self.root / self.modules / f'modules.{name}').touch()
        subprocess.run(['/sbin/depmod', '-b', str(self.root), self.release],
                       check=True, stderr=subprocess.DEVNULL)

    def path(self, name):
        """Return the path of a file that does not exist, in a directory that
        does."""
        found = self.root / name.format(self=self)
        found.parent.mkdir(parents=True, exist_ok=True)
        found.unlink(missing_ok=True)
        return found

    def write(self, name, text):
        self.path(name).write_text(text, encoding='utf-8')

    def set_version(self, version):
        self.write(STATUS, ''.join(
            f'Package: {name}\nStatus: install ok installed\n'
            f'Architecture: amd64\nVersion: {version}\n\n'
            for name in ('libc6', f'linux-image-{self.release}')))

    def image(self, path):
        """Create an image of these files."""
        with open(path, 'wb') as f:
            f.truncate(128 << 20)
        subprocess.run(['mke2fs', '-q', '-t', 'ext4', '-d', str(self.root),
                        str(path)], check=True)
        return path


def link(name, target):
    return lambda system, secret: system.path(name).symlink_to(
        target.format(secret=secret, up='../' * 20))


def fifo(name):
    return lambda system, _: os.mkfifo(system.path(name))


def device(name, kind, *numbers):
    def make(system, _):
        try:
            os.mknod(system.path(name), kind | 0o666, os.makedev(*numbers))
        except PermissionError as e:
            raise Skip('only root can make device nodes') from e
    return make


def unix_socket(name):
    def make(system, _):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(system.path(name)))
    return make


def huge(name):
    def make(system, _):
        with open(system.path(name), 'wb') as f:
            f.truncate(HUGE)
    return make


def version(text):
    return lambda system, _: system.set_version(text)


def many_modules(system, _):
    """More modules than a file system needs, all for virtio_blk."""
    at = system.root / system.modules
    names = [f'm{number}' for number in range(MODULES_MAX)]
    for name in names:
        shutil.copy(at / 'x' / 'virtio_blk.ko', at / 'x' / f'{name}.ko')
    system.index()
    (at / 'modules.softdep').write_text(
        f'softdep virtio_blk pre: {" ".join(names)}\n')


def many_kernels(system, _):
    """Many directories of modules, whose names are commands or paths."""
    base = system.root / 'usr' / 'lib' / 'modules'
    for number in range(2000):
        (base / f'9.{number}$(poweroff -f);..').mkdir()
    for name in ('9.9\n9.8', '9.7 x', '-rf', '9.6;id'):
        (base / name).mkdir()
        (base / name / 'modules.dep').touch()
        (base / name / 'vmlinuz').write_bytes(SECRET)


KERNEL = 'boot/vmlinuz-{self.release}'
MODULE = '{self.modules}/x/virtio_blk.ko'
NO_HEADERS = 'has no headers of that version'
# For each defect of the image: (a change to its files, the lab's message)
CASES = {
    'nothing is wrong':
        (lambda *_: None, f'version {VERSION}, .*{NO_HEADERS}'),
    'kernel: link to a path of the host':
        (link(KERNEL, '{secret}'), 'no kernel in it'),
    'kernel: link up and up':
        (link(KERNEL, '{up}{secret}'), 'no kernel in it'),
    'module: link to a path of the host':
        (link(MODULE, '{secret}'), 'virtio_blk.ko is not a regular file'),
    'module: link up and up':
        (link(MODULE, '{up}{secret}'), 'virtio_blk.ko is not a regular file'),
    'status: link to a path of the host':
        (link(STATUS, '{secret}'), 'its libc6 is 0'),
    'os-release: link to a path of the host':
        (link('etc/os-release', '{secret}'), 'no partition has the root'),
    'run: link to tools of the reader':
        (lambda system, _: ((system.root / 'run').rmdir(),
                            (system.root / 'run').symlink_to('/bin')),
         'no partition has the root'),
    'status: fifo': (fifo(STATUS), 'status is not a regular file'),
    'os-release: fifo':
        (fifo('etc/os-release'), 'os-release is not a regular file'),
    'module: fifo': (fifo(MODULE), 'virtio_blk.ko is not a regular file'),
    'status: socket': (unix_socket(STATUS), 'status is not a regular file'),
    'status: device without end':
        (device(STATUS, stat.S_IFCHR, 1, 5), 'status is not a regular file'),
    'module: a disk':
        (device(MODULE, stat.S_IFBLK, 254, 0), 'is not a regular file'),
    'os-release: 1 TiB':
        (huge('etc/os-release'), 'os-release has more than 65536 bytes'),
    'status: 1 TiB': (huge(STATUS), 'status has more than 67108864 bytes'),
    'kernel: 1 TiB':
        (huge(KERNEL), 'vmlinuz-.* has more than 67108864 bytes'),
    'module: 1 TiB':
        (huge(MODULE), 'virtio_blk.ko has more than 16777216 bytes'),
    'modules: too many': (many_modules, '"module" too many'),
    'kernels: too many, with names that are commands':
        (many_kernels, f'version {VERSION}, .*{NO_HEADERS}'),
    'version: a path':
        (version('1/../../x'), 'has "1/../../x" for the version'),
    'version: a command':
        (version('1;touch${IFS}x'), 'has "1;touch.*" for the version'),
    'name: for the terminal':
        (lambda system, _: system.write(
            'etc/os-release', 'ID=x\nPRETTY_NAME="\x1b]0;x\x07X"\n'),
         r'this is \?]0;x\?X'),
}


def kept(image):
    """Return the directory of the files that the lab has read from an
    image."""
    return STATE / 'images' / hashlib.sha256(
        str(image.resolve()).encode()).hexdigest()[:16]


def refused(bench, path, text):
    """Require that no guest boots from the image, for this reason. Return the
    output of the command."""
    done = bench.lab.fails('up', '1', '--image', str(path))
    assert re.search(text, done.err, re.S), str(done)
    assert 'Traceback' not in done.err, str(done)
    assert not set('\x1b\x07') & set(done.err), repr(done.err)
    assert not bench.lab.status()
    return done.err


def _check(bench, name):
    change, text = CASES[name]
    work = bench.lab.home / 'hostile'
    shutil.rmtree(work, ignore_errors=True)
    secret = bench.lab.home / 'secret'
    secret.write_bytes(SECRET)
    system = System(work / 'root')
    change(system, secret)
    image = system.image(work / 'image.raw')
    refused(bench, image, text)
    for path in kept(image).rglob('*'):
        assert path.is_dir() or path.is_file() and not path.is_symlink(), path
        assert path.is_dir() or SECRET not in path.read_bytes(), path
    shutil.rmtree(kept(image), ignore_errors=True)


# One test for each defect
globals().update({
    'test_' + re.sub('[^a-z0-9]+', '_', name.lower()): functools.partial(
        _check, name=name) for name in CASES})


def _qemu_img(*words):
    if not shutil.which('qemu-img'):
        raise Skip('no program qemu-img')
    subprocess.run(['qemu-img', *words], check=True, capture_output=True)


def test_images_of_more_than_one_file_are_refused(bench):
    base = bench.lab.home / 'base.raw'
    base.write_bytes(bytes(1 << 20))
    overlay, split = bench.lab.home / 'a.qcow2', bench.lab.home / 'b.qcow2'
    _qemu_img('create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', str(base),
              str(overlay))
    refused(bench, overlay, 'backing file.*qemu-img convert')
    _qemu_img('create', '-q', '-f', 'qcow2', '-o',
              f'data_file={base},data_file_raw=on', str(split), '1M')
    refused(bench, split, 'external data file.*qemu-img convert')


def test_qemu_does_not_open_a_backing_file(bench):
    """QEMU does not open it even if the lab has not read the header."""
    base = bench.lab.home / 'base.raw'
    base.write_bytes(bytes(1 << 20))
    overlay = bench.lab.home / 'a.qcow2'
    _qemu_img('create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', str(base),
              str(overlay))
    firmware = [word for at in firmware_dirs() for word in ('-L', at)]
    asked = ('{"execute": "qmp_capabilities"}\n'
             '{"execute": "query-named-block-nodes"}\n{"execute": "quit"}\n')
    done = subprocess.run(
        [str(qemu_binary()), *firmware, '-M', 'none', '-nodefaults',
         '-display', 'none', '-qmp', 'stdio',
         *disks.drive(overlay, 'qcow2')[:2]], input=asked, text=True,
        capture_output=True, check=True, timeout=120)
    assert str(overlay) in done.stdout, done.stdout + done.stderr
    assert f'"filename": "{base}"' not in done.stdout, done.stdout
