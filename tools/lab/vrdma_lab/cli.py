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

from guestkit import accel
from guestkit.paths import LabError, say
from guestkit.stack import STACKS
from guestkit.vm import about_preference

from . import client, images, top
from .keeper import keep
from .network import EXAMPLE, parse
from .place import Place, all_taken
from .plan import LAST, WIRES, Plan, check
from .session import CANNOT, Wire

DOWN_TIMEOUT = 30
LAST_PORT = 65535


class Parser(argparse.ArgumentParser):
    """Its errors explain how to write a value that looks like an option."""

    def error(self, message):
        found = re.fullmatch(r'argument (?:.*/)?(--\w+): expected one '
                             'argument', message)
        if found:
            message += f': if it begins with "-", write {found[1]}=-...'
        super().error(message)


def numbers(text):
    """The sorted guests of a list such as 1,2 or 1-3."""
    found = []
    for part in text.split(','):
        match = re.fullmatch(r'(\d+)(?:-(\d+))?', part)
        if not match:
            raise argparse.ArgumentTypeError(
                f'expected numbers of guests, such as 2, 1,3 or 1-3, got '
                f'"{text}"')
        first = int(match.group(1))
        last = int(match.group(2) or first)
        # An empty list would mean all guests.
        if not first <= last <= LAST:
            raise argparse.ArgumentTypeError(
                f'expected guests of at most {LAST}, and ranges with the '
                f'lower number first, got "{part}"')
        found += range(first, last + 1)
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


def adapter(text):
    """(guest, adapter)"""
    match = re.fullmatch(r'(\d+)\.(\d+)', text)
    if not match:
        raise argparse.ArgumentTypeError(
            f'expected GUEST.ADAPTER, such as 1.2, got "{text}"')
    return tuple(map(int, match.groups()))


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(
            f'expected a number of seconds above 0, got "{text}"')
    return value


def count(text):
    if not re.fullmatch(r'[1-9]\d*', text):
        raise argparse.ArgumentTypeError(
            f'expected a number of tables from 1, got "{text}"')
    return int(text)


def variable(text):
    if not re.match(r'[A-Za-z_]\w*=', text):
        raise argparse.ArgumentTypeError(f'expected NAME=VALUE, got "{text}"')
    return text


def packages(text):
    """The names of a list of packages, separated by commas."""
    found = text.split(',')
    for name in found:
        if not re.fullmatch(r'[a-z0-9][a-z0-9.+-]+', name):
            raise argparse.ArgumentTypeError(
                f'expected the name of a package, got "{name}"')
    return found


def member(text):
    """(name, value) of NAME=VALUE; a value that is not JSON is a string."""
    name, equals, value = text.partition('=')
    if not name or not equals:
        raise argparse.ArgumentTypeError(f'expected NAME=VALUE, got "{text}"')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def plural(count, noun):
    return f'{count} {noun}{"" if count == 1 else "s"}'


def show_guest(guest):
    """Print a line for each adapter of a guest."""
    several = len(guest['adapters']) > 1
    for its in guest['adapters']:
        number, width = str(guest['guest']), 9
        if several:
            number, width = f'{number}.{its["number"]}', 14
        line = f'  {number:>2}  {its["name"]:8} {its["ipv4"]:10} ' \
            f'{its["ipv6"]:{width}} {its["device"]} ' \
            f'GID {its["gid"]}'
        if guest['image']:
            line += f'  {os.path.basename(guest["image"])}'
        if guest['fate']:
            line += f'  GONE: {guest["fate"]}'
        if not its['link_up']:
            line += '  LINK DOWN'
        if its['impaired']:
            line += f'  impaired: {its["impaired"]}'
        print(line)


