# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA: memory registration by work requests, and invalidation."""
from lab import nvme, pvrdma

PAIR, STACK = pvrdma.pair, pvrdma.STACK
GUESTS = {'smp': 2}


def test_ipv4(bench):
    nvme.use_disk(bench)


def test_ipv6_and_two_queues(bench):
    nvme.use_disk(bench, 6, 2)


def test_five_connects_and_disconnects(bench):
    nvme.connect_repeatedly(bench, 5)
