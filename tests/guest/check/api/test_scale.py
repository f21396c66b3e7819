# SPDX-License-Identifier: GPL-2.0-or-later
"""Many objects of each kind. CI runs small numbers; `make check-scale` sets
FULL: ten thousand connections, and as many regions as the device has."""
import os
import re

from guestkit.adapter import address
from lab.leaks import Watch
from lab.programs import build_self_qp, cm_exchange, run_case
from lab.runner import slow

FULL = bool(os.environ.get('FULL'))
# TCG keeps a heap node for each translated block until its buffer is full:
# megabytes for some hundred connections, which are not the device's. A small
# buffer is full soon, and then the heap stops growing.
GUESTS = {'smp': 2, **({'accel': ',tb-size=32'} if FULL else {})}
SECONDS = 50
CONNECTIONS = 10000 if FULL else 500
WARM_UP = 1500 if FULL else 100
AT_ONCE = 50
# KiB by which memory may vary without a leak. With FULL both limits find a
# leak of one kilobyte per connection. The small numbers find large leaks of
# QEMU; life/connections-leave-nothing of the device's tests finds small ones.
KERNEL_NOISE = 4096
QEMU_NOISE = 8192 if FULL else 32768


def test_one_hundred_queue_pairs_at_once(bench):
    bench.exchange('ib_write_bw -q 100 -s 4096 -n 64',
                   'ib_write_bw -q 100 -s 4096 -n 64',
                   form='-F -d {} -x {}', timeout=120)


def test_one_hundred_queue_pairs_deliver_intact(bench):
    bench.verify('-q 100 -s 2048 -n 16 -r 1 -V -S 8 -R 16 -T 100',
                 timeout=120)


@slow
def test_as_many_objects_as_the_device_has(bench):
    binary = build_self_qp('many_objects')
    before = bench.resources()
    most = '' if FULL else '-m 1000 -r 1'
    watch = None
    for _ in range(2):
        result = bench.one.run(
            f'{bench.where(bench.one, f"{binary} -d {{}} -g {{}}")} {most}',
            600)
        assert result.ok and 'PASS' in result.out, str(result)
        # Memory that the first run allocated for good is not a leak.
        watch = watch or Watch([bench.one])
    kernel, qemu = watch.growth()
    bench.note(f'kernel grew by {kernel} KiB, QEMU by {qemu} KiB')
    assert kernel < KERNEL_NOISE and qemu < QEMU_NOISE, (kernel, qemu)
    bench.nothing_left(before)


def test_registration_of_many_pages_ends(bench):
    """Registration returns, and the test notes its time: the device reads a
    table of pages."""
    size = 1024 if FULL else 256
    for kind in ('small', 'huge'):
        text = run_case(bench, f'mr-time {size} {kind}')
        bench.note(f'{size} MiB, {kind} pages: ' +
                   re.search('best: (.*)', text).group(1))


@slow
def test_connections_come_and_go(bench):
    host = address(2)
    command = f'ucmatose {{}} {host} -c {AT_ONCE} -C 1 -S 256'
    before = bench.resources()

    def some(count):
        for _ in range(count // AT_ONCE):
            result = cm_exchange(bench.two, bench.one, command.format('-b'),
                                 command.format('-s'), 90)
            assert result.ok, str(result)

    some(WARM_UP)
    bench.nothing_left(before)
    watch = Watch(bench.pair.vms)
    some(CONNECTIONS)
    bench.nothing_left(before)
    kernel, qemu = watch.growth()
    bench.note(f'{CONNECTIONS} connections: kernels grew by {kernel} KiB, '
               f'QEMU by {qemu} KiB')
    assert kernel < KERNEL_NOISE and qemu < QEMU_NOISE, (kernel, qemu)
