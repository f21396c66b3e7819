# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests from disk images with rxe, or with another kernel, and images that
"vrdma-lab up" refuses. Each test has a lab of its own."""
import re
import subprocess

from guestkit import driver
from lab.testimages import ImageLab, image
from lab.userlab import UserBench, all_end, exchange

PAIR, BENCH = ImageLab, UserBench
SECONDS = 400


def up(bench, *words):
    """Boot guests from the image of Debian 12. Return the lab's processes."""
    bench.lab.call('up', '--image', str(image('bookworm')), *words)
    return bench.lab.status()['processes']


def down(bench, processes):
    """Stop the lab, and require that nothing of it stays."""
    bench.lab.call('down')
    assert not all_end(processes)
    left = list((bench.lab.home / 'vrdma-lab').iterdir())
    assert not left, left


def test_rxe_instead_of_virtio_rdma(bench):
    processes = up(bench, '2', '--stack', 'rxe')
    try:
        command = 'ib_write_bw -F -d $VRDMA_DEVICE -x $VRDMA_GID -n 100'
        out = exchange(bench.lab, 1, 2, 18515, command, command)
        assert re.search(r'^ 65536 +100 ', out, re.M), out
    finally:
        down(bench, processes)


def test_another_kernel_than_that_of_the_image(bench):
    driver.prepare('6.12')
    processes = up(bench, '1', '--kernel', '6.12')
    try:
        done = bench.lab.call(
            'run', '--', 'sh', '-c', '. /etc/os-release; echo $VERSION_ID; '
            'uname -r; modprobe -v nvme_rdma; lsmod | grep -c ^nvme_rdma; '
            'ibv_devinfo -d $VRDMA_DEVICE | grep -c PORT_ACTIVE')
        lines = done.out.splitlines()
        assert lines[0] == '12' and lines[1].startswith('6.12.'), lines
        assert lines[-2:] == ['1', '1'], lines
    finally:
        down(bench, processes)


def refused(bench, path, *texts):
    done = bench.lab.fails('up', '1', '--image', str(path))
    for text in (str(path), *texts):
        assert text in done.err, str(done)
    assert 'Traceback' not in done.err, str(done)
    assert not bench.lab.status()


def test_a_disk_without_a_system_is_reported(bench):
    disk = bench.lab.work / 'empty.raw'
    with open(disk, 'wb') as f:
        f.truncate(64 << 20)
    subprocess.run(['mke2fs', '-q', '-t', 'ext4', str(disk)], check=True)
    refused(bench, disk, 'no partition has the root of a system',
            'vda: ext4', 'LVM')


def test_a_disk_that_is_damaged_is_reported(bench):
    disk = bench.lab.work / 'damaged.qcow2'
    disk.write_bytes(b'QFI\xfb' + bytes(65536))
    refused(bench, disk, 'Unsupported qcow2 version')


def test_packages_that_do_not_exist_are_reported(bench):
    done = bench.lab.fails('up', '1', '--image', str(image('bookworm')),
                           '--install', 'perftest,no-such-package')
    assert 'no-such-package' in done.err and 'bookworm' in done.err, str(done)
