# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of a guest's agent (inside/agent.py): commands in the guest,
and their output."""
import contextlib
import itertools
import json
import queue
import re
import socket
import struct
import threading
import time

from .arch import NATIVE
from .paths import LabError

BOOT_TIMEOUT = 120
# A guest may be hostile. These limit the characters of a line and of an event,
# and the events in the queue, which drops the oldest one when it is full.
LINE_MAX = 16 << 20
EVENT_MAX = 4096
EVENTS_MAX = 1000
# Seconds until a guest must have read a request
SEND_TIMEOUT = 30
COMPLAINT = re.compile(r'BUG[: ]|WARNING:|Oops|Call Trace|'
                       r'blocked for more than|pagealloc: ')


class GuestGone(LabError):
    """The guest ended during a request."""


class Channel:
    """JSON lines over a socket. An answer has the ID of its request."""

    def __init__(self, name, sock):
        self.name = name
        self.sock = sock
        # A limit for sending only: the reader thread may wait for ever.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO,
                        struct.pack('ll', SEND_TIMEOUT, 0))
        self.numbers = itertools.count(1)
        self.pending = {}
        self.events = queue.Queue(EVENTS_MAX)
        self.lock = threading.Lock()
        self.closed = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            with self.sock.makefile('r', encoding='utf-8') as lines:
                # A line that is too long is cut, which makes it invalid JSON.
                while line := lines.readline(LINE_MAX):
                    self._dispatch(line)
        except (OSError, ValueError, RecursionError):
            pass
        with self.lock:
            self.closed = True
            waiting = list(self.pending.values())
        for answers in waiting:
            answers.put(None)
        self._note(None)

    def _note(self, event):
        """Add an event. Only the reader thread calls this."""
        if self.events.full():
            with contextlib.suppress(queue.Empty):
                self.events.get_nowait()
        self.events.put(event)

    def _dispatch(self, line):
        message = json.loads(line)
        if not isinstance(message, dict):
            raise ValueError('a line is not a JSON object')
        number, answers = message.get('id'), None
        if isinstance(number, int):
            with self.lock:
                # A request has one answer.
                answers = self.pending.pop(number, None)
        if answers:
            answers.put(message)
        elif len(line) <= EVENT_MAX:
            self._note(message)

    def call(self, request, timeout):
        """Send a request, and wait for its answer."""
        number = next(self.numbers)
        answers = queue.Queue()
        with self.lock:
            if self.closed:
                raise GuestGone(f'{self.name}: guest is gone')
            self.pending[number] = answers
            data = (json.dumps({**request, 'id': number}) + '\n').encode()
            try:
                self.sock.sendall(data)
            except BlockingIOError as e:
                # The guest may have got half a line.
                self.sock.shutdown(socket.SHUT_RDWR)
                raise GuestGone(f'{self.name}: the guest read nothing for '
                                f'{SEND_TIMEOUT} s') from e
            except OSError as e:
                raise GuestGone(f'{self.name}: guest is gone') from e
        try:
            answer = answers.get(timeout=timeout)
        except queue.Empty:
            raise LabError(f'{self.name}: no answer in {timeout:.0f} s to '
                           f'{str(request)[:200]}') from None
        finally:
            with self.lock:
                self.pending.pop(number, None)
        if answer is None:
            raise GuestGone(f'{self.name}: guest went away')
        return answer

    def execute(self, command, arguments, timeout):
        """Execute a QMP command; its return value."""
        answer = self.call({'execute': command, 'arguments': arguments},
                           timeout)
        if 'error' in answer:
            raise LabError(f'{self.name}: {command}: '
                           f'{answer["error"]["desc"]}')
        return answer['return']

    def event(self, name, timeout):
        """Wait for an event, and drop the events before it."""
        end = time.monotonic() + timeout
        while True:
            try:
                message = self.events.get(
                    timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise LabError(f'{self.name}: no event {name} in '
                               f'{timeout:.0f} s') from None
            if message is None:
                raise GuestGone(f'{self.name}: guest went away')
            if message.get('event') == name:
                return message


class Result:
    """The result of a command. A command that was killed after a timeout has
    no exit code: rc is None."""

    def __init__(self, cmd, rc, out, seconds=0.0):
        self.cmd = cmd
        self.rc = rc
        self.out = out
        self.seconds = seconds

    @property
    def ok(self):
        return self.rc == 0

    @property
    def end(self):
        """How it ended, and its last line of output."""
        how = 'timed out' if self.rc is None else f'exit code {self.rc}'
        return ': '.join([how, *self.out.rstrip().splitlines()[-1:]])

    def __str__(self):
        return f'[{self.end}]\n$ {self.cmd}\n{self.out.rstrip()}'


class Guest:
    """Requests to a guest, on any machine. `agent` is the Channel to it after
    the guest has been started."""

    arch = NATIVE

    def __init__(self, name):
        self.name = name
        self.agent = None
        self.said = ''      # kernel log, as far as it was read
        self.forgiven = []  # patterns of known faults in that log

    def connect(self):
        """Create the channel to the agent: the agent's end of the socket."""
        near, far = socket.socketpair()
        self.agent = Channel(self.name, near)
        return far

    def hears(self, timeout=BOOT_TIMEOUT):
        """Wait for the agent; the guest's uptime in seconds."""
        return self.agent.event('ready', timeout)['uptime']

    def _ask(self, limit, **request):
        answer = self.agent.call(request, limit)
        if 'error' in answer:
            raise LabError(f'{self.name}: {request["op"]}: '
                           f'{answer["error"]}')
        return answer

    def run(self, cmd, timeout=60):
        """Run a shell command to its end."""
        start = time.monotonic()
        answer = self._ask(timeout + 30, op='run', cmd=cmd, timeout=timeout)
        return Result(cmd, answer['rc'], answer['out'],
                      time.monotonic() - start)

    def must(self, cmd, timeout=60):
        """Run a command that has to succeed; its output."""
        result = self.run(cmd, timeout)
        if not result.ok:
            raise LabError(f'{self.name}: {result}')
        return result.out

    def spawn(self, cmd, port=None, wait=60, stdin=False):
        """Start a command. With @port, return after it listens there. @stdin:
        the command gets input by Job.feed()."""
        answer = self._ask(wait + 30, op='start', cmd=cmd, port=port,
                           wait=wait, stdin=stdin)
        return Job(self, cmd, answer['job'])

    def forgive(self, pattern):
        """Ignore matches of a pattern in the kernel log, because they report a
        known fault of Linux."""
        self.forgiven.append(pattern)

    def complaints(self):
        """The first complaint in the guest's kernel log, or ''."""
        try:
            log = self.kernel_log()
        except LabError:
            return ''
        for pattern in self.forgiven:
            log = re.sub(pattern, '', log, flags=re.S)
        found = COMPLAINT.search(log)
        return log[max(0, found.start() - 300):][:3000] if found else ''

    def read(self, path):
        return self._ask(30, op='read', path=path)['text']

    def listens(self, port):
        """Whether a program listens on the port, with TCP or RDMA CM."""
        return self._ask(30, op='listens', port=port)['yes']

    def names(self, path):
        """The names of the files in a directory."""
        return self._ask(30, op='list', path=path)['names']

    def texts(self, *patterns):
        """{path: text} of small files whose paths match the patterns."""
        return self._ask(30, op='texts', patterns=patterns)['texts']

    def has_folder(self, path):
        return self._ask(30, op='folder', path=path)['yes']

    def kernel_log(self):
        """The complete log of the guest's kernel."""
        self.said += self._ask(30, op='log')['text']
        return self.said


