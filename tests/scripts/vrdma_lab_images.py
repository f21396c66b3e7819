#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images that guests of vrdma-lab boot from, as far as no guest is
needed: which images are accepted, and what hostile ones cannot do."""
import contextlib
import io
import json
import lzma
import os
import queue
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / 'tools' / 'lab'))

from guestkit import (agent, diskboot, diskread, disks,    # noqa: E402
                      kernel, providers, suites, vm)
from guestkit.paths import LabError    # noqa: E402
from vrdma_lab import client, confine, images, session    # noqa: E402

RELEASE = '6.1.0-56-amd64'
OS_RELEASE = b'ID=debian\nVERSION_ID="12"\n'
# Values for facts, versions and names that would be paths, commands, or more
# than one value
HOSTILE = ('', '..', '1/../../x', '/etc', '1;touch x', '1$(touch x)', '1 2',
           '1\t2', '1\n2', '1\0', '-o', '1`x`', "1'", '1\x1b[2J', '1' * 200)


class Case(unittest.TestCase):
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
        told = {'device': '/dev/vda1', 'type': 'ext4', 'python': 'yes',
                'systemd': 'yes', 'release': RELEASE, 'rdma': 'yes',
                'os': {'ID': 'debian', 'VERSION_ID': '12'}, **told}
        told = {name: value for name, value in told.items() if value}
        disks.check('a.raw', told)
        return disks.Disk(Path('a.raw'), 'raw', self.base, told)

    def status(self, **versions):
        """Have these packages be installed; no version: no longer."""
        (self.base / 'status').write_text(''.join(
            f'Package: {name}\nStatus: ' + (
                f'install ok installed\nSection: x\nDescription: a\n b\n'
                f'Architecture: amd64\nVersion: {version}\n' if version else
                'deinstall ok config-files\nVersion: 1\n') + '\n'
            for name, version in versions.items()), encoding='utf-8')


class Images(Case):
    def test_disks_with_partitions_or_a_file_system_are_images(self):
        for kind, piece in (('qcow2', (0, b'QFI\xfb\0\0\0\3')),
                            ('raw', (0x1fe, b'\x55\xaa')),
                            ('raw', (0x438, b'\x53\xef'))):
            self.assertEqual(disks.image_format(self.image(piece)), kind)

    def test_what_is_no_image_is_told(self):
        for text, piece in (('not a disk image', (0, b'text')),
                            ('VMDK', (0, b'KDMV')),
                            ('xz', (0, b'\xfd7zXZ\0')),
                            ('ISO 9660', (0x8001, b'CD001'))):
            with self.assertRaisesRegex(LabError, text):
                disks.image_format(self.image(piece))
        for path, text in ((self.base, 'not a regular file'),
                           (self.base / 'none', 'No such file')):
            with self.assertRaisesRegex(LabError, text):
                disks.image_format(path)

    def test_systems_that_guests_cannot_be_are_told(self):
        for text, told in (
                ('Ubuntu 24.04', {'os': {'ID': 'ubuntu', 'VERSION_ID': '24.04',
                                         'PRETTY_NAME': 'Ubuntu 24.04'}}),
                ('Debian 12, 13 or testing', {'os': {'ID': 'debian'}}),
                ('python3', {'python': None}),
                ('systemd', {'systemd': None})):
            with self.assertRaisesRegex(LabError, text):
                self.disk(**told)

    def test_a_system_of_testing_has_a_name_and_no_number(self):
        disk = self.disk(os={'ID': 'debian', 'VERSION_CODENAME': 'forky'})
        self.assertEqual(disk.suite, 'forky')

    def test_kernels_that_cannot_have_the_driver_are_told(self):
        diskboot.check_kernel(self.disk())
        for text, told in (
                ('no kernel', {'release': None}),
                ('"generic" or "nocloud".*--kernel 6.1',
                 {'rdma': None, 'release': '6.1.0-56-cloud-amd64'})):
            with self.assertRaisesRegex(LabError, text):
                diskboot.check_kernel(self.disk(**told))
        self.status(libc6='2.36-9')
        with self.assertRaisesRegex(LabError, 'not from a package of Debian'):
            diskboot.compile_driver(self.disk())

    def test_packages_of_an_image_have_versions(self):
        self.status(libibverbs1='44.0-2', perftest='4.5', gone=None)
        disk = self.disk()
        self.assertEqual(disk.installed('libibverbs1'), '44.0-2')
        self.assertEqual(disk.installed('perftest'), '4.5')
        self.assertIsNone(disk.installed('gone'))
        self.assertIsNone(disk.installed('ibverbs1'))

    def test_there_is_one_for_all_guests_or_one_for_each(self):
        self.assertEqual(images.count([], None), 2)
        self.assertEqual(images.count(['a'], None), 2)
        self.assertEqual(images.count(['a', 'b', 'a'], None), 3)
        self.assertEqual(images.count(['a'], 5), 5)
        with self.assertRaisesRegex(LabError, '2 times.*once for each'):
            images.count(['a', 'b'], 3)


class Providers(Case):
    """Which provider the guests of an image have."""

    def setUp(self):
        super().setUp()
        self.status(libc6='2.36-9+deb12u14')
        for at in ('PROVIDER', 'UNPACKED', 'STATE', 'SETTINGS'):
            patched = mock.patch.object(providers, at, self.base / at)
            patched.start()
            self.addCleanup(patched.stop)

    def add(self, at, abi):
        """Make a provider for an ABI in a directory."""
        path = self.base / at
        path.mkdir(parents=True, exist_ok=True)
        path /= f'libvirtio_rdma-rdmav{abi}.so'
        path.write_bytes(b'\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.4\0')
        return path

    def library(self, packages=None):
        return providers.files(self.disk(), packages)[0]

    def from_packages(self):
        return mock.patch.multiple(
            providers, INSTALLED=True,
            provider_dir=lambda: str(self.base / 'system'))

    def test_releases_of_rdma_core_have_a_private_abi(self):
        for version, abi in (('34.0-1', 34), ('44.0-2', 34), ('56.1-1', 34),
                             ('62.0-1', 59), ('64.0-1', 64), ('65.0-1.1', 65)):
            self.assertEqual(providers.abi_of(self.disk(), version), abi)
        for version in ('33.2-1', '66.0-1'):
            with self.assertRaisesRegex(
                    LabError, f'{version}, but .* rdma-core 34 to 65'):
                providers.abi_of(self.disk(), version)

    def test_a_guest_has_the_one_that_its_libibverbs_loads(self):
        both = self.add('PROVIDER', 34), self.add('PROVIDER', 65)
        for version, library in (('44.0-2', both[0]), ('65.0-1', both[1]),
                                 (None, both[0])):
            self.status(libc6='2.43-7', libibverbs1=version)
            self.assertEqual(self.library(), library)

    def test_packages_to_install_decide_for_libibverbs(self):
        self.add('PROVIDER', 34)
        library = self.add('PROVIDER', 65)
        self.add('debs', 1)
        (self.base / 'debs' / 'libibverbs1_65.0-1.1_amd64.deb').touch()
        self.assertEqual(self.library(self.base / 'debs'), library)

    def test_a_source_tree_builds_it_from_the_first_release(self):
        self.add('PROVIDER', 34)
        self.status(libc6='2.43-7', libibverbs1='65.2-1')
        library = self.add('made', 65)
        with mock.patch.object(providers.driver, 'compile_provider',
                               return_value=[library]) as make:
            self.assertEqual(self.library(), library)
            make.assert_called_once_with(65, self.base / 'STATE/provider-65')
            self.status(libc6='2.43-7', libibverbs1='56.1-1')
            (self.base / 'PROVIDER' / 'libvirtio_rdma-rdmav34.so').unlink()
            self.add('PROVIDER', 65)
            self.library()
            self.assertEqual(make.call_args.args[0], '56.1')

    def test_a_source_tree_without_any_is_told(self):
        with self.assertRaisesRegex(LabError, 'run "make guest"'):
            self.library()

    def test_packages_of_providers_are_installed_or_unpacked(self):
        self.status(libc6='2.43-7', libibverbs1='65.0-1')
        self.add('system', 34)
        (self.base / 'SETTINGS').touch()
        with self.from_packages():
            with self.assertRaisesRegex(
                    LabError, 'libibverbs is 65.0-1.*private ABI 65.*dpkg -x '
                    'ibverbs-provider-virtio-rdma-abi65_.*UNPACKED'):
                self.library()
            library = self.add('UNPACKED/usr/lib/x86_64-linux-gnu/libibverbs',
                               65)
            self.assertEqual(self.library(), library)

    def test_an_abi_without_a_package_needs_a_source_tree(self):
        (self.base / 'SETTINGS').touch()
        for version, abi in ('57.0-1', 57), ('62.0-1', 59), ('64.0-1', 64):
            self.status(libc6='2.43-7', libibverbs1=version)
            with self.from_packages(), self.assertRaisesRegex(
                    LabError, f'{version}.*private ABI {abi}.*No package has '
                    'it: use vrdma-lab of a source tree') as error:
                self.library()
            self.assertNotIn('dpkg', str(error.exception))

    def test_no_package_of_a_provider_is_told(self):
        with self.from_packages(), self.assertRaisesRegex(
                LabError, 'install the package ibverbs-provider-virtio-rdma$'):
            self.library()

    def test_one_that_needs_a_newer_c_library_is_told(self):
        self.add('PROVIDER', 34)
        self.library()
        self.status(libc6='2.33-1')
        with self.assertRaisesRegex(LabError,
                                    'libc6 is 2.33-1.*at least 2.34'):
            self.library()


class Hostile(Case):
    """Images whose maker wants something of the host."""

    def refused(self, text, call, *arguments):
        with self.assertRaisesRegex(LabError, text, msg=arguments):
            call(*arguments)

    def kept(self, modules=(), **records):
        """Keep what a guest has read; the files, as {path: bytes}."""
        facts = (f'device=/dev/vda1\ntype=ext4\nrelease={RELEASE}\n'
                 'python=yes\nsystemd=yes\nrdma=yes\n').encode()
        out = self.base / 'out'
        disks.keep('a.raw', {
            'facts': facts, 'os-release': OS_RELEASE,
            'vmlinuz': lzma.compress(b'\x7fELF kernel'), **records}, modules,
            out)
        return {str(path.relative_to(out)): path.read_bytes()
                for path in out.rglob('*') if not path.is_dir()}

    def test_images_of_more_than_one_file_are_refused(self):
        for text, version, backing, features in (
                ('backing file.*qemu-img convert', 3, 0x200, 0),
                ('backing file', 2, 0x200, 1 << 60),
                ('backing file', 3, 1 << 63, 0),
                ('external data file.*qemu-img convert', 3, 0, 4),
                ('external data file', 3, 0, 7)):
            head = struct.pack('>4sIQ', b'QFI\xfb', version, backing)
            self.refused(text, disks.image_format, self.image(
                (0, head), (72, struct.pack('>Q', features))))
        # Version 2 has no features.
        self.assertEqual(disks.image_format(self.image(
            (0, struct.pack('>4sIQ', b'QFI\xfb', 2, 0)), (72, b'\xff' * 8))),
            'qcow2')

    def test_qemu_is_told_to_open_one_file(self):
        for kind in ('qcow2', 'raw'):
            words = disks.drive(Path('/a,b/nbd:x'), kind)
            node = json.loads(re.search(
                r'file=json:(.*),snapshot=on', words[1])[1].replace(',,', ','))
            self.assertEqual(node['file'], {'driver': 'file',
                                            'filename': '/a,b/nbd:x'})
            self.assertEqual(node['driver'], kind)
            self.assertIsNone(node.get('backing', None if kind == 'raw'
                                       else 'followed'))

    def test_images_that_are_no_files_are_refused(self):
        os.mkfifo(self.base / 'fifo')
        for path in (self.base / 'fifo', self.base, Path('/dev/zero')):
            self.refused('not a regular file', disks.image_format, path)

    def test_versions_that_are_no_versions_are_refused(self):
        for version in HOSTILE:
            if '\n' in version:
                continue    # a field ends there
            self.status(libc6=version or ' ')
            text = (self.base / 'status').read_text(encoding='utf-8')
            self.refused('for the (version|package)', disks.packages, text)
        for version in ('1:2.36-9+deb12u14', '6.12.9-1~bpo12+1'):
            self.status(libc6=version)
            self.assertEqual(self.disk().installed('libc6'), version)

    def test_make_runs_in_no_tree_of_an_image(self):
        """The directory of headers would be that of the image's files."""
        hostile = self.base / 'image' / 'files'
        hostile.mkdir(parents=True)
        proof = self.base / 'proof'
        (hostile / 'Makefile').write_text(f'modules:\n\ttouch {proof}\n')
        kernel.write_info(hostile, release=RELEASE, version='1',
                          tree=str(hostile), suite=suites.machine(),
                          compiler='gcc-12')
        for kind in ('headers', 'driver'):
            (self.base / kind / f'{RELEASE}_1').mkdir(parents=True)
        self.status(**{f'linux-image-{RELEASE}': '1/../../image/files'})
        with mock.patch.object(disks, 'IMAGES', self.base), \
                mock.patch.object(suites, 'apt', return_value=None), \
                contextlib.redirect_stderr(io.StringIO()):
            self.refused('1/../../image/files', diskboot.compile_driver,
                         self.disk())
        self.assertFalse(proof.exists())

    def test_nothing_of_an_image_names_a_directory(self):
        names = []
        for version in ('6.1.1-1', '6.1.1-2'):
            self.status(**{f'linux-image-{RELEASE}': version})
            with mock.patch.object(disks, 'IMAGES', self.base), \
                    mock.patch.object(diskboot, 'read_info',
                                      side_effect=LabError('asked')) as asked:
                self.refused('asked', diskboot.compile_driver, self.disk())
            names.append(asked.call_args[0][0])
        self.assertEqual(len(set(names)), 2)
        for name in names:
            self.assertRegex(str(name.relative_to(self.base)),
                             '^headers/[0-9a-f]{16}$')

    def test_facts_are_like_their_patterns(self):
        for name, good in (('device', '/dev/vda15'), ('type', 'xfs'),
                           ('release', '6.12.57+deb13-cloud-amd64'),
                           ('rdma', 'yes')):
            self.assertEqual(diskread.check_facts({name: good}),
                             {name: good})
            for value in (*HOSTILE, '/dev/sda', 'x', '9p', 'ext4 x', 1, ['6'],
                          good + '\n', good + ' x', good + '/..'):
                self.refused(f'^{name} ', diskread.check_facts,
                             {name: value})
        self.assertEqual(diskread.facts(b'type=ext4\nrdma=yes\nother=x\n'),
                         {'type': 'ext4', 'rdma': 'yes', 'other': 'x'})
        self.refused('^type ', diskread.facts, b'type=../x\n')

    def test_facts_that_are_kept_are_checked_again(self):
        for told in ({'release': '6.1/../x'}, {'device': '/dev/vda1 init=x'},
                     {'type': '9p'}):
            self.refused('does not match', lambda t=told: self.disk(**t))

    def test_records_are_few_and_of_a_limited_size(self):
        def stream(text):
            return io.BytesIO(text)
        found, modules = diskread.records(stream(
            b'3 facts\na=b0 module\n2 module\nab0 end\n'))
        self.assertEqual((found, modules), ({'facts': b'a=b'}, [b'', b'ab']))
        for text, data in (
                ('without size', b''), ('without size', bytes(4096)),
                ('without size', b'-1 facts\n'), ('without size', b'x\n'),
                ('without size', b'1' * 4096), ('without size', b'01 facts\n'),
                ('without size', b'1 ../etc/x\nx0 end\n'),
                ('without size', b'0 facts'),
                ('67108865 bytes', b'67108865 vmlinuz\n'),
                ('999999999 bytes', b'999999999 vmlinuz\n'),
                ('16777217 bytes', b'16777217 module\n'),
                ('65537 bytes', b'65537 os-release\n'),
                ('4097 bytes', b'4097 facts\n'),
                ('cut off', b'5 facts\na'), ('without', b'0 facts\n'),
                ('one record "facts" too', b'0 facts\n0 facts\n0 end\n'),
                ('one record "other" too', b'0 other\n0 end\n'),
                ('one record "module" too', b'0 module\n' * 65)):
            self.refused(text, diskread.records, stream(data))

    def test_files_of_an_image_have_names_of_the_lab(self):
        files = self.kept(
            [b'\x7fELF a', lzma.compress(b'\x7fELF b')],
            status=b'Package: a\nStatus: install ok installed\n'
            b'Architecture: amd64\nVersion: 1\n\n')
        self.assertEqual(
            {name: data for name, data in files.items() if name != 'status'},
            {'vmlinux': b'\x7fELF kernel', 'modules/00.ko': b'\x7fELF a',
             'modules/01.ko': b'\x7fELF b'})
        self.assertEqual(disks.packages(files['status'].decode()), [
            {'Package': 'a', 'Status': 'install ok installed',
             'Architecture': 'amd64', 'Version': '1'}])

    def test_apt_gets_few_fields_of_dpkg(self):
        files = self.kept(status=(
            b'Package: good\nStatus: install ok installed\n'
            b'Architecture: amd64\nVersion: 1:2-3\n'
            b'Depends: libc6 (>= 2.36), a | b:any\nProvides: x`id`\n'
            b'Conffiles:\n /etc/x 0\nDescription: \x1b[2J\n more\n'
            b'Depends: second\nMaintainer: x\n\n\n'
            b'Package: gone\nStatus: deinstall ok config-files\n\n'))
        self.assertEqual(files['status'], (
            b'Package: good\nStatus: install ok installed\n'
            b'Architecture: amd64\nVersion: 1:2-3\n'
            b'Depends: libc6 (>= 2.36), a | b:any\n\n'))
        for bad in ('Package: ../a', 'Package: -o', 'Architecture: a b'):
            self.refused('installed package', disks.packages, (
                f'{bad}\nPackage: a\nStatus: install ok installed\n'
                'Architecture: amd64\nVersion: 1\n'))

    def test_fields_that_nobody_needs_take_no_memory(self):
        text = 'ab: cd\n' * 150000
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        self.assertEqual(disks.packages(text), [])
        self.assertLess(tracemalloc.get_traced_memory()[1], 3 * len(text))

    def test_what_is_decompressed_is_limited(self):
        zeros = b'\x7fELF' + bytes(3 << 20)
        with mock.patch.object(kernel, 'KERNEL_MAX', 1 << 20), \
                mock.patch.object(disks, 'MODULES_MAX', 1 << 20):
            for data in (lzma.compress(zeros), gzip_of(zeros)):
                self.refused('more than 1048576 bytes',
                             lambda d=data: self.kept(vmlinuz=d))
                shutil.rmtree(self.base / 'out')
            for modules in ([lzma.compress(zeros)], [zeros],
                            [bytes(600000)] * 2):
                self.refused('more than', self.kept, modules)
                shutil.rmtree(self.base / 'out')
            self.refused('damaged', self.kept, [b'\xfd7zXZ\0' * 9])

    def test_beginnings_of_kernels_are_tried_a_few_times(self):
        for magic, _ in kernel.COMPRESSIONS:
            tried = mock.Mock(return_value=b'')
            with mock.patch.object(kernel, 'COMPRESSIONS',
                                   [(magic, tried)]):
                self.refused('no compressed kernel',
                             lambda m=magic: self.kept(vmlinuz=m * 100000))
            self.assertEqual(tried.call_count, kernel.PLACES_MAX)
            shutil.rmtree(self.base / 'out')

    def test_what_an_image_is_called_cannot_command_a_terminal(self):
        with self.assertRaises(LabError) as caught:
            self.kept(**{'os-release': b'ID=x\nPRETTY_NAME=\x1b]0;x\x07Y\n'})
        self.assertIn('this is ?]0;x?Y', str(caught.exception))


