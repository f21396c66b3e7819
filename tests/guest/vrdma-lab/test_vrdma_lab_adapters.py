# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab up --adapters 2: guests with two adapters, each on a network of
its own."""
import json
import shutil

from lab.capture import summary
from lab.pages import listing
from lab.runner import Skip
from lab.userlab import UserBench, UserLab

GUESTS = {'guests': 3, 'up': ('--adapters', '2')}
PAIR, BENCH = UserLab, UserBench
SECONDS = 90
PAGE = 'virtio-rdma-lab'
PORT = 7174
PINGS = 9


def ping(lab, number, server=2, client=3, **options):
    """Run rping between two guests over their adapters with this number."""
    name = f'guest{server}' + (f'.{number}' if number > 1 else '')
    process = lab.begin('run', '-t', '60', '-g', str(server), '--', 'sh', '-c',
                        f'rping -s -C {PINGS} -a $VRDMA_ADDRESS_{number}')
    try:
        return lab.call('run', '-t', '60', '-g', str(client), '--after',
                        f'{server}:{PORT}', '--', 'sh', '-c',
                        f'rping -c -C {PINGS} -a $(getent hosts {name} | '
                        'cut -d " " -f 1)', **options)
    finally:
        process.communicate(timeout=100)


def packets(lab, guest):
    """Return the number of packets that each adapter of a guest has sent."""
    found = json.loads(lab.call('qmp', str(guest), 'query-rdma').out)
    return {adapter['device']: adapter['counters']['tx-packets']
            for adapter in found}


def test_programs_find_each_adapter_and_its_address(bench):
    script = '''
        [ $VRDMA_ADAPTERS = 2 ]
        [ $VRDMA_DEVICE = $VRDMA_DEVICE_1 ]
        [ $VRDMA_GID = $VRDMA_GID_1 ]
        [ $VRDMA_ADDRESS = $VRDMA_ADDRESS_1 ]
        [ $VRDMA_DEVICE_1 != $VRDMA_DEVICE_2 ]
        for number in 1 2; do
            eval "device=\\$VRDMA_DEVICE_$number gid=\\$VRDMA_GID_$number"
            eval "echo $number: \\$VRDMA_ADDRESS_$number"
            cat /sys/class/infiniband/$device/ports/1/gids/$gid
        done'''
    done = bench.lab.call('run', '-g', '3', '--', 'sh', '-ec', script)
    base = '0000:0000:0000:0000:0000:ffff:0a00'
    assert done.out.splitlines() == [
        '1: 10.0.0.3', f'{base}:0003', '2: 10.0.1.3', f'{base}:0103'], \
        str(done)


def test_the_status_lists_each_adapter(bench):
    expected = [(f'{guest}.{number}', f'10.0.{number - 1}.{guest}')
                for guest in (1, 2, 3) for number in (1, 2)]
    rows = [line.split() for line in bench.lab.call('status').out.splitlines()]
    assert [(row[0], row[2]) for row in rows if ' GID ' in ' '.join(row)] == \
        expected, rows
    for guest in bench.lab.status()['guests']:
        names = [(adapter['number'], adapter['qmp'])
                 for adapter in guest['adapters']]
        assert names == [(1, 'rdma0'), (2, 'rdma1')], guest


def test_frames_take_the_network_of_their_adapter(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe has no counters in QEMU')
    for number, other in ((1, 2), (2, 1)):
        before = packets(bench.lab, 3)
        ping(bench.lab, number)
        after = packets(bench.lab, 3)
        sent = {name: after[name] - before[name] for name in after}
        assert sent[f'rdma{number - 1}'] >= 3 * PINGS, sent
        assert sent[f'rdma{other - 1}'] == 0, sent


def test_rates_of_all_adapters_are_shown(bench):
    if bench.stack == 'rxe':
        done = bench.lab.fails('top', '-n', '1')
        assert 'no guest has an adapter' in done.err, str(done)
        return
    process = bench.lab.begin('top', '-i', '30', '-n', '1')
    while process.poll() is None:
        ping(bench.lab, 2)
    out, err = process.communicate()
    assert process.returncode == 0, err
    rows = [line.split() for line in out.splitlines()[1:]]
    # Sent and received packets each second
    busy = {row[0]: (float(row[5]) > 0, float(row[6]) > 0) for row in rows}
    assert busy == {f'{guest}.{number}': (guest > 1 and number == 2,) * 2
                    for guest in (1, 2, 3) for number in (1, 2)}, out


def test_a_capture_has_the_frames_of_one_network(bench):
    lab, file = bench.lab, bench.lab.work / 'second.pcap'
    lab.call('pcap', '-a', '2', str(file))
    try:
        assert f'capturing to {file}' in lab.call('status').out
        ping(lab, 1)
        ping(lab, 2)
    finally:
        done = lab.call('pcap', 'off')
    assert f'{file}: {file.stat().st_size} bytes' in done.err, str(done)
    lines, malformed = summary(file)
    if malformed is None:
        raise Skip(lines[0])
    reads = [int(line.split()[0]) for line in lines
             if 'RDMA Read Request' in line]
    # A frame may be retransmitted, but not all of them.
    assert reads and PINGS <= reads[0] < 2 * PINGS, '\n'.join(lines)


def test_frames_are_lost_on_one_network(bench):
    lab = bench.lab
    lab.call('impair', '-g', '2', '-a', '2', 'loss=100%')
    try:
        found = [(guest['guest'], adapter['number'])
                 for guest in lab.status()['guests']
                 for adapter in guest['adapters'] if adapter['impaired']]
        assert found == [(2, 2)], found
        ping(lab, 1)
        done = lab.call('run', '-g', '3', '--', 'timeout', '2', 'bash', '-c',
                        'exec 3<>/dev/tcp/guest2.2/7', check=False)
        assert done.rc == 124, str(done)
    finally:
        lab.call('impair', 'off')
    ping(lab, 2)


def test_a_link_that_is_down_breaks_its_programs_alone(bench):
    lab = bench.lab
    state = 'cat /sys/class/infiniband/$VRDMA_DEVICE_%d/ports/1/state'
    lab.call('link', '3.2', 'down')
    try:
        down = [line.split()[0] for line in lab.call('status').out.splitlines()
                if 'LINK DOWN' in line]
        assert down == ['3.2'], down
        for number, found in ((1, 'ACTIVE'), (2, 'DOWN')):
            lab.call('run', '-g', '3', '-t', '60', '--', 'sh', '-c',
                     f'until {state % number} | grep {found}; do sleep 0.1; '
                     'done')
        ping(lab, 1)
        ping(lab, 2, server=1, client=2)
        done = lab.call('run', '-g', '3', '--', 'timeout', '2', 'bash', '-c',
                        'exec 3<>/dev/tcp/guest2.2/7', check=False)
        assert 'Connection refused' not in done.out, str(done)
    finally:
        lab.call('link', '3.2', 'up')
    assert 'LINK DOWN' not in lab.call('status').out
    ping(lab, 2)


def test_a_disk_with_two_paths_survives_the_loss_of_each(bench):
    if not shutil.which('nvme'):
        raise Skip('no nvme: install nvme-cli')
    lab = bench.lab
    for name in ('target.sh', 'host.sh'):
        (lab.work / name).write_text(listing(PAGE, name), encoding='ascii')
    lab.call('run', '-t', '120', '-g', '2', '--', 'sh', 'target.sh')
    lab.call('run', '-t', '120', '-g', '1', '--', 'sh', 'host.sh')
    try:
        for number in (1, 2):
            use_disk_without(lab, number)
    finally:
        lab.call('run', '-t', '60', '-g', '1', '--', 'nvme', 'disconnect',
                 '-n', 'disk')


def use_disk_without(lab, number):
    """Take down the link of guest 1's adapter while it writes to the disk.
    Require that both guests have all data, and that the path comes back."""
    marker = f'down-{number}'
    process = lab.begin('run', '-t', '300', '-g', '1', '--', 'sh', '-ec', f'''
        head -c 8M /dev/urandom > /run/data
        copy() {{ dd bs=64k count=128 status=none "$@"; }}
        echo began
        while [ ! -e {marker} ]; do
            copy if=/run/data of=/dev/nvme0n1 oflag=direct
        done
        while ! grep -qv live /sys/class/nvme/*/state; do sleep 0.1; done
        copy if=/run/data of=/dev/nvme0n1 oflag=direct
        sha256sum < /run/data
        copy if=/dev/nvme0n1 iflag=direct | sha256sum''')
    assert process.stdout.readline() == 'began\n'
    lab.call('link', f'1.{number}', 'down')
    try:
        (lab.work / marker).touch()
        out, err = process.communicate(timeout=400)
        assert process.returncode == 0, out + err
        # Not from the page cache, which the target does not update
        disk = lab.call('run', '-g', '2', '--', 'sh', '-c',
                        'dd if=/dev/ram0 bs=64k count=128 iflag=direct '
                        'status=none | sha256sum').out
        assert out == 2 * disk, f'{out}in guest 1, {disk}in guest 2'
    finally:
        lab.call('link', f'1.{number}', 'up')
    lab.call('run', '-t', '120', '-g', '1', '--', 'sh', '-c',
             'until [ "$(cat /sys/class/nvme/*/state | sort -u)" = live ]; '
             'do sleep 0.2; done')


def test_adapters_that_do_not_exist_are_named(bench):
    for number, words in (
            (3, ('pcap', '-a', '3', 'file')), (0, ('pcap', '-a', '0', 'file')),
            (3, ('impair', '-a', '3', 'loss=1%')),
            (0, ('impair', '-a', '0', 'loss=1%')),
            (3, ('link', '1.3', 'down')), (0, ('link', '1.0', 'up'))):
        done = bench.lab.fails(*words)
        assert f'no adapter {number}: each guest has 1 to 2' in done.err, \
            str(done)
    done = bench.lab.fails('link', '4.1', 'down')
    assert 'no guest 4: there are 1 to 3' in done.err, str(done)
    done = bench.lab.fails('pcap', 'off')
    assert 'no capture runs' in done.err, str(done)
