# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests migrate back and forth between QEMU processes while their programs
use the device. No program notices more than a pause.

MOVES in the environment is the number of moves, and selects all tests: `make
check-migration` sets it. Without MOVES a few tests run, with a few moves.
"""
import os
import re
import time

from guestkit.adapter import address
from lab import nvme, storage
from lab.moving import MovingPair
from lab.travel import (perftest_while, require_device, rping_while, travel,
                        verify_while)

PAIR = MovingPair
GUESTS = {'smp': 2}
SECONDS = 45
ALL = bool(os.environ.get('MOVES'))


def in_long_form(test):
    """Mark a test that runs only with MOVES."""
    return test if ALL else None


def one_moves(bench):
    bench.one.move()


def both_move(bench):
    bench.pair.move_both()


def one_moves_by_multifd(bench):
    bench.one.move(capabilities=['multifd'])


def one_moves_by_postcopy(bench):
    bench.one.move(capabilities=['postcopy-ram'])


def stop_and_go_on(bench):
    for _ in range(5):
        for vm in bench.pair.vms:
            vm.qmp('stop')
            vm.qmp('cont')
            time.sleep(0.1)


def save_and_go_on(bench):
    bench.one.save(f'{bench.pair.directory}/state')
    bench.one.go_on()


# Jobs that verify all that they transfer

@in_long_form
def test_every_operation_while_one_guest_moves(bench):
    verify_while(bench, one_moves, '-s 16384 -n 64 -q 4')


def test_every_operation_while_both_guests_move(bench):
    verify_while(bench, both_move, '-s 16384 -n 64 -q 2 -e')


@in_long_form
def test_large_messages_while_one_guest_moves(bench):
    verify_while(bench, one_moves, '-s 1048576 -n 16 -q 1 -m 4096')


@in_long_form
def test_large_messages_while_both_guests_move(bench):
    verify_while(bench, both_move, '-s 1048576 -n 16 -q 1 -m 4096')


@in_long_form
def test_unsignalled_inline_and_unready_receivers_while_one_guest_moves(bench):
    verify_while(bench, one_moves, '-s 2048 -n 256 -q 2 -u 8 -I 256 -R 2')


@in_long_form
def test_every_operation_while_a_guest_moves_by_multifd(bench):
    verify_while(bench, one_moves_by_multifd, '-s 16384 -n 64 -q 4', 2)


@in_long_form
def test_every_operation_while_a_guest_moves_by_postcopy(bench):
    verify_while(bench, one_moves_by_postcopy, '-s 16384 -n 64 -q 4', 2)


@in_long_form
def test_every_operation_while_guests_stop_and_go_on(bench):
    verify_while(bench, stop_and_go_on, '-s 16384 -n 64 -q 4 -m 4096')


@in_long_form
def test_every_operation_while_a_guest_is_saved_and_goes_on(bench):
    verify_while(bench, save_and_go_on, '-s 16384 -n 64 -q 4')


# Programs that report their progress

@in_long_form
def test_ib_write_bw_while_one_guest_moves(bench):
    perftest_while(bench, one_moves, 'ib_write_bw')


@in_long_form
def test_ib_write_bw_while_both_guests_move(bench):
    perftest_while(bench, both_move, 'ib_write_bw')


@in_long_form
def test_ib_send_bw_while_one_guest_moves(bench):
    perftest_while(bench, one_moves, 'ib_send_bw')


@in_long_form
def test_ib_send_bw_while_both_guests_move(bench):
    perftest_while(bench, both_move, 'ib_send_bw')


COPY = '''
while [ ! -e /run/enough ]; do
    dd if={data} of={disk} bs=64k oflag=direct status=none || exit 1
    dd if={disk} bs=1M count={size} iflag=direct status=none |
        cmp -n $(({size} << 20)) - {data} || exit 1
    passes=$((passes + 1))
    echo "pass $passes"
done
'''


def passes(job):
    return len(re.findall(r'^pass ', job.peek().out, re.M))


def copy_while(bench, move):
    """Copy to a disk over NVMe-oF and compare, repeatedly."""
    require_device(bench)
    nvme.export(bench.two, address(2), mebibytes=16)
    name = nvme.connect(bench.one, address(2))
    size = 1
    wanted = storage.make_data(bench.one, size)
    try:
        job = bench.one.spawn(COPY.format(
            data=storage.DATA, disk=f'/dev/{name}n1', size=size))
        travel(bench, move, job, passes)
        bench.one.must(': > /run/enough')
        result = job.wait(60)
        assert result.ok, str(result)
        assert storage.checksum(bench.two, nvme.DISK, size,
                                'iflag=direct') == wanted
        log = bench.one.must('dmesg')
        assert 'I/O error' not in log and 'reconnect' not in log, log
    finally:
        bench.one.must('rm -f /run/enough')
    nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)


@in_long_form
def test_nvme_of_while_its_host_moves(bench):
    copy_while(bench, one_moves)


@in_long_form
def test_nvme_of_while_both_guests_move(bench):
    copy_while(bench, both_move)


def test_rping_while_one_guest_moves(bench):
    rping_while(bench, one_moves)


@in_long_form
def test_rping_while_both_guests_move(bench):
    rping_while(bench, both_move)


def test_a_guest_sleeps_only_without_the_driver(bench):
    """Nothing except the driver keeps these guests from sleeping."""
    require_device(bench)
    nap = 'echo devices > /sys/power/pm_test && ' \
        'echo 0 > /sys/module/suspend/parameters/pm_test_delay && ' \
        'echo freeze > /sys/power/state'
    result = bench.one.run(nap)
    assert 'busy' in result.out, str(result)
    assert 'unload virtio_rdma first' in bench.one.must('dmesg')
    bench.verify('-s 4096 -n 32 -r 1 -V')
    stack = bench.stacks[bench.one]
    stack.unload(bench.one)
    bench.one.must(nap)
    stack.up(bench.one)
    bench.verify('-s 4096 -n 32 -r 1 -V')