class HostileGuests(Case):
    def channel(self):
        near, far = socket.socketpair()
        self.addCleanup(far.close)
        return agent.Channel('guest', near), far

    def test_a_line_without_end_ends_the_channel(self):
        with mock.patch.object(agent, 'LINE_MAX', 4096):
            channel, far = self.channel()
            far.sendall(b'{"event": "ready"}\n')
            self.assertTrue(channel.event('ready', 60))
            far.sendall(b'{"event": "' + b'x' * 4096)
            self.assertRaises(agent.GuestGone, channel.event, 'none', 60)

    def test_events_that_nobody_waits_for_are_dropped(self):
        with mock.patch.object(agent, 'EVENTS_MAX', 10):
            channel, far = self.channel()
            for number in range(1000):
                far.sendall(b'{"event": "%d"}\n' % number)
            self.assertTrue(channel.event('999', 60))
            self.assertLessEqual(channel.events.maxsize, 10)
            far.close()
            self.assertRaises(agent.GuestGone, channel.event, 'none', 60)

    def test_events_are_short(self):
        channel, far = self.channel()
        far.sendall(b'{"event": "long", "x": "%s"}\n'
                    % (b'x' * agent.EVENT_MAX))
        far.sendall(b'{"event": "short"}\n')
        self.assertTrue(channel.event('short', 60))
        far.sendall(b'{"event": "end"}\n')
        self.assertEqual(channel.events.get(timeout=60), {'event': 'end'})

    def test_lines_that_are_no_objects_end_the_channel(self):
        for line in (b'1', b'[]', b'null', b'x', b'[' * 100000):
            channel, far = self.channel()
            far.sendall(line + b'\n')
            self.assertRaises(agent.GuestGone, channel.event, 'none', 60)

    def test_a_request_has_one_answer(self):
        channel, far = self.channel()
        far.sendall(b'{"id": []}\n{"id": {}}\n{"event": "go"}\n')
        self.assertTrue(channel.event('go', 60))
        answers = channel.pending[7] = queue.Queue()
        far.sendall(b'{"id": 7}\n' * 1000 + b'{"event": "end"}\n')
        self.assertTrue(channel.event('end', 60))
        self.assertEqual(answers.qsize(), 1)

    def test_a_guest_that_takes_nothing_holds_no_one(self):
        with mock.patch.object(agent, 'SEND_TIMEOUT', 1):
            channel, _ = self.channel()
            self.assertRaises(agent.GuestGone, channel.call,
                              {'data': 'x' * (16 << 20)}, 60)
            self.assertRaises(agent.GuestGone, channel.event, 'none', 60)
            self.assertRaises(agent.GuestGone, channel.call, {}, 60)

    def test_a_line_of_output_that_never_ends_is_cut(self):
        output, said = client.Output([1, 2]), []
        output._write = said.append
        for _ in range(100):
            output.say(1, b'x' * client.Output.LINE_MAX)
            self.assertLessEqual(len(output.rest[1]), output.LINE_MAX)
        output.end()
        self.assertEqual(b''.join(said).count(b'x'), 100 * output.LINE_MAX)
        self.assertTrue(all(line.startswith(b'[1] ')
                            for text in said for line in text.splitlines()))

    def test_a_guest_without_good_answers_is_no_success(self):
        for rc, data in ('x', ''), ([], ''), (0, '\u20ac'), (0, 1):
            guest, wire = mock.Mock(index=1, past=session.Past()), mock.Mock()
            wire.messages.return_value = []
            guest._ask.return_value = {'rc': rc, 'data': data, 'taken': None}
            guest.spawn.return_value = agent.Job(guest, 'true', 1)
            with mock.patch.object(threading, 'excepthook'):
                session.Run(wire, [guest], {
                    'timeout': None, 'after': None, 'words': ['true'],
                    'directory': '/', 'env': []}).run({1: guest})
            ends = wire.send.call_args.kwargs['ends']
            self.assertEqual(ends[1]['rc'], session.CANNOT)
            self.assertIn('sends invalid answers', ends[1]['why'])

    def test_of_a_log_the_end_is_read(self):
        log = self.base / 'log'
        with open(log, 'wb') as f:
            f.truncate(1 << 40)
            f.seek(0, os.SEEK_END)
            f.write(b'the end')
        text = vm.read_log(log)
        self.assertEqual(len(text), vm.LOG_MAX)
        self.assertTrue(text.endswith('the end'))


