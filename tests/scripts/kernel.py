#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab finds the kernel in a bzImage, or says what it lacks for that."""
import gzip
import lzma
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import tap

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'tools' / 'lab'))

from guestkit import kernel    # noqa: E402
from guestkit.paths import LabError    # noqa: E402

ELF = b'\x7fELF and what follows'
STUB = b'MZ, real mode code and \x1f\x8b by chance'
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'


class Decompress(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='kernel-test-'))
        self.addCleanup(shutil.rmtree, self.base)
        # Programs come from here alone
        self.bin = self.base / 'bin'
        self.bin.mkdir()
        patch = mock.patch.dict(os.environ, PATH=str(self.bin))
        patch.start()
        self.addCleanup(patch.stop)

    def kernel(self, payload):
        image, out = self.base / 'vmlinuz', self.base / 'vmlinux'
        image.write_bytes(STUB + payload + b'\0' * 64)
        kernel.decompress(image, out)
        return out.read_bytes()

    def test_xz(self):
        self.assertEqual(self.kernel(lzma.compress(ELF)), ELF)

    def test_gzip(self):
        self.assertEqual(self.kernel(gzip.compress(ELF)), ELF)

    def test_zstd(self):
        program = self.bin / 'zstd'
        program.write_text('#!/bin/sh\nprintf "\\177ELF and what follows"\n')
        program.chmod(0o755)
        self.assertEqual(self.kernel(ZSTD_MAGIC + b'frame'), ELF)

    def test_missing_zstd_is_named_with_its_package(self):
        with self.assertRaisesRegex(
                LabError, 'no program zstd.*install the package zstd'):
            self.kernel(ZSTD_MAGIC + b'frame')

    def test_magic_of_zstd_by_chance_needs_no_zstd(self):
        self.assertEqual(self.kernel(ZSTD_MAGIC + gzip.compress(ELF)), ELF)

    def test_no_kernel_at_all(self):
        with self.assertRaisesRegex(LabError,
                                    'no compressed kernel found in vmlinuz'):
            self.kernel(b'')


if __name__ == '__main__':
    tap.main()
