# SPDX-License-Identifier: GPL-2.0-or-later
"""Open MPI over UCX. Each program has ranks in both guests, and they compare
every byte that they receive."""
from lab import mpi

LARGE = 'ring:262144:2 alltoall:65536:2 allreduce:262144:2'
SMALL = 'ring:4096:1 alltoall:4096:2 allreduce:16384:2'


def sent(bench, vm):
    """Return the packets that the guest's device has sent, as virtio-rdma or
    rxe counts them."""
    # The RDMA core refreshes counters at most every 10 ms.
    vm.must('sleep 0.05')
    return int(vm.must('cd /sys/class/infiniband/'
                       f'{bench.device(vm)}/ports/1/hw_counters; '
                       'cat tx_packets 2>/dev/null || cat sent_pkts'))


def verify(bench, ranks, cases, timeout=150):
    """Run the cases. Each must succeed, and use the devices."""
    program = mpi.build_verify()
    before = [sent(bench, vm) for vm in bench.pair.vms]
    with mpi.shell(bench):
        result = mpi.run(bench, ranks, f'{program} {cases}', timeout)
    assert result.ok, str(result)
    for case in cases.split():
        assert f'{case}: fine, {ranks} ranks' in result.out, str(result)
    for vm, old in zip(bench.pair.vms, before):
        new = sent(bench, vm)
        assert new - old > 10 * ranks, f'{vm.name}: {new - old} packets left'
    bench.note(result.out)


def test_2_ranks_exchange_messages(bench):
    verify(bench, 2, LARGE)


def test_2_ranks_read_and_write_each_other(bench):
    verify(bench, 2, 'put-get:65536:2 atomics:8:20')


def test_4_ranks_exchange_messages(bench):
    verify(bench, 4, LARGE)


def test_4_ranks_read_and_write_each_other(bench):
    verify(bench, 4, 'put-get:16384:2 atomics:8:10')


def test_16_ranks_exchange_messages(bench):
    verify(bench, 16, SMALL)


def test_16_ranks_read_and_write_each_other(bench):
    verify(bench, 16, 'put-get:2048:1 atomics:8:2')
