# SPDX-License-Identifier: GPL-2.0-or-later
"""Events, deep CQs, arming and counters, as programs see them."""
import re
import time

from guestkit.adapter import address
from lab import pyverbs
from lab.pair import queues
from lab.places import PROGRAMS
from lab.programs import build_objects, cm_exchange, run_no_syscalls
from lab.runner import Skip

CHECK = PROGRAMS / 'verbs_check.py'


def check(bench, name, gid=None):
    """Run a check of verbs_check.py in guest 1; return its output."""
    pyverbs.version()
    gid = bench.gid(bench.one) if gid is None else gid
    result = bench.one.run(f'/usr/bin/python3 -B {CHECK} {name} '
                           f'{bench.device(bench.one)} {gid}', 90)
    assert result.ok and result.out.endswith('done\n'), str(result)
    return result.out


def only_ours(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe behaves differently')


def test_events_of_queue_pairs(bench):
    only_ours(bench)
    check(bench, 'qp_events')


def test_posting_polling_and_arming_take_no_system_call(bench):
    only_ours(bench)
    if queues():
        raise Skip('with virtqueues, each of them is a system call')
    run_no_syscalls(bench)


def test_no_event_after_destroy(bench):
    only_ours(bench)
    check(bench, 'no_event_after_destroy')


def test_each_event_of_the_port_comes_once(bench):
    job = bench.one.spawn(
        f'stdbuf -oL ibv_asyncwatch -d {bench.device(bench.one)}')
    try:
        job.wait_for('async event FD')
        for times in (1, 2, 3):
            for up, event in ((False, 'PORT_ERR'), (True, 'PORT_ACTIVE')):
                bench.one.qmp('set_link', name='n0', up=up)
                job.wait_for(event, times=times)
        # A duplicate event would be between the later ones.
        events = re.findall('PORT_(?:ERR|ACTIVE)', job.peek().out)
        assert events == ['PORT_ERR', 'PORT_ACTIVE'] * 3, events
    finally:
        bench.one.qmp('set_link', name='n0', up=True)
        job.kill()


def test_deep_cq_loses_nothing(bench):
    only_ours(bench)
    check(bench, 'deep_cq')


def test_deep_cq_wakes_a_waiting_program(bench):
    only_ours(bench)
    check(bench, 'deep_cq_with_events')


def test_resize_cq(bench):
    only_ours(bench)
    check(bench, 'resize_cq')


def test_arming_raises_one_event_and_never_too_late(bench):
    only_ours(bench)
    check(bench, 'arming')


def test_counters_count_what_was_sent(bench):
    only_ours(bench)
    before = bench.counters()
    bench.exchange('ib_write_bw -s 65536 -n 64 -m 4096',
                   'ib_write_bw -s 65536 -n 64 -m 4096',
                   form='-F -d {} -x {}')
    after = bench.counters()
    sent = {name: after[name] - before[name] for name in after}
    assert sent['hw_counters/tx_packets'] >= 64 * 16, sent
    assert sent['hw_counters/tx_bytes'] >= 64 * 65536, sent
    assert sent['hw_counters/rx_packets'] > 0, sent
    for name in ('rx_icrc_errors', 'rx_malformed', 'bad_pkey', 'bad_qkey'):
        assert sent[f'hw_counters/{name}'] == 0, sent
    assert after['counters/port_xmit_packets'] == \
        after['hw_counters/tx_packets'], after
    assert after['counters/port_rcv_data'] == \
        after['hw_counters/rx_bytes'] // 4, after
    text = bench.one.must(
        f'rdma statistic show link {bench.device(bench.one)}/1')
    assert f"tx_packets {after['hw_counters/tx_packets']} " in text, text


def vlan_gids(bench, vm, index):
    """Wait for the GIDs of eth0.7; return {family: index}."""
    wanted = {4: f'ffff:0a00:070{index}',
              6: f'fd07:0000:0000:0000:0000:0000:0000:000{index}'}
    end = time.monotonic() + 10
    while True:
        table = bench.stacks[vm].gids(vm)
        found = {family: i for i, gid in table.items()
                 for family, its in wanted.items() if gid.endswith(its)}
        if len(found) == len(wanted):
            return found
        assert time.monotonic() < end, vm.must('rdma link; ip addr')


def test_gids_of_a_vlan(bench):
    only_ours(bench)
    for index, vm in enumerate(bench.pair.vms, 1):
        vm.must('modprobe 8021q && '
                'ip link add link eth0 name eth0.7 type vlan id 7 && '
                f'ip addr add 10.0.7.{index}/24 dev eth0.7 && '
                f'ip addr add fd07::{index}/64 dev eth0.7 nodad && '
                'ip link set eth0.7 up')
    try:
        one, two = (vlan_gids(bench, vm, index)
                    for index, vm in enumerate(bench.pair.vms, 1))
        command = 'ibv_{}_pingpong -c -n 100 -s 1024 -d {} -g {}'
        for kind in ('rc', 'ud'):
            job = bench.two.spawn(command.format(
                kind, bench.device(bench.two), two[4]), 18515)
            client = bench.one.run(command.format(
                kind, bench.device(bench.one), one[4]) + f' {address(2)}')
            server = job.wait(10 if client.ok else 1)
            assert client.ok and server.ok, f'{client}\n{server}'
        # POLL_CQ, with which the kernel polls virtqueues, returns no VLAN.
        if not queues():
            assert 'VLAN 7\n' in check(bench, 'vlan_of_datagrams', one[4])
            assert 'VLAN 0\n' in check(bench, 'vlan_of_datagrams')
        for family, host in ((4, '10.0.7.2'), (6, 'fd07::2')):
            # The service level becomes the priority of the frames.
            said = bench.one.must(f'{build_objects()} -g {one[family]} '
                                  f'-d {bench.device(bench.one)} ah-from-wc')
            assert 'SL 5\n' in said, said
            # Both ends make address handles from received datagrams.
            for server, client in (
                    (f'rping -s -a {host} -C 5', f'rping -c -a {host} -C 5'),
                    (f'udaddy -b {host} -c 2 -C 3',
                     f'udaddy -s {host} -c 2 -C 3')):
                result = cm_exchange(bench.two, bench.one, server, client)
                assert result.ok, str(result)
    finally:
        for vm in bench.pair.vms:
            vm.run('ip link del eth0.7')
