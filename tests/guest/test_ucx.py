# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX of Debian between two guests. It fills in attributes as adapters let
it, a flow label of all ones, and asks for queues of 4096 receives."""
from lab.pair import address
from lab.programs import PORT, exchange
from lab.ucx import programs

SECONDS = 20

# With addresses of IPv4 every device but mlx5 needs this.
SETTINGS = 'UCX_UD_VERBS_ETH_DGID_CHECK=n'


def perftest(bench, options, tls=''):
    """Client in guest 1, server in guest 2; both have to succeed."""
    def command(vm, peer):
        device = f'{bench.device(vm)}:1'
        return (f'{programs()} {SETTINGS} UCX_NET_DEVICES={device} '
                f'UCX_IB_GID_INDEX={bench.gid(vm)} {tls} ucx_perftest '
                f'-f -p {PORT} {options.format(device=device)} {peer}')
    result = exchange(bench.two, bench.one, command(bench.two, ''),
                      command(bench.one, address(2)), PORT)
    assert result.ok, str(result)
    for text in (result.client.out, result.server.out):
        assert 'ERROR' not in text, str(result)


def test_rc_connects(bench):
    for test in ('am_lat -D short -s 8', 'get -D zcopy -s 4096'):
        perftest(bench, f'-x rc_verbs -d {{device}} -n 100 -w 10 -t {test}')


def test_ud_connects(bench):
    perftest(bench, '-x ud_verbs -d {device} -n 100 -w 10 -t am_lat -D bcopy '
             '-s 512')


def test_a_large_message_takes_both(bench):
    perftest(bench, '-s 65536 -n 50 -w 5 -t tag_lat',
             'UCX_TLS=rc_verbs,ud_verbs')
