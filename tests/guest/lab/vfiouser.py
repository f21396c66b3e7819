# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of vfio-user, for messages that no VMM sends."""
import os
import socket
import struct

VERSION, DMA_MAP, GET_INFO = 1, 2, 4
READ_WRITE = 3
HEADER = struct.Struct('=HHIII')    # number, command, size, flags, error
ERROR = 1 << 5


class Client:
    """A connection to a server. No answer takes more than ten seconds."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        # This waits until the server is done with another client.
        self.socket.connect(path)
        self.socket.settimeout(10)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def send(self, command, body=b'', size=None, flags=0, fds=()):
        """Send a message. @size: a wrong size for its header"""
        if size is None:
            size = HEADER.size + len(body)
        socket.send_fds(
            self.socket, [HEADER.pack(7, command, size, flags, 0) + body], fds)

    def answer(self):
        """Return (error, body) of the next message, or None if the server
        has hung up."""
        try:
            head = self.socket.recv(HEADER.size, socket.MSG_WAITALL)
        except ConnectionResetError:
            return None
        if len(head) < HEADER.size:
            return None
        _, _, size, flags, error = HEADER.unpack(head)
        body = self.socket.recv(size - HEADER.size, socket.MSG_WAITALL) \
            if size > HEADER.size else b''
        return (error if flags & ERROR else 0), body

    def negotiate(self, major=0):
        """Agree on a version; the answer."""
        self.send(VERSION, struct.pack('=HH', major, 0) + b'{}\0')
        return self.answer()

    def map(self, size, offset=0, of=65536):
        """Map a part of a new file of @of bytes; the error."""
        fd = os.memfd_create('vfio-user')
        try:
            os.truncate(fd, of)
            self.send(DMA_MAP, struct.pack('=IIQQQ', 32, READ_WRITE, offset, 0,
                                           size), fds=[fd])
        finally:
            os.close(fd)
        return self.answer()[0]

    def info(self):
        """Return (regions, interrupts) of the device."""
        self.send(GET_INFO, struct.pack('=IIII', 16, 0, 0, 0))
        error, body = self.answer()
        assert not error, error
        return struct.unpack('=IIII', body[:16])[2:]
