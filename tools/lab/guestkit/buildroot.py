# SPDX-License-Identifier: GPL-2.0-or-later
"""Compilers of other suites of Debian.

Kernel headers name the compiler that the kernel was built with, and bring
programs (modpost, objtool) for the C library of their suite. Neither need be
on this machine. So modules for such a kernel are built in a root of that
suite, which is made of its packages' files: the compiler, make, a shell and
what these need. Nothing of the packages runs but what the build runs.
"""
import os
import re
import shutil

from . import suites
from .arch import NATIVE
from .packages import Apt, fetch_many, unpack
from .paths import STATE, LabError, say, state_lock

# What kbuild runs besides the compiler
TOOLS = ('make', 'bash', 'dash', 'sed', 'grep', 'mawk', 'coreutils',
         'findutils', 'diffutils', 'libelf1', 'libc6-dev')

# $1 is the root, $2 the build directory, which is seen at the same path
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
    """Have /bin and others lead to /usr, where older packages have files in
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
    """Make a root of these packages of a suite and all that they need."""
    apt = suites.apt(suite, arch)
    if not apt:
        raise LabError(f'no suite {suite} in the archive')
    status = root.with_name(root.name + '.status')
    status.write_text('')
    bare = Apt([*apt.options, '-o', f'Dir::State::status={status}'],
               apt.store)
    wanted = re.findall(r'^Inst (\S+) \((\S+)', bare.simulate(packages), re.M)
    if not wanted:
        raise LabError(f'apt cannot find out what {packages[0]} of {suite} '
                       'needs')
    debs = fetch_many(bare, wanted)
    if debs is None:
        raise LabError(f'{packages[0]} of {suite} cannot be had')
    shutil.rmtree(root, ignore_errors=True)
    unpack(debs, root)
    merge_usr(root)
    for name, target in (('awk', 'mawk'), ('sh', 'dash')):
        link = root / 'usr' / 'bin' / name
        if not link.exists():
            link.symlink_to(target)
    status.unlink()


def prepare(suite, compiler):
    """The root with this compiler; instant when it is there."""
    root = STATE / 'compiler' / f'{suite}-{compiler}'
    with state_lock():
        if not (root / 'ready').exists():
            say(f'{compiler} of {suite}: fetching')
            root.parent.mkdir(parents=True, exist_ok=True)
            fill(root, suite, [compiler, *TOOLS])
            (root / 'ready').touch()
    return root


def inside(root):
    """What to put before a command that is to run in a root. Only files
    below the build directory are the same there."""
    user = [] if os.getuid() == 0 else ['--map-root-user']
    return ['unshare', '--mount', *user, 'sh', '-euc', ENTER, 'enter',
            str(root), str(STATE)]
