#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What of vrdma-lab needs no guests: what a lab is to be. Its places and its
command line are in vrdma_lab_places.py and vrdma_lab_commands.py."""
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import tap

TOP = Path(__file__).resolve().parents[2]
TOOL = TOP / 'tools' / 'lab'

sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOL))

from guestkit.paths import LabError    # noqa: E402
from vrdma_lab import (    # noqa: E402
    guests, installed, keeper, network, place, plan, taps)
from vrdma_lab.plan import Plan    # noqa: E402


class Impairments(unittest.TestCase):
    def test_each_is_a_property_in_its_unit(self):
        self.assertEqual(
            network.parse('loss=1%,dup=0.25%,delay=1.5ms,seed=7'),
            {'drop': 100, 'dup': 25, 'delay': 1500, 'seed': 7})
        self.assertEqual(
            network.parse('rate=10gbit,delay=2s,reorder=100%,corrupt=0%'),
            {'rate': 10000000, 'delay': 2000000, 'reorder': 10000,
             'corrupt': 0})

    def test_what_is_wrong_is_named(self):
        for spec in ('loss=1', 'loss=101%', 'loss=0.004%', 'loss=-1%',
                     'delay=1', 'delay=1m', 'delay=0us', 'delay=9999s',
                     'rate=5kb', 'lost=1%', 'seed=x', ''):
            with self.assertRaisesRegex(LabError, 'impair ' + spec):
                network.parse(spec)


class Gone(unittest.TestCase):
    """Requests to a lab whose guests have ended."""

    def setUp(self):
        base = tempfile.TemporaryDirectory(prefix='lab-')
        self.addCleanup(base.cleanup)
        patch = mock.patch.dict(os.environ, XDG_RUNTIME_DIR=base.name)
        patch.start()
        self.addCleanup(patch.stop)
        self.keeper = keeper.Keeper(place.Place('gone'), Plan(2))
        net = network.Network(self.keeper.plan, base.name, None)
        self.addCleanup(lambda: [end.close() for end in net.ends])
        self.keeper.networks = [net]
        self.keeper.guests = {
            number: mock.Mock(index=number, fate=None) for number in (1, 2)}
        net.guests = self.keeper.guests

    def end(self, number):
        self.keeper.guests[number].fate = 'QEMU was killed by SIGKILL'

    def impair(self, *guests):
        """The answer of the keeper."""
        wire = mock.Mock()
        self.keeper.do_impair(wire, {'guests': [*guests], 'adapter': None,
                                     'spec': 'loss=1%'})
        return wire.send.call_args.kwargs['done']

    def test_capture_needs_a_running_guest(self):
        net = self.keeper.networks[0]
        self.end(1)
        net.start_capture('file')
        self.keeper.guests[2].qmp.assert_called_once()
        net.capture = None
        self.end(2)
        with self.assertRaisesRegex(
                LabError, 'pcap: no guest runs .*guest 1: QEMU was killed by '
                'SIGKILL, guest 2: .*vrdma-lab down'):
            net.start_capture('file')

    def test_impairments_need_a_running_guest(self):
        self.end(2)
        self.assertEqual(self.impair(), 'to guest 1: loss=1%')
        for guests in (2,), (1, 2):
            self.keeper.guests[1].qmp.reset_mock()
            with self.assertRaisesRegex(LabError,
                                        'guest 2: QEMU was killed by SIGKILL'):
                self.impair(*guests)
            self.keeper.guests[1].qmp.assert_not_called()
        self.end(1)
        with self.assertRaisesRegex(
                LabError, 'impair: no guest runs .*vrdma-lab down'):
            self.impair()


class Bridges(unittest.TestCase):
    def test_memory_is_a_size_with_which_a_guest_boots(self):
        least = plan.LEAST_MEMORY
        for text in ('2G', '2g', '1.5G', f'{least}', f'{least}M',
                     f'{least << 10}K'):
            plan.check_memory(text)
        for text, said in (
                ('10M', f'--mem 10M: .* at least {least}M'),
                ('2K', 'at least'), ('0', 'at least'),
                (f'{least - 1}', 'at least'), ('', 'expected a number'),
                ('-1G', 'expected a number'), ('2GB', 'expected a number'),
                ('much', 'expected a number')):
            with self.assertRaisesRegex(LabError, said, msg=text):
                plan.check_memory(text)

    def judge(self, guests=2, mtu=1450, **options):
        """A plan, when all interfaces have this MTU."""
        its = Plan(guests, **options)
        with mock.patch.object(taps, 'mtu', return_value=mtu):
            plan.check_network(its)
        return its

    def test_guests_have_the_numbers_and_the_mtu_of_their_network(self):
        its = self.judge(bridge='br0', first=3, of=6)
        self.assertEqual((list(its.numbers), its.of, its.mtu),
                         ([3, 4], 6, 1450))
        its = self.judge(taps=['tap1', 'tap2'])
        self.assertEqual((list(its.numbers), its.of, its.mtu),
                         ([1, 2], 2, 1450))
        self.assertEqual(self.judge().mtu, 9000)

    def test_each_stack_requires_what_it_needs(self):
        """A source tree in which nothing has been built, or only a part"""
        with tempfile.TemporaryDirectory(prefix='lab-') as base, \
                mock.patch.multiple(
                    plan, INSTALLED=False, MODULES=Path(base),
                    PROVIDER=Path(base), qemu_binary=mock.DEFAULT,
                    choose_kernel=lambda series: series or '6.1'):
            (Path(base) / '6.1').mkdir()
            for driver, stack in (('virtio_rdma', 'virtio-rdma'),
                                  ('vmw_pvrdma', 'pvrdma')):
                with self.assertRaisesRegex(
                        LabError, f'no driver {driver} for Linux 6.1: run '
                        f'"make guest ADAPTER={stack} SERIES=6.1"'):
                    plan.check(Plan(2, stack))
                (Path(base) / '6.1' / f'{driver}.ko').touch()
            with self.assertRaisesRegex(LabError, 'no provider: run "make'):
                plan.check(Plan(2))
            for stack in ('pvrdma', 'rxe'):
                self.assertEqual(plan.check(Plan(2, stack)).series, '6.1')
            with self.assertRaisesRegex(LabError, 'rxe uses its NIC'):
                plan.check(Plan(2, 'rxe', 'shm'))
            with self.assertRaisesRegex(
                    LabError, '--adapter pvrdma: .*without --image'):
                plan.check(Plan(2, 'pvrdma', images=['disk.qcow2']))

    def test_what_does_not_go_together_is_refused(self):
        for text, options in (
                ('--wire shm', {'bridge': 'br0', 'wire': 'shm'}),
                ('--first and --of', {'first': 2}),
                ('--first and --of', {'of': 4}),
                ('--tap tap1: got 1; .*once for each guest, 2 in total',
                 {'taps': ['tap1']}),
                ('--bridge br0 and --tap a: expected only one',
                 {'taps': ['a', 'b'], 'bridge': 'br0'}),
                ('3 to 4 of 3', {'bridge': 'br0', 'first': 3, 'of': 3}),
                ('at most 254', {'bridge': 'br0', 'first': 254}),
                ('0 to 1', {'bridge': 'br0', 'first': 0}),
                ('MTU of 1000', {'bridge': 'br0', 'mtu': 1000}),
                ('--adapters 0: a guest has 1 to 8', {'adapters': 0}),
                ('--adapters 9: a guest has 1 to 8', {'adapters': 9}),
                ('--adapters 2: .*without --bridge and --tap',
                 {'bridge': 'br0', 'adapters': 2}),
                ('--adapters 2: .*without --bridge and --tap',
                 {'taps': ['a', 'b'], 'adapters': 2})):
            with self.assertRaisesRegex(LabError, text, msg=options):
                self.judge(**options)
        self.assertEqual(list(self.judge(adapters=8).adapter_numbers),
                         list(range(1, 9)))

    def test_interfaces_have_an_mtu_or_are_missing(self):
        self.assertGreaterEqual(taps.mtu('lo'), 1500)
        for name in ('no-such-link', 'x' * 16):
            with self.assertRaisesRegex(LabError, name):
                taps.mtu(name)

    def test_guests_of_two_labs_have_other_addresses(self):
        its = Plan(2, bridge='br0')
        with mock.patch.object(taps, 'on_bridge', return_value=0):
            one, two = (network.Network(its, '', None) for _ in range(2))
        macs = {net.mac(i) for net in (one, two) for i in (1, 2)}
        self.assertEqual(len(macs), 4)
        for mac in macs:
            # Of one station, and not registered
            self.assertEqual(int(mac[:2], 16) & 3, 2, mac)


PROGRAMS = {'tools/lab/vrdma-lab', 'tools/lab/setup-guest'}


def files_of_tool():
    """The files of the command, as paths in the source tree."""
    return {path.relative_to(TOP).as_posix() for path in TOOL.rglob('*')
            if path.is_file() and '__pycache__' not in path.parts}


def imported(path):
    """The packages that a file imports, except those of its own package."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.split('.')[0])
        elif isinstance(node, ast.Import):
            found.update(alias.name.split('.')[0] for alias in node.names)
    return found


