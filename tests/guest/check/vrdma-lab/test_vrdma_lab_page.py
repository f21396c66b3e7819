# SPDX-License-Identifier: GPL-2.0-or-later
"""The last command of the CI jobs on the page about vrdma-lab runs the page's
program; `make check SUITE=ci-jobs` runs whole jobs. Also: the errors of
"vrdma-lab up", and KVM with a QEMU that pretends to have it."""
import os
import subprocess
from unittest import mock

from guestkit import accel
from guestkit.paths import TOP, qemu_binary
from lab.pages import listing
from lab.runner import slow
from lab.userlab import UserBench, UserLab

GUESTS = {'guests': 0}
PAIR, BENCH = UserLab, UserBench
SECONDS = 40
PAGE = 'virtio-rdma-lab'
JOB = 'PATH=$PWD/virtio-rdma/tools/lab:$PATH ./test.sh'


@slow
def test_the_last_command_of_ci_jobs_runs_the_program(bench):
    lab = bench.lab
    for name in ('hello.c', 'test.sh'):
        (lab.work / name).write_text(listing(PAGE, name), encoding='utf-8')
    (lab.work / 'test.sh').chmod(0o755)
    os.symlink(TOP, lab.work / 'virtio-rdma')
    for name in ('.github/workflows/rdma.yml', '.gitlab-ci.yml'):
        assert JOB in listing(PAGE, name), f'{name} does not run the test'
    done = subprocess.run(
        ['sh', '-ec', JOB], cwd=lab.work, env=lab.environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=500,
        check=False)
    assert done.returncode == 0, done.stdout
    for text in ('hello from guest1', 'hello from guest2'):
        assert text in done.stdout, done.stdout
    assert (lab.work / 'lab-logs' / 'guest1.console').exists()
    assert lab.status() is None, 'the lab is still up'


def test_up_says_what_makes_what_is_missing(bench):
    lab = bench.lab
    nothing = lab.home / 'nothing'
    qemu = lab.environment['QEMU']
    for changes, words, text in (
            ({'QEMU': str(nothing)}, (), 'make'),
            ({'BUILD_DIR': str(nothing), 'QEMU': qemu}, (), 'make guest'),
            ({}, ('--kernel', '5.10'), 'make guest SERIES=5.10'),
            ({}, ('--share', 'missing'), 'no such directory'),
            ({}, ('--stack', 'rxe', '--wire', 'shm'), '--wire shm is for')):
        before = dict(lab.environment)
        lab.environment.update(changes)
        try:
            done = lab.fails('up', '2', *words)
        finally:
            lab.environment = before
        assert text in done.err and 'Traceback' not in done.err, str(done)
    assert lab.status() is None


def pretend(lab, name, first=''):
    """Make a QEMU whose KVM is TCG. Return its path. @first: commands"""
    path = lab.home / name
    path.write_text(f'''#!/bin/sh
{first}
for word; do
    [ "$word" != kvm ] || word=tcg,thread=multi
    set -- "$@" "$word"
    shift
done
exec {qemu_binary()} "$@"
''', encoding='ascii')
    path.chmod(0o755)
    return str(path)


def test_the_program_of_the_probe_ends_on_a_working_processor(bench):
    # TCG needs more time than KVM.
    qemu = pretend(bench.lab, 'tcg')
    with mock.patch.object(accel, 'PROBE_TIMEOUT', 120), \
            mock.patch.dict(os.environ, QEMU=qemu):
        assert accel.choose('auto').name == 'kvm', accel.probe()


def test_guests_have_kvm_where_it_works(bench):
    lab, before = bench.lab, dict(bench.lab.environment)
    lab.environment['QEMU'] = pretend(
        lab, 'kvm', f'case "$*" in *isa-debug-exit*) exit {accel.GOOD}; esac')
    try:
        done = lab.call('up', '1', '--logs', 'logs')
        assert 'accelerator: KVM, which works here' in done.out, str(done)
        words = (lab.work / 'logs' / 'guest1.cmdline').read_text()
        assert '-accel kvm ' in words and ' tsc' not in words, words
        assert lab.call('run', '--', 'hostname').out == 'guest1\n'
    finally:
        lab.call('down', check=False)
        lab.environment = before


def test_up_says_what_qemu_has_said(bench):
    done = bench.lab.fails('up', '1', '--qemu=-device', '--qemu=nonsense')
    assert 'did not come up' in done.err and 'nonsense' in done.err, str(done)
    assert bench.lab.status() is None
