#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The choice between KVM and TCG, with programs that pretend to be QEMU."""
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / 'tools' / 'lab'))

from guestkit import accel    # noqa: E402
from guestkit.paths import LabError    # noqa: E402
from guestkit.vm import Vm    # noqa: E402

NO_DEVICE = 'Could not access KVM kernel module: No such file or directory'
# (what a machine has, a QEMU there, why KVM does not work)
MACHINES = (
    ('KVM', f'exit {accel.GOOD}', ''),
    ('KVM, with a warning', f'echo warning >&2; exit {accel.GOOD}', ''),
    ('no device', f'echo "qemu: {NO_DEVICE}" >&2; '
     'echo "qemu: failed to initialize kvm" >&2; exit 1', NO_DEVICE),
    ('a processor that KVM lacks',
     'echo "qemu: error: failed to set MSR" >&2; kill -ABRT $$',
     'failed to set MSR'),
    ('KVM that crawls', 'exec sleep 60',
     'a test program did not end within 2 s'),
    ('KVM that crashes', 'kill -ABRT $$', 'QEMU ended with exit code -6'),
    ('KVM that resets the guest', 'exit 0', 'QEMU ended with exit code 0'))


class Machines(unittest.TestCase):
    def setUp(self):
        base = tempfile.TemporaryDirectory(prefix='lab-')
        self.addCleanup(base.cleanup)
        self.qemu = Path(base.name, 'qemu')
        self.words = Path(base.name, 'words')
        patch = mock.patch.dict(os.environ, QEMU=str(self.qemu))
        patch.start()
        self.addCleanup(patch.stop)

    def pretend(self, script):
        """Make a QEMU that keeps its arguments, and runs a script."""
        self.qemu.write_text(
            f'#!/bin/sh\necho "$*" > {self.words}\n{script}\n',
            encoding='ascii')
        self.qemu.chmod(0o755)

    def test_a_probe_decides_in_two_seconds(self):
        for machine, script, why in MACHINES:
            with self.subTest(machine):
                self.pretend(script)
                began = time.monotonic()
                found = accel.choose('auto')
                # On a busy machine it takes longer to start the program.
                self.assertLess(time.monotonic() - began, 10)
                if why:
                    self.assertEqual(
                        found.about, 'accelerator: TCG, because KVM does not '
                        f'work: {why}')
                else:
                    self.assertEqual(found.about,
                                     'accelerator: KVM, which works here')

    def test_the_probe_has_the_machine_of_guests(self):
        self.pretend('exit 1')
        accel.probe()
        words = self.words.read_text(encoding='ascii')
        for word in ('-M q35', '-accel kvm', '-cpu max', '-bios '):
            self.assertIn(word, words)

    def test_a_request_needs_no_probe(self):
        self.pretend('exit 1')
        for name, device in (('tcg', False), ('tcg', True), ('kvm', True)):
            with mock.patch.object(accel.os, 'access', return_value=device):
                self.assertEqual(accel.choose(name).about,
                                 f'accelerator: {name.upper()}, as requested')
        with mock.patch.object(accel.os, 'access', return_value=False), \
                self.assertRaisesRegex(LabError, '/dev/kvm does not exist, or '
                                       'you may not use it; use --accel tcg'):
            accel.choose('kvm')
        self.assertFalse(self.words.exists())


class Guests(unittest.TestCase):
    def test_a_guest_with_kvm_measures_its_clock(self):
        for kvm, name, clock in ((False, 'tcg,thread=multi', 'tsc=reliable'),
                                 (True, 'kvm', '')):
            its = Vm('guest', made=object(), kvm=kvm)
            self.assertEqual(its._accelerator(), name)
            self.assertEqual(its._clock().split(' ')[0], clock)


class Firmware(unittest.TestCase):
    def test_the_reset_vector_leads_to_the_program(self):
        image = accel.firmware()
        self.assertEqual(len(image), accel.FIRMWARE_SIZE)
        at = accel.RESET_VECTOR
        self.assertEqual(image[at], 0xe9)
        offset = int.from_bytes(image[at + 1:at + 3], 'little')
        self.assertEqual((at + 3 + offset) & 0xffff, 0)
        self.assertTrue(image.startswith(accel.PROGRAM))
        self.assertLessEqual(len(accel.PROGRAM), accel.GDT_AT)


if __name__ == '__main__':
    tap.main()
