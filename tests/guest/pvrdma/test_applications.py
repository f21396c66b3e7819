# SPDX-License-Identifier: GPL-2.0-or-later
"""UCX and Open MPI of Debian."""
from lab import mpi, pvrdma
from lab.ucx import perftest

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'smp': 2}


def test_ucx_rc(bench):
    # UCX sends "short" messages inline, which the provider does not have.
    for test in ('am_lat -D bcopy -s 8', 'am_bw -D bcopy -s 2048',
                 'put_bw -D zcopy -s 4000', 'get -D zcopy -s 4096'):
        perftest(bench, f'-x rc_verbs -d {{device}} -t {test}')


def test_ucx_rc_has_atomics(bench):
    for test in 'add_mr', 'fadd', 'cswap':
        perftest(bench, f'-x rc_verbs -d {{device}} -t {test} -s 8')


def test_what_ucp_chooses(bench):
    for test in 'tag_lat', 'ucp_put_bw', 'ucp_get', 'stream_bw':
        perftest(bench, f'-t {test} -s 65536')


def packets(vm):
    """Return the packets that the guest's adapter has sent."""
    return vm.qmp('query-rdma')[0]['counters']['tx-packets']


def verify(bench, ranks, cases, settings=()):
    """Run cases of mpi_verify. Each must succeed, and use the adapters."""
    before = [packets(vm) for vm in bench.pair.vms]
    with mpi.shell(bench):
        result = mpi.run(bench, ranks, f'{mpi.build_verify()} {cases}', 150,
                         settings)
    assert result.ok, str(result)
    for case in cases.split():
        assert f'{case}: fine, {ranks} ranks' in result.out, str(result)
    for vm, old in zip(bench.pair.vms, before):
        assert packets(vm) - old > 10 * ranks, f'{vm.name}: {result}'


def test_mpi_exchanges_messages(bench):
    for ranks in (2, 4):
        verify(bench, ranks, 'ring:262144:2 alltoall:65536:2 '
               'allreduce:262144:2')


def test_mpi_reads_and_writes(bench):
    for ranks in (2, 4):
        verify(bench, ranks, 'put-get:16384:2 atomics:8:10')


def test_mpi_exchanges_messages_by_ud(bench):
    """ucx_perftest cannot do this. Without inline data, which the driver does
    not offer, UCX's acknowledgements count as outstanding until a completion
    that UCX has not requested, and the flush of ucx_perftest waits for it."""
    verify(bench, 2, 'ring:16384:2 alltoall:4096:2 allreduce:16384:2',
           ['UCX_TLS=ud_verbs,self'])
