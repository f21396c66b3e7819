# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that knows FLUSH on adapters that do not offer it."""
from lab import driver, nvme, storage
from lab.pair import Pair, address
from lab.paths import LabError
from lab.runner import Skip

SERIES = '6.12'


def PAIR(tag, **options):
    try:
        driver.prepare(SERIES)
    except LabError as e:
        raise Skip(str(e)) from e
    return Pair(tag, series=SERIES, options=lambda index: 'flush=off',
                **options)


def test_fast_registration_needs_no_flush(bench):
    nvme.export(bench.two, address(2))
    name = nvme.connect(bench.one, address(2))
    storage.blocks(bench.one, f'/dev/{name}n1', sizes=(('64k', 1),))
    nvme.disconnect(bench.one, name)
    nvme.withdraw(bench.two)
