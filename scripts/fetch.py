#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Fetch and unpack files of Debian's archive, without changing the system.

  fetch.py source NAME SERIES DEST   the upstream source of package NAME whose
                                     version begins with SERIES
  fetch.py deb NAME DEST             the files of the binary package NAME

Source tarballs come from a directory (--cache or $SOURCE_CACHE) if they are
there. Otherwise apt fetches them with a private configuration in --work, made
from the machine's own sources: the same mirror and keyring, other suites.
"""

import argparse
import fcntl
import hashlib
import http.client
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

# The suite with QEMU 10.0 and rdma-core 56: Debian 13
SOURCE_SUITE = 'trixie'
# Suites that have later versions, for some time
LATER_SUITES = (f'{SOURCE_SUITE}-backports', 'testing', 'sid')
# Tarballs with their SHA-256, which an archive may keep when its index has
# only later versions, or when it lists versions that it does not have.
KEPT = {
    ('qemu', '11.1'): (
        'qemu_11.1.1+ds.orig.tar.xz',
        '0b1376e75dbe3e2fea4e408f8669f88a723f419f36a5b7d74cc6a4cfe07e4f5e'),
}


class FetchError(Exception):
    pass


def os_release(key):
    text = Path('/etc/os-release').read_text(encoding='utf-8')
    found = re.search(rf'^{key}=(.*)$', text, re.M)
    return found[1].strip('"') if found else ''


def codename():
    return os_release('VERSION_CODENAME')


def one_line_sources(text):
    """Entries of a .list file as (uri, suite, options)."""
    for line in text.splitlines():
        found = re.match(r'\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)', line)
        if found:
            options = dict(o.split('=', 1) for o in (found[1] or '').split()
                           if '=' in o)
            yield found[2], found[3], {k.lower(): v
                                       for k, v in options.items()}


def deb822_sources(text):
    """Entries of a .sources file as (uri, suite, options)."""
    for stanza in re.split(r'\n\s*\n', text):
        stanza = re.sub(r'^#.*\n?', '', stanza, flags=re.M)
        fields = {k.lower(): v.strip() for k, v in re.findall(
            r'^(\S+?):((?:.*)(?:\n[ \t].*)*)', stanza, re.M)}
        if (fields.get('enabled', 'yes').lower() == 'no' or
                'deb' not in fields.get('types', '').split()):
            continue
        for uri in fields.get('uris', '').split():
            for suite in fields.get('suites', '').split():
                yield uri, suite, fields


def machine_sources():
    """(uri, suite, signed-by or None) of each Debian archive that this
    machine installs from."""
    files = [Path('/etc/apt/sources.list')]
    parts = Path('/etc/apt/sources.list.d')
    files += sorted(parts.glob('*.list')) + sorted(parts.glob('*.sources'))
    for path in files:
        if not path.is_file():
            continue
        parse = (deb822_sources if path.suffix == '.sources'
                 else one_line_sources)
        for uri, suite, options in parse(path.read_text(encoding='utf-8')):
            # Third parties may use the suite's name, but not Debian's key.
            signed = options.get('signed-by')
            if not signed or 'debian-archive' in signed:
                yield uri, suite, signed


def machine_suite():
    """This machine's suite, by the name that its sources have for it."""
    names = {suite for _, suite, _ in machine_sources()}
    # A suite that is not released has no version.
    moving = (('stable', 'oldstable') if os_release('VERSION_ID')
              else ('testing', 'unstable', 'sid'))
    own = codename()
    return next((name for name in (own, *moving) if name in names), own)


def machine_archive():
    """(uri, signed-by or None) of the archive this machine installs from."""
    own = machine_suite()
    for uri, suite, signed in machine_sources():
        if suite == own:
            return uri, signed
    what = f'the suite {own}' if own else \
        'a suite of this machine, which /etc/os-release does not name'
    raise FetchError(f'no Debian archive in /etc/apt has {what}: add one to '
                     '/etc/apt/sources.list.d. To build from tarballs in a '
                     'directory instead, set SOURCE_CACHE to it')


def archive_of(suite):
    """(uri, signed-by or None) of the archive with this suite."""
    if suite.endswith('-security'):
        own = f'{machine_suite()}-security'
        for uri, name, signed in machine_sources():
            if name == own:
                return uri, signed
        raise FetchError('no archive in /etc/apt has the security updates '
                         f'{own}: add one to /etc/apt/sources.list.d')
    return machine_archive()


