#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab top: rates between samples, and their table."""
import io
import os
import sys
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / 'tools' / 'lab'))

from guestkit.paths import LabError    # noqa: E402
from vrdma_lab import top    # noqa: E402

ZERO = {name: 0 for names, _ in top.RATES.values() for name in names}


def adapter(number=1, active=True, **counters):
    """An adapter in an answer of query-rdma. The names of counters have _
    instead of -."""
    values = {name.replace('_', '-'): value
              for name, value in counters.items()}
    return {'path': f'/machine/peripheral/rdma{number - 1}',
            'port': {'active': active}, 'count': {'qp': {'used': 3}},
            'counters': {**ZERO, **values}}


def guest(number, at, *adapters, gone=False):
    return {'guest': number, 'time': at,
            'adapters': None if gone else list(adapters)}


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Rates(unittest.TestCase):
    def test_counters_become_rates(self):
        titles = list(top.RATES)
        for before, after, seconds, column, expected in (
                ({}, {'tx_bytes': 5000000}, 2, 'tx MB/s', 2.5),
                ({'rx_bytes': 10**12}, {'rx_bytes': 10**12 + 4000000}, 0.5,
                 'rx MB/s', 8),
                ({'tx_packets': 7}, {'tx_packets': 107}, 1, 'tx pkt/s', 100),
                ({'rx_packets': 7}, {'rx_packets': 7}, 1, 'rx pkt/s', 0),
                ({}, {'retransmits': 3}, 1, 'retrans/s', 3),
                ({'rnr_naks_sent': 1}, {'rnr_naks_sent': 2,
                                        'rnr_naks_received': 4}, 1,
                 'RNR NAK/s', 5),
                # The driver has reset the adapter.
                ({'tx_packets': 900}, {'tx_packets': 50}, 2, 'tx pkt/s', 25)):
            with self.subTest(column, after=after):
                found = top.rates(adapter(**before), adapter(**after), seconds)
                self.assertEqual(dict(zip(titles, found)),
                                 {**dict.fromkeys(titles, 0),
                                  column: expected})

    def test_figures_have_three_digits_or_more(self):
        for value, text in ((0, '0'), (0.126, '0.13'), (9.994, '9.99'),
                            (12.34, '12.3'), (123.4, '123'),
                            (5500000, '5500000')):
            self.assertEqual(top.figure(value), text)


class Tables(unittest.TestCase):
    def test_each_adapter_has_a_line(self):
        zero = ' '.join(['0'] * len(top.RATES))
        for what, before, after, lines in (
                ('two guests',
                 [guest(1, 0, adapter(1), adapter(2)), guest(2, 5, adapter())],
                 [guest(1, 1, adapter(1, tx_packets=1000), adapter(2, False)),
                  guest(2, 7, adapter(tx_packets=1000))],
                 ['1.1 up 3 0 0 1000 0 0 0', f'1.2 down 3 {zero}',
                  '2.1 up 3 0 0 500 0 0 0']),
                ('a guest that ends',
                 [guest(1, 0, adapter()), guest(2, 0, adapter())],
                 [guest(1, 1, adapter()), guest(2, 1, gone=True)],
                 [f'1.1 up 3 {zero}', '2 GONE']),
                ('a guest that was gone before',
                 [guest(2, 0, gone=True)], [guest(2, 1, gone=True)],
                 ['2 GONE']),
                ('an adapter that is plugged in', [guest(1, 0)],
                 [guest(1, 1, adapter())], ['1.1 up 3'])):
            with self.subTest(what):
                title, *found = top.table({g['guest']: g for g in before},
                                          {g['guest']: g for g in after})
                self.assertTrue(title.startswith('adapter '), title)
                self.assertEqual([' '.join(line.split()) for line in found],
                                 lines)


class Output(unittest.TestCase):
    @staticmethod
    def run_top(count, guests, out):
        """Run top() with guests whose adapters send a packet between two
        samples. Return (output, times that it slept)."""
        at = iter(range(99))

        def ask(*_):
            now = next(at)
            return {'guests': [guest(i, now, adapter(tx_packets=now))
                               for i in range(1, guests + 1)]}
        with mock.patch.object(top.client, 'ask', ask), \
                mock.patch.object(top.time, 'sleep') as sleep, \
                mock.patch.object(sys, 'stdout', out):
            top.top(None, 0.5, count)
        return out.getvalue(), [call.args for call in sleep.call_args_list]

    def test_scripts_get_plain_text_as_often_as_they_want(self):
        text, slept = self.run_top(3, 2, io.StringIO())
        self.assertEqual(slept, [(0.5,)] * 3)
        self.assertNotIn('\033', text)
        lines = text.splitlines()
        self.assertEqual(len(lines), 9)
        self.assertEqual(lines.count(top.TITLE), 3)
        self.assertEqual([line.split()[5] for line in lines if '.1 ' in line],
                         ['1.00'] * 6)

    def test_a_terminal_has_one_table_that_fits(self):
        for rows, columns, lines in ((24, 100, 9), (5, 100, 4), (24, 20, 9)):
            with self.subTest((rows, columns)), mock.patch.object(
                    top.shutil, 'get_terminal_size',
                    return_value=os.terminal_size((columns, rows))):
                text, _ = self.run_top(2, 8, Terminal())
                tables = text.split(top.HOME_AND_CLEAR)[1:]
                self.assertEqual(len(tables), 2)
                for table in tables:
                    found = table.splitlines()
                    self.assertEqual(len(found), lines)
                    self.assertLessEqual(max(map(len, found)), columns)

    def test_guests_without_adapters_are_refused(self):
        with mock.patch.object(top.client, 'ask', return_value={
                'guests': [guest(1, 0)]}), \
                self.assertRaisesRegex(LabError, 'no guest has an adapter'):
            top.top(None, 1, 1)


if __name__ == '__main__':
    tap.main()
