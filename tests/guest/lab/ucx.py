# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's UCX: a user of libibverbs that was written for hardware
adapters."""
import re

from guestkit.adapter import address

from . import unpacked
from .programs import PORT, exchange

PACKAGES = ('ucx-utils', 'libucx0')

# With IPv4 addresses every device except mlx5 needs this.
SETTINGS = ('UCX_UD_VERBS_ETH_DGID_CHECK=n',)


def program():
    """Return the command of ucx_perftest in a guest, without its options.
    Debian 13's is linked with MPI, and acts as a process of mpirun unless its
    input is a terminal."""
    inside = unpacked.inside(unpacked.tree('ucx', PACKAGES))
    return f'< /dev/console {inside} ucx_perftest'


def perftest(bench, options, settings='', count=100):
    """Run ucx_perftest with its client in guest 1 and its server in guest 2.
    Both must succeed. Return the client's result."""
    run = program()

    def command(vm, peer):
        device = f'{bench.device(vm)}:1'
        return (f'{" ".join(SETTINGS)} UCX_NET_DEVICES={device} '
                f'UCX_IB_GID_INDEX={bench.gid(vm)} {settings} {run} '
                f'-f -p {PORT} -n {count} -w 10 '
                f'{options.format(device=device)} {peer}')
    result = exchange(bench.two, bench.one, command(bench.two, ''),
                      command(bench.one, address(2)), PORT)
    assert result.ok, str(result)
    for text in (result.client.out, result.server.out):
        assert 'ERROR' not in text, str(result)
    assert re.search(rf'^ *{count} +\d', result.client.out, re.M), str(result)
    return result.client
