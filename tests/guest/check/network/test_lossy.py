# SPDX-License-Identifier: GPL-2.0-or-later
"""A link that loses, duplicates and reorders one frame in a hundred, each
way: data is intact and each completion comes exactly once."""
import contextlib
import re

from guestkit.adapter import address
from lab.programs import PORT


ON_NETDEV = True


@contextlib.contextmanager
def lossy(bench):
    for index, vm in enumerate(bench.pair.vms, 1):
        vm.qmp('object-add', **{
            'qom-type': 'filter-impair', 'id': 'loss', 'netdev': 'n0',
            'drop': 100, 'dup': 100, 'reorder': 100, 'seed': index})
    try:
        yield
    finally:
        for vm in bench.pair.vms:
            vm.qmp('object-del', id='loss')


AROUND = lossy


def test_rc_every_operation(bench):
    before = bench.counters()
    bench.verify('-k 15 -s 16384 -n 64 -r 4 -V', timeout=90)
    if bench.stack == 'rxe':
        return    # rxe has no such counters
    after = bench.counters()
    for name in ('retransmits', 'rx_out_of_sequence'):
        name = f'hw_counters/{name}'
        assert after[name] > before[name], f'nothing was lost: {after}'


def test_rc_large_messages(bench):
    bench.verify('-k 15 -s 1048576 -n 8 -r 2 -m 4096 -T 90 '
                 '-o send,write,read,write_imm', timeout=100)


def test_rc_four_queue_pairs_with_events(bench):
    bench.verify('-k 15 -s 8192 -n 64 -r 2 -V -q 4 -e -T 90', timeout=100)


def test_rc_reads_and_atomics(bench):
    bench.verify('-k 15 -s 65536 -n 64 -r 2 -V -o read,fadd,cas -T 90',
                 timeout=100)


def test_rc_receiver_not_ready(bench):
    bench.verify('-k 15 -s 4096 -n 64 -r 2 -V -R 2 -o send,write_imm -T 90',
                 timeout=100)


def test_uc_delivers_whole_messages_only(bench):
    bench.verify('-t uc -L 50 -s 8192 -n 256 -R 256 -r 1 -V '
                 '-o send_imm,write_imm')


def test_uc_run_ends_when_most_messages_are_lost(bench):
    """The link drops frames of a burst that exceed its queue. Lanes of the
    soak test lose as much while the link is down."""
    for vm in bench.pair.vms:
        for name, value in ('rate', 1000), ('room', 20000):
            vm.qmp('qom-set', path='/objects/loss', property=name, value=value)
    result = bench.verify('-t uc -L 0 -s 8192 -n 64 -R 64 -r 1 '
                          '-o send_imm,write_imm')
    for end in result.client, result.server:
        received = int(re.search(r'(\d+) messages received', end.out)[1])
        assert received < 64 / 2, str(result)


def test_ud_delivers_whole_messages_only(bench):
    bench.verify('-t ud -L 50 -s 1024 -n 256 -R 256 -r 1 -V -o send_imm')


def test_ibv_rc_pingpong_validates(bench):
    """The side that compares the bytes ends first. Each side of the pingpong
    of libibverbs exits after its own work. If the ACK of the other side's last
    SEND is lost, no one repeats it. So the client runs one iteration more than
    the server."""
    def command(vm, count):
        where = bench.where(vm, '-d {} -g {}')
        return f'ibv_rc_pingpong -c -n {count} {where}'
    server = bench.two.spawn(command(bench.two, 300), PORT)
    client = bench.one.spawn(f'{command(bench.one, 301)} {address(2)}')
    result = server.wait(90)
    bench.one.run('pkill -x ibv_rc_pingpong')
    said = client.wait(10)
    assert result.ok and 'invalid' not in result.out, f'{result}\n{said}'