def show(status):
    """Print a lab that is up, for people."""
    kernels = dict.fromkeys(guest['kernel'] for guest in status['guests'])
    title = f'{status["lab"]}: {plural(len(status["guests"]), "guest")}, ' \
        f'Linux {", ".join(kernels)}, {status["stack"]}'
    if status['wire'] == 'shm':
        title += ' by shared memory'
    if status['links']:
        title += f', on {" ".join(status["links"])}, MTU {status["mtu"]}'
    print(title)
    for guest in status['guests']:
        show_guest(guest)
    print(f'  shared: {" ".join(status["shares"]) or "nothing"}')
    print(f'  logs: {status["logs"]}')
    print(f'  {status["accelerator"]}')
    print(f'  {about_preference(status["preferred"])}')
    for path in status['captures']:
        print(f'  capturing to {path}')
    if not status['network']:
        print('  THE NETWORK IS GONE: run "vrdma-lab down", and "up" again')


def wait_up(place, near, pid):
    """Wait until a keeper reports that it has booted its guests."""
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


def close_others(*kept):
    """Close descriptors that the caller of this program has left open: their
    other ends, or locks, would wait for the end of the lab."""
    for fd in map(int, os.listdir('/proc/self/fd')):
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:
                pass        # the descriptor of the listing


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
        of=args.of, images=args.image, packages=sum(args.install, []),
        adapters=args.adapters))
    began = time.monotonic()
    held = place.take()
    if held is None:
        raise LabError(f'the lab "{place.name}" is up already: use it, end '
                       'it with "vrdma-lab down", or choose another name '
                       'with --name')
    near, far = socket.socketpair()
    # Like an interrupt, these signals end a booting keeper first.
    client.handle((signal.SIGTERM, signal.SIGHUP), signal.default_int_handler)
    pid = os.fork()
    if pid == 0:
        near.close()
        close_others(held, far.fileno())
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


def status_or_none(place):
    """The status of a lab. If it is not up, say so: None."""
    try:
        return client.ask(place, 'status')
    except client.NotReady as e:
        say(f'vrdma-lab: {e}')
        return None


def do_status(args):
    places = [Place(args.name)] if args.named else all_taken()
    if not places:
        raise LabError('no lab is up: run "vrdma-lab up 2"')
    if len(places) == 1:
        found = [client.ask(places[0], 'status')]
    else:
        found = list(filter(None, map(status_or_none, places)))
    if args.json:
        print(json.dumps(found, indent=1))
    else:
        for status in found:
            show(status)
    gone = [g for s in found for g in s['guests'] if g['fate']]
    up = found and all(s['network'] for s in found)
    return 0 if up and not gone else 1


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


def do_top(args):
    top.top(Place(args.name), args.interval, args.count)
    return 0


def do_link(args):
    guest, number = args.adapter
    client.ask(Place(args.name), 'link', guest=guest, adapter=number,
               up=args.state == 'up')
    return 0


def do_pcap(args):
    path = None if args.file == 'off' else os.path.abspath(args.file)
    say('vrdma-lab: ' + client.ask(Place(args.name), 'pcap',
                                   file=path, adapter=args.number)['done'])
    return 0


def do_impair(args):
    if args.spec != 'off':
        parse(args.spec)
    say('vrdma-lab: ' + client.ask(Place(args.name), 'impair',
                                   guests=args.guests or [],
                                   adapter=args.number,
                                   spec=args.spec)['done'])
    return 0


def does_not_end(place):
    return LabError(f'the lab "{place.name}" did not end within '
                    f'{DOWN_TIMEOUT} s; the log of its keeper is '
                    f'{place.keeper_log}. To kill it and its guests: kill '
                    f'-KILL {place.keeper()}')


def end_boot(place, logs):
    """End a lab that is not up yet."""
    if logs:
        say(f'vrdma-lab: the lab "{place.name}" was not up: no logs are '
            f'copied to {logs}')
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
    # The keeper closes the connection when it ends.
    try:
        answer = wire.lines.read()
    except TimeoutError as e:
        raise does_not_end(place) from e
    if answer:
        raise LabError(json.loads(answer)['error'])
    return 0


