# SPDX-License-Identifier: GPL-2.0-or-later
"""virtio-rdma in one guest, the kernel's rxe in the other, on one wire: well
known programs each way, over both families, with two MTUs, without and with
loss. Every cell of the table has to pass."""
import re
import time

from guestkit.adapter import MTU, address
from guestkit.paths import LOGS, LabError
from guestkit.stack import STACKS

from . import wire
from .pair import Pair
from .perftest import ROW
from .programs import PORT, build_verify, cm_exchange, exchange
from .runner import ACK_TIMEOUT, port_counters

OURS, RXE = 'virtio-rdma', 'rxe'
# {path MTU: MTU of the NICs}
NIC_MTU = {1024: 1500, 4096: MTU}
# of 10000 frames, each way
LOSS = {'drop': 100, 'dup': 50, 'reorder': 50}


class Cell:
    """A cell of the table: a program, and the place and conditions of its
    run."""

    def __init__(self, server, client, family, mtu, lossy):
        self.server, self.client = server, client
        self.family, self.mtu, self.lossy = family, mtu, lossy


class Side:
    """A guest and its stack."""

    def __init__(self, vm, stack, index):
        self.vm, self.stack, self.index = vm, stack, index

    def where(self, form, family):
        return form.format(self.stack.device, self.stack.gid(family))


def tcp_pair(cell, command, form):
    """A program whose two ends connect over TCP."""
    server = f'{command} {cell.server.where(form, cell.family)}'
    client = f'{command} {cell.client.where(form, cell.family)} ' \
        f'{address(cell.server.index)}'
    return exchange(cell.server.vm, cell.client.vm, server, client,
                    timeout=90)


def pingpong(service):
    def run(cell):
        # Datagrams may be as large as the port's MTU, and have one packet
        # each.
        size = f'-s {cell.mtu}' if service == 'ud' else \
            f'-s 8192 -m {cell.mtu}'
        result = tcp_pair(cell, f'ibv_{service}_pingpong -c -n 100 {size}',
                          '-d {} -g {}')
        if 'invalid' in result.client.out + result.server.out:
            result.client.rc = 1
        return result
    return run


def perftest(tool, options):
    def run(cell):
        count = 40 if cell.lossy else 100
        # A short timeout repeats lost frames soon. Without loss a longer one
        # is better, as a guest may have to wait for a processor.
        timeout = 16 if cell.lossy else ACK_TIMEOUT
        result = tcp_pair(
            cell, f'{tool} -F -m {cell.mtu} -n {count} -u {timeout} '
            f'{options}',
            '-d {} -x {}')
        if not ROW.search(result.client.out):
            result.client.rc = 1
        return result
    return run


def rping(cell):
    """Run rping. The path has the MTU of the NICs."""
    host = address(cell.server.index, cell.family)
    count = 10 if cell.lossy else 20
    options = f'-a {host} -C {count} -V -S 6000'
    result = cm_exchange(cell.server.vm, cell.client.vm,
                         f'rping -s {options}', f'rping -c -v {options}', 90)
    if result.client.out.count('ping data') != count:
        result.client.rc = result.client.rc or 1
    return result


def verify(service, options, lossy_options):
    """Every operation, each byte compared."""
    def run(cell):
        binary = build_verify()
        how = lossy_options if cell.lossy else options
        form = f'{binary} -d {{}} -g {{}}'
        return exchange(
            cell.server.vm, cell.client.vm,
            cell.server.where(form, cell.family),
            f'{cell.client.where(form, cell.family)} -k {ACK_TIMEOUT} '
            f'-t {service} -m {cell.mtu} {how} '
            f'{address(cell.server.index)}', port=PORT, timeout=90)
    return run


# perftest's client takes as many READs as the server can execute, without a
# check of what its own device can start; rxe does 128.
READS = '-o 16'

