# SPDX-License-Identifier: GPL-2.0-or-later
"""fio with its engine "rdma", which connects by RDMA CM and asks for an
rnr_retry of 0. The server's job is a read and the client's a write, in either
direction."""
import json
import re

from guestkit.adapter import address
from lab import unpacked
from lab.programs import cm_exchange

PORT = 7471
DEPTH = 16


def fio(bench, verb, size, mebibytes, receives=DEPTH):
    """Run a client and its server. Both must succeed, with every byte
    moved."""
    tool = f'{unpacked.inside(unpacked.tree("fio", ("fio",)))} fio'
    # fio knows an engine's options only after the option that selects it.
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
    # An rnr_retry of 0 forbids a message before its receive. fio's client
    # waits half a second before it sends, while the server posts its first
    # receives. Nothing delays the client later, so this job posts a receive
    # for each message.
    fio(bench, 'send', '64k', 4, receives=64)