def add_up(commands):
    up = commands.add_parser(
        'up', help='boot guests on one network',
        description='Boot guests on one network. Each has the root of this '
                    'machine. What a guest writes there stays in its memory; '
                    'only shared directories are written for real.')
    up.add_argument('guests', type=int, nargs='?',
                    help='number of guests (default: 2)')
    up.add_argument('--image', action='append', default=[], metavar='FILE',
                    help='boot this disk image of Debian 12, 13 or testing '
                         "instead of this machine's root; give it once for "
                         'all guests, or once for each')
    up.add_argument('--install', type=packages, action='append', default=[],
                    metavar='PACKAGE,...',
                    help='with --image, install these packages of Debian if '
                         'the image lacks them')
    up.add_argument('--adapter', '--stack', dest='stack', choices=STACKS,
                    default='virtio-rdma',
                    help='pvrdma: an adapter whose driver is in Linux; rxe: '
                         'the software RDMA of Linux, to compare')
    up.add_argument('--adapters', type=int, default=1, metavar='N',
                    help='number of adapters of each guest, each on a '
                         'network of its own (default: 1)')
    up.add_argument('--wire', choices=WIRES, default='net',
                    help='shm: RDMA by shared memory, beside the network')
    up.add_argument('--bridge', default='',
                    help='connect the guests to this bridge of the machine '
                         'instead of a network of their own (needs root)')
    up.add_argument('--tap', action='append', default=[],
                    help='connect a guest to this existing tap; give it once '
                         'for each guest')
    up.add_argument('--first', type=int, default=1, metavar='NUMBER',
                    help='number of the first guest, if other labs are on '
                         'the same network (default: 1)')
    up.add_argument('--of', type=int, default=0, metavar='N',
                    help='number of guests of all labs on the network')
    up.add_argument('--kernel', metavar='SERIES', default='',
                    help='series of the kernel, such as 6.12 (default: that '
                         'of this machine, or of the image)')
    up.add_argument('--accel', choices=accel.CHOICES, default='auto',
                    help='accelerator of QEMU (default: kvm if a probe of two '
                         'seconds finds that it works, or else tcg)')
    up.add_argument('--smp', type=int, default=1, metavar='N',
                    help='processors of each guest')
    up.add_argument('--mem', default='2G', help='memory of each guest')
    up.add_argument('--share', action='append', metavar='DIR',
                    help='share this directory, writable, at the same path '
                         '(default: the current one; "": none)')
    up.add_argument('--logs', metavar='DIR',
                    help='write consoles and other logs to this directory')
    up.add_argument('--qemu', action='append', default=[], metavar='ARGUMENT',
                    help='add an argument to the command line of each QEMU')
    up.set_defaults(do=do_up)


def add_run(commands):
    run = commands.add_parser(
        'run', help='run a command in guests',
        description='Run a command in guests, in the current directory. The '
                    'exit code is the first that is not 0, 124 after the '
                    'timeout, 125 if a guest could not run the command. The '
                    'environment has VRDMA_GUEST, VRDMA_GUESTS, '
                    'VRDMA_ADDRESS, VRDMA_DEVICE and VRDMA_GID (the index of '
                    'the GID for IPv4), and the same for each adapter, with '
                    'its number: VRDMA_DEVICE_2. VRDMA_ADAPTERS is the number '
                    'of adapters.')
    run.add_argument('-g', '--guests', type=numbers, metavar='1,2',
                     help='run it in these guests (default: all)')
    run.add_argument('-t', '--timeout', type=seconds,
                     metavar='SECONDS', help='kill it after this time')
    run.add_argument('-e', '--env', type=variable, action='append',
                     default=[], metavar='NAME=VALUE',
                     help='set a variable of its environment')
    run.add_argument('-C', '--directory', metavar='DIR',
                     help='run it in this directory of the guest')
    run.add_argument('--after', type=listener, metavar='GUEST:PORT',
                     help='first wait until a program listens on that port, '
                          'with TCP or RDMA CM')
    run.add_argument('program', metavar='COMMAND',
                     help="a program; for a shell use sh -c '...'")
    run.add_argument('arguments', nargs=argparse.REMAINDER,
                     metavar='ARGUMENT',
                     help='arguments of the program, also with "-" in front')
    run.set_defaults(do=do_run)


