# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of a lab, and checks that all files they need exist."""
import re
from dataclasses import dataclass, field
from pathlib import Path

from guestkit import accel, kernel
from guestkit.adapter import MTU
from guestkit.paths import (INSTALLED, MODULES, PROVIDER, LabError,
                            firmware_dirs, provider_dir, qemu_binary)
from guestkit.stack import STACKS

from . import confine, images, installed, taps

MOST = 64
MOST_ADAPTERS = 8       # of a guest
LAST = 254              # last byte of addresses 10.0.0.x
LEAST_MTU = 1280        # minimum of IPv6
LEAST_MEMORY = 256      # MiB that a guest needs to boot
WIRES = ('net', 'shm')


@dataclass
class Plan:
    guests: int
    stack: str = 'virtio-rdma'
    wire: str = 'net'
    series: str = ''
    requested: str = 'tcg'      # accelerator, one of accel.CHOICES
    smp: int = 1
    memory: str = '2G'
    shares: list = field(default_factory=list)      # directories
    logs: str = ''                                  # a directory
    qemu: list = field(default_factory=list)        # more arguments
    release: str = ''                               # of an installed kernel
    bridge: str = ''        # of this machine, for the guests
    taps: list = field(default_factory=list)        # instead, one a guest
    first: int = 1          # the first guest's number
    of: int = 0             # number of guests of all labs on the network
    adapters: int = 1       # of each guest
    mtu: int = MTU
    images: list = field(default_factory=list)      # one, or one a guest
    packages: list = field(default_factory=list)    # to install in images
    sources: list = field(default_factory=list)     # for images, one a guest
    accelerator: accel.Accelerator = accel.TCG      # the chosen one

    @property
    def numbers(self):
        return range(self.first, self.first + self.guests)

    @property
    def adapter_numbers(self):
        return range(1, self.adapters + 1)

    @property
    def links(self):
        """Interfaces of this machine that lead to the network."""
        return [self.bridge] if self.bridge else self.taps

    @property
    def is_bridged(self):
        return bool(self.links)


def share(path):
    """A directory of the caller that guests may write to."""
    real = Path(path).resolve()
    if not real.is_dir():
        raise LabError(f'--share {path}: no such directory')
    if str(real) == '/':
        raise LabError('--share /: guests must not write everywhere; use '
                       'the directory of your program')
    return str(real)


def choose_kernel(series):
    """The series of the guests' kernel, which has to be prepared."""
    series = series or kernel.DEFAULT or kernel.machine_series()
    if not kernel.prepared(series):
        raise LabError(f'the guest kernel {series} is not prepared: run '
                       f'"make guest SERIES={series}" in the source tree of '
                       'virtio-rdma')
    return series


def _check_images(plan):
    """Prepare the files of guests that boot from images."""
    if INSTALLED:
        if plan.series:
            plan.series, plan.release = installed.choose(
                plan.series, STACKS[plan.stack].driver)
    elif plan.series:
        _check_built(plan)
    plan.sources = images.sources(plan, None if INSTALLED
                                  else choose_kernel(''))


def _check_built(plan):
    """Require a kernel, a driver and a provider built in the source tree."""
    plan.series = choose_kernel(plan.series)
    driver = STACKS[plan.stack].driver
    if not driver:
        return
    if not (MODULES / plan.series / f'{driver}.ko').exists():
        what = f'no driver {driver} for Linux {plan.series}'
    elif plan.stack == 'virtio-rdma' and \
            not list(PROVIDER.glob('libvirtio_rdma-rdmav*.so')):
        what = 'no provider'
    else:
        return
    raise LabError(f'{what}: run "make guest ADAPTER={plan.stack} '
                   f'SERIES={plan.series}" in the source tree of virtio-rdma')


def check_network(plan):
    """Check the options of the networks, and set their MTU."""
    last = plan.numbers[-1]
    if not 1 <= plan.adapters <= MOST_ADAPTERS:
        raise LabError(f'--adapters {plan.adapters}: a guest has 1 to '
                       f'{MOST_ADAPTERS}')
    if plan.adapters > 1 and plan.is_bridged:
        raise LabError(f'--adapters {plan.adapters}: guests on a network of '
                       'this machine have one adapter; use it without '
                       '--bridge and --tap')
    if not plan.is_bridged:
        if plan.first != 1 or plan.of:
            raise LabError('--first and --of are for several labs on one '
                           'network: they need --bridge or --tap')
    elif plan.wire == 'shm':
        raise LabError('--wire shm connects only guests of one lab: use it '
                       'without --bridge and --tap')
    if plan.taps and plan.bridge:
        raise LabError(f'--bridge {plan.bridge} and --tap {plan.taps[0]}: '
                       'expected only one of these options')
    if plan.taps and len(plan.taps) != plan.guests:
        raise LabError(f'--tap {" ".join(plan.taps)}: got {len(plan.taps)}; '
                       'give --tap once for each guest, '
                       f'{plan.guests} in total')
    plan.of = plan.of or last
    if not 1 <= plan.first <= last <= plan.of <= LAST:
        raise LabError(f'guests {plan.first} to {last} of {plan.of}: numbers '
                       'are from 1 to the value of --of, which is at most '
                       f'{LAST}')
    if plan.is_bridged:
        plan.mtu = min(map(taps.mtu, plan.links))
        if plan.mtu < LEAST_MTU:
            raise LabError(f'{" ".join(plan.links)}: an MTU of {plan.mtu}; '
                           f'guests need at least {LEAST_MTU}, for IPv6')


def check_memory(text):
    """Require a size that QEMU accepts and a guest can boot with."""
    found = re.fullmatch(r'(\d+(?:\.\d+)?)([kmgt]?)', text.lower())
    if not found:
        raise LabError(f'--mem {text}: expected a number of MiB, or one with '
                       'K, M, G or T, such as 512M')
    mebibytes = float(found[1]) * 1024 ** ('kmgt'.find(found[2] or 'm') - 1)
    if mebibytes < LEAST_MEMORY:
        raise LabError(f'--mem {text}: guests need at least {LEAST_MEMORY}M')


def check(plan):
    """Complete a plan. An error names a missing file, and the command that
    makes it."""
    if not 1 <= plan.guests <= MOST:
        raise LabError(f'{plan.guests} guests: a lab has 1 to {MOST}')
    check_memory(plan.memory)
    check_network(plan)
    if plan.packages and not plan.images:
        raise LabError('--install is for guests with --image: others have '
                       'the packages of this machine')
    if plan.images and plan.stack == 'pvrdma':
        raise LabError('--adapter pvrdma: images of Debian have no driver '
                       'vmw_pvrdma; use it without --image')
    confine.check()
    qemu_binary()
    firmware_dirs()
    if plan.images:
        pass    # checked last, because that takes long
    elif INSTALLED:
        plan.series, plan.release = installed.choose(
            plan.series, STACKS[plan.stack].driver)
    else:
        _check_built(plan)
    if STACKS[plan.stack].driver:
        provider_dir()
    elif plan.wire == 'shm':
        raise LabError(f'--wire shm is for adapters: {plan.stack} uses its '
                       'NIC')
    plan.shares = list(dict.fromkeys(map(share, plan.shares)))
    plan.accelerator = accel.choose(plan.requested)
    if plan.images:
        _check_images(plan)
    return plan
