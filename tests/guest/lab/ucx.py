# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX of Debian, unpacked where the guests find it: a user of libibverbs that
was written for adapters."""
from .packages import Apt, fetch_set, unpack
from .paths import STATE, LabError, state_lock
from .runner import Skip

PACKAGES = ('libucx0', 'ucx-utils')


def _fetch(apt):
    """The packages, both of one version."""
    versions = [{r['Version'] for r in apt.records(p)} for p in PACKAGES]
    for record in apt.records(PACKAGES[0]):
        version = record['Version']
        if version in versions[1]:
            debs = fetch_set(apt, [(p, version) for p in PACKAGES])
            if debs:
                return debs
    return None


def programs():
    """What to put before the name of a program of UCX."""
    root = STATE / 'ucx'
    with state_lock():
        if not (root / 'usr' / 'bin' / 'ucx_perftest').exists():
            debs = _fetch(Apt())
            if not debs:
                raise Skip(f'no packages {" and ".join(PACKAGES)} to be had')
            unpack(debs, root)
    found = sorted(root.glob('usr/lib/*/libucp.so.*'))
    if not found:
        raise LabError(f'no libucp below {root}')
    libraries = found[0].parent
    return (f'LD_LIBRARY_PATH={libraries} UCX_MODULE_DIR={libraries}/ucx '
            f'PATH={root}/usr/bin:$PATH')
