# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's monitor reports the same about the adapter as the guest sees."""
import json
import time

from guestkit.adapter import address
from lab.pair import queues
from lab.programs import build_self_qp
from lab.runner import Skip

SECONDS = 60
FEW, MANY = 12, 1000
MESSAGES = 40000
FOR_LONG = 100000000
TIMEOUT = 120
RATE_TIMEOUT = 300
GO = '/tmp/go'
# Counters that a guest does not have for queue pairs
HOST_ONLY = {'timeouts-late'}


def only_ours(bench):
    if bench.stack == 'rxe':
        raise Skip('QEMU has no information about rxe')


def query(bench, *objects, **arguments):
    """Return the answer of query-rdma for guest 1's adapter."""
    found = bench.one.qmp('query-rdma', **arguments,
                          **({'objects': objects} if objects else {}))
    assert len(found) == 1, found
    return found[0]


class QueuePairs:
    """A number of queue pairs, each connected to itself, first idle and then
    writing."""

    def __init__(self, bench, count, messages):
        self.bench, self.vm = bench, bench.one
        binary = build_self_qp('qp_rates')
        self.vm.must(f'rm -f {GO}; mkfifo {GO}')
        where = bench.where(bench.one, '-d {} -g {}')
        self.job = self.vm.spawn(
            f'exec {binary} {where} -n {messages} -a 100 {count} <>{GO}')

    def __enter__(self):
        self.job.wait_for('none')
        self.go()
        self.job.wait_for('idle', timeout=TIMEOUT)
        return self

    def go(self):
        self.vm.must(f'echo > {GO}')

    def rate(self):
        """Wait until the program prints its rate. If completions stop, fail
        with the queue pairs whose sends wait."""
        end = time.monotonic() + RATE_TIMEOUT
        while 'rate' not in (said := self.job.peek().out):
            assert 'stuck' not in said and time.monotonic() < end, (
                said, [qp for qp in query(self.bench, 'qp',
                                              detail=True)['qps']
                       if qp.get('sends') or qp.get('sends-waiting')])
            time.sleep(0.1)

    def __exit__(self, *_):
        self.job.kill()
        self.job.wait(10)


def resources(bench, kind):
    """Return what "rdma resource show" lists for guest 1's adapter."""
    device = bench.device(bench.one)
    where = f'link {device}/1' if kind == 'qp' else f'dev {device}'
    return json.loads(bench.one.must(f'rdma -j -d resource show {kind} '
                                     f'{where}') or '[]')


def test_queue_pairs_are_those_that_the_guest_sees(bench):
    only_ours(bench)
    with QueuePairs(bench, FEW, 1000):
        seen = {qp['lqpn']: qp for qp in resources(bench, 'qp')}
        told = {qp['qpn']: qp for qp in query(bench, 'qp')['qps']}
        assert seen.keys() == told.keys() and len(told) >= FEW, (seen, told)
        for number, qp in seen.items():
            assert qp['type'].lower() == told[number]['type'], (qp, told)
            assert qp['state'].lower() == told[number]['state'], (qp, told)
            assert qp['sq-psn'] == told[number]['sq-psn'], (qp, told)
            if qp['type'] == 'RC':
                assert qp['rqpn'] == told[number]['dest-qpn'], (qp, told)
                assert qp['rq-psn'] == told[number]['rq-psn'], (qp, told)
                one = query(bench, device=name_of(bench), qpn=number)
                assert 'detail' in one['qps'][0], one


def name_of(bench):
    """Return the name of guest 1's adapter for query-rdma."""
    found = query(bench)
    return found.get('device', found['path'])


def test_regions_and_queues_are_those_that_the_guest_sees(bench):
    only_ours(bench)
    with QueuePairs(bench, FEW, 1000):
        told = query(bench, 'pd', 'cq', 'mr', 'srq')
        regions = {(mr['lkey'], mr['rkey'], mr['length'])
                   for mr in told['mrs'] if mr['valid']}
        seen = [mr for mr in resources(bench, 'mr') if 'pid' in mr]
        assert seen, told
        for mr in seen:
            # The tool writes keys in hexadecimal, without a prefix.
            keys = int(mr['lkey'], 16), int(mr['rkey'], 16)
            assert (*keys, mr['mrlen']) in regions, (mr, told)
        # The RDMA core creates PDs and CQs of its own, and lists them.
        seen = sorted(cq['cqe'] for cq in resources(bench, 'cq'))
        queues = sorted(cq['cqe'] for cq in told['cqs']
                        if not cq['event-queue'])
        assert seen == queues, (seen, queues)
        assert len(resources(bench, 'pd')) == len(told['pds']), told
        assert told['count']['qp']['used'] == len(resources(bench, 'qp'))


