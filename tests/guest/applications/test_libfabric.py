# SPDX-License-Identifier: GPL-2.0-or-later
"""libfabric with its provider "verbs": fi_pingpong compares what comes back
with what it sent, in messages of 64 bytes to 1 MiB or to the MTU."""
import re

from guestkit.adapter import address
from lab import unpacked
from lab.programs import exchange

PORT = 47592    # the default of fi_pingpong

# The provider's reliable datagrams want a CQ of 256 entries for each expected
# peer. It expects 256 peers by default, and max_cqe is half of what they need;
# rxe's is one less.
UNIVERSE = 'FI_UNIVERSE_SIZE=64'


def tool(name):
    root = unpacked.tree('libfabric', ('libfabric-bin', 'libfabric1'))
    return f'{UNIVERSE} {unpacked.inside(root)} {name}'


# If a peer disconnects right after its last message, libfabric may see the
# disconnection first and lose the message (a race in libfabric, its pull
# request 5228). So make libfabric poll connections less often, in
# microseconds.
RELIABLE = 'FI_OFI_RXM_CM_PROGRESS_INTERVAL=200000'


def pingpong(bench, endpoint, sizes, provider='verbs', count=20, environ=''):
    """Ping-pong of each size, data checked."""
    command = (f'{environ} {tool("fi_pingpong")} -p "{provider}" '
               f'-e {endpoint} -c -I {count}')
    for size in sizes:
        result = exchange(bench.two, bench.one, f'{command} -S {size}',
                          f'{command} -S {size} {address(2)}', PORT)
        assert result.ok, str(result)
        for side in (result.client, result.server):
            assert re.search(rf'^\S+ +{count} ', side.out, re.M), str(result)
        bench.note(result.client.out.splitlines()[-1])


def test_fi_info_lists_the_device(bench):
    text = bench.one.must(f'{tool("fi_info")} -p verbs')
    assert bench.device(bench.one) in text, text


def test_connected_endpoints(bench):
    pingpong(bench, 'msg', (64, 4096, 65536, 1 << 20))


def test_reliable_datagrams(bench):
    pingpong(bench, 'rdm', (64, 4096, 65536, 1 << 20), 'verbs;ofi_rxm',
             environ=RELIABLE)


def test_datagrams(bench):
    pingpong(bench, 'dgram', (64, 1024, 2048))