def gzip_of(data):
    return subprocess.run(['gzip', '-c'], input=data, capture_output=True,
                          check=True).stdout


class SharedDirectories(Case):
    # Calls of a program that is confined, and whether it can do that
    CALLS = '''
        chmod 0o1755    os.chmod("file", 0o1755)
        chmod 0o4755    os.chmod("file", 0o4755)
        chmod 0o2755    os.chmod("file", 0o2755)
        fchmod          os.fchmod(os.open("file", os.O_RDONLY), 0o4755)
        link            os.chmod("file", 0o4755, dir_fd=os.open(".", 0))
        open            os.open("a", os.O_CREAT | os.O_WRONLY, 0o4755)
        tmpfile         os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755)
        mknod file      os.mknod("b", 0o4755 | stat.S_IFREG)
        mknod null      os.mknod("c", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        mknod disk      os.mknod("d", 0o666 | stat.S_IFBLK, os.makedev(8, 0))
        old file        os.open("file", os.O_RDONLY, 0o4755)
        new file        os.open("e", os.O_CREAT | os.O_WRONLY, 0o755)
        new tmpfile     os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o755)
        fifo            os.mkfifo("f")
        socket          os.mknod("s", 0o755 | stat.S_IFSOCK)
        directory       os.mkdir("g")'''
    GOOD = {'chmod 0o1755', 'old file', 'new file', 'new tmpfile', 'fifo',
            'socket', 'directory'}

    def confined(self, code):
        return subprocess.run(
            [sys.executable, '-c', f'import os, stat\n{code}'],
            cwd=self.base, capture_output=True, text=True, check=False,
            preexec_fn=confine.confine)

    def test_no_privileges_are_left_there(self):
        confine.check()
        (self.base / 'file').touch()
        for line in self.CALLS.strip().splitlines():
            name, code = re.split('  +', line.strip(), maxsplit=1)
            done = self.confined(code)
            with self.subTest(name):
                self.assertEqual(done.returncode == 0, name in self.GOOD,
                                 done.stderr)
                if name not in self.GOOD:
                    self.assertIn('Operation not permitted', done.stderr)
        for path in self.base.iterdir():
            mode = path.lstat().st_mode
            self.assertFalse(mode & (stat.S_ISUID | stat.S_ISGID), path)
            self.assertFalse(stat.S_ISCHR(mode) or stat.S_ISBLK(mode), path)

    def test_who_writes_a_program_takes_its_privileges(self):
        path = self.base / 'file'
        path.touch()
        path.chmod(0o6755)
        done = self.confined('open("file", "w").write("x")')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o755)

    def test_calls_that_the_filter_cannot_see_through_are_not_there(self):
        for number in (437, 425):
            done = self.confined(
                'import ctypes; libc = ctypes.CDLL(None, use_errno=True); '
                f'print(libc.syscall({number}, 1, 0), ctypes.get_errno())')
            self.assertEqual(done.stdout, '-1 38\n', done.stderr)


if __name__ == '__main__':
    tap.main()
