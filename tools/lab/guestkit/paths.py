# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths of the guests' sources, and of built files.

The build directory is BUILD_DIR from the environment, or build/ at the top
of the source tree. With a file VERSION beside this package and no BUILD_DIR,
the lab uses installed Debian packages instead of built files, and keeps its
own files in the user's cache directory.
"""
import fcntl
import glob
import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parent
INSTALLED = (HOME / 'VERSION').is_file() and not os.environ.get('BUILD_DIR')
TOP = HOME if INSTALLED else HOME.parent.parent
# Programs that run inside guests
INSIDE = HERE / 'inside'
CACHE = Path(os.environ.get('XDG_CACHE_HOME') or
             os.path.expanduser('~/.cache')) / 'vrdma-lab'
BUILD = Path(os.environ.get('BUILD_DIR') or
             (CACHE if INSTALLED else TOP / 'build')).resolve()

STATE = BUILD / 'guest'
DEBS = STATE / 'debs'
MODULES = STATE / 'modules'
PROVIDER = STATE / 'provider'
LOGS = BUILD / 'logs' / 'guest'
INSTALLED_QEMU = 'qemu-system-x86_64-virtio-rdma'


class LabError(Exception):
    """Something that the lab needs is missing or broken; see the text."""


class Unavailable(LabError):
    """No package archive has the needed version at present."""


def say(text):
    """Print progress to stderr: stdout is for results."""
    print(text, file=sys.stderr, flush=True)


def qemu_binary():
    """The emulator to use: $QEMU, or the built or installed one."""
    if INSTALLED and not os.environ.get('QEMU'):
        found = shutil.which(INSTALLED_QEMU)
        if not found:
            raise LabError(f'no {INSTALLED_QEMU}: install the package '
                           'qemu-system-x86-virtio-rdma')
        return Path(found)
    path = Path(os.environ.get('QEMU') or
                BUILD / 'qemu' / 'qemu-system-x86_64')
    if not os.access(path, os.X_OK):
        raise LabError(f'no QEMU at {path}: run "make", or set QEMU to '
                       'another one')
    return path


def firmware_dirs():
    """Directories with the BIOS and option ROMs, for QEMU's -L."""
    found = [d for d in ('/usr/share/seabios', '/usr/share/qemu')
             if os.path.isdir(d)]
    if not found:
        raise LabError('no firmware: install the packages seabios and '
                       'qemu-system-data')
    return found


def provider_dir():
    """The directory where libibverbs on this machine finds providers."""
    for so in sorted(glob.glob('/usr/lib/*/libibverbs/librxe-rdmav*.so')):
        return os.path.dirname(so)
    raise LabError('no libibverbs providers: install ibverbs-providers')


@contextmanager
def state_lock():
    """Let only one process at a time prepare kernels and headers."""
    STATE.mkdir(parents=True, exist_ok=True)
    with open(STATE / '.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
