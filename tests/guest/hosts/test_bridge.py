# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests on two hosts: a Linux bridge on each, with VXLAN between them, over a
link with room for the path MTU of 4096."""
import re

from guestkit.adapter import address
from lab import interop
from lab.hosts import HostedPair, settled
from lab.verified import verified_traffic

PAIR = HostedPair
SECONDS = 240
HOME, AWAY = ['tap1', 'vx0'], ['vx0', 'tap1']


def test_the_link_carries_the_mtu_of_the_guests(bench):
    """Frames of the full path MTU of 4096 pass, without fragments. 28 bytes
    are headers."""
    assert bench.pair.mtu == 9000
    for vm in bench.pair.vms:
        text = vm.must(f'ibv_devinfo -d {bench.device(vm)}')
        assert re.search(r'active_mtu:\s+4096', text), text
    for host in bench.pair.hosts:
        assert host.mtu('vx0') == host.mtu('eth0') - 50 == 9000


def test_bridges_know_on_which_host_a_guest_is(bench):
    bench.verify('-s 64 -n 4 -r 1')
    settled(bench.pair, 1, HOME)
    settled(bench.pair, 2, ['vx0', 'tap2'])


def test_rc_every_operation_over_both_families(bench):
    for family in (4, 6):
        bench.verify('-s 16384 -n 64 -q 2 -r 2 -V -m 4096', family=family)


def test_uc_every_operation(bench):
    bench.verify('-t uc -s 8192 -n 32 -r 2 -V -R 64 -m 4096')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 4000 -n 32 -r 2 -V -R 64 -m 4096')


def test_packets_too_large_for_the_underlay_are_lost_silently(bench):
    """Larger packets are lost without an error, as the page says about a
    host_mtu that is too large."""
    command = 'ib_write_bw -F -u 12 -n 20 -s '
    for host in bench.pair.hosts:
        host.run('ip', 'link', 'set', 'vx0', 'mtu', '1450')
    try:
        bench.exchange(f'{command} 1024', f'{command} 1024', '-d {} -x {}')
        server = bench.two.spawn(
            bench.where(bench.two, f'{command} 4096 -d {{}} -x {{}}'), 18515)
        result = bench.one.run(
            bench.where(bench.one, f'{command} 4096 -d {{}} -x {{}}') +
            f' {address(2)}', 30)
        server.kill()
        server.wait(10)
    finally:
        for host in bench.pair.hosts:
            host.run('ip', 'link', 'set', 'vx0', 'mtu', '9000')
    assert result.rc and re.search('retry|status 12', result.out), str(result)


def test_programs_both_ways(bench):
    interop.programs_both_ways(bench, 4)


def test_a_multicast_group_has_members_on_both_hosts(bench):
    command = 'stdbuf -oL mckey -m 239.1.2.3 -C 20 -S 2048 -b '
    job = bench.two.spawn(command + address(2))
    job.wait_for('joined dgid')
    client = bench.one.run(f'{command}{address(1)} -s', 30)
    server = job.wait(20 if client.ok else 1)
    assert client.ok and server.ok, f'{client}\n{server}'


def move(bench, vm, where):
    """Move a guest. Afterwards both hosts' bridges must have it behind the
    right port."""
    bench.note(f'{vm.name}: {vm.move()}')
    settled(bench.pair, bench.pair.vms.index(vm) + 1, where)


def test_bridges_learn_where_a_guest_is_that_sends_nothing(bench):
    """QEMU announces the guest."""
    for where in (AWAY, HOME):
        move(bench, bench.one, where)


def test_a_guest_moves_to_the_host_of_its_peer_and_back(bench):
    with verified_traffic(bench, '-s 16384 -n 64 -q 4 -m 4096 -e'):
        for where in (AWAY, HOME, AWAY, HOME):
            move(bench, bench.one, where)


def test_both_guests_change_places_at_the_same_time(bench):
    with verified_traffic(bench, '-s 16384 -n 64 -q 2 -m 4096 -e'):
        for where in (AWAY, HOME):
            bench.pair.move_both()
            settled(bench.pair, 1, where)


def test_large_messages_while_one_guest_and_then_the_other_moves(bench):
    with verified_traffic(bench, '-s 1048576 -n 8 -m 4096'):
        for where in (AWAY, HOME):
            move(bench, bench.one, where)
        for where in (['tap2', 'vx0'], ['vx0', 'tap2']):
            move(bench, bench.two, where)


def test_rping_goes_on_while_a_guest_moves(bench):
    """rping compares the returned data, and connects by RDMA CM."""
    server = bench.two.spawn(f'exec rping -s -a {address(2)} -V -S 10000')
    client = bench.one.spawn(
        f'sleep 1; stdbuf -oL rping -c -a {address(2)} -V -v -S 10000 2>&1 | '
        'stdbuf -oL cut -c 1-40')

    def pings():
        return len(re.findall(r'^ping data', client.peek().out, re.M))
    client.wait_for('ping data')
    for where in (AWAY, HOME):
        move(bench, bench.one, where)
        client.wait_for('ping data', 60, pings() + 5)
    client.kill(15)
    for job in (client, server):
        said = job.wait(20).out
        assert 'mismatch' not in said and 'completion' not in said, \
            said[-2000:]
