# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock programs of rdma-core and perftest between the guests of a bench. Each
function requires that both ends succeed."""
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


def connect(bench, server_cmd, client_cmd, server=None, timeout=30):
    """Run a program whose ends connect by RDMA CM: (client, server)"""
    server = server or bench.two
    client = bench.one if server is bench.two else bench.two
    result = cm_exchange(server, client, server_cmd, client_cmd, timeout)
    assert result.ok, str(result)
    return result.client, result.server
