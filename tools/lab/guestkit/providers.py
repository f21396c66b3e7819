# SPDX-License-Identifier: GPL-2.0-or-later
"""The provider for guests that boot from a disk image: the one that the
image's libibverbs loads.

A provider's file is named after the private ABI of the libibverbs that loads
it, such as libvirtio_rdma-rdmav65.so.
"""
import re
from pathlib import Path

from . import driver
from .paths import (CACHE, INSTALLED, PROVIDER, STATE, LabError, provider_dir,
                    state_lock)

# The private ABIs, each named after the first release of rdma-core that has it
ABIS = (34, 57, 59, 64, 65)
LAST = 65                           # last release of which the ABI is known
SOURCES = {34: '56.1'}              # others are built from the first release
# The Debian packages of providers: those for the private ABIs of Debian 12 and
# 13, and of Debian testing
PACKAGES = {34: 'ibverbs-provider-virtio-rdma',
            65: 'ibverbs-provider-virtio-rdma-abi65'}
SETTINGS = Path('/etc/libibverbs.d/virtio_rdma.driver')
UNPACKED = CACHE / 'providers'      # where users unpack further packages


def numbers(version):
    return [int(n) for n in re.findall(r'\d+', version)]


def libibverbs(disk, packages):
    """The version of libibverbs in a guest, or None. @packages: a directory of
    packages that the guest installs, or None"""
    for deb in sorted(packages.glob('libibverbs1_*.deb')) if packages else ():
        return deb.name.split('_')[1]
    return disk.installed('libibverbs1')


def abi_of(disk, version):
    """The private ABI of a version of libibverbs in an image."""
    release = numbers(version)[0]
    if not ABIS[0] <= release <= LAST:
        raise LabError(f'--image {disk.path}: its libibverbs is {version}, '
                       'but the provider is for rdma-core '
                       f'{ABIS[0]} to {LAST}')
    return max(abi for abi in ABIS if abi <= release)


def _installed(disk, version, abi):
    """The files of a provider from a package. @abi: None for any"""
    name = f'libvirtio_rdma-rdmav{abi or "*"}.so'
    libraries = Path(provider_dir())
    found = [*sorted(libraries.glob(name)), *sorted(UNPACKED.rglob(name))]
    if found and SETTINGS.exists():
        return [found[0], SETTINGS]
    if abi is None or not SETTINGS.exists():
        raise LabError(f'no provider in {libraries}: install the package '
                       f'{PACKAGES[ABIS[0]]}')
    remedy = 'Unpack the package with it there: dpkg -x ' \
        f'{PACKAGES[abi]}_*.deb {UNPACKED}' if abi in PACKAGES else \
        'No package has it: use vrdma-lab of a source tree of virtio-rdma, ' \
        'which builds it'
    raise LabError(
        f'--image {disk.path}: its libibverbs is {version}, which needs a '
        f'provider with the private ABI {abi}. There is none in {libraries} '
        f'or {UNPACKED}. {remedy}')


def _built(abi):
    """The files of a provider from the source tree. Build it if it does not
    exist. @abi: None for any"""
    found = sorted(PROVIDER.glob(f'libvirtio_rdma-rdmav{abi or "*"}.so'))
    if found:
        return [found[0], PROVIDER / 'virtio_rdma.driver']
    if abi is None:
        raise LabError(f'no provider in {PROVIDER}: run "make guest" in the '
                       'source tree of virtio-rdma')
    with state_lock():
        return driver.compile_provider(SOURCES.get(abi, abi),
                                       STATE / f'provider-{abi}')


def check_libc(disk, library):
    """Require that the image's C library is new enough for a provider."""
    libc = disk.installed('libc6') or '0'
    wants = max((found.decode() for found in re.findall(
        rb'GLIBC_([\d.]+)\0', library.read_bytes())), key=numbers)
    if numbers(libc) < numbers(wants):
        raise LabError(f'--image {disk.path}: its libc6 is {libc}, but the '
                       "provider of this machine's Debian needs at least "
                       f'{wants}. Build the provider on the older Debian')


def files(disk, packages):
    """The files of the provider for guests that boot from an image. Without
    libibverbs, they get any provider. @packages: see libibverbs()"""
    version = libibverbs(disk, packages)
    abi = abi_of(disk, version) if version else None
    found = _installed(disk, version, abi) if INSTALLED else _built(abi)
    check_libc(disk, found[0])
    return found
