# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with two processors each, which use the adapter at the same time."""
from lab.places import PROGRAMS
from lab.programs import build_no_doorbells, exchange

GUESTS = {'smp': 2}


def test_rc_many_queue_pairs_with_events(bench):
    bench.verify('-s 4096 -n 32 -r 3 -V -q 16 -e -R 32 -S 16')


def test_a_provider_that_cannot_map_its_doorbells(bench):
    commands = bench.verify_commands('-s 4096 -n 32 -r 3 -V -q 4 -R 32')
    result = exchange(bench.two, bench.one,
                      *(f'LD_PRELOAD={build_no_doorbells()} {command}'
                        for command in commands), timeout=60)
    assert result.ok, str(result)


def test_own_loopback(bench):
    bench.verify('-s 16384 -n 64 -r 3 -V -q 2', server=bench.one,
                 client=bench.one)


def test_a_memory_map_that_changes_while_a_device_is_read(bench):
    bench.one.must(f'{PROGRAMS}/memory_map.py', timeout=60)
