# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images that guests boot from, in the place of this machine's root: what
they need of this machine, and how they boot."""
from dataclasses import dataclass
from pathlib import Path

from guestkit import diskboot, diskpackages, disks, kernel
from guestkit.disks import Disk
from guestkit.paths import INSTALLED, MODULES, PROVIDER, LabError, provider_dir

from . import installed


@dataclass
class Source:
    """What a guest boots from. @module: the driver, if the lab has to bring
    it; @packages: a directory of these, to be installed."""
    disk: Disk
    module: Path
    packages: Path


def provider_files():
    """The provider for libibverbs, as built here or installed."""
    libraries, settings = PROVIDER, PROVIDER
    if INSTALLED:
        libraries, settings = Path(provider_dir()), Path('/etc/libibverbs.d')
    found = sorted(libraries.glob('libvirtio_rdma-rdmav*.so'))
    if not found:
        raise LabError(f'no provider in {libraries}: ' + (
            'install the package ibverbs-provider-virtio-rdma'
            if INSTALLED else 'run "make guest" in the source tree of '
            'virtio-rdma'))
    return [found[0], settings / 'virtio_rdma.driver']


def _reader(series):
    """The kernel of the guest that reads images."""
    if not INSTALLED:
        return kernel.prepared(series)
    chosen = kernel.Kernel(*installed.choose('', False), installed.ROOT,
                           disks.IMAGES / 'kernel')
    chosen.made.mkdir(parents=True, exist_ok=True)
    chosen.make()
    return chosen


def count(images, guests):
    """How many guests there are to be. @guests: as asked for, or None."""
    if guests is None:
        return len(images) if len(images) > 1 else 2
    if len(images) > 1 and len(images) != guests:
        raise LabError(f'--image is there {len(images)} times: once for all '
                       f'guests, or once for each, {guests} times')
    return guests


def sources(plan, series):
    """The Source of each guest of a plan. @series: of a kernel that is there
    to read images; that of the plan, if it has one, is to be booted."""
    try:
        disks.IMAGES.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise LabError(f'{e.filename}: {e.strerror}: what images need is to '
                       'be kept there. XDG_CACHE_HOME names another '
                       'directory, or BUILD_DIR in a source tree') from e
    driver = plan.stack == 'virtio-rdma'
    provider = provider_files() if driver else []
    found = {}
    for path in dict.fromkeys(plan.images):
        disk = disks.read(path, lambda: _reader(series))
        for library in provider[:1]:
            diskboot.check_provider(disk, library)
        module = None
        if not plan.series:
            diskboot.check_kernel(disk)
            module = diskboot.compile_driver(disk) if driver else None
        elif driver and not INSTALLED:
            module = MODULES / plan.series / 'virtio_rdma.ko'
        packages = diskpackages.fetch(disk, plan.packages) \
            if plan.packages else None
        found[path] = Source(disk, module, packages)
    each = plan.images if len(plan.images) > 1 else plan.images * plan.guests
    return [found[path] for path in each]


def boots(plan, directory, other):
    """A Boot for each guest of a plan. @directory is for what is made;
    @other is the kernel.Kernel of a plan that names one."""
    made = {}
    provider = provider_files() if plan.stack == 'virtio-rdma' else []
    for source in plan.sources:
        key = id(source)
        made[key] = made.get(key) or diskboot.prepare(
            source.disk, directory / f'image{len(made)}', provider,
            source.module, other, source.packages)
    return [made[id(source)] for source in plan.sources]
