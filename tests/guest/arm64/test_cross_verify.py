# SPDX-License-Identifier: GPL-2.0-or-later
"""Every byte and every completion: an arm64 guest is the client of an x86-64
guest, and the other way round."""
from check.api.test_verify import *    # pylint: disable=wildcard-import,unused-wildcard-import
from guestkit.arch import ARM64, NATIVE

GUESTS = {'archs': (ARM64, NATIVE), 'smp': 2}


def from_x86(bench, options):
    bench.verify(options, server=bench.one, client=bench.two)


def test_from_x86_every_operation(bench):
    from_x86(bench, '-s 4096 -n 64 -r 3 -V')


def test_from_x86_with_events_on_eight_queue_pairs(bench):
    from_x86(bench, '-s 8192 -n 32 -r 2 -V -e -q 8')


def test_from_x86_atomics(bench):
    from_x86(bench, '-n 256 -r 2 -q 2 -o fadd,cas')


def test_from_x86_uc_every_operation(bench):
    from_x86(bench, '-t uc -s 8192 -n 32 -r 2 -V -R 64')


def test_from_x86_ud_datagrams(bench):
    from_x86(bench, '-t ud -s 1024 -n 64 -r 2 -V -R 64')
