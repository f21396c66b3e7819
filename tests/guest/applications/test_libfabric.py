# SPDX-License-Identifier: GPL-2.0-or-later
"""libfabric with its provider "verbs": fi_pingpong compares what comes back
with what it sent, in messages of 64 bytes to 1 MiB or to the MTU."""
import re

from guestkit.adapter import address
from lab import unpacked
from lab.programs import exchange

PORT = 47592    # fi_pingpong's own

# For datagrams over connections it wants a CQ of 256 entries for each of so
# many peers. By default it expects 256, and max_cqe is half of what they need;
# rxe's is less by one.
UNIVERSE = 'FI_UNIVERSE_SIZE=64'


def tool(name):
    root = unpacked.tree('libfabric', ('libfabric-bin', 'libfabric1'))
    return f'{UNIVERSE} {unpacked.inside(root)} {name}'


# A peer that disconnects at once after its last message may be noticed before
# that message, which is lost with the connection (libfabric's own race, pull
# request 5228): have it look at connections less often, in microseconds.
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
