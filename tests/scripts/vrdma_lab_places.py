#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a lab is, and whose it has to be; keepers that boot."""
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / 'tools' / 'lab'))

from guestkit.paths import LabError    # noqa: E402
from vrdma_lab import cli, client, keeper, place    # noqa: E402
from vrdma_lab.plan import Plan    # noqa: E402


class Places(unittest.TestCase):
    def setUp(self):
        self.base = tempfile.mkdtemp(prefix='lab-')
        self.addCleanup(shutil.rmtree, self.base)
        patch = mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.base)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_place_is_taken_once_and_free_again(self):
        one, other = place.Place('a'), place.Place('b')
        held = one.take()
        self.assertIsNotNone(held)
        self.assertIsNone(place.Place('a').take())
        self.assertTrue(one.taken())
        also = other.take()
        self.assertEqual([p.name for p in place.all_taken()], ['a', 'b'])
        one.leave()
        os.close(held)
        self.assertEqual([p.name for p in place.all_taken()], ['b'])
        other.leave()
        os.close(also)
        self.assertEqual(os.listdir(place.base()), [])

    def test_what_a_crash_left_is_removed(self):
        one = place.Place('a')
        os.close(one.take())
        (one.directory / 'port0').touch()
        self.assertFalse(one.taken())
        self.assertEqual(os.listdir(place.base()), [])
        os.close(one.take())
        (one.directory / 'port0').touch()
        held = one.take()
        self.assertEqual(os.listdir(one.directory), [])
        os.close(held)

    def test_names_that_are_no_file_names_are_refused(self):
        for name in ('', '../a', 'a/b', '.a', 'a' * 17, 'a,b'):
            with self.assertRaises(LabError, msg=name):
                place.Place(name)

    def test_directories_that_sockets_cannot_be_in_are_refused(self):
        for name in ('x' * 80, 'a,b'):
            path = Path(self.base, name)
            path.mkdir()
            with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(path)):
                with self.assertRaisesRegex(LabError, 'TMPDIR'):
                    place.base()

    def test_sockets_of_the_longest_lab_fit_in_the_longest_directory(self):
        top = Path(self.base, 'x')
        while True:
            top.mkdir()
            with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(top)):
                try:
                    its = place.Place('n' * place.NAME_MAX)
                except LabError as e:
                    self.assertRegex(str(e), 'has 73 bytes, .*at most 72')
                    break
            its.directory.mkdir(parents=True)
            # --wire shm has a socket with the adapter's MAC address as name.
            for name in '52:54:00:00:01:01', 'control', 'port999':
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.bind(str(its.directory / name))
            top = top.with_name(top.name + 'x')

    def test_clients_can_connect_when_a_lab_says_that_it_is_up(self):
        here = place.Place('here')
        held = here.take()
        its = keeper.Keeper(here, Plan(1))

        def ready():
            client.connect(here).sock.close()
            its.stop.set()
        its.serve(ready)
        self.assertTrue(its.stop.is_set())
        os.close(held)


COMMANDS = (['up', '1', '--share', ''], ['run', 'true'], ['shell', '1'],
            ['console', '1'], ['qmp', '1', 'stop'],
            ['top', '-n', '1'], ['link', '1.1', 'down'], ['pcap', 'off'],
            ['impair', 'off'], ['status'], ['--name', 'default', 'status'],
            ['down'])
NOBODY = 65534


