# SPDX-License-Identifier: GPL-2.0-or-later
"""Where sources of guests are, and where the results are kept.

The build directory is BUILD_DIR from the environment, or build/ at the top
of the source tree. Files of Debian packages are not built: a file VERSION
beside this package, and no BUILD_DIR, tells that they are to be used. What is
made all the same is in a directory of the user's.
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
# What runs inside guests
INSIDE = HERE / 'inside'
CACHE = Path(os.environ.get('XDG_CACHE_HOME') or
             os.path.expanduser('~/.cache')) / 'vrdma-lab'
BUILD = Path(os.environ.get('BUILD_DIR') or
             (CACHE if INSTALLED else TOP / 'build')).resolve()

STATE = BUILD / 'guest'
DEBS = STATE / 'debs'
KERNELS = STATE / 'kernel'
HEADERS = STATE / 'headers'
MODULES = STATE / 'modules'
PROVIDER = STATE / 'provider'
BIN = STATE / 'bin'
LOGS = BUILD / 'logs' / 'guest'
INSTALLED_QEMU = 'qemu-system-x86_64-virtio-rdma'


class LabError(Exception):
    """Something the lab needs is missing or broken; the text says what."""


def say(text):
    """Progress goes to stderr: stdout belongs to answers."""
    print(text, file=sys.stderr, flush=True)


def qemu_binary():
    """The emulator under test: $QEMU, or the one built here or installed."""
    if INSTALLED and not os.environ.get('QEMU'):
        found = shutil.which(INSTALLED_QEMU)
        if not found:
            raise LabError(f'no {INSTALLED_QEMU}: install the package '
                           'qemu-system-x86-virtio-rdma')
        return Path(found)
    path = Path(os.environ.get('QEMU') or
                BUILD / 'qemu' / 'qemu-system-x86_64')
    if not os.access(path, os.X_OK):
        raise LabError(f'no QEMU at {path}: build it (make), or name one '
                       'with QEMU=')
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
    """Where libibverbs on this machine looks for providers."""
    for so in sorted(glob.glob('/usr/lib/*/libibverbs/librxe-rdmav*.so')):
        return os.path.dirname(so)
    raise LabError('no libibverbs providers: install ibverbs-providers')


@contextmanager
def state_lock():
    """One process at a time prepares kernels and headers."""
    STATE.mkdir(parents=True, exist_ok=True)
    with open(STATE / '.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
