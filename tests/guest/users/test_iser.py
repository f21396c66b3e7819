# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER: ib_isert in guest 2, ib_iser and Open-iSCSI in guest 1."""
from guestkit.adapter import address
from lab import iser, storage


def test_a_disk(bench):
    iser.prepare()
    before = bench.resources()
    iser.export(bench.two, address(2))
    device = iser.connect(bench.one, address(2))
    storage.blocks(bench.one, device)
    storage.parallel(bench.one, device)
    storage.file_system(bench.one, device)
    iser.disconnect(bench.one)
    iser.withdraw(bench.two, address(2))
    bench.nothing_left(before)
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
