# SPDX-License-Identifier: GPL-2.0-or-later
"""A short form of the suite vmm: adapters of Debian's QEMU, by vfio-user."""
from lab.served import (  # pylint: disable=unused-import
    test_ibv_rc_pingpong,
    test_every_operation_arrives_as_it_was_sent,
)
from lab.vmm import ServedPair

PAIR = ServedPair
SECONDS = 45
