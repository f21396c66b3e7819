#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A command that fails on a host of the guest tests is reported as it ran. The
host here is this machine."""
import sys
import unittest
from pathlib import Path
from unittest import mock

import tap

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / 'tests' / 'guest'), str(TOP / 'tools' / 'lab')]

from guestkit.paths import LabError    # noqa: E402
from lab import hosts    # noqa: E402


class Hosts(unittest.TestCase):
    def setUp(self):
        # Host() makes a network namespace
        self.host = object.__new__(hosts.Host)
        self.host.number, self.host.enter = 1, []

    def test_failed_command_is_named(self):
        for words, said in ((('false',), '$ false'),
                            ((Path('/bin/false'), 'a b'),
                             "$ /bin/false 'a b'"),
                            (('sh', '-c', 'echo why; exit 3'), 'why')):
            with self.assertRaisesRegex(LabError, '^host 1: ') as caught:
                self.host.run(*words)
            self.assertIn(said, str(caught.exception))

    def test_machine_without_overlays_skips(self):
        with mock.patch.object(hosts.unpacked, 'SCRIPT', Path('/bin/false')), \
                self.assertRaisesRegex(hosts.Skip, '^no overlay on /usr here'):
            self.host.require_packages(Path('/packages'))


if __name__ == '__main__':
    tap.main()
