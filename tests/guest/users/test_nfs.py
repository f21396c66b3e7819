# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA: the server in guest 2, the client in guest 1."""
from guestkit.adapter import address
from lab import nfs, storage

GUESTS = {}


def round_trip(bench, family=4, version='4.2'):
    before = bench.resources()
    nfs.export(bench.two, [address(1, 4), address(1, 6)])
    nfs.mount(bench.one, address(2, family), address(1, family), version)
    try:
        for size, mebibytes in storage.SIZES:
            wanted = storage.make_data(bench.one, mebibytes)
            bench.one.must(f'dd if={storage.DATA} of=/mnt/{size} bs={size} '
                           'oflag=direct status=none', 120)
            assert storage.checksum(bench.one, f'/mnt/{size}', mebibytes,
                                    'iflag=direct') == wanted, size
            assert storage.checksum(bench.two, f'{nfs.ROOT}/{size}',
                                    mebibytes) == wanted, size
        wanted = storage.make_data(bench.one, 32)
        bench.one.must(f'cp {storage.DATA} /mnt/cached && mkdir /mnt/many && '
                       'for i in $(seq 300); do echo $i > /mnt/many/$i; done',
                       120)
        nfs.unmount(bench.one)
        nfs.mount(bench.one, address(2, family), address(1, family), version)
        assert storage.checksum(bench.one, '/mnt/cached', 32) == wanted
        assert bench.one.must('ls /mnt/many | wc -l').split() == ['300']
        assert bench.one.must('cat /mnt/many/* | sort -n | md5sum') == \
            bench.one.must('seq 300 | md5sum')
    finally:
        nfs.unmount(bench.one)
        nfs.withdraw(bench.two)
    nfs.unload(bench.one)
    nfs.unload(bench.two)
    bench.nothing_left(before)


def test_version_4_2(bench):
    round_trip(bench)


def test_version_4_1_over_ipv6(bench):
    round_trip(bench, 6, '4.1')


def test_the_driver_unloads_afterwards(bench):
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
