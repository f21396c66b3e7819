# SPDX-License-Identifier: GPL-2.0-or-later
"""Two guests exchange RDMA traffic with well-known programs, over virtio-rdma
and over rxe on the same link. The table has the figures side by side, and
those of TCP on the guests' NICs if a program does the same over TCP."""
import json
import re
import time
from pathlib import Path

from guestkit import accel
from guestkit.adapter import address
from guestkit.agent import Result
from guestkit.paths import LOGS, LabError
from guestkit.stack import STACKS

from . import chart, nvme, perftest, storage, tcp
from .capture import summary
from .pair import Pair
from .places import RESULTS
from .programs import exchange, rping_time

# virtio-rdma runs more iterations than rxe for the same time spent.
FACTOR = {'rxe': 1, 'virtio-rdma': 4}


class Demo:
    def __init__(self, link, only, pcap, prefer=True, accelerator=accel.TCG):
        self.link, self.pcap, self.prefer = link, pcap, prefer
        self.accelerator = accelerator
        self.names = [only] if only else ['virtio-rdma', 'rxe', tcp.NAME]
        self.began = time.monotonic()
        self.figures = {}
        self.failures = []
        LOGS.mkdir(parents=True, exist_ok=True)
        self.log = open(LOGS / 'demo.log', 'w', encoding='utf-8')

    def say(self, text):
        print(f'[{time.monotonic() - self.began:6.1f} s] {text}', flush=True)
        print(text, file=self.log, flush=True)

    def show(self, vm, cmd, keep=''):
        """Run a command for the log, and also print the lines that match."""
        result = vm.run(cmd)
        print(result, file=self.log, flush=True)
        if not result.ok:
            self.failures.append(f'{vm.name}: {cmd}')
            self.say(f'{cmd} failed:\n{result.out}')
        for line in result.out.splitlines():
            if keep and re.search(keep, line):
                self.say(f'    {line.strip()}')

    def record(self, stack, row, unit, result, figures):
        """Note one result and report progress."""
        print(result, file=self.log, flush=True)
        entry = {'unit': unit, 'seconds': round(result.seconds, 2),
                 'ok': figures is not None, **(figures or {})}
        self.figures.setdefault(row, {})[stack] = entry
        if figures is None:
            if stack != 'rxe':
                self.failures.append(f'{stack}: {row}')
            self.say(f'{stack:12}{row:26} FAILED')
            for line in str(result).splitlines()[-25:]:
                print(f'    {line}')
        else:
            self.say(f'{stack:12}{row:26} {number(entry["value"]):>9} '
                     f'{unit}')

    def pingpong(self, pair, stacks, count=1000):
        client, server = stacks
        command = 'ibv_rc_pingpong -c -d {} -g {} -s 4096 -n {}'
        result = exchange(
            pair.two, pair.one,
            command.format(server.device, server.gid(4), count),
            command.format(client.device, client.gid(4), count) +
            f' {address(2)}')
        found = re.search(r'= ([\d.]+) usec/iter', result.client.out)
        figures = None
        if result.ok and found and 'invalid' not in result.client.out:
            figures = {'value': float(found.group(1))}
        return result, figures

    def pings(self, pair, name):
        result, took = rping_time(pair, 100 * FACTOR[name])
        self.record(name, 'rping 64 B (mean)', 'us', result,
                    took and {'value': took * 1e6})

    def disk(self, pair, name):
        """Connect a RAM disk of guest 2 over NVMe-oF, and write it once: brd
        allocates a page on its first write, which takes 0.3 ms for 64 KiB and
        is not part of the measurement."""
        nvme.export(pair.two, address(2))
        try:
            storage.speed(pair.two, nvme.DISK, '1M', nvme.MEBIBYTES, True)
            controller = nvme.connect(pair.one, address(2))
            for write in (True, False):
                for size, mebibytes in (('64k', 2), ('1M', 8)):
                    began = time.monotonic()
                    speed = storage.speed(
                        pair.one, f'/dev/{controller}n1', size,
                        mebibytes * FACTOR[name], write)
                    row = f'NVMe-oF {"write" if write else "read"} ' \
                        f'{size[:-1]} {size[-1].upper()}iB'
                    self.record(name, row, 'MB/s',
                                Result(row, 0, '',
                                       time.monotonic() - began),
                                {'value': speed})
            nvme.disconnect(pair.one, controller)
        finally:
            nvme.withdraw(pair.two)

    def capture(self, pair, stacks):
        """Record a few messages of each kind with the filter."""
        pair.one.qmp('qom-set', path='/objects/dump', property='status',
                     value='on')
        self.pingpong(pair, stacks, count=10)
        for tool in perftest.BANDWIDTH + ('ib_atomic_bw',):
            size = None if tool == 'ib_atomic_bw' else 65536
            perftest.run(perftest.Test(tool, size, 10), pair, stacks)
        pair.one.qmp('object-del', id='dump')
        lines, malformed = summary(self.pcap)
        self.say(f'capture: {self.pcap}')
        for line in lines:
            self.say(f'    {line}')
        if malformed:
            self.failures.append(f'{malformed} malformed frames in the '
                                 'capture')

    def phase(self, pair, name):
        """All programs over one stack."""
        stacks = (STACKS[name](), STACKS[name]())
        for vm, stack in zip(pair.vms, stacks):
            stack.up(vm)
            self.say(f'{vm.name}: {stack.device}, RoCE v2 GIDs ' +
                     ' '.join(f'{i}:{g}'
                              for i, g in stack.gids(vm).items()))
        self.show(pair.one, f'ibv_devinfo -v -d {stacks[0].device}',
                  r'hca_id|fw_ver|state:|active_mtu|max_mr_size|max_qp:')
        self.show(pair.one, 'rdma link', '.')
        if self.pcap and name == self.names[0]:
            self.capture(pair, stacks)
        self.record(name, 'ibv_rc_pingpong 4 KiB', 'us',
                    *self.pingpong(pair, stacks))
        for test in perftest.matrix():
            result, figures = perftest.run(test, pair, stacks, FACTOR[name])
            self.record(name, test.name, test.unit, result, figures)
            if test.latency:
                self.record(name, f'{test.name} p99.9', test.unit, result,
                            figures and {'value': figures['p999']})
        self.pings(pair, name)
        try:
            self.disk(pair, name)
        except LabError as e:
            # Without this row, the rest of the table is still useful.
            self.failures.append(f'{name}: NVMe-oF: {e}')
            self.say(f'{name}: NVMe-oF failed: {e}')
        for vm, stack in zip(pair.vms, stacks):
            stack.unload(vm)
            if name == 'virtio-rdma' and vm.complaints():
                self.failures.append(f"{name}: {vm.name}'s kernel complains")
                self.say(vm.complaints())

    def tcp(self, pair):
        """Measure the nearest equivalents over TCP: SEND is a message on a
        stream."""
        for test in perftest.matrix():
            if test.tool in ('ib_send_bw', 'ib_send_lat'):
                self.record(tcp.NAME, test.name, test.unit,
                            *tcp.run(pair, test.latency, test.size))

    def dump(self, index):
        if not self.pcap or index != 1:
            return []
        Path(self.pcap).parent.mkdir(parents=True, exist_ok=True)
        return ['-object', 'filter-dump,id=dump,netdev=n0,status=off,'
                f'file={self.pcap}']

    def run(self):
        """The exit code of the demonstration."""
        self.say(self.accelerator.about)
        self.say(f'booting two guests on a {self.link} link')
        with Pair('demo', self.link, rdma='virtio-rdma' in self.names,
                  extra=self.dump,
                  kvm=self.accelerator.name == 'kvm') as pair:
            self.say(f'both up, Linux {pair.one.kernel.release}')
            if self.prefer:
                self.say(pair.prefer_main_loops())
            for name in self.names:
                try:
                    if name == tcp.NAME:
                        self.tcp(pair)
                    else:
                        self.phase(pair, name)
                except LabError as e:
                    self.failures.append(f'{name}: {e}')
                    self.say(f'{name} failed: {e}')
                    if not all(vm.alive() for vm in pair.vms):
                        break
        self.save()
        print('\n' + table(self.figures) + '\n')
        for failure in self.failures:
            print(f'FAILED: {failure}')
        return 1 if self.failures else 0

    def save(self):
        RESULTS.mkdir(parents=True, exist_ok=True)
        path = RESULTS / 'demo.json'
        path.write_text(json.dumps(
            {'link': self.link, 'accelerator': self.accelerator.name,
             'rows': self.figures,
             'failures': self.failures}, indent=1) + '\n')
        page = RESULTS / 'demo.html'
        page.write_text(chart.page(
            self.figures, number, f'Two guests on a {self.link} link; '
            f'{self.accelerator.about}.'), encoding='utf-8')
        self.say(f'figures in {path}, as bars in {page}, output of the '
                 f'programs in {LOGS / "demo.log"}')


