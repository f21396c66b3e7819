# SPDX-License-Identifier: GPL-2.0-or-later
"""fio with its engine "rdma". It connects by RDMA CM, and asks for an
rnr_retry of 0. Whether it reads or writes, its server's job is a read and its
client's a write."""
import json
import re

from guestkit.adapter import address
from lab import unpacked
from lab.programs import cm_exchange

PORT = 7471
DEPTH = 16


def fio(bench, verb, size, mebibytes, receives=DEPTH):
    """Run a client and its server: both have to end well, with every byte
    moved."""
    tool = f'{unpacked.inside(unpacked.tree("fio", ("fio",)))} fio'
    # The engine's own options are known once it is.
    job = (f'--output-format=json --name={verb} --ioengine=rdma '
           f'--port={PORT} --bs={size} --size={mebibytes}m')
    result = cm_exchange(
        bench.two, bench.one, f'{tool} {job} --rw=read --iodepth={receives}',
        f'{tool} {job} --rw=write --iodepth={DEPTH} --verb={verb} '
        f'--hostname={address(2)}',
        timeout=120, listener='fio')
    assert result.ok, str(result)
    report = json.loads(re.sub(r'\A[^{]*', '', result.client.out))
    job = report['jobs'][0]
    assert job['error'] == 0, str(result)
    assert job['write']['io_bytes'] == mebibytes << 20, str(result)
    bench.note(f'{size}: {job["write"]["bw"] / 1000:.1f} MB/s')


def test_write(bench):
    fio(bench, 'write', '64k', 64)
    fio(bench, 'write', '1m', 64)


def test_read(bench):
    fio(bench, 'read', '64k', 64)
    fio(bench, 'read', '1m', 64)


def test_send(bench):
    # With an rnr_retry of 0 no message may come before its receive. fio waits
    # half a second before it sends, while its server posts the first of them;
    # nothing holds it back later. So there is a receive for each message.
    fio(bench, 'send', '64k', 4, receives=64)
