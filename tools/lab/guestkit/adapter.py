# SPDX-License-Identifier: GPL-2.0-or-later
"""The NICs and the adapters of a guest on its networks, and their addresses.

The netdev n0 carries a NIC and adapter 1, which are functions 0 and 1 of one
PCI slot. Guest 1 is 10.0.0.1 and fd00::1 there, guest 2 is 10.0.0.2 and
fd00::2. A guest may have more adapters, each with a netdev, a NIC and a
network of its own. Adapter 2 is on n1, and guest 1 is 10.0.1.1 and
fd00:0:0:1::1 there.
"""
MTU = 9000
ETHERNET = 1500         # default MTU of a NIC


def netdev(number):
    """The netdev of an adapter."""
    return f'n{number - 1}'


def nic(number):
    """The guest's name of the NIC of an adapter."""
    return f'eth{number - 1}'


def mac(index, number=1):
    return f'52:54:00:00:{number - 1:02x}:{index:02x}'


def address(index, family=4, number=1):
    """The address of a guest at its adapter @number."""
    if family == 4:
        return f'10.0.{number - 1}.{index}'
    prefix = 'fd00' if number == 1 else f'fd00:0:0:{number - 1}'
    return f'{prefix}::{index}'


def _slot(number):
    """The PCI slot of an adapter. Slots 5 to 15 are for other devices."""
    return '4' if number == 1 else f'{14 + number:x}'


def backend(link, directory, mtu=0, number=1):
    """(property for the adapter's backend, QEMU's arguments for its object).
    @mtu: that of the port; 0: that of the NIC"""
    options = [f'mtu={mtu}'] if mtu else []
    if link == 'shm':
        options.append(f'shm-dir={directory}')
    if not options:
        return f'netdev={netdev(number)}', []
    name = f'r{number - 1}'
    return f'rdmadev={name}', [
        '-object', f'rdma-roce,id={name},netdev={netdev(number)},' +
        ','.join(options)]


# A slot for hot-plug
ROOT_PORT = '-device', 'pcie-root-port,id=rp0,chassis=1,addr=6'


def pvrdma_pair(attached, index, options='', hardware='', hotplug=False,
                number=1):
    """QEMU's arguments for a pvrdma and the vmxnet3 that its driver requires.
    @attached: the property for the adapter's backend; other parameters: as for
    functions()"""
    slot = _slot(number)
    first, second, port = f'addr={slot}.0', f'addr={slot}.1', ()
    if hotplug:
        first, second = 'id=nic0,bus=rp0,addr=0.0', 'id=rdma0,bus=rp0,addr=0.1'
        port = ROOT_PORT
    return [*port, '-device', f'vmxnet3,netdev={netdev(number)},{first},'
            f'multifunction=on,mac={hardware or mac(index, number)},romfile=',
            '-device', f'pvrdma,{attached},{second}{options and ","}{options}']


def pvrdma_functions(index, link, directory, options='', mtu=MTU,
                     hardware='', hotplug=False, number=1):
    """Like functions(), for pvrdma. A vmxnet3 does not report its MTU to QEMU,
    so the backend gets it as a property. @link, @directory: see backend()"""
    attached, made = backend(link, directory, mtu if mtu != ETHERNET else 0,
                             number)
    return [*made, *pvrdma_pair(attached, index, options, hardware, hotplug,
                                number)]


def functions(index, rdma=True, iommu=False, hotplug=False, options='',
              where=('netdev=n0', []), mtu=MTU, hardware='', nic_options='',
              number=1):
    """QEMU's arguments for NIC and adapter: two functions of one slot, or,
    with @hotplug, the adapter in its own port. @where: from backend();
    @options: more properties of the adapter; @nic_options: of the NIC;
    @hardware: the MAC address of the NIC, if it is not mac(index, number)."""
    platform = ',iommu_platform=on,disable-legacy=on' if iommu else ''
    slot = _slot(number)
    devices = ['-device',
               f'virtio-net-pci,netdev={netdev(number)},addr={slot}.0,'
               f'multifunction=on,mac={hardware or mac(index, number)},'
               f'host_mtu={mtu},romfile={platform}'
               f'{nic_options and ","}{nic_options}']
    place = f'addr={slot}.1'
    if hotplug:
        devices += ROOT_PORT
        place = 'id=rdma0,bus=rp0,addr=0'
    if rdma:
        attached, made = where
        devices += [*made, '-device',
                    f'virtio-rdma-pci,{attached},{place}{platform}'
                    f'{options and ","}{options}']
    return devices


def load_nic():
    """A command for the guest that loads the driver of its NICs, if it is not
    loaded."""
    return (f'for nic in virtio_net vmxnet3; do [ -e /sys/class/net/{nic(1)} '
            '] || modprobe $nic; done')


def net_up(vm, index, mtu=MTU, adapters=1):
    """Load the driver of the NICs, and give them the guest's addresses."""
    commands = [load_nic()]
    for number in range(1, adapters + 1):
        device = nic(number)
        commands += [
            f'ip link set {device} mtu {mtu} up',
            f'ip addr add {address(index, 4, number)}/24 dev {device}',
            f'ip addr add {address(index, 6, number)}/64 dev {device} nodad']
    vm.must(' && '.join(commands))