def source_entry(types, uri, suite, signed):
    """An entry of a .sources file."""
    return (f'Types: {types}\nURIs: {uri}\nSuites: {suite}\n'
            'Components: main\n' +
            (f'Signed-By: {signed}\n' if signed else ''))


def sources_for(suite):
    """A .sources file for another Debian, with this machine's archives for its
    main suite, updates and security, in this order."""
    own = machine_suite()
    first = machine_archive()
    wanted = [(*first, suite)]
    for uri, name, signed in machine_sources():
        if re.fullmatch(rf'{own}(-updates|-security)', name):
            wanted.append((uri, signed, suite + name[len(own):]))
    return '\n'.join(source_entry('deb', uri, name, signed)
                     for uri, signed, name in wanted)


class Apt:
    """apt with private lists and cache, for one suite, or for several suites
    of one archive with spaces between them; it prefers the first. With an
    architecture, it acts as on such a machine without installed packages."""

    def __init__(self, work, suite, types, arch=''):
        self.base = work / 'apt' / '-'.join(
            filter(None, (*suite.split(), types, arch)))
        self.suite, self.types = suite, types
        parts = self.base / 'parts'
        for sub in ('parts', 'lists/partial', 'cache/archives/partial'):
            (self.base / sub).mkdir(parents=True, exist_ok=True)
        uri, signed = archive_of(suite)
        (parts / 'private.sources').write_text(
            source_entry(types, uri, suite, signed), encoding='utf-8')
        self.options = ['-q']
        if ' ' in suite:
            # With sources alone, apt knows no release, and refuses the option
            # if such a package is installed.
            self.options += ['-o', 'APT::Default-Release=' + suite.split()[0]]
        for key, value in (('Dir::Etc::SourceList', '/dev/null'),
                           ('Dir::Etc::SourceParts', parts),
                           ('Dir::Etc::Preferences', '/dev/null'),
                           ('Dir::Etc::PreferencesParts', '/dev/null'),
                           ('Dir::State::Lists', self.base / 'lists'),
                           ('Dir::Cache', self.base / 'cache'),
                           ('APT::Sandbox::User', 'root')):
            self.options += ['-o', f'{key}={value}']
        if arch:
            status = self.base / 'status'
            status.write_text('', encoding='utf-8')
            self.options += ['-o', f'Dir::State::status={status}',
                             '-o', f'APT::Architecture={arch}',
                             '-o', f'APT::Architectures::={arch}']
        self.run('apt-get', 'update')

    def run(self, tool, *args, cwd=None):
        print('+', tool, *args, f'({self.suite})', flush=True)
        done = subprocess.run([tool, *self.options, *args], cwd=cwd,
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False,
                              env=dict(os.environ, LC_ALL='C'))
        print(done.stdout, end='', flush=True)
        return done

    def versions(self, name):
        """The versions in the index, newest first."""
        kind = 'Sources' if self.types == 'deb-src' else ''
        found = []
        for line in self.run('apt-cache', 'madison', name).stdout.splitlines():
            fields = [f.strip() for f in line.split('|')]
            if (len(fields) == 3 and fields[0] == name and
                    fields[2].endswith(kind) and fields[1] not in found):
                found.append(fields[1])
        return found


def series_of(version, series):
    """Whether a version of Debian belongs to the upstream series."""
    return re.match(r'(\d+:)?' + re.escape(series) + r'(\D|$)', version)


def version_key(path):
    return [int(n) for n in re.findall(r'\d+', path.name)]


def tarballs(directory, name, series):
    """The source tarballs of a series, newest first, with names of Debian or
    of upstream."""
    pattern = re.compile(rf'{re.escape(name)}(?:_({re.escape(series)}[^_]*)'
                         rf'\.orig|-({re.escape(series)}[^_]*))'
                         r'\.tar\.(xz|gz|bz2)$')
    found = []
    for path in directory.iterdir() if directory.is_dir() else ():
        match = pattern.match(path.name)
        if match and series_of(match[1] or match[2], series):
            found.append(path)
    return sorted(found, key=version_key, reverse=True)


