# SPDX-License-Identifier: GPL-2.0-or-later
"""The command vrdma-lab, as users call it; replaces a Pair and a Bench. Its
labs are in a directory of their own."""
import json
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from guestkit import kernel
from guestkit.paths import BUILD, TOP, LabError, qemu_binary

COMMAND = TOP / 'tools' / 'lab' / 'vrdma-lab'


class Done:
    """The result of a call of the command."""

    def __init__(self, words, done):
        self.words, self.rc = words, done.returncode
        self.out, self.err = done.stdout, done.stderr

    def __str__(self):
        return f'$ vrdma-lab {" ".join(self.words)}\n{self.out}{self.err}' \
            f'[exit code {self.rc}]'


class UserLab:
    """A lab of some guests, or of none. The directory `work` is where the
    command is called, and so what the guests share. @host: one of lab.hosts
    that the command is called on; @up: more words for up."""

    def __init__(self, tag, rdma=True, guests=3, host=None, up=()):
        self.tag, self.guests, self.up = tag, guests, list(up)
        self.command = [*(host.enter if host else []), str(COMMAND)]
        self.stack = 'virtio-rdma' if rdma else 'rxe'
        self.vms = []       # the command owns the guests, not the runner
        # Short, as sockets are in it
        self.home = Path(tempfile.mkdtemp(prefix='vrdma-'))
        self.work = self.home / 'work'
        self.work.mkdir()
        self.environment = {
            **os.environ, 'XDG_RUNTIME_DIR': str(self.home),
            'BUILD_DIR': str(BUILD), 'QEMU': str(qemu_binary()),
            'PATH': f'{COMMAND.parent}:{os.environ["PATH"]}'}
        self.environment.pop('VRDMA_LAB', None)
        if kernel.DEFAULT:
            self.environment['GUEST_SERIES'] = kernel.DEFAULT

    def begin(self, *words, **options):
        """Start the command, and return the process."""
        return subprocess.Popen(
            [*self.command, *words], cwd=self.work, text=True,
            env=self.environment, stdin=options.pop('stdin', None) or
            subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options)

    def call(self, *words, text='', timeout=500, check=True):
        """Run the command to its end, and require success."""
        done = Done(words, subprocess.run(
            [*self.command, *words], cwd=self.work, text=True, input=text,
            env=self.environment, capture_output=True, timeout=timeout,
            check=False))
        if check and done.rc != 0:
            raise LabError(str(done))
        return done

    def fails(self, *words, **options):
        """Run the command, and require that it fails."""
        done = self.call(*words, check=False, **options)
        assert done.rc != 0, str(done)
        return done

    def status(self):
        """Return the status of the only lab, or None if there is none."""
        done = self.call('status', '--json', check=False)
        return json.loads(done.out)[0] if done.out else None

    def start(self):
        if self.guests:
            self.call('up', str(self.guests), '--stack', self.stack, *self.up)
        return self

    def kill(self):
        # Also a lab that a failed test has left
        for lock in (self.home / 'vrdma-lab').glob('*.lock'):
            self.call('--name', lock.stem, 'down', check=False)
        shutil.rmtree(self.home, ignore_errors=True)


class UserBench:
    """The environment of tests of the command."""

    def __init__(self, pair, stack, _):
        self.lab = self.pair = pair
        self.stack = stack
        self.notes = []
        self.baseline = None

    def healthy(self):
        status = self.lab.status()
        if not self.lab.guests:
            return not status
        return bool(status) and not any(g['fate'] for g in status['guests'])

    def nothing_left(self, _):
        """Require that no process of a test runs in the guests."""
        if self.lab.guests:
            self.lab.call('run', '--', 'sh', '-c', '! pgrep -x sleep')


def exchange(lab, server, client, port, serve, ask, seconds=120):
    """Run a server in one guest, and in another a client that waits for it.
    Return the client's output."""
    run = 'run', '-t', str(seconds), '-g'
    process = lab.begin(*run, str(server), '--', 'sh', '-c', serve)
    done = lab.call(*run, str(client), '--after', f'{server}:{port}', '--',
                    'sh', '-c', f'{ask} guest{server}')
    out, err = process.communicate(timeout=seconds + 60)
    assert process.returncode == 0, out + err
    return done.out


def check_write_bw(lab, server, client):
    """Require that ib_write_bw of one guest writes to that of another."""
    command = 'ib_write_bw -F -d $VRDMA_DEVICE -x $VRDMA_GID -n 200'
    out = exchange(lab, server, client, 18515, command, command)
    assert re.search(r'^ 65536 +200 ', out, re.M), out


def check_rping(lab, server, client, count=20):
    """Require that each message of rping comes back."""
    out = exchange(lab, server, client, 7174, f'rping -s -C {count} -v',
                   f'rping -c -C {count} -v -a')
    assert out.count('ping data') == count, out


def check_privileges(lab, guest):
    """Require that a guest leaves no file in the shared directory that gives
    privileges to others on the machine."""
    lab.call('run', '-g', str(guest), '--', 'sh', '-exc', '''
        cp /bin/true mine
        chmod 755 mine
        ./mine
        mkfifo fifo
        ! chmod 4755 mine
        ! chmod 2755 mine
        ! mknod null c 1 3
        ! mknod disk b 8 0
        ! install -m 4755 /bin/true other''')
    left = {path.name: path.lstat().st_mode for path in lab.work.iterdir()}
    assert stat.S_ISFIFO(left['fifo']), left
    assert stat.S_IMODE(left['mine']) == 0o755, left
    for name, mode in left.items():
        assert not mode & (stat.S_ISUID | stat.S_ISGID), (name, oct(mode))
        assert not (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)), name


def check_modprobe(lab, guest):
    """Require that the driver can be unloaded and loaded again in a guest."""
    lab.call('run', '-t', '120', '-g', str(guest), '--', 'sh', '-ec', f'''
        rmmod virtio_rdma
        [ -z "$(ls /sys/class/infiniband)" ]
        modprobe virtio_rdma
        until grep -qs :ffff:0a00:{guest:04x} \
            /sys/class/infiniband/*/ports/1/gids/*; do sleep 0.1; done''')
    done = lab.call('run', '-g', str(guest), '--', 'sh', '-c',
                    'ibv_devinfo -d $VRDMA_DEVICE; echo gid $VRDMA_GID')
    assert 'PORT_ACTIVE' in done.out and 'gid \n' not in done.out, str(done)


def all_end(pids, seconds=20):
    """Return the processes that have not ended after some time. A zombie has
    ended."""
    left = []
    for _ in range(seconds * 10):
        left = [pid for pid in pids if _runs(pid)]
        if not left:
            break
        time.sleep(0.1)
    return left


def _runs(pid):
    try:
        stat = Path(f'/proc/{pid}/stat').read_text(encoding='ascii')
    except OSError:
        return False
    return stat.rpartition(')')[2].split()[0] != 'Z'
