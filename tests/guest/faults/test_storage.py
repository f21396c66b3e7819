# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe-oF and NFS over RDMA: guest 1 has its data in guest 2, and one of the
guests an adapter with faults. Both users reconnect, and no byte is lost."""
from guestkit.adapter import address
from guestkit.paths import LabError
from lab import nfs, nvme, storage
from lab.faults import fault
from lab.pair import queues

SECONDS = 180
LATE = 400                      # ms
DOWN = 2000                     # ms
SIZES = (('64k', 8),)

# Faults of a queue pair at work, and whether the user reconnects. Only
# direct completion queues can be created again.
FAULTS = (
    ('completion-error', {'status': 'retry-exc-err'}, True),
    ('completion-error', {'opcode': 'recv', 'status': 'loc-len-err'}, True),
    ('local-access', {}, True),
    ('qp-fatal', {}, True),
    ('qp-stuck', {'duration': LATE}, False),
    ('completion-delay', {'delay': LATE}, False),
    ('completion-reorder', {'delay': LATE, 'opcode': 'send'}, False),
    ('port-down', {'duration': DOWN}, False),
) + (() if queues() else (('cq-overrun', {}, True),))
# Faults in guest 2. Faults of READ and WRITE must be there, because guest 1
# does not read or write the other guest's memory.
FAR_FAULTS = (
    ('completion-error', {'opcode': 'rdma-write', 'status': 'loc-qp-op-err'},
     True),
    ('remote-access', {'opcode': 'rdma-write'}, True),
    ('remote-access', {'opcode': 'rdma-read'}, True),
    ('completion-delay', {'delay': LATE, 'opcode': 'send'}, False),
)


def all_faults(bench):
    return ([(bench.one, *one) for one in FAULTS] +
            [(bench.two, *one) for one in FAR_FAULTS])


def strike(bench, work, path, vm, kind, arguments):
    """Let the fault strike during the work at the path, which has to
    succeed."""
    try:
        strike_at(bench, work, path, vm, kind, arguments)
    except (LabError, AssertionError) as e:
        raise LabError(f'{kind} {arguments}: {e}\n' +
                       bench.one.must('dmesg | tail -30') +
                       bench.two.must('dmesg | tail -10')) from e


def strike_at(bench, work, path, vm, kind, arguments):
    if kind == 'port-down':
        state = '/sys/class/infiniband/' \
            f'{bench.device(bench.one)}/ports/1/state'
        with fault(bench.one, kind, **arguments):
            # The work begins while the port is down, and ends after the port
            # is up
            bench.one.must(
                f'grep -q DOWN {state} && dd if={path} of=/dev/null bs=64k '
                'count=1 iflag=direct status=none && '
                f'grep -q ACTIVE {state}', 60)
            work()
        return
    with fault(vm, kind, after=20, **arguments) as made:
        work()
        made.wait()


def test_nvme_connects_again(bench):
    nvme.export(bench.two, address(2))
    controller = nvme.connect(bench.one, address(2), 1,
                              ',reconnect_delay=1,keep_alive_tmo=5')
    device = f'/dev/{controller}n1'
    state = f'/sys/class/nvme/{controller}/state'

    def connections():
        return int(bench.one.must(
            'dmesg | grep -c "Successfully reconnected" || :'))

    def work():
        storage.blocks(bench.one, device, bench.two, nvme.DISK, SIZES)
    try:
        for vm, kind, arguments, reconnects in all_faults(bench):
            before = connections()
            strike(bench, work, device, vm, kind, arguments)
            bench.one.must(f'for i in $(seq 300); do grep -q live {state} && '
                           'exit 0; sleep 0.1; done; exit 1', 60)
            assert (connections() > before) == reconnects, (
                kind, arguments, bench.one.must('dmesg | tail -20'))
            bench.note(f'{vm.name}: {kind} {arguments}: ' +
                       ('connected again' if reconnects else 'went on'))
        work()
    finally:
        nvme.disconnect(bench.one, controller)
        nvme.withdraw(bench.two)


def test_nfs_goes_on(bench):
    nfs.export(bench.two, [address(1, 4), address(1, 6)])
    nfs.mount(bench.one, address(2), address(1))

    def work():
        for size, mebibytes in SIZES:
            wanted = storage.make_data(bench.one, mebibytes)
            bench.one.must(f'dd if={storage.DATA} of=/mnt/{size} bs={size} '
                           'oflag=direct conv=fsync status=none', 120)
            assert storage.checksum(bench.one, f'/mnt/{size}', mebibytes,
                                    'iflag=direct') == wanted
            assert storage.checksum(bench.two, f'{nfs.ROOT}/{size}',
                                    mebibytes) == wanted
    try:
        for vm, kind, arguments, reconnects in all_faults(bench):
            start = connected(bench)
            strike(bench, work, f'/mnt/{SIZES[0][0]}', vm, kind, arguments)
            assert (connected(bench) != start) == reconnects, (kind, arguments)
            bench.note(f'{vm.name}: {kind} {arguments}: ' +
                       ('connected again' if reconnects else 'went on'))
        work()
    finally:
        nfs.unmount(bench.one)
        nfs.withdraw(bench.two)
    nfs.unload(bench.one)
    nfs.unload(bench.two)


def connected(bench):
    """Return guest 1's queue pairs that are connected."""
    return {(qp['qpn'], qp.get('dest-qpn')) for qp in
            bench.one.qmp('query-rdma', objects=['qp'])[0]['qps']
            if qp['type'] == 'rc'}
