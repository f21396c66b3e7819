# SPDX-License-Identifier: GPL-2.0-or-later
"""The accelerator of guests: KVM where it works, or else TCG.

/dev/kvm may exist and be useless, for example in a sandbox that emulates each
instruction of a guest's kernel. So a probe boots a small program with KVM, and
limits its time.
"""
import os
import struct
import subprocess
import tempfile
from dataclasses import dataclass

from .arch import NATIVE
from .paths import LabError, qemu_binary

CHOICES = ('auto', 'tcg', 'kvm')
DEVICE = '/dev/kvm'
REQUESTED = 'as requested'
PROBE_TIMEOUT = 2       # seconds
FIRMWARE_SIZE = 0x10000
RESET_VECTOR = 0xfff0   # in the firmware
GDT_AT = 0x80           # likewise
BASE = 0xf0000          # of the firmware, below 1 MiB
# Exit code of QEMU after the program has written 0x10 to isa-debug-exit
GOOD = 0x10 << 1 | 1

# The program enters 64-bit mode, as a kernel does, and counts to 100 million
# there. That takes 0.1 s with KVM. If each instruction is emulated, it takes
# minutes.
PROGRAM = bytes.fromhex(
    # Real mode
    'fa'                            # cli
    '2e 66 0f 01 16 a0 00'          # lgdtl %cs:gdtr
    '0f 20 c0 0c 01 0f 22 c0'       # set CR0.PE
    '66 ea 18 00 0f 00 08 00'       # ljmpl $8, $start32
    # start32, in 32-bit mode: identity mapping of 2 MiB, with tables at 0x1000
    '66 b8 10 00 8e d8'             # mov $16, %ds
    'c7 05 00 10 00 00 03 20 00 00'     # movl $0x2003, 0x1000
    'c7 05 00 20 00 00 03 30 00 00'     # movl $0x3003, 0x2000
    'c7 05 00 30 00 00 83 00 00 00'     # movl $0x83, 0x3000
    '0f 20 e0 0c 20 0f 22 e0'       # set CR4.PAE
    'b8 00 10 00 00 0f 22 d8'       # mov $0x1000, %cr3
    'b9 80 00 00 c0 0f 32 80 cc 01 0f 30'   # set EFER.LME
    '0f 20 c0 0d 00 00 00 80 0f 22 c0'      # set CR0.PG
    'ea 6a 00 0f 00 18 00'          # ljmpl $24, $start64
    # start64, in 64-bit mode
    'b9 00 e1 f5 05'                # mov $100000000, %ecx
    'ff c9 75 fc'                   # 1: dec %ecx; jnz 1b
    'b0 10 e6 f4'                   # out $0x10, $0xf4
    'f4 eb fd')                     # 1: hlt; jmp 1b
# Code of 32 bits, data, code of 64 bits
SEGMENTS = 0, 0x00cf9b000000ffff, 0x00cf93000000ffff, 0x00af9b000000ffff
TO_PROGRAM = bytes.fromhex('e9 0d 00')      # jmp from RESET_VECTOR to 0


@dataclass(frozen=True)
class Accelerator:
    name: str       # QEMU's
    why: str        # a reason, for users

    @property
    def about(self):
        """A line for users."""
        return f'accelerator: {self.name.upper()}, {self.why}'


TCG = Accelerator('tcg', REQUESTED)


def firmware():
    """The program as a firmware that QEMU executes at reset."""
    gdt = struct.pack('<4Q', *SEGMENTS)
    gdtr = struct.pack('<HI', len(gdt) - 1, BASE + GDT_AT)
    code = PROGRAM.ljust(GDT_AT, b'\0') + gdt + gdtr
    return (code.ljust(RESET_VECTOR, b'\0') + TO_PROGRAM).ljust(
        FIRMWARE_SIZE, b'\0')


def probe():
    """Why KVM does not work on this machine, or ''."""
    qemu = qemu_binary()
    with tempfile.NamedTemporaryFile(prefix='vrdma-') as file:
        file.write(firmware())
        file.flush()
        command = [
            str(qemu), '-M', NATIVE.machine, '-accel', 'kvm',
            '-cpu', NATIVE.model, '-m', '16', '-nodefaults',
            '-no-user-config', '-display', 'none', '-no-reboot',
            '-bios', file.name,
            '-device', 'isa-debug-exit,iobase=0xf4,iosize=4']
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True,
                text=True, errors='replace', timeout=PROBE_TIMEOUT,
                check=False)
        except subprocess.TimeoutExpired:
            return f'a test program did not end within {PROBE_TIMEOUT} s'
    if done.returncode == GOOD:
        return ''
    said = done.stderr.strip().splitlines() or [
        f'QEMU ended with exit code {done.returncode}']
    return said[0].removeprefix(f'{qemu.name}: ').removeprefix('error: ')


def choose(wanted):
    """The Accelerator for one of CHOICES."""
    if wanted == 'tcg':
        return TCG
    if wanted == 'kvm':
        if not os.access(DEVICE, os.R_OK | os.W_OK):
            raise LabError(f'--accel kvm: {DEVICE} does not exist, or you may '
                           'not use it; use --accel tcg, or join the group '
                           'kvm')
        return Accelerator('kvm', REQUESTED)
    trouble = probe()
    if trouble:
        return Accelerator('tcg', f'because KVM does not work: {trouble}')
    return Accelerator('kvm', 'which works here')
