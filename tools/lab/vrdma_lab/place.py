# SPDX-License-Identifier: GPL-2.0-or-later
"""The directory of a lab that is up, and the lock that says so.

Labs of a user are below $XDG_RUNTIME_DIR, or else below a directory of his own
for temporary files. The keeper of a lab holds the lock as long as it runs: a
directory whose lock nobody holds is what a crash has left.
"""
import fcntl
import os
import re
import shutil
import tempfile
from pathlib import Path

from lab.paths import LabError

# Addresses of Unix sockets have 107 bytes, names in the directory up to 24
LONGEST = 80


def base():
    """Where the labs of this user are."""
    runtime = os.environ.get('XDG_RUNTIME_DIR')
    if runtime and os.access(runtime, os.W_OK):
        path = Path(runtime) / 'vrdma-lab'
    else:
        path = Path(tempfile.gettempdir()) / f'vrdma-lab-{os.getuid()}'
    path = Path(os.path.abspath(path))
    if len(str(path)) > LONGEST or ',' in str(path):
        raise LabError(f'{path} is too long for sockets, or has a comma: set '
                       'XDG_RUNTIME_DIR or TMPDIR to another directory')
    return path


def make_base():
    path = base()
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In a directory for all, somebody else may have been first.
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise LabError(f'{path} belongs to somebody else: set '
                       'XDG_RUNTIME_DIR or TMPDIR to a directory of yours')
    path.chmod(0o700)
    return path


class Place:
    def __init__(self, name):
        if not re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9_.-]{0,15}', name):
            raise LabError(f'"{name}" cannot be the name of a lab: take at '
                           'most 16 letters, digits and any of "_.-"')
        self.name = name
        self.directory = base() / name
        self.lock_file = base() / f'{name}.lock'
        self.control = self.directory / 'control'
        self.keeper_log = self.directory / 'keeper.log'

    def _try_lock(self, flags):
        """A descriptor with the lock; None if somebody else has it."""
        while True:
            fd = os.open(self.lock_file, flags | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Its last holder may have removed the file meanwhile.
                if os.fstat(fd).st_ino == os.stat(self.lock_file).st_ino:
                    return fd
            except BlockingIOError:
                os.close(fd)
                return None
            except FileNotFoundError:
                pass
            os.close(fd)

    def take(self):
        """Take a place that is free, and clean it; the descriptor that
        holds it, or None."""
        make_base()
        fd = self._try_lock(os.O_RDWR | os.O_CREAT)
        if fd is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir(mode=0o700)
        return fd

    def leave(self):
        """For who holds it: nothing of the lab is to stay."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.lock_file.unlink(missing_ok=True)

    def taken(self):
        """Whether a keeper runs."""
        try:
            fd = self._try_lock(os.O_RDWR)
        except FileNotFoundError:
            return False
        if fd is None:
            return True
        # What a keeper left that was killed
        self.leave()
        os.close(fd)
        return False


def all_taken():
    """The labs that are up."""
    names = sorted(path.stem for path in base().glob('*.lock'))
    return [place for place in map(Place, names) if place.taken()]