# Name, function, and whether it can run where messages get lost: a ping-pong
# without retransmission ends at the first loss.
ROWS = (
    # A side ends after its last message, and does not repeat a lost last ACK.
    ('ibv_rc_pingpong', pingpong('rc'), False),
    ('ibv_uc_pingpong', pingpong('uc'), False),
    ('ibv_ud_pingpong', pingpong('ud'), False),
    ('ib_send_bw', perftest('ib_send_bw', '-s 16384'), True),
    ('ib_send_bw -c UC', perftest('ib_send_bw', '-c UC -s 16384'), False),
    ('ib_write_bw', perftest('ib_write_bw', '-s 16384'), True),
    ('ib_read_bw', perftest('ib_read_bw', f'{READS} -s 16384'), True),
    ('ib_atomic_bw fadd',
     perftest('ib_atomic_bw', f'{READS} -A FETCH_AND_ADD'), True),
    ('ib_atomic_bw cas',
     perftest('ib_atomic_bw', f'{READS} -A CMP_AND_SWAP'), True),
    ('rping', rping, True),
    ('rdma_verify RC', verify('rc', '-s 16384 -n 32 -r 1 -V',
                              '-s 16384 -n 32 -r 1 -V -T 80'), True),
    ('rdma_verify UC', verify('uc', '-s 8192 -n 32 -r 1 -V -R 64',
                              '-L 50 -s 8192 -n 64 -R 64 -r 1 -V '
                              '-o send_imm'), True),
    ('rdma_verify UD', verify('ud', '-s 1000 -n 32 -r 1 -V -R 64',
                              '-L 50 -s 1000 -n 64 -R 64 -r 1 -V '
                              '-o send_imm'), True),
)
COLUMNS = [(lossy, family, mtu) for lossy in (False, True)
           for family in (4, 6) for mtu in NIC_MTU]


def programs_both_ways(bench, family, without=()):
    """Run a column of the table, except rdma_verify and programs that the test
    names."""
    sides = [Side(vm, bench.stacks[vm], index)
             for index, vm in enumerate(bench.pair.vms, 1)]
    for name, run, _ in ROWS:
        if name.startswith('rdma_verify') or name in without:
            continue    # rdma_verify has tests of its own
        for server in (0, 1):
            result = run(Cell(sides[server], sides[1 - server], family, 4096,
                              False))
            assert result.ok, f'{name}, server {server}:\n{result}'


