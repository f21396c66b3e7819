# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX in guest 1, whose adapter has faults: its error handler runs, and what
passes by itself is survived."""
from lab import unpacked
from lab.faults import fault
from lab.pair import address
from lab.programs import PORT, exchange
from lab.ucx import PACKAGES, SETTINGS

SECONDS = 60
LATE = 400                      # ms

# Of the PUTs: datagrams connect the two.
FAULTS = (
    ('completion-error', {'status': 'retry-exc-err'}, True),
    ('remote-access', {}, True),
    ('qp-fatal', {}, True),
    ('qp-stuck', {'duration': LATE}, False),
    ('completion-delay', {'delay': LATE}, False),
    ('completion-reorder', {'delay': LATE}, False),
)


def run(bench):
    """PUTs of UCP, with endpoints that handle errors."""
    inside = unpacked.inside(unpacked.tree('ucx', PACKAGES))

    def command(vm, peer):
        return (f'{" ".join(SETTINGS)} UCX_NET_DEVICES={bench.device(vm)}:1 '
                f'UCX_IB_GID_INDEX={bench.gid(vm)} UCX_TLS=rc_verbs,ud_verbs '
                f'{inside} ucx_perftest -e -f -p {PORT} -n 500 -w 10 '
                f'-t ucp_put_bw -s 4096 {peer}')
    return exchange(bench.two, bench.one, command(bench.two, ''),
                    command(bench.one, address(2)), PORT, timeout=20)


def test_faults(bench):
    for kind, arguments, fails in FAULTS:
        with fault(bench.one, kind, opcode='rdma-write', after=2,
                   **arguments) as made:
            result = run(bench)
            assert made.hits == 1, f'{made.info}\n{result}'
        assert result.client.ok != fails, f'{kind}: {result}'
        text = [line for line in result.client.out.splitlines()
                if 'ERROR' in line or 'error' in line]
        assert bool(text) == fails, f'{kind}: {result}'
        bench.note(f'{kind}: ' + (text[0] if text else 'ended well'))
    assert run(bench).ok
