# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests on two hosts whose link has Ethernet's MTU of 1500. VXLAN leaves 1450
bytes, and so a path MTU of 1024."""
import re

from guestkit.adapter import address
from lab.hosts import HostedPair, settled
from lab.verified import verified_traffic

PAIR = HostedPair
GUESTS = {'underlay': 1500}
SECONDS = 60


def test_the_port_has_the_path_mtu_that_fits(bench):
    assert bench.pair.mtu == 1450
    for vm in bench.pair.vms:
        text = vm.must(f'ibv_devinfo -d {bench.device(vm)}')
        assert re.search(r'active_mtu:\s+1024', text), text
        assert 'mtu 1450' in vm.must('ip link show eth0')


def test_every_operation(bench):
    bench.verify('-s 16384 -n 64 -q 2 -r 2 -V -m 1024')
    bench.verify('-t uc -s 8192 -n 32 -r 2 -V -R 64 -m 1024')
    bench.verify('-t ud -s 1000 -n 32 -r 2 -V -R 64 -m 1024')


def test_a_larger_path_mtu_is_refused_and_not_lost_on_the_way(bench):
    command = 'ibv_rc_pingpong -m 2048 '
    server = bench.two.spawn(
        command + bench.where(bench.two, '-d {} -g {}'), 18515)
    bench.one.run(command + bench.where(bench.one, '-d {} -g {}') +
                  f' {address(2)}', 20)
    result = server.wait(10)
    assert result.rc and 'to RTR' in result.out, str(result)


def test_a_guest_moves_and_comes_back(bench):
    with verified_traffic(bench, '-s 16384 -n 64 -q 2 -m 1024 -e'):
        for where in (['vx0', 'tap1'], ['tap1', 'vx0']):
            bench.one.move()
            settled(bench.pair, 1, where)
