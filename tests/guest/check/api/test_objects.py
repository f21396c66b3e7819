# SPDX-License-Identifier: GPL-2.0-or-later
"""SRQs, memory windows, regions and multicast groups. Most tests run
rdma_objects in one guest, whose queue pairs are connected to each other."""
from lab.pair import queues
from lab.programs import run_case
from lab.runner import Skip, slow

SECONDS = 25


def test_a_queue_pair_takes_wide_values(bench):
    run_case(bench, 'values-wide')


def test_a_queue_pair_refuses_values_and_the_kernel_is_silent(bench):
    bench.one.must('dmesg --clear')
    run_case(bench, 'values-refused')
    assert 'rdma' not in bench.one.must('dmesg')


def test_values_without_a_meaning_are_ignored(bench):
    run_case(bench, 'values-ignored')


def test_a_queue_pair_reports_the_inline_data_that_its_slots_hold(bench):
    run_case(bench, 'caps')


def test_completions_that_no_queue_pair_can_have_are_dropped(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe writes no completions from outside the guest')
    if queues():
        raise Skip('the kernel polls CQs that have virtqueues')
    run_case(bench, 'cq-foreign-completion')
    run_case(bench, 'cq-receive-of-srq')


def test_an_srq_serves_several_queue_pairs(bench):
    run_case(bench, 'srq-shared')


def test_an_srq_holds_as_many_receives_as_it_has_room_for(bench):
    run_case(bench, 'srq-full')


def test_an_srq_reports_once_that_its_limit_is_reached(bench):
    run_case(bench, 'srq-limit')


def test_an_srq_gets_back_what_a_destroyed_queue_pair_held(bench):
    run_case(bench, 'srq-destroy-qp')


def test_an_srq_gets_back_what_a_reset_queue_pair_held(bench):
    run_case(bench, 'srq-reset-qp')


def test_a_queue_pair_in_error_takes_no_more_of_its_srq(bench):
    run_case(bench, 'srq-last-wqe')


def test_an_srq_in_use_is_not_destroyed(bench):
    run_case(bench, 'srq-in-use')


def test_an_srq_takes_datagrams(bench):
    run_case(bench, 'srq-datagrams')


def test_an_srq_is_deeper_than_a_virtqueue(bench):
    if queues():
        raise Skip('an SRQ has a virtqueue')
    run_case(bench, 'srq-deep')
    run_case(bench, 'srq-deep-list')


def test_the_limit_of_a_deep_srq_counts_all_receives(bench):
    if queues():
        raise Skip('an SRQ has a virtqueue')
    run_case(bench, 'srq-deep-limit')


def test_an_srq_serves_programs_in_two_guests(bench):
    result = bench.exchange('ibv_srq_pingpong -c -q 4 -n 100',
                            'ibv_srq_pingpong -c -q 4 -n 100')
    for side in (result.client, result.server):
        assert '100 iters in' in side.out, str(result)
        assert 'invalid' not in side.out, str(result)
    bench.exchange('ib_send_bw --use-srq -q 4 -s 4096 -n 200',
                   'ib_send_bw --use-srq -q 4 -s 4096 -n 200',
                   form='-F -d {} -x {}')


def test_a_window_of_type_1_moves_from_bind_to_bind(bench):
    run_case(bench, 'mw-type-1')


def test_a_window_of_type_2_is_invalidated_by_either_side(bench):
    run_case(bench, 'mw-type-2')


def test_a_window_of_type_2_is_for_one_queue_pair(bench):
    run_case(bench, 'mw-belongs-to-qp')


def test_a_window_holds_its_region(bench):
    run_case(bench, 'mw-holds-region')


@slow
def test_a_region_of_five_gibibytes(bench):
    run_case(bench, 'mr-large 5120')


def test_regions_of_odd_sizes_at_odd_addresses(bench):
    run_case(bench, 'mr-iova')


def test_a_region_changes_rights_domain_and_place(bench):
    run_case(bench, 'mr-rereg')


def test_a_region_for_reading_becomes_one_for_writing(bench):
    run_case(bench, 'mr-rereg-read-only')


def test_objects_keep_the_contexts_of_a_program(bench):
    run_case(bench, 'contexts')


def test_queue_pairs_come_and_go_while_one_waits_for_its_events(bench):
    run_case(bench, 'event-unacknowledged')


@slow
def test_a_number_is_used_again_while_its_queue_pair_waits(bench):
    run_case(bench, 'event-unacknowledged all')


def test_a_datagram_names_its_sender(bench):
    run_case(bench, 'ah-from-wc')


def test_a_process_has_neither_qp_1_nor_privileged_qkeys(bench):
    run_case(bench, 'rights-of-the-kernel')
    run_case(bench, 'ah-from-wc', 6)


def test_multicast_reaches_all_members_of_the_device(bench):
    run_case(bench, 'mcast-loopback ff15::1:2:3', 6)
    run_case(bench, 'mcast-loopback ::ffff:239.1.2.3')


def test_multicast_spares_a_queue_pair_that_blocks_its_copies(bench):
    run_case(bench, 'mcast-block ff15::1:2:3', 6)


def test_multicast_ends_with_the_membership(bench):
    run_case(bench, 'mcast-detach ff15::1:2:3', 6)