def siblings(path):
    """The modules of its own package that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found.update([node.module] if node.module else
                         [alias.name for alias in node.names])
    return found


class Kernels(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix='lab-'))
        self.addCleanup(shutil.rmtree, self.root)

    def add(self, release, image='boot/vmlinuz-{}', module='virtio_rdma'):
        modules = self.root / 'lib' / 'modules' / release
        (modules / 'updates' / 'dkms').mkdir(parents=True)
        if module:
            (modules / 'updates' / 'dkms' / f'{module}.ko.xz').touch()
        if image:
            path = self.root / image.format(release)
            path.parent.mkdir(exist_ok=True)
            path.touch()

    def choose(self, series='', driver='virtio_rdma'):
        return installed.choose(series, driver, self.root)

    def test_the_newest_with_the_driver_is_taken(self):
        self.add('6.1.0-9-amd64')
        self.add('6.1.0-56-amd64')
        self.add('6.12.1-amd64', module='vmw_pvrdma')
        self.add('6.18.1-amd64', module='')
        self.add('7.0.1-amd64', image='')
        self.assertEqual(self.choose(), ('6.1', '6.1.0-56-amd64'))
        self.assertEqual(self.choose(driver='vmw_pvrdma'),
                         ('6.12', '6.12.1-amd64'))
        self.assertEqual(self.choose(driver=''), ('6.18', '6.18.1-amd64'))

    def test_an_image_may_be_with_the_modules(self):
        self.add('7.1.2+deb14-amd64', image='lib/modules/{}/vmlinuz')
        self.add('6.12.1-amd64')
        self.assertEqual(self.choose()[1], '7.1.2+deb14-amd64')
        self.assertEqual(self.choose('6.12')[1], '6.12.1-amd64')

    def test_what_is_missing_is_told(self):
        with self.assertRaisesRegex(LabError, 'linux-image-amd64'):
            self.choose()
        self.add('6.1.0-56-amd64', module='')
        with self.assertRaisesRegex(LabError, 'dkms status'):
            self.choose()
        with self.assertRaisesRegex(
                LabError, 'no kernel that has the module vmw_pvrdma'):
            self.choose(driver='vmw_pvrdma')
        with self.assertRaisesRegex(LabError, 'no kernel 6.12 is installed'):
            self.choose('6.12')


class Guests(unittest.TestCase):
    def test_gid_of_an_address_is_that_of_sysfs(self):
        # Python's own form of such an address depends on its version.
        self.assertEqual(guests.gid_of('10.0.0.3'),
                         '0000:0000:0000:0000:0000:ffff:0a00:0003')

    @staticmethod
    def arguments(**options):
        """QEMU's, of a guest of a lab of two."""
        its = Plan(2, **options)
        with tempfile.TemporaryDirectory(prefix='lab-') as base:
            nets = [network.Network(its, base, Path(base), number)
                    for number in its.adapter_numbers]
            for net in nets:
                net.directory = 'where'
            found = guests.LabGuest(1, its, nets, Path(base), object()).devices
        return re.sub(r'fd=\d+|addr.str=\d+', '', ' '.join(found))

    def test_each_stack_has_its_nic_and_its_adapter(self):
        for stack, has, lacks in (
                ('virtio-rdma', r'virtio-net-pci,.*virtio-rdma-pci,netdev=n0,'
                 'addr=4.1,id=rdma0', 'pvrdma'),
                ('pvrdma', r'netdev=n0,mtu=9000 -device vmxnet3,.*addr=4.0,.* '
                 'pvrdma,rdmadev=r0,addr=4.1,id=rdma0', 'virtio-(net|rdma)'),
                ('rxe', 'virtio-net-pci', 'rdma0')):
            found = self.arguments(stack=stack)
            self.assertRegex(found, has)
            self.assertNotRegex(found, lacks)
        self.assertRegex(self.arguments(stack='pvrdma', wire='shm', mtu=1500),
                         'netdev=n0,shm-dir=where .* pvrdma,rdmadev=r0')
        self.assertRegex(self.arguments(stack='pvrdma', mtu=1500),
                         '-device pvrdma,netdev=n0')

    def test_shares_take_the_slots_that_adapters_leave(self):
        found = self.arguments(shares=['/a,b', '/c'], adapters=2)
        self.assertRegex(found, r'addr=10\.1,.*'
                         r'path=/a,,b,.*mount_tag=share0.*'
                         r'path=/c,.*mount_tag=share1$')

    def test_each_adapter_has_its_netdev_slot_and_mac_address(self):
        mac = 'mac=52:54:00:00:01:01'
        for stack, options, has in (
                ('virtio-rdma', {},
                 f'virtio-net-pci,netdev=n1,addr=10.0,.*{mac},.*'
                 'virtio-rdma-pci,netdev=n1,addr=10.1,id=rdma1'),
                ('virtio-rdma', {'wire': 'shm'},
                 'rdma-roce,id=r1,netdev=n1,shm-dir=where '
                 '-device virtio-rdma-pci,rdmadev=r1,addr=10.1'),
                ('pvrdma', {}, 'rdma-roce,id=r1,netdev=n1,mtu=9000 .*vmxnet3,'
                 f'netdev=n1,addr=10.0,.*{mac},.*'
                 'pvrdma,rdmadev=r1,addr=10.1,id=rdma1'),
                ('rxe', {}, f'virtio-net-pci,netdev=n1,addr=10.0,.*{mac}')):
            one = self.arguments(stack=stack, **options)
            two = self.arguments(stack=stack, adapters=2, **options)
            self.assertRegex(two, has)
            # Adapter 1 is the same with and without others.
            self.assertNotIn('n1', one)
            for word in one.split():
                self.assertIn(word, two.split())
        last = self.arguments(adapters=plan.MOST_ADAPTERS)
        self.assertIn('netdev=n7,addr=16.1,id=rdma7', last)

    def test_what_tests_are_told_by_the_environment_is_not_for_them(self):
        with mock.patch.dict(os.environ):
            for name in ('WIRE', 'IOTHREAD', 'QUEUES'):
                os.environ.pop(name, None)
            plain, by_memory = self.arguments(), self.arguments(wire='shm')
            self.assertNotIn('shm-dir', plain)
            self.assertIn('shm-dir=where', by_memory)
            for name, value in (('WIRE', 'shm'), ('IOTHREAD', '1'),
                                ('QUEUES', 'virtqueue')):
                with mock.patch.dict(os.environ, {name: value}):
                    self.assertEqual(self.arguments(), plain, name)


