# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands and shells in guests, each for a client.

When a client goes away, its commands end.
"""
import json
import queue
import select
import shlex
import signal
import threading
import time

from guestkit.agent import GuestGone
from guestkit.paths import LabError

TIMED_OUT = 124         # like timeout(1)
CANNOT = 125
GRACE = 5               # seconds from SIGTERM to SIGKILL
TTY = 'hvc0'            # in guests, for shells
RECENT = 10             # seconds; see Past


class Wire:
    """JSON lines to and from a client."""

    def __init__(self, sock):
        self.sock = sock
        self.lines = sock.makefile('r', encoding='utf-8')
        self.lock = threading.Lock()

    def send(self, **message):
        """Send a message. If the client is gone, drop it: see messages()."""
        data = (json.dumps(message) + '\n').encode()
        with self.lock:
            try:
                self.sock.sendall(data)
            except OSError:
                pass

    def messages(self):
        """The client's messages, until it is gone."""
        try:
            for line in self.lines:
                yield json.loads(line)
        except (OSError, ValueError):
            pass

    def is_hung_up(self):
        """Whether the client is gone, even if messages() has not ended yet."""
        poll = select.poll()
        try:
            poll.register(self.sock, 0)
        except ValueError:      # the socket is closed on this side
            return True
        return bool(poll.poll(0))


class Past:
    """Commands of a guest: the number of running ones, and the failure of the
    last one, unless another has begun since."""

    def __init__(self):
        self.lock = threading.Lock()
        self.running, self.failure = 0, None

    def begin(self):
        with self.lock:
            self.running, self.failure = self.running + 1, None

    def end(self, why):
        """@why: how it failed, or ''"""
        with self.lock:
            self.running -= 1
            if why:
                self.failure = time.monotonic(), why

    def hopeless(self, since):
        """Why waiting for a command is pointless, or ''. @since: when the wait
        began.

        A failure during the wait ends it. So does a failure shortly before it,
        because callers start the command and the wait at about the same time,
        unless another command begins within RECENT seconds."""
        with self.lock:
            if self.running or not self.failure:
                return ''
            when, why = self.failure
            waited = time.monotonic() - since
            return why if when >= since or \
                since - when <= RECENT <= waited else ''


