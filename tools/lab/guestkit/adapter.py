# SPDX-License-Identifier: GPL-2.0-or-later
"""The NIC and the adapter of a guest on a network, and its addresses.

A guest has one netdev, n0, which carries a virtio-net NIC and, as second
function of the same slot, a virtio-rdma adapter. Guest 1 is 10.0.0.1 and
fd00::1, guest 2 is 10.0.0.2 and fd00::2.
"""
MTU = 9000


def mac(index):
    return f'52:54:00:00:00:{index:02x}'


def address(index, family=4):
    return f'10.0.0.{index}' if family == 4 else f'fd00::{index}'


def backend(link, directory):
    """(property for the adapter's backend, QEMU's arguments for its object)"""
    if link == 'shm':
        return 'rdmadev=r0', ['-object', 'rdma-roce,id=r0,netdev=n0,'
                              f'shm-dir={directory}']
    return 'netdev=n0', []


def functions(index, rdma=True, iommu=False, hotplug=False, options='',
              where=('netdev=n0', []), mtu=MTU, hardware='', nic=''):
    """QEMU's arguments for NIC and adapter: two functions of one slot, or,
    with @hotplug, the adapter in its own port. @where: from backend();
    @options: more properties of the adapter; @nic: of the NIC; @hardware: the
    MAC address of the NIC, if it is not mac(index)."""
    platform = ',iommu_platform=on,disable-legacy=on' if iommu else ''
    devices = ['-device',
               'virtio-net-pci,netdev=n0,addr=4.0,multifunction=on,'
               f'mac={hardware or mac(index)},host_mtu={mtu},'
               f'romfile={platform}{nic and ","}{nic}']
    place = 'addr=4.1'
    if hotplug:
        devices += ['-device', 'pcie-root-port,id=rp0,chassis=1,addr=6']
        place = 'id=rdma0,bus=rp0,addr=0'
    if rdma:
        attached, made = where
        devices += [*made, '-device',
                    f'virtio-rdma-pci,{attached},{place}{platform}'
                    f'{options and ","}{options}']
    return devices


def net_up(vm, index, device='eth0', mtu=MTU):
    """Load the NIC's driver, if it is not loaded, and give the NIC the guest's
    addresses."""
    vm.must(f'{{ [ -e /sys/class/net/{device} ] || modprobe virtio_net; }} && '
            f'ip link set {device} mtu {mtu} up && '
            f'ip addr add {address(index)}/24 dev {device} && '
            f'ip addr add {address(index, 6)}/64 dev {device} nodad')
