# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a migration: `make bench-migration`.

A guest migrates with more and more objects of its adapter. Downtime is the
time from the source's STOP to the destination's RESUME. The adapter's part is
the time to save and to load it, from QEMU's own trace. The size of its state
is that of its section of a stream, from the stream's own description.

The amount of memory that QEMU leaves for the downtime varies within its limit,
which is set low. Programs wait for events: if they polled, the guest that
stays would take the processors from both QEMUs.
"""
import json
import os
import re
import statistics
import time

from guestkit.paths import LOGS, LabError

from .moving import MovingPair
from .places import RESULTS
from .programs import build_hold
from .runner import Bench

TRACE = ['-trace', 'vmstate_downtime_*']
# A destination that clears its memory while it loads takes longer, and much
# longer if the guest is busy. That time is not the adapter's.
MEMORY = ['-mem-prealloc']
DEVICE = re.compile(r'vmstate_downtime_(save|load) .*idstr=\S*virtio-rdma '
                    r'.*downtime=(\d+)')
VERIFY = '-k 17 -r 1000000 -T 600 -V -e'
DOWNTIME_LIMIT = 10         # ms


def adapter_time(tags):
    """Return the sum of the seconds for saving and for loading the adapter."""
    total = 0
    for tag, what in zip(tags, ('save', 'load')):
        text = (LOGS / f'{tag}.qemu').read_text(errors='replace')
        found = [int(us) for kind, us in DEVICE.findall(text)
                 if kind == what]
        if len(found) != 1:
            return None
        total += found[0]
    return total / 1e6


def _sizes(node):
    """Return the bytes of all fields below a node of the description."""
    total = 0
    for field in node.get('fields', []):
        if 'struct' in field:
            total += _sizes(field['struct']) * field.get('array_len', 1)
        else:
            total += field.get('size', 0) * field.get('array_len', 1)
    return total + sum(_sizes(sub) for sub in node.get('subsections', []))


def adapter_state(stream):
    """Return the bytes of the adapter's section in a migration file."""
    with open(stream, 'rb') as f:
        f.seek(max(0, os.path.getsize(stream) - (4 << 20)))
        tail = f.read()
    start = tail.rfind(b'{"configuration"')
    if start < 0:
        start = tail.rfind(b'{"page_size"')
    text = tail[start:].rstrip(b'\0').decode()
    return sum(_sizes(device) for device in json.loads(text)['devices']
               if 'virtio-rdma' in device['name'])


class Case:
    """One row: the traffic of the guests while guest 1 migrates. @options: for
    rdma_verify; @region: MiB that guest 1 registers in addition"""

    def __init__(self, name, rdma=True, options=None, region=None):
        self.name, self.rdma = name, rdma
        self.options, self.region = options, region

    def start(self, bench):
        """Start the jobs. The first one reports pauses."""
        if not self.options:
            return ()
        server, client = bench.verify_commands(f'{VERIFY} {self.options}')
        jobs = [bench.two.spawn(server, 18515),
                bench.one.spawn(f'exec {client}')]
        if self.region:
            jobs.append(bench.one.spawn(
                f'exec {build_hold()} {bench.device(bench.one)} '
                f'{self.region}'))
        end = time.monotonic() + 90
        while ' state RTS ' not in \
                bench.one.run('rdma resource show qp').out or \
                self.region and 'registered' not in jobs[2].peek().out:
            if time.monotonic() > end or not all(job.alive()
                                                 for job in jobs):
                raise LabError('no traffic, or no region:\n' +
                               '\n'.join(str(job.peek()) for job in jobs))
            time.sleep(0.2)
        time.sleep(2)
        return jobs

    def pause(self, jobs):
        """End the jobs. Return the longest pause, in milliseconds, that the
        server in the other guest has noticed."""
        for job in jobs[1:]:
            job.kill(15)
        results = [job.wait(60) for job in (jobs[1], jobs[0])]
        for result in results:
            if not result.ok:
                raise LabError(str(result))
        return int(re.search(r'longest pause (\d+) ms', results[1].out)[1])


SMALL = '-s 16384 -n 64'
MANY = '-s 4096 -n 32 -q 64'
MOST = '-s 1024 -n 4 -q 1024 -S 4 -R 8'

CASES = (
    Case('no adapter', rdma=False),
    Case('adapter idle'),
    Case('1 QP', options=SMALL),
    Case('64 QPs', options=MANY),
    Case('1024 QPs', options=MOST),
    Case('1 QP, 1 GiB', options=SMALL, region=1024),
)


def measure(case, moves):
    """The figures of one case."""
    with MovingPair('bench-migration', rdma=case.rdma, smp=2, mem='3G',
                    extra=lambda index: TRACE + MEMORY) as pair:
        bench = Bench(pair, 'virtio-rdma') if case.rdma else None
        jobs = case.start(bench)
        downtimes, shares, rams, walls = [], [], [], []
        for _ in range(moves):
            tag = pair.one.tag
            move = pair.one.move(downtime_limit=DOWNTIME_LIMIT)
            downtimes.append(move.downtime)
            rams.append(move.ram)
            walls.append(move.total)
            if case.rdma:
                share = adapter_time((tag, pair.one.tag))
                if share is not None:
                    shares.append(share)
            time.sleep(0.5)
        if any(not job.alive() for job in jobs):
            raise LabError('\n'.join(str(job.peek()) for job in jobs))
        stream = f'{pair.directory}/stream'
        pair.one.save(stream)
        pair.one.go_on()
        figures = {
            'downtime': statistics.median(downtimes) * 1000,
            'adapter': statistics.median(shares) * 1000 if shares else None,
            'state': adapter_state(stream) if case.rdma else None,
            'stream': os.path.getsize(stream),
            'total': statistics.median(walls),
        }
        figures['pause'] = case.pause(jobs) if jobs else None
        for vm in pair.vms:
            if vm.complaints():
                raise LabError(vm.complaints())
        return figures


def summary(rows):
    without, idle, one, many, most, large = (rows[case.name]
                                             for case in CASES)
    for count, row, wanted in (64, many, 10), (1024, most, 30):
        extra = row['downtime'] - without['downtime']
        print(f'{count} busy QPs: {extra:+.1f} ms of downtime (at most '
              f'{wanted} ms wanted), '
              f'{(row["state"] - idle["state"]) / count:.0f} B of state for '
              'each with what is posted')
    print(f'1 GiB of MRs: {large["state"] - one["state"]} B of state')


def main(moves):
    """Measure all, show a table; the exit code."""
    rows = {}
    print(f'Medians of {moves} moves; pauses are the longest of all')
    print(f'{"guest 1 has":16}{"downtime":>12}{"of it, adapter":>16}'
          f'{"longest pause":>15}{"its state":>13}{"stream":>10}')
    for case in CASES:
        figures = rows[case.name] = measure(case, moves)
        shown = [f'{figures["downtime"]:9.1f} ms']
        for key, form in (('adapter', '{:13.2f} ms'), ('pause', '{:12d} ms'),
                          ('state', '{:11d} B')):
            value = figures[key]
            shown.append('-' if value is None else form.format(value))
        print(f'{case.name:16}{shown[0]:>12}{shown[1]:>16}{shown[2]:>15}'
              f'{shown[3]:>13}{figures["stream"] / 1e6:>7.0f} MB',
              flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / 'migration.json').write_text(json.dumps(rows, indent=1) +
                                            '\n')
    summary(rows)
    return 0
