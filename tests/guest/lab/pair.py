# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests on one link."""
import os
import shutil
import tempfile
import time

from guestkit import adapter
from guestkit.adapter import MTU, backend, net_up, pvrdma_functions
from guestkit.arch import NATIVE
from guestkit.paths import LabError
from guestkit.vm import Vm, about_preference

from . import wire


def netdev(link, index, directory):
    """Return the netdev of guest 1 or 2; guest 1 has to start first. With shm,
    frames other than RDMA use a stream."""
    if link in ('stream', 'shm'):
        server = 'on' if index == 1 else 'off'
        return ['-netdev', f'stream,id=n0,server={server},'
                f'addr.type=unix,addr.path={directory}/link']
    if link == 'dgram':
        return ['-netdev', 'dgram,id=n0,'
                f'local.type=unix,local.path={directory}/end{index},'
                f'remote.type=unix,remote.path={directory}/end{3 - index}']
    raise LabError(f'no link type {link}: have {", ".join(wire.WIRES)}')


def queues():
    """Return properties of an adapter. With QUEUES=virtqueue in the
    environment all its queues are virtqueues."""
    return ('direct=off',) if os.environ.get('QUEUES') == 'virtqueue' else ()


def threads(iommu, options):
    """Return (properties of an adapter, arguments). With IOTHREAD=1 in the
    environment the adapter runs in an iothread, if it can."""
    if (os.environ.get('IOTHREAD') != '1' or iommu or queues() or
            'direct=' in options or 'version-1=' in options or
            'iothread=' in options):
        return [], []
    return ['iothread=io0'], ['-object', 'iothread,id=io0']


def functions(index, rdma=True, iommu=False, hotplug=False, options='',
              **more):
    """Call adapter.functions(), with the adapter that QUEUES and IOTHREAD in
    the environment select."""
    if not rdma:
        return adapter.functions(index, False, iommu, hotplug, **more)
    chosen, made = threads(iommu, options)
    options = ','.join(filter(None, (*queues(), *chosen, options)))
    return [*made, *adapter.functions(index, True, iommu, hotplug, options,
                                      **more)]


class TwoGuests:
    """Base class for pairs, which have two guests as vms, and methods start()
    and kill(). The context manager ends them."""

    vms = ()

    @property
    def one(self):
        return self.vms[0]

    @property
    def two(self):
        return self.vms[1]

    def start(self):
        raise NotImplementedError

    def kill(self):
        raise NotImplementedError

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.kill()


class Pair(TwoGuests):
    """Two guests on one link.

    link is one of wire.WIRES. extra, objects and options are functions of the
    guest's index. extra returns more QEMU arguments, objects the arguments of
    object-add for objects that the guests get at start, and options more
    properties of the adapter. accel has more options of QEMU's accelerator,
    such as ',tb-size=64', and append more parameters of the guests' kernel.
    series is that of the kernel, archs has the architecture of each guest, and
    mem is the memory of each. adapters has the adapter of each guest: its
    stack's name, or '' for none. mtu is that of the NICs. kvm chooses KVM
    instead of TCG.
    """

    def __init__(self, tag, link=None, rdma=True, iommu=False, smp=1,
                 hotplug=False, extra=None, objects=None, options=None,
                 accel='', series=None, append='', archs=(NATIVE, NATIVE),
                 mem='2G', adapters=('virtio-rdma', 'virtio-rdma'), mtu=MTU,
                 kvm=False):
        link = link or wire.link()
        self.tag, self.link, self.mtu = tag, link, mtu
        self.objects = objects
        self.directory = tempfile.mkdtemp(prefix='vrdma-')
        self.vms = []
        for index in (1, 2):
            devices = ['-device', 'intel-iommu,intremap=off'] if iommu else []
            devices += netdev(link, index, self.directory)
            devices += extra(index) if extra else []
            its = options(index) if options else ''
            way = wire.way(link), self.directory
            if rdma and adapters[index - 1] == 'pvrdma':
                devices += pvrdma_functions(index, *way, its, mtu,
                                            hotplug=hotplug)
            else:
                devices += functions(
                    index, rdma and bool(adapters[index - 1]), iommu, hotplug,
                    its, where=backend(*way), mtu=mtu)
            self.vms.append(Vm(
                f'{tag}-{index}', *devices, smp=smp, mem=mem, series=series,
                machine='q35,kernel-irqchip=split' if iommu else None,
                accel=accel, kvm=kvm, arch=archs[index - 1],
                append=f'intel_iommu=on {append}' if iommu else append))

    def start(self):
        """Boot both guests and bring their NICs up."""
        try:
            self.one.start()
            end = time.monotonic() + 20
            while self.link != 'dgram' and \
                    not os.path.exists(f'{self.directory}/link'):
                if not self.one.alive() or time.monotonic() > end:
                    raise LabError('QEMU did not come up\n' +
                                   self.one.errors())
                time.sleep(0.02)
            self.two.start()
            for vm in self.vms:
                vm.wait_ready()
            for index, vm in enumerate(self.vms, 1):
                for arguments in self.objects(index) if self.objects else ():
                    vm.qmp('object-add', **arguments)
            for index, vm in enumerate(self.vms, 1):
                net_up(vm, index, mtu=self.mtu)
        except BaseException:
            self.kill()
            raise
        return self

    def prefer_main_loops(self):
        """See Vm. Return a note about the result."""
        return about_preference(
            all([vm.prefer_main_loop() for vm in self.vms]))

    def kill(self):
        for vm in self.vms:
            vm.kill()
        shutil.rmtree(self.directory, ignore_errors=True)
