# SPDX-License-Identifier: GPL-2.0-or-later
"""Multicast: what one guest sends to a group the other receives."""
import time

from lab.pair import address


def joined(job):
    end = time.monotonic() + 20
    while 'joined dgid' not in job.peek().out:
        its = job.peek()
        assert its.rc is None and time.monotonic() < end, str(its)
        time.sleep(0.1)


def mckey(bench, group, options=''):
    """mckey of librdmacm: guest 1 sends to the group, guest 2 receives."""
    command = f'stdbuf -oL mckey -m {group} {options} -b '
    job = bench.two.spawn(command + address(2))
    joined(job)
    client = bench.one.run(f'{command}{address(1)} -s', 30)
    server = job.wait(10 if client.ok else 1)
    assert client.ok and server.ok, f'{client}\n{server}'
    return client, server


def test_mckey(bench):
    mckey(bench, '239.1.2.3')


def test_mckey_large_datagrams(bench):
    mckey(bench, '239.1.2.4', '-C 40 -S 4096')


def test_mckey_several_groups_at_once(bench):
    mckey(bench, '239.1.2.5', '-c 4 -C 10 -S 512')