class Run:
    """A command in some guests at once."""

    def __init__(self, wire, guests, request):
        self.wire, self.guests, self.request = wire, guests, request
        self.input = queue.Queue()      # pieces; an empty one ends the input
        # Set when the guest's command has begun, or failed to
        self.begun = {guest.index: threading.Event() for guest in guests}
        self.deadline = None
        if request['timeout']:
            self.deadline = time.monotonic() + request['timeout']
        self.jobs = {}
        self.over = False       # the client is gone
        self.signal = None      # the client's, if it has sent one
        self.lock = threading.Lock()    # of signal, over and new jobs

    def left(self, most):
        """Seconds to wait, at most @most; 0 after the deadline."""
        if self.deadline is None:
            return most
        return max(0, min(most, self.deadline - time.monotonic()))

    def _listen(self):
        """Serve the client's signals and input during the command."""
        for message in self.wire.messages():
            if 'signal' in message:
                with self.lock:
                    self.signal = int(message['signal'])
                    jobs = list(self.jobs.values())
                for job in jobs:
                    self._kill(job, self.signal)
            else:
                self.input.put(message['data'].encode('latin-1'))
        with self.lock:
            self.over = True
        self.input.put(b'')
        self._signal_all(signal.SIGTERM)
        end = time.monotonic() + GRACE
        while self.jobs and time.monotonic() < end:
            time.sleep(0.1)
        self._signal_all(signal.SIGKILL)

    def _signal_all(self, number):
        for job in list(self.jobs.values()):
            self._kill(job, number)

    @staticmethod
    def _kill(job, number):
        try:
            job.kill(number)
        except (LabError, KeyError):
            pass        # the command has ended

    def _wait_for_listener(self, guest, port):
        """None if there is a listener, or else an end as from _one()."""
        began = time.monotonic()
        nothing = f'nothing listens on port {port} of guest {guest.index}'
        while not guest.listens(port):
            if self.signal:
                return 128 + self.signal, nothing
            if self.over or not self.left(1):
                return TIMED_OUT, nothing
            why = guest.past.hopeless(began)
            if why:
                return CANNOT, f'{nothing}: its last command failed: {why}'
            time.sleep(0.2)
        return None

    def _feed(self):
        """Pass the client's input on to all commands. Request the next piece
        when each command has read this one, or reads no more."""
        for event in self.begun.values():
            event.wait()
        data = b'more'
        while data and self.jobs:
            self.wire.send(input=True)
            data = self.input.get()
            for job in list(self.jobs.values()):
                self._give(job, data)

    @staticmethod
    def _give(job, data):
        try:
            taken = job.feed(data)
            while taken is not None and taken < len(data):
                data = data[taken:]
                taken = job.feed(data)
        except (LabError, KeyError):
            pass        # it has ended

    def _follow(self, guest, job):
        at, killed = 0, False
        while True:
            data, rc = job.follow(at, self.left(2))
            at += len(data)
            if data:
                self.wire.send(guest=guest.index, data=data.decode('latin-1'))
            if rc is not None:
                return TIMED_OUT if killed else rc
            if not killed and not self.left(1):
                killed = True
                job.kill(signal.SIGKILL)

    def _one(self, guest, lab):
        """(exit code, why the command could not run or was killed, or '')"""
        after = self.request['after']
        failed = after and self._wait_for_listener(lab[after[0]], after[1])
        if failed:
            return failed
        rc = CANNOT
        guest.past.begin()
        try:
            rc = self._command(guest)
        finally:
            guest.past.end(rc and f'{shlex.join(self.request["words"])}: '
                           f'exit code {rc}')
        if rc == TIMED_OUT and self.deadline and not self.left(1):
            return rc, f'no end after {self.request["timeout"]:g} s: killed'
        return rc, ''

    def _command(self, guest):
        """Run the command; its exit code."""
        guest.require_folder(self.request['directory'])
        job = guest.spawn(guest.command(
            self.request['words'], self.request['directory'],
            self.request['env']), stdin=True)
        with self.lock:
            self.jobs[guest.index] = job
            # _listen() does not signal a job that begins after the signal.
            early = signal.SIGKILL if self.over else self.signal
        self.begun[guest.index].set()
        self.wire.send(began=guest.index)
        if early:
            self._kill(job, early)
        try:
            rc = self._follow(guest, job)
        finally:
            del self.jobs[guest.index]
        return 128 - rc if rc < 0 else rc

    def _run(self, guest, lab, ends):
        began = time.monotonic()
        rc, why = CANNOT, 'its agent sends invalid answers'
        try:
            rc, why = self._one(guest, lab)
        except (LabError, KeyError) as e:
            rc, why = CANNOT, str(e)
            if isinstance(e, GuestGone):
                # Wait for the end of its QEMU, which sets guest.fate.
                guest.watcher.join(5)
            if guest.fate:
                why = f'{guest.fate}\n{guest.errors()}'
        finally:
            self.begun[guest.index].set()
            # Without an end, the client would take the guest for successful.
            ends[guest.index] = {'rc': rc, 'why': why.rstrip(), 'kernel': '',
                                 'seconds': time.monotonic() - began}
        ends[guest.index]['kernel'] = guest.new_complaints()

    def run(self, lab):
        """@lab: all guests by number."""
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._feed, daemon=True).start()
        ends = {}
        threads = [threading.Thread(target=self._run, daemon=True,
                                    args=(guest, lab, ends))
                   for guest in self.guests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.wire.send(ends=ends)


class Shell:
    """A shell on the second terminal of a guest."""

    def __init__(self, wire, guest, request):
        self.wire, self.guest = wire, guest
        self.tty = guest.tty
        self.command = guest.command(
            ['env', f'TERM={request["term"]}',
             f'PS1={guest.name}:\\w\\$ ', 'bash', '--norc', '-i'],
            request['directory'])
        self.size = request['size']
        self.ready = threading.Event()
        self.ended = threading.Event()

    def is_ending(self):
        return self.ended.is_set() or self.wire.is_hung_up()

    def _listen(self, job):
        for message in self.wire.messages():
            # The terminal may drop input that arrives before the shell runs.
            self.ready.wait()
            if 'data' in message:
                self.tty.sendall(message['data'].encode('latin-1'))
            if 'size' in message:
                self.guest.run(self._resize(message['size']))
        if not self.ended.is_set():
            try:
                job.kill(signal.SIGHUP)
                time.sleep(1)
                job.kill(signal.SIGKILL)
            except (LabError, KeyError):
                pass

    @staticmethod
    def _resize(size):
        rows, columns = map(int, size)
        return f'stty -F /dev/{TTY} rows {rows} cols {columns}'

    def _show(self):
        """Pass on the guest's output, until some time after the end."""
        while True:
            ready = select.select([self.tty], [], [], 0.2)[0]
            data = self.tty.recv(65536) if ready else b''
            if data:
                self.ready.set()
                self.wire.send(data=data.decode('latin-1'))
            elif ready or self.ended.is_set():
                return

    def run(self):
        # A job leads a session, so the terminal that it opens controls it.
        job = self.guest.spawn(
            f'exec < /dev/{TTY} > /dev/{TTY} 2>&1; '
            f'{self._resize(self.size)} sane; {self.command}')
        threading.Thread(target=self._listen, daemon=True,
                         args=(job,)).start()
        show = threading.Thread(target=self._show, daemon=True)
        show.start()
        rc, why = None, ''
        try:
            while rc is None:
                rc = job.follow(0)[1]
        except LabError as e:
            self.guest.watcher.join(5)
            rc, why = CANNOT, f'{self.guest.fate or e}\n' + \
                self.guest.errors()
        self.ended.set()
        self.ready.set()
        show.join(10)
        self.wire.send(end=128 - rc if rc < 0 else rc, why=why.rstrip())
