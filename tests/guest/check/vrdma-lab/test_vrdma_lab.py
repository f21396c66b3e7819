# SPDX-License-Identifier: GPL-2.0-or-later
"""The command vrdma-lab, with three guests."""
import json
import os
import signal
import subprocess
import time

from guestkit.adapter import address
from lab.capture import summary
from lab.runner import Skip, ends_guests, slow
from lab.userlab import (UserBench, UserLab, all_end, check_modprobe,
                         check_privileges, exchange)

PAIR, BENCH = UserLab, UserBench
SECONDS = 90
REFUSED = 'Connection refused'
# An address gets its GID after a short time.
MOVE = """
cd /sys/class/infiniband/$VRDMA_DEVICE/ports/1/gids
ip addr del 10.0.0.3/24 dev eth0
while grep -q :ffff:0a00:0003 *; do sleep 0.1; done
for other; do
    ip addr add $other/24 dev eth0
    until grep -q :ffff:0a09: *; do sleep 0.1; done
done
ip addr add 10.0.0.3/24 dev eth0
until grep -q :ffff:0a00:0003 *; do sleep 0.1; done
"""


def knock(guest, seconds=30):
    """Return a command that ends once a guest has answered. No program listens
    on the port, so the answer is a refusal."""
    return ['timeout', str(seconds), 'bash', '-c',
            f'exec 3<>/dev/tcp/{guest}/7']


def test_up_again_is_refused_and_says_what_to_do(bench):
    done = bench.lab.fails('up', '2')
    assert 'is up already' in done.err and '--name' in done.err, str(done)


def test_each_guest_runs_the_command_where_it_was_called(bench):
    done = bench.lab.call('run', '--', 'sh', '-c',
                          'echo $VRDMA_GUEST of $VRDMA_GUESTS: '
                          '$(hostname), $VRDMA_ADDRESS, $PWD')
    expected = [f'[{i}] {i} of 3: guest{i}, {address(i)}, {bench.lab.work}'
                for i in (1, 2, 3)]
    assert sorted(done.out.splitlines()) == expected, str(done)


def test_guests_see_the_adapter_and_its_gid(bench):
    script = 'ibv_devinfo -d $VRDMA_DEVICE | grep -q PORT_ACTIVE && cat ' \
        '/sys/class/infiniband/$VRDMA_DEVICE/ports/1/gids/$VRDMA_GID'
    done = bench.lab.call('run', '-g', '3', '--', 'sh', '-c', script)
    assert done.out.strip().endswith(':ffff:0a00:0003'), str(done)


def test_the_first_exit_code_that_is_not_0_is_handed_back(bench):
    done = bench.lab.fails('run', '--', 'sh', '-c',
                           'exit $((VRDMA_GUEST == 1 ? 0 : VRDMA_GUEST + 4))')
    assert done.rc == 6, str(done)
    for text in ('guest 2: exit code 6', 'guest 3: exit code 7'):
        assert text in done.err, str(done)
    assert 'guest 1' not in done.err, str(done)


def test_chosen_guests_alone_run_the_command(bench):
    done = bench.lab.call('run', '-g', '1,3', '--', 'true')
    assert done.out == '', str(done)
    done = bench.lab.call('run', '-g', '1,3', '--', 'hostname')
    assert sorted(done.out.split('\n')) == ['', '[1] guest1', '[3] guest3']
    done = bench.lab.fails('run', '-g', '4', '--', 'hostname')
    assert 'no guest 4' in done.err and done.rc == 125, str(done)


def test_output_arrives_as_it_is_written(bench):
    process = bench.lab.begin('run', '-g', '2', '--', 'sh', '-c',
                              'echo first; until [ -e go ]; do sleep 0.2; '
                              'done; printf "\\303\\244 and no end of line"')
    assert process.stdout.readline() == 'first\n'
    (bench.lab.work / 'go').touch()
    out, err = process.communicate(timeout=60)
    assert (out, process.returncode) == ('ä and no end of line', 0), err


def test_the_directory_is_shared_both_ways(bench):
    lab = bench.lab
    lab.call('run', '--', 'sh', '-c', 'echo guest > from-$VRDMA_GUEST')
    for i in (1, 2, 3):
        text = (lab.work / f'from-{i}').read_text(encoding='ascii')
        assert text == 'guest\n', text
        (lab.work / f'from-{i}').write_text(f'host to {i}\n',
                                            encoding='ascii')
    done = lab.call('run', '-g', '2', '--', 'cat', 'from-1', 'from-2')
    assert done.out == 'host to 1\nhost to 2\n', str(done)


