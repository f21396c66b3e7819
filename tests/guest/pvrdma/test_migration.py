# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with pvrdma migrate while their queue pairs carry traffic."""
from lab import pvrdma
from lab.travel import perftest_while, rping_while, verify_while

PAIR, STACK = pvrdma.moving_pair, pvrdma.STACK
GUESTS = {'smp': 2}


def one_moves(bench):
    bench.one.move()


def both_move(bench):
    bench.pair.move_both()


def save_and_go_on(bench):
    bench.one.save(f'{bench.pair.directory}/state')
    bench.one.go_on()


def test_every_operation_while_one_guest_moves_ten_times(bench):
    verify_while(bench, one_moves, '-s 16384 -n 64 -q 4', 10)


def test_every_operation_while_both_guests_move_ten_times(bench):
    verify_while(bench, both_move, '-s 16384 -n 64 -q 2 -e', 10)


def test_every_operation_while_a_guest_is_saved_and_goes_on(bench):
    verify_while(bench, save_and_go_on, '-s 16384 -n 64 -q 4')


def test_ib_write_bw_while_both_guests_move(bench):
    perftest_while(bench, both_move, 'ib_write_bw')


def test_rping_while_both_guests_move(bench):
    rping_while(bench, both_move)
