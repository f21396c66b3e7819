#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of vrdma-lab, and what a run is without a guest."""
import io
import os
import shutil
import signal
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / 'tools' / 'lab'))

from guestkit.inside import agent    # noqa: E402
from vrdma_lab import cli, client, session    # noqa: E402


class Arguments(unittest.TestCase):
    def test_guests_are_numbers_and_ranges(self):
        self.assertEqual(cli.numbers('3,1-2,2'), [1, 2, 3])
        for text in ('', 'a', '1,', '-1', '1-', '3-1', '2,3-1', '255',
                     '1-9999999999'):
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

    def test_each_command_has_help(self):
        commands = next(action.choices for action in cli.parser()._actions
                        if action.dest == 'command')
        self.assertIn('impair', commands)
        for words in ([], *([name] for name in commands)):
            with self.subTest(words), self.assertRaises(SystemExit) as end, \
                    mock.patch('sys.stdout', io.StringIO()) as said:
                cli.main([*words, '--help'])
            self.assertEqual(end.exception.code, 0)
            self.assertIn('usage: vrdma-lab', said.getvalue())
            self.assertNotIn('%%', said.getvalue())

    def test_what_follows_the_program_is_for_it(self):
        for text, guests, words in (
                ('-g 1 ls -la F', [1], 'ls -la F'),
                ('-g 1 -- ls -la F', [1], 'ls -la F'),
                ('ls -g 1 -t x', None, 'ls -g 1 -t x'),
                ('-- ls -- -x', None, 'ls -- -x'),
                ('-- -odd', None, '-odd')):
            with self.subTest(text):
                found = self.parse('run', *text.split())
                self.assertEqual(found.guests, guests)
                self.assertEqual([found.program, *found.arguments],
                                 words.split())

    def test_values_that_make_no_sense_are_told(self):
        for text, said in (
                ('run -t -3 true', 'a number of seconds above 0, got "-3"'),
                ('run -t 0 true', 'a number of seconds above 0, got "0"'),
                ('run -t nan true', 'a number of seconds above 0, got "nan"'),
                ('run -t inf true', 'a number of seconds above 0, got "inf"'),
                ('run -t x true', 'a number of seconds above 0, got "x"'),
                ('run --after 7471 true', 'GUEST:PORT.* got "7471"'),
                ('run --after 1:0 true', '"1:0": ports are 1 to 65535'),
                ('run --after 1:65536 true', '"1:65536": ports are 1 to'),
                ('top -n 0', 'a number of tables from 1, got "0"'),
                ('top --count x', 'a number of tables from 1, got "x"'),
                ('top -i 0', 'a number of seconds above 0, got "0"'),
                ('up --accel xen', "invalid choice: 'xen'.*auto"),
                ('link 1 down', 'GUEST.ADAPTER, such as 1.2, got "1"'),
                ('link 1.2.3 down', 'GUEST.ADAPTER, .* got "1.2.3"'),
                ('link eth1 down', 'GUEST.ADAPTER, .* got "eth1"'),
                ('link 1.2 off', "invalid choice: 'off'"),
                ('link 1.2', 'required: state'),
                ('up --adapters two', "--adapters: invalid int value: 'two'"),
                ('pcap -a x file', "-a/--adapter: invalid int value: 'x'"),
                ('up --qemu -foo', 'begins with "-", write --qemu=-')):
            with self.subTest(text):
                self.assertRegex(self.parse(*text.split()), said)
        self.assertEqual(self.parse('run', '-t', '0.5', 'true').timeout, 0.5)
        self.assertEqual(self.parse('run', '--after', '1:65535',
                                    'true').after, [1, 65535])
        self.assertEqual(self.parse('up', '--qemu=-foo').qemu, ['-foo'])
        self.assertEqual(self.parse('link', '1.2', 'down').adapter, (1, 2))

    def test_the_adapter_may_also_be_called_a_stack(self):
        for words, stack in (('', 'virtio-rdma'), ('--stack rxe', 'rxe'),
                             ('--adapter pvrdma', 'pvrdma')):
            found = self.parse('up', *words.split())
            self.assertEqual((found.stack, found.adapters, found.accel),
                             (stack, 1, 'auto'))
        self.assertRegex(self.parse('up', '--adapter', 'mlx5'),
                         'argument --adapter.*mlx5.*pvrdma')

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
            self.assertIn(f'expected NAME=VALUE, got "{text}"',
                          self.parse('qmp', '1', 'x', text))