class Interop:
    def __init__(self, pattern):
        self.pattern = re.compile(pattern or '')
        self.cells = {}
        self.log = None

    def sides(self, pair):
        sides = []
        for index, (vm, name) in enumerate(zip(pair.vms, (OURS, RXE)), 1):
            stack = STACKS[name]()
            stack.up(vm)
            sides.append(Side(vm, stack, index))
        return sides

    def chosen(self):
        """Return the cells that the pattern selects: (row, direction,
        column)."""
        for column in COLUMNS:
            for name, run, takes_loss in ROWS:
                for server in (0, 1):
                    key = name, (OURS, RXE)[server]
                    if self.pattern.search(' '.join((*key, title(column)))):
                        yield key, run if takes_loss or not column[0] \
                            else None, server, column

    def one(self, sides, key, run, server, column):
        """Run a cell. Return its text in the table."""
        lossy, family, mtu = column
        cell = Cell(sides[server], sides[1 - server], family, mtu, lossy)
        began = time.monotonic()
        try:
            result = run(cell)
            ok, text = result.ok, str(result)
            # The kernel of rxe's guest may report faults of rxe. They count
            # only if the run fails.
            complaints = [side.vm.complaints() for side in sides
                          if not ok or side.stack.name == OURS]
            ok = ok and not any(complaints)
            text += ''.join(complaints)
        except LabError as e:
            ok, text = False, str(e)
        took = time.monotonic() - began
        print(f'== {key[0]}, server {key[1]}, {title(column)}: '
              f'{"ok" if ok else "FAILED"} in {took:.1f} s\n{text}\n',
              file=self.log, flush=True)
        if not ok:
            print(f'FAILED: {key[0]}, server {key[1]}, {title(column)}',
                  flush=True)
            for line in text.splitlines()[-15:]:
                print(f'    {line}')
        return f'{took:.1f}' if ok else 'FAIL'

    def switch(self, pair, old, new):
        """Configure the wire as the column says."""
        if not old or old[2] != new[2]:
            for vm in pair.vms:
                vm.must(f'ip link set eth0 mtu {NIC_MTU[new[2]]}; sleep 0.3')
        if new[0] and not (old and old[0]):
            for seed, vm in enumerate(pair.vms, 1):
                vm.qmp('object-add', **{'qom-type': 'filter-impair',
                                        'id': 'loss', 'netdev': 'n0',
                                        'seed': seed, **LOSS})

    def met_loss(self, side, before):
        """Return whether frames from and to a guest were lost."""
        now = port_counters(side.vm, side.stack.device)
        return all(now[name] > before[name]
                   for name in ('hw_counters/retransmits',
                                'hw_counters/rx_out_of_sequence'))

    def run(self):
        """The exit code."""
        todo = list(self.chosen())
        if not todo:
            raise LabError(f'no cell matches "{self.pattern.pattern}"')
        LOGS.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        idle = 0
        with open(LOGS / 'interop.log', 'w', encoding='utf-8') as self.log, \
                Pair('interop', smp=2) as pair:
            sides = self.sides(pair)
            now = before = None
            memory = wire.Memory(pair.vms)
            for key, run, server, column in todo:
                if run:
                    if column[0] and not before:
                        before = port_counters(pair.one,
                                               sides[0].stack.device)
                    self.switch(pair, now, column)
                    now = column
                    self.cells[key, column] = \
                        self.one(sides, key, run, server, column)
                else:
                    self.cells[key, column] = '-'
                if not all(vm.alive() for vm in pair.vms):
                    print('a guest is gone')
                    break
            # A few cells may have no loss by chance.
            if before and not self.pattern.pattern and \
                    pair.one.alive() and \
                    not self.met_loss(sides[0], before):
                print('FAILED: nothing was lost in the columns with loss')
                idle = 1
            by_memory = memory.frames()
        print(self.table())
        if by_memory is not None:
            print(f'{by_memory} frames by shared memory')
        ran = [c for c in self.cells.values() if c != '-']
        failed = ran.count('FAIL') + len(todo) - len(self.cells) + idle
        print(f'interop: {len(ran) - ran.count("FAIL")} passed, {failed} '
              f'failed in {time.monotonic() - began:.0f} s; output of the '
              f'programs in {LOGS / "interop.log"}')
        return 1 if failed or not ran else 0

    def table(self):
        """Rows are programs by the server's stack, columns the wire."""
        columns = [c for c in COLUMNS if any(c == k[1] for k in self.cells)]
        lines = [f'{"":19}{"server":13}' +
                 ''.join(f'{head(c):>12}' for c in columns)]
        lines.append('-' * len(lines[0]))
        for key in dict.fromkeys(k[0] for k in self.cells):
            lines.append(f'{key[0]:19}{key[1]:13}' + ''.join(
                f'{self.cells.get((key, c), ""):>12}' for c in columns))
        return '\n'.join([
            '', *lines, '',
            'Seconds of runs that passed; the client is the other stack.',
            f'loss: of 10000 frames each way {LOSS["drop"]} are dropped, '
            f'{LOSS["dup"]} sent twice, {LOSS["reorder"]} delayed.',
            '-: the program cannot survive loss; rdma_verify tests its '
            'service.'])


def title(column):
    lossy, family, mtu = column
    return f'{"loss" if lossy else "clean"} IPv{family} MTU {mtu}'


def head(column):
    lossy, family, mtu = column
    return f'{"loss " if lossy else ""}v{family} {mtu}'
