# SPDX-License-Identifier: GPL-2.0-or-later
"""All queues are virtqueues. Guest 2 cannot reset its virtqueues, and
suppresses interrupts by flags alone."""
from lab.events import (  # pylint: disable=unused-import
    test_ibv_rc_pingpong_with_events,
    test_rc_waits_for_events,
    test_rc_waits_for_events_in_its_own_guest,
)
from lab.programs import run_case
from lab.runner import Skip

GUESTS = {'options': lambda index: 'direct=off' if index == 1
          else 'direct=off,queue_reset=off,event_idx=off'}
SECONDS = 30


def has_feature(bench, vm, bit):
    bits = vm.must('cat /sys/class/infiniband/'
                   f'{bench.device(vm)}/device/virtio*/features').strip()
    return bits[bit] == '1'


def test_the_devices_have_no_direct_queues(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe has no feature bits')
    direct, version_1, ring_reset = 1, 23, 40
    for vm in bench.pair.vms:
        assert has_feature(bench, vm, version_1)
        assert not has_feature(bench, vm, direct)
    assert has_feature(bench, bench.one, ring_reset)
    assert not has_feature(bench, bench.two, ring_reset)


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_virtqueues_serve_one_queue_pair_after_the_other(bench):
    """The first message of each queue pair has its own bytes, not those of an
    older buffer."""
    for _ in range(6):
        bench.verify('-s 4096 -n 16 -r 1 -V -q 16')


def test_a_queue_pair_reports_the_inline_data_that_its_slots_hold(bench):
    run_case(bench, 'caps')


def test_an_srq_gets_back_what_a_queue_pair_held(bench):
    run_case(bench, 'srq-destroy-qp')
    run_case(bench, 'srq-reset-qp')


def test_an_srq_gets_back_more_than_a_cq_has_slots(bench):
    run_case(bench, 'srq-deep-destroy-qp')
    run_case(bench, 'srq-deep-reset-qp')


def test_a_receiver_learns_of_an_invalidated_key(bench):
    run_case(bench, 'mw-type-2')
