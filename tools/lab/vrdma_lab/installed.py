# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a lab from Debian packages instead of a source tree: a kernel of
this machine with the adapter's driver, and the provider."""
import re
from pathlib import Path

from guestkit import kernel
from guestkit.paths import LabError
from guestkit.stack import CORE_MODULES, Adapter, Pvrdma, Rxe, VirtioRdma

ROOT = Path('/')
# How to get a kernel with a driver
HINTS = {
    'virtio_rdma': 'for which DKMS has built virtio_rdma: install '
                   'linux-headers-amd64 and virtio-rdma-dkms, and look at '
                   '"dkms status"',
    'vmw_pvrdma': 'that has the module vmw_pvrdma: Debian configures its '
                  'kernels without CONFIG_INFINIBAND_VMWARE_PVRDMA; install '
                  'another kernel, or use a source tree of virtio-rdma',
}


def _order(release):
    return [int(n) for n in re.findall(r'\d+', release)]


def releases(series, driver, root=ROOT):
    """The releases of kernels that guests can boot, newest first. @driver: a
    module that they must have, or ''"""
    found = []
    for modules in (root / 'lib' / 'modules').glob('*'):
        release = modules.name
        if series not in ('', kernel.series_of(release)) or \
                not kernel.vmlinuz(root, release).exists():
            continue
        if not driver or any(modules.rglob(f'{driver}.ko*')):
            found.append(release)
    return sorted(found, key=_order, reverse=True)


def choose(series, driver, root=ROOT):
    """(series, release) of the kernel for guests. @driver: a module that it
    must have, or ''"""
    found = releases(series, driver, root)
    if not found:
        what = f'kernel {series}'.strip()
        if releases(series, '', root):
            raise LabError(f'no {what} {HINTS[driver]}')
        raise LabError(f'no {what} is installed for guests: install '
                       'linux-image-amd64')
    return kernel.series_of(found[0]), found[0]


def kernel_of(plan, directory):
    """The kernel of a plan, with vmlinux and initramfs in a directory."""
    chosen = kernel.Kernel(plan.series, plan.release, ROOT, directory)
    try:
        chosen.make()
    except PermissionError as e:
        raise LabError(f'{e.filename}: {e.strerror}: guests boot this file, '
                       'so make it readable for you') from e
    return chosen


class Installed(Adapter):
    """A stack whose driver and provider the machine has."""

    def load(self, vm):
        vm.must(f'modprobe -a {CORE_MODULES} {self.driver}')


class InstalledVirtioRdma(Installed, VirtioRdma):
    pass


class InstalledPvrdma(Installed, Pvrdma):
    pass


STACKS = {stack.name: stack for stack in (InstalledVirtioRdma,
                                          InstalledPvrdma, Rxe)}
