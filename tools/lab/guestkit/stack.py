# SPDX-License-Identifier: GPL-2.0-or-later
"""An RDMA stack inside a guest: loading it, its device and its GIDs."""
import os
import time

from .paths import LabError

CORE_MODULES = 'ib_uverbs rdma_ucm ib_umad'
IPV4_GID = '0000:0000:0000:0000:0000:ffff:'


def insmod_by_modprobe(module):
    """A command for the guest. After it, modprobe can load the module from a
    file that is not below /lib/modules."""
    name = os.path.basename(module).removesuffix('.ko')
    load = f'modprobe -a {CORE_MODULES} && insmod {module}'
    return ('mkdir -p /etc/modprobe.d && '
            f'echo "install {name} {load}" > /etc/modprobe.d/{name}.conf')


class Stack:
    """Code of all stacks; up() sets `device`. @nics: number of the guest's
    NICs"""

    name = ''
    driver = ''     # the module of an adapter, if it is built on the host

    def __init__(self, nics=1):
        self.nics = nics
        self.device = None
        self.index = {}     # GID index by address family

    def load(self, vm):
        raise NotImplementedError

    def unload(self, vm):
        raise NotImplementedError

    def is_ours(self, device):
        raise NotImplementedError

    def up(self, vm):
        """Load the stack in a guest and wait for its GIDs."""
        self.load(vm)
        self.wait(vm)

    def find(self, vm):
        """The name of the first device in a guest, or None."""
        base = '/sys/class'
        if 'infiniband' not in vm.names(base):
            return None
        return next((n for n in vm.names(f'{base}/infiniband')
                     if self.is_ours(n)), None)

    def wait(self, vm, timeout=20):
        """Wait for the device and the GIDs of the guest's addresses."""
        end = time.monotonic() + timeout
        while True:
            self.device = self.find(vm)
            self.index = {}
            if self.device:
                self._index_gids(vm)
            if 4 in self.index and 6 in self.index:
                return
            if time.monotonic() > end:
                raise LabError(
                    f'{vm.name}: no {self.name} device with GIDs of the '
                    f'guest after {timeout} s\n' +
                    vm.run('rdma link; ip addr; dmesg | tail -n 20').out)
            time.sleep(0.1)

    def gids(self, vm):
        """{index: GID} of the RoCE v2 entries."""
        return self.tables(vm, self.device).get(self.device, {})

    def tables(self, vm, device='*'):
        """{device: {index: GID}} of the RoCE v2 entries of all devices.

        Reads the first 100 entries only: Linux uses the first free entry.
        rxe's table has 1024, and each takes an emulated guest a millisecond.
        """
        def column(directory):
            base = f'/sys/class/infiniband/{device}/ports/1/{directory}'
            found = vm.texts(f'{base}/?', f'{base}/??')
            return {(path.split('/')[4], int(path.rpartition('/')[2])):
                    text.strip() for path, text in found.items()}
        gids, types = column('gids'), column('gid_attrs/types')
        tables = {}
        for name, i in sorted(gids):
            gid = gids[name, i]
            if self.is_ours(name) and types.get((name, i)) == 'RoCE v2' and \
                    gid.strip('0:'):
                tables.setdefault(name, {})[i] = gid
        return tables

    def _index_gids(self, vm):
        for index, value in self.gids(vm).items():
            if value.startswith(IPV4_GID):
                self.index.setdefault(4, index)
            if value.startswith('fd'):
                self.index.setdefault(6, index)

    def gid(self, family):
        """The index of the IPv4 GID, or of the global IPv6 GID."""
        return self.index[family]


class Rxe(Stack):
    """The kernel's own software RoCE on the guest's NICs."""

    name = 'rxe'

    def load(self, vm):
        vm.must(' && '.join([
            f'modprobe -a {CORE_MODULES} rdma_rxe',
            *(f'rdma link add rxe{i} type rxe netdev eth{i}'
              for i in range(self.nics))]))

    def unload(self, vm):
        vm.must(' && '.join([*(f'rdma link del rxe{i}'
                               for i in range(self.nics)), 'rmmod rdma_rxe']))

    def is_ours(self, device):
        return device.startswith('rxe')


class Adapter(Stack):
    """A stack on an adapter of QEMU."""

    def module(self, vm):
        path = vm.arch.modules / vm.kernel.series / f'{self.driver}.ko'
        if not path.exists():
            raise LabError(f'no {path}: run "make guest ADAPTER={self.name}"')
        return path

    def unload(self, vm):
        vm.must(f'rmmod {self.driver}')

    def is_ours(self, device):
        return not device.startswith('rxe')


class VirtioRdma(Adapter):
    """The built driver and provider."""

    name = 'virtio-rdma'
    driver = 'virtio_rdma'

    def load(self, vm):
        """Copy the provider to libibverbs' directories, load the driver."""
        built = vm.arch.provider
        libraries = sorted(built.glob('libvirtio_rdma-rdmav*.so'))
        if not libraries:
            raise LabError(f'no provider in {built}: run "make guest"')
        vm.must(f'cp {libraries[0]} {vm.arch.provider_dir()}/ && '
                'mkdir -p /etc/libibverbs.d && '
                f'cp {built}/virtio_rdma.driver /etc/libibverbs.d/ && '
                f'{insmod_by_modprobe(self.module(vm))} && '
                f'modprobe -a {CORE_MODULES} virtio_rdma')


class Pvrdma(Adapter):
    """Linux's own driver, and the provider of the guest's rdma-core."""

    name = 'pvrdma'
    driver = 'vmw_pvrdma'

    def load(self, vm):
        vm.must(f'{insmod_by_modprobe(self.module(vm))} && '
                f'modprobe -a {CORE_MODULES} vmw_pvrdma')


STACKS = {stack.name: stack for stack in (VirtioRdma, Pvrdma, Rxe)}
