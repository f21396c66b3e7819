# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images of Debian: their format, and their contents, which the lab keeps
until the image changes. An image is hostile: see SECURITY.md."""
import hashlib
import json
import os
import re
import shutil
import stat
import struct
from pathlib import Path

from . import diskread, kernel
from .paths import STATE, LabError, say, state_lock

IMAGES = STATE / 'images'
# Increase it when the layout of the kept files changes.
LAYOUT = 2
RELEASES = {'12': 'bookworm', '13': 'trixie'}
TESTING = 'forky'       # its os-release has no number
FLAVOURS = '"generic" or "nocloud"'

# Bytes of all modules together, decompressed
MODULES_MAX = 256 << 20

# Patterns of fields in dpkg's status. The lab drops other fields, because apt
# reads the file.
WORD = r'[a-z0-9][a-z0-9+.-]{0,100}'
RELATIONS = re.compile(r'[A-Za-z0-9 .+~:,|()<>=-]+')
FIELDS = {
    'Package': re.compile(WORD),
    'Status': re.compile('[a-z]+ [a-z]+ [a-z-]+'),
    'Architecture': re.compile(WORD),
    'Version': re.compile(r'([0-9]+:)?[0-9][A-Za-z0-9.+~-]{0,100}'),
    **dict.fromkeys(('Multi-Arch', 'Essential', 'Pre-Depends', 'Depends',
                     'Provides', 'Conflicts', 'Breaks', 'Replaces'),
                    RELATIONS)}
REQUIRED = ('Package', 'Status', 'Architecture', 'Version')

# In the header of qcow2: the offset of the backing file's name, the offset of
# the incompatible features, and their bit for an external data file
BACKING, FEATURES, EXTERNAL_DATA = 8, 72, 4

OTHERS = ((0, b'KDMV', 'VMDK'), (0, b'vhdxfile', 'VHDX'), (0, b'QED\0', 'QED'),
          (0, b'conectix', 'VHD'), (0x40, b'\x7f\x10\xda\xbe', 'VDI'),
          (0, b'\xfd7zXZ', 'xz'), (0, b'\x1f\x8b', 'gzip'),
          (0, b'\x28\xb5\x2f\xfd', 'zstd'), (0x8001, b'CD001', 'ISO 9660'))
MBR, EXT_MAGIC = 0xaa55, 0xef53


def _check_qcow2(path, head):
    """Require that a qcow2 image is a single file: QEMU would read any file
    for the guest that the header names."""
    version, backing = struct.unpack_from('>IQ', head, BACKING - 4)
    features = version > 2 and struct.unpack_from('>Q', head, FEATURES)[0]
    for found, what in ((backing, 'a backing file'),
                        (features & EXTERNAL_DATA, 'an external data file')):
        if found:
            raise LabError(
                f'--image {path}: it has {what}, which QEMU would open. '
                'An image has to be one file. If you trust this image, '
                f'flatten it: qemu-img convert -O qcow2 {path} FLAT')


def image_format(path):
    """QEMU's name for the format of an image: qcow2, or raw."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise LabError(f'--image {path}: it is not a regular file')
        with open(path, 'rb') as f:
            head = f.read(0x9000)
    except OSError as e:
        raise LabError(f'--image {path}: {e.strerror}') from e
    if head.startswith(b'QFI\xfb'):
        _check_qcow2(path, head.ljust(0x1000, b'\0'))
        return 'qcow2'
    for at, magic, name in OTHERS:
        if head[at:at + len(magic)] == magic:
            raise LabError(f'--image {path}: this is {name}; an image has to '
                           'be qcow2 or raw. Convert or unpack it, for '
                           'example with qemu-img convert')
    # A partition table, or a file system without one
    for at, magic in ((0x1fe, MBR), (0x438, EXT_MAGIC)):
        if len(head) > at + 2 and \
                struct.unpack_from('<H', head, at)[0] == magic:
            return 'raw'
    raise LabError(f'--image {path}: this is not a disk image: neither qcow2 '
                   'nor a raw disk with partitions or ext4')


def drive(path, kind, addr='7'):
    """QEMU's arguments for a disk that a guest can write to. QEMU writes
    changes to a temporary file, not to the image, and opens no backing file
    that the image names."""
    node = {'driver': kind, 'file': {'driver': 'file', 'filename': str(path)}}
    if kind == 'qcow2':
        node['backing'] = None
    escaped = json.dumps(node).replace(',', ',,')
    return ['-drive', f'if=none,id=disk,file=json:{escaped},'
            'snapshot=on,discard=unmap',
            '-device', f'virtio-blk-pci,drive=disk,addr={addr}']


