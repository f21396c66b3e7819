#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
check.py SUITE ROOT BESIDE: install the packages in /debs of the fresh system
in ROOT with apt, use them, remove them; print TAP. BESIDE is the same system
with all that the packages depend on, but without them: what it has and ROOT
has in the end are equal.

The cases depend on each other, and run in their order.
"""
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / 'tests' / 'guest'), str(TOP / 'tools' / 'lab')]

from lab.pages import listing    # noqa: E402

PROVIDER = 'ibverbs-provider-virtio-rdma'
NAMES = {'qemu-system-x86-virtio-rdma', 'virtio-rdma-server',
         'vrdma-exporter', 'virtio-rdma-dkms', PROVIDER, 'vrdma-lab'}
QEMU = 'qemu-system-x86_64-virtio-rdma'
VERSION = (TOP / 'VERSION').read_text(encoding='ascii').strip()
WORK = '/srv/user'
# What apt and others write as they work, or make at random; DKMS makes its key
# when it builds the first module, whosever that is
CHANGING = re.compile(
    r'/(debs|dev|home|proc|run|sys|tmp|mnt|var/(cache|log|tmp|lib/apt|'
    r'lib/dpkg/(?!info/))|var/lib/systemd|var/lib/dkms/mok\.|'
    r'etc/(ld\.so\.cache|machine-id)$|'
    r'etc/(passwd|group|shadow|gshadow)-?$)|'
    r'.*/__pycache__')
MINUTES = 60


class Failed(Exception):
    """A command did what it should not; the text says what."""


class Skipped(Exception):
    """A case cannot run; the text says why."""


class System:
    def __init__(self, root):
        self.root = Path(root)
        self.names = sorted(path.name.split('_')[0] for path in
                            (self.root / 'debs').glob('*.deb'))

    def run(self, command, user='root', timeout=20 * MINUTES):
        """Run a shell command, and return what it says; it must succeed."""
        words = ['chroot', str(self.root), 'env', '-i', 'LANG=C.UTF-8',
                 'PATH=/usr/sbin:/usr/bin:/sbin:/bin', 'HOME=/root',
                 'DEBIAN_FRONTEND=noninteractive']
        if user != 'root':
            words += ['setpriv', f'--reuid={user}', f'--regid={user}',
                      '--clear-groups']
        done = subprocess.run(
            [*words, 'bash', '-c', command], text=True, errors='replace',
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=timeout, check=False)
        if done.returncode != 0:
            raise Failed(f'$ {command}\n{done.stdout[-6000:]}'
                         f'[exit code {done.returncode}]')
        return done.stdout

    def lab(self, command, **options):
        """As a user who is not root."""
        return self.run(f'cd {WORK} && {command}', user='65534', **options)

    def releases(self):
        """The kernels whose headers are installed."""
        # Their links lead to paths of that system.
        return sorted(path.name for path in
                      (self.root / 'lib' / 'modules').iterdir()
                      if (path / 'build').is_symlink())

    def files(self):
        """{path: what tells one of its name from another}"""
        found = {}
        for where, directories, names in os.walk(self.root):
            at = '/' + os.path.relpath(where, self.root)
            at = '' if at == '/.' else at
            directories[:] = [name for name in directories
                              if not CHANGING.match(f'{at}/{name}')]
            for name in directories + names:
                if not CHANGING.match(f'{at}/{name}'):
                    found[f'{at}/{name}'] = self._what(Path(where, name))
        return found

    @staticmethod
    def _what(path):
        mode = path.lstat().st_mode
        if path.is_symlink():
            return mode, os.readlink(path)
        # Files that the machine makes, such as an initramfs, differ in times.
        if stat.S_ISREG(mode) and '/etc/' in str(path):
            return mode, hashlib.sha256(path.read_bytes()).hexdigest()
        return mode, ''


def require(good, why):
    if not good:
        raise Failed(why)


def apt_refuses_the_provider_of_another_abi(system, _):
    if not any((system.root / 'debs' / 'other').iterdir()):
        raise Skipped('there is only one package of a provider')
    shown = system.run('! apt-get install -q --simulate /debs/other/*.deb')
    require(re.search(r'Depends: libibverbs1 \(', shown), shown)


def apt_installs_them(system, _):
    require({re.sub('-abi[0-9]+$', '', name) for name in system.names} ==
            NAMES, f'the packages are {system.names}')
    system.run('apt-get install -q -y /debs/*.deb')
    for name in system.names:
        shown = system.run(f"dpkg-query -W -f '${{Version}}' {name}")
        require(shown == VERSION, f'{name} has version {shown}')


def qemu_has_the_device(system, _):
    shown = system.run(f'{QEMU} -device help')
    require('"virtio-rdma-pci"' in shown, shown)
    shown = system.run(f'{QEMU} -version')
    require(f'(virtio-rdma {VERSION})' in shown, shown)


def qemu_of_debian_is_as_it_was(system, _):
    shown = system.run('qemu-system-x86_64 -device help')
    require('"virtio-net-pci"' in shown and 'virtio-rdma' not in shown,
            shown)
    system.run('! dpkg --verify qemu-system-x86 qemu-system-data seabios '
               'ibverbs-providers | grep .')


def the_service_is_confined(system, _):
    unit = 'virtio-rdma-server@guest1.service'
    system.run(f'systemd-analyze verify --man=no {unit}')
    # The highest exposure that is allowed, of 100
    system.run('systemd-analyze security --offline=yes --threshold=20 '
               '--no-pager virtio-rdma-server@.service')


def the_server_serves(system, _):
    system.run('cd /tmp && (virtio-rdma-server --socket /tmp/adapter '
               '--netdev hubport,hubid=0 --write-options options & '
               'server=$!; until [ -s options ]; do '
               'kill -0 $server || exit 1; sleep 0.1; done; '
               'test -S adapter -a -S adapter.nic && '
               'kill $server && wait $server)', timeout=60)
    shown = system.run('cd /tmp && cat options && rm options adapter.lock')
    require(shown.count('"driver": "vfio-user-pci"') == 2, shown)


def dkms_has_built_the_module(system, _):
    releases = system.releases()
    require(releases, 'no kernel headers are installed')
    for release in releases:
        shown = system.run(f'modinfo -k {release} -F version virtio_rdma; '
                           f'modinfo -k {release} -F filename virtio_rdma')
        require(shown.startswith(VERSION + '\n') and '/dkms/' in shown,
                shown)


def guests_come_up(system, _):
    work = Path(str(system.root) + WORK)
    work.mkdir()
    os.chown(work, 65534, 65534)
    shown = system.lab('vrdma-lab up 3')
    require('3 guests' in shown and system.releases()[-1] in shown, shown)


def programs_find_their_adapters(system, _):
    for index in (1, 2, 3):
        shown = system.lab(f'vrdma-lab run -g {index} -- ibv_devinfo -v')
        require(re.search(r'state:\s+PORT_ACTIVE', shown), shown)


def ib_write_bw_runs(system, _):
    words = 'ib_write_bw -n 100 -d vrdma0 -x 1'
    shown = system.lab(
        f'vrdma-lab run -t 120 -g 1 -- {words} > server & '
        f'vrdma-lab run -t 120 -g 3 --after 1:18515 -- {words} guest1 && '
        'wait $!')
    require(re.search(r'^ 65536 +100 ', shown, re.M), shown)


def exit_codes_are_those_of_programs(system, _):
    shown = system.lab('vrdma-lab run -g 2 -- sh -c "exit 7" || echo got $?')
    require('got 7' in shown, shown)


def guests_go_down(system, _):
    system.lab('vrdma-lab down; ! vrdma-lab status')
    # systemd of Debian testing makes .X11-unix and the like when it is
    # installed.
    left = [name for name in system.run('ls -A /tmp').split()
            if not re.fullmatch(r'\.[\w-]+-unix', name)]
    require(left in ([], ['vrdma-lab-65534']), f'in /tmp: {left}')
    system.run('rmdir /tmp/vrdma-lab-65534')


def the_program_of_the_page_runs(system, _):
    work = Path(str(system.root) + WORK)
    for name in ('hello.c', 'test.sh'):
        path = work / name
        path.write_text(listing('virtio-rdma-lab', name), encoding='utf-8')
        path.chmod(0o755)
    shown = system.lab('./test.sh')
    require('hello from guest1' in shown and 'hello from guest2' in shown,
            shown)
    system.run('rmdir /tmp/vrdma-lab-65534')


def another_stack_needs_none_of_ours(system, _):
    shown = system.lab('vrdma-lab up 1 --stack rxe && '
                       'vrdma-lab run -- ibv_devices; vrdma-lab down')
    require('rxe0' in shown, shown)
    system.run('rmdir /tmp/vrdma-lab-65534')


def what_is_missing_is_named(system, _):
    system.run(f'dkms remove virtio-rdma/{VERSION} --all')
    shown = system.lab('vrdma-lab up 1 2>&1 || :')
    require('dkms status' in shown, shown)
    system.run('dpkg-reconfigure virtio-rdma-dkms')
    dkms_has_built_the_module(system, None)


def purging_them_leaves_nothing(system, beside):
    system.run('systemctl enable virtio-rdma-server@guest1')
    system.run(f'apt-get purge -q -y {" ".join(system.names)}')
    shutil.rmtree(str(system.root) + WORK)
    now, then = system.files(), beside.files()
    left = sorted(now.keys() - then.keys())
    gone = sorted(then.keys() - now.keys())
    other = sorted(name for name in now.keys() & then.keys()
                   if now[name] != then[name])
    require(not left and not gone and not other,
            f'left: {left}\ngone: {gone}\nother: {other}')


CASES = (
    apt_refuses_the_provider_of_another_abi, apt_installs_them,
    qemu_has_the_device, qemu_of_debian_is_as_it_was,
    the_service_is_confined, the_server_serves, dkms_has_built_the_module,
    guests_come_up, programs_find_their_adapters, ib_write_bw_runs,
    exit_codes_are_those_of_programs, guests_go_down,
    the_program_of_the_page_runs, another_stack_needs_none_of_ours,
    what_is_missing_is_named, purging_them_leaves_nothing)


def main():
    suite, root, beside = sys.argv[1:]
    failed = False
    print(f'1..{len(CASES)}')
    for number, case in enumerate(CASES, 1):
        title = f'{suite}: {case.__name__.replace("_", " ")}'
        began = time.monotonic()
        try:
            case(System(root), System(beside))
            print(f'ok {number} - {title} # '
                  f'{time.monotonic() - began:.1f} s', flush=True)
        except Skipped as e:
            print(f'ok {number} - {title} # SKIP {e}', flush=True)
        except Exception as e:    # a case that broke has failed, too
            failed = True
            print(f'not ok {number} - {title}')
            text = f'{type(e).__name__}: {e}'
            print('\n'.join(f'# {line}' for line in text.splitlines()),
                  flush=True)
    sys.exit(failed)


if __name__ == '__main__':
    main()