class Names(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop('VRDMA_LAB', None)

    @staticmethod
    def chosen(*words):
        """The name of the lab, and whether the user chose it."""
        with mock.patch.object(cli, 'do_status') as status:
            cli.main([*words, 'status'])
        args = status.call_args.args[0]
        return args.name, args.named

    def test_status_shows_only_a_lab_that_the_user_chose(self):
        self.assertEqual(self.chosen(), ('default', False))
        self.assertEqual(self.chosen('--name', 'a'), ('a', True))
        os.environ['VRDMA_LAB'] = 'b'
        self.assertEqual(self.chosen(), ('b', True))
        self.assertEqual(self.chosen('--name', 'a'), ('a', True))


class Listener:
    """A guest in which no program ever listens. @fails: after being asked so
    often, the command that runs in it fails."""

    index = 1

    def __init__(self, fails):
        self.past, self.asked, self.fails = session.Past(), 0, fails
        self.past.begin()

    def listens(self, _):
        self.asked += 1
        if self.asked == self.fails:
            self.past.end('./server: exit code 3')
        return False


class Waits(unittest.TestCase):
    """--after, when nothing ever listens."""

    def test_a_command_that_fails_ends_the_wait(self):
        its = session.Run(None, [], {'timeout': None})
        rc, why = its._wait_for_listener(Listener(fails=2), 7471)
        self.assertEqual(rc, session.CANNOT)
        self.assertEqual(why, 'nothing listens on port 7471 of guest 1: its '
                         'last command failed: ./server: exit code 3')

    def test_a_signal_ends_the_wait(self):
        its = session.Run(None, [], {'timeout': None})
        its.signal = signal.SIGTERM
        self.assertEqual(its._wait_for_listener(Listener(fails=0), 7471),
                         (143, 'nothing listens on port 7471 of guest 1'))

    def test_failures_that_end_a_wait(self):
        recent = session.RECENT
        # (when a command failed, when another began, now), where the wait
        # began at 100, and whether there is no point in it
        for failed, begun, now, expected in (
                (101, None, 101, True),
                (100, None, 100, True),
                (99, None, 100 + recent - 1, False),
                (99, None, 100 + recent, True),
                (99 - recent, None, 500, False),
                (99, 101, 500, False),
                (101, 102, 500, False),
                (None, None, 500, False)):
            with self.subTest((failed, begun, now)), \
                    mock.patch.object(session.time, 'monotonic') as clock:
                past = session.Past()
                if failed:
                    past.begin()
                    clock.return_value = failed
                    past.end('failed')
                if begun:
                    clock.return_value = begun
                    past.begin()
                clock.return_value = now
                self.assertEqual(past.hopeless(100),
                                 'failed' if expected else '')

    def test_what_still_runs_may_listen_yet(self):
        past = session.Past()
        past.begin()
        past.begin()
        past.end('failed')
        self.assertEqual(past.hopeless(0), '')
        past.end('')
        self.assertEqual(past.hopeless(0), 'failed')


class Signals(unittest.TestCase):
    def test_one_before_the_command_runs_reaches_the_command(self):
        job, guest = mock.Mock(), mock.Mock(index=1)
        job.follow.return_value = b'', -signal.SIGINT
        guest.spawn.return_value = job
        its = session.Run(mock.Mock(), [guest], {
            'timeout': None, 'directory': '/', 'words': ['true'], 'env': []})
        its.signal = signal.SIGINT
        self.assertEqual(its._command(guest), 130)
        job.kill.assert_called_once_with(signal.SIGINT)

    def test_one_that_the_caller_ignores_stays_ignored(self):
        before = signal.getsignal(signal.SIGHUP)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        handler = mock.Mock()
        for action, expected in ((signal.SIG_IGN, signal.SIG_IGN),
                                 (signal.SIG_DFL, handler)):
            signal.signal(signal.SIGHUP, action)
            client.handle([signal.SIGHUP], handler)
            self.assertEqual(signal.getsignal(signal.SIGHUP), expected)


class Jobs(unittest.TestCase):
    """Standard input and output of a command in a guest: the guest's end."""

    def job(self, command):
        """One that has begun."""
        base = tempfile.mkdtemp(prefix='lab-')
        self.addCleanup(shutil.rmtree, base)
        return agent.Job(command, f'{base}/out', stdin=True)

    def test_output_that_was_read_takes_no_memory(self):
        length = 3 * agent.FREED + 1
        job = self.job(f'yes | head -c {length}')
        at, rc = 0, None
        while rc is None:
            answer = job.follow(at, 60)
            at, rc = at + len(answer['data']), answer['rc']
        self.assertEqual((at, rc), (length, 0))
        self.assertLess(os.stat(job.path).st_blocks * 512, 2 * agent.FREED)

    def test_all_of_it_arrives_though_a_pipe_holds_less(self):
        job, data = self.job('sleep 0.2; cat'), b'0123456\n' * 40000
        rest, pieces = data, 0
        while rest:
            rest, pieces = rest[job.feed(rest, 60):], pieces + 1
        self.assertGreater(pieces, 1)
        self.assertEqual(job.feed(b'', 60), 0)
        self.assertEqual(job.wait(60)['rc'], 0)
        with open(job.path, 'rb') as f:
            self.assertEqual(f.read(), data)

    def test_what_nothing_reads_is_told(self):
        job = self.job('exec 0<&-; sleep 600')
        taken = 0
        while taken is not None:
            taken = job.feed(b'x' * 65536, 60)
        job.signal(9)
        job.process.wait()

    def test_a_command_that_reads_none_does_not_hold_its_caller(self):
        job = self.job('sleep 600')
        while job.feed(b'x' * 65536, 0):
            pass
        self.assertEqual(job.feed(b'x', 0), 0)
        job.signal(9)
        job.process.wait()


if __name__ == '__main__':
    tap.main()
