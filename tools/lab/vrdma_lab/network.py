# SPDX-License-Identifier: GPL-2.0-or-later
"""The networks of a lab, one for each adapter of a guest, and net filters on
them.

Two guests are connected by a socket, which is fast; more guests by a hub. Net
filters impair frames to a guest in that guest's QEMU, or at its port of the
hub. All frames pass each end of a socket, and each port of a hub, so a dump at
one of them has every frame once, as it was sent. With a bridge of the machine,
that bridge is the network.
"""
import os
import re
import socket

from guestkit import adapter
from guestkit.agent import GuestGone
from guestkit.hub import Hub
from guestkit.paths import LabError
from guestkit.vm import prefer_threads

from . import taps

UNITS = {
    'delay': ({'us': 1, 'ms': 1000, 's': 1000000}, 'us, ms or s'),
    'rate': ({'kbit': 1, 'mbit': 1000, 'gbit': 1000000},
             'kbit, mbit or gbit'),
}
# {name on the command line: property of filter-impair}
FAULTS = {'loss': 'drop', 'dup': 'dup', 'reorder': 'reorder',
          'corrupt': 'corrupt'}
EXAMPLE = 'for example loss=1%,delay=1ms, or off'
UINT32_MAX = 0xffffffff


def _share(name, text):
    """Convert a percentage to frames in 10000."""
    found = re.fullmatch(r'(\d+(?:\.\d+)?)%', text)
    value = round(float(found.group(1)) * 100) if found else -1
    if not 0 <= value <= 10000:
        raise LabError(f'impair {name}={text}: expected a percentage from '
                       '0.01% to 100%, such as 1%')
    if found and value == 0 and float(found.group(1)):
        raise LabError(f'impair {name}={text}: the smallest step is 0.01%')
    return value


def _amount(name, text):
    units, known = UNITS[name]
    found = re.fullmatch(r'(\d+(?:\.\d+)?)([a-z]+)', text)
    if not found or found.group(2) not in units:
        raise LabError(f'impair {name}={text}: expected a number with a unit: '
                       f'{known}')
    unit = min(units, key=units.get)
    value = round(float(found.group(1)) * units[found.group(2)])
    if not 1 <= value <= UINT32_MAX:
        raise LabError(f'impair {name}={text}: expected 1{unit} to '
                       f'{UINT32_MAX}{unit}')
    return value


def parse(spec):
    """Parse the argument of "impair": properties of filter-impair."""
    values, seed = {}, {}
    for item in spec.split(','):
        name, _, text = item.partition('=')
        if name in FAULTS:
            values[FAULTS[name]] = _share(name, text)
        elif name in UNITS:
            values[name] = _amount(name, text)
        elif name == 'seed' and text.isdecimal():
            seed = {'seed': int(text)}
        else:
            raise LabError(f'impair {item}: unknown; expected '
                           f'{", ".join([*FAULTS, *UNITS])} or seed, '
                           f'{EXAMPLE}')
    if not values:
        raise LabError(f'impair {spec}: no impairment, expected one, '
                       f'{EXAMPLE}')
    return values | seed


def all_gone(command, guests):
    """The error of a command that needs a running guest."""
    fates = ', '.join(f'guest {guest.index}: {guest.fate}' for guest in guests)
    return f'{command}: no guest runs ({fates}): run "vrdma-lab down", then ' \
        '"vrdma-lab up"'


