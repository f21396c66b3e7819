# SPDX-License-Identifier: GPL-2.0-or-later
"""The vhost-user server handles messages that no VMM sends, and sequences of
messages that VMMs send."""
import fcntl
import os
import select
import socket
import struct
from pathlib import Path

from lab import vhostuser as vu
from lab.runner import NoGuests
from lab.vhostuser import Running, addresses, create_pd, destroy_pd, region, \
    set_up, stop_ring, table, u64

PAIR = BENCH = NoGuests
SECONDS = 10
ODD = vu.GUEST + 1


def open_fd(front, kind):
    """Return a descriptor of a kind that the server does not expect."""
    if kind == 'pipe':
        return [front.keep(fd) for fd in os.pipe()][0]
    if kind == 'socket':
        return front.keep(socket.socket(socket.AF_UNIX).detach())
    if kind == 'epoll':
        with select.epoll() as poll:
            return front.keep(os.dup(poll.fileno()))
    if kind == 'memory':
        fd = front.keep(os.memfd_create('short'))
        os.ftruncate(fd, vu.MEMORY)
        return fd
    flags = os.O_PATH if kind == 'path' else os.O_RDONLY
    return front.keep(os.open('/' if kind == 'directory' else '/dev/null',
                              flags))


# Messages that end the connection: (request, body, kinds of descriptors, size
# in the header)
WRONG_MESSAGES = [
    *((request, b'') for request in
      (0, 7, 19, 20, 22, 23, 26, 27, 28, 31, 32, 35, 39, 40, 41, 44,
       1 << 31)),
    (vu.GET_FEATURES, u64(0)),
    (vu.GET_FEATURES, b'', (), 1 << 31),
    (vu.GET_FEATURES, b'', ('path',)),
    (vu.SET_FEATURES, b'\0' * 4),
    (vu.SET_FEATURES, u64(0)),
    (vu.SET_FEATURES, u64(1 << 33 | 1 << 32 | 1 << 30)),
    (vu.SET_FEATURES, u64((1 << 64) - 1)),
    (vu.SET_LOG_BASE, u64(4096) + u64(0)),
    (vu.SET_LOG_BASE, u64(4096), ('memory',)),
    *((vu.SET_LOG_BASE, u64(size) + u64(offset), ('memory',))
      for size, offset in ((vu.MEMORY + 1, 0), (vu.MEMORY, 1), (1 << 63, 0),
                           ((1 << 64) - 4096, 8192), (1, (1 << 64) - 1))),
    (vu.SET_LOG_BASE, u64(4096) + u64(0), ('pipe',)),
    (vu.SET_STATE_FD, vu.RING.pack(2, 0), ('pipe',)),
    (vu.SET_STATE_FD, vu.RING.pack(vu.LOAD, 1), ('pipe',)),
    (vu.SET_STATE_FD, vu.RING.pack(vu.SAVE, 0), ('pipe',) * 2),
    (vu.SET_STATE_FD, u64(0)[:4]),
    (vu.CHECK_STATE, b''),
    (vu.CHECK_STATE, u64(0)),
    (vu.SET_PROTOCOL, u64(1 << 16)),
    (vu.SET_PROTOCOL, u64((1 << 64) - 1)),
    (vu.SET_MEM_TABLE, table()[:4]),
    (vu.SET_MEM_TABLE, table(region()), ()),
    (vu.SET_MEM_TABLE, table(region()), ('memory', 'memory')),
    (vu.SET_MEM_TABLE, table(region()), ('memory',) * 9),
    (vu.SET_MEM_TABLE, table(*[region()] * 9), ('memory',) * 8),
    (vu.SET_MEM_TABLE, struct.pack('=II', 1 << 31, 0), ('memory',)),
    (vu.SET_MEM_TABLE, struct.pack('=II', 8, 0), ('memory',) * 8),
    *((vu.SET_MEM_TABLE, table(region()), (kind,))
      for kind in ('pipe', 'socket', 'path', 'directory', 'null')),
    *((vu.SET_MEM_TABLE, table(wrong), ('memory',)) for wrong in (
        region(size=0), region(size=1), region(size=2 * vu.MEMORY),
        region(size=1 << 63), region(size=(1 << 64) - 4096),
        region(guest=ODD), region(guest=(1 << 64) - 4096),
        region(user=(1 << 64) - 4096), region(offset=1),
        region(offset=4096), region(offset=1 << 63),
        region(offset=(1 << 64) - 4096))),
    (vu.SET_MEM_TABLE, table(region(), region(user=0)), ('memory',) * 2),
    (vu.SET_MEM_TABLE, table(region(), region(guest=0, size=vu.MEMORY)),
     ('memory',) * 2),
    (vu.ADD_REGION, u64(0) + region(), ()),
    (vu.ADD_REGION, u64(0) + region(), ('path',)),
    (vu.ADD_REGION, region(), ('memory',)),
    (vu.REMOVE_REGION, u64(0) + region()),
    (vu.REMOVE_REGION, u64(0) + region(), ('memory',)),
    *((request, vu.RING.pack(ring, 16)) for ring in (256, 1 << 31)
      for request in (vu.SET_NUM, vu.SET_BASE, vu.GET_BASE, vu.SET_ENABLE)),
    (vu.SET_ADDR, addresses(0)[:8]),
    (vu.SET_ADDR, addresses(256)),
    (vu.SET_BASE, vu.RING.pack(0, 0x10000)),
    (vu.SET_KICK, u64(0)),
    (vu.SET_KICK, u64(0x100)),
    (vu.SET_KICK, u64(0), ('pipe', 'pipe')),
    *((request, u64(0), (kind,))
      for request in (vu.SET_KICK, vu.SET_CALL, vu.SET_ERR)
      for kind in ('pipe', 'socket', 'path', 'directory', 'null', 'memory',
                   'epoll')),
    (vu.SET_BACKEND_FD, b''),
    *((vu.SET_BACKEND_FD, b'', (kind,))
      for kind in ('pipe', 'path', 'directory', 'null', 'memory')),
    *((request, struct.pack('=III', offset, size, 0) + bytes(length))
      for request in (vu.GET_CONFIG, vu.SET_CONFIG)
      for offset, size, length in (
          (0, 257, 256), (0, 8, 4), (0, 8, 9), (640, 1, 1), (641, 0, 0),
          ((1 << 32) - 1, 2, 2), (0, (1 << 32) - 1, 0))),
]