def test_a_directory_that_is_missing_is_reported(bench):
    done = bench.lab.fails('run', '-g', '1', '-C', '/nonexistent', '--',
                           'touch', 'x')
    assert done.rc == 125 and 'no directory /nonexistent' in done.err, \
        str(done)
    assert 'stay in the guests' not in done.err, str(done)


def test_standard_input_goes_to_each_guest(bench):
    lab = bench.lab
    text = ''.join(f'{i} \u00e4\n' for i in range(20000))
    done = lab.call('run', '-g', '1', '--', 'cat', text=text)
    assert done.out == text, done.out[:200] + done.err
    done = lab.call('run', '--', 'sh', '-c', 'read x; echo got $x',
                    text=text)
    assert sorted(done.out.splitlines()) == [
        f'[{i}] got 0 \u00e4' for i in (1, 2, 3)], str(done)
    # more than a pipe holds, and no one reads it
    assert lab.call('run', '-g', '1', '--', 'true', text=text).out == ''
    process = lab.begin('run', '-g', '2', '--', 'sh', '-c',
                        'read x; echo first $x; cat', stdin=subprocess.PIPE)
    process.stdin.write('one\n')
    process.stdin.flush()
    assert process.stdout.readline() == 'first one\n'
    out, err = process.communicate('two\n', timeout=60)
    assert (out, process.returncode) == ('two\n', 0), out + err


def test_options_of_the_program_need_no_separator(bench):
    (bench.lab.work / 'here').touch()
    done = bench.lab.call('run', '-g', '1', 'ls', '-1', 'here')
    assert done.out == 'here\n', str(done)


def test_guests_leave_no_privileges_in_the_directory(bench):
    check_privileges(bench.lab, 2)


def test_what_is_written_elsewhere_stays_in_the_guest(bench):
    name = f'/usr/local/vrdma-lab-test-{os.getpid()}'
    bench.lab.call('run', '-g', '1', '--', 'touch', name)
    assert not os.path.exists(name)
    done = bench.lab.call('run', '-g', '1', '-C', '/usr/local', '--',
                          'ls', name)
    assert 'stay in the guests' in done.err, str(done)


def test_a_command_that_takes_too_long_is_killed_and_reported(bench):
    done = bench.lab.fails('run', '-g', '2', '-t', '1', '--', 'sleep', '600')
    assert done.rc == 124 and 'no end after 1 s' in done.err, str(done)
    bench.lab.call('run', '-g', '2', '--', 'sh', '-c', '! pgrep -x sleep')


def test_a_caller_that_is_killed_takes_its_command_along(bench):
    process = bench.lab.begin('run', '-g', '2', '--', 'sh', '-c',
                              'echo began; exec sleep 600')
    assert process.stdout.readline() == 'began\n'
    process.kill()
    process.communicate()
    bench.lab.call('run', '-g', '2', '-t', '60', '--', 'sh', '-c',
                   'while pgrep -x sleep; do :; done')


def test_a_server_and_a_client_that_waits_for_it(bench):
    command = 'ib_write_bw -F -d $VRDMA_DEVICE -x $VRDMA_GID -n 200'
    out = exchange(bench.lab, 2, 3, 18515, command, command)
    assert 'BW average' in out, out


def test_a_client_fails_if_the_server_that_it_waits_for_fails(bench):
    lab = bench.lab
    client = lab.begin('run', '-g', '3', '--after', '2:18515', '--', 'true')
    server = lab.fails('run', '-g', '2', '--', 'sh', '-c', 'exit 3')
    err = client.communicate(timeout=100)[1]
    assert client.returncode == 125, err
    assert 'nothing listens on port 18515 of guest 2: its last command ' \
        "failed: sh -c 'exit 3': exit code 3" in err, err + str(server)


def test_the_gid_is_that_of_the_address_when_the_command_begins(bench):
    lab = bench.lab
    show = ('run', '-g', '3', '--', 'sh', '-c', 'echo $VRDMA_GID; cat '
            '/sys/class/infiniband/$VRDMA_DEVICE/ports/1/gids/$VRDMA_GID')

    def gid():
        """Return (index, GID) that the lab gives to a command."""
        index, value = lab.call(*show).out.split()
        assert value.endswith(':ffff:0a00:0003'), value
        return index

    def move(*others):
        """Remove the guest's address, and add it again after others."""
        lab.call('run', '-t', '60', '-g', '3', '--', 'sh', '-ec', MOVE, 'sh',
                 *others)
    before = gid()
    move('10.9.0.3')
    try:
        assert gid() != before
    finally:
        lab.call('run', '-g', '3', '--', 'ip', 'addr', 'del', '10.9.0.3/24',
                 'dev', 'eth0')
        move()


