# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of a lab's keeper, and its output on a terminal."""
import os
import shutil
import signal
import socket
import sys
import termios
import threading
import tty

from guestkit.paths import LabError, say

from .session import Wire

PIECE = 32768       # of standard input at a time


class NotReady(LabError):
    """A keeper runs, but does not accept clients."""


def handle(numbers, handler):
    """Handle signals, except those that the caller ignores: nohup(1) and
    shells start programs in this way."""
    for number in numbers:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def connect(place):
    if not place.taken():
        raise LabError(f'no lab "{place.name}" is up: run "vrdma-lab up 2"')
    sock = socket.socket(socket.AF_UNIX)
    try:
        place.require_own()
        sock.connect(str(place.control))
    except OSError as e:
        raise NotReady(f'the lab "{place.name}" is not up yet, or is ending '
                       f'({e.strerror}): try again, or end it with '
                       '"vrdma-lab down"') from e
    return Wire(sock)


def ask(place, op, **request):
    """Send a request with one answer to the keeper; the answer."""
    wire = connect(place)
    wire.send(op=op, **request)
    answer = next(wire.messages(), None)
    if answer is None:
        raise LabError(f'the keeper of the lab "{place.name}" ended')
    if 'error' in answer:
        raise LabError(answer['error'])
    return answer


class Output:
    """Print output of guests. With several guests, print whole lines with the
    guest's number in front, and split lines that are too long."""

    LINE_MAX = 64 << 10

    def __init__(self, guests):
        self.several = len(guests) > 1
        self.rest = {number: b'' for number in guests}

    def _write(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def say(self, guest, data):
        if not self.several:
            self._write(data)
            return
        *lines, self.rest[guest] = (self.rest[guest] + data).split(b'\n')
        if len(self.rest[guest]) > self.LINE_MAX:
            lines.append(self.rest[guest])
            self.rest[guest] = b''
        self._write(b''.join(b'[%d] %s\n' % (guest, line)
                             for line in lines))

    def end(self):
        for guest, rest in self.rest.items():
            if rest:
                self._write(b'[%d] %s\n' % (guest, rest))


def indent(text):
    return ''.join(f'\n    {line}' for line in text.splitlines())


def verdict(ends):
    """Print failures of guests; the exit code, the first that is not 0."""
    first = 0
    for number, end in sorted(ends.items()):
        if end['rc']:
            why, *more = (end['why'] or f'exit code {end["rc"]}').split('\n')
            say(f'vrdma-lab: guest {number}: {why}, after '
                f'{end["seconds"]:.1f} s' + indent('\n'.join(more)))
            first = first or end['rc']
        if end['kernel']:
            say(f'vrdma-lab: guest {number}: its kernel complains:' +
                indent(end['kernel']))
    return first


def warn_of(directory, shares):
    """Warn if the guests' directory is not shared, although it exists."""
    if directory != '/' and not any(f'{directory}/'.startswith(f'{share}/')
                                    for share in shares):
        say(f'vrdma-lab: note: files that guests write to {directory} stay '
            f'in the guests; "up --share {directory}" shares it')


def pass_input(wire):
    """Send a piece of standard input. Reading fails in a background job of a
    terminal."""
    try:
        data = os.read(sys.stdin.fileno(), PIECE) if sys.stdin else b''
    except OSError:
        data = b''
    wire.send(data=data.decode('latin-1'))


def run(place, **request):
    """Run a command in guests; its exit code."""
    wire = connect(place)
    wire.send(op='run', **request)

    def pass_on(number, _):
        """Send the first signal to the guests; a second one ends this client,
        and so its commands."""
        signal.signal(number, signal.SIG_DFL)
        wire.send(signal=number)
    handle((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), pass_on)
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    output, shares = None, None
    for message in wire.messages():
        if 'error' in message:
            raise LabError(message['error'])
        if 'guests' in message:
            output, shares = Output(message['guests']), message['shares']
        elif 'began' in message:
            if shares is not None:
                warn_of(request['directory'], shares)
            shares = None       # warn only once
        elif 'input' in message:
            threading.Thread(target=pass_input, daemon=True,
                             args=(wire,)).start()
        elif 'guest' in message:
            output.say(message['guest'], message['data'].encode('latin-1'))
        elif 'ends' in message:
            output.end()
            return verdict({int(number): end for number, end in
                            message['ends'].items()})
    raise LabError(f'the lab "{place.name}" ended during the command')


def shell(place, guest, directory):
    """Run a shell of a guest on this terminal; its exit code."""
    size = shutil.get_terminal_size()
    wire = connect(place)
    wire.send(op='shell', guest=guest, directory=directory,
              term=os.environ.get('TERM', 'dumb'),
              size=[size.lines, size.columns])
    stdin = sys.stdin.fileno()
    before = termios.tcgetattr(stdin) if os.isatty(stdin) else None

    def resize(*_):
        now = shutil.get_terminal_size()
        wire.send(size=[now.lines, now.columns])

    def typed():
        while data := os.read(stdin, 4096):
            wire.send(data=data.decode('latin-1'))
        wire.send(data='\x04')      # end of input on a terminal
    signal.signal(signal.SIGWINCH, resize)
    try:
        if before:
            tty.setraw(stdin)
        threading.Thread(target=typed, daemon=True).start()
        for message in wire.messages():
            if 'error' in message:
                raise LabError(message['error'])
            if 'end' in message:
                if message['why']:
                    raise LabError(f'guest {guest}: {message["why"]}')
                return message['end']
            sys.stdout.buffer.write(message['data'].encode('latin-1'))
            sys.stdout.buffer.flush()
    finally:
        if before:
            termios.tcsetattr(stdin, termios.TCSADRAIN, before)
    raise LabError(f'the lab "{place.name}" ended during the shell')
