# SPDX-License-Identifier: GPL-2.0-or-later
"""An arm64 guest whose processor has no atomic instructions: the provider sets
bits in the shadow of doorbells by exclusive loads and stores."""
import re

from guestkit.arch import ARM64_LLSC, NATIVE

GUESTS = {'archs': (ARM64_LLSC, NATIVE), 'smp': 2}


def test_the_processor_has_no_atomic_instructions(bench):
    features = re.search(r'^Features\s*:(.*)$',
                         bench.one.must('cat /proc/cpuinfo'), re.M)[1].split()
    assert 'fp' in features and 'atomics' not in features, features


def test_rc_every_operation_on_thirty_two_queue_pairs(bench):
    bench.verify('-s 512 -n 32 -r 8 -V -q 32')


def test_rc_waits_for_events(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V -e')


def test_rc_atomics(bench):
    bench.verify('-n 256 -r 2 -q 2 -o fadd,cas')