def numbers(ranges):
    """Return the numbers in a list of the rdma tool such as ["2-4", "7"]."""
    ends = [text.split('-') for text in ranges]
    return [n for end in ends
            for n in range(int(end[0]), int(end[-1]) + 1)]


def test_shared_receive_queues_are_those_that_the_guest_sees(bench):
    only_ours(bench)
    assert not query(bench, 'srq')['srqs']
    # The server waits with an SRQ and its queue pairs, as no client connects
    job = bench.one.spawn(
        bench.where(bench.one, 'exec ibv_srq_pingpong -r 37 -q 3 -d {} -g {}'),
        18515)
    try:
        told = query(bench, 'srq', 'qp')
        seen = resources(bench, 'srq')
        assert len(seen) == len(told['srqs']) == 1, (seen, told)
        assert told['srqs'][0]['max-wr'] >= 37, told
        assert told['srqs'][0]['users'] == 3, told
        # Linux lists for each SRQ the numbers of the queue pairs that use it
        assert [qp['qpn'] for qp in told['qps'] if 'srqn' in qp] == \
            numbers(seen[0]['lqpn']), (seen, told)
    finally:
        job.kill()
        job.wait(10)


def test_counters_are_those_that_the_guest_sees(bench):
    only_ours(bench)
    bench.verify('-q 1 -s 4096 -n 64')
    device = bench.device(bench.one)
    # Answers to MADs may still arrive; and the RDMA core refreshes values at
    # most every 10 ms.
    for _ in range(5):
        time.sleep(0.1)
        before = query(bench)['counters']
        seen = json.loads(bench.one.must(
            f'rdma -j statistic show link {device}/1'))[0]
        told = query(bench)['counters']
        if told == before:
            break
    assert told['tx-packets'] >= 64, told
    for name, value in told.items():
        assert seen[name.replace('-', '_')] == value, (name, seen, told)


def test_an_error_is_reported(bench):
    only_ours(bench)
    before = query(bench)
    # The server ends during the transfer, so the client's retries run out.
    run = 'exec ib_write_bw -F -s 4096 -D 100 '
    server = bench.two.spawn(run + bench.where(bench.two, '-d {} -x {}'),
                             18515)
    client = bench.one.spawn(run + bench.where(bench.one, '-d {} -x {} ') +
                             address(2))
    try:
        end = time.monotonic() + TIMEOUT
        sent = before['counters']['tx-packets'] + 100
        while query(bench)['counters']['tx-packets'] < sent:
            assert time.monotonic() < end, client.peek().out
            time.sleep(0.1)
        server.kill()
        data = {'qp-errors': 0}
        while data['qp-errors'] <= before['qp-errors']:
            # Earlier events belong to other tests.
            data = bench.one.qmp_channel.event('RDMA_QP_ERROR',
                                               TIMEOUT)['data']
        assert data['error']['status'] == 'retry-exc-err', data
        assert data['error']['opcode'] == 'rdma-write', data
        after = query(bench)
        assert after['path'] == data['path'], (after, data)
        assert after['qp-errors'] >= data['qp-errors'], (after, data)
    finally:
        for job in (server, client):
            job.kill()
            job.wait(10)


def test_a_thousand_queue_pairs_are_listed_while_they_write(bench):
    only_ours(bench)
    if queues():
        raise Skip('there are virtqueues only for 126 queue pairs')
    with QueuePairs(bench, MANY, MESSAGES) as pairs:
        times = []
        while len(times) < 20:
            began = time.monotonic()
            told = query(bench, 'qp')['qps']
            took = (time.monotonic() - began) * 1e3
            if sum(qp['type'] == 'rc' for qp in told) < MANY:
                break  # The queue pairs have finished.
            assert all(qp['state'] == 'rts' for qp in told), told
            if not times:
                pairs.go()
            times.append(took)
        times.sort()
        bench.note(f'{len(times)} answers, median '
                   f'{times[len(times) // 2]:.1f} ms, most {times[-1]:.1f} ms')
        pairs.rate()


