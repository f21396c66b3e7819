# SPDX-License-Identifier: GPL-2.0-or-later
"""The page about vrdma-lab is true: its program runs as it is shown, by the
last command of its CI jobs (all of them: make check-ci-jobs). Also what the
command says where it cannot boot guests."""
import os
import subprocess

from guestkit.paths import TOP
from lab.pages import listing
from lab.userlab import UserBench, UserLab

GUESTS = {'guests': 0}
PAIR, BENCH = UserLab, UserBench
SECONDS = 20
PAGE = 'virtio-rdma-lab'
JOB = 'PATH=$PWD/virtio-rdma/tools/lab:$PATH ./test.sh'


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


def test_up_says_what_qemu_has_said(bench):
    done = bench.lab.fails('up', '1', '--qemu=-device', '--qemu=nonsense')
    assert 'did not come up' in done.err and 'nonsense' in done.err, str(done)
    assert bench.lab.status() is None
