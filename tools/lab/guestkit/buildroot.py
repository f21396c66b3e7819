# SPDX-License-Identifier: GPL-2.0-or-later
"""Compilers of other suites of Debian.

Kernel headers require the kernel's compiler, and contain programs (modpost,
objtool) for the C library of their suite. This machine may have neither. So
modules for such a kernel are built in a root of that suite, with files of its
packages: the compiler, make, a shell and their dependencies. Only programs of
the build run there, no scripts of the packages.
"""
import os
import re
import shutil

from . import suites
from .arch import NATIVE
from .packages import Apt, fetch_many, unpack
from .paths import STATE, Unavailable, say, state_lock

# Programs that kbuild runs, besides the compiler
TOOLS = ('make', 'bash', 'dash', 'sed', 'grep', 'mawk', 'coreutils',
         'findutils', 'diffutils', 'libelf1', 'libc6-dev')

# $1 is the root. The directory $2 has the same path in the root.
ENTER = '''
mkdir -p "$1$2" "$1/proc" "$1/dev" "$1/tmp"
mount --bind "$2" "$1$2"
mount --rbind /dev "$1/dev"
mount --rbind /proc "$1/proc"
root=$1
shift 2
exec chroot "$root" /usr/bin/env -i LC_ALL=C PATH=/usr/sbin:/usr/bin "$@"
'''


def merge_usr(root):
    """Make /bin and others links to /usr, as older packages have files in
    both."""
    for name in ('bin', 'sbin', 'lib', 'lib64'):
        at, merged = root / name, root / 'usr' / name
        merged.mkdir(parents=True, exist_ok=True)
        if at.is_dir() and not at.is_symlink():
            shutil.copytree(at, merged, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(at)
        if not at.is_symlink():
            at.symlink_to(f'usr/{name}')


def fill(root, suite, packages, arch=NATIVE):
    """Make a root of these packages of a suite and their dependencies."""
    apt = suites.apt(suite, arch)
    if not apt:
        raise Unavailable(f'no suite {suite} in the archive')
    status = root.with_name(root.name + '.status')
    status.write_text('')
    bare = Apt([*apt.options, '-o', f'Dir::State::status={status}'],
               apt.store)
    wanted = re.findall(r'^Inst (\S+) \((\S+)', bare.simulate(packages), re.M)
    if not wanted:
        raise Unavailable(f'apt cannot resolve the dependencies of '
                          f'{packages[0]} of {suite}')
    debs = fetch_many(bare, wanted)
    if debs is None:
        raise Unavailable(f'cannot fetch {packages[0]} of {suite}, or a '
                          'package that it needs: see above')
    shutil.rmtree(root, ignore_errors=True)
    unpack(debs, root)
    merge_usr(root)
    for name, target in (('awk', 'mawk'), ('sh', 'dash')):
        link = root / 'usr' / 'bin' / name
        if not link.exists():
            link.symlink_to(target)
    status.unlink()


def prepare(suite, compiler):
    """The root with this compiler; instant if it exists."""
    root = STATE / 'compiler' / f'{suite}-{compiler}'
    with state_lock():
        if not (root / 'ready').exists():
            say(f'{compiler} of {suite}: fetching')
            root.parent.mkdir(parents=True, exist_ok=True)
            fill(root, suite, [compiler, *TOOLS])
            (root / 'ready').touch()
    return root


def inside(root):
    """The words before a command that runs in a root. Of the machine's
    directories, the command sees only STATE, /dev and /proc."""
    user = [] if os.getuid() == 0 else ['--map-root-user']
    return ['unshare', '--mount', *user, 'sh', '-euc', ENTER, 'enter',
            str(root), str(STATE)]
