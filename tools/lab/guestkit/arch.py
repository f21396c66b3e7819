# SPDX-License-Identifier: GPL-2.0-or-later
"""Architectures of guests: the machine's own, whose guests share its root, and
arm64, whose guests have a root of their own (foreign.py)."""
import os
from dataclasses import dataclass, replace
from pathlib import Path

from . import paths
from .paths import BUILD, STATE, LabError


@dataclass(frozen=True)
class Arch:
    """An architecture, and where its guests' files are."""

    name: str           # as Debian names it
    cpu: str            # as QEMU and the compiler name it
    state: Path         # has the files of such guests
    machine: str        # QEMU's machine type
    model: str          # QEMU's CPU model
    console: str
    append: str = ''    # kernel parameters
    foreign: bool = True
    flavour: str = ''   # suffix of the kernel's package
    series: str = ''    # of the kernel; '': the default series

    @property
    def kernels(self):
        return self.state / f'kernel{self.flavour}'

    @property
    def headers(self):
        return self.state / f'headers{self.flavour}'

    @property
    def modules(self):
        return self.state / f'modules{self.flavour}'

    @property
    def drivers(self):
        return self.state / f'driver{self.flavour}'

    @property
    def provider(self):
        return self.state / 'provider'

    @property
    def bin(self):
        return self.state / 'bin'

    @property
    def cross(self):
        """The prefix of the cross compiler's programs."""
        return f'{self.cpu}-linux-gnu-' if self.foreign else ''

    def provider_dir(self):
        """The directory where libibverbs in the guest finds providers."""
        if self.foreign:
            return f'/usr/lib/{self.cpu}-linux-gnu/libibverbs'
        return paths.provider_dir()

    def qemu_binary(self):
        if not self.foreign:
            return paths.qemu_binary()
        path = Path(os.environ.get(f'QEMU_{self.cpu.upper()}') or
                    BUILD / f'qemu-{self.cpu}' / f'qemu-system-{self.cpu}')
        if not os.access(path, os.X_OK):
            raise LabError(f'no QEMU at {path}: run "make '
                           f'qemu-{self.name}"')
        return path

    def firmware(self):
        """QEMU's arguments for its firmware."""
        if self.foreign:
            return []       # QEMU boots the kernel without firmware
        return [argument for directory in paths.firmware_dirs()
                for argument in ('-L', directory)]


# RDRAND provides entropy (random.trust_cpu). The kernel's test of its timer
# can fail on a busy host, so leave it out (no_timer_check).
NATIVE = Arch('amd64', 'x86_64', STATE, machine='q35', model='max',
              console='ttyS0', foreign=False,
              append='random.trust_cpu=on no_timer_check')
# A processor with atomic instructions (LSE), and without pointer
# authentication, which is slow in TCG. Interrupts come from the ITS.
ARM64 = Arch('arm64', 'aarch64', STATE / 'arm64',
             machine='virt,gic-version=3', model='neoverse-n1',
             console='ttyAMA0')
# A kernel with pages of 16 KiB, in Debian 13 and later
ARM64_16K = replace(ARM64, flavour='-16k', series='6.12')
# A processor without atomic instructions
ARM64_LLSC = replace(ARM64, model='cortex-a57')
