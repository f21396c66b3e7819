# SPDX-License-Identifier: GPL-2.0-or-later
"""Datagram link, two processors in each guest."""
from lab.places import PROGRAMS
from lab.programs import build_no_doorbells, exchange

GUESTS = {'link': 'dgram', 'smp': 2}
SECONDS = 35


def test_rc_every_operation(bench):
    bench.verify('-s 16384 -n 64 -r 3 -V')


def test_rc_many_queue_pairs_with_events(bench):
    bench.verify('-s 4096 -n 32 -r 3 -V -q 16 -e -R 32 -S 16')


def test_a_provider_that_cannot_map_its_doorbells(bench):
    commands = bench.verify_commands('-s 4096 -n 32 -r 3 -V -q 4 -R 32')
    result = exchange(bench.two, bench.one,
                      *(f'LD_PRELOAD={build_no_doorbells()} {command}'
                        for command in commands), timeout=60)
    assert result.ok, str(result)


def test_ib_write_bw_on_a_datagram_link(bench):
    bench.exchange('ib_write_bw -s 65536 -n 200',
                   'ib_write_bw -s 65536 -n 200', form='-F -d {} -x {}')


def test_ib_read_bw_on_a_datagram_link(bench):
    bench.exchange('ib_read_bw -s 65536 -n 200',
                   'ib_read_bw -s 65536 -n 200', form='-F -d {} -x {}')


def test_own_loopback_on_two_processors(bench):
    bench.verify('-s 16384 -n 64 -r 3 -V -q 2', server=bench.one,
                 client=bench.one)


def test_a_memory_map_that_changes_while_a_device_is_read(bench):
    bench.one.must(f'{PROGRAMS}/memory_map.py', timeout=60)