def parser():
    whole = Parser(
        prog='vrdma-lab',
        description='Boot guests on one network, each with an RDMA adapter, '
                    'and run RDMA programs in them.')
    whole.add_argument('--name', help='name of the lab (default: $VRDMA_LAB, '
                                      'or "default")')
    commands = whole.add_subparsers(dest='command', required=True)
    add_up(commands)
    add_run(commands)
    shell = commands.add_parser('shell', help='open a shell in a guest')
    shell.add_argument('guest', type=int, help='number of the guest')
    shell.set_defaults(do=do_shell)
    console = commands.add_parser(
        'console', help="show errors of a guest's kernel")
    console.add_argument('-f', '--follow', action='store_true',
                         help='show further errors until interrupted')
    console.add_argument('guest', type=int, help='number of the guest')
    console.set_defaults(do=do_console)
    qmp = commands.add_parser(
        'qmp', help="send a QMP command to a guest's QEMU",
        description="Send a QMP command to a guest's QEMU, and print its "
                    'answer. The adapter is called rdma0, a second one '
                    'rdma1.')
    qmp.add_argument('guest', type=int, help='number of the guest')
    qmp.add_argument('execute', metavar='COMMAND',
                     help='for example query-rdma or rdma-fault-add')
    qmp.add_argument('arguments', nargs='*', type=member,
                     metavar='NAME=VALUE',
                     help='an argument; VALUE is JSON, or else a string')
    qmp.set_defaults(do=do_qmp)
    link = commands.add_parser(
        'link', help='take the link of an adapter down, or up again',
        description='Take the link of an adapter and of its NIC down, as if '
                    'its cable were pulled, or up again.')
    link.add_argument('adapter', type=adapter, metavar='GUEST.ADAPTER',
                      help='for example 1.2: adapter 2 of guest 1')
    link.add_argument('state', choices=('down', 'up'))
    link.set_defaults(do=do_link)
    pcap = commands.add_parser(
        'pcap', help='capture all further frames to a file')
    pcap.add_argument('-a', '--adapter', dest='number', type=int, default=1,
                      metavar='NUMBER',
                      help='capture the network of the adapters with this '
                           'number (default: 1)')
    pcap.add_argument('file', help='the file, or "off" to end all captures')
    pcap.set_defaults(do=do_pcap)
    impair = commands.add_parser(
        'impair', help='lose, delay or corrupt frames',
        description='Lose or delay further frames on the way to guests: '
                    'loss, dup, reorder and corrupt (a percentage), delay '
                    '(us, ms, s), rate (kbit, mbit, gbit) and seed (a '
                    'number). This replaces earlier impairments.')
    impair.add_argument('-g', '--guests', type=numbers, metavar='1,2',
                        help='frames to these guests (default: to all)')
    impair.add_argument('-a', '--adapter', dest='number', type=int,
                        metavar='NUMBER',
                        help='frames to the adapters with this number '
                             '(default: to all)')
    impair.add_argument('spec', help=EXAMPLE.replace('%', '%%'))
    impair.set_defaults(do=do_impair)
    rates = commands.add_parser(
        'top', help='show rates of all adapters',
        description='Show rates of all adapters, from their counters in '
                    'query-rdma, until interrupted. On a terminal each table '
                    'replaces the one before.')
    rates.add_argument('-i', '--interval', type=seconds, default=1,
                       metavar='SECONDS',
                       help='time between tables (default: 1)')
    rates.add_argument('-n', '--count', type=count, metavar='N',
                       help='end after N tables')
    rates.set_defaults(do=do_top)
    status = commands.add_parser(
        'status', help='list labs that are up; fails if a guest is gone')
    status.add_argument('--json', action='store_true',
                        help='print JSON, for programs')
    status.set_defaults(do=do_status)
    down = commands.add_parser('down', help='end all guests')
    down.add_argument('--logs', metavar='DIR',
                      help='copy the logs to this directory')
    down.set_defaults(do=do_down)
    return whole


def main(argv=None):
    args = parser().parse_args(argv)
    args.name = args.name or os.environ.get('VRDMA_LAB')
    args.named = bool(args.name)
    args.name = args.name or 'default'
    try:
        return args.do(args)
    except LabError as e:
        say(f'vrdma-lab: {e}')
        return CANNOT if args.command == 'run' else 1
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return 130
