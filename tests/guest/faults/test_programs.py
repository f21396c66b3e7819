# SPDX-License-Identifier: GPL-2.0-or-later
"""perftest and rdma_verify in guest 1, whose adapter has faults: the programs
report errors with their status, and survive faults that pass."""
import re

from guestkit.adapter import address
from lab.faults import fault
from lab.programs import exchange

SECONDS = 120
LATE = 400                      # ms

# How ib_write_bw reports the status; None: it succeeds
PERFTEST = (
    ('completion-error', {'after': 100, 'status': 'retry-exc-err'},
     r'Failed status 12\b'),
    ('completion-error', {'after': 100, 'status': 'fatal-err'},
     r'Failed status 19\b'),
    ('local-access', {'after': 100}, r'Failed status 4\b'),
    ('remote-access', {'after': 100}, r'Failed status 10\b'),
    ('qp-fatal', {'after': 100}, r'Failed status 5\b'),
    ('qp-stuck', {'after': 100, 'duration': LATE}, None),
    # ib_write_bw asks for one completion for a hundred writes.
    ('completion-delay', {'after': 20, 'delay': LATE}, None),
)
# The status that rdma_verify reports
VERIFY = (
    ('completion-error', {'after': 20, 'status': 'rnr-retry-exc-err'},
     r'RNR'),
    ('local-access', {'after': 5}, r'local protection'),
    ('remote-access', {'after': 5}, r'remote access'),
    ('remote-access', {'opcode': 'comp-swap'}, r'remote access'),
    ('remote-access', {'opcode': 'fetch-add'}, r'remote access'),
    ('qp-fatal', {'after': 20}, r'[Ff]lush'),
    ('qp-stuck', {'after': 20, 'duration': LATE}, None),
    ('completion-delay', {'after': 20, 'delay': LATE}, None),
    ('completion-reorder', {'after': 20, 'delay': LATE}, None),
    ('completion-error', {'opcode': 'recv', 'after': 8,
                          'status': 'loc-len-err'},
     # of the receive, or of a send that was flushed because of it
     r'length|[Ff]lush'),
)


def write_bw(bench, timeout=20):
    command = 'ib_write_bw -F -s 4096 -n 5000 '
    return exchange(
        bench.two, bench.one, command + bench.where(bench.two, '-d {} -x {}'),
        f'{command}{bench.where(bench.one, "-d {} -x {}")} {address(2)}',
        timeout=timeout)


def verify(bench):
    return exchange(bench.two, bench.one,
                    *bench.verify_commands('-s 4096 -n 32 -r 2 -V'))


def check(bench, program, kind, arguments, text):
    with fault(bench.one, kind, **arguments) as made:
        result = program(bench)
        assert made.hits == 1, f'{made.info}\n{result}'
    if text is None:
        assert result.ok, f'{kind}: {result}'
    else:
        assert not result.client.ok, f'{kind}: {result}'
        assert re.search(text, result.client.out), f'{kind}: {result}'
    bench.note(f'{kind} {arguments}: ' +
               (result.client.out.strip().splitlines()[-1]
                if text else 'ended well'))


def test_perftest(bench):
    for kind, arguments, text in PERFTEST:
        check(bench, write_bw, kind, arguments, text)
    assert write_bw(bench).ok


def test_perftest_waits_for_an_overrun_queue_for_ever(bench):
    """perftest polls for completions, and ignores asynchronous events."""
    with fault(bench.one, 'cq-overrun', after=20) as made:
        result = write_bw(bench, timeout=8)
        assert made.hits == 1, f'{made.info}\n{result}'
    assert result.client.rc is None, str(result)


def test_rdma_verify(bench):
    for kind, arguments, text in VERIFY:
        check(bench, verify, kind, arguments, text)
    assert verify(bench).ok


def test_a_queue_pair_that_cannot_be_made(bench):
    before = bench.resources()
    with fault(bench.one, 'command-error', command='create-qp',
               status='nomem'):
        result = write_bw(bench)
    assert not result.client.ok, str(result)
    bench.note(result.client.out.strip().splitlines()[-1])
    bench.nothing_left(before)


def test_commands_that_take_long(bench):
    with fault(bench.one, 'command-delay', command='modify-qp', delay=LATE,
               times=0) as made:
        bench.verify('-s 4096 -n 32 -r 1 -V')
        assert made.hits >= 3, made.info


def test_a_port_that_is_down_for_a_moment(bench):
    client = f'{bench.device(bench.one)}/1'
    with fault(bench.one, 'port-down', duration=LATE):
        bench.one.must('for i in $(seq 100); do rdma link show '
                       f'{client} | grep -q "state DOWN" && exit 0; done; '
                       'exit 1')
        bench.one.must('for i in $(seq 100); do rdma link show '
                       f'{client} | grep -q "state ACTIVE" && exit 0; '
                       'sleep 0.1; done; exit 1')
    bench.verify('-s 4096 -n 32 -r 1 -V')


def test_the_same_seed_fails_the_same_work(bench):
    """The same number of messages passes before the error in each run."""
    def passed(seed):
        with fault(bench.one, 'completion-error', opcode='rdma-write',
                   status='rem-op-err', probability=0.02, seed=seed) as made:
            write_bw(bench)
            return made.info['matches']
    first = passed(3)
    assert passed(3) == first
    assert len({first, passed(4), passed(5)}) > 1