def download_kept(name, series, store):
    """Fetch a tarball that no index lists. Return its path, or None."""
    file, digest = KEPT.get((name, series), (None, None))
    if not file:
        return None
    url = f'{machine_archive()[0]}/pool/main/{name[0]}/{name}/{file}'
    print('+ fetch', url, flush=True)
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            data = answer.read()
    except (OSError, http.client.HTTPException) as e:
        print(f'{url}: {e}')
        return None
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise FetchError(f'{url} has the SHA-256 {found}, expected {digest}')
    partial = store / f'{file}.partial'
    partial.write_bytes(data)
    partial.rename(store / file)
    return store / file


def download_source(name, series, work):
    store = work / 'source'
    store.mkdir(parents=True, exist_ok=True)
    suites = [SOURCE_SUITE]
    if codename() not in ('', SOURCE_SUITE):
        suites.append(f'{codename()}-backports')
    suites += LATER_SUITES
    for suite in suites:
        apt = Apt(work, suite, 'deb-src')
        for version in apt.versions(name):
            if not series_of(version, series):
                continue
            # Only the tarball: an archive may lack a package's other files,
            # and Debian's patches are not needed.
            got = apt.run('apt-get', 'source', '--download-only',
                          '--tar-only', f'{name}={version}', cwd=store)
            have = tarballs(store, name, series)
            if got.returncode == 0 and have:
                return have[0]
    kept = download_kept(name, series, store)
    if kept:
        return kept
    raise FetchError(f'{machine_archive()[0]} has no source of {name} '
                     f'{series} in {", ".join(suites)}: put a tarball, such '
                     f'as {name}_{series}.orig.tar.xz, into a directory, and '
                     'set SOURCE_CACHE to it' +
                     ('; or name a source tree: make QEMU_SRC=DIR'
                      if name == 'qemu' else ''))


def fetch_source(args):
    for origin in (args.cache, args.work / 'source'):
        have = tarballs(origin, args.name, args.series) if origin else []
        if have:
            tarball = have[0]
            break
    else:
        tarball = download_source(args.name, args.series, args.work)

    def unpack(into):
        subprocess.run(['tar', '-x', '--no-same-owner',
                        '--strip-components=1', '-C', str(into), '-f',
                        str(tarball)], check=True)
    return tarball.name, unpack


def fetch_deb(args):
    store = args.work / 'deb'
    store.mkdir(parents=True, exist_ok=True)
    # Backports first, because they are built for this machine's suite
    suites = f'{codename()}-backports', SOURCE_SUITE
    for suite in suites:
        apt = Apt(args.work, suite, 'deb')
        for version in apt.versions(args.name):
            got = apt.run('apt-get', 'download', f'{args.name}={version}',
                          cwd=store)
            have = sorted(store.glob(f'{args.name}_'
                                     f'{version.replace(":", "%3a")}_*.deb'))
            if got.returncode == 0 and have:
                return have[0].name, lambda into, deb=have[0]: \
                    subprocess.run(['dpkg', '-x', str(deb), str(into)],
                                   check=True)
    raise FetchError(f'{machine_archive()[0]} has no package {args.name} in '
                     f'{", ".join(suites)}')


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.strip().splitlines()[0])
    cache = os.environ.get('SOURCE_CACHE')
    parser.add_argument('--cache', type=Path,
                        default=Path(cache) if cache else None,
                        help='directory with source tarballs '
                             '(default: $SOURCE_CACHE)')
    parser.add_argument('--work', type=Path, required=True,
                        help="directory for downloads and apt's state")
    kinds = parser.add_subparsers(dest='kind', required=True)
    source = kinds.add_parser('source')
    source.add_argument('name')
    source.add_argument('series')
    source.add_argument('dest', type=Path)
    source.set_defaults(fetch=fetch_source)
    deb = kinds.add_parser('deb')
    deb.add_argument('name')
    deb.add_argument('dest', type=Path)
    deb.set_defaults(fetch=fetch_deb)
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)

    with open(args.work / '.lock', 'w', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if args.dest.exists():
            return
        try:
            what, unpack = args.fetch(args)
            partial = args.dest.with_name(args.dest.name + '.partial')
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            unpack(partial)
            # make compares times: mark the unpacked files as new.
            os.utime(partial)
            partial.rename(args.dest)
            print(f'{what} is in {args.dest}')
        except (FetchError, subprocess.CalledProcessError, OSError) as e:
            sys.exit(f'fetch: {e}')


if __name__ == '__main__':
    main()
