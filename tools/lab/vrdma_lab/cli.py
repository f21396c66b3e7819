# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of vrdma-lab."""
import argparse
import json
import math
import os
import re
import signal
import socket
import sys
import time

from guestkit.paths import LabError, say
from guestkit.stack import STACKS
from guestkit.vm import about_preference

from . import client, images
from .keeper import keep
from .network import EXAMPLE, parse
from .place import Place, all_taken
from .plan import ACCELERATORS, WIRES, Plan, check
from .session import CANNOT, Wire

DOWN_TIMEOUT = 30
LAST_PORT = 65535


class Parser(argparse.ArgumentParser):
    """It says how to write a value that looks like an option."""

    def error(self, message):
        found = re.fullmatch(r'argument (?:.*/)?(--\w+): expected one '
                             'argument', message)
        if found:
            message += f': if it begins with "-", write {found[1]}=-...'
        super().error(message)


def numbers(text):
    """Guests such as 1,2 or 1-3."""
    found = []
    for part in text.split(','):
        match = re.fullmatch(r'(\d+)(?:-(\d+))?', part)
        if not match:
            raise argparse.ArgumentTypeError(
                f'"{text}" names no guests: take 2, 1,3 or 1-3')
        first = int(match.group(1))
        found += range(first, int(match.group(2) or first) + 1)
    return sorted(set(found))


def listener(text):
    """[guest, port]"""
    match = re.fullmatch(r'(\d+):(\d+)', text)
    if not match:
        raise argparse.ArgumentTypeError(
            f'expected GUEST:PORT, such as 2:18515, got "{text}"')
    guest, port = map(int, match.groups())
    if not 1 <= port <= LAST_PORT:
        raise argparse.ArgumentTypeError(
            f'"{text}": ports are 1 to {LAST_PORT}')
    return [guest, port]


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(
            f'expected a number of seconds above 0, got "{text}"')
    return value


def variable(text):
    if not re.match(r'[A-Za-z_]\w*=', text):
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=VALUE')
    return text


def packages(text):
    """Names of packages, with commas between."""
    found = text.split(',')
    for name in found:
        if not re.fullmatch(r'[a-z0-9][a-z0-9.+-]+', name):
            raise argparse.ArgumentTypeError(f'"{name}" is no name of a '
                                             'package')
    return found


def member(text):
    """(name, value) of NAME=VALUE; a value that is no JSON is a string."""
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=VALUE')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def plural(count, noun):
    return f'{count} {noun}{"" if count == 1 else "s"}'


def show(status):
    """A lab that is up, for people."""
    kernels = dict.fromkeys(guest['kernel'] for guest in status['guests'])
    title = f'{status["lab"]}: {plural(len(status["guests"]), "guest")}, ' \
        f'Linux {", ".join(kernels)}, {status["stack"]}'
    if status['wire'] == 'shm':
        title += ' by shared memory'
    if status['links']:
        title += f', on {" ".join(status["links"])}, MTU {status["mtu"]}'
    print(title)
    for guest in status['guests']:
        number = str(guest['guest'])
        line = f'  {number:>2}  {guest["name"]:8} {guest["ipv4"]:10} ' \
            f'{guest["ipv6"]:9} {guest["device"]} GID {guest["gid"]}'
        if guest['image']:
            line += f'  {os.path.basename(guest["image"])}'
        if guest['fate']:
            line += f'  GONE: {guest["fate"]}'
        if number in status['impaired']:
            line += f'  impaired: {status["impaired"][number]}'
        print(line)
    print(f'  shared: {" ".join(status["shares"]) or "nothing"}')
    print(f'  logs: {status["logs"]}')
    print(f'  {about_preference(status["preferred"])}')
    if status['capture']:
        print(f'  capturing to {status["capture"]}')
    if not status['network']:
        print('  THE NETWORK IS GONE: vrdma-lab down, and up again')


def wait_up(place, near, pid):
    """Wait for what a keeper says when it has booted its guests."""
    try:
        answer = next(Wire(near).messages(), None)
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    if answer is None:
        os.waitpid(pid, 0)
        raise LabError('the keeper of the lab ended before it was up')
    if 'error' in answer:
        os.waitpid(pid, 0)
        raise LabError(f'the lab "{place.name}" did not come up: '
                       f'{answer["error"]}')


def do_up(args):
    place = Place(args.name)
    shares = args.share
    if shares is None:
        here = os.getcwd()
        shares = [] if here == '/' else [here]
    plan = check(Plan(
        images.count(args.image, args.guests), args.stack, args.wire,
        args.kernel, args.accel, args.smp, args.mem,
        [s for s in shares if s], args.logs and os.path.abspath(args.logs),
        args.qemu, bridge=args.bridge, taps=args.tap, first=args.first,
        of=args.of, images=args.image, packages=sum(args.install, [])))
    began = time.monotonic()
    held = place.take()
    if held is None:
        raise LabError(f'the lab "{place.name}" is up already: use it, end '
                       'it with "vrdma-lab down", or have another beside it '
                       'with --name')
    near, far = socket.socketpair()
    # As for an interrupt: a keeper that boots ends first
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    pid = os.fork()
    if pid == 0:
        near.close()
        place.sign(held)
        try:
            keep(place, plan, Wire(far))
        finally:
            os._exit(0)
    far.close()
    os.close(held)
    wait_up(place, near, pid)
    show(client.ask(place, 'status'))
    say(f'vrdma-lab: up after {time.monotonic() - began:.1f} s')
    return 0


