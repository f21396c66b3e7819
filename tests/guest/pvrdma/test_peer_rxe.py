# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 2 has Linux's rxe: neither guest has anything of this project."""
from lab import interop, pvrdma

PAIR, STACK, SECOND = pvrdma.pair, pvrdma.STACK, 'rxe'
GUESTS = {'peer': '', 'smp': 2}


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_programs_both_ways(bench):
    for family, without in pvrdma.CANNOT.items():
        interop.programs_both_ways(bench, family, without)
