# SPDX-License-Identifier: GPL-2.0-or-later
"""Datagrams over RDS, which delivers each once and in order.

rds_echo.py server OWN COUNT
rds_echo.py client OWN PEER COUNT

The server answers each message with its hash. Both know what the messages
are: 0, 1, 2 ... of these sizes in turn.
"""
import hashlib
import socket
import sys

AF_RDS = 21
PORT = 4000
# Of no, one and many fragments of 4 KiB, each a send request.
SIZES = (1, 64, 0, 4096, 4097, 65536, 300000)
# How many messages may be without an answer.
WINDOW = 6
# net.core.wmem_max has to allow it.
BUFFER = 1 << 20
TIMEOUT = 30


def message(i):
    """Return message @i; all messages are different."""
    size = SIZES[i % len(SIZES)]
    seed = hashlib.sha256(str(i).encode()).digest()
    return (seed * (size // 32 + 1))[:size]


def answer(i, data):
    return i.to_bytes(4, 'big') + hashlib.sha256(data).digest()


def serve(s, count):
    for i in range(count):
        data, peer = s.recvfrom(BUFFER)
        assert data == message(i), f'message {i} is wrong'
        s.sendto(answer(i, data), peer)


def ask(s, peer, count):
    for i in range(count + WINDOW):
        if i < count:
            s.sendto(message(i), (peer, PORT))
        done = i - WINDOW
        if done >= 0:
            data, _ = s.recvfrom(BUFFER)
            assert data == answer(done, message(done)), \
                f'answer {done} is wrong'


def main():
    role, own, *rest = sys.argv[1:]
    s = socket.socket(AF_RDS, socket.SOCK_SEQPACKET)
    s.settimeout(TIMEOUT)
    for option in socket.SO_SNDBUF, socket.SO_RCVBUF:
        s.setsockopt(socket.SOL_SOCKET, option, BUFFER)
    s.bind((own, PORT if role == 'server' else 0))
    if role == 'server':
        serve(s, int(rest[0]))
        # Stay for a second, so that RDS can send the last answers again if the
        # peer does not have them.
        s.settimeout(1)
        try:
            s.recvfrom(BUFFER)
        except TimeoutError:
            pass
    else:
        ask(s, rest[0], int(rest[1]))


main()
