# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests with pvrdma, in which nothing of this project is installed. `make
check SUITE=pvrdma` runs more programs, on more kernels and with other
peers."""
import re

from guestkit.adapter import address
from lab import nvme, pvrdma, storage, ucx
from lab.stock import connect, perftest, pingpong

PAIR, STACK = pvrdma.pair, pvrdma.STACK
# For programs that poll, and RDMA CM
GUESTS = {'smp': 2}
SECONDS = 90


def test_nothing_of_this_project_is_in_the_guests(bench):
    for vm in bench.pair.vms:
        modules = vm.must('cut -d" " -f1 /proc/modules').split()
        assert 'vmw_pvrdma' in modules, modules
        assert 'virtio_rdma' not in modules, modules
        vm.must('! grep -qs virtio_rdma /etc/libibverbs.d/*')


def test_ibv_devinfo_shows_an_active_roce_port(bench):
    text = bench.one.must(f'ibv_devinfo -v -d {bench.device(bench.one)}')
    for expected in (r'vendor_id:\s+0x15ad', r'vendor_part_id:\s+2080',
                     r'state:\s+PORT_ACTIVE', r'active_mtu:\s+4096',
                     r'node_guid:\s+5054:00ff:fe00:0001', 'ATOMIC_HCA',
                     r'GID\[\s*\d+\]:\s+fe80:.*RoCE v2',
                     r'GID\[\s*\d+\]:\s+::ffff:10\.0\.0\.1, RoCE v2'):
        assert re.search(expected, text), f'no {expected} in\n{text}'


def test_pingpong_of_each_service(bench):
    pingpong(bench, 'ibv_rc_pingpong')
    pingpong(bench, 'ibv_rc_pingpong', '-e -s 65536 -m 4096', 50)
    pingpong(bench, 'ibv_ud_pingpong', '-s 1024')
    pingpong(bench, 'ibv_srq_pingpong', '-e')


def test_perftest_of_each_operation(bench):
    for tool in 'ib_send_bw', 'ib_write_bw', 'ib_read_bw':
        perftest(bench, tool, '-s 65536 -n 100')
    for tool in 'ib_send_lat', 'ib_write_lat', 'ib_read_lat':
        perftest(bench, tool, '-s 64 -n 100')
    perftest(bench, 'ib_atomic_bw', '-n 200')


def test_every_operation_byte_by_byte(bench):
    bench.verify('-s 16384 -n 64 -r 2 -V -q 2')
    bench.verify('-t ud -s 1000 -n 32 -r 1 -V -R 64 -e')


def test_connection_manager(bench):
    host = address(2)
    its, _ = connect(bench, f'rping -s -a {host} -C 20 -V',
                     f'rping -c -a {host} -C 20 -V -v')
    assert its.out.count('ping data') == 20, str(its)
    host = address(2, 6)
    connect(bench, f'ucmatose -b {host} -c 5 -C 5 -S 4096',
            f'ucmatose -s {host} -c 5 -C 5 -S 4096')


def test_ucx_rc(bench):
    ucx.perftest(bench, '-x rc_verbs -d {device} -t put_lat -D zcopy -s 4000')


def test_a_disk_over_nvme_of(bench):
    """The initiator registers memory with work requests, and the target
    invalidates it remotely."""
    before = bench.resources()
    nvme.export(bench.two, address(2))
    name = nvme.connect(bench.one, address(2))
    storage.blocks(bench.one, f'/dev/{name}n1', bench.two, nvme.DISK,
                   (('4k', 1), ('64k', 4), ('1M', 8)))
    nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)
    bench.nothing_left(before)


def test_the_driver_unloads_and_loads_again(bench):
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        assert stack.find(vm) is None, vm.run('rdma link').out
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
