# SPDX-License-Identifier: GPL-2.0-or-later
"""A conversation of two RC queue pairs. Each side sends to the other, writes
to its memory, and reads it. All data are random, and are compared by checksum.

An endpoint has these members:

address             its part of the exchange: a dict for JSON
connect(peer)       connect to the peer, whose address is @peer
put(offset, data)   write to its region
get(offset, length) read it
post(what, offset, length, remote=0)
                    post a 'send', 'recv', 'write' or 'read'. @remote: the
                    offset in the peer's region
wait()              wait until a work request has completed
"""
import hashlib
import json
import os

REGION = 0x40000
LENGTHS = {'send': 3000, 'write': 65536, 'read': 65536}
# Offsets of the data in the region of the side that begins a request, and in
# that of the other side
HERE, THERE = 0x10, 0x20010


def checksum(data):
    return hashlib.sha256(data).hexdigest()


class Stream:
    """Lines of JSON over a socket"""

    def __init__(self, sock):
        self.file = sock.makefile('rw', encoding='ascii')

    def say(self, what):
        self.file.write(json.dumps(what) + '\n')
        self.file.flush()

    def hear(self):
        line = self.file.readline()
        assert line, 'the peer has ended'
        return json.loads(line)


def request(endpoint, stream, what):
    """Make a request, and check its data with the other side."""
    length = LENGTHS[what]
    data = os.urandom(length)
    if what != 'read':
        endpoint.put(HERE, data)
    assert stream.hear() == 'ready'
    endpoint.post(what, HERE, length, THERE)
    endpoint.wait()
    if what == 'read':
        data = endpoint.get(HERE, length)
    stream.say(checksum(data))
    assert stream.hear() == 'equal', f'{what}: the peer has other data'


def serve(endpoint, stream, what):
    """The other side of a request"""
    length = LENGTHS[what]
    if what == 'send':
        endpoint.post('recv', THERE, length + 100)
    else:
        endpoint.put(THERE, os.urandom(length))
    stream.say('ready')
    wanted = stream.hear()
    if what == 'send':
        endpoint.wait()
    equal = checksum(endpoint.get(THERE, length)) == wanted
    stream.say('equal' if equal else 'different')
    assert equal, f'{what}: other data arrived'


def talk(endpoint, sock, first):
    """Have a conversation. @first: this side begins"""
    stream = Stream(sock)
    stream.say(endpoint.address)
    endpoint.connect(stream.hear())
    stream.say('connected')
    assert stream.hear() == 'connected'
    for turn in range(6):
        for what in LENGTHS:
            if (turn % 2 == 0) == first:
                request(endpoint, stream, what)
            else:
                serve(endpoint, stream, what)
    print('all data arrived')