class Installed(unittest.TestCase):
    def test_it_imports_only_its_packages_and_pythons(self):
        ours = {'guestkit', 'vrdma_lab'}
        for name in files_of_tool():
            if name.endswith('.py') or name in PROGRAMS:
                self.assertLessEqual(imported(TOP / name),
                                     ours | sys.stdlib_module_names, name)

    def test_it_names_no_file_of_tests(self):
        for name in files_of_tool():
            text = (TOP / name).read_text(encoding='utf-8')
            self.assertFalse(re.search(r"\btests/|'tests'", text), name)

    def test_modules_of_guestkit_import_what_its_list_has_before_them(self):
        kit = TOOL / 'guestkit'
        told = (kit / '__init__.py').read_text(encoding='utf-8')
        order = re.findall(r'^([a-z]+)  +\S', told, re.M)
        self.assertEqual(sorted(order), sorted(
            path.stem for path in kit.glob('*.py') if path.stem[0] != '_'))
        for number, name in enumerate(order):
            self.assertLessEqual(siblings(kit / f'{name}.py'),
                                 set(order[:number]), name)

    def test_its_package_has_all_files_of_it(self):
        rules = (TOP / 'packaging/debian/rules').read_text(encoding='utf-8')
        manuals = TOP / 'packaging/debian/vrdma-lab.manpages'
        named = re.findall(r'\btools/lab/[\w/.*-]+',
                           rules + manuals.read_text(encoding='utf-8'))
        taken = {path.relative_to(TOP).as_posix()
                 for pattern in named for path in TOP.glob(pattern)}
        # For source trees alone
        self.assertEqual(taken, files_of_tool() - {'tools/lab/setup-guest'})

    def test_it_runs_without_the_source_tree(self):
        with tempfile.TemporaryDirectory(prefix='lab-') as base:
            where, runtime = Path(base, 'vrdma-lab'), Path(base, 'runtime')
            runtime.mkdir(mode=0o700)
            shutil.copytree(TOOL, where, ignore=shutil.ignore_patterns(
                '__pycache__'))
            done = subprocess.run(
                [str(where / 'vrdma-lab'), 'status'], text=True,
                env={**os.environ, 'XDG_RUNTIME_DIR': str(runtime)},
                capture_output=True, check=False)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stderr,
                             'vrdma-lab: no lab is up: run "vrdma-lab up 2"\n')

    def test_it_takes_what_packages_have_if_it_is_one(self):
        code = ('import sys; sys.path.insert(0, sys.argv[1]); '
                'from guestkit.paths import INSTALLED; print(INSTALLED)')
        with tempfile.TemporaryDirectory(prefix='lab-') as base:
            (Path(base) / 'guestkit').mkdir()
            for name in ('__init__', 'paths'):
                shutil.copy(TOOL / 'guestkit' / f'{name}.py',
                            Path(base) / 'guestkit')
            shutil.copy(TOP / 'VERSION', base)
            clean = {name: value for name, value in os.environ.items()
                     if name != 'BUILD_DIR'}
            for where, extra, expected in (
                    (base, {}, True), (str(TOOL), {}, False),
                    (base, {'BUILD_DIR': base}, False)):
                done = subprocess.run(
                    [sys.executable, '-B', '-c', code, where], text=True,
                    env={**clean, **extra}, capture_output=True, check=True)
                self.assertEqual(done.stdout.strip(), str(expected))


if __name__ == '__main__':
    tap.main()
