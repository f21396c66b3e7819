# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of Debian 13 and testing, which have other releases of rdma-core
than this machine. That of testing has another private ABI of libibverbs."""
from check.programs.test_pyverbs import OWN
from lab import pyverbs, userland
from lab.stock import perftest_of_each_operation, pingpong

GUESTS = {'smp': 2}
# {suite: how many of rdma-core's tests have to pass at least}
SUITES = {'trixie': 95, 'testing': 114}
SECONDS = 120


def each_suite(bench):
    """Yield what commands of each suite begin with."""
    for suite in SUITES:
        yield userland.enter(bench.pair.vms, suite)


def test_ibv_devinfo_shows_an_active_port(bench):
    for prefix in each_suite(bench):
        text = bench.one.must(prefix + 'ibv_devinfo')
        assert 'PORT_ACTIVE' in text, text
    bench.note('rdma-core ' + ', '.join(
        userland.version(userland.prepare(suite)) for suite in SUITES))


def test_pingpong_of_each_service(bench):
    for prefix in each_suite(bench):
        for tool, options in (('rc', '-e'), ('uc', ''), ('ud', '-s 1024'),
                              ('srq', '-e')):
            pingpong(bench, f'{prefix}ibv_{tool}_pingpong', options)


def test_bandwidth_and_latency_of_every_operation(bench):
    for prefix in each_suite(bench):
        perftest_of_each_operation(bench, prefix)


def test_pyverbs(bench):
    for (suite, passed), prefix in zip(SUITES.items(), each_suite(bench)):
        pyverbs.prepare_root(userland.prepare(suite))
        results = pyverbs.run_in(bench.one, bench.stacks[bench.one], cm=False,
                                 pattern=OWN, enter=prefix)
        bench.note(f'{suite}: {pyverbs.summary(results)}')
        pyverbs.require(results, passed)


def test_speed_of_the_port(bench):
    """Of 4X EDR, in units of 100 Mb/s. rdma-core asks since version 62."""
    prefix = userland.enter(bench.pair.vms, 'testing')
    said = bench.one.must(
        f"{prefix}python3 -c 'from pyverbs.device import Context; print("
        f"Context(name=\"{bench.device(bench.one)}\").query_port_speed(1))'")
    assert said == '1000\n', said
