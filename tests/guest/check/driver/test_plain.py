# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 1 has the device of the original proposal, without any feature bit;
guest 2 one with all of them, but with interrupts suppressed by flags alone."""
import re

from lab.programs import run_case
from lab.runner import Skip

# Of the device, VIRTIO_RDMA_F_*
BITS = 5

GUESTS = {'options':
          lambda index: 'version-1=off' if index == 1 else 'event_idx=off'}
SECONDS = 20


def test_the_plain_device_has_none_of_the_features(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe has no feature bits')
    bits = bench.one.must('cat /sys/class/infiniband/'
                          f'{bench.device(bench.one)}/device/virtio*/features')
    assert re.fullmatch(f'0{{{BITS}}}.*', bits.strip()), bits


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V')


def test_rc_waits_for_events(bench):
    bench.verify('-s 4096 -n 64 -r 6 -V -e -q 2')


def test_rc_waits_for_events_in_its_own_guest(bench):
    for vm in bench.pair.vms:
        bench.verify('-s 4096 -n 64 -r 6 -V -e', server=vm, client=vm)


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_ibv_rc_pingpong_with_events(bench):
    bench.exchange('ibv_rc_pingpong -e -c -n 2000',
                   'ibv_rc_pingpong -e -c -n 2000')


def test_a_queue_pair_reports_the_inline_data_that_its_slots_hold(bench):
    run_case(bench, 'caps')
