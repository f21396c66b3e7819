# SPDX-License-Identifier: GPL-2.0-or-later
"""The vhost-user server saves and loads the state of the adapter, whatever
state a front end gives it, and logs the pages that it writes."""
import fcntl
import os
import random
import struct
import time

from lab import vhostuser as vu
from lab.runner import NoGuests
from lab.vhostuser import Running, create_pd, destroy_pd, set_up, stop_ring, \
    u64

PAIR = BENCH = NoGuests
SECONDS = 15
PAGE = 4096
MUTANTS = 300
CONFIG_LEN = 640            # bytes of struct virtio_rdma_config


def save(running):
    """Return (state, memory, PD) of an adapter that is stopped after one
    command."""
    with running.connect() as front:
        set_up(front)
        kick, _ = front.start_ring(0)
        pd = create_pd(front, kick, 0)
        assert stop_ring(front, 0) == 1
        state, memory = front.save(), bytes(front.memory)
        # The source goes on.
        assert front.save() == state
        kick, _ = front.start_ring(0, 1)
        assert destroy_pd(front, kick, 1, pd)
        return state, memory, pd


def open_with(running, memory):
    front = running.connect()
    set_up(front)
    front.memory[:] = memory
    return front


def check_loaded(front, pd):
    kick, _ = front.start_ring(0, 1)
    assert destroy_pd(front, kick, 1, pd)
    assert not destroy_pd(front, kick, 2, pd)


def test_another_connection_goes_on(bench):
    with Running('check-socket') as running:
        state, memory, pd = save(running)
        bench.note(f'{len(state)} bytes')
        for _ in range(2):
            with open_with(running, memory) as front:
                assert front.load(state)
                check_loaded(front, pd)


def test_another_adapter_refuses_the_state(_bench):
    with Running('check-socket') as running:
        state, memory, _ = save(running)
    with Running('check-socket', '--adapter-options', 'max-cq=63') as running:
        with open_with(running, memory) as front:
            assert not front.load(state)
            kick, _ = front.start_ring(0, 1)
            create_pd(front, kick, 1)


def test_states_that_are_cut_short(_bench):
    with Running('check-socket') as running:
        state, memory, pd = save(running)
        ends = {*range(64), *range(len(state) - 64, len(state)),
                *range(0, len(state), 101)}
        with open_with(running, memory) as front:
            for end in sorted(ends):
                assert not front.load(state[:end]), end
            assert front.load(state)
            check_loaded(front, pd)


def test_states_with_wrong_bytes(bench):
    with Running('check-socket') as running:
        pid = running.server.pid
        state, memory, pd = save(running)
        before = len(os.listdir(f'/proc/{pid}/fd'))
        accepted = 0
        numbers = random.Random(1)
        with open_with(running, memory) as front:
            for _ in range(MUTANTS):
                mutant = bytearray(state)
                for _ in range(numbers.randint(1, 3)):
                    mutant[numbers.randrange(len(mutant))] = \
                        numbers.randrange(256)
                accepted += front.load(bytes(mutant))
                assert front.alive()
            assert front.load(state)
            check_loaded(front, pd)
        with running.connect() as front:
            assert front.alive()
            after = len(os.listdir(f'/proc/{pid}/fd'))
        bench.note(f'{accepted} of {MUTANTS} accepted')
        assert after <= before + 1, (before, after)
        assert running.server.pid == pid


