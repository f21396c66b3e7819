#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What scripts/fresh.sh lets a system's programs do, and leaves of them."""
import subprocess
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
NAMESPACES = ['unshare', '--mount', '--pid', '--fork', '--kill-child',
              '--mount-proc']

# The system's files are this machine's
SCRIPT = """
. scripts/fresh.sh
root=$1/root
mount -t tmpfs tmpfs "$1"
mkdir -p "$root"/{usr,proc,sys,dev,run,mnt}
cp -P /bin /lib* "$root"
mount --bind /usr "$root/usr"
"""
# A daemon keeps the mount on /run busy
DAEMON = SCRIPT + """
sleep 600 &
enter "$root" true
chroot "$root" bash -c 'cd /run; setsid sleep 600 > /dev/null 2>&1 &'
until [ "$(processes_in "$root" | wc -l)" = 1 ] &&
    [ "/proc/$(processes_in "$root")/cwd" -ef "$root/run" ]
do
    sleep 0.1
done
release "$root"
processes_in "$root"
kill -0 %1
grep "$root" /proc/mounts | grep -v "$root/usr" || :
"""
NAMESPACE = SCRIPT + """
enter "$root" 'unshare --mount mount -t tmpfs tmpfs /mnt &&
    unshare --user --map-root-user --mount --net true'
release "$root"
"""


class Fresh(unittest.TestCase):
    def setUp(self):
        tried = subprocess.run([*NAMESPACES, 'true'], text=True,
                               capture_output=True, check=False)
        if tried.returncode:
            self.skipTest(tried.stderr.strip())
        self.base = Path(tempfile.mkdtemp(prefix='fresh-test-'))
        self.addCleanup(self.base.rmdir)

    def run_as_root(self, script):
        done = subprocess.run(
            [*NAMESPACES, 'bash', '-euo', 'pipefail', '-c', script, 'fresh',
             self.base], cwd=TOP, env={'PATH': '/usr/sbin:/usr/bin'},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ''))

    def test_release_ends_the_daemons_of_a_system_alone(self):
        self.run_as_root(DAEMON)

    def test_programs_of_a_system_can_make_namespaces(self):
        self.run_as_root(NAMESPACE)


if __name__ == '__main__':
    tap.main()
