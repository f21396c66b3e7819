# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab with guests that boot from disk images: one guest from Debian 12,
and two guests from one image of Debian 13."""
from guestkit.disks import RELEASES
from lab.capture import summary
from lab.runner import Skip
from lab.testimages import PROGRAMS, ImageLab
from lab.userlab import (UserBench, check_modprobe, check_privileges,
                         check_rping, check_write_bw)

PAIR, BENCH = ImageLab, UserBench
GUESTS = {'suites': ('bookworm', 'trixie', 'trixie'),
          'up': ('--install', ','.join(PROGRAMS))}
SECONDS = 600
SERIES = {'bookworm': '6.1', 'trixie': '6.12'}


def suites():
    return enumerate(GUESTS['suites'], 1)


def run(bench, guest, script, **options):
    """Run a shell command in one guest."""
    return bench.lab.call('run', '-t', '120', '-g', str(guest), '--', 'sh',
                          '-c', script, **options)


def test_each_guest_has_the_system_and_the_kernel_of_its_image(bench):
    status = bench.lab.status()
    names = {suite: number for number, suite in RELEASES.items()}
    for index, suite in suites():
        out = run(bench, index, '. /etc/os-release; echo $ID $VERSION_ID; '
                  'uname -r; ps -o comm= -p 1; findmnt -n -o SOURCE /; '
                  'dpkg -S /boot/vmlinuz-$(uname -r)').out.splitlines()
        system, release, first, root, package = out
        assert system == f'debian {names[suite]}', out
        assert release.startswith(SERIES[suite] + '.'), out
        assert (first, root) == ('systemd', '/dev/vda1'), out
        assert package.startswith(f'linux-image-{release}:'), out
        told = status['guests'][index - 1]
        assert told['kernel'] == release, told
        assert told['image'] == str(bench.lab.images[index - 1]), told


def test_systemd_has_started_what_the_image_starts(bench):
    for index, _ in suites():
        out = run(bench, index, 'systemctl is-active multi-user.target '
                  'dbus.service; systemctl is-system-running || '
                  'systemctl --failed --plain --no-legend').out
        assert out.startswith('active\nactive\n'), out
        # The system gets keys from cloud-init, which does not run here.
        failed = [line for line in out.splitlines()[3:]
                  if not line.startswith('ssh')]
        assert not failed, out


def test_ib_write_bw_of_one_image_to_that_of_another(bench):
    for server, client in ((1, 2), (3, 1), (2, 3)):
        check_write_bw(bench.lab, server, client)


def test_rping_of_one_image_to_that_of_another(bench):
    for server, client in ((1, 3), (3, 2)):
        check_rping(bench.lab, server, client)


def test_programs_are_those_of_the_images_debian(bench):
    versions = [run(bench, index, 'ib_write_bw --version; dpkg-query -W '
                    "-f '${Version}' libibverbs1").out
                for index, _ in suites()]
    assert versions[1] == versions[2] != versions[0], versions


def test_exit_codes_are_handed_back(bench):
    done = bench.lab.fails('run', '--', 'sh', '-c',
                           'exit $((VRDMA_GUEST == 1 ? 0 : VRDMA_GUEST + 4))')
    assert done.rc == 6 and 'guest 3: exit code 7' in done.err, str(done)


def test_what_takes_too_long_is_killed(bench):
    done = bench.lab.fails('run', '-g', '2', '-t', '1', '--', 'sleep', '600')
    assert done.rc == 124 and 'no end after 1 s' in done.err, str(done)


def test_the_directory_is_shared_both_ways(bench):
    lab = bench.lab
    (lab.work / 'from-host').write_text('host\n', encoding='ascii')
    lab.call('run', '--', 'sh', '-c',
             'cat from-host > from-$VRDMA_GUEST; pwd >> from-$VRDMA_GUEST')
    for index, _ in suites():
        text = (lab.work / f'from-{index}').read_text(encoding='ascii')
        assert text == f'host\n{lab.work}\n', text


def test_guests_leave_no_privileges_in_the_directory(bench):
    check_privileges(bench.lab, 2)


def test_the_driver_comes_back_by_modprobe(bench):
    for index in (1, 2):
        check_modprobe(bench.lab, index)


def test_the_image_is_never_written(bench):
    before = [(p.stat().st_mtime_ns, p.stat().st_size)
              for p in bench.lab.images]
    run(bench, 2, 'head -c 50M /dev/urandom > /var/lib/mark; sync')
    run(bench, 3, '[ ! -e /var/lib/mark ]')
    assert before == [(p.stat().st_mtime_ns, p.stat().st_size)
                      for p in bench.lab.images]


def test_a_shell_has_the_terminal_for_itself(bench):
    for index in (1, 2):
        done = bench.lab.call('shell', str(index),
                              text='echo $((6 * 7)); tty\nexit 5\n',
                              check=False)
        assert done.rc == 5 and '42' in done.out and \
            '/dev/hvc0' in done.out, str(done)
        assert 'login:' not in done.out, str(done)


def test_the_console_has_what_the_kernel_says(bench):
    mark = 'vrdma-lab test'
    run(bench, 3, f'echo "<1>{mark}" > /dev/kmsg')
    done = bench.lab.call('console', '3')
    assert mark in done.out, str(done)


def test_addresses_are_those_of_the_lab_alone(bench):
    for index, _ in suites():
        out = run(bench, index, 'ip -o addr show dev eth0 scope global; '
                  'hostname').out
        assert len(out.splitlines()) == 3, out
        for text in (f'10.0.0.{index}/24', f'fd00::{index}/64',
                     f'guest{index}\n'):
            assert text in out, out


def test_frames_are_captured_and_lost(bench):
    lab, file = bench.lab, bench.lab.work / 'wire.pcap'
    lab.call('pcap', str(file))
    lab.call('impair', 'loss=5%,seed=1')
    try:
        check_rping(bench.lab, 2, 1, 50)
    finally:
        lab.call('impair', 'off')
        lab.call('pcap', 'off')
    lines, malformed = summary(file)
    if malformed is None:
        raise Skip(lines[0])
    assert malformed == 0 and 'RC RDMA Write Only' in '\n'.join(lines), lines
