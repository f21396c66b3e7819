#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo reads figures right, and shows what it has of each row."""
import io
import sys
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock
from xml.etree import ElementTree

import tap

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / 'tests' / 'guest'), str(TOP / 'tools' / 'lab')]

from guestkit import accel    # noqa: E402
from guestkit.paths import LabError    # noqa: E402
from lab import chart, demo, perftest, tcp    # noqa: E402


def cell(value, unit='MB/s', ok=True):
    return {'value': value, 'unit': unit, 'ok': ok}


class Accelerators(unittest.TestCase):
    def test_guests_have_the_accelerator_that_is_printed(self):
        for its in accel.TCG, accel.Accelerator('kvm', 'which works here'):
            with tempfile.TemporaryDirectory(prefix='lab-') as logs, \
                    mock.patch.object(demo, 'LOGS', Path(logs)), \
                    mock.patch('sys.stdout', io.StringIO()) as said, \
                    mock.patch.object(demo, 'Pair',
                                      side_effect=LabError('no')) as pair, \
                    self.assertRaises(LabError):
                demo.Demo('stream', None, None, accelerator=its).run()
            self.assertEqual(pair.call_args.kwargs['kvm'], its.name == 'kvm')
            self.assertIn(f'accelerator: {its.name.upper()}, {its.why}',
                          said.getvalue())


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


class Perftest(unittest.TestCase):
    TEST = perftest.Test('ib_write_bw', 64, 10)
    MEASURED = '64 10 2.50 2.48 0.040\n'
    NO_CLOCK = 'Correlation coefficient r^2: 0.7 < 0.9\n64 10 0.00 0.00 0.0\n'

    def run_with(self, *outputs):
        """Its figures and how often it ran, where it prints these in turn."""
        results = [SimpleNamespace(ok=True, client=SimpleNamespace(out=text))
                   for text in outputs]
        side = SimpleNamespace(device='vrdma0', gid=lambda family: 1)
        with mock.patch.object(perftest, 'exchange',
                               side_effect=results) as exchange:
            _, figures = perftest.run(self.TEST, mock.Mock(), (side, side))
        return figures, exchange.call_count

    def test_a_run_that_has_measured_is_the_only_one(self):
        figures, runs = self.run_with(self.MEASURED, self.MEASURED)
        self.assertEqual((figures['value'], runs), (2.48, 1))

    def test_a_run_without_a_clock_is_repeated(self):
        figures, runs = self.run_with(self.NO_CLOCK, self.MEASURED)
        self.assertEqual((figures['value'], runs), (2.48, 2))

    def test_zeroes_are_not_figures(self):
        figures, runs = self.run_with(*perftest.TRIES * [self.NO_CLOCK])
        self.assertEqual((figures, runs), (None, perftest.TRIES))


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


class Chart(unittest.TestCase):
    ROWS = {'a < b': {'virtio-rdma': cell(400), 'rxe': cell(100),
                      'TCP': cell(0, ok=False)},
            'ping': {'virtio-rdma': cell(10, 'us')}}

    def setUp(self):
        self.root = ElementTree.fromstring(chart.svg(self.ROWS, demo.number))
        self.words = [element.text for element in self.root.iter()
                      if element.text and element.text.strip()]

    def test_bars_have_the_lengths_of_the_figures(self):
        bars = [float(element.get('width')) for element in self.root
                if element.get('x') == str(chart.LABEL) and
                element.get('height') == str(chart.BAR - 2)]
        self.assertEqual(len(bars), 3)
        self.assertAlmostEqual(bars[0] / bars[1], 4, 1)
        self.assertEqual(bars[0], bars[2])

    def test_figures_and_failures_are_written(self):
        for text in ('a < b', '400 MB/s', '100 MB/s', 'failed', '10.0 us'):
            self.assertIn(text, self.words)

    def test_a_page_loads_nothing(self):
        page = chart.page(self.ROWS, demo.number, 'one & two')
        self.assertIn('<p>one &amp; two</p>', page)
        self.assertEqual(page.count('<svg'), 1)
        self.assertNotRegex(page.replace('http://www.w3.org/2000/svg', ''),
                            'http|src=|href=|@import')


if __name__ == '__main__':
    tap.main()