def number(value):
    """Three significant digits or so."""
    if value >= 100:
        return f'{value:.0f}'
    return f'{value:.1f}' if value >= 10 else f'{value:.2f}'


def table(figures):
    """The results as plain text."""
    lines = [f'{"test":28}{"unit":>6}{"virtio-rdma":>13}{"rxe":>10}'
             f'{"ratio":>9}{"virtio-net TCP":>17}']
    lines.append('-' * len(lines[0]))
    for row, cells in figures.items():
        shown, values = [], []
        for stack in ('virtio-rdma', 'rxe', tcp.NAME):
            cell = cells.get(stack)
            values.append(cell['value'] if cell and cell['ok'] else None)
            shown.append('-' if not cell else
                         number(cell['value']) if cell['ok'] else 'failed')
        unit = next(iter(cells.values()))['unit']
        ratio = '-'
        ours, theirs = values[:2]
        if ours and theirs:
            ratio = f'x{theirs / ours if unit == "us" else ours / theirs:.1f}'
        lines.append(f'{row:28}{unit:>6}{shown[0]:>13}{shown[1]:>10}'
                     f'{ratio:>9}{shown[2]:>17}')
    lines.append('')
    lines.append('ratio: how many times better than rxe; MB/s and k/s are '
                 'rates (more is better),')
    lines.append('us are times per message (less is better). TCP: the same '
                 'sizes with qperf,')
    lines.append("over the guests' virtio-net NICs on the same link")
    return '\n'.join(lines)