class Network:
    """The network of one adapter of each guest, that with this number."""

    def __init__(self, plan, directory, logs, number=1):
        self.plan, self.directory = plan, directory
        self.number, self.name = number, adapter.netdev(number)
        self.guests = {}            # by number
        self.ends, self.taps, self.hub = (), {}, None
        if plan.is_bridged:
            self.taps = {number: taps.on_bridge(plan.bridge) if plan.bridge
                         else taps.named(plan.taps[number - plan.first])
                         for number in plan.numbers}
        elif plan.guests == 2:
            self.ends = socket.socketpair()
        else:
            self.hub = Hub(f'network{number}' if number > 1 else 'network',
                           directory, plan.guests, logs,
                           first=(number - 1) * plan.guests)
        self.capture = None         # the file
        self.dumping = None         # the guest or hub whose QEMU captures
        self._dump = f'dump-{self.name}'    # the filter there
        self.impaired = {}          # guest: argument of "impair"
        # Random, so that MAC addresses of labs on one network differ
        self.vendor = bytes((0x52, 0x54, *os.urandom(3)))

    def netdev(self, index):
        """(arguments for a guest's netdev, descriptors for its QEMU)"""
        if self.hub:
            return ['-netdev', f'stream,id={self.name},server=off,'
                    f'addr.type=unix,addr.path={self.hub.path(index - 1)}'], []
        if self.taps:
            tap = self.taps[index]
            return ['-netdev', f'tap,id={self.name},fd={tap}'], [tap]
        end = self.ends[index - 1].fileno()
        return ['-netdev', f'stream,id={self.name},server=off,addr.type=fd,'
                f'addr.str={end}'], [end]

    def mac(self, index):
        """The MAC address of a guest's NIC."""
        if not self.plan.is_bridged:
            return adapter.mac(index, self.number)
        return (self.vendor + bytes([index])).hex(':')

    def booted(self, guests):
        """Close descriptors that the guests' QEMUs have inherited."""
        self.guests = guests
        for end in self.ends:
            end.close()
        for tap in self.taps.values():
            os.close(tap)

    def _before(self, guest):
        """(guest or hub, netdev, queue) that frames to a guest pass last."""
        if self.hub:
            return self.hub, f's{guest - 1}', 'rx'
        return self.guests[guest], self.name, 'tx'

    def _middle(self):
        """(guest or hub, netdev) that all frames pass."""
        if self.hub:
            return self.hub, 'h0'
        running = [g for g in self.guests.values() if not g.fate]
        if not running:
            raise LabError(all_gone('pcap', self.guests.values()))
        return running[0], self.name

    def _passes_filters(self, what):
        if self.plan.wire == 'shm':
            raise LabError(f'{what}: RDMA bypasses net filters in this lab, '
                           'by shared memory; boot it with "up --wire net"')

    def start_capture(self, path):
        self._passes_filters('pcap')
        if self.plan.is_bridged:
            link = self.plan.bridge or self.plan.taps[0]
            raise LabError('pcap: the network is a bridge of this machine; '
                           f'run as root: tcpdump -i {link} -w {path}')
        if self.capture:
            raise LabError(f'pcap: capturing to {self.capture} already; end '
                           'it with "vrdma-lab pcap off"')
        whose, netdev = self._middle()
        # At the head, before filters that lose frames
        whose.qmp('object-add', **{
            'qom-type': 'filter-dump', 'id': self._dump, 'netdev': netdev,
            'position': 'head', 'file': path})
        self.capture, self.dumping = path, whose

    def end_capture(self):
        """End the capture: (file, size)."""
        try:
            self.dumping.qmp('object-del', id=self._dump)
        except GuestGone:
            pass        # its QEMU has written the file
        path, self.capture = self.capture, None
        return path, os.path.getsize(path)

    def impair(self, guest, spec):
        """Replace the impairments of frames to a guest."""
        values = {} if spec == 'off' else parse(spec)
        if values:
            self._passes_filters('impair')
        whose, netdev, queue = self._before(guest)
        name = f'impair-{self.name}-{guest}'
        if self.impaired.pop(guest, None):
            # Disabling it releases the frames that it holds.
            whose.qmp('qom-set', path=f'/objects/{name}', property='status',
                      value='off')
            whose.qmp('object-del', id=name)
        if values:
            whose.qmp('object-add', **{
                'qom-type': 'filter-impair', 'id': name, 'netdev': netdev,
                'queue': queue, 'seed': guest, **values})
            self.impaired[guest] = spec

    def alive(self):
        return not self.hub or self.hub.process.poll() is None

    def processes(self):
        return [self.hub.process.pid] if self.hub else []

    def prefer(self):
        """Give the hub priority over vCPUs. False: not permitted."""
        return prefer_threads(self.processes())

    def kill(self):
        if self.hub:
            self.hub.kill()
