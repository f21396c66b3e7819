#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Benchmarks of guests: parts that need no guest."""
import json
import socket
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / 'tests' / 'guest'), str(TOP / 'tools' / 'lab')]

from guestkit.paths import LabError    # noqa: E402
from lab import vmmbench    # noqa: E402


class Monitor(threading.Thread):
    """A monitor for one client. It refuses one command."""

    def __init__(self, path, refused):
        super().__init__(daemon=True)
        self.refused, self.commands = refused, []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        self.start()

    def run(self):
        with self.listener, self.listener.accept()[0] as sock, \
                sock.makefile('rw', encoding='utf-8') as lines:
            for line in lines:
                request = json.loads(line)
                self.commands.append(request['execute'])
                answer = {'error': {'desc': 'refused'}} \
                    if request['execute'] == self.refused else {'return': {}}
                lines.write(json.dumps({'id': request['id'], **answer}) + '\n')
                lines.flush()


class Traces(unittest.TestCase):
    def trace(self, refused):
        """Switch the trace event on. Return the QMP commands that the
        monitor got."""
        with tempfile.TemporaryDirectory(prefix='bench-') as base:
            place = object.__new__(vmmbench.VfioUser)
            place.path = f'{base}/monitor'
            monitor = Monitor(place.path, refused)
            place.trace(True)
            monitor.join(20)
        return monitor.commands

    def test_refused_commands_of_a_server_end_the_benchmark(self):
        commands = ['qmp_capabilities', 'trace-event-set-state']
        self.assertEqual(self.trace(None), commands)
        for command in commands:
            with self.assertRaisesRegex(LabError,
                                        f'server: {command}: refused'):
                self.trace(command)


if __name__ == '__main__':
    tap.main()
