# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian programs that the machine does not have. They are unpacked below the
build directory, and a command in a guest sees them as if they were
installed."""
import re
import shutil

from guestkit.packages import Apt, fetch_set, unpack
from guestkit.paths import STATE, state_lock

from .places import PROGRAMS
from .runner import Skip

SCRIPT = PROGRAMS / 'with_packages.sh'


def _needed(apt, packages):
    """Return (package, version) of all packages to install for these:
    themselves, and dependencies that the machine lacks."""
    plan = apt.simulate(packages)
    return re.findall(r'^Inst (\S+) (?:\[\S+\] )?\((\S+)', plan, re.M)


def _with_others(apt, wanted):
    """Fetch these (package, version) pairs, and return their files. If a
    version is not available, fetch another one."""
    files = []
    for package, version in wanted:
        others = [r['Version'] for r in apt.records(package)]
        found = (apt.fetch(package, v) for v in
                 [version, *(o for o in others if o != version)])
        deb = next((f for f in found if f), None)
        if not deb:
            return None
        files.append(deb)
    return files


def _fetch(apt, packages, alone):
    """Return files of the packages, all of one version, and of their
    dependencies. Packages in `alone` come without their dependencies."""
    for record in apt.records(packages[0]):
        version = record['Version']
        pinned = [f'{p}={version}' for p in packages]
        needed = [n for n in _needed(apt, pinned) if n[0] not in packages]
        named = fetch_set(apt, [(p, version) for p in packages])
        more = named and _with_others(
            apt, needed + [(p, version) for p in alone])
        if more:
            return named + more
        if named and not needed and not alone:
            return named
    return None


def _link(root):
    """Create the links to libraries that an installation would create."""
    for library in sorted(root.glob('usr/lib/libpsm1/*.so.1.*')):
        name = library.name.partition('.so.1')[0] + '.so.1'
        (root / 'usr' / 'lib' / name).symlink_to(
            library.relative_to(root / 'usr' / 'lib'))


def tree(name, packages, alone=()):
    """Return the directory of these packages. Skip if they are not
    available."""
    root = STATE / 'applications' / name
    with state_lock():
        if not (root / 'ready').exists():
            debs = _fetch(Apt(), packages, alone)
            if not debs:
                raise Skip('not available: packages '
                           f'{" ".join([*packages, *alone])}')
            unpack(debs, root)
            # Some packages have files in /lib, which is /usr/lib.
            if (root / 'lib').exists():
                shutil.copytree(root / 'lib', root / 'usr' / 'lib',
                                symlinks=True, dirs_exist_ok=True)
            _link(root)
            (root / 'ready').touch()
    return root


def inside(root):
    """Return the words before a command that uses the packages."""
    return f'{SCRIPT} {root}'