def test_files_that_the_front_end_changes(_bench):
    """The front end seals or enlarges a file, or keeps many of them."""
    with Running('check-socket') as running:
        state, memory, pd = save(running)
        with open_with(running, memory) as front:
            fd = front.transfer(vu.LOAD)
            os.ftruncate(fd, 1 << 40)
            assert front.ask(vu.CHECK_STATE) != u64(0)
            files = [front.transfer(vu.SAVE) for _ in range(100)]
            sizes = [os.fstat(fd).st_size for fd in files]
            assert not any(sizes[:-1]) and sizes[-1], sizes
            try:
                fcntl.fcntl(files[-1], fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
                raise AssertionError('the file can be sealed')
            except PermissionError:
                pass
            fd = front.transfer(vu.LOAD)
            os.write(fd, state)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL)
            assert front.ask(vu.CHECK_STATE) != u64(0)
            assert front.load(state)
            check_loaded(front, pd)
            # The device runs.
            front.send(vu.SET_STATE_FD, vu.RING.pack(vu.SAVE, 0),
                       [front.keep(os.memfd_create('state'))])
            assert not front.alive()


def start_log(front, ring=0):
    """Log writes of the device that runs. Return the log."""
    fd = front.keep(os.memfd_create('log'))
    os.ftruncate(fd, PAGE)
    assert front.ask(vu.SET_LOG_BASE, u64(PAGE) + u64(0), [fd]) == u64(0)
    features = struct.unpack('=Q', front.ask(vu.GET_FEATURES))[0]
    front.must(vu.SET_FEATURES, u64(features & ~vu.EVENT_INDEX | vu.LOG_ALL))
    front.must(vu.SET_ADDR, logged(ring, 0))
    return fd


def logged(ring, wrong):
    """Return the body of SET_ADDR for a ring that runs, with a log."""
    at = ring * 0x2000 + 0x1800
    return vu.ADDR.pack(ring, 1, *vu.ADDR.unpack(vu.addresses(ring))[2:5],
                        vu.GUEST + at + wrong)


def pages_in(log):
    bits = int.from_bytes(os.pread(log, PAGE, 0), 'little')
    return {n for n in range(bits.bit_length()) if bits >> n & 1}


# The used ring, and the response of a command
WRITTEN = {(vu.GUEST + 0x1000) // PAGE, (vu.GUEST + 0x81000) // PAGE}


def test_written_pages_are_logged(_bench):
    with Running('check-socket') as running, running.connect() as front:
        set_up(front)
        kick, _ = front.start_ring(0)
        create_pd(front, kick, 0)
        log = start_log(front)
        assert not pages_in(log)
        create_pd(front, kick, 1)
        end = time.monotonic() + 10
        while pages_in(log) != WRITTEN:
            assert time.monotonic() < end, pages_in(log)
            time.sleep(0.01)
        # A stop logs all that was written before, without waiting.
        for base in (2, 3, 4, 5):
            os.pwrite(log, bytes(PAGE), 0)
            create_pd(front, kick, base)
            stop_ring(front, 0)
            assert pages_in(log) == WRITTEN, pages_in(log)
            kick, _ = front.start_ring(0, base + 1)


def test_a_used_ring_that_is_logged_elsewhere_is_refused(_bench):
    with Running('check-socket') as running, running.connect() as front:
        set_up(front)
        front.start_ring(0)
        start_log(front)
        front.send(vu.SET_ADDR, logged(0, PAGE))
        assert not front.alive()


def test_a_state_with_a_long_configuration_is_refused(_bench):
    """The server does not read all of it."""
    with Running('check-socket') as running:
        state, memory, _ = save(running)
        # After status, ISR, queue_sel and 32 features
        at = state.index(struct.pack('>I', CONFIG_LEN), 200)
        with open_with(running, memory) as front:
            fd = front.transfer(vu.LOAD)
            os.write(fd, state[:at] + b'\xff' * 4)
            os.ftruncate(fd, 5 << 30)
            assert front.ask(vu.CHECK_STATE) != u64(0)


def test_a_ring_that_is_disabled_and_enabled_goes_on(_bench):
    with Running('check-socket') as running, running.connect() as front:
        set_up(front)
        kick, _ = front.start_ring(0)
        pd = create_pd(front, kick, 0)
        front.must(vu.SET_ENABLE, vu.RING.pack(0, 0))
        front.must(vu.SET_ENABLE, vu.RING.pack(0, 1))
        assert destroy_pd(front, kick, 1, pd)
