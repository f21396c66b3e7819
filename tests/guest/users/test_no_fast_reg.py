# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernel users in a guest whose adapter has no fast registration: who serves
does not need it, who connects says that it is missing."""
from guestkit.adapter import address
from guestkit.paths import LabError
from lab import nfs, nvme, storage

GUESTS = {'smp': 2,
          'options': lambda index: 'mem-mgt=off' if index == 1 else ''}


def test_nvme_target(bench):
    before = bench.resources()
    nvme.export(bench.one, address(1))
    name = nvme.connect(bench.two, address(1))
    storage.blocks(bench.two, f'/dev/{name}n1', bench.one, nvme.DISK)
    nvme.disconnect(bench.two, name)
    nvme.withdraw(bench.one)
    bench.nothing_left(before)


def test_nvme_host_is_refused(bench):
    before = bench.resources()
    nvme.export(bench.two, address(2))
    try:
        name = nvme.connect(bench.one, address(2))
    except LabError as e:
        assert 'Memory registrations not supported' in str(e), e
    else:
        raise AssertionError(f'{name} is there')
    bench.one.must(f'rmmod {nvme.HOST_MODULES}')
    nvme.withdraw(bench.two)
    bench.nothing_left(before)


def test_nfs_server(bench):
    before = bench.resources()
    nfs.export(bench.one, [address(2)])
    nfs.mount(bench.two, address(1), address(2))
    try:
        for size, mebibytes in storage.SIZES:
            wanted = storage.make_data(bench.two, mebibytes)
            bench.two.must(f'dd if={storage.DATA} of=/mnt/{size} bs={size} '
                           'oflag=direct status=none', 120)
            assert storage.checksum(bench.two, f'/mnt/{size}', mebibytes,
                                    'iflag=direct') == wanted, size
    finally:
        nfs.unmount(bench.two)
        nfs.withdraw(bench.one)
    nfs.unload(bench.one)
    nfs.unload(bench.two)
    bench.nothing_left(before)


def test_nfs_client_is_refused(bench):
    before = bench.resources()
    nfs.export(bench.two, [address(1)])
    try:
        nfs.mount(bench.one, address(2), address(1))
    except LabError:
        log = bench.one.must('dmesg')
        assert "'frwr' mode is not supported by device" in log, log
    else:
        raise AssertionError('it is mounted')
    nfs.withdraw(bench.two)
    nfs.unload(bench.one)
    nfs.unload(bench.two)
    bench.nothing_left(before)
