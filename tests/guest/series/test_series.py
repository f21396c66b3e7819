# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests migrate from a QEMU of one series to that of another and back, during
traffic, with the machine type of the oldest. QEMUS in the environment lists
the programs, oldest series first: `make check-series` sets it."""
import os
import subprocess

from guestkit.paths import LabError
from lab.moving import MovingPair
from lab.travel import perftest_while, rping_while, verify_while

QEMUS = os.environ.get('QEMUS', '').split()


def series_of(qemu):
    said = subprocess.run([qemu, '-version'], text=True, check=True,
                          stdout=subprocess.PIPE).stdout
    return '.'.join(said.split()[3].split('.')[:2])


SERIES = [series_of(qemu) for qemu in QEMUS]


class SeriesPair(MovingPair):
    def start(self):
        if len(set(SERIES)) < 2:
            raise LabError('QEMUS must list QEMUs of two series, but has '
                           f'{" ".join(QEMUS) or "nothing"}')
        return super().start()


PAIR = SeriesPair
GUESTS = {'smp': 2, 'emulators': QEMUS,
          'machine': f'pc-q35-{SERIES[0]}' if SERIES else ''}
SECONDS = 30
ROUND_TRIP = 2 * len(QEMUS)


def one_moves(bench):
    """Move to the next series, and from the last one to the first."""
    before = bench.one.qmp('query-version')['qemu']
    bench.note(str(bench.one.move()))
    assert bench.one.qmp('query-version')['qemu'] != before


def both_move(bench):
    bench.pair.move_both()


def test_every_operation_while_one_guest_moves(bench):
    verify_while(bench, one_moves, '-s 16384 -n 64 -q 4', ROUND_TRIP)


def test_every_operation_while_both_guests_move(bench):
    verify_while(bench, both_move, '-s 16384 -n 64 -q 2 -e', ROUND_TRIP)


def test_large_messages_while_one_guest_moves(bench):
    verify_while(bench, one_moves, '-s 1048576 -n 16 -q 1 -m 4096', ROUND_TRIP)


def test_ib_write_bw_while_one_guest_moves(bench):
    perftest_while(bench, one_moves, 'ib_write_bw')


def test_rping_while_both_guests_move(bench):
    rping_while(bench, both_move)
