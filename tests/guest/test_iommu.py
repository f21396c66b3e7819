# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter behind a virtual IOMMU (iommu_platform=on)."""

GUESTS = {'iommu': True}


def test_the_guest_uses_the_iommu(bench):
    assert 'IOMMU enabled' in bench.one.kernel_log(), 'no DMAR in the guest'


def test_rc_every_operation(bench):
    bench.verify('-s 16384 -n 64 -r 3 -V')


def test_rc_large_messages(bench):
    bench.verify('-s 1048576 -n 8 -r 1 -m 4096 -o send,write,read')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 1 -V -R 64')
