# SPDX-License-Identifier: GPL-2.0-or-later
"""Streams over SMC, which look like TCP to a program.

smc_echo.py setup NIC DEVICE
smc_echo.py server OWN CONNECTIONS
smc_echo.py client PEER CONNECTIONS

setup tells the kernel what smc_pnet and smcd would: that the NIC and the RDMA
device are on one network, and the name of a group of hosts that may speak SMC
version 2, the one that knows RoCE v2. The server sends back what it gets. All
connections are in use at once, and each side prints how the kernel carried
them.
"""
import hashlib
import os
import socket
import struct
import sys
import threading

AF_SMC = 43
PORT = 4100
TIMEOUT = 40
PNETID = 'LAB'
GROUP = 'LAB-GROUP'
GROUP_LENGTH = 32
# A few bytes, a bit more than a page, and more than the kernel's buffers hold
SIZES = (1, 4097, 65536, 3 << 20, 7, 1 << 20)
BUFFER = 1 << 20

NETLINK_SOCK_DIAG = 4
NETLINK_GENERIC = 16
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 1, 4, 0x300
NLMSG_ERROR, NLMSG_DONE = 2, 3
GENL_ID_CTRL = 16
CTRL_CMD_GETFAMILY = 3
CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 1, 2
SMC_PNETID_ADD = 2
SMC_PNETID_NAME, SMC_PNETID_ETHNAME, SMC_PNETID_IBNAME, SMC_PNETID_IBPORT = \
    1, 2, 3, 4
SMC_NETLINK_ADD_UEID = 10
SMC_NLA_EID_TABLE_ENTRY = 1
SOCK_DIAG_BY_FAMILY = 20
SMC_LISTEN = 10
SMC_DIAG_FALLBACK = 5
MODES = ('SMC-R', 'TCP', 'SMC-D')


class Netlink:
    """A socket for requests to the kernel, and for all messages of each
    answer."""

    def __init__(self, protocol):
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                                    protocol)
        self.socket.bind((0, 0))

    def ask(self, kind, flags, payload):
        self.socket.send(struct.pack('=IHHII', 16 + len(payload), kind,
                                     NLM_F_REQUEST | flags, 1, 0) + payload)
        answers = []
        while True:
            data = self.socket.recv(1 << 16)
            while data:
                length, kind, _, _, _ = struct.unpack_from('=IHHII', data)
                body = data[16:length]
                data = data[(length + 3) & ~3:]
                if kind == NLMSG_ERROR:
                    error, = struct.unpack_from('=i', body)
                    if error:
                        raise OSError(-error, os.strerror(-error))
                    return answers
                if kind == NLMSG_DONE:
                    return answers
                answers.append(body)


def attribute(kind, data):
    length = 4 + len(data)
    return struct.pack('=HH', length, kind) + data + bytes(-length % 4)


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from('=HH', data)
        found[kind] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


class Generic(Netlink):
    """A generic netlink family."""

    def __init__(self, name):
        super().__init__(NETLINK_GENERIC)
        answers = self.ask(GENL_ID_CTRL, NLM_F_ACK, self.message(
            CTRL_CMD_GETFAMILY,
            attribute(CTRL_ATTR_FAMILY_NAME, name.encode() + b'\0')))
        self.family, = struct.unpack(
            '=H', attributes(answers[0][4:])[CTRL_ATTR_FAMILY_ID])

    @staticmethod
    def message(command, payload):
        return struct.pack('=BBH', command, 1, 0) + payload

    def do(self, command, payload):
        self.ask(self.family, NLM_F_ACK, self.message(command, payload))


def setup(nic, device):
    Generic('SMC_PNETID').do(
        SMC_PNETID_ADD,
        attribute(SMC_PNETID_NAME, PNETID.encode() + b'\0') +
        attribute(SMC_PNETID_ETHNAME, nic.encode() + b'\0') +
        attribute(SMC_PNETID_IBNAME, device.encode() + b'\0') +
        attribute(SMC_PNETID_IBPORT, b'\1'))
    Generic('SMC_GEN_NETLINK').do(
        SMC_NETLINK_ADD_UEID,
        attribute(SMC_NLA_EID_TABLE_ENTRY,
                  GROUP.ljust(GROUP_LENGTH).encode() + b'\0'))


def modes():
    """Return how the kernel carries each connection."""
    found = []
    request = struct.pack('=BBBB48x', AF_SMC, 0, 0,
                          1 << (SMC_DIAG_FALLBACK - 1))
    for body in Netlink(NETLINK_SOCK_DIAG).ask(SOCK_DIAG_BY_FAMILY,
                                               NLM_F_DUMP, request):
        _, state, mode, _ = struct.unpack_from('=BBBB', body)
        if state == SMC_LISTEN:
            continue
        text = MODES[mode]
        reason = attributes(body[64:]).get(SMC_DIAG_FALLBACK)
        if reason and mode:
            text += ' (0x%x, peer: 0x%x)' % struct.unpack('=II', reason)
        found.append(text)
    return found


def smc_socket():
    """Create an SMC socket; its addresses are those of TCP."""
    s = socket.socket(AF_SMC, socket.SOCK_STREAM, 0)
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0,
                      fileno=s.detach())
    s.settimeout(TIMEOUT)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for option in socket.SO_SNDBUF, socket.SO_RCVBUF:
        s.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    return s


def receive(s, length):
    data = bytearray()
    while len(data) < length:
        piece = s.recv(min(length - len(data), 1 << 17))
        assert piece, 'the connection has ended'
        data += piece
    return bytes(data)


def echo(s):
    for size in SIZES:
        s.sendall(receive(s, size))


def ask(s, number):
    for size in SIZES:
        seed = hashlib.sha256(f'{number} {size}'.encode()).digest()
        data = (seed * (size // 32 + 1))[:size]
        # Neither side may wait for the other to read.
        sender = threading.Thread(target=s.sendall, args=(data,))
        sender.start()
        assert receive(s, size) == data, f'{size} bytes are not what was sent'
        sender.join()


class Worker(threading.Thread):
    """One connection. join() raises the exception of the thread."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.function, self.args = function, args
        self.error = None
        self.start()

    def run(self):
        try:
            self.function(*self.args)
        except Exception as e:
            self.error = e

    def join(self, timeout=None):
        super().join(timeout)
        if self.error:
            raise self.error


def main():
    role, where, value = sys.argv[1:]
    if role == 'setup':
        setup(where, value)
        return
    count = int(value)
    if role == 'server':
        listener = smc_socket()
        listener.bind((where, PORT))
        listener.listen(count)
        print('listening', flush=True)
        sockets = [listener.accept()[0] for _ in range(count)]
        workers = [Worker(echo, s) for s in sockets]
    else:
        sockets = []
        for _ in range(count):
            sockets.append(smc_socket())
            sockets[-1].connect((where, PORT))
        workers = [Worker(ask, s, i) for i, s in enumerate(sockets)]
    for worker in workers:
        worker.join()
    print('carried by', *modes())
    # Keep the connections until the peer has printed its modes, too.
    for s in sockets:
        s.shutdown(socket.SHUT_WR)
    for s in sockets:
        assert s.recv(1) == b'', 'the peer sent more data'
        s.close()


main()
