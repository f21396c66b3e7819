# SPDX-License-Identifier: GPL-2.0-or-later
"""The network of a lab, and net filters on it.

Two guests have a socket between them, as that is fast; others are connected
by a hub. What is to happen to frames on the way to a guest happens in that
guest's QEMU, or at its port of the hub. All frames pass each end of a socket,
and each port of a hub: a dump at one of them has every frame once, as it was
sent. Where guests are on a bridge of the machine, it is the network.
"""
import os
import re
import socket

from guestkit.adapter import mac
from guestkit.agent import GuestGone
from guestkit.hub import Hub
from guestkit.paths import LabError
from guestkit.vm import prefer_threads

from . import taps

DUMP = 'dump'
UNITS = {
    'delay': ({'us': 1, 'ms': 1000, 's': 1000000}, 'us, ms or s'),
    'rate': ({'kbit': 1, 'mbit': 1000, 'gbit': 1000000},
             'kbit, mbit or gbit'),
}
# Names on the command line, and those of filter-lossy's properties
FAULTS = {'loss': 'drop', 'dup': 'dup', 'reorder': 'reorder',
          'corrupt': 'corrupt'}
FILTERS = ('filter-lossy', 'filter-bottleneck')
EXAMPLE = 'for example loss=1%,delay=1ms, or off'
UINT32_MAX = 0xffffffff


def _share(name, text):
    """Frames in 10000 of a percentage."""
    found = re.fullmatch(r'(\d+(?:\.\d+)?)%', text)
    value = round(float(found.group(1)) * 100) if found else -1
    if not 0 <= value <= 10000:
        raise LabError(f'impair {name}={text}: a percentage from 0.01% to '
                       '100% is wanted')
    if found and value == 0 and float(found.group(1)):
        raise LabError(f'impair {name}={text}: steps are 0.01%')
    return value


def _amount(name, text):
    units, known = UNITS[name]
    found = re.fullmatch(r'(\d+(?:\.\d+)?)([a-z]+)', text)
    if not found or found.group(2) not in units:
        raise LabError(f'impair {name}={text}: a number with a unit is '
                       f'wanted: {known}')
    value = round(float(found.group(1)) * units[found.group(2)])
    if not 1 <= value <= UINT32_MAX:
        raise LabError(f'impair {name}={text}: out of range')
    return value


def parse(spec):
    """{type of filter: properties} of what the command line says."""
    filters = {name: {} for name in FILTERS}
    seed = None
    for item in spec.split(','):
        name, _, text = item.partition('=')
        if name in FAULTS:
            filters['filter-lossy'][FAULTS[name]] = _share(name, text)
        elif name in UNITS:
            filters['filter-bottleneck'][name] = _amount(name, text)
        elif name == 'seed' and text.isdecimal():
            seed = int(text)
        else:
            raise LabError(f'impair {item}: not known; there are '
                           f'{", ".join([*FAULTS, *UNITS])} and seed, '
                           f'{EXAMPLE}')
    filters = {name: values for name, values in filters.items() if values}
    if not filters:
        raise LabError(f'impair {spec}: nothing to do, {EXAMPLE}')
    if seed is not None and 'filter-lossy' in filters:
        filters['filter-lossy']['seed'] = seed
    return filters


