# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in guests of Debian's QEMU, whose adapters our QEMU serves."""
from lab.served import (  # pylint: disable=unused-import
    test_ibv_rc_pingpong,
    test_ibv_ud_pingpong,
    test_ibv_srq_pingpong,
    test_bandwidth_of_every_operation,
    test_latency,
    test_rping_over_both_families_and_both_ways,
    test_ucmatose_connects_many_at_once,
    test_every_operation_arrives_as_it_was_sent,
    test_a_disk_of_nvme,
)
from lab.vmm import ServedPair

PAIR = ServedPair
SECONDS = 120


def test_the_vmm_is_the_qemu_of_debian(bench):
    for vm in bench.pair.vms:
        version = vm.qmp('query-version')
        assert version['package'].startswith('Debian'), version
        bench.note(f'{vm.name}: QEMU {version["package"]}')