def test_wrong_messages_end_only_their_connection(bench):
    with Running('check-socket') as running:
        pid = running.server.pid
        before = len(os.listdir(f'/proc/{pid}/fd'))
        for request, body, *more in WRONG_MESSAGES:
            kinds = more[0] if more else ()
            size = more[1] if len(more) > 1 else None
            with running.connect() as front:
                front.send(request, body,
                           [open_fd(front, kind) for kind in kinds], size)
                answer = front.answer()
                assert answer is None, (request, body, more, answer)
        with running.connect() as front:
            assert front.alive()
        with running.connect() as front:
            assert front.alive()
            after = len(os.listdir(f'/proc/{pid}/fd'))
        bench.note(f'{len(WRONG_MESSAGES)} messages; {before} descriptors '
                   f'before, {after} with a front end afterwards')
        assert after <= before + 1
        assert running.server.pid == pid


def own_end(front):
    return front.socket.fileno()


def queue_with_own_end(front):
    """Return a socket whose queue holds the front end's end."""
    ours, theirs = socket.socketpair()
    with ours:
        socket.send_fds(ours, [b'x'], [own_end(front)])
    return front.keep(theirs.detach())


def listener_with_own_end(front):
    """Return a listening socket, in whose backlog the queue of a connection
    holds the front end's end."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind('')
    listener.listen(1)
    with socket.socket(socket.AF_UNIX) as ours:
        ours.connect(listener.getsockname())
        socket.send_fds(ours, [b'x'], [own_end(front)])
    return front.keep(listener.detach())


def test_a_connection_ends_with_its_front_end(_bench):
    with Running('check-socket') as running:
        for find in (own_end, queue_with_own_end, listener_with_own_end):
            for request, body, size in (
                    (vu.SET_ERR, u64(5), 8), (vu.SET_BACKEND_FD, b'', 0),
                    (vu.SET_BACKEND_FD, b'', 8), (vu.SET_ERR, b'', 8)):
                with running.connect() as front:
                    front.send(request, body, [find(front)], size)
                with running.connect() as front:
                    assert front.alive(), (find, request, size)
        # The server accepts a socket that is not an end of the connection.
        with running.connect() as front:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                front.must(vu.SET_PROTOCOL, front.ask(vu.GET_PROTOCOL))
                front.must(vu.SET_BACKEND_FD, b'', [theirs.fileno()])


def clear_nonblock(fd):
    fcntl.fcntl(fd, fcntl.F_SETFL,
                fcntl.fcntl(fd, fcntl.F_GETFL) & ~os.O_NONBLOCK)


def test_eventfds_that_would_block(_bench):
    with Running('check-socket') as running:
        with running.connect() as front:
            set_up(front)
            kick, call = front.start_ring(0)
            os.eventfd_write(call, (1 << 64) - 2)
            clear_nonblock(call)
            create_pd(front, kick, 0)
            assert front.alive()
        with running.connect() as front:
            set_up(front)
            kick = front.keep(os.eventfd(0))
            for ring in (0, 1):
                front.set_ring(ring)
                front.must(vu.SET_KICK, u64(ring), [kick])
            for ring in (0, 1):
                front.must(vu.SET_ENABLE, vu.RING.pack(ring, 1))
            clear_nonblock(kick)
            for index in range(100):
                create_pd(front, kick, index)
            assert front.alive()


def test_hundreds_of_interrupts(_bench):
    # Each interrupt must arrive: none may use up a resource.
    with Running('check-socket') as running, running.connect() as front:
        set_up(front)
        kick, call = front.start_ring(0)
        for index in range(0, 400, 2):
            pd = create_pd(front, kick, index)
            assert vu.wait_event(call), index
            assert destroy_pd(front, kick, index + 1, pd)
            assert vu.wait_event(call), index + 1


def test_a_message_that_is_cut_short(_bench):
    message = vu.HEADER.pack(vu.SET_FEATURES, 1, 8) + bytes(8)
    with Running('check-socket') as running:
        pid = running.server.pid
        for end in range(1, len(message)):
            with running.connect() as front:
                front.socket.sendall(message[:end])
        # A message that arrives byte by byte is a valid one.
        with running.connect() as front:
            for byte in vu.HEADER.pack(vu.GET_QUEUES, 1, 0):
                front.socket.sendall(bytes((byte,)))
            assert front.answer() == u64(256)
        assert running.server.pid == pid


def start_wrong_ring(front, ring, **wrong):
    """Start a ring with wrong values of num, base or addr."""
    values = {'num': 16, 'base': 0, 'addr': addresses(ring), **wrong}
    front.must(vu.SET_NUM, vu.RING.pack(ring, values['num']))
    front.must(vu.SET_BASE, vu.RING.pack(ring, values['base']))
    front.must(vu.SET_ADDR, values['addr'])
    front.must(vu.SET_KICK, u64(ring), [front.keep(os.eventfd(0))])
    front.send(vu.SET_ENABLE, vu.RING.pack(ring, 1))


def test_wrong_rings_end_only_their_connection(_bench):
    end = vu.BASE + vu.MEMORY
    cases = [
        {'num': number} for number in (0, 3, 2048, 1 << 31, (1 << 32) - 1)]
    cases += [{'addr': vu.ADDR.pack(0, 0, *places, 0)} for places in (
        (0, 0, 0), (vu.GUEST, vu.GUEST + 0x1800, vu.GUEST + 0x1000),
        (end - 255, vu.BASE, vu.BASE + 0x1000),
        (vu.BASE + 8, vu.BASE + 0x1800, vu.BASE + 0x1000),
        (vu.BASE, vu.BASE + 0x1802, vu.BASE + 0x1000),
        (vu.BASE, vu.BASE + 0x1800, vu.BASE + 0x1001),
        (vu.BASE, end - 132, vu.BASE + 0x1000),
        (vu.BASE, vu.BASE + 0x1800, end - 36),
        (vu.BASE, (1 << 64) - 4, vu.BASE + 0x1000))]
    with Running('check-socket') as running:
        pid = running.server.pid
        for wrong in cases:
            with running.connect() as front:
                set_up(front)
                start_wrong_ring(front, 0, **wrong)
                assert not front.alive(), wrong
        for kind in ('memory', 'null'):
            with running.connect() as front:
                set_up(front)
                front.set_ring(0)
                front.send(vu.SET_KICK, u64(0), [open_fd(front, kind)])
                front.send(vu.SET_ENABLE, vu.RING.pack(0, 1))
                assert not front.alive(), kind
        assert running.server.pid == pid


def resident(pid):
    """MiB of the host's memory that a process uses"""
    text = Path(f'/proc/{pid}/statm').read_text(encoding='ascii')
    return int(text.split()[1]) * os.sysconf('SC_PAGE_SIZE') >> 20