def packages(text):
    """The installed packages in a status file of dpkg: a list of
    {field: value}, with fields that match their patterns."""
    found = []
    for stanza in text.split('\n\n'):
        fields = {}
        for line in re.finditer(r'^([A-Za-z-]+): (.*)$', stanza, re.M):
            name, value = line.groups()
            if name in FIELDS:
                fields.setdefault(name, value)
        if fields.get('Status', '').split()[2:] != ['installed']:
            continue
        for name in REQUIRED:
            value = fields.get(name, '')
            if not FIELDS[name].fullmatch(value):
                raise diskread.Malformed(
                    f'dpkg has "{diskread.printable(value, 100)}" for the '
                    f'{name.lower()} of an installed package, which is not '
                    'allowed')
        found.append({name: value for name, value in fields.items()
                      if FIELDS[name].fullmatch(value)})
    return found


def status_of(found):
    """The text of a status file with these packages."""
    return ''.join(''.join(f'{name}: {value}\n' for name, value
                           in fields.items()) + '\n' for fields in found)


class Disk:
    """An image that has been read.

    root       device of the root partition in guests, such as /dev/vda1
    type       its file system
    suite      Debian's name for the release
    release    that of the newest kernel; None if there is no kernel
    """

    def __init__(self, path, kind, kept, told):
        """@kept: the directory of files that the lab has kept from the image;
        @told: the facts about the image"""
        diskread.check_facts(told)
        self.path, self.format = path, kind
        self.root, self.type = told['device'], told['type']
        self.suite = suite_of(told['os'])
        self.release = told.get('release')
        self.has_rdma = 'rdma' in told
        self.vmlinux, self.status = kept / 'vmlinux', kept / 'status'
        self.modules = sorted((kept / 'modules').glob('*'))

    def drive(self):
        return drive(self.path, self.format)

    def installed(self, package):
        """The installed version of a package, or None."""
        text = self.status.read_text(encoding='utf-8')
        return next((fields['Version'] for fields in packages(text)
                     if fields['Package'] == package), None)


def suite_of(system):
    """Debian's name for the release of a system, or None if the lab cannot
    boot it. @system: the values of its os-release"""
    if system.get('ID') != 'debian':
        return None
    if system.get('VERSION_CODENAME') == TESTING:
        return TESTING
    return RELEASES.get(system.get('VERSION_ID'))


def check(path, told):
    """Require an operating system that guests can boot."""
    system = told['os']
    if not suite_of(system):
        raise LabError(f'--image {path}: this is '
                       f'{system.get("PRETTY_NAME", "not Debian")}; an image '
                       'has to be of Debian 12, 13 or testing')
    for name, what in (('systemd', 'systemd'), ('python', 'Python (the '
                                                'package python3)')):
        if name not in told:
            raise LabError(f'--image {path}: it has no {what}, which the lab '
                           'needs')


def keep(path, found, modules, out):
    """Write the files that guests need to the directory @out, and return the
    facts. The lab chooses all names of files. @found, @modules: the records of
    the reader."""
    told = diskread.facts(found.get('facts', b''))
    told['os'] = diskread.os_release(found.get('os-release', b''))
    check(path, told)
    text = found.get('status', b'').decode('utf-8', errors='replace')
    (out / 'modules').mkdir(parents=True)
    (out / 'status').write_text(status_of(packages(text)), encoding='utf-8')
    room = MODULES_MAX
    for number, data in enumerate(modules):
        data = kernel.unpack_module(data, room)
        room -= len(data)
        (out / 'modules' / f'{number:02}.ko').write_bytes(data)
    if 'release' in told:
        compressed = out / 'vmlinuz'
        compressed.write_bytes(found.get('vmlinuz', b''))
        kernel.decompress(compressed, out / 'vmlinux')
        compressed.unlink()
    return told


def read(path, reader):
    """The Disk of an image; instant if the lab has read it already.
    @reader: returns the kernel of the guest that reads it."""
    real = Path(path).resolve()
    kind = image_format(real)
    about = os.stat(real)
    stamp = [LAYOUT, about.st_ino, about.st_size, about.st_mtime_ns]
    name = hashlib.sha256(str(real).encode()).hexdigest()[:16]
    kept = IMAGES / name
    with state_lock():
        try:
            info = json.loads((kept / 'info.json').read_text())
        except (OSError, ValueError):
            info = {}
        if info.get('stamp') != stamp:
            say(f'{path}: reading the image')
            shutil.rmtree(kept, ignore_errors=True)
            found = diskread.read(path, drive(real, kind), reader())
            try:
                told = keep(path, *found, kept / 'files')
            except diskread.Malformed as e:
                raise LabError(f'--image {path}: {e}') from e
            info = {'stamp': stamp, 'path': str(real), 'told': told}
            (kept / 'info.json').write_text(json.dumps(info, indent=1))
    return Disk(real, kind, kept / 'files', info['told'])
