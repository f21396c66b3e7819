#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo reads qperf's figures right, and shows what it has of each row."""
import sys
import unittest
from pathlib import Path

import tap

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'guest'))

from lab import demo, tcp    # noqa: E402


def cell(value, unit='MB/s', ok=True):
    return {'value': value, 'unit': unit, 'ok': ok}


class Qperf(unittest.TestCase):
    def figure(self, line):
        found = tcp.parse(f'tcp_bw:\n    {line}\nquit:\n')
        return found and found['value']

    def test_bandwidth_is_told_in_perftests_unit(self):
        self.assertAlmostEqual(self.figure('bw  =  104.8576 MB/sec'), 100)
        self.assertAlmostEqual(self.figure('bw  =  104857.6 KB/sec'), 100)
        self.assertAlmostEqual(self.figure('bw  =  1.048576 GB/sec'), 1000)

    def test_latency_is_told_in_microseconds(self):
        self.assertAlmostEqual(self.figure('latency  =  392 us'), 392)
        self.assertAlmostEqual(self.figure('latency  =  1.5 ms'), 1500)

    def test_no_figure_is_made_up(self):
        self.assertIsNone(self.figure('failed to connect'))
        self.assertIsNone(self.figure('bw  =  12 furlongs/sec'))


class Table(unittest.TestCase):
    def row(self, **cells):
        lines = demo.table({'row': cells}).splitlines()
        self.assertEqual(len(lines[0]), len(lines[2]))
        return lines[2].split()[1:]

    def test_row_of_all_three(self):
        cells = {'virtio-rdma': cell(400), 'rxe': cell(20), 'TCP': cell(50)}
        self.assertEqual(self.row(**cells),
                         ['MB/s', '400', '20.0', 'x20.0', '50.0'])

    def test_less_time_is_better(self):
        cells = {'virtio-rdma': cell(100, 'us'), 'rxe': cell(400, 'us')}
        self.assertEqual(self.row(**cells), ['us', '100', '400', 'x4.0', '-'])

    def test_failure_is_shown(self):
        cells = {'virtio-rdma': cell(400), 'rxe': cell(0, ok=False),
                 'TCP': cell(50)}
        self.assertEqual(self.row(**cells),
                         ['MB/s', '400', 'failed', '-', '50.0'])


if __name__ == '__main__':
    tap.main()
