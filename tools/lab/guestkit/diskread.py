# SPDX-License-Identifier: GPL-2.0-or-later
"""Read a disk image, which may be hostile.

A guest reads the image, so the machine needs neither root nor programs for
each format and file system. The guest has only the image, an initramfs of the
lab and a disk to write to: it reaches no file of the machine, even if an image
takes over its kernel. The lab reads a limited number of records of limited
size from that disk, chooses the names of files, and checks values by strict
patterns.
"""
import re
import resource
import subprocess
import tempfile
from pathlib import Path

from . import kernel
from .arch import NATIVE
from .paths import INSIDE, LabError
from .vm import (clock_parameters, command_line, die_with_parent, end_of,
                 read_log)

SCRIPT = INSIDE / 'read_image.sh'
READ_TIMEOUT = 600
MIB = 1 << 20

# Modules of an initramfs, besides that of the root's file system
EARLY_MODULES = ('virtio_pci', 'virtio_blk')
FILE_SYSTEMS = ('ext4', 'xfs', 'btrfs', 'f2fs')

# Bytes of the disk that the guest writes to. RLIMIT_FSIZE limits other files
# of its QEMU (the console, changed blocks of the image) to twice that size.
OUT_SIZE = 256 * MIB
MODULES_MAX = 64                # number of modules

# A record begins with its size and its name.
HEAD = re.compile(rb'(0|[1-9][0-9]{0,8}) ([a-z-]{1,20})\n')
# Limits for the bytes of a record. Once Python has parsed text with values, it
# takes about thirty times as many bytes of memory.
SIZES = {'facts': 4096, 'os-release': 65536, 'error': 65536,
         'status': 64 * MIB, 'vmlinuz': 64 * MIB, 'module': 16 * MIB, 'end': 0}
FACTS = {
    'device': re.compile(r'/dev/vda[0-9]{0,3}'),
    'type': re.compile('|'.join(FILE_SYSTEMS)),
    'release': re.compile(r'[0-9]+\.[0-9]+[A-Za-z0-9.+~-]{0,60}'),
    **dict.fromkeys(('python', 'systemd', 'rdma'), re.compile('yes'))}


class Malformed(LabError):
    """The guest has written data that the lab's script does not write."""


def printable(text, most=2000):
    """Text of an image or of its guest, safe for a terminal."""
    return ''.join(c if c.isprintable() or c == '\n' else '?'
                   for c in text[:most])


def records(stream):
    """Parse the records of a guest: ({name: bytes}, modules)."""
    found, modules = {}, []
    while True:
        head = HEAD.fullmatch(stream.readline(40))
        if not head:
            raise Malformed('a record without size and name')
        size, name = int(head[1]), head[2].decode('ascii')
        most = SIZES.get(name, 0)
        if size > most:
            raise Malformed(f'a record "{name}" of {size} bytes, more than '
                            f'{most}')
        data = stream.read(size)
        if len(data) != size:
            raise Malformed(f'a record "{name}" that is cut off')
        if name == 'end':
            return found, modules
        if name == 'module' and len(modules) < MODULES_MAX:
            modules.append(data)
        elif name in SIZES and name != 'module' and name not in found:
            found[name] = data
        else:
            raise Malformed(f'one record "{name}" too many')


def check_facts(told):
    """Require that each value matches its pattern."""
    for name, pattern in FACTS.items():
        value = told.get(name, '')
        if name in told and not (isinstance(value, str) and
                                 pattern.fullmatch(value)):
            raise Malformed(f'{name} "{printable(str(value), 100)}" does not '
                            f'match {pattern.pattern}')
    return told


def facts(data):
    """{name: value} of a record of facts."""
    text = data.decode('ascii', errors='replace')
    return check_facts(dict(re.findall(r'^([a-z]+)=(.*)$', text, re.M)))


def os_release(data):
    """{name: value} of a file os-release."""
    text = data.decode('utf-8', errors='replace')
    return {name: printable(value.strip('"'), 100)
            for name, value in re.findall(r'^([A-Z_]+)=(.*)$', text, re.M)}


