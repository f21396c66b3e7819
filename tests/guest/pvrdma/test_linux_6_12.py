# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver of Linux 6.12."""
from check.pvrdma.test_pvrdma import *    # pylint: disable=wildcard-import,unused-wildcard-import

GUESTS = {'smp': 2, 'series': '6.12'}


def test_the_guests_run_it(bench):
    for vm in bench.pair.vms:
        assert vm.must('uname -r').startswith('6.12.'), vm.name
