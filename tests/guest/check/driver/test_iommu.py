# SPDX-License-Identifier: GPL-2.0-or-later
"""The adapter behind a virtual IOMMU (iommu_platform=on)."""

GUESTS = {'iommu': True}
SECONDS = 20


# VIRTIO_F_ACCESS_PLATFORM, as sysfs counts the bits
ACCESS_PLATFORM = 33


def test_the_adapter_is_behind_the_iommu(bench):
    """The guest's IOMMU translates the adapter's accesses, and the driver has
    accepted the feature."""
    if bench.stack == 'rxe':
        return    # not a PCI device
    for vm in (bench.one, bench.two):
        device = f'/sys/class/infiniband/{bench.device(vm)}/device'
        domain = vm.must(f'cat {device}/iommu_group/type').strip()
        assert domain in ('DMA', 'DMA-FQ'), f'{vm.name}: domain {domain}'
        features = vm.must(f'cat {device}/virtio*/features').strip()
        assert features[ACCESS_PLATFORM] == '1', f'{vm.name}: {features}'


def test_rc_every_operation(bench):
    bench.verify('-s 16384 -n 64 -r 3 -V')


def test_rc_large_messages(bench):
    bench.verify('-s 1048576 -n 8 -r 1 -m 4096 -o send,write,read')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 1 -V -R 64')
