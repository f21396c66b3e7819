# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab with guests that boot from disk images: one from Debian testing,
whose libibverbs has another private ABI, and one from Debian 12."""
from guestkit import disks
from lab.testimages import PROGRAMS, ImageLab
from lab.userlab import (UserBench, check_modprobe, check_rping,
                         check_write_bw)

PAIR, BENCH = ImageLab, UserBench
GUESTS = {'suites': ('testing', 'bookworm'),
          'up': ('--install', ','.join(PROGRAMS))}
SECONDS = 600


def run(bench, guest, script):
    """Return the output of a shell command in one guest."""
    return bench.lab.call('run', '-t', '120', '-g', str(guest), '--', 'sh',
                          '-c', script).out


def test_the_first_guest_has_the_system_of_testing(bench):
    out = run(bench, 1, '. /etc/os-release; echo $ID $VERSION_CODENAME; '
              'uname -r; ps -o comm= -p 1; '
              "dpkg-query -W -f '${Version}\\n' libibverbs1").splitlines()
    assert out[0] == f'debian {disks.TESTING}', out
    assert out[1] == bench.lab.status()['guests'][0]['kernel'], out
    assert out[2] == 'systemd', out
    bench.notes.append(f'Linux {out[1]}, rdma-core {out[3]}')


def test_each_guest_has_the_provider_for_its_libibverbs(bench):
    for index in (1, 2):
        names = run(bench, index, 'cd /usr/lib/*/libibverbs; '
                    'ls librxe-* libvirtio_rdma-*').split()
        assert len(names) == 2, names
        assert names[0].replace('rxe', 'virtio_rdma') == names[1], names
        out = run(bench, index, 'ibv_devinfo -d $VRDMA_DEVICE')
        assert 'PORT_ACTIVE' in out, out


def test_ib_write_bw_of_testing_and_debian_12(bench):
    for server, client in ((1, 2), (2, 1)):
        check_write_bw(bench.lab, server, client)


def test_rping_of_testing_and_debian_12(bench):
    for server, client in ((1, 2), (2, 1)):
        check_rping(bench.lab, server, client)


def test_the_driver_comes_back_by_modprobe(bench):
    check_modprobe(bench.lab, 1)
