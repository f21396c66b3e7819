# SPDX-License-Identifier: GPL-2.0-or-later
"""The directory of a lab that is up, and its lock.

Labs of a user are below $XDG_RUNTIME_DIR, or else below a temporary directory
of the user. The keeper of a lab holds the lock while it runs, and writes its
process ID to the file. A directory whose lock is free remains from a crash.

The owner of these files can run commands in the user's name. So each access
requires that no other user can have created or changed them.
"""
import fcntl
import os
import pwd
import re
import shutil
import signal
import stat
import tempfile
from pathlib import Path

from guestkit.paths import LabError

NAME_MAX = 16       # of a lab
# Bytes of sun_path, without the terminating 0
SOCKET_PATH_MAX = 107
# The longest name of a socket in a lab's directory: with --wire shm, QEMU
# names a socket after the MAC address of its adapter.
LONGEST_SOCKET = '52:54:00:00:00:00'
# Bytes of the path of all labs' directory
BASE_MAX = SOCKET_PATH_MAX - len(f'/{"x" * NAME_MAX}/{LONGEST_SOCKET}')
KINDS = {'directory': stat.S_ISDIR, 'file': stat.S_ISREG,
         'socket': stat.S_ISSOCK}
ELSEWHERE = 'set XDG_RUNTIME_DIR or TMPDIR to a directory of yours'


def _user(uid):
    try:
        return f'{pwd.getpwuid(uid).pw_name} (uid {uid})'
    except KeyError:
        return f'uid {uid}'


def require_own(path, kind, status=None):
    """Require that a file is of a kind, belongs to the caller, and is closed
    to other users. @status: from fstat(); default: lstat()"""
    status = status or os.lstat(path)
    permissions = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        what = f'is a symbolic link, not a {kind}'
    elif not KINDS[kind](status.st_mode):
        what = f'is not a {kind}'
    elif status.st_uid != os.getuid():
        what = f'belongs to {_user(status.st_uid)}, and you are ' \
            f'{_user(os.getuid())}'
    elif permissions & 0o077:
        what = f'has mode {permissions:04o}, which lets other users access it'
    else:
        return
    raise LabError(f'{path} {what}: vrdma-lab does not trust it; remove it, '
                   f'or {ELSEWHERE}')


def _require_lasting(path):
    """Require that no other user can exchange the file for another one."""
    # In a user namespace the owner of / may have a number other than 0.
    trusted = {0, os.getuid(), os.stat('/').st_uid}
    for parent in path.parents:
        status = os.stat(parent)
        permissions = stat.S_IMODE(status.st_mode)
        if status.st_uid not in trusted:
            what = f'belongs to {_user(status.st_uid)}'
        elif permissions & 0o022 and not permissions & stat.S_ISVTX:
            what = f'has mode {permissions:04o}'
        else:
            continue
        raise LabError(f'{parent} {what}: another user could exchange '
                       f'{path}; {ELSEWHERE}')


def base():
    """The directory of this user's labs, which may not exist."""
    runtime = os.environ.get('XDG_RUNTIME_DIR')
    # With a variable that sudo has kept, it belongs to another user.
    if runtime and os.access(runtime, os.W_OK) and \
            os.stat(runtime).st_uid == os.getuid():
        path = Path(runtime).resolve() / 'vrdma-lab'
    else:
        path = Path(tempfile.gettempdir()).resolve() / \
            f'vrdma-lab-{os.getuid()}'
    length = len(os.fsencode(path))
    if length > BASE_MAX:
        raise LabError(f'{path} has {length} bytes, and sockets in it allow '
                       f'at most {BASE_MAX}: set XDG_RUNTIME_DIR or TMPDIR to '
                       'a directory with a shorter path')
    if ',' in str(path):
        raise LabError(f'{path} has a comma, which separates options of QEMU: '
                       'set XDG_RUNTIME_DIR or TMPDIR to another directory')
    _require_lasting(path)
    if os.path.lexists(path):
        require_own(path, 'directory')
    return path


class Place:
    def __init__(self, name):
        if not re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9_.-]*', name) or \
                len(name) > NAME_MAX:
            raise LabError(f'"{name}" cannot be the name of a lab: take at '
                           f'most {NAME_MAX} letters, digits and any of '
                           '"_.-", with a letter or digit first')
        self.name = name
        self.base = base()
        self.directory = self.base / name
        self.lock_file = self.base / f'{name}.lock'
        self.control = self.directory / 'control'
        self.keeper_log = self.directory / 'keeper.log'

    def require_own(self):
        """Require that the keeper's socket belongs to the caller alone."""
        require_own(self.directory, 'directory')
        require_own(self.control, 'socket')

    def _open_lock(self, flags):
        try:
            fd = os.open(self.lock_file, flags | os.O_CLOEXEC |
                         os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        except FileNotFoundError:
            raise
        except OSError as e:
            if os.path.lexists(self.lock_file):
                require_own(self.lock_file, 'file')
            raise LabError(f'{self.lock_file}: {e.strerror}') from e
        try:
            require_own(self.lock_file, 'file', os.fstat(fd))
        except LabError:
            os.close(fd)
            raise
        return fd

    def _try_lock(self, flags):
        """A descriptor with the lock; None if another process has it."""
        while True:
            fd = self._open_lock(flags)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Its last holder may have removed the file meanwhile.
                if os.path.samestat(os.fstat(fd), os.lstat(self.lock_file)):
                    return fd
            except BlockingIOError:
                os.close(fd)
                return None
            except FileNotFoundError:
                pass
            os.close(fd)

    def take(self):
        """Take a free place, and clean it: a descriptor with the lock, or None
        if another process has it."""
        self.base.mkdir(mode=0o700, exist_ok=True)
        require_own(self.base, 'directory')
        fd = self._try_lock(os.O_RDWR | os.O_CREAT)
        if fd is not None:
            os.ftruncate(fd, 0)
            if os.path.lexists(self.directory):
                require_own(self.directory, 'directory')
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir(mode=0o700)
        return fd

    @staticmethod
    def sign(fd):
        """Write the process ID of the caller, the keeper, into the lock."""
        os.pwrite(fd, b'%d' % os.getpid(), 0)

    def keeper(self):
        """The process ID of the keeper; None before sign()."""
        try:
            return int(self.lock_file.read_text(encoding='ascii') or 0) or None
        except FileNotFoundError:
            return None

    def interrupt(self):
        """End the keeper of a lab that is not up yet."""
        pid = self.keeper()
        try:
            if pid:
                os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            pass

    def leave(self):
        """Remove all files of the lab. The caller holds the lock."""
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
        # Remove the files of a killed keeper.
        self.leave()
        os.close(fd)
        return False


def all_taken():
    """The labs that are up."""
    names = sorted(path.stem for path in base().glob('*.lock'))
    return [place for place in map(Place, names) if place.taken()]
