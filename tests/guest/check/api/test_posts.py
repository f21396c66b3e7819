# SPDX-License-Identifier: GPL-2.0-or-later
"""All of rdma_post_*() and rdma_get_*_comp() of librdmacm, with rdma_posts."""
from guestkit.adapter import address
from lab.programs import build_posts, exchange

GUESTS = {'smp': 2}
SECONDS = 25


def run(bench, case, family=4, fault='none'):
    """Run a case of rdma_posts in both guests. The client may inject a
    fault."""
    program = f'{build_posts()} -a {address(2, family)}'
    return exchange(bench.two, bench.one, f'{program} -s {case}',
                    f'{program} -f {fault} {case}')


def works(bench, case, families=(4,)):
    for family in families:
        result = run(bench, case, family)
        for side in (result.client, result.server):
            assert side.ok and side.out.endswith(f'{case}: fine\n'), \
                str(result)


def notices(bench, fault, case, text):
    """A run with a fault must fail, and name the fault."""
    result = run(bench, case, fault=fault)
    assert not result.client.ok and not result.server.ok, str(result)
    assert text in result.client.out + result.server.out, str(result)


def test_messages_of_all_lengths(bench):
    works(bench, 'messages', (4, 6))


def test_messages_of_three_pieces(bench):
    works(bench, 'vectors')


def test_messages_into_a_shared_receive_queue(bench):
    works(bench, 'srq')


def test_read_and_write(bench):
    works(bench, 'read-write')


def test_read_and_write_of_three_pieces(bench):
    works(bench, 'read-write-vectors')


def test_inline_data_needs_no_region(bench):
    works(bench, 'inline')


def test_unsignalled_requests_have_no_completion(bench):
    works(bench, 'unsignalled')


def test_a_queue_pair_may_signal_all(bench):
    works(bench, 'signal-all')


def test_datagrams(bench):
    works(bench, 'ud', (4, 6))


def test_datagrams_with_inline_data(bench):
    works(bench, 'ud-inline')


def test_unsignalled_datagrams(bench):
    works(bench, 'ud-unsignalled')


def test_without_region_or_inline(bench):
    works(bench, 'without-region')
    works(bench, 'ud-without-region')


def test_wrong_remote_key(bench):
    works(bench, 'wrong-key')


def test_beyond_the_remote_region(bench):
    works(bench, 'wrong-place')


def test_wrong_local_key(bench):
    works(bench, 'wrong-local-key')


def test_message_longer_than_its_receive(bench):
    works(bench, 'long-message')


def test_message_without_a_receive(bench):
    works(bench, 'no-receive')


def test_too_many_pieces(bench):
    works(bench, 'many-sges')


def test_too_much_inline_data(bench):
    works(bench, 'long-inline')


def test_full_receive_queue(bench):
    works(bench, 'full-queue')


def test_the_program_notices_what_is_wrong(bench):
    notices(bench, 'byte', 'messages', 'what was received: byte')
    notices(bench, 'length', 'messages', '1023 bytes')
    notices(bench, 'context', 'messages', 'completion of context')
    notices(bench, 'opcode', 'read-write', 'opcode 2, not 1')
    notices(bench, 'signal', 'unsignalled', 'completion of context')
