# SPDX-License-Identifier: GPL-2.0-or-later
"""Domains of the page about libvirt, with Debian's libvirt in session mode."""
import re

from lab import libvirt
from lab.verified import verified_traffic

PAIR = libvirt.LibvirtPair
SECONDS = 120
TRAFFIC = '-s 16384 -n 64 -q 2 -m 4096 -e '


def test_nic_and_adapter_are_in_one_slot(bench):
    for vm in bench.pair.vms:
        device = bench.device(vm)
        function = vm.must(
            f'cd -P /sys/class/infiniband/{device}/device && pwd')
        assert function.strip().endswith('/0000:01:00.1'), function
        nics = vm.names(f'/sys/class/infiniband/{device}/device/net')
        assert nics == ['eth0'], nics
        text = vm.must(f'ibv_devinfo -d {device}')
        assert re.search(r'active_mtu:\s+4096', text), text
    assert 'virtio-rdma-pci' in bench.one.virsh('dumpxml')
    told = bench.one.virsh('qemu-monitor-command', '--hmp', 'info rdma')
    assert told.startswith('rdma0: rdma-roce'), told


def test_every_operation(bench):
    bench.verify('-s 16384 -n 64 -q 2 -r 2 -V -m 4096')
    bench.verify('-t ud -s 1024 -n 32 -r 2 -V -R 64')


def test_perftest(bench):
    command = 'ib_write_bw -F -u 17 -n 200'
    bench.exchange(command, command, '-d {} -x {}')


def test_suspend_and_resume_during_traffic(bench):
    with verified_traffic(bench, TRAFFIC + libvirt.PATIENCE):
        bench.one.virsh('suspend')
        bench.one.virsh('resume')


def test_save_and_restore_during_traffic(bench):
    with verified_traffic(bench, TRAFFIC + libvirt.PATIENCE):
        bench.one.save_and_restore()


def test_managed_save_and_start_during_traffic(bench):
    with verified_traffic(bench, TRAFFIC + libvirt.PATIENCE):
        bench.one.virsh('managedsave')
        bench.one.virsh('start')
        bench.one.hear()


def test_live_migration_to_the_other_host_and_back_during_traffic(bench):
    with verified_traffic(bench, TRAFFIC + libvirt.PATIENCE):
        for session in reversed(bench.pair.sessions):
            bench.one.migrate(session)


def test_hot_plug_as_the_page_says(bench):
    one = bench.one
    stack = bench.stacks[one]
    # The slot is unplugged as a whole.
    one.virsh('detach-device-alias', 'ua-nic')
    one.lacks('ua-nic', 'rdma0')
    assert not stack.find(one) and 'eth0' not in one.names('/sys/class/net')
    # The adapter returns in another port.
    one.virsh('attach-device', one.page_file('nic.xml'))
    one.net_up()
    one.virsh('qemu-monitor-command', one.page_text('adapter.json'))
    stack.wait(one)
    bench.verify('-s 16384 -n 64 -r 2 -V -m 4096')
    # The adapter can be unplugged alone now, and plugged in again.
    one.virsh('qemu-monitor-command', '--hmp', 'device_del rdma0')
    one.lacks('rdma0')
    assert not stack.find(one) and bench.nic_works()
    one.virsh('qemu-monitor-command', one.page_text('adapter.json'))
    stack.wait(one)
    bench.verify('-s 16384 -n 64 -r 2 -V -m 4096')
    # When libvirt saves the guest, it learns the new place.
    with verified_traffic(bench, TRAFFIC + libvirt.PATIENCE):
        one.save_and_restore(with_adapter_at='pci.5')
