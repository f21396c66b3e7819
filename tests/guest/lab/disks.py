# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images of Debian: their format, and what is in them.

An image is read by a guest, which has it as a disk: that takes neither root
nor programs for each format and file system. What it finds is kept as long as
the image is as it was.
"""
import hashlib
import json
import os
import re
import shutil
import struct
from pathlib import Path

from . import kernel
from .paths import GUEST_TESTS, STATE, LabError, say, state_lock
from .vm import Vm

IMAGES = STATE / 'images'
READER = GUEST_TESTS / 'guest' / 'read_image.py'
READ_TIMEOUT = 300
# Bumped when what is kept changes shape
LAYOUT = 1
RELEASES = {'12': 'bookworm', '13': 'trixie'}
FLAVOURS = '"generic" or "nocloud"'

# What an initramfs needs besides the file system of the root
EARLY_MODULES = ('virtio_pci', 'virtio_blk')

OTHERS = ((0, b'KDMV', 'VMDK'), (0, b'vhdxfile', 'VHDX'), (0, b'QED\0', 'QED'),
          (0, b'conectix', 'VHD'), (0x40, b'\x7f\x10\xda\xbe', 'VDI'),
          (0, b'\xfd7zXZ', 'xz'), (0, b'\x1f\x8b', 'gzip'),
          (0, b'\x28\xb5\x2f\xfd', 'zstd'), (0x8001, b'CD001', 'ISO 9660'))
MBR, EXT_MAGIC = 0xaa55, 0xef53


def image_format(path):
    """QEMU's name for the format of an image: qcow2, or raw."""
    try:
        with open(path, 'rb') as f:
            head = f.read(0x9000)
    except OSError as e:
        raise LabError(f'--image {path}: {e.strerror}') from e
    if head.startswith(b'QFI\xfb'):
        return 'qcow2'
    for at, magic, name in OTHERS:
        if head[at:at + len(magic)] == magic:
            raise LabError(f'--image {path}: this is {name}; guests boot '
                           'qcow2 and raw images. Convert or unpack it '
                           'first, for example with qemu-img convert')
    # A table of partitions, or the file system alone
    for at, magic in ((0x1fe, MBR), (0x438, EXT_MAGIC)):
        if len(head) > at + 2 and \
                struct.unpack_from('<H', head, at)[0] == magic:
            return 'raw'
    raise LabError(f'--image {path}: this is no disk image: neither qcow2, '
                   'nor a disk with partitions')


def drive(path, kind, addr='7'):
    """QEMU's arguments for a disk that a guest can write to, and whose image
    nobody writes to: what is written is in a temporary file."""
    escaped = str(path).replace(',', ',,')
    return ['-drive', f'if=none,id=disk,file={escaped},format={kind},'
            'snapshot=on,discard=unmap',
            '-device', f'virtio-blk-pci,drive=disk,addr={addr}']


class Disk:
    """An image that has been read.

    root       the partition with the root, as guests have it: /dev/vda1
    type       its file system
    suite      Debian's name for the release
    release    of its newest kernel; None if it has none
    """

    def __init__(self, path, kind, kept, told):
        self.path, self.format = path, kind
        self.kept = kept        # the directory of what has been copied
        self.root, self.type = told['device'], told['type']
        self.suite = RELEASES[told['os']['VERSION_ID']]
        self.release = told.get('release')
        self.has_rdma = told.get('rdma', False)
        self.vmlinux, self.status = kept / 'vmlinux', kept / 'status'
        self.modules = [kept / 'modules' / name
                        for name in told.get('modules', ())]

    def drive(self):
        return drive(self.path, self.format)

    def installed(self, package):
        """The version of a package that it has, or None."""
        text = self.status.read_text(encoding='utf-8', errors='replace')
        found = re.search(
            rf'^Package: {re.escape(package)}\n'
            r'Status: \S+ \S+ installed\n(?:\S[^\n]*\n|\s[^\n]*\n)*?'
            r'Version: (\S+)', text, re.M)
        return found[1] if found else None


def check(path, told):
    """Require what guests need of it."""
    if 'device' not in told:
        raise LabError(f'--image {path}: no partition has the root of a '
                       f'system ({told["partitions"]}). Encrypted disks and '
                       'LVM are not supported')
    system = told['os']
    if system.get('ID') != 'debian' or \
            system.get('VERSION_ID') not in RELEASES:
        raise LabError(f'--image {path}: this is '
                       f'{system.get("PRETTY_NAME", "no Debian")}; guests '
                       'boot Debian 12 and 13')
    for name, what in (('systemd', 'systemd'), ('python', 'Python (the '
                                                'package python3)')):
        if not told[name]:
            raise LabError(f'--image {path}: there is no {what} in it, which '
                           'the lab needs')


def _read(path, kind, reader, out):
    """Have a guest read an image; what it tells."""
    vm = Vm('reader', *drive(path, kind), mem='512M', logs=out.parent,
            made=reader())
    vm.out = out
    try:
        try:
            vm.start().wait_ready()
        except LabError as e:
            raise LabError(f'--image {path}: no guest can read it: {e}') from e
        done = vm.run(f'python3 -E -s -B {READER} /out '
                      f'{" ".join(EARLY_MODULES)}', READ_TIMEOUT)
        if not done.ok:
            raise LabError(f'--image {path}: it cannot be read: '
                           f'{done.out.strip() or "no reason given"}')
        return json.loads(done.out)
    finally:
        vm.kill()


def read(path, reader):
    """The Disk of an image; takes no time if it has been read before.
    @reader: makes the kernel of the guest that reads it."""
    real = Path(path).resolve()
    kind = image_format(real)
    stat = os.stat(real)
    stamp = [LAYOUT, stat.st_ino, stat.st_size, stat.st_mtime_ns]
    name = hashlib.sha256(str(real).encode()).hexdigest()[:16]
    kept = IMAGES / name
    with state_lock():
        try:
            info = json.loads((kept / 'info.json').read_text())
        except (OSError, ValueError):
            info = {}
        if info.get('stamp') != stamp:
            say(f'{path}: reading what is in it')
            shutil.rmtree(kept, ignore_errors=True)
            out = kept / 'files'
            out.mkdir(parents=True)
            told = _read(real, kind, reader, out)
            check(path, told)
            if 'release' in told:
                kernel.decompress(out / 'vmlinuz', out / 'vmlinux')
                (out / 'vmlinuz').unlink()
            info = {'stamp': stamp, 'path': str(real), 'told': told}
            (kept / 'info.json').write_text(json.dumps(info, indent=1))
    return Disk(real, kind, kept / 'files', info['told'])
