#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images that guests of vrdma-lab boot from, as far as no guest is needed:
which images are accepted, and what hostile ones cannot do."""
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / 'tools' / 'lab'), str(TOP / 'tests' / 'guest')]

from lab import diskboot, disks    # noqa: E402
from lab.paths import LabError    # noqa: E402
from vrdma_lab import images    # noqa: E402


class Images(unittest.TestCase):
    def setUp(self):
        self.base = Path(tempfile.mkdtemp(prefix='lab-'))
        self.addCleanup(shutil.rmtree, self.base)

    def image(self, *pieces):
        """A file with these (offset, bytes) in it."""
        path = self.base / 'image'
        data = bytearray(0x9000)
        for at, piece in pieces:
            data[at:at + len(piece)] = piece
        path.write_bytes(data)
        return path

    def disk(self, **told):
        """What an image of Debian 12 has that a guest has read."""
        told = {'device': '/dev/vda1', 'type': 'ext4', 'python': True,
                'systemd': True, 'release': '6.1.0-56-amd64', 'rdma': True,
                'os': {'ID': 'debian', 'VERSION_ID': '12'}, **told}
        disks.check('a.raw', told)
        return disks.Disk(Path('a.raw'), 'raw', self.base, told)

    def status(self, **versions):
        """Have these packages be installed; no version: no longer."""
        (self.base / 'status').write_text(''.join(
            f'Package: {name}\nStatus: ' + (
                f'install ok installed\nSection: x\nDescription: a\n b\n'
                f'Version: {version}\n' if version else
                'deinstall ok config-files\nVersion: 1\n') + '\n'
            for name, version in versions.items()), encoding='utf-8')

    def test_disks_with_partitions_or_a_file_system_are_images(self):
        for kind, piece in (('qcow2', (0, b'QFI\xfb\0\0\0\3')),
                            ('raw', (0x1fe, b'\x55\xaa')),
                            ('raw', (0x438, b'\x53\xef'))):
            self.assertEqual(disks.image_format(self.image(piece)), kind)

    def test_what_is_no_image_is_told(self):
        for text, piece in (('no disk image', (0, b'text')),
                            ('VMDK', (0, b'KDMV')),
                            ('xz', (0, b'\xfd7zXZ\0')),
                            ('ISO 9660', (0x8001, b'CD001'))):
            with self.assertRaisesRegex(LabError, text):
                disks.image_format(self.image(piece))
        for path, text in ((self.base, 'directory'),
                           (self.base / 'none', 'No such file')):
            with self.assertRaisesRegex(LabError, text):
                disks.image_format(path)

    def test_systems_that_guests_cannot_be_are_told(self):
        with self.assertRaisesRegex(LabError, 'vda1: crypto_LUKS.*LVM'):
            disks.check('a.raw', {'partitions': 'vda1: crypto_LUKS'})
        for text, told in (
                ('Ubuntu 24.04', {'os': {'ID': 'ubuntu', 'VERSION_ID': '24.04',
                                         'PRETTY_NAME': 'Ubuntu 24.04'}}),
                ('Debian 12 and 13', {'os': {'ID': 'debian'}}),
                ('python3', {'python': False}),
                ('systemd', {'systemd': False})):
            with self.assertRaisesRegex(LabError, text):
                self.disk(**told)

    def test_kernels_that_cannot_have_the_driver_are_told(self):
        diskboot.check_kernel(self.disk())
        for text, told in (
                ('no kernel', {'release': None}),
                ('"generic" or "nocloud".*--kernel 6.1',
                 {'rdma': False, 'release': '6.1.0-56-cloud-amd64'})):
            with self.assertRaisesRegex(LabError, text):
                diskboot.check_kernel(self.disk(**told))
        self.status(libc6='2.36-9')
        with self.assertRaisesRegex(LabError, "none of Debian's"):
            diskboot.compile_driver(self.disk())

    def test_packages_of_an_image_have_versions(self):
        self.status(libibverbs1='44.0-2', perftest='4.5', gone=None)
        disk = self.disk()
        self.assertEqual(disk.installed('libibverbs1'), '44.0-2')
        self.assertEqual(disk.installed('perftest'), '4.5')
        self.assertIsNone(disk.installed('gone'))
        self.assertIsNone(disk.installed('ibverbs1'))

    def test_a_provider_that_does_not_fit_is_told(self):
        library = self.base / 'provider.so'
        library.write_bytes(b'\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4\0')
        self.status(libc6='2.36-9+deb12u14', libibverbs1='56.1-1')
        diskboot.check_provider(self.disk(), library)
        self.status(libc6='2.33-1')
        with self.assertRaisesRegex(LabError, 'libc6 is 2.33-1.*wants 2.34'):
            diskboot.check_provider(self.disk(), library)
        self.status(libc6='2.41-12', libibverbs1='65.0-1')
        with self.assertRaisesRegex(LabError, 'none after 56'):
            diskboot.check_provider(self.disk(), library)

    def test_there_is_one_for_all_guests_or_one_for_each(self):
        self.assertEqual(images.count([], None), 2)
        self.assertEqual(images.count(['a'], None), 2)
        self.assertEqual(images.count(['a', 'b', 'a'], None), 3)
        self.assertEqual(images.count(['a'], 5), 5)
        with self.assertRaisesRegex(LabError, '2 times.*once for each'):
            images.count(['a', 'b'], 3)


if __name__ == '__main__':
    tap.main()
