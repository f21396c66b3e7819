# SPDX-License-Identifier: GPL-2.0-or-later
"""SRP: ib_srpt in guest 2, ib_srp in guest 1."""
from lab import srp, storage
from lab.pair import address


def test_a_disk(bench):
    before = bench.resources()
    guid = srp.export(bench.two, bench.device(bench.two),
                      srp.gid(bench.one, bench.device(bench.one)))
    device = srp.connect(bench.one, bench.device(bench.one), guid,
                          address(2))
    storage.blocks(bench.one, device)
    storage.parallel(bench.one, device)
    storage.file_system(bench.one, device)
    srp.disconnect(bench.one)
    srp.withdraw(bench.two, bench.device(bench.two))
    bench.nothing_left(before)
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