def test_the_driver_comes_back_by_modprobe(bench):
    check_modprobe(bench.lab, 3)


def test_main_loops_go_before_vcpus_where_that_is_permitted(bench):
    status = bench.lab.status()
    probe = subprocess.Popen(['sleep', '600'])
    try:
        os.sched_setscheduler(probe.pid, os.SCHED_RR, os.sched_param(1))
        permitted = True
    except PermissionError:
        permitted = False
    finally:
        probe.kill()
        probe.wait()
    assert status['preferred'] == permitted, status
    # The first process is the keeper.
    policies = [os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK
                for pid in status['processes'][1:]]
    expected = os.SCHED_RR if permitted else os.SCHED_OTHER
    assert policies == [expected] * 4, policies


def test_a_fault_strikes_a_program(bench):
    lab = bench.lab
    command = 'ib_write_bw -F -d $VRDMA_DEVICE -x $VRDMA_GID -n 200'
    lab.call('qmp', '3', 'rdma-fault-add', 'device=rdma0', 'id=f0',
             'kind=completion-error', 'opcode=rdma-write', 'after=10',
             'status=retry-exc-err')
    try:
        server = lab.begin('run', '-t', '60', '-g', '2', '--', 'sh', '-c',
                           command)
        done = lab.fails('run', '-t', '60', '-g', '3', '--after', '2:18515',
                         '--', 'sh', '-c', f'{command} guest2')
        server.communicate(timeout=100)
        assert 'Failed status 12' in done.out + done.err, str(done)
        found = json.loads(lab.call('qmp', '3', 'query-rdma-faults').out)
        assert [(f['fault']['id'], f['hits']) for f in found] == [('f0', 1)]
    finally:
        lab.call('qmp', '3', 'rdma-fault-remove', 'device=rdma0')
    assert json.loads(lab.call('qmp', '3', 'query-rdma-faults').out) == []


def test_qemu_reports_on_the_adapter_and_why_it_refuses(bench):
    lab = bench.lab
    found = json.loads(lab.call('qmp', '2', 'query-rdma').out)
    assert [device['device'] for device in found] == ['rdma0'], found
    done = lab.call('qmp', '2', 'human-monitor-command',
                    'command-line=info rdma')
    assert done.out.startswith('rdma0'), str(done)
    done = lab.fails('qmp', '2', 'rdma-fault-remove', 'device=none')
    assert "'none'" in done.err, str(done)
    done = lab.fails('qmp', '4', 'query-rdma')
    assert 'no guest 4' in done.err, str(done)


def test_a_shell_takes_input_and_hands_its_exit_code_back(bench):
    done = bench.lab.call('shell', '2', text='echo $((6 * 7))\nexit 5\n',
                          check=False)
    assert done.rc == 5 and '42' in done.out, str(done)


def test_a_shell_whose_caller_is_killed_ends(bench):
    process = bench.lab.begin('shell', '2', stdin=subprocess.PIPE)
    said = ''
    while '# ' not in said:
        said += process.stdout.read(1)
    done = bench.lab.call('shell', '2', text='exit 0\n', check=False)
    assert 'has a shell already' in done.err, str(done)
    process.kill()
    process.communicate()
    # At once, while the first shell still ends
    done = bench.lab.call('shell', '2', text='exit 0\n')
    assert 'exit' in done.out, str(done)
    bench.lab.call('run', '-g', '2', '-t', '60', '--', 'sh', '-c',
                   'while pgrep -t hvc0; do :; done')


def test_a_capture_has_roce_frames_of_all_guests(bench):
    lab, file = bench.lab, bench.lab.work / 'wire.pcap'
    lab.call('pcap', str(file))
    try:
        for server, client in ((1, 2), (2, 3)):
            process = lab.begin('run', '-t', '60', '-g', str(server), '--',
                                'rping', '-s', '-C', '2')
            lab.call('run', '-t', '60', '-g', str(client), '--after',
                     f'{server}:7174', '--', 'rping', '-c', '-C', '2', '-a',
                     address(server))
            process.communicate(timeout=60)
    finally:
        done = lab.call('pcap', 'off')
    assert f'{file}: {file.stat().st_size} bytes' in done.err, str(done)
    lines, malformed = summary(file)
    if malformed is None:
        raise Skip(lines[0])
    text = '\n'.join(lines)
    assert malformed == 0, text
    # 2 pairs, each with 2 pings of one READ and one WRITE; a frame may be
    # retransmitted, but not all of them
    for kind in ('RC RDMA Read Request', 'RC RDMA Write Only'):
        count = [int(line.split()[0]) for line in lines
                 if line.split(maxsplit=1)[1:] == [kind]]
        assert count and 4 <= count[0] < 8, f'not 4 of {kind} in\n{text}'