def _programs():
    """{path: file} of programs that busybox lacks, with their libraries, for
    an initramfs."""
    found = {}
    for name in ('modprobe', 'blkid'):
        program = next((Path(at, name) for at in ('/usr/sbin', '/sbin')
                        if Path(at, name).exists()), None)
        if not program:
            raise LabError(f'no program {name}, which is needed to read disk '
                           'images: install the packages kmod and util-linux')
        found[f'sbin/{name}'] = program
        shown = subprocess.run(['ldd', str(program)], capture_output=True,
                               text=True, check=False)
        found.update((library.lstrip('/'), library) for library in
                     re.findall(r'(/\S+) \(0x', shown.stdout))
    return found


def _file_systems(made):
    """{path: file} of a kernel's modules for file systems, and of the indices
    for modprobe."""
    found = {}
    at = f'lib/modules/{made.release}'
    for kind in FILE_SYSTEMS:
        try:
            files = kernel.module_files(made.root, made.release, [kind])
        except LabError:
            continue    # an image with it fails to mount, and is refused
        for file in files:
            relative = Path(file).resolve().relative_to(
                made.modules.resolve())
            found[f'{at}/{relative}'] = file
    for name in ('dep', 'alias', 'symbols', 'builtin', 'softdep'):
        for file in made.modules.glob(f'modules.{name}*'):
            found[f'{at}/{file.name}'] = file
    return found


def _command(made, initramfs, image, out, console):
    return [
        str(NATIVE.qemu_binary()), '-name', 'reader', *NATIVE.firmware(),
        '-M', NATIVE.machine, '-accel', 'tcg', '-cpu', NATIVE.model,
        '-m', '512M', '-nodefaults', '-no-user-config', '-display', 'none',
        '-no-reboot', '-serial', f'file:{console}',
        '-kernel', str(made.vmlinux), '-initrd', str(initramfs),
        '-append', command_line('reader', clock_parameters()), *image,
        '-drive', f'if=none,id=out,file={out},format=raw,cache=unsafe',
        '-device', 'virtio-blk-pci,drive=out,addr=8']


def _limit():
    die_with_parent()
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * OUT_SIZE, 2 * OUT_SIZE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run(command, log):
    """Run the reader's QEMU to its end."""
    with open(log, 'wb') as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
            preexec_fn=_limit)
        try:
            code = process.wait(READ_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Malformed(f'no end after {READ_TIMEOUT} s') from None
        finally:
            process.kill()
            process.wait()
    if code:
        raise Malformed(f'QEMU ended with exit code {code}')


def _said(*logs):
    """The end of the output of QEMU and of the guest's console."""
    said = ''
    for log in logs:
        if log.exists():
            said += ''.join('\n' + line for line in
                            end_of(read_log(log).strip()))
    return printable(said)


def read(path, image, made):
    """Let a guest read an image: ({name: bytes}, modules). @path: its name for
    errors; @image: QEMU's arguments for it as the first disk; @made: the
    kernel.Kernel of the guest."""
    with tempfile.TemporaryDirectory(prefix='vrdma-read-') as temp:
        at = Path(temp)
        initramfs, out, log, console = (
            at / name for name in ('initramfs', 'out', 'qemu', 'console'))
        kernel.write_initramfs(
            initramfs, f'{kernel.INIT_BEGIN}\n{SCRIPT.read_text()}',
            kernel.module_files(made.root, made.release, EARLY_MODULES),
            more={**_programs(), **_file_systems(made)})
        with open(out, 'wb') as f:
            f.truncate(OUT_SIZE)
        try:
            _run(_command(made, initramfs, image, out, console), log)
            with open(out, 'rb') as f:
                found = records(f)
        except Malformed as e:
            raise LabError(f'--image {path}: the guest that reads it failed: '
                           f'{e}{_said(log, console)}') from e
    if 'error' in found[0]:
        raise LabError(f'--image {path}: '
                       + printable(found[0]['error'].decode(
                           errors='replace').strip(), 500))
    return found
