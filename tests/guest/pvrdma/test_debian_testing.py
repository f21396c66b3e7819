# SPDX-License-Identifier: GPL-2.0-or-later
"""The newest driver of Debian's kernels, and the provider and programs of
Debian testing."""
from guestkit.adapter import address
from lab import pvrdma, userland
from lab.programs import cm_exchange
from lab.stock import perftest_of_each_operation, pingpong

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'smp': 2, 'series': 'newest'}
SUITE = 'testing'
SECONDS = 60


def enter(bench):
    return userland.enter(bench.pair.vms, SUITE)


def test_ibv_devinfo_shows_an_active_port(bench):
    for vm in bench.pair.vms:
        text = vm.must(f'{enter(bench)}ibv_devinfo -d {bench.device(vm)}')
        assert 'PORT_ACTIVE' in text, text
    release = bench.one.must('uname -r').strip()
    bench.note(f'Linux {release}, rdma-core '
               f'{userland.version(userland.prepare(SUITE))}')


def test_pingpong_of_each_service(bench):
    for tool, options in (('rc', '-e'), ('ud', '-s 1024'), ('srq', '-e')):
        pingpong(bench, f'{enter(bench)}ibv_{tool}_pingpong', options)


def test_bandwidth_and_latency_of_every_operation(bench):
    perftest_of_each_operation(bench, enter(bench))


def test_rping(bench):
    prefix = enter(bench)
    for family in (4, 6):
        host = address(2, family)
        result = cm_exchange(
            bench.two, bench.one, f'{prefix}rping -s -a {host} -C 20 -V',
            f'{prefix}rping -c -a {host} -C 20 -V -v', listener='rping')
        assert result.ok, str(result)
        assert result.client.out.count('ping data') == 20, str(result)
