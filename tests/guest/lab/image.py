# SPDX-License-Identifier: GPL-2.0-or-later
"""A root for guests that migrate.

QEMU does not migrate a guest that has the host's root mounted by 9p. These
guests have all files that they need in their initramfs. Each file has the same
path as on the host.
"""
import glob
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from guestkit import kernel
from guestkit.paths import (INSIDE, MODULES, PROVIDER, STATE, LabError,
                            provider_dir)
from guestkit.stack import STACKS

from .places import PROGRAMS
from .programs import build_hold, build_verify

HOST_PROGRAMS = '''bash sh busybox cat chmod cmp cp cut date dd dmesg echo env
 false grep head hostname ip kill ls ln mkdir modprobe insmod rmmod lsmod
 mount umount printf ps rdma rm rmdir sed seq sha256sum sleep stdbuf sysctl
 tail test timeout touch true uname wc ibv_devinfo ibv_rc_pingpong
  ibv_uc_pingpong ibv_ud_pingpong ib_write_bw ib_send_bw ib_read_bw ib_atomic_bw mckey
  ib_write_lat ib_send_lat ib_read_lat rping ucmatose python3 dirname
  sync'''.split()

MODULE_NAMES = '''virtio_pci virtio_net vmxnet3 virtio_console virtio_rng
 ib_uverbs rdma_ucm ib_umad rdma_cm rdma_rxe configfs nvmet nvmet_rdma
 nvme_rdma nvme_fabrics null_blk brd'''.split()
# Of the machine's libibverbs
PROVIDERS = ('rxe', 'vmw_pvrdma')
# Of rxe; newer kernels have it built in.
CHECKSUM = 'crc32_generic'

INIT = r'''#!/bin/bash
export PATH=/usr/sbin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
modprobe virtio_pci
init=$(sed -n "s|.*lab.init=\([^ ]*\).*|\1|p" /proc/cmdline)
exec /bin/bash "$init"
'''

# The guests' Python runs this: it lists the files that the agent imports
LIST_IMPORTS = '''
import sys
sys.path.insert(0, sys.argv[1])
import agent, encodings.utf_8, encodings.ascii, traceback
import encodings.idna, encodings.latin_1
for module in list(sys.modules.values()):
    if getattr(module, "__file__", None):
        print(module.__file__)
'''


class Tree:
    """A copy of parts of the host's root."""

    def __init__(self, root):
        self.root = Path(root)
        self.done = set()

    def directory(self, path):
        path = Path(path)
        if str(path) in self.done or path == Path('/'):
            return
        self.done.add(str(path))
        self.directory(path.parent)
        if path.is_symlink():
            (self.root / path.relative_to('/')).symlink_to(os.readlink(path))
            self.directory(path.parent / os.readlink(path))
        else:
            (self._at(path)).mkdir(parents=True, exist_ok=True)

    def _at(self, path):
        """Return the place of a host path, with symbolic links resolved."""
        real = os.path.realpath(Path(path).parent)
        return self.root / real.lstrip('/') / Path(path).name

    def file(self, path):
        """Copy a file. Of a symbolic link copy the target as well."""
        path = Path(os.path.abspath(path))
        if str(path) in self.done:
            return
        self.done.add(str(path))
        self.directory(path.parent)
        place = self._at(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            if not place.is_symlink():
                place.symlink_to(os.readlink(path))
            self.file(os.path.join(path.parent, os.readlink(path)))
            return
        shutil.copy2(path, place)

    def program(self, path):
        """Copy an executable or a library, and the libraries that it needs."""
        self.file(path)
        shown = subprocess.run(['ldd', str(path)], capture_output=True,
                               text=True, check=False)
        for name in re.findall(r'(/\S+) \(0x', shown.stdout):
            self.file(name)


def _find(name):
    for directory in ('/usr/sbin', '/usr/bin', '/sbin', '/bin'):
        path = f'{directory}/{name}'
        if os.access(path, os.X_OK):
            return path
    raise LabError(f'no program {name} for the guests')


def _python(tree):
    shown = subprocess.run(
        ['/usr/bin/python3', '-E', '-s', '-B', '-c', LIST_IMPORTS,
         str(INSIDE)], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        raise LabError(f'the agent cannot be imported:\n{shown.stderr}')
    for name in shown.stdout.split():
        if name.endswith('.so'):
            tree.program(name)
        else:
            tree.file(name)


def _modules(tree, made):
    """Copy the modules and those that they need to where modprobe looks."""
    base = tree.root / 'usr' / 'lib' / 'modules' / made.release
    names = list(MODULE_NAMES)
    if any(made.modules.rglob(f'{CHECKSUM}.ko*')):
        names.append(CHECKSUM)
    for source in kernel.module_files(made.root, made.release, names):
        relative = Path(source).resolve().relative_to(
            made.modules.resolve())
        (base / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, base / relative)
    for name in ('modules.order', 'modules.builtin',
                 'modules.builtin.modinfo'):
        shutil.copy(made.modules / name, base)
    subprocess.run(['/sbin/depmod', '-b', str(tree.root), made.release],
                   check=True)


def _fill(tree, made):
    for path in ('/bin', '/sbin', '/lib', '/lib64', '/usr/bin', '/usr/sbin',
                 '/usr/lib', '/usr/lib64', '/etc', '/tmp', provider_dir()):
        if os.path.isdir(path):
            tree.directory(path)
    for name in ('dev', 'proc', 'sys', 'run', 'out', 'root',
                 'etc/libibverbs.d'):
        (tree.root / name).mkdir(exist_ok=True)
    for name in HOST_PROGRAMS:
        tree.program(_find(name))
    for path in ('/etc/ld.so.cache', '/etc/passwd', '/etc/group',
                 '/etc/nsswitch.conf', *(f'/etc/libibverbs.d/{name}.driver'
                                         for name in PROVIDERS)):
        if os.path.exists(path):
            tree.file(path)
    for name in PROVIDERS:
        for path in glob.glob(f'{provider_dir()}/lib{name}-*.so'):
            tree.program(path)
    # Libraries that programs load by name
    for name in ('libgcc_s.so.1', 'coreutils/libstdbuf.so'):
        for path in glob.glob(f'/usr/lib/*/{name}') + \
                glob.glob(f'/usr/libexec/{name}'):
            tree.program(path)
    _python(tree)
    _modules(tree, made)
    tree.program(build_verify())
    tree.program(build_hold())
    for path in PROVIDER.glob('*virtio_rdma*'):
        (tree.program if path.suffix == '.so' else tree.file)(path)
    for stack in STACKS.values():
        driver = MODULES / made.series / f'{stack.driver}.ko'
        if driver.exists():
            tree.file(driver)
    for folder in INSIDE, PROGRAMS:
        for path in (*folder.glob('*.py'), *folder.glob('*.sh')):
            tree.file(path)
    (tree.root / 'init').write_text(INIT)
    (tree.root / 'init').chmod(0o755)


def build(series=None):
    """Build the initramfs. It takes a second, so it is never reused."""
    made = kernel.prepare(series)
    out = STATE / f'root-{made.series}.cpio'
    with tempfile.TemporaryDirectory() as temp:
        _fill(Tree(temp), made)
        # Other processes may boot from it, or build it, at the same time.
        fresh = f'{out}.{os.getpid()}'
        kernel.write_cpio(Path(temp), fresh)
    os.replace(fresh, out)
    return out