def test_memory_that_is_taken_back_is_free_again(bench):
    with Running('check-socket') as running, running.connect() as front:
        front.negotiate()
        fd = front.keep(os.memfd_create('large'))
        os.ftruncate(fd, 1 << 40)
        # QEMU has 96 MiB of bits for each TiB.
        for _ in range(16):
            front.send(vu.SET_MEM_TABLE, table(region(size=1 << 40)), [fd])
        assert front.alive()
        used = resident(running.server.pid)
        bench.note(f'{used} MiB after 16 times 1 TiB')
        assert used < 400, used


def test_a_ring_in_use_does_not_change(_bench):
    same = vu.ADDR.unpack(addresses(0))
    others = [vu.ADDR.pack(*same[:n], same[n] + 0x2000, *same[n + 1:])
              for n in (2, 3, 4)]
    with Running('check-socket') as running:
        for request, body in ((vu.SET_NUM, vu.RING.pack(0, 8)),
                              (vu.SET_BASE, vu.RING.pack(0, 1)),
                              *((vu.SET_ADDR, other) for other in others)):
            with running.connect() as front:
                set_up(front)
                front.start_ring(0)
                front.send(request, body)
                assert front.answer() is None, request


def test_a_ring_that_never_ran_keeps_its_base(_bench):
    with Running('check-socket') as running, running.connect() as front:
        set_up(front)
        front.set_ring(1, 77)
        front.must(vu.SET_KICK, u64(1), [front.keep(os.eventfd(0))])
        for _ in range(2):
            answer = front.ask(vu.GET_BASE, vu.RING.pack(1, 0))
            assert vu.RING.unpack(answer) == (1, 77)