class Squatters(unittest.TestCase):
    """Another user has made what looks like a lab that is up."""

    def setUp(self):
        self.top = Path(tempfile.mkdtemp(prefix='lab-'))
        self.addCleanup(shutil.rmtree, self.top)
        patch = mock.patch.dict(os.environ, TMPDIR=str(self.top))
        patch.start()
        self.addCleanup(patch.stop)
        os.environ.pop('XDG_RUNTIME_DIR', None)
        tempfile.tempdir = None     # what it has of TMPDIR
        self.addCleanup(setattr, tempfile, 'tempdir', None)
        self.base = self.top / f'vrdma-lab-{os.getuid()}'
        self.lab = self.base / 'default'
        self.lock = self.base / 'default.lock'
        self.lab.mkdir(mode=0o700, parents=True)
        self.base.chmod(0o700)
        self.lock.touch(0o600)
        held = place.Place('default').take()
        self.addCleanup(os.close, held)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.lab / 'control'))
        (self.lab / 'control').chmod(0o600)

    def put_link(self, path):
        """Replace something by a symbolic link."""
        real = self.top / f'real-{path.name}'
        path.rename(real)
        path.symlink_to(real)

    @staticmethod
    def chown(path):
        os.chown(path, NOBODY, -1, follow_symlinks=False)

    @staticmethod
    def call(words):
        """(exit code, what it said); it must not connect."""
        said = io.StringIO()
        with mock.patch.object(cli, 'check', lambda its: its), \
                mock.patch.object(cli, 'keep'), \
                mock.patch.object(client, 'socket') as connection, \
                mock.patch('sys.stderr', said):
            rc = cli.main(words)
            connection.socket.assert_not_called()
            return rc, said.getvalue()

    def refused(self, change, path, text):
        change(path)
        for words in COMMANDS:
            with self.subTest(f'{text}: {" ".join(words)}'):
                rc, said = self.call(words)
                self.assertNotEqual(rc, 0)
                self.assertRegex(said, f'{path}.* {text}')

    def test_links_are_refused(self):
        for path in (self.base, self.lock):
            with self.subTest(path.name):
                self.refused(self.put_link, path, 'is a symbolic link')
                path.unlink()
                (self.top / f'real-{path.name}').rename(path)

    def test_directories_for_all_are_refused(self):
        for mode in (0o777, 0o770, 0o755):
            self.refused(lambda path, mode=mode: path.chmod(mode), self.base,
                         f'has mode {mode:04o}')

    def test_what_belongs_to_another_user_is_refused(self):
        if os.getuid():
            self.skipTest('only root can give files away')
        self.refused(self.chown, self.base, r'belongs to .*\(uid 65534\)')

    def test_a_directory_that_others_could_exchange_is_refused(self):
        self.refused(lambda _: self.top.chmod(0o777), self.top,
                     'has mode 0777: another user could exchange')
        self.top.chmod(0o1777)
        place.Place('default')

    def test_what_clients_talk_to_is_their_own(self):
        control = self.lab / 'control'
        for change, path, text in (
                (self.put_link, control, 'is a symbolic link'),
                (lambda path: path.chmod(0o755), control, 'has mode 0755'),
                (self.put_link, self.lab, 'is a symbolic link'),
                (lambda path: path.chmod(0o711), self.lab, 'has mode 0711')):
            with self.subTest(f'{path.name} {text}'):
                change(path)
                with self.assertRaisesRegex(LabError, f'{path} {text}'):
                    client.connect(place.Place('default'))
                if path.is_symlink():
                    path.unlink()
                    (self.top / f'real-{path.name}').rename(path)
                path.chmod(0o700)

    def test_what_a_lock_leads_to_stays_as_it_is(self):
        victim = self.top / 'victim'
        for words in COMMANDS:
            for text in ('mine', None):
                victim.unlink(missing_ok=True)
                if text:
                    victim.write_text(text, encoding='ascii')
                self.lock.unlink(missing_ok=True)
                self.lock.symlink_to(victim)
                with self.subTest(words, text=text):
                    self.assertNotEqual(self.call(words)[0], 0)
                    self.assertTrue(self.lock.is_symlink())
                    self.assertEqual(victim.exists(), bool(text))

    def test_a_runtime_directory_of_another_user_is_not_taken(self):
        runtime = self.top / 'runtime'
        runtime.mkdir()
        with mock.patch.dict(os.environ, XDG_RUNTIME_DIR=str(runtime)):
            self.assertEqual(place.base(), runtime / 'vrdma-lab')
            if os.getuid():
                self.skipTest('only root can give files away')
            self.chown(runtime)
            self.assertEqual(place.base(), self.base)


UP = """
import os, sys, time
from unittest import mock
sys.path.insert(0, sys.argv[1])
from vrdma_lab import cli, keeper, place
def boot(its):
    its.logs.mkdir(exist_ok=True)
    with open(place.base() / 'booting', 'w', encoding='ascii') as f:
        f.write(str(os.getpid()))
    time.sleep(int(sys.argv[2]))
def do_status(its, wire, _):
    wire.send(lab=its.place.name, guests=[], network=True)
with mock.patch.object(cli, 'check', lambda plan: plan), \\
        mock.patch.object(cli, 'show'), \\
        mock.patch.object(keeper.Keeper, 'do_status', do_status), \\
        mock.patch.object(keeper.Keeper, 'boot', boot):
    sys.exit(cli.main([*sys.argv[3:], 'up', '1', '--share', '']))
"""


