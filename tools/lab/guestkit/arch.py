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
    """What is made for such guests is below `state`."""

    name: str           # Debian's
    cpu: str            # QEMU's, and the compiler's
    state: Path
    machine: str        # of QEMU
    model: str          # of its processor
    console: str
    append: str = ''    # kernel parameters
    foreign: bool = True
    flavour: str = ''   # of the kernel
    series: str = ''    # of the kernel, if not what other guests run

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
        """What the names of the compiler and its like begin with."""
        return f'{self.cpu}-linux-gnu-' if self.foreign else ''

    def provider_dir(self):
        """Where libibverbs looks for providers in the guest."""
        if self.foreign:
            return f'/usr/lib/{self.cpu}-linux-gnu/libibverbs'
        return paths.provider_dir()

    def qemu_binary(self):
        if not self.foreign:
            return paths.qemu_binary()
        path = Path(os.environ.get(f'QEMU_{self.cpu.upper()}') or
                    BUILD / f'qemu-{self.cpu}' / f'qemu-system-{self.cpu}')
        if not os.access(path, os.X_OK):
            raise LabError(f'no QEMU at {path}: build it (make '
                           f'qemu-{self.name})')
        return path

    def firmware(self):
        """QEMU's arguments that name its firmware."""
        if self.foreign:
            return []       # the kernel needs none
        return [argument for directory in paths.firmware_dirs()
                for argument in ('-L', directory)]


# random.trust_cpu, no_timer_check and the TSC are of x86.
NATIVE = Arch('amd64', 'x86_64', STATE, machine='q35', model='max',
              console='ttyS0', foreign=False,
              append='random.trust_cpu=on no_timer_check')
# A processor with atomic instructions (LSE), and without pointer
# authentication, which takes TCG long. Interrupts are the ITS's.
ARM64 = Arch('arm64', 'aarch64', STATE / 'arm64',
             machine='virt,gic-version=3', model='neoverse-n1',
             console='ttyAMA0')
# A kernel with pages of 16 KiB, which Debian has from 13 on
ARM64_16K = replace(ARM64, flavour='-16k', series='6.12')
# A processor without atomic instructions
ARM64_LLSC = replace(ARM64, model='cortex-a57')
