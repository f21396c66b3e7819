# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of Debian testing, whose libibverbs has another private ABI than
that of Debian 12 and 13."""
from lab import userland
from lab.stock import perftest_of_each_operation, pingpong

SUITE = 'testing'
SECONDS = 60


def enter(bench):
    return userland.enter(bench.pair.vms, SUITE)


def test_ibv_devinfo_shows_an_active_port(bench):
    text = bench.one.must(enter(bench) + 'ibv_devinfo')
    assert 'PORT_ACTIVE' in text, text
    bench.note(f'rdma-core {userland.version(userland.prepare(SUITE))}')


def test_pingpong_of_each_service(bench):
    prefix = enter(bench)
    for tool, options in (('rc', '-e'), ('uc', ''), ('ud', '-s 1024'),
                          ('srq', '-e')):
        pingpong(bench, f'{prefix}ibv_{tool}_pingpong', options)


def test_bandwidth_and_latency_of_every_operation(bench):
    perftest_of_each_operation(bench, enter(bench))