class Network:
    def __init__(self, plan, directory, logs):
        self.plan, self.directory = plan, directory
        self.guests = {}            # by number, with what has their netdevs
        self.ends, self.taps, self.hub = (), {}, None
        if plan.is_bridged:
            self.taps = {number: taps.on_bridge(plan.bridge) if plan.bridge
                         else taps.named(plan.taps[number - plan.first])
                         for number in plan.numbers}
        elif plan.guests == 2:
            self.ends = socket.socketpair()
        else:
            self.hub = Hub('network', directory, plan.guests, logs)
        self.capture = None         # the file
        self.dumping = None         # whose QEMU does that
        self.impaired = {}          # guest: what was asked for
        self.filters = {}           # guest: names of filters
        # So that those of labs on one network differ
        self.vendor = bytes((0x52, 0x54, *os.urandom(3)))

    def netdev(self, index):
        """(the arguments of a guest's netdev, the descriptors it inherits)"""
        if self.hub:
            return ['-netdev', 'stream,id=n0,server=off,addr.type=unix,'
                    f'addr.path={self.directory}/port{index - 1}'], []
        if self.taps:
            tap = self.taps[index]
            return ['-netdev', f'tap,id=n0,fd={tap}'], [tap]
        end = self.ends[index - 1].fileno()
        return ['-netdev', 'stream,id=n0,server=off,addr.type=fd,'
                f'addr.str={end}'], [end]

    def mac(self, index):
        """The address of a guest's NIC."""
        if not self.plan.is_bridged:
            return mac(index)
        return (self.vendor + bytes([index])).hex(':')

    def booted(self, guests):
        """Guests have inherited their ends."""
        self.guests = guests
        for end in self.ends:
            end.close()
        for tap in self.taps.values():
            os.close(tap)

    def _before(self, guest):
        """(whose QEMU, netdev, queue) that frames to a guest pass last."""
        if self.hub:
            return self.hub, f's{guest - 1}', 'rx'
        return self.guests[guest], 'n0', 'tx'

    def _middle(self):
        """(whose QEMU, netdev) that all frames pass."""
        if self.hub:
            return self.hub, 'h0'
        return next(g for g in self.guests.values() if not g.fate), 'n0'

    def _passes_filters(self, what):
        if self.plan.wire == 'shm':
            raise LabError(f'{what}: RDMA takes shared memory in this lab, '
                           'past all filters; boot it with up --wire net')

    def start_capture(self, path):
        self._passes_filters('pcap')
        if self.plan.is_bridged:
            link = self.plan.bridge or self.plan.taps[0]
            raise LabError('pcap: the network is not of this lab alone; as '
                           f'root: tcpdump -i {link} -w {path}')
        if self.capture:
            raise LabError(f'pcap: {self.capture} is being written; '
                           '"vrdma-lab pcap off" ends that')
        whose, netdev = self._middle()
        # Before filters that lose frames
        whose.qmp('object-add', **{
            'qom-type': 'filter-dump', 'id': DUMP, 'netdev': netdev,
            'position': 'head', 'file': path})
        self.capture, self.dumping = path, whose

    def end_capture(self):
        """What was written, and how much."""
        if not self.capture:
            raise LabError('pcap off: nothing is being captured; "vrdma-lab '
                           'pcap FILE" begins')
        try:
            self.dumping.qmp('object-del', id=DUMP)
        except GuestGone:
            pass        # the file is there
        path, self.capture = self.capture, None
        return path, os.path.getsize(path)

    def impair(self, guest, spec):
        """From now on, frames on the way to a guest have these troubles
        alone."""
        filters = {} if spec == 'off' else parse(spec)
        if filters:
            self._passes_filters('impair')
        whose, netdev, queue = self._before(guest)
        for name in self.filters.pop(guest, ()):
            # Frames that it holds are to arrive.
            whose.qmp('qom-set', path=f'/objects/{name}', property='status',
                      value='off')
            whose.qmp('object-del', id=name)
        self.impaired.pop(guest, None)
        for kind, values in filters.items():
            name = f'{kind}-{guest}'
            if kind == 'filter-lossy':
                values.setdefault('seed', guest)
            whose.qmp('object-add', **{
                'qom-type': kind, 'id': name, 'netdev': netdev,
                'queue': queue, **values})
            self.filters.setdefault(guest, []).append(name)
            self.impaired[guest] = spec

    def alive(self):
        return not self.hub or self.hub.process.poll() is None

    def processes(self):
        return [self.hub.process.pid] if self.hub else []

    def prefer(self):
        """Prefer a hub to vCPUs, see Vm. False: not permitted."""
        return prefer_threads(self.processes())

    def kill(self):
        if self.hub:
            self.hub.kill()
