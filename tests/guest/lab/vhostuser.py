# SPDX-License-Identifier: GPL-2.0-or-later
"""A front end of vhost-user, which sends messages that no VMM sends, and
drives the control queue of an adapter without a guest."""
import mmap
import os
import shutil
import socket
import struct
import tempfile
import time
from pathlib import Path

from .pages import listing
from .vmm import PAGE, Server

GET_FEATURES, SET_FEATURES, SET_OWNER = 1, 2, 3
SET_MEM_TABLE, SET_NUM, SET_ADDR, SET_BASE, GET_BASE = 5, 8, 9, 10, 11
SET_KICK, SET_CALL, SET_ERR, GET_PROTOCOL, SET_PROTOCOL = 12, 13, 14, 15, 16
GET_QUEUES, SET_ENABLE, SET_BACKEND_FD = 17, 18, 21
GET_CONFIG, SET_CONFIG, RESET_DEVICE = 24, 25, 34
SET_LOG_BASE, SET_STATE_FD, CHECK_STATE = 6, 42, 43
GET_MAX_SLOTS, ADD_REGION, REMOVE_REGION = 36, 37, 38

HEADER = struct.Struct('=III')      # request, flags, size
# Guest address, size, user address (of the front end), offset in the file
REGION = struct.Struct('=QQQQ')
RING = struct.Struct('=II')         # ring, value
ADDR = struct.Struct('=IIQQQQ')     # ring, flags, desc, used, avail, log
VERSION, NEED_REPLY = 1, 8
SAVE, LOAD = 0, 1                   # directions of SET_STATE_FD
LOG_ALL = 1 << 26                   # the feature VHOST_F_LOG_ALL
EVENT_INDEX = 1 << 29               # the feature VIRTIO_F_EVENT_IDX
CREATE_PD, DESTROY_PD = 4, 5        # commands of virtio-rdma
# User addresses are the front end's. They differ from guest addresses, so that
# a server that mixes them up fails.
BASE = 0x7f0000000000
GUEST = 0x100000
MEMORY = 1 << 20


def u64(value):
    return struct.pack('=Q', value)


def region(guest=GUEST, size=MEMORY, user=BASE, offset=0):
    return REGION.pack(guest, size, user, offset)


def table(*regions):
    return struct.pack('=II', len(regions), 0) + b''.join(regions)


def addresses(ring):
    """Return the body of SET_ADDR for a ring with 16 entries."""
    at = BASE + ring * 0x2000
    return ADDR.pack(ring, 0, at, at + 0x1800, at + 0x1000, 0)


