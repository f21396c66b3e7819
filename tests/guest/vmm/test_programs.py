# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in guests of a QEMU without patches, whose adapters our QEMU
serves."""
from lab.served import *
from lab.vmm import ServedPair, stock_qemu

PAIR = ServedPair
SECONDS = 120


def test_the_vmm_has_no_adapter_of_this_project(bench):
    for vm in bench.pair.vms:
        version = vm.qmp('query-version')
        types = vm.qmp('qom-list-types', implements='pci-device')
        names = {entry['name'] for entry in types}
        assert 'vfio-user-pci' in names
        assert not {name for name in names if 'rdma' in name}, version
        assert stock_qemu() or version['package'].startswith('Debian'), version
        bench.note(f'{vm.name}: QEMU {version["qemu"]} {version["package"]}')
