# SPDX-License-Identifier: GPL-2.0-or-later
"""Data that goes to another guest's block device or file system, and comes
back."""
import re

from guestkit.paths import LabError

DATA = '/run/data'
# Block sizes and how many mebibytes each of them moves.
SIZES = (('4k', 1), ('64k', 8), ('1M', 32))


def checksum(vm, path, mebibytes, flags=''):
    """Checksum of the beginning of a file or device."""
    text = vm.must('set -o pipefail; '
                   f'dd if={path} bs=1M count={mebibytes} {flags} '
                   'status=none | sha256sum', 120)
    return text.split()[0]


def make_data(vm, mebibytes=32):
    """Create random data, and return its checksum."""
    vm.must(f'head -c {mebibytes}M /dev/urandom > {DATA}')
    return checksum(vm, DATA, mebibytes)


def blocks(vm, device, far_vm=None, far_device=None, sizes=SIZES):
    """Write with each block size, past the page cache. Compare the data that
    another block size reads back, and the data on the far guest's disk."""
    for size, mebibytes in sizes:
        wanted = make_data(vm, mebibytes)
        vm.must(f'dd if={DATA} of={device} bs={size} oflag=direct '
                'status=none', 120)
        assert checksum(vm, device, mebibytes, 'iflag=direct') == wanted, \
            f'{size}: the data read differ from the data written'
        if far_vm:
            assert checksum(far_vm, far_device, mebibytes, 'iflag=direct') \
                == wanted, f'{size}: the disk has other data'


def parallel(vm, device, jobs=8, mebibytes=4):
    """Run several writers at once, each on its own part of the device."""
    wanted = make_data(vm, mebibytes)
    vm.must('set -e; '
            f'for i in $(seq 0 {jobs - 1}); do '
            f'dd if={DATA} of={device} bs=64k oflag=direct status=none '
            f'seek=$((i * {mebibytes * 16})) & pids="$pids $!"; done; '
            'for p in $pids; do wait $p; done', 120)
    text = vm.must('set -e; '
                   f'for i in $(seq 0 {jobs - 1}); do '
                   f'dd if={device} bs=1M iflag=direct status=none '
                   f'skip=$((i * {mebibytes})) count={mebibytes} '
                   '| sha256sum & done; wait', 120)
    assert text.count(wanted) == jobs, f'not {jobs} times {wanted}:\n{text}'


def file_system(vm, device, mebibytes=24):
    """Test ext4 on a device: files survive a remount and a check."""
    wanted = make_data(vm, mebibytes)
    vm.must(f'set -e; mkfs.ext4 -q {device}; mount {device} /mnt; '
            f'cp {DATA} /mnt/file; mkdir /mnt/small; '
            'for i in $(seq 200); do echo $i > /mnt/small/$i; done; '
            f'umount /mnt; e2fsck -fn {device} > /run/fsck; '
            f'mount {device} /mnt', 120)
    try:
        assert checksum(vm, '/mnt/file', mebibytes) == wanted, \
            'the file has changed'
        assert vm.must('cat /mnt/small/* | sort -n | md5sum') == \
            vm.must('seq 200 | md5sum'), 'small files have changed'
    finally:
        vm.must('umount /mnt')


def speed(vm, device, size, mebibytes, write):
    """Return MB/s of dd with one block in flight."""
    way = f'if=/dev/zero of={device} oflag=direct iflag=count_bytes' \
        if write else f'if={device} of=/dev/null iflag=count_bytes,direct'
    text = vm.must(f'dd {way} bs={size} count={mebibytes}M 2>&1', 120)
    found = re.search(r'(\d+) bytes.*copied, ([\d.e-]+) s', text)
    if not found:
        raise LabError(f'no figures in {text}')
    return int(found.group(1)) / float(found.group(2)) / 1e6