class Keepers(unittest.TestCase):
    """Keepers without guests."""

    def setUp(self):
        self.top = tempfile.mkdtemp(prefix='lab-')
        self.addCleanup(shutil.rmtree, self.top)
        patch = mock.patch.dict(os.environ, XDG_RUNTIME_DIR=self.top)
        patch.start()
        self.addCleanup(patch.stop)

    @staticmethod
    def until(condition):
        end = time.monotonic() + 60
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    @staticmethod
    def kill(pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    @staticmethod
    def heed_signals():
        """What a shell or nohup(1) has put in the background ignores some
        signals."""
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)

    def boot(self, *words, seconds=600, **options):
        """The process of up, whose keeper boots guests."""
        up = subprocess.Popen(
            [sys.executable, '-B', '-c', UP, sys.path[0], str(seconds),
             *words], text=True, stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL, preexec_fn=self.heed_signals, **options)
        self.addCleanup(up.stderr.close)
        self.addCleanup(up.wait)
        self.addCleanup(up.kill)
        booting = place.base() / 'booting'
        self.assertTrue(self.until(lambda: booting.exists() and
                                   booting.stat().st_size))
        self.addCleanup(self.kill, int(booting.read_text(encoding='ascii')))
        booting.unlink()
        return up

    def test_one_ends_with_the_command_that_waits_for_it(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP,
                       signal.SIGKILL):
            with self.subTest(number):
                up = self.boot()
                up.send_signal(number)
                up.wait(60)
                its = place.Place('default')
                if number == signal.SIGKILL:
                    self.assertTrue(self.until(lambda: not its.taken()))
                self.assertFalse(its.taken())

    def test_down_ends_one(self):
        up = self.boot()
        self.assertTrue(place.Place('default').taken())
        self.assertEqual(cli.main(['down']), 0)
        self.assertFalse(place.Place('default').taken())
        said = up.communicate(timeout=60)[1]
        self.assertEqual(up.returncode, 1)
        self.assertIn('did not come up: interrupted', said)

    def test_others_say_how_to_end_it(self):
        self.boot()
        with self.assertRaisesRegex(LabError, 'not up yet.*vrdma-lab down'):
            client.connect(place.Place('default'))

    def up(self, *words, **options):
        """Bring up a lab without guests."""
        self.assertEqual(self.boot(*words, seconds=0, **options).wait(60), 0)

    def test_one_that_boots_hides_no_other_from_status(self):
        self.up()
        self.boot('--name', 'other')
        with mock.patch('sys.stdout', io.StringIO()) as out, \
                mock.patch('sys.stderr', io.StringIO()) as said:
            self.assertEqual(cli.main(['status', '--json']), 0)
        self.assertEqual([its['lab'] for its in json.loads(out.getvalue())],
                         ['default'])
        self.assertIn('"other" is not up yet', said.getvalue())
        self.assertEqual(cli.main(['down']), 0)
        self.boot('--name', 'third')
        with mock.patch('sys.stdout', io.StringIO()), \
                mock.patch('sys.stderr', io.StringIO()):
            self.assertEqual(cli.main(['status', '--json']), 1)

    def test_down_ends_a_lab_whose_logs_it_cannot_copy(self):
        its = place.Place('default')
        its.base.mkdir(mode=0o700)
        (its.base / 'file').touch()
        for to, rc, said in ((its.directory / 'logs', 0, '^$'),
                             (its.base / 'file', 1, 'cannot copy the logs'),
                             (its.base / 'copy', 0, '^$')):
            self.up()
            (its.directory / 'logs' / 'console').touch()
            with self.subTest(to), \
                    mock.patch('sys.stderr', io.StringIO()) as err:
                self.assertEqual(cli.main(['down', '--logs', str(to)]), rc)
                self.assertRegex(err.getvalue(), said)
                self.assertFalse(its.taken())
        self.assertTrue((its.base / 'copy' / 'console').exists())

    def test_one_has_no_descriptors_of_the_caller(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.up(pass_fds=[writer])
        os.close(writer)
        self.assertEqual(select.select([reader], [], [], 10)[0], [reader])
        self.assertEqual(cli.main(['down']), 0)


if __name__ == '__main__':
    tap.main()
