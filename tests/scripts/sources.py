#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/fetch.py with Debian's apt and a small archive of sources."""
import hashlib
import io
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / 'scripts'))
import fetch    # pylint: disable=wrong-import-position

# Only the name of an installed package makes apt look for releases.
PACKAGE = 'apt'
# For an archive without signatures
TRUSTED = '\nTrusted: yes'
RELEASE = '''Suite: {0}
Codename: {0}
SHA256:
 {1}
'''
SOURCES = '''Package: {0}
Binary: {0}
Version: {1}-1
Architecture: all
Format: 3.0 (quilt)
Directory: pool
Files:
 {2}
 {3}
Checksums-Sha256:
 {4}
 {5}
'''


def entry(kind, data, name):
    return f'{hashlib.new(kind, data).hexdigest()} {len(data)} {name}'


def tarball(text):
    """A compressed tar archive with one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w:xz') as tar:
        info = tarfile.TarInfo('apt/taste')
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    return out.getvalue()


class Sources(unittest.TestCase):
    def setUp(self):
        work = tempfile.TemporaryDirectory(prefix='sources-test-')
        self.addCleanup(work.cleanup)
        self.base = Path(work.name)
        self.archive = self.base / 'archive'
        self.work = self.base / 'work'

    def add_suite(self, suite, version):
        """Add a suite that has one version of the package."""
        files = {
            f'{PACKAGE}_{version}-1.dsc': b'Format: 3.0 (quilt)\n',
            f'{PACKAGE}_{version}.orig.tar.xz': tarball(version.encode())}
        (self.archive / 'pool').mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (self.archive / 'pool' / name).write_bytes(data)
        index = SOURCES.format(
            PACKAGE, version,
            *(entry(kind, data, name) for kind in ('md5', 'sha256')
              for name, data in files.items())).encode()
        dists = self.archive / 'dists' / suite
        path = 'main/source/Sources'
        (dists / path).parent.mkdir(parents=True)
        (dists / path).write_bytes(index)
        (dists / 'Release').write_text(
            RELEASE.format(suite, entry('sha256', index, path)),
            encoding='ascii')

    def fetch(self, series):
        """Fetch a series of the package, and return what its file says."""
        dest = self.base / f'source-{series}'
        command = ['fetch.py', '--work', str(self.work), 'source', PACKAGE,
                   series, str(dest)]
        with mock.patch.object(fetch, 'machine_archive', return_value=(
                self.archive.as_uri() + TRUSTED, None)), \
                mock.patch.dict('os.environ', {'SOURCE_CACHE': ''}), \
                mock.patch.object(sys, 'argv', command), \
                mock.patch.object(sys, 'stdout', io.StringIO()) as said:
            try:
                fetch.main()
            except SystemExit as e:
                raise AssertionError(f'{e}:\n{said.getvalue()}') from e
        return (dest / 'taste').read_text(encoding='ascii')

    def test_a_source_comes_from_the_suite_that_has_its_series(self):
        self.add_suite(fetch.SOURCE_SUITE, '1.2')
        self.add_suite('sid', '2.0')
        self.assertEqual(self.fetch('1.2'), '1.2')
        self.assertEqual(self.fetch('2.0'), '2.0')

    def test_a_series_that_no_suite_has_is_an_error(self):
        self.add_suite(fetch.SOURCE_SUITE, '1.2')
        with self.assertRaisesRegex(
                AssertionError, f'no source of {PACKAGE} 1.3 in '
                f'{fetch.SOURCE_SUITE}.*, sid: put a tarball, such as '
                f'{PACKAGE}_1.3.orig.tar.xz, .*SOURCE_CACHE'):
            self.fetch('1.3')

    def test_the_machine_has_a_codename_or_a_moving_suite(self):
        url = 'http://archive/debian'
        for version, suites, own in (
                ('', ('testing', 'forky'), 'forky'),
                ('', ('trixie', 'testing'), 'testing'),
                ('', ('sid',), 'sid'),
                ('', ('stable', 'testing'), 'testing'),
                ('14', ('stable', 'testing'), 'stable'),
                ('14', ('testing', 'forky'), 'forky')):
            release = {'VERSION_CODENAME': 'forky', 'VERSION_ID': version}
            named = [(f'{url}/{suite}', suite, None) for suite in (
                *suites, *(f'{suite}-security' for suite in suites))]
            with self.subTest(suites), \
                    mock.patch.object(fetch, 'os_release', release.get), \
                    mock.patch.object(fetch, 'machine_sources',
                                      return_value=named):
                self.assertEqual(fetch.machine_archive(),
                                 (f'{url}/{own}', None))
                self.assertEqual(fetch.archive_of('trixie-security'),
                                 (f'{url}/{own}-security', None))
                made = fetch.sources_for('trixie')
                self.assertIn(f'URIs: {url}/{own}\nSuites: trixie\n', made)
                self.assertIn('Suites: trixie-security\n', made)

    def test_a_machine_without_its_suite_is_an_error(self):
        with mock.patch.object(fetch, 'codename', return_value='forky'), \
                mock.patch.object(fetch, 'machine_sources',
                                  return_value=[('u', 'bookworm', None)]), \
                self.assertRaisesRegex(
                    fetch.FetchError, 'no Debian archive in /etc/apt has the '
                    'suite forky: add one.*SOURCE_CACHE'):
            fetch.machine_archive()


if __name__ == '__main__':
    tap.main()
