#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each trace event is one that the code has, in the file that is told."""
import re
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parent.parent.parent


class Trace(unittest.TestCase):
    def check(self, directory):
        where = TOP / directory
        declared = {}
        source = None
        for line in (where / 'trace-events').read_text().splitlines():
            told = re.fullmatch(r'# (\S+\.c)', line)
            event = re.match(r'(\w+)\(', line)
            if told:
                source = told[1]
            elif event:
                declared[event[1]] = source
        self.assertTrue(declared)
        used = {}
        for path in where.rglob('*.c'):
            for name in re.findall(r'\btrace_(\w+)\(', path.read_text()):
                used.setdefault(name, set()).add(
                    str(path.relative_to(where)))
        self.assertEqual(set(declared), set(used))
        for name, source in declared.items():
            self.assertIn(source, used[name], name)

    def test_of_the_core(self):
        self.check('hw/rdma/hca')

    def test_of_the_device(self):
        self.check('hw/rdma/virtio')

    def test_of_pvrdma(self):
        self.check('hw/rdma/pvrdma')

    def test_of_virtio_net_roce(self):
        self.check('hw/rdma/virtio-net-roce')

    def test_of_the_backend(self):
        self.check('backends/rdma')


if __name__ == '__main__':
    tap.main()
