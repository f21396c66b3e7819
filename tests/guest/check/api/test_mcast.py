# SPDX-License-Identifier: GPL-2.0-or-later
"""Multicast: the second guest receives what the first one sends to a group."""
from guestkit.adapter import address
from lab.programs import build_objects


def mckey(bench, group, options=''):
    """Run mckey of librdmacm: guest 1 sends to the group, guest 2 receives."""
    command = f'stdbuf -oL mckey -m {group} {options} -b '
    job = bench.two.spawn(command + address(2))
    job.wait_for('joined dgid')
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


def test_a_group_that_only_the_adapters_know(bench):
    """An IPv6 group, which Linux's connection manager does not join."""
    commands = [f'{build_objects()} {bench.where(vm, "-d {} -g {}", 6)}'
                for vm in (bench.one, bench.two)]
    for group in ('ff15::1:2:3', 'ff02::7'):
        job = bench.two.spawn(f'{commands[1]} mcast-receive {group}')
        job.wait_for('joined')
        client = bench.one.run(f'{commands[0]} mcast-send {group}', 30)
        server = job.wait(10 if client.ok else 1)
        assert client.ok and server.ok, f'{client}\n{server}'
