# SPDX-License-Identifier: GPL-2.0-or-later
"""The NIC and the adapter of a guest on a network, and its addresses.

A guest has one netdev, n0, which carries a NIC and, as second function of the
same slot, an adapter. Guest 1 is 10.0.0.1 and fd00::1, guest 2 is 10.0.0.2 and
fd00::2.
"""
MTU = 9000
ETHERNET = 1500         # of a NIC that is not told another one


def mac(index):
    return f'52:54:00:00:00:{index:02x}'


def address(index, family=4):
    return f'10.0.0.{index}' if family == 4 else f'fd00::{index}'


def backend(link, directory, mtu=0):
    """(property for the adapter's backend, QEMU's arguments for its object).
    @mtu: of the port, if it is not the NIC's"""
    options = [f'mtu={mtu}'] if mtu else []
    if link == 'shm':
        options.append(f'shm-dir={directory}')
    if not options:
        return 'netdev=n0', []
    return 'rdmadev=r0', ['-object', 'rdma-roce,id=r0,netdev=n0,' +
                          ','.join(options)]


# A slot for hot-plug
ROOT_PORT = '-device', 'pcie-root-port,id=rp0,chassis=1,addr=6'


def pvrdma_pair(attached, index, options='', hardware='', hotplug=False):
    """QEMU's arguments for a pvrdma and the vmxnet3 that its driver requires.
    @attached: the property for the adapter's backend; other parameters: as for
    functions()"""
    nic, adapter, port = 'addr=4.0', 'addr=4.1', ()
    if hotplug:
        nic, adapter = 'id=nic0,bus=rp0,addr=0.0', 'id=rdma0,bus=rp0,addr=0.1'
        port = ROOT_PORT
    return [*port, '-device', f'vmxnet3,netdev=n0,{nic},multifunction=on,'
            f'mac={hardware or mac(index)},romfile=', '-device',
            f'pvrdma,{attached},{adapter}{options and ","}{options}']


def pvrdma_functions(index, link, directory, options='', mtu=MTU,
                     hardware='', hotplug=False):
    """functions() for pvrdma. A vmxnet3 cannot tell QEMU its MTU, so the
    backend has it. @link, @directory: see backend()"""
    attached, made = backend(link, directory, mtu if mtu != ETHERNET else 0)
    return [*made, *pvrdma_pair(attached, index, options, hardware, hotplug)]


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
        devices += ROOT_PORT
        place = 'id=rdma0,bus=rp0,addr=0'
    if rdma:
        attached, made = where
        devices += [*made, '-device',
                    f'virtio-rdma-pci,{attached},{place}{platform}'
                    f'{options and ","}{options}']
    return devices


def load_nic(device='eth0'):
    """A command for the guest that loads the NIC's driver, if it is not
    loaded."""
    return (f'for nic in virtio_net vmxnet3; do [ -e /sys/class/net/{device} '
            '] || modprobe $nic; done')


def net_up(vm, index, device='eth0', mtu=MTU):
    """Load the NIC's driver, and give the NIC the guest's addresses."""
    vm.must(f'{load_nic(device)} && '
            f'ip link set {device} mtu {mtu} up && '
            f'ip addr add {address(index)}/24 dev {device} && '
            f'ip addr add {address(index, 6)}/64 dev {device} nodad')
