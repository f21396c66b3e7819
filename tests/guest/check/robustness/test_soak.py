# SPDX-License-Identifier: GPL-2.0-or-later
"""Each kind of trouble of `make soak`, once each."""
from lab import soak
from lab.moving import MovingPair
from lab.runner import Skip, slow

PAIR = MovingPair
GUESTS = soak.GUESTS
SECONDS = 60


@slow
def test_traffic_goes_on_after_trouble_of_each_kind(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe is not a device of QEMU')
    sample = soak.Soak(bench, 1, bench.note)
    sample.cycle(soak.KINDS, bench.one)
    bench.note(sample.line(1))
