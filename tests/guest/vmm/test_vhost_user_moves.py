# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests migrate while their programs use adapters of vhost-user servers."""
from lab.movingserved import ServedMovingPair
from lab.travel import rping_while, verify_while

PAIR = ServedMovingPair
SECONDS = 90


def one_moves(bench):
    bench.one.move()


def both_move(bench):
    bench.pair.move_both()


def test_every_operation_while_one_guest_moves(bench):
    verify_while(bench, one_moves, '-s 16384 -n 64 -q 4')


def test_every_operation_while_both_guests_move(bench):
    verify_while(bench, both_move, '-s 16384 -n 64 -q 2 -e')


def test_rping_while_one_guest_moves(bench):
    rping_while(bench, one_moves)
