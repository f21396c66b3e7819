#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks of the Debian packages that need no build."""
import re
import subprocess
import sys
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / 'tools' / 'lab'))

from guestkit import providers    # noqa: E402

DEBIAN = TOP / 'packaging' / 'debian'
# Parts of the host that the lab does not use
FOR_OTHERS = 'virtio-rdma-server', 'vrdma-exporter'


def stanzas(path):
    """The fields of each paragraph of a control file."""
    for text in re.split(r'\n\n+', path.read_text(encoding='utf-8').strip()):
        yield dict(re.findall(r'^([A-Za-z-]+): *(.*(?:\n[ \t].*)*)', text,
                              re.M))


def depends(fields):
    found = ', '.join(fields.get(name, '') for name in
                      ('Depends', 'Recommends'))
    return set(re.findall(r'(?:^|, |,\n )([a-z0-9.+-]+)', found))


class Packages(unittest.TestCase):
    def setUp(self):
        self.source, *self.packages = stanzas(DEBIAN / 'control')
        self.rules = (DEBIAN / 'rules').read_text(encoding='utf-8')

    def test_every_package_is_described(self):
        self.assertEqual(self.source['Source'], 'virtio-rdma')
        self.assertEqual(len(self.packages), 7)
        for fields in self.packages:
            for name in ('Architecture', 'Depends', 'Description'):
                self.assertTrue(fields.get(name), fields['Package'])
            for line in fields['Description'].splitlines():
                self.assertLessEqual(len(line), 80, line)

    def test_files_beside_control_belong_to_a_package(self):
        names = {fields['Package'] for fields in self.packages}
        for path in DEBIAN.glob('*.*'):
            self.assertIn(path.stem.rstrip('@'), names)
        for name in names:
            self.assertTrue((DEBIAN / f'{name}.install').is_file(), name)

    def test_files_of_the_tree_that_they_name_are_there(self):
        named = [line for kind in ('manpages', 'dkms')
                 for path in DEBIAN.glob(f'*.{kind}')
                 for line in path.read_text(encoding='utf-8').split()]
        named += re.findall(r'(?:tools|tests)/[\w/.*-]+(?=\s)', self.rules)
        self.assertGreater(len(named), 5)
        for name in named:
            self.assertTrue(any(path.is_file() for path in TOP.glob(name)),
                            name)

    def test_what_is_built_is_installed_by_one_package(self):
        """dh_missing would tell only at the end of a build. Packages that
        exclude each other may have the same files."""
        instead = {p['Package'] for p in self.packages if 'Conflicts' in p}
        lines = {path.stem: path.read_text(encoding='utf-8').split()
                 for path in DEBIAN.glob('*.install')}
        taken = [line for name, its in lines.items() for line in its
                 if name not in instead]
        self.assertEqual(sorted(taken), sorted(set(taken)))
        self.assertIn('usr/src', taken)
        self.assertIn('etc/libibverbs.d', taken)

    def test_the_lab_depends_on_parts_of_its_version(self):
        lab = {p['Package']: p for p in self.packages}['vrdma-lab']
        for fields in self.packages:
            if fields is not lab and 'Conflicts' not in fields and \
                    fields['Package'] not in FOR_OTHERS:
                self.assertIn(f'{fields["Package"]} (>= ${{source:Version}})',
                              lab['Depends'])

    def test_providers_depend_on_their_private_abi(self):
        """Releases with an ABI end where those with the next one begin."""
        found = {p['Package']: p for p in self.packages}
        after = [*providers.ABIS[1:], providers.LAST + 1]
        self.assertEqual({*providers.PACKAGES.values()},
                         {name for name in found if 'provider' in name})
        self.assertLessEqual({*providers.PACKAGES}, {*providers.ABIS})
        for abi, end in zip(providers.ABIS, after):
            if abi not in providers.PACKAGES:
                continue
            name = providers.PACKAGES[abi]
            for bound in f'>= {abi}~', f'<< {end}~':
                self.assertIn(f'libibverbs1 ({bound})',
                              found[name]['Depends'])
            files = (DEBIAN / f'{name}.install').read_text(encoding='utf-8')
            self.assertIn(f'libvirtio_rdma-rdmav{abi}.so', files)

    def test_no_part_of_the_project_lists_a_package_twice(self):
        text = (TOP / 'scripts/packages.list').read_text(encoding='utf-8')
        for part in re.split(r'^\[', text, flags=re.M)[1:]:
            title, *names = re.sub('#.*', '', part).split()
            self.assertEqual(len(names), len({*names}), title)

    def test_providers_replace_each_other(self):
        first, *others = [p for p in self.packages if
                          p['Package'].startswith('ibverbs-provider')]
        for fields in others:
            for name in 'Conflicts', 'Replaces', 'Provides':
                self.assertIn(first['Package'], fields[name])

    def test_firmware_is_that_of_debian(self):
        """The directories in which QEMU looks for it are those of these."""
        qemu = {p['Package']: p for p in
                self.packages}['qemu-system-x86-virtio-rdma']
        self.assertLessEqual({'seabios', 'qemu-system-data', 'ipxe-qemu'},
                             depends(qemu))

    def test_versions_are_in_the_file_version_alone(self):
        version = (TOP / 'VERSION').read_text(encoding='utf-8').strip()
        self.assertRegex(version, r'^\d+\.\d+\.\d+$')
        for path in DEBIAN.rglob('*'):
            if path.is_file():
                self.assertNotIn(version, path.read_text(encoding='utf-8'),
                                 path)
        self.assertFalse((DEBIAN / 'changelog').exists())

    def test_licences_have_their_texts_and_files(self):
        used, told, globs = set(), set(), []
        for fields in stanzas(DEBIAN / 'copyright'):
            lines = fields.get('License', '').splitlines()
            if 'Files' in fields:
                used.update(re.split(' or ', lines[0]))
                globs += fields['Files'].split()
            elif lines:
                told.add(lines[0])
                self.assertGreater(len(lines), 1, lines)
        self.assertEqual(used, told)
        for glob in globs:
            self.assertTrue(list(TOP.glob(glob)), glob)

    def test_files_with_other_licences_are_named(self):
        """BSD and the note of the kernel: not where others would have it."""
        globs = {glob for fields in stanzas(DEBIAN / 'copyright')
                 for glob in fields.get('Files', '').split()}
        found = subprocess.run(
            ['grep', '-rlE', 'SPDX-License-Identifier: .*'
             '(BSD-2-Clause|Linux-syscall-note)',
             'guest', 'include', 'hw', 'backends', 'qapi', 'tools'],
            cwd=TOP, text=True, capture_output=True, check=True)
        for name in found.stdout.split():
            self.assertTrue(any(glob != '*' and name.startswith(
                glob.rstrip('*')) for glob in globs), name)


if __name__ == '__main__':
    tap.main()
