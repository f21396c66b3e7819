# SPDX-License-Identifier: GPL-2.0-or-later
"""SRP: ib_srpt in guest 2, ib_srp in guest 1."""
from guestkit.adapter import address
from lab import srp, storage

# With an SRQ, ib_srpt gives back a cache for receives that it never had, and
# warns once (since Linux 6.11 and its backports), maybe some time later.
WARNING = (r'\[ cut here \](?:(?!cut here).)*? srpt_cache_put'
           r'(?:(?!cut here).)*?(?:\[ end trace|\Z)')


def round_trip(bench, srq):
    before = bench.resources()
    guid = srp.export(bench.two, bench.device(bench.two),
                      srp.gid(bench.one, bench.device(bench.one)), srq)
    device = srp.connect(bench.one, bench.device(bench.one), guid,
                         address(2))
    assert bool(bench.count(bench.two, 'srq')) == srq
    storage.blocks(bench.one, device)
    storage.parallel(bench.one, device)
    storage.file_system(bench.one, device)
    srp.disconnect(bench.one)
    srp.withdraw(bench.two, bench.device(bench.two))
    bench.nothing_left(before)


def test_a_disk(bench):
    round_trip(bench, False)


def test_the_target_receives_from_a_shared_queue(bench):
    bench.two.forgive(WARNING)
    round_trip(bench, True)


def test_the_driver_unloads_afterwards(bench):
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
