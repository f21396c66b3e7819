# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages for guests that boot from disk images. This machine fetches them
from the archive of the image's Debian, with dependencies that the image
lacks."""
import hashlib
import os
import re
import shutil

from . import disks, suites
from .packages import Apt, fetch_many
from .paths import LabError, say, state_lock


def _debs(disk, missing):
    """The files of these packages, and of dependencies that an image lacks."""
    known = suites.apt(disk.suite)
    if not known:
        raise LabError("--install: this machine's archive has no suite "
                       f'{disk.suite}')
    apt = Apt([*known.options, '-o', f'Dir::State::status={disk.status}'],
              known.store)
    done = apt.simulate(missing)
    found = re.findall(r'^Inst (\S+) (?:\[\S+\] )?\((\S+)', done, re.M)
    if not found:
        raise LabError(f'--install {" ".join(missing)}: apt cannot install '
                       f'that in {disk.path}, which is '
                       f'{disk.suite}:\n{apt.refusal(missing)}')
    say(f'{disk.path}: fetching {len(found)} packages for '
        f'{" ".join(missing)}')
    debs = fetch_many(apt, found)
    if debs is None:
        raise LabError(f'--install {" ".join(missing)}: the archive lacks '
                       'one of these packages, or a dependency: see above')
    return debs


def fetch(disk, names):
    """The directory of the packages that an image lacks, or None if it has all
    of them."""
    missing = [name for name in names if not disk.installed(name)]
    if not missing:
        return None
    # For the same image and packages, apt's answer is the same.
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
