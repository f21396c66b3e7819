# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest of a lab that boots from a disk image."""
from guestkit.agent import BOOT_TIMEOUT
from guestkit.diskboot import PLACE
from guestkit.paths import LabError
from guestkit.stack import CORE_MODULES, Rxe, VirtioRdma, insmod_by_modprobe

from .guests import LabGuest

MODULE = f'{PLACE}/virtio_rdma.ko'
# Seconds to wait for the services of the image, which go on after that
STARTED_BY = 600
# Seconds for the installation of packages, which is slow without a cache
INSTALLED_BY = 900


def settle(vm):
    """Wait until udev has renamed the device."""
    vm.must('udevadm settle -t 30')


class DiskRxe(Rxe):
    def load(self, vm):
        super().load(vm)
        settle(vm)

    def is_ours(self, device):
        return bool(device)     # the guest has no others, with any names


class DiskDriver(VirtioRdma):
    """Driver and provider from the initramfs, unless the image has its own."""

    def load(self, vm):
        libraries = f'/usr/lib/{vm.arch.cpu}-linux-gnu/libibverbs'
        vm.must(f'mkdir -p {libraries} /etc/libibverbs.d && '
                f'cp -n {PLACE}/*.so {libraries}/ && '
                f'cp -n {PLACE}/*.driver /etc/libibverbs.d/ && '
                f'modprobe -a {CORE_MODULES} && '
                "if ! grep -q '^virtio_rdma ' /proc/modules; then "
                f'if [ -e {MODULE} ]; then {insmod_by_modprobe(MODULE)}; fi; '
                'modprobe virtio_rdma; fi')
        settle(vm)


STACKS = {'virtio-rdma': DiskDriver, 'rxe': DiskRxe}


class DiskGuest(LabGuest):
    def __init__(self, index, plan, networks, logs, boot):
        """@boot: a diskboot.Boot"""
        self.boot = boot
        super().__init__(index, plan, networks, logs, boot)

    def _stack(self, _):
        return STACKS[self.plan.stack](self.plan.adapters)

    def _root(self):
        arguments = self.boot.disk.drive()
        if self.boot.modules:
            arguments += self._share('modules', self.boot.modules, '8')
        if self.boot.packages:
            arguments += self._share('packages', self.boot.packages, '9')
        return self.boot.initramfs, self.boot.append(self.name), arguments

    def hears(self, timeout=3 * BOOT_TIMEOUT):
        return super().hears(timeout)

    def wait_ready(self):
        """Wait also until its systemd has started all services."""
        uptime = super().wait_ready()
        # First wait until systemd accepts requests.
        done = self.run(
            'until [ -S /run/systemd/private ]; do sleep 0.5; done; '
            'systemctl is-system-running --wait', STARTED_BY)
        if 'maintenance' in done.out or 'emergency' in done.out:
            failed = self.run('systemctl --failed --plain --no-legend').out
            raise LabError(f'{self.name}: its systemd is in emergency mode: '
                           f'{failed}\n{self.errors()}')
        if self.boot.packages:
            self._install()
        return uptime

    def _install(self):
        at = f'{PLACE}/packages'
        self.must(
            f'mkdir {at} && mount -t 9p '
            f'-o ro,trans=virtio,version=9p2000.L packages {at} && '
            'DEBIAN_FRONTEND=noninteractive dpkg --force-unsafe-io '
            f'--install {at}/*.deb && umount {at}', INSTALLED_BY)

    def describe(self):
        return {**super().describe(), 'image': str(self.boot.disk.path)}