def test_frames_are_lost_on_the_way_to_a_guest_until_told_otherwise(bench):
    lab = bench.lab
    lab.call('impair', '-g', '2', 'loss=100%')
    done = lab.fails('run', '-g', '1', '--', *knock('guest2', 2))
    assert done.rc == 124, str(done)
    assert REFUSED in lab.call('run', '-g', '1', '--', *knock('guest3'),
                               check=False).out
    assert 'impaired: loss=100%' in lab.call('status').out
    lab.call('impair', 'off')
    done = lab.call('run', '-g', '1', '--', *knock('guest2'), check=False)
    assert REFUSED in done.out, str(done)
    assert 'impaired' not in lab.call('status').out


def test_frames_are_late(bench):
    bench.lab.call('impair', 'delay=300ms,rate=1gbit')
    try:
        began = time.monotonic()
        done = bench.lab.call('run', '-g', '1', '--', *knock('guest2'),
                              check=False)
        took = time.monotonic() - began
    finally:
        bench.lab.call('impair', 'off')
    assert REFUSED in done.out and took > 0.6, f'{took} s, {done}'


def test_a_console_is_followed_until_interrupted(bench):
    # A background process of a shell ignores interrupts
    process = bench.lab.begin(
        'console', '-f', '2', preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL))
    bench.lab.call('run', '-g', '2', '--', 'sh', '-c',
                   'echo "<1>followed indeed" > /dev/kmsg')
    while 'followed indeed' not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert 'followed indeed' in bench.lab.call('console', '2').out


@slow
def test_rdma_takes_shared_memory(bench):
    lab = bench.lab
    memory = ('--name', 'memory')
    lab.call(*memory, 'up', '2', '--wire', 'shm')
    try:
        assert ' by shared memory' in lab.call(*memory, 'status').out
        server = lab.begin(*memory, 'run', '-t', '60', '-g', '1', '--',
                           'rping', '-s', '-C', '9')
        lab.call(*memory, 'run', '-t', '60', '-g', '2', '--after', '1:7174',
                 '--', 'rping', '-c', '-C', '9', '-a', address(1))
        server.communicate(timeout=60)
        for way in ('tx', 'rx'):
            frames = lab.call(*memory, 'qmp', '2', 'qom-get',
                              'path=/objects/r0',
                              f'property=shm-{way}-frames').out
            # 9 pings, each with two messages and an RDMA operation
            assert int(frames) > 27, (way, frames)
    finally:
        lab.call(*memory, 'down')


@slow
def test_a_lab_of_another_name_is_beside_the_first(bench):
    lab = bench.lab
    other = ('--name', 'other')
    lab.call(*other, 'up', '1', '--share', '')
    try:
        lab.call('run', '-g', '1', '--', 'touch', 'mine')
        done = lab.call(*other, 'run', '--', 'sh', '-c',
                        'echo $VRDMA_GUESTS; touch not-mine')
        assert done.out == '1\n', str(done)
        assert 'stay in the guests' in done.err, str(done)
        found = lab.call('status').out
        assert 'default: 3 guests' in found and 'other: 1 guest,' in found
    finally:
        lab.call(*other, 'down')
    assert (lab.work / 'mine').exists()
    assert not (lab.work / 'not-mine').exists()
    assert 'other' not in lab.call('status').out


@ends_guests
def test_guests_that_end_are_reported_and_down_ends_the_others(bench):
    lab = bench.lab
    status = lab.status()
    done = lab.fails('run', '-g', '3', '--', 'sh', '-c',
                     'echo c > /proc/sysrq-trigger; sleep 60')
    assert done.rc == 125, str(done)
    for text in ('guest 3: its kernel panicked: sysrq triggered crash',
                 '--- guest3.console:', 'sysrq_handle_crash'):
        assert text in done.err, str(done)
    os.kill(status['guests'][1]['pid'], signal.SIGKILL)
    done = lab.fails('run', '--', 'hostname')
    assert done.rc == 125 and done.out == '[1] guest1\n', str(done)
    assert 'guest 2: QEMU was killed by SIGKILL' in done.err, str(done)
    assert lab.fails('status').out.count('GONE') == 2
    lab.call('down', '--logs', 'logs')
    left = all_end(status['processes'])
    assert not left, f'these processes are still there: {left}'
    assert (lab.work / 'logs' / 'guest3.console').stat().st_size
    assert not os.listdir(lab.home / 'vrdma-lab')
    for words in (['status'], ['run', '--', 'true'], ['down']):
        assert 'vrdma-lab up' in lab.fails(*words).err
