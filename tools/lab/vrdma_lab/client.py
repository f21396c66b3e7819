# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of a lab's keeper, and what it says on a terminal."""
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
    """A keeper runs, but does not take clients."""


def connect(place):
    if not place.taken():
        raise LabError(f'no lab "{place.name}" is up: vrdma-lab up 2')
    sock = socket.socket(socket.AF_UNIX)
    try:
        place.require_own()
        sock.connect(str(place.control))
    except OSError as e:
        raise NotReady(f'the lab "{place.name}" is not up yet, or is going '
                       f'down ({e.strerror}): try again, or end it with '
                       '"vrdma-lab down"') from e
    return Wire(sock)


def ask(place, op, **request):
    """The keeper's only answer to a request."""
    wire = connect(place)
    wire.send(op=op, **request)
    answer = next(wire.messages(), None)
    if answer is None:
        raise LabError(f'the keeper of the lab "{place.name}" ended')
    if 'error' in answer:
        raise LabError(answer['error'])
    return answer


class Output:
    """What guests say, to standard output; line by line with the guest's
    number in front, if there are several. A line that is too long becomes
    several."""

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
    """Print what went wrong in which guest; the exit code: the first that is
    not 0."""
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
    """Tell of a directory that only looks as if it were shared."""
    if directory != '/' and not any(f'{directory}/'.startswith(f'{share}/')
                                    for share in shares):
        say(f'vrdma-lab: note: what guests write to {directory} stays in '
            f'them; up --share {directory} shares it')


def pass_input(wire):
    """Send a piece of standard input. None comes from a terminal that has
    another job in front."""
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
        """The first one to the guests; the next ends us, and them."""
        signal.signal(number, signal.SIG_DFL)
        wire.send(signal=number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
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
            shares = None       # once is enough
        elif 'input' in message:
            threading.Thread(target=pass_input, daemon=True,
                             args=(wire,)).start()
        elif 'guest' in message:
            output.say(message['guest'], message['data'].encode('latin-1'))
        elif 'ends' in message:
            output.end()
            return verdict({int(number): end for number, end in
                            message['ends'].items()})
    raise LabError(f'the lab "{place.name}" went down meanwhile')


def shell(place, guest, directory):
    """A shell of a guest on this terminal; its exit code."""
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
        wire.send(data='\x04')      # end of input, to a terminal
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
    raise LabError(f'the lab "{place.name}" went down meanwhile')
