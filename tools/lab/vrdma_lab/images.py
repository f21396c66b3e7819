# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images that guests boot from instead of this machine's root: the files
that they need, and how they boot."""
from dataclasses import dataclass
from pathlib import Path

from guestkit import diskboot, diskpackages, disks, kernel, providers
from guestkit.disks import Disk
from guestkit.paths import INSTALLED, MODULES, LabError

from . import installed


@dataclass
class Source:
    """The files that a guest boots from."""
    disk: Disk
    module: Path        # the driver, if the lab has to bring it
    provider: list      # the files of the provider, if it has virtio-rdma
    packages: Path      # a directory of packages to install


def _reader(series):
    """The kernel of the guest that reads images."""
    if not INSTALLED:
        return kernel.prepared(series)
    chosen = kernel.Kernel(*installed.choose('', ''), installed.ROOT,
                           disks.IMAGES / 'kernel')
    chosen.made.mkdir(parents=True, exist_ok=True)
    chosen.make()
    return chosen


def count(images, guests):
    """The number of guests. @guests: the requested number, or None."""
    if guests is None:
        return len(images) if len(images) > 1 else 2
    if len(images) > 1 and len(images) != guests:
        raise LabError(f'got --image {len(images)} times: expected it once '
                       f'for all guests, or once for each, {guests} times')
    return guests


def sources(plan, series):
    """The Source of each guest of a plan. @series: of a prepared kernel that
    reads the images. Guests boot the kernel of the plan, if it has one."""
    try:
        disks.IMAGES.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise LabError(f'{e.filename}: {e.strerror}: the lab keeps files for '
                       'images there. Set XDG_CACHE_HOME, or BUILD_DIR in a '
                       'source tree, to another directory') from e
    driver = plan.stack == 'virtio-rdma'
    found = {}
    for path in dict.fromkeys(plan.images):
        disk = disks.read(path, lambda: _reader(series))
        if not plan.series:
            diskboot.check_kernel(disk)
        packages = diskpackages.fetch(disk, plan.packages) \
            if plan.packages else None
        provider = providers.files(disk, packages) if driver else []
        module = None
        if not plan.series:
            module = diskboot.compile_driver(disk) if driver else None
        elif driver and not INSTALLED:
            module = MODULES / plan.series / 'virtio_rdma.ko'
        found[path] = Source(disk, module, provider, packages)
    each = plan.images if len(plan.images) > 1 else plan.images * plan.guests
    return [found[path] for path in each]


def boots(plan, directory, other):
    """A Boot for each guest of a plan. @directory: for generated files;
    @other: the kernel.Kernel of a plan that names one."""
    made = {}
    for source in plan.sources:
        key = id(source)
        made[key] = made.get(key) or diskboot.prepare(
            source.disk, directory / f'image{len(made)}', source.provider,
            source.module, other, source.packages)
    return [made[id(source)] for source in plan.sources]
