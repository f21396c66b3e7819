# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in guests of Debian's QEMU, whose adapters our QEMU serves."""
from lab.served import *
from lab.vmm import ServedPair

PAIR = ServedPair
SECONDS = 120


def test_the_vmm_is_the_qemu_of_debian(bench):
    for vm in bench.pair.vms:
        version = vm.qmp('query-version')
        assert version['package'].startswith('Debian'), version
        bench.note(f'{vm.name}: QEMU {version["package"]}')
