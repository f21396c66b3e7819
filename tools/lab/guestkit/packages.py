# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian packages without installing them: resolve, fetch, unpack.

A package index may list a version whose file the mirror no longer has (or
has not yet), so callers get every candidate, newest first, and go on to the
next when a download fails.
"""
import os
import re
import subprocess

from .paths import DEBS, LabError, say


class Apt:
    """apt with the machine's own configuration, or with extra options that
    point it at private lists (see `options`)."""

    def __init__(self, options=(), store=DEBS):
        """@store: where packages are kept; names there have to be of one
        architecture."""
        self.options = list(options)
        self.store = store

    def _run(self, tool, *args, cwd=None):
        env = dict(os.environ, LC_ALL='C')
        return subprocess.run([tool, *self.options, *args], cwd=cwd, env=env,
                              text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)

    def names(self, prefix):
        """All packages whose names begin so."""
        return sorted(self._run('apt-cache', 'pkgnames', prefix).stdout
                      .split())

    def records(self, package):
        """Every known version of a package, newest first: a list of
        dictionaries of the control fields."""
        shown = self._run('apt-cache', 'show', package)
        records = []
        for stanza in shown.stdout.split('\n\n'):
            fields = dict(re.findall(r'^([A-Za-z0-9-]+): (.*)$', stanza,
                                     re.M))
            if 'Version' in fields and 'Filename' in fields:
                records.append(fields)
        return records

    def simulate(self, packages):
        """What apt says it would do to install these anew, without what
        they only recommend."""
        return self._run('apt-get', '--simulate', '--reinstall',
                         '--no-install-recommends', 'install',
                         *packages).stdout

    def refusal(self, packages):
        """Why apt would not install these."""
        return self._run('apt-get', '--simulate', 'install',
                         *packages).stderr.strip()

    def cached(self, package, version):
        """The .deb in the package cache, or None."""
        name = f'{package}_{version.replace(":", "%3a")}_'
        return next(iter(sorted(self.store.glob(name + '*.deb'))), None)

    def download(self, packages):
        """Have apt put these into the package cache; returns what it says
        when it cannot."""
        self.store.mkdir(parents=True, exist_ok=True)
        got = self._run('apt-get', 'download', '-q', *packages,
                        cwd=self.store)
        why = got.stderr.strip().splitlines() or ['no reason given']
        return why[0] if got.returncode else ''

    def fetch(self, package, version):
        """The .deb of exactly this version in the package cache, or None
        when the archive does not have it."""
        deb = self.cached(package, version)
        if deb:
            return deb
        why = self.download([f'{package}={version}'])
        deb = self.cached(package, version)
        if not deb or why:
            say(f'  {package} {version}: not to be had ({why})')
            return None
        return deb


def fetch_many(apt, wanted):
    """What fetch_set() does, for so many that apt is better asked once."""
    missing = [f'{package}={version}' for package, version in wanted
               if not apt.cached(package, version)]
    if missing:
        apt.download(missing)
    return fetch_set(apt, wanted)


def fetch_set(apt, wanted):
    """Fetch (package, version) pairs; the list of files, or None as soon as
    one of them is missing."""
    files = []
    for package, version in wanted:
        deb = apt.fetch(package, version)
        if deb is None:
            return None
        files.append(deb)
    return files


def unpack(debs, root):
    """Unpack packages under a directory, running nothing of theirs."""
    root.mkdir(parents=True, exist_ok=True)
    for deb in debs:
        done = subprocess.run(['dpkg', '-x', str(deb), str(root)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            deb.unlink(missing_ok=True)
            raise LabError(f'cannot unpack {deb.name}: '
                           f'{done.stderr.strip()}')
