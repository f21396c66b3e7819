# SPDX-License-Identifier: GPL-2.0-or-later
"""Confine the QEMU of a guest in shared directories of the host.

The guest writes there with the rights of the user. Set-user-ID programs,
set-group-ID programs and device nodes would outlive the lab, and give rights
to other users. A filter of system calls, which any user may install, refuses
them with EPERM. Root also loses CAP_FSETID: without it the kernel clears these
bits when a file is written.
"""
import ctypes
import errno
import os
import platform
import stat
import struct

from guestkit.paths import LabError

_PR_GET_SECCOMP, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 21, 22, 24
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_CAP_FSETID = 4

_AUDIT_ARCH_X86_64 = 0xc000003e
_X32 = 0x40000000       # in numbers of system calls
# Classic BPF, and offsets in struct seccomp_data
_LOAD, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16
_ALLOW, _ERRNO = 0x7fff0000, 0x00050000

_IDS = stat.S_ISUID | stat.S_ISGID
# Only devices of both kinds have this bit, and symbolic links, which mknod()
# cannot create.
_DEVICE = stat.S_IFCHR
_CREATES = os.O_CREAT | (os.O_TMPFILE & ~os.O_DIRECTORY)

# {system call of x86-64: (number, argument, bits that it must not have)}
_MODES = {'chmod': (90, 1, _IDS), 'fchmod': (91, 1, _IDS),
          'fchmodat': (268, 2, _IDS), 'fchmodat2': (452, 2, _IDS),
          'creat': (85, 1, _IDS), 'mknod': (133, 1, _IDS | _DEVICE),
          'mknodat': (259, 2, _IDS | _DEVICE)}
# {call: (number, argument with flags, argument with mode)}; the mode counts
# only with flags that create files
_OPENS = {'open': (2, 1, 2), 'openat': (257, 2, 3)}
# The filter cannot see the arguments of these. QEMU and libraries work without
# them.
_HIDDEN = {'openat2': 437, 'io_uring_setup': 425}


def _op(code, value, yes=0, no=0):
    """An instruction; @yes, @no: instructions that a comparison skips."""
    return struct.pack('=HBBI', code, yes, no, value)


def _argument(index):
    """Load the lower half of the argument."""
    return _op(_LOAD, _ARGUMENTS + 8 * index)


def _refuse(number):
    return _op(_RETURN, _ERRNO | number)


def _without(bits):
    return [_op(_ANY_OF, bits, 0, 1), _refuse(errno.EPERM),
            _op(_RETURN, _ALLOW)]


def _program():
    blocks = []
    for number, argument, bits in _MODES.values():
        blocks.append((number, [_argument(argument), *_without(bits)]))
    for number, flags, mode in _OPENS.values():
        blocks.append((number, [
            _argument(flags), _op(_ANY_OF, _CREATES, 1, 0),
            _op(_RETURN, _ALLOW), _argument(mode), *_without(_IDS)]))
    for number in _HIDDEN.values():
        blocks.append((number, [_refuse(errno.ENOSYS)]))
    code = [_op(_LOAD, _ARCH), _op(_EQUAL, _AUDIT_ARCH_X86_64, 1, 0),
            _refuse(errno.ENOSYS), _op(_LOAD, _NUMBER),
            _op(_AT_LEAST, _X32, 0, 1), _refuse(errno.ENOSYS)]
    for number, block in blocks:
        code += [_op(_EQUAL, number, 0, len(block)), *block]
    return [*code, _op(_RETURN, _ALLOW)]


class _Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_char_p)]


_CODE = _program()
_FILTER = _Program(len(_CODE), b''.join(_CODE))
_libc = ctypes.CDLL(None, use_errno=True)


def check():
    """Require a machine that supports such filters."""
    if platform.machine() != 'x86_64' or _libc.prctl(
            _PR_GET_SECCOMP, 0, 0, 0, 0) < 0:
        raise LabError('this machine has no filters for system calls '
                       '(seccomp of x86-64), without which guests might '
                       'leave set-user-ID programs in shared directories')


def confine():
    """Confine the calling process, and programs that it executes, for ever."""
    _libc.prctl(_PR_CAPBSET_DROP, _CAP_FSETID, 0, 0, 0)     # only root can
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                      (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER,
                       ctypes.byref(_FILTER), 0, 0)):
        if _libc.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), 'prctl: no filter for system '
                          'calls')
