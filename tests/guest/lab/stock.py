# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock programs of rdma-core and perftest between the guests of a bench. Each
function requires that both ends succeed."""
from guestkit.adapter import address

from .perftest import ROW
from .programs import cm_exchange, exchange
from .runner import ACK_TIMEOUT

PERFTEST = f'-F -u {ACK_TIMEOUT} -d {{}} -x {{}}'


def pingpong(bench, tool, options='', count=200):
    """Run a pingpong that compares what it receives."""
    result = bench.exchange(f'{tool} -c -n {count} {options}',
                            f'{tool} -c -n {count} {options}')
    for side in (result.client, result.server):
        assert f'{count} iters in' in side.out, str(result)
        assert 'invalid' not in side.out, str(result)


def perftest(bench, tool, options, how=exchange):
    result = bench.exchange(f'{tool} {options}', f'{tool} {options}',
                            form=PERFTEST, how=how)
    assert ROW.search(result.client.out), str(result)


def perftest_of_each_operation(bench, prefix):
    """Run the bandwidth and the latency program of SEND, WRITE, READ, and
    atomics, with PREFIX in front of the program."""
    for tool in 'send', 'write', 'read', 'atomic':
        size = '' if tool == 'atomic' else '-s 65536'
        perftest(bench, f'{prefix}ib_{tool}_bw', f'{size} -n 200')
        perftest(bench, f'{prefix}ib_{tool}_lat', '-n 200')


def connect(bench, server_cmd, client_cmd, server=None, timeout=30):
    """Run a program whose ends connect by RDMA CM: (client, server)"""
    server = server or bench.two
    client = bench.one if server is bench.two else bench.two
    result = cm_exchange(server, client, server_cmd, client_cmd, timeout)
    assert result.ok, str(result)
    return result.client, result.server


def connect_by_address(bench, server_cmd, client_cmd, families=(4, 6)):
    """Run connect() for each family, with guest 2's address instead of {} in
    the commands."""
    for family in families:
        host = address(2, family)
        connect(bench, server_cmd.format(host), client_cmd.format(host))


def rping(bench):
    """Run rping over both families, with each guest as the server."""
    for server, index in ((bench.two, 2), (bench.one, 1)):
        for family in (4, 6):
            host = address(index, family)
            its, _ = connect(bench, f'rping -s -a {host} -C 20 -V',
                             f'rping -c -a {host} -C 20 -V -v', server)
            assert its.out.count('ping data') == 20, str(its)


def ucmatose(bench):
    connect_by_address(bench, 'ucmatose -b {} -c 20 -C 10 -S 4096',
                       'ucmatose -s {} -c 20 -C 10 -S 4096')


def udaddy(bench, families=(4, 6)):
    connect_by_address(bench, 'udaddy -b {} -c 4 -C 10 -S 1024',
                       'udaddy -s {} -c 4 -C 10 -S 1024', families)


def rdma_client(bench):
    connect_by_address(bench, 'rdma_server -s {}', 'rdma_client -s {}')


def rstream(bench):
    connect_by_address(bench, 'rstream -b {} -T v -S 65536 -C 20',
                       'rstream -s {} -T v -S 65536 -C 20')
