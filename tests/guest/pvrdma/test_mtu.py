# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests as the manual shows them: on the netdev of a NIC with the usual
MTU."""
from guestkit.adapter import ETHERNET, address
from lab import pvrdma
from lab.stock import connect, perftest, pingpong

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'mtu': ETHERNET}


def test_the_port_has_the_mtu_of_the_nic(bench):
    for vm in bench.pair.vms:
        text = vm.must(f'ibv_devinfo -v -d {bench.device(vm)}')
        assert 'active_mtu:\t\t1024' in text, text


def test_programs(bench):
    pingpong(bench, 'ibv_rc_pingpong')
    pingpong(bench, 'ibv_ud_pingpong', '-s 1024')
    perftest(bench, 'ib_write_bw', '-s 65536 -n 100')


def test_connection_manager(bench):
    for family in (4, 6):
        host = address(2, family)
        connect(bench, f'rping -s -a {host} -C 20 -V',
                f'rping -c -a {host} -C 20 -V -v')
