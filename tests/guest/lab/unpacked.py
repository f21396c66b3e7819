# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of Debian that the machine does not have: unpacked below the build
directory, and seen by a command in a guest as if they were installed there."""
import re
import shutil

from guestkit.packages import Apt, fetch_set, unpack
from guestkit.paths import STATE, state_lock

from .places import PROGRAMS
from .runner import Skip

SCRIPT = PROGRAMS / 'with_packages.sh'


def _needed(apt, packages):
    """(package, version) of all that is to be installed for these, of the
    packages and of what the machine lacks besides."""
    plan = apt.simulate(packages)
    return re.findall(r'^Inst (\S+) (?:\[\S+\] )?\((\S+)', plan, re.M)


def _with_others(apt, wanted):
    """Files of these (package, version) pairs. In the place of a package
    that cannot be had, one of another version."""
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
    """Files of the packages, all of one version, and of what they need; of
    those in `alone` the files, and nothing that they need."""
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
    """Make the links to libraries that installing would make."""
    for library in sorted(root.glob('usr/lib/libpsm1/*.so.1.*')):
        name = library.name.partition('.so.1')[0] + '.so.1'
        (root / 'usr' / 'lib' / name).symlink_to(
            library.relative_to(root / 'usr' / 'lib'))


def tree(name, packages, alone=()):
    """The directory of these packages; skips if they cannot be had."""
    root = STATE / 'applications' / name
    with state_lock():
        if not (root / 'ready').exists():
            debs = _fetch(Apt(), packages, alone)
            if not debs:
                raise Skip(f'no packages {" ".join([*packages, *alone])} to '
                           'be had')
            unpack(debs, root)
            # Some packages have files in /lib, which is /usr/lib.
            if (root / 'lib').exists():
                shutil.copytree(root / 'lib', root / 'usr' / 'lib',
                                symlinks=True, dirs_exist_ok=True)
            _link(root)
            (root / 'ready').touch()
    return root


def inside(root):
    """What to put before a command that uses the packages."""
    return f'{SCRIPT} {root}'
