# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock programs: an arm64 guest is the client of an x86-64 guest."""
from check.programs.test_programs import *    # pylint: disable=wildcard-import,unused-wildcard-import
from guestkit.arch import ARM64, NATIVE

GUESTS = {'archs': (ARM64, NATIVE), 'smp': 2}


def test_the_client_is_an_arm64_machine(bench):
    machines = [vm.must('uname -m').strip() for vm in bench.pair.vms]
    assert machines == ['aarch64', 'x86_64'], machines
