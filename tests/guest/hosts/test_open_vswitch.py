# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests on two hosts with bridges of Open vSwitch. A switch in user space
does not complete checksums, so the guests' NICs must not leave them to it."""
import re

from lab.hosts import HostedPair, settled
from lab.openvswitch import OpenVswitch
from lab.verified import verified_traffic

PAIR = HostedPair
GUESTS = {'switch': OpenVswitch, 'nic': 'csum=off'}
SECONDS = 90
HOME, AWAY = ['tap1', 'vx0'], ['vx0', 'tap1']


def test_the_ports_have_the_path_mtu_4096(bench):
    for vm in bench.pair.vms:
        text = vm.must(f'ibv_devinfo -d {bench.device(vm)}')
        assert re.search(r'active_mtu:\s+4096', text), text


def test_rc_every_operation_over_both_families(bench):
    for family in (4, 6):
        bench.verify('-s 16384 -n 64 -q 2 -r 2 -V -m 4096', family=family)


def test_unreliable_services(bench):
    """Open vSwitch's sockets have small buffers: some frames of a burst may be
    lost."""
    bench.verify('-t uc -L 50 -s 8192 -n 64 -R 64 -r 1 -V '
                 '-o send_imm,write_imm')
    bench.verify('-t ud -L 50 -s 1024 -n 64 -R 64 -r 1 -V -o send_imm')


def test_perftest(bench):
    for tool in ('ib_write_bw', 'ib_read_bw', 'ib_send_lat'):
        command = f'{tool} -F -u 17 -n 100 -s 16384'
        bench.exchange(command, command, '-d {} -x {}')


def test_a_guest_moves_and_comes_back(bench):
    settled(bench.pair, 1, HOME)
    with verified_traffic(bench, '-s 16384 -n 64 -q 2 -m 4096 -e'):
        for where in (AWAY, HOME):
            bench.note(str(bench.one.move()))
            settled(bench.pair, 1, where)
