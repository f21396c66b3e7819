# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with unusual adapters on a datagram link. The adapter of guest 1 runs
in an iothread. The driver of guest 2 suppresses interrupts by flags alone."""
import os
import time

from lab.events import (  # pylint: disable=unused-import
    test_ibv_rc_pingpong_with_events,
    test_rc_waits_for_events,
    test_rc_waits_for_events_in_its_own_guest,
)
from lab.hotplug import DEVICE, plug, unplug
from lab.pair import queues
from lab.programs import build_self_qp
from lab.runner import Skip

# `make check SUITE=scale` sets FULL. With fewer writes, a bug that misses one
# often does not show.
ALONE = 1500000 if os.environ.get('FULL') else 400000


def properties(index):
    if index == 2:
        return 'event_idx=off'
    return '' if queues() else 'iothread=io1'


GUESTS = {'link': 'dgram', 'hotplug': True, 'options': properties,
          'extra': lambda index: ['-object', 'iothread,id=io1']}
SECONDS = 45


def test_rc_every_operation(bench):
    bench.verify('-s 16384 -n 64 -r 3 -V')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_ib_write_bw_on_a_datagram_link(bench):
    bench.exchange('ib_write_bw -s 65536 -n 200',
                   'ib_write_bw -s 65536 -n 200', form='-F -d {} -x {}')


def test_ib_read_bw_on_a_datagram_link(bench):
    bench.exchange('ib_read_bw -s 65536 -n 200',
                   'ib_read_bw -s 65536 -n 200', form='-F -d {} -x {}')


def test_writes_that_are_alone_are_all_seen(bench):
    if bench.stack == 'rxe' or queues():
        raise Skip('needs queues that the device polls by itself')
    binary = build_self_qp('qp_rates')
    where = bench.where(bench.one, '-d {} -g {}')
    said = bench.one.must(f'yes | timeout 300 {binary} {where} -n 100000 '
                          f'-a {ALONE} 128', timeout=320)
    assert 'qps 128 rate' in said and 'stuck' not in said, said


def test_the_driver_refuses_a_device_without_version_1(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe is not a device of QEMU')
    vm = bench.two
    unplug(bench, vm)
    said = len(vm.kernel_log())
    vm.qmp('device_add', **DEVICE, netdev='n0', **{'version-1': False})
    end = time.monotonic() + 30
    while 'no VIRTIO_RDMA_F_VERSION_1' not in vm.kernel_log()[said:]:
        assert time.monotonic() < end, vm.kernel_log()[said:]
        time.sleep(0.1)
    unplug(bench, vm)
    plug(bench, vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
