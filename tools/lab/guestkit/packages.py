# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages without installation: resolve, fetch, unpack.

A package index may list a version whose file the mirror does not have. So
callers get all candidates, newest first, and try the next one if a download
fails.
"""
import os
import re
import subprocess

from .paths import DEBS, LabError, say


class Apt:
    """Runs apt, with the machine's configuration or with private package
    lists."""

    def __init__(self, options=(), store=DEBS):
        """@options: of apt's command line, for example to select private
        lists; @store: the directory for fetched packages, all of one
        architecture"""
        self.options = list(options)
        self.store = store

    def _run(self, tool, *args, cwd=None):
        env = dict(os.environ, LC_ALL='C')
        return subprocess.run([tool, *self.options, *args], cwd=cwd, env=env,
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)

    def names(self, prefix):
        """All packages whose names begin with the prefix."""
        return sorted(self._run('apt-cache', 'pkgnames', prefix).stdout
                      .split())

    def records(self, package):
        """The control fields of all known versions of a package, newest first:
        a list of dictionaries."""
        shown = self._run('apt-cache', 'show', package)
        records = []
        for stanza in shown.stdout.split('\n\n'):
            fields = dict(re.findall(r'^([A-Za-z0-9-]+): (.*)$', stanza,
                                     re.M))
            if 'Version' in fields and 'Filename' in fields:
                records.append(fields)
        return records

    def simulate(self, packages):
        """apt's plan to reinstall these packages, without recommended ones."""
        return self._run('apt-get', '--simulate', '--reinstall',
                         '--no-install-recommends', 'install',
                         *packages).stdout

    def refusal(self, packages):
        """Why apt cannot install these packages."""
        return self._run('apt-get', '--simulate', 'install',
                         *packages).stderr.strip()

    def cached(self, package, version):
        """The .deb in the package cache, or None."""
        name = f'{package}_{version.replace(":", "%3a")}_'
        return next(iter(sorted(self.store.glob(name + '*.deb'))), None)

    def download(self, packages):
        """Download packages into the package cache; the first line of apt's
        error, or ''."""
        self.store.mkdir(parents=True, exist_ok=True)
        got = self._run('apt-get', 'download', '-q', *packages,
                        cwd=self.store)
        why = got.stderr.strip().splitlines() or ['no reason given']
        return why[0] if got.returncode else ''

    def fetch(self, package, version):
        """Download this version into the package cache if it is not there: the
        .deb, or None if the archive does not have it."""
        deb = self.cached(package, version)
        if deb:
            return deb
        why = self.download([f'{package}={version}'])
        deb = self.cached(package, version)
        if not deb or why:
            say(f'  cannot fetch {package} {version}: {why}')
            return None
        return deb


def fetch_many(apt, wanted):
    """Like fetch_set(), but with one call of apt for all packages."""
    missing = [f'{package}={version}' for package, version in wanted
               if not apt.cached(package, version)]
    if missing:
        apt.download(missing)
    return fetch_set(apt, wanted)


def fetch_set(apt, wanted):
    """Fetch (package, version) pairs: the list of files, or None if one of
    them is missing."""
    files = []
    for package, version in wanted:
        deb = apt.fetch(package, version)
        if deb is None:
            return None
        files.append(deb)
    return files


def unpack(debs, root):
    """Unpack packages into a directory, without running their scripts."""
    root.mkdir(parents=True, exist_ok=True)
    for deb in debs:
        done = subprocess.run(['dpkg', '-x', str(deb), str(root)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            deb.unlink(missing_ok=True)
            raise LabError(f'cannot unpack {deb.name}: '
                           f'{done.stderr.strip()}')
