# SPDX-License-Identifier: GPL-2.0-or-later
"""Taps, which connect guests to a bridge of this machine.

This module uses ioctls, which need no programs and find interfaces in the
caller's network namespace; /sys may be that of another namespace.
"""
import errno
import fcntl
import os
import socket
import struct

from guestkit.paths import LabError

TUN = '/dev/net/tun'
TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x0002, 0x1000, 0x4000
IFF_UP = 0x1
SIOCGIFFLAGS, SIOCSIFFLAGS = 0x8913, 0x8914
SIOCGIFMTU, SIOCSIFMTU = 0x8921, 0x8922
SIOCBRADDIF = 0x89a2
NAME = 'vrdma%d'        # the kernel puts a number there
LONGEST = 15            # bytes of a name


def _ask(request, name, form='i', *values):
    """Call an ioctl with values for the interface @name; its first answer."""
    size = struct.calcsize(form)
    packed = struct.pack(f'16s{form}{24 - size}x', os.fsencode(name),
                         *values or [0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = fcntl.ioctl(sock, request, packed)
    return struct.unpack_from(form, answer, 16)[0]


def mtu(name):
    """The MTU of an interface; an error if there is none."""
    if len(os.fsencode(name)) > LONGEST:
        raise LabError(f'{name}: a name of an interface has at most {LONGEST} '
                       'bytes')
    try:
        return _ask(SIOCGIFMTU, name)
    except OSError as e:
        raise LabError(f'{name}: {e.strerror}') from e


def attach(name):
    """(descriptor, name) of the tap with this name. If it does not exist, it
    is created, and goes away with its last descriptor."""
    try:
        fd = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
        try:
            flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR
            made = fcntl.ioctl(fd, TUNSETIFF, struct.pack(
                '16sH22x', os.fsencode(name), flags))
        except OSError:
            os.close(fd)
            raise
    except OSError as e:
        why = 'another guest uses it' if e.errno == errno.EBUSY else e.strerror
        raise LabError(f'tap {name}: {why}') from e
    return fd, os.fsdecode(made[:16].rstrip(b'\0'))


def on_bridge(bridge):
    """The descriptor of a new tap on a bridge, with its MTU."""
    try:
        fd, name = attach(NAME)
    except LabError as e:
        raise LabError(f'--bridge {bridge}: {e}. Only root may create taps: '
                       'let root create them for you, and use --tap') from e
    try:
        # Before adding it: a bridge takes the smallest MTU of its ports.
        _ask(SIOCSIFMTU, name, 'i', mtu(bridge))
        _ask(SIOCBRADDIF, bridge, 'i', socket.if_nametoindex(name))
        _ask(SIOCSIFFLAGS, name, 'H', _ask(SIOCGIFFLAGS, name, 'H') | IFF_UP)
    except OSError as e:
        os.close(fd)
        what = f'{bridge} is not a bridge of Linux: add taps to your ' \
            'switch, and use --tap' if e.errno == errno.EOPNOTSUPP \
            else e.strerror
        raise LabError(f'--bridge {bridge}: {what}') from e
    return fd


def named(name):
    """The descriptor of an existing tap."""
    mtu(name)
    return attach(name)[0]