class Job:
    """A command running in a guest."""

    def __init__(self, vm, cmd, number):
        self.vm, self.cmd, self.number = vm, cmd, number
        self.began = time.monotonic()

    def wait(self, timeout=60):
        answer = self.vm._ask(timeout + 30, op='wait', job=self.number,
                              timeout=timeout)
        return Result(self.cmd, answer['rc'], answer['out'],
                      time.monotonic() - self.began)

    def peek(self):
        answer = self.vm._ask(30, op='peek', job=self.number)
        return Result(self.cmd, answer['rc'], answer['out'],
                      time.monotonic() - self.began)

    def wait_for(self, text, timeout=30, times=1):
        """Wait until its output has the text @times times."""
        end = time.monotonic() + timeout
        while (now := self.peek()).out.count(text) < times:
            if now.rc is not None or time.monotonic() > end:
                raise LabError(f'{self.vm.name}: no "{text}" from\n{now}')
            time.sleep(0.1)

    def follow(self, at, timeout=5):
        """Wait for output after byte @at, or for the end of the command:
        (output, exit code). The exit code is None while there may be more
        output."""
        answer = self.vm._ask(timeout + 30, op='follow', job=self.number,
                              at=at, timeout=timeout)
        return answer['data'].encode('latin-1'), answer['rc']

    def feed(self, data, timeout=5):
        """Write to its standard input: the number of bytes that it read, or
        None if no program reads it. Empty data ends the input."""
        return self.vm._ask(timeout + 30, op='feed', job=self.number,
                            data=data.decode('latin-1'),
                            timeout=timeout)['taken']

    def alive(self):
        return self.peek().rc is None

    def kill(self, number=9):
        self.vm._ask(30, op='kill', job=self.number, signal=number)
