# SPDX-License-Identifier: GPL-2.0-or-later
"""The command vrdma-lab on two hosts: its guests are on one network."""
from guestkit.adapter import address
from lab.hostedlabs import HostedLabs, LabsBench

PAIR, BENCH = HostedLabs, LabsBench
SECONDS = 120


def test_guests_have_the_numbers_names_and_mtu_that_they_are_told(bench):
    for lab, numbers in ((bench.one, (1, 2)), (bench.two, (3, 4))):
        done = lab.call('run', '--', 'sh', '-c',
                        'echo $(hostname) $VRDMA_GUEST of $VRDMA_GUESTS, '
                        '$VRDMA_ADDRESS, $(ip -o link show eth0 | '
                        'grep -o "mtu [0-9]*")')
        wanted = [f'[{i}] guest{i} {i} of 4, {address(i)}, mtu 9000'
                  for i in numbers]
        assert sorted(done.out.splitlines()) == wanted, str(done)
        assert ', on br0, MTU 9000' in lab.call('status').out
    done = bench.two.fails('run', '-g', '1', '--', 'true')
    assert 'there are 3 to 4' in done.err, str(done)


def test_no_two_guests_have_one_mac_address(bench):
    addresses = []
    for lab in bench.pair.labs:
        done = lab.call('run', '--', 'cat', '/sys/class/net/eth0/address')
        addresses += [line.split()[1] for line in done.out.splitlines()]
    assert len(set(addresses)) == 4, addresses


def test_rdma_from_host_to_host(bench):
    command = 'ib_write_bw -F -d $VRDMA_DEVICE -x $VRDMA_GID -n 200 -u 17'
    server = bench.two.begin('run', '-t', '60', '-g', '4', '--', 'sh', '-c',
                             command)
    # --after does not see guests on another host.
    done = bench.one.call(
        'run', '-t', '60', '-g', '1', '--', 'sh', '-c',
        f'until {command} guest4; do sleep 1; done', check=False)
    out, err = server.communicate(timeout=60)
    assert done.rc == 0 and 'BW average' in done.out, f'{done}{out}{err}'
    assert server.returncode == 0, out + err


def test_rdma_cm_from_host_to_host(bench):
    server = bench.one.begin('run', '-t', '60', '-g', '2', '--', 'rping',
                             '-s', '-C', '20')
    bench.one.call('run', '-g', '1', '-t', '60', '--after', '2:7174', '--',
                   'true')
    bench.two.call('run', '-t', '60', '-g', '3', '--', 'rping', '-c', '-C',
                   '20', '-a', address(2))
    out, err = server.communicate(timeout=60)
    assert server.returncode == 0, out + err


def test_a_number_that_a_guest_of_the_other_host_has_is_refused(bench):
    done = bench.two.fails('--name', 'other', 'up', '1', '--bridge', 'br0')
    assert f'{address(1)} is taken' in done.err and '--first' in done.err, \
        str(done)
    assert 'other' not in bench.two.call('status').out


def test_guests_on_taps_that_were_made_for_them(bench):
    lab, host = bench.two, bench.pair.hosts[1]
    bench.pair.switch.add_tap(host, 'tap9')
    lab.call('--name', 'other', 'up', '1', '--tap', 'tap9', '--first', '9',
             '--share', '')
    try:
        done = lab.call('--name', 'other', 'run', '--', 'bash', '-c',
                        f': < /dev/tcp/{address(1)}/7', check=False)
        assert 'Connection refused' in done.out, str(done)
        done = lab.fails('--name', 'third', 'up', '1', '--tap', 'tap9',
                         '--first', '10')
        assert 'tap9: another guest uses it' in done.err, str(done)
    finally:
        lab.call('--name', 'other', 'down')


def test_what_cannot_be_on_a_bridge_is_refused(bench):
    for words, text in (
            (['--bridge', 'br1'], 'br1: No such device'),
            (['--bridge', 'eth0'], 'is not a bridge of Linux'),
            (['--bridge', 'br0', '--wire', 'shm'], '--wire shm'),
            (['--bridge', 'br0', '--first', '255'], 'at most 254'),
            (['--tap', 'tap9', '--tap', 'tap9'], 'once for each guest'),
            (['--first', '2'], '--bridge')):
        done = bench.one.fails('--name', 'other', 'up', '1', *words)
        assert text in done.err and 'Traceback' not in done.err, str(done)
    done = bench.one.fails('pcap', 'file.pcap')
    assert 'tcpdump -i br0' in done.err, str(done)


def test_frames_are_lost_on_the_way_to_a_guest_on_a_bridge(bench):
    def knock(seconds):
        """Wait until the guest refuses the connection: no program listens
        there."""
        return bench.one.call(
            'run', '-g', '1', '-t', str(seconds), '--', 'bash', '-c',
            f'until (: < /dev/tcp/{address(3)}/7) 2>&1 | grep refused; do '
            'sleep 0.2; done', check=False)
    bench.two.call('impair', '-g', '3', 'loss=100%')
    done = knock(3)
    assert done.rc == 124 and not done.out, str(done)
    bench.two.call('impair', 'off')
    done = knock(60)
    assert done.rc == 0, str(done)