def do_status(args):
    places = [Place(args.name)] if args.named else all_taken()
    if not places:
        raise LabError('no lab is up: vrdma-lab up 2')
    found = [client.ask(place, 'status') for place in places]
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        for status in found:
            show(status)
    gone = [g for s in found for g in s['guests'] if g['fate']]
    return 1 if gone or not all(s['network'] for s in found) else 0


def do_run(args):
    return client.run(
        Place(args.name), guests=args.guests or [],
        words=[args.program, *args.arguments],
        directory=args.directory or os.getcwd(), env=args.env,
        timeout=args.timeout, after=args.after)


def do_shell(args):
    return client.shell(Place(args.name), args.guest, os.getcwd())


def do_console(args):
    status = client.ask(Place(args.name), 'status')
    found = [g for g in status['guests'] if g['guest'] == args.guest]
    if not found:
        there = [g['guest'] for g in status['guests']]
        raise LabError(f'no guest {args.guest}: there are {min(there)} to '
                       f'{max(there)}')
    with open(found[0]['console'], encoding='utf-8',
              errors='replace') as console:
        while True:
            sys.stdout.write(console.read())
            sys.stdout.flush()
            if not args.follow:
                return 0
            time.sleep(0.2)


def do_qmp(args):
    returned = client.ask(Place(args.name), 'qmp', guest=args.guest,
                          execute=args.execute,
                          arguments=dict(args.arguments))['returned']
    print(returned if isinstance(returned, str) else
          json.dumps(returned, indent=1))
    return 0


def do_pcap(args):
    path = None if args.file == 'off' else os.path.abspath(args.file)
    say('vrdma-lab: ' + client.ask(Place(args.name), 'pcap',
                                   file=path)['done'])
    return 0


def do_impair(args):
    if args.spec != 'off':
        parse(args.spec)
    say('vrdma-lab: ' + client.ask(Place(args.name), 'impair',
                                   guests=args.guests or [],
                                   spec=args.spec)['done'])
    return 0


def does_not_end(place):
    return LabError(f'the lab "{place.name}" does not end in {DOWN_TIMEOUT} '
                    f's; what its keeper said is in {place.keeper_log}. To '
                    f'kill it and its guests: kill -KILL {place.keeper()}')


def end_boot(place, logs):
    """End a lab that is not up yet."""
    if logs:
        say(f'vrdma-lab: the lab "{place.name}" was not up: {logs} gets no '
            'logs')
    end = time.monotonic() + DOWN_TIMEOUT
    while place.taken():
        if time.monotonic() > end:
            raise does_not_end(place)
        place.interrupt()
        time.sleep(0.1)
    return 0


def do_down(args):
    place = Place(args.name)
    try:
        wire = client.connect(place)
    except client.NotReady:
        return end_boot(place, args.logs)
    wire.sock.settimeout(DOWN_TIMEOUT)
    wire.send(op='down', logs=args.logs and os.path.abspath(args.logs))
    # The end of the connection is that of the keeper.
    try:
        line = wire.lines.readline()
    except TimeoutError as e:
        raise does_not_end(place) from e
    if line:
        raise LabError(json.loads(line)['error'])
    return 0


def add_up(commands):
    up = commands.add_parser(
        'up', help='boot guests on one network',
        description='Boot guests on one network. Each has the root of this '
                    'machine, where it can write as it likes: that stays in '
                    'its memory. Shared directories are written for real.')
    up.add_argument('guests', type=int, nargs='?',
                    help='how many (default: 2)')
    up.add_argument('--image', action='append', default=[], metavar='FILE',
                    help='a disk image of Debian 12 or 13 that the guests '
                         "boot, in the place of this machine's root: once for "
                         'all guests, or once for each')
    up.add_argument('--install', type=packages, action='append', default=[],
                    metavar='PACKAGE,...',
                    help='packages of Debian that such guests are to have, '
                         'if they are not in the image')
    up.add_argument('--stack', choices=STACKS, default='virtio-rdma',
                    help='rxe: the software RDMA of Linux, to compare')
    up.add_argument('--wire', choices=WIRES, default='net',
                    help='shm: RDMA by shared memory, beside the network')
    up.add_argument('--bridge', default='',
                    help='the guests are on a bridge of this machine, in the '
                         'place of a network of their own (for root)')
    up.add_argument('--tap', action='append', default=[],
                    help='or on this tap: once for each guest')
    up.add_argument('--first', type=int, default=1, metavar='NUMBER',
                    help='of the first guest, where other labs are on the '
                         'same network (default: 1)')
    up.add_argument('--of', type=int, default=0, metavar='N',
                    help='how many guests all these labs have together')
    up.add_argument('--kernel', metavar='SERIES', default='',
                    help='such as 6.12 (default: that of this machine, or of '
                         'the image)')
    up.add_argument('--accel', choices=ACCELERATORS, default='tcg')
    up.add_argument('--smp', type=int, default=1, metavar='N',
                    help='processors of each guest')
    up.add_argument('--mem', default='2G', help='memory of each guest')
    up.add_argument('--share', action='append', metavar='DIR',
                    help='a directory that guests may write to, at the same '
                         'path (default: this one; "": none)')
    up.add_argument('--logs', metavar='DIR',
                    help='where consoles and the like are to stay')
    up.add_argument('--qemu', action='append', default=[], metavar='ARGUMENT',
                    help='one more argument of each QEMU')
    up.set_defaults(do=do_up)


