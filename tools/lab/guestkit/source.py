# SPDX-License-Identifier: GPL-2.0-or-later
"""The source of Debian's kernels, from the packages linux-source-*."""
from . import suites
from .driver import run_logged
from .packages import unpack
from .paths import Unavailable, say


def _packages(series, version):
    """(Apt, version) of the packages of a series, best first. @version: the
    preferred one."""
    found = []
    for apt, _ in suites.sources():
        for record in apt.records(f'linux-source-{series}'):
            if record['Version'] not in (has for _, has in found):
                found.append((apt, record['Version']))
    return sorted(found, key=lambda each: each[1] != version)


def unpack_source(series, directory, log, options=(), version=''):
    """Unpack the source of a series into a directory: (version, tree).
    @options: of tar, to leave parts out; @version: see _packages()"""
    package = f'linux-source-{series}'
    for apt, its in _packages(series, version):
        if not apt.cached(package, its):
            say(f'{package} {its}: fetching')
        deb = apt.fetch(package, its)
        if deb is None:
            continue
        unpack([deb], directory)
        ball = next(directory.glob('usr/src/linux-source-*.tar.*'))
        run_logged(f'the source of Linux {series}', log,
                   ['tar', '-xf', str(ball), '-C', str(directory), *options])
        ball.unlink()
        return its, directory / package
    raise Unavailable(f'no archive has a package {package}')