def test_restarted_rings_keep_or_reset_the_device(_bench):
    with Running('check-socket') as running, running.connect() as front:
        set_up(front)
        kick, call = front.start_ring(0)
        first, second = (create_pd(front, kick, n) for n in (0, 1))
        assert vu.wait_event(call)
        # The VM pauses: the ring starts where it stopped, the PDs remain.
        assert stop_ring(front, 0) == 2
        kick, _ = front.start_ring(0, 2)
        assert destroy_pd(front, kick, 2, first)
        assert not destroy_pd(front, kick, 3, first)
        # The guest resets the device: the ring starts at 0, the PDs are gone.
        assert stop_ring(front, 0) == 4
        front.memory[:0x2000] = bytes(0x2000)
        kick, _ = front.start_ring(0)
        assert not destroy_pd(front, kick, 0, second)
        third = create_pd(front, kick, 1)
        # The front end passes the reset on.
        assert stop_ring(front, 0) == 2
        front.must(vu.RESET_DEVICE)
        front.memory[:0x2000] = bytes(0x2000)
        kick, _ = front.start_ring(0)
        assert not destroy_pd(front, kick, 0, third)


def test_a_ring_that_waits_to_be_enabled_stops_no_other(_bench):
    with Running('check-socket') as running, running.connect() as front:
        set_up(front)
        kick, _ = front.start_ring(0)
        front.set_ring(1)
        front.must(vu.SET_KICK, u64(1), [front.keep(os.eventfd(0))])
        first = create_pd(front, kick, 0)
        front.must(vu.SET_ENABLE, vu.RING.pack(1, 1))
        assert destroy_pd(front, kick, 1, first)


def test_memory_is_added_and_removed(_bench):
    with Running('check-socket') as running, running.connect() as front:
        fd = set_up(front)
        kick, _ = front.start_ring(0)
        create_pd(front, kick, 0)
        slots = struct.unpack('=Q', front.ask(vu.GET_MAX_SLOTS))[0]
        more = u64(0) + region(1 << 32, 4096, 1 << 32, 4096)
        front.must(vu.ADD_REGION, more, [fd])
        create_pd(front, kick, 1)
        front.must(vu.REMOVE_REGION, more)
        create_pd(front, kick, 2)
        for n in range(slots - 1):
            front.must(vu.ADD_REGION, u64(0) + region(
                (1 << 32) + 4096 * n, 4096, (1 << 32) + 4096 * n), [fd])
        create_pd(front, kick, 3)
        # Without the memory of its ring the device breaks, not the server.
        front.must(vu.REMOVE_REGION, u64(0) + region())
        os.eventfd_write(kick, 1)
        assert front.alive()
        front.send(vu.ADD_REGION, u64(0) + region(1 << 40, user=1 << 40), [fd])
        front.send(vu.ADD_REGION, u64(0) + region(2 << 40, user=2 << 40), [fd])
        assert not front.alive()
