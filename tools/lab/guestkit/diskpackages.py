# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages for guests that boot from disk images: fetched on this machine,
from the archive of the image's Debian, with all that the image lacks for
them."""
import hashlib
import os
import re
import shutil

from . import disks, suites
from .packages import Apt, fetch_many
from .paths import LabError, say, state_lock


def _debs(disk, missing):
    """The files of these and of all that they need in an image."""
    known = suites.apt(disk.suite)
    if not known:
        raise LabError(f'--install: no suite {disk.suite} in the archive of '
                       'this machine')
    apt = Apt([*known.options, '-o', f'Dir::State::status={disk.status}'],
              known.store)
    done = apt.simulate(missing)
    found = re.findall(r'^Inst (\S+) (?:\[\S+\] )?\((\S+)', done, re.M)
    if not found:
        raise LabError(f'--install {" ".join(missing)}: apt knows no way to '
                       f'install that in {disk.path}, which is '
                       f'{disk.suite}:\n{apt.refusal(missing)}')
    say(f'{disk.path}: fetching {len(found)} packages for '
        f'{" ".join(missing)}')
    debs = fetch_many(apt, found)
    if debs is None:
        raise LabError(f'--install {" ".join(missing)}: the archive does not '
                       'have all that this needs, see above')
    return debs


def fetch(disk, names):
    """A directory with the files that an image lacks, or None if it has all
    packages of these names."""
    missing = [name for name in names if not disk.installed(name)]
    if not missing:
        return None
    # For the same image apt has been asked before, and knows nothing else.
    key = hashlib.sha256(disk.status.read_bytes() + repr(missing).encode())
    place = disks.IMAGES / 'packages' / key.hexdigest()[:16]
    with state_lock():
        if not place.exists():
            debs = _debs(disk, missing)
            fresh = place.with_suffix('.new')
            shutil.rmtree(fresh, ignore_errors=True)
            fresh.mkdir(parents=True)
            for deb in debs:
                os.link(deb, fresh / deb.name)
            fresh.rename(place)
    return place
