# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that knows FLUSH on adapters that do not offer it."""
from guestkit.adapter import address
from lab import newer, nvme, storage

PAIR = newer.pair
GUESTS = {'options': lambda index: 'flush=off'}


def test_fast_registration_needs_no_flush(bench):
    nvme.export(bench.two, address(2))
    name = nvme.connect(bench.one, address(2))
    storage.blocks(bench.one, f'/dev/{name}n1', sizes=(('64k', 1),))
    nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)
