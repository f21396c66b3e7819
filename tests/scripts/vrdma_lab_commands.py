#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of vrdma-lab, and what a run is without a guest."""
import io
import shutil
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / 'tools' / 'lab'), str(TOP / 'tests' / 'guest'),
                str(TOP / 'tests' / 'guest' / 'guest')]

import agent    # noqa: E402
from vrdma_lab import cli, session    # noqa: E402


class Arguments(unittest.TestCase):
    def test_guests_are_numbers_and_ranges(self):
        self.assertEqual(cli.numbers('3,1-2,2'), [1, 2, 3])
        for text in ('', 'a', '1,', '-1', '1-'):
            with self.assertRaises(cli.argparse.ArgumentTypeError, msg=text):
                cli.numbers(text)


class CommandLine(unittest.TestCase):
    @staticmethod
    def parse(*words):
        with mock.patch('sys.stderr', io.StringIO()) as said:
            try:
                return cli.parser().parse_args(words)
            except SystemExit:
                return said.getvalue()

    def test_arguments_of_qmp_are_json_or_strings(self):
        for text, value in (('times=2', 2), ('detail=true', True),
                            ('dgid=10.0.0.2', '10.0.0.2'), ('id="1"', '1'),
                            ('a={"b": [1]}', {'b': [1]}), ('a=', ''),
                            ('command-line=info rdma', 'info rdma'),
                            ('a=b=c', 'b=c')):
            with self.subTest(text):
                found = self.parse('qmp', '1', 'x', text).arguments
                self.assertEqual(found, [(text.partition('=')[0], value)])
        self.assertEqual(self.parse('qmp', '1', 'x').arguments, [])

    def test_arguments_of_qmp_that_have_no_name_are_told(self):
        for text in ('a', '=a'):
            self.assertIn(f'"{text}" is not NAME=VALUE',
                          self.parse('qmp', '1', 'x', text))


if __name__ == '__main__':
    tap.main()