class FrontEnd:
    """A connection to a server, which must answer within ten seconds."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        # Without a timeout: this may wait for the end of another front end.
        self.socket.connect(path)
        self.socket.settimeout(10)
        self.fds = []
        self.memory = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()
        for fd in self.fds:
            os.close(fd)
        if self.memory:
            self.memory.close()

    def keep(self, fd):
        """Return a descriptor. Close it with the connection."""
        self.fds.append(fd)
        return fd

    def send(self, request, body=b'', fds=(), size=None, flags=VERSION):
        """Send a message. @size: a wrong size for its header"""
        head = HEADER.pack(request, flags, len(body) if size is None else size)
        try:
            socket.send_fds(self.socket, [head + body], list(fds))
        except (ConnectionResetError, BrokenPipeError):
            pass    # answer() reports it.

    def answer(self):
        """Return the body of the next message, or None if the server has hung
        up."""
        try:
            head = self.socket.recv(HEADER.size, socket.MSG_WAITALL)
            if len(head) < HEADER.size:
                return None
            size = HEADER.unpack(head)[2]
            return self.socket.recv(size, socket.MSG_WAITALL) if size else b''
        except (ConnectionResetError, BrokenPipeError):
            return None

    def ask(self, request, body=b'', fds=()):
        """Send a message, and return answer()."""
        self.send(request, body, fds)
        return self.answer()

    def ask_fd(self, request, body=b'', fds=()):
        """Send a message. Return (answer(), descriptor in it)."""
        self.send(request, body, fds)
        head, got, _, _ = socket.recv_fds(self.socket, HEADER.size, 1)
        assert len(got) == 1, got
        fd = self.keep(got[0])
        return self.socket.recv(HEADER.unpack(head)[2], socket.MSG_WAITALL), fd

    def must(self, request, body=b'', fds=()):
        """Send a message that the server has to accept."""
        self.send(request, body, fds, flags=VERSION | NEED_REPLY)
        answer = self.answer()
        assert answer == u64(0), (request, answer)

    def alive(self):
        """Return whether the server answers."""
        return self.ask(GET_QUEUES) is not None

    def negotiate(self, drop=0):
        """Accept all features except LOG_ALL and @drop. Return the accepted
        ones."""
        features = struct.unpack('=Q', self.ask(GET_FEATURES))[0]
        features &= ~(LOG_ALL | drop)
        self.send(SET_OWNER)
        self.send(SET_PROTOCOL, self.ask(GET_PROTOCOL))
        self.must(SET_FEATURES, u64(features))
        return features

    def share_memory(self):
        """Share memory with the server. Return its descriptor."""
        fd = self.keep(os.memfd_create('guest'))
        os.ftruncate(fd, MEMORY)
        self.memory = mmap.mmap(fd, MEMORY)
        self.must(SET_MEM_TABLE, table(region()), [fd])
        return fd

    def set_ring(self, ring, base=0):
        """Describe a ring with 16 entries to the server."""
        self.must(SET_NUM, RING.pack(ring, 16))
        self.must(SET_BASE, RING.pack(ring, base))
        self.must(SET_ADDR, addresses(ring))

    def start_ring(self, ring, base=0):
        """Start a ring. Return its eventfds: (kick, call)"""
        kick, call = (self.keep(os.eventfd(0, os.EFD_NONBLOCK))
                      for _ in range(2))
        self.set_ring(ring, base)
        self.must(SET_CALL, u64(ring), [call])
        self.must(SET_KICK, u64(ring), [kick])
        self.must(SET_ENABLE, RING.pack(ring, 1))
        return kick, call

    def transfer(self, direction):
        """Begin to transfer the state. Return the server's file for it."""
        with open(os.devnull, 'rb') as ours:
            answer, fd = self.ask_fd(SET_STATE_FD, RING.pack(direction, 0),
                                     [ours.fileno()])
        assert answer == u64(0), answer
        return fd

    def save(self):
        """Return the state of the stopped device."""
        with open(os.dup(self.transfer(SAVE)), 'rb') as file:
            state = file.read()
        assert self.ask(CHECK_STATE) == u64(0)
        return state

    def load(self, state):
        """Load a state. Return whether the server accepts it."""
        os.write(self.transfer(LOAD), state)
        return self.ask(CHECK_STATE) == u64(0)

    def command(self, kick, request, size, index):
        """Execute a control command, number @index in ring 0. Return its
        response of @size bytes, which begins with the status."""
        out, answer = 0x80000, 0x81000
        self.memory[out:out + len(request)] = request
        self.memory[answer:answer + size] = bytes(size)
        self.memory[:32] = struct.pack(
            '<QIHHQIHH', GUEST + out, len(request), 1, 1,
            GUEST + answer, size, 2, 0)
        at = 0x1004 + index % 16 * 2
        self.memory[at:at + 2] = bytes(2)
        self.memory[0x1002:0x1004] = struct.pack('<H', index + 1 & 0xffff)
        os.eventfd_write(kick, 1)
        end = time.monotonic() + 10
        while struct.unpack('<H', self.memory[0x1802:0x1804])[0] != \
                index + 1 & 0xffff:
            assert time.monotonic() < end, 'the command does not complete'
            time.sleep(0.01)
        return self.memory[answer:answer + size]


def wait_event(fd, seconds=10):
    """Wait until an eventfd is signalled. Return whether it was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.eventfd_read(fd)
            return True
        except BlockingIOError:
            time.sleep(0.01)
    return False


class Running:
    """A server without a VMM."""

    def __init__(self, tag, *options):
        self.directory = tempfile.mkdtemp(prefix='vrdma-')
        Path(self.directory, 'server.sh').write_text(
            listing(PAGE, 'server.sh'), encoding='utf-8')
        self.server = Server(tag, 1, self.directory, '--protocol',
                             'vhost-user', *options)

    def __enter__(self):
        self.server.start()
        return self

    def __exit__(self, *exc):
        self.server.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def connect(self):
        return FrontEnd(f'{self.directory}/{self.server.name}.sock')


def set_up(front):
    """Accept all features except the event index, so that the device signals
    each time. Share memory, and return its descriptor."""
    front.negotiate(EVENT_INDEX)
    return front.share_memory()


def create_pd(front, kick, index):
    answer = front.command(kick, bytes((CREATE_PD,)), 5, index)
    assert answer[0] == 0, answer
    return answer[1:]


def destroy_pd(front, kick, index, pd):
    """Return whether the adapter had this protection domain."""
    answer = front.command(kick, bytes((DESTROY_PD,)) + pd, 1, index)
    return answer[0] == 0


def stop_ring(front, ring):
    """Stop a ring. Return its base."""
    front.must(SET_ENABLE, RING.pack(ring, 0))
    return RING.unpack(front.ask(GET_BASE, RING.pack(ring, 0)))[1]
