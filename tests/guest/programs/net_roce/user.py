#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""user.py DEVICE GID MAC HOST PORT: use the RoCE half of a virtio-net-roce
device from user space, without a driver, and talk to peer.py on HOST.

DEVICE is a PCI function to which no driver is bound. GID is that of the queue
pair, MAC is that of its peer. docs/specs/virtio-net-roce.rst has the layouts.
Structures are written field by field, so that a wrong header of the device
does not go unnoticed.
"""
import ctypes
import ipaddress
import mmap
import os
import socket
import struct
import sys
import time

from talk import REGION, talk

PAGE = 4096
LOCKED_PAGES = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x2000 | 0x8000
# Capabilities of virtio (1.2, 4.1.4), and fields of the common configuration
VENDOR_CAP = 9
COMMON, NOTIFY, DEVICE = 1, 2, 4
FEATURE_SELECT, FEATURE, STATUS, QUEUE = 8, 12, 20, 22
SIZE, ENABLE, NOTIFY_OFF, ADDRESSES = 24, 28, 30, 32
RESET, ACKNOWLEDGED, FEATURES_OK, DRIVER_OK = 0, 3, 11, 15
FEATURES = 1 << 32 | 1 << 55
# Descriptors
NEXT, WRITE = 1, 2
MAX_SIZE = 64                   # so that a ring fits into a page
# Bytes that a work request takes in its ring's memory
WQE_ROOM = 1024
CTRL, CQ = 2, 3
COMMANDS = {'CREATE_CQ': 2, 'CREATE_PD': 4, 'REG_USER_MR': 7, 'CREATE_QP': 9,
            'MODIFY_QP': 10, 'ADD_GID': 15}
CLASS = 6
CQE = 48
ACCESS = 7
RC = 2
INIT, RTR, RTS = 1, 2, 3
MASKS = {INIT: 1 << 0 | 1 << 2,
         RTR: 1 << 0 | 1 << 4 | 1 << 5 | 1 << 9 | 1 << 11 | 1 << 13 | 1 << 15,
         RTS: 1 << 0 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12}
OPCODES = {'write': 0, 'send': 2, 'read': 4}
SIGNALED = 2
IOVA = 0x7000000


class Memory:
    """Pages that stay where they are, and their addresses in the machine"""

    def __init__(self, size):
        self.map = mmap.mmap(-1, -(-size // PAGE) * PAGE, flags=LOCKED_PAGES)
        at = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        count = len(self.map) // PAGE
        with open('/proc/self/pagemap', 'rb') as f:
            f.seek(at // PAGE * 8)
            entries = struct.unpack(f'{count}Q', f.read(8 * count))
        self.pages = [(entry & (1 << 55) - 1) * PAGE for entry in entries]
        assert all(self.pages), 'no page frame numbers: be root'

    def address(self, offset):
        return self.pages[offset // PAGE] + offset % PAGE


class Registers:
    """A region that a capability of virtio names"""

    def __init__(self, path, config, at):
        bar, self.base = config[at + 4], \
            struct.unpack_from('<I', config, at + 8)[0]
        fd = os.open(f'{path}/resource{bar}', os.O_RDWR)
        self.map = mmap.mmap(fd, 0)
        os.close(fd)

    def field(self, offset, kind):
        return kind.from_buffer(self.map, self.base + offset)

    def write(self, offset, value, kind=ctypes.c_uint16):
        self.field(offset, kind).value = value

    def read(self, offset, kind=ctypes.c_uint16):
        return self.field(offset, kind).value


class Ring:
    """A virtqueue, and room for @room bytes for each of its descriptors"""

    def __init__(self, device, number, room):
        common = device.common
        common.write(QUEUE, number)
        self.size = min(common.read(SIZE), MAX_SIZE)
        common.write(SIZE, self.size)
        self.number, self.room, self.notify = number, room, device.notify
        self.at = common.read(NOTIFY_OFF) * device.multiplier
        self.posted = self.used = 0
        self.rings, self.buffers = Memory(PAGE), Memory(self.size * room)
        self.avail, self.done = self.size * 16, PAGE // 2
        for i, offset in enumerate((0, self.avail, self.done)):
            address = self.rings.address(offset)
            common.write(ADDRESSES + 8 * i, address & 0xffffffff,
                         ctypes.c_uint32)
            common.write(ADDRESSES + 8 * i + 4, address >> 32, ctypes.c_uint32)
        struct.pack_into('<H', self.rings.map, self.avail, 1)   # no interrupt
        common.write(ENABLE, 1)

    def describe(self, n, address, length, flags, following=0):
        struct.pack_into('<QIHH', self.rings.map, 16 * n, address, length,
                         flags, following)

    def push(self, head):
        struct.pack_into('<H', self.rings.map,
                         self.avail + 4 + 2 * (self.posted % self.size), head)
        self.posted += 1
        struct.pack_into('<H', self.rings.map, self.avail + 2,
                         self.posted & 0xffff)
        self.notify.write(self.at, self.number)

    def post(self, data, length=0):
        """Post bytes, or a buffer of @length bytes for the device."""
        n = self.posted % self.size
        at = n * self.room
        self.buffers.map[at:at + len(data)] = data
        self.describe(n, self.buffers.address(at), length or len(data),
                      WRITE if length else 0)
        self.push(n)

    def wait(self):
        """Wait until the device has used a buffer. Return its place."""
        end = time.monotonic() + 30
        while struct.unpack_from('<H', self.rings.map, self.done + 2)[0] == \
                self.used & 0xffff:
            assert time.monotonic() < end, f'virtqueue {self.number}'
        head, = struct.unpack_from('<I', self.rings.map, self.done + 4 +
                                   8 * (self.used % self.size))
        self.used += 1
        return head * self.room


class NetRoce:
    """A device that is up"""

    def __init__(self, device):
        path = f'/sys/bus/pci/devices/{device}'
        with open(f'{path}/enable', 'w', encoding='ascii') as f:
            f.write('1')
        fd = os.open(f'{path}/config', os.O_RDWR)
        config = os.pread(fd, 256, 0)
        os.pwrite(fd, struct.pack('<H', config[4] | 4 | 0x400), 4)
        os.close(fd)
        found, at = {}, config[0x34]
        while at:
            if config[at] == VENDOR_CAP:
                found.setdefault(config[at + 3], at)
            at = config[at + 1]
        self.common, self.notify, own = (
            Registers(path, config, found[kind])
            for kind in (COMMON, NOTIFY, DEVICE))
        self.multiplier, = struct.unpack_from('<I', config,
                                              found[NOTIFY] + 16)
        self.mac = bytes(own.read(i, ctypes.c_uint8) for i in range(6))
        self.max_qps, self.max_cqs = (own.read(at, ctypes.c_uint32)
                                      for at in (24, 28))
        self.bring_up()
        self.buffer = Memory(PAGE)

    def bring_up(self):
        for status in RESET, ACKNOWLEDGED:
            self.common.write(STATUS, status, ctypes.c_uint8)
        for half in 0, 1:
            self.common.write(FEATURE_SELECT, half, ctypes.c_uint32)
            self.common.write(FEATURE, FEATURES >> 32 * half & 0xffffffff,
                              ctypes.c_uint32)
        self.common.write(STATUS, FEATURES_OK, ctypes.c_uint8)
        assert self.common.read(STATUS, ctypes.c_uint8) == FEATURES_OK
        self.rings = [Ring(self, n, CQE if n < CQ + self.max_cqs else WQE_ROOM)
                      for n in range(CQ + self.max_cqs + 2 * self.max_qps)]
        self.common.write(STATUS, DRIVER_OK, ctypes.c_uint8)

    def command(self, name, data=b'', reply=0):
        """Execute a command. Return the data of its reply."""
        ring, memory, answer = self.rings[CTRL], self.buffer.map, PAGE // 2
        request = bytes((CLASS, COMMANDS[name])) + data
        memory[:len(request)] = request
        memory[answer] = 0xff
        ring.describe(0, self.buffer.address(0), len(request), NEXT, 1)
        ring.describe(1, self.buffer.address(answer), 1 + reply, WRITE)
        ring.push(0)
        ring.wait()
        assert memory[answer] == 0, f'{name}: {memory[answer]}'
        return memory[answer + 1:answer + 1 + reply]

    def create(self, name, data=b''):
        """Execute a command that creates an object. Return its number."""
        return struct.unpack('<I', self.command(name, data, 4))[0]


class User:
    """An endpoint (talk.py) of such a device"""

    def __init__(self, device, gid, mac):
        self.mac, self.peer = bytes.fromhex(mac.replace(':', '')), None
        self.dev = dev = NetRoce(device)
        self.region = Memory(REGION)
        dev.command('ADD_GID', struct.pack('<H6x', 0) + packed(gid))
        pdn = dev.create('CREATE_PD')
        count = len(self.region.pages)
        _, self.lkey, rkey = struct.unpack('<3I', dev.command(
            'REG_USER_MR', struct.pack('<IIQQII', pdn, ACCESS, IOVA, REGION,
                                       count, 0) +
            struct.pack(f'<{count}Q', *self.region.pages), 12))
        cqn = dev.create('CREATE_CQ', struct.pack('<I', 32))
        self.cq = dev.rings[CQ + cqn]
        for _ in range(32):
            self.cq.post(b'', CQE)
        self.qpn = dev.create('CREATE_QP', struct.pack(
            '<IBB2xII6I16x', pdn, RC, 1, cqn, cqn, 8, 8, 1, 1, 0, 0))
        first = CQ + dev.max_cqs + 2 * self.qpn
        self.sq, self.rq = dev.rings[first], dev.rings[first + 1]
        self.address = {'qpn': self.qpn, 'rkey': rkey, 'addr': IOVA,
                        'gid': gid}

    def modify(self, state, peer):
        self.dev.command('MODIFY_QP', struct.pack(
            '<IIBBBBBBBBB7x', self.qpn, MASKS[state], state, 0, 3, 4, 4, 12,
            17, 7, 7) + struct.pack(
            '<IIIIII', 0, 0, 0, peer['qpn'], ACCESS, 0) + bytes(24) +
            packed(peer['gid']) + struct.pack('<IBBBx6s10x', 0, 0, 64, 0,
                                              self.mac) + bytes(16))

    def connect(self, peer):
        self.peer = peer
        for state in INIT, RTR, RTS:
            self.modify(state, peer)

    def put(self, offset, data):
        self.region.map[offset:offset + len(data)] = data

    def get(self, offset, length):
        return self.region.map[offset:offset + length]

    def post(self, what, offset, length, remote=0):
        sge = struct.pack('<QII', IOVA + offset, length, self.lkey)
        if what == 'recv':
            self.rq.post(struct.pack('<QI12x', 7, 1) + sge)
            return
        self.sq.post(struct.pack('<QBB6xQI4x', 7, OPCODES[what], SIGNALED,
                                 self.peer['addr'] + remote,
                                 self.peer['rkey']) +
                     bytes(16 + 512) + struct.pack('<I12x', 1) + sge)

    def wait(self):
        at = self.cq.wait()
        status = self.cq.buffers.map[at + 8]
        assert status == 0, f'status {status} of a completion'
        self.cq.post(b'', CQE)


def packed(gid):
    return ipaddress.IPv6Address(gid).packed


def main():
    device, gid, mac, host, port = sys.argv[1:]
    user = User(device, gid, mac)
    with socket.create_connection((host, int(port)), 30) as sock:
        talk(user, sock, first=True)
    # The device must not access memory that is no longer this program's.
    user.dev.common.write(STATUS, RESET, ctypes.c_uint8)


main()
