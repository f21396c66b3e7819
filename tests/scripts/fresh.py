#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/fresh.sh leaves no mount and no process of a system behind."""
import subprocess
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
NAMESPACES = ['unshare', '--mount', '--pid', '--fork', '--kill-child',
              '--mount-proc']

# The system is this machine's own. A daemon keeps the mount on /run busy.
SCRIPT = """
. scripts/fresh.sh
root=$1
mount --bind / "$root"
sleep 600 &
enter "$root" 'cd /run; setsid sleep 600 > /dev/null 2>&1 &'
until [ "$(processes_in "$root" | wc -l)" = 1 ] &&
    [ "$(readlink "/proc/$(processes_in "$root")/cwd")" = "$root/run" ]
do
    sleep 0.1
done
release "$root"
processes_in "$root"
kill -0 %1
grep "$root/" /proc/mounts || :
"""


class Fresh(unittest.TestCase):
    def setUp(self):
        tried = subprocess.run([*NAMESPACES, 'true'], text=True,
                               capture_output=True, check=False)
        if tried.returncode:
            self.skipTest(tried.stderr.strip())
        self.base = Path(tempfile.mkdtemp(prefix='fresh-test-'))
        self.addCleanup(self.base.rmdir)

    def test_release_ends_the_daemons_of_a_system_alone(self):
        done = subprocess.run(
            [*NAMESPACES, 'bash', '-euo', 'pipefail', '-c', SCRIPT, 'fresh',
             self.base], cwd=TOP, env={'PATH': '/usr/sbin:/usr/bin'},
            text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ''))


if __name__ == '__main__':
    tap.main()
