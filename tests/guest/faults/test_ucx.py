# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX in guest 1, whose adapter has faults: UCX calls its error handler, and
survives faults that pass."""
import re

from guestkit.adapter import address
from lab.faults import fault
from lab.programs import PORT, exchange
from lab.ucx import SETTINGS, program

SECONDS = 60
LATE = 400                      # ms

# Faults of WRITEs, so they strike the PUTs, not the datagrams that connect the
# guests. For each fault that ends the PUTs: the message of UCX
FAULTS = (
    ('completion-error', {'status': 'retry-exc-err'},
     r'error handler called .*\(Endpoint timeout\)'),
    ('remote-access', {},
     r'error handler called .*\(Connection reset by remote peer\)'),
    ('qp-fatal', {}, r'ERROR .* on QPN '),
    ('cq-overrun', {}, r'ERROR .*CQ error'),
    ('qp-stuck', {'duration': LATE}, None),
    ('completion-delay', {'delay': LATE}, None),
    ('completion-reorder', {'delay': LATE}, None),
)


def run(bench):
    """Run PUTs of UCP, with endpoints that handle errors."""
    perftest = program()

    def command(vm, peer):
        return (f'{" ".join(SETTINGS)} UCX_NET_DEVICES={bench.device(vm)}:1 '
                f'UCX_IB_GID_INDEX={bench.gid(vm)} UCX_TLS=rc_verbs,ud_verbs '
                f'{perftest} -e -f -p {PORT} -n 500 -w 10 '
                f'-t ucp_put_bw -s 4096 {peer}')
    return exchange(bench.two, bench.one, command(bench.two, ''),
                    command(bench.one, address(2)), PORT, timeout=20)


def test_faults(bench):
    for kind, arguments, says in FAULTS:
        with fault(bench.one, kind, opcode='rdma-write', after=2,
                   **arguments) as made:
            result = run(bench)
            assert made.hits == 1, f'{made.info}\n{result}'
        assert result.client.ok == (says is None), f'{kind}: {result}'
        text = [line for line in result.client.out.splitlines()
                if re.search(says or '[Ee]rror|ERROR', line)]
        assert bool(text) != result.client.ok, f'{kind}: {result}'
        bench.note(f'{kind}: ' + (text[0] if text else 'ended well'))
    assert run(bench).ok