class Statistic:
    """Counters to which the guest's kernel binds new queue pairs by their
    type."""

    def __init__(self, bench):
        self.bench, self.vm = bench, bench.one
        self.link = f'link {bench.device(bench.one)}/1'

    def __enter__(self):
        self.vm.must(f'rdma statistic qp set {self.link} auto type on')
        return self

    def __exit__(self, *_):
        self.vm.must(f'rdma statistic qp set {self.link} auto off')

    def shown(self):
        """Return the counters, each with the queue pairs that are bound to
        it."""
        return json.loads(self.vm.must(
            f'rdma -j statistic qp show {self.link}') or '[]')

    def port(self):
        return json.loads(self.vm.must(
            f'rdma -j statistic show {self.link}'))[0]

    def told(self, numbers):
        """Return the sum of query-rdma's counters of the queue pairs."""
        sums = {}
        for qp in query(self.bench, 'qp', detail=True)['qps']:
            if qp['qpn'] in numbers:
                for name, value in qp['detail']['stats'].items():
                    if name not in HOST_ONLY:
                        name = name.replace('-', '_')
                        sums[name] = sums.get(name, 0) + value
        return sums


def test_counters_of_queue_pairs_are_those_that_the_host_sees(bench):
    only_ours(bench)
    run = 'exec ib_write_bw -F -q 4 -s 4096 -D 100 '
    with Statistic(bench) as statistic:
        server = bench.two.spawn(run + bench.where(bench.two, '-d {} -x {}'),
                                 18515)
        client = bench.one.spawn(
            run + bench.where(bench.one, '-d {} -x {} ') + address(2))
        try:
            end = time.monotonic() + TIMEOUT
            while not (found := statistic.shown()) or \
                    found[0]['tx_packets'] < 1000:
                assert time.monotonic() < end, (found, client.peek().out)
                time.sleep(0.1)
            numbers = found[0]['lqpn']
            assert found[0]['qp-type'] == 'RC' and len(numbers) == 4, found
            # All of the queue pairs continue meanwhile.
            before = statistic.told(numbers)
            seen = statistic.shown()[0]
            after = statistic.told(numbers)
            for name, value in before.items():
                assert value <= seen[name] <= after[name], (
                    name, before, seen, after)
            assert seen['rx_packets'] > 0 and before.keys() <= seen.keys(), \
                seen
            assert 'rx_icrc_errors' not in seen, seen
            # The port's counters include those of bound queue pairs.
            before = query(bench)['counters']
            port = statistic.port()
            after = query(bench)['counters']
            for name, value in before.items():
                seen = port[name.replace('-', '_')]
                assert value <= seen <= after[name], (name, before, port)
        finally:
            for job in (client, server):
                job.kill()
                job.wait(10)
        assert not statistic.shown()
    same_at_rest(bench, statistic)


def same_at_rest(bench, statistic):
    """Compare counters of the port when no packets move any more."""
    for _ in range(20):
        before = query(bench)['counters']
        port = statistic.port()
        if query(bench)['counters'] == before:
            break
        time.sleep(0.1)
    for name, value in before.items():
        assert port[name.replace('-', '_')] == value, (name, before, port)


def test_a_queue_pair_counts_while_it_is_bound(bench):
    only_ours(bench)
    with QueuePairs(bench, FEW, FOR_LONG) as pairs:
        statistic = Statistic(bench)
        vm, link = statistic.vm, statistic.link
        number = next(qp['lqpn'] for qp in resources(bench, 'qp')
                      if qp['type'] == 'RC')
        vm.must(f'rdma statistic qp bind {link} lqpn {number}')
        pairs.go()
        end = time.monotonic() + TIMEOUT
        while not statistic.shown()[0]['loopback_packets']:
            assert time.monotonic() < end, pairs.job.peek().out
            time.sleep(0.1)
        before = statistic.told([number])
        seen = statistic.shown()
        after = statistic.told([number])
        assert [one['lqpn'] for one in seen] == [[number]], seen
        for name, value in before.items():
            assert value <= seen[0][name] <= after[name], (name, before, seen)
        vm.must(f'rdma statistic qp unbind {link} '
                f'cntn {seen[0]["cntn"]} lqpn {number}')
        assert not statistic.shown()
    same_at_rest(bench, statistic)
