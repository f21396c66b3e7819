# SPDX-License-Identifier: GPL-2.0-or-later
"""sysfs of an adapter: the RDMA device leads to its PCI function, and the
"net" directory of the function has the NIC, whatever happens to the NIC."""
from guestkit.adapter import net_up
from lab.runner import Skip

CLASS = '/sys/class/infiniband'
NIC_DRIVER = '/sys/bus/virtio/drivers/virtio_net'


def function(bench):
    """Return the PCI directory of guest 1's adapter."""
    if bench.stack == 'rxe':
        raise Skip('rxe is not a PCI function')
    vm = bench.one
    path = f'{CLASS}/{bench.device(vm)}/device'
    assert vm.must(f'readlink -f {path}/subsystem').strip() == \
        '/sys/bus/pci', vm.run(f'readlink -f {path}').out
    return '/sys/bus/pci/devices/' + \
        vm.must(f'basename $(readlink -f {path})').strip()


def nics(vm, path, inside=''):
    """Return the NICs in the adapter's directory "net". None: there is no such
    directory, not even a dangling link."""
    found = vm.run(f'{inside} sh -c "test -L {path}/net && '
                   f'ls {path}/net/ || test ! -e {path}/net"')
    assert found.ok, str(found)
    linked = vm.run(f'{inside} test -L {path}/net').ok
    return found.out.split() if linked else None


def restore(bench):
    """Restore the addresses that the NIC has lost."""
    bench.one.must('ip addr flush dev eth0')
    net_up(bench.one, 1)
    bench.stacks[bench.one].wait(bench.one)


def test_an_adapter_is_a_pci_function(bench):
    path, vm = function(bench), bench.one
    assert vm.must(f'cd {path} && cat vendor device').split() == \
        ['0x1af4', '0x106a']
    assert vm.must(f'ls {path}/infiniband').split() == [bench.device(vm)]
    assert nics(vm, path) == ['eth0']


def test_device_plugins_find_class_driver_and_character_devices(bench):
    path, vm = function(bench), bench.one
    assert vm.must(f'cat {path}/class').startswith('0x02')
    assert vm.must(f'basename $(readlink {path}/driver)').strip() == \
        'virtio-pci'
    for kind, name in ('infiniband_verbs', 'uverbs0'), \
            ('infiniband_mad', 'umad0'):
        assert vm.must(f'cat /sys/class/{kind}/{name}/ibdev').strip() == \
            bench.device(vm)
        vm.must(f'test -c /dev/infiniband/{name}')
    vm.must('test -c /dev/infiniband/rdma_cm')


def test_a_nic_that_is_renamed_is_found(bench):
    path, vm = function(bench), bench.one
    vm.must('ip link set eth0 down && ip link set eth0 name lan0')
    try:
        assert nics(vm, path) == ['lan0']
    finally:
        vm.must('ip link set lan0 name eth0')
        restore(bench)


def test_a_nic_is_found_in_its_namespace_only(bench):
    path, vm = function(bench), bench.one
    inside = 'ip netns exec other'
    vm.must('ip netns add other && ip link set eth0 netns other')
    try:
        assert nics(vm, path) == []
        assert nics(vm, path, inside) == ['eth0']
    finally:
        vm.must('ip -n other link set eth0 netns 1 && ip netns del other')
        restore(bench)
    assert nics(vm, path) == ['eth0']


def test_a_nic_without_its_driver_is_not_found(bench):
    path, vm = function(bench), bench.one
    name = vm.must('basename $(readlink /sys/class/net/eth0/device)').strip()
    vm.must(f'echo {name} > {NIC_DRIVER}/unbind')
    try:
        assert nics(vm, path) is None
    finally:
        vm.must(f'echo {name} > {NIC_DRIVER}/bind')
        restore(bench)
    assert nics(vm, path) == ['eth0']


def test_a_driver_that_is_unloaded_leaves_no_link(bench):
    path, vm = function(bench), bench.one
    stack = bench.stacks[vm]
    stack.unload(vm)
    try:
        assert nics(vm, path) is None
    finally:
        stack.up(vm)
    assert nics(vm, path) == ['eth0']