def add_run(commands):
    run = commands.add_parser(
        'run', help='run a command in guests',
        description='Run a command in guests, in the directory where this '
                    'command is run. The exit code is the first that is not '
                    '0, 124 when the time was up, 125 when the guest could '
                    'not run it. The environment has VRDMA_GUEST, '
                    'VRDMA_GUESTS, VRDMA_ADDRESS, VRDMA_DEVICE and VRDMA_GID '
                    '(the index of the GID for IPv4).')
    run.add_argument('-g', '--guests', type=numbers, metavar='1,2',
                     help='in these guests (default: in all)')
    run.add_argument('-t', '--timeout', type=seconds,
                     metavar='SECONDS', help='kill what takes longer')
    run.add_argument('-e', '--env', type=variable, action='append',
                     default=[], metavar='NAME=VALUE')
    run.add_argument('-C', '--directory', metavar='DIR',
                     help='run it there')
    run.add_argument('--after', type=listener, metavar='GUEST:PORT',
                     help='wait until a program listens on that port, of '
                          'TCP or of RDMA CM')
    run.add_argument('program', metavar='COMMAND',
                     help="a program; for a shell sh -c '...'")
    run.add_argument('arguments', nargs=argparse.REMAINDER,
                     metavar='ARGUMENT',
                     help='of the program, also what begins with "-"')
    run.set_defaults(do=do_run)


def parser():
    top = Parser(
        prog='vrdma-lab',
        description='Guests with an RDMA adapter each on one network, for '
                    'programs that use RDMA.')
    top.add_argument('--name', help='of the lab (default: "default", or '
                                    '$VRDMA_LAB)')
    commands = top.add_subparsers(dest='command', required=True)
    add_up(commands)
    add_run(commands)
    shell = commands.add_parser('shell', help='a shell in a guest')
    shell.add_argument('guest', type=int)
    shell.set_defaults(do=do_shell)
    console = commands.add_parser(
        'console', help="errors that a guest's kernel has told of")
    console.add_argument('-f', '--follow', action='store_true',
                         help='go on until interrupted')
    console.add_argument('guest', type=int)
    console.set_defaults(do=do_console)
    qmp = commands.add_parser(
        'qmp', help="ask a guest's QEMU",
        description="Send a command of QMP to a guest's QEMU, where the "
                    'adapter is called rdma0, and print what it returns.')
    qmp.add_argument('guest', type=int)
    qmp.add_argument('execute', metavar='COMMAND',
                     help='such as query-rdma or rdma-fault-add')
    qmp.add_argument('arguments', nargs='*', type=member,
                     metavar='NAME=VALUE',
                     help='its arguments: JSON, or else a string')
    qmp.set_defaults(do=do_qmp)
    pcap = commands.add_parser(
        'pcap', help='capture all frames to a file, from now on')
    pcap.add_argument('file', help='or "off", which ends it')
    pcap.set_defaults(do=do_pcap)
    impair = commands.add_parser(
        'impair', help='make the network bad',
        description='From now on, frames on the way to guests are lost, '
                    'late, and so on. There are loss, dup, reorder and '
                    'corrupt (a percentage), delay (us, ms, s), rate (kbit, '
                    'mbit, gbit) and seed (a number).')
    impair.add_argument('-g', '--guests', type=numbers, metavar='1,2',
                        help='on the way to these (default: to all)')
    impair.add_argument('spec', help=EXAMPLE.replace('%', '%%'))
    impair.set_defaults(do=do_impair)
    status = commands.add_parser(
        'status', help='labs that are up; fails if a guest is gone')
    status.add_argument('--json', action='store_true')
    status.set_defaults(do=do_status)
    down = commands.add_parser('down', help='end all guests')
    down.add_argument('--logs', metavar='DIR', help='keep the logs here')
    down.set_defaults(do=do_down)
    return top


def main(argv=None):
    args = parser().parse_args(argv)
    args.named = bool(args.name)
    args.name = args.name or os.environ.get('VRDMA_LAB') or 'default'
    try:
        return args.do(args)
    except LabError as e:
        say(f'vrdma-lab: {e}')
        return CANNOT if args.command == 'run' else 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
