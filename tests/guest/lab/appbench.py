# SPDX-License-Identifier: GPL-2.0-or-later
"""Applications between two guests, over virtio-rdma and over rxe on the same
link: `make bench-applications`.

Rates are of 10^6 bytes. Times are of one message, or of one exchange if the
program says so. Each figure is the median of some runs. Both stacks run in the
same pair of guests.
"""
import json
import re
import statistics

from guestkit.adapter import address
from guestkit.paths import LabError

from . import mpi, unpacked
from .pair import Pair
from .places import RESULTS
from .programs import cm_exchange, exchange
from .runner import Bench
from .ucx import perftest

STACKS = ('virtio-rdma', 'rxe')
ROUNDS = 3
# Multiplies rxe's iterations: virtio-rdma runs more in about the same time.
FACTOR = {'virtio-rdma': 4, 'rxe': 1}
FIO_PORT = 7471
PINGPONG_PORT = 47592


def figure(result, pattern, scale=1.0):
    """Return the number that a program of guest 1 printed last."""
    found = re.findall(pattern, result.out, re.M)
    if not result.ok or not found:
        raise LabError(str(result))
    return float(found[-1]) * scale


def both(result):
    """Return the client's result if the server succeeded, too."""
    if not result.ok:
        raise LabError(str(result))
    return result.client


def ucx(bench, test, size, count):
    """(average us, MB/s) of ucx_perftest with what UCX chooses."""
    client = perftest(bench, f'-t {test} -s {size}', count=count)
    # Iterations, a percentile, average and overall us, the same two of MB/s
    row = rf'^ *{count} +[\d.]+ +[\d.]+ +'
    return (figure(client, row + r'([\d.]+)'),
            figure(client, row + r'[\d.]+ +[\d.]+ +([\d.]+)',
                   2 ** 20 / 1e6))


def netpipe(bench, size, count):
    """(us, MB/s) of Open MPI's messages of one size, there and back."""
    tree = unpacked.tree('netpipe', ('netpipe-openmpi',))
    binary = next(tree.glob('usr/bin/NPopenmpi'))
    with mpi.shell(bench):
        result = mpi.run(bench, 2, f'{binary} -l {size} -u {size} -p 0 '
                         f'-n {count} -o /dev/null', 60)
    row = rf'^ *\d+: +{size} bytes .*-->'
    return (figure(result, row + r'.* in +([\d.]+) usec'),
            figure(result, row + r' +([\d.]+) Mbps', 2 ** 20 / 8e6))


def pingpong(bench, size, count):
    """(us, MB/s) of libfabric's connected endpoints."""
    root = unpacked.tree('libfabric', ('libfabric-bin', 'libfabric1'))
    command = (f'{unpacked.inside(root)} fi_pingpong -p verbs -e msg '
               f'-I {count} -S {size}')
    client = both(exchange(bench.two, bench.one, command,
                           f'{command} {address(2)}', PINGPONG_PORT))
    row = r'^\d\S* +\S+ +=\S+ +\S+ +[\d.]+s +'
    return (figure(client, row + r'[\d.]+ +([\d.]+)'),
            figure(client, row + r'([\d.]+)'))


def fio(bench, verb, size, mebibytes):
    """Return (us, MB/s): the time of many blocks less that of a few, since fio
    sleeps after it has connected."""
    tool = f'{unpacked.inside(unpacked.tree("fio", ("fio",)))} fio'

    def took(mib):
        job = (f'--output-format=json --name={verb} --ioengine=rdma '
               f'--port={FIO_PORT} --bs={size} --size={mib}m --iodepth=16')
        client = both(cm_exchange(
            bench.two, bench.one, f'{tool} {job} --rw=read',
            f'{tool} {job} --rw=write --verb={verb} '
            f'--hostname={address(2)}', timeout=60, listener='fio'))
        report = json.loads(re.sub(r'\A[^{]*', '', client.out))
        return report['jobs'][0]['write']['runtime']
    extra = took(1 + mebibytes) - took(1)
    if extra <= 0:
        raise LabError(f'fio takes no time for {mebibytes} MiB')
    return extra * 1e3 / (mebibytes * 1048576 / size), \
        mebibytes * 1048.576 / extra


# (row, unit, function, its arguments; the last one is rxe's count)
ROWS = (
    ('UCX tag_lat 8 B', 'us', ucx, ('tag_lat', 8, 300)),
    ('UCX tag_bw 4 KiB', 'MB/s', ucx, ('tag_bw', 4096, 1000)),
    ('UCX tag_bw 64 KiB', 'MB/s', ucx, ('tag_bw', 65536, 150)),
    ('UCX tag_bw 1 MiB', 'MB/s', ucx, ('tag_bw', 1 << 20, 12)),
    ('UCX put_lat 8 B', 'us', ucx, ('ucp_put_lat', 8, 300)),
    ('UCX get 4 KiB', 'us', ucx, ('ucp_get', 4096, 300)),
    ('UCX fetch-add 8 B', 'us', ucx, ('ucp_fadd', 8, 300)),
    ('Open MPI (NetPIPE) 8 B', 'us', netpipe, (8, 300)),
    ('Open MPI (NetPIPE) 64 KiB', 'MB/s', netpipe, (65536, 50)),
    ('Open MPI (NetPIPE) 1 MiB', 'MB/s', netpipe, (1 << 20, 8)),
    ('libfabric msg 64 B', 'us', pingpong, (64, 300)),
    ('libfabric msg 64 KiB', 'MB/s', pingpong, (65536, 50)),
    ('fio write 64 KiB', 'MB/s', fio, ('write', 65536, 16)),
    ('fio write 1 MiB', 'MB/s', fio, ('write', 1 << 20, 16)),
    ('fio read 64 KiB', 'MB/s', fio, ('read', 65536, 16)),
    ('fio read 1 MiB', 'MB/s', fio, ('read', 1 << 20, 16)),
)


def measure(bench, row, rounds):
    """The median of a row's runs."""
    _, unit, how, (*options, count) = row
    runs = [how(bench, *options, count * FACTOR[bench.stack])
            for _ in range(rounds)]
    return statistics.median(us if unit == 'us' else rate
                             for us, rate in runs)


def main(rounds=ROUNDS, pattern=''):
    """Print the table; the exit code."""
    rows = [row for row in ROWS if re.search(pattern, row[0])]
    found = {row[0]: {} for row in rows}
    complaints = ''
    with Pair('bench-applications') as pair:
        for stack in STACKS:
            bench = Bench(pair, stack)
            for row in rows:
                found[row[0]][stack] = measure(bench, row, rounds)
                print(f'{stack:12}{row[0]:28}'
                      f'{found[row[0]][stack]:10.1f} {row[1]}', flush=True)
            for vm in pair.vms:
                bench.stacks[vm].unload(vm)
                complaints += vm.complaints() if stack != 'rxe' else ''
    print(f'\n{"":28}{"":>6}{STACKS[0]:>13}{STACKS[1]:>10}{"ratio":>8}')
    for name, unit, _, _ in rows:
        ours, theirs = (found[name][stack] for stack in STACKS)
        ratio = theirs / ours if unit == 'us' else ours / theirs
        print(f'{name:28}{unit:>6}{ours:13.1f}{theirs:10.1f}{ratio:7.1f}x')
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / 'applications.json').write_text(json.dumps(found, indent=1) +
                                               '\n')
    if complaints:
        print(complaints)
    return 1 if complaints else 0
