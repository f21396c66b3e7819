#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""virtio-rdma-server: what it says about wrong arguments, what it prints, and
its sockets. The QEMU here is a program that only listens."""
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import tap

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
SERVER = TOP / 'tools/server/virtio-rdma-server'
QEMU = '''#!/usr/bin/python3
import re, signal, socket, sys, time
print(*sys.argv[1:], file=open(sys.argv[0] + '.words', 'w'), flush=True)
if 'fail' in ' '.join(sys.argv):
    sys.exit(5)
socks = []
for path in re.findall(r'(?:type=unix|id=rdma),path=([^, ]*)',
                       ' '.join(sys.argv)):
    socks.append(socket.socket(socket.AF_UNIX))
    socks[-1].bind(path)
time.sleep(0.1)
for sock in socks:
    sock.listen()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.pause()
'''
NETDEV = 'user'


class Server(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix='vrdma-')
        self.addCleanup(held.cleanup)
        self.top = Path(held.name)
        self.qemu = self.top / 'qemu'
        self.qemu.write_text(QEMU, encoding='ascii')
        self.qemu.chmod(0o755)
        self.socket = self.top / 'rdma.sock'

    def command(self, *words, netdev=NETDEV, path=None):
        return [str(SERVER), '--qemu', str(self.qemu), '--socket',
                str(path or self.socket), '--netdev', netdev, *words]

    def start(self, *words):
        """Start a server that ends with the test: (process, its lines)"""
        server = subprocess.Popen(self.command(*words), text=True,
                                  stdout=subprocess.PIPE)
        self.addCleanup(server.wait)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        return server, [server.stdout.readline() for _ in range(2)]

    def words(self):
        return Path(f'{self.qemu}.words').read_text(encoding='ascii').split()

    def refused(self, said, *words, command=None, env=None, **which):
        done = subprocess.run(command or self.command(*words, **which),
                              text=True, capture_output=True, check=False,
                              timeout=20, env=env)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertRegex(done.stderr, said)

    def test_options_that_cannot_be_written_end_the_server(self):
        self.refused('/no/options', '--write-options', '/no/options')
        self.assertFalse(self.socket.exists())

    def test_wrong_arguments_are_named(self):
        for said, words in (
                ('--mtu 20: expected 68 to 65535', ('--mtu', '20')),
                ('--slot 32: expected 0 to 31', ('--slot', '32')),
                ('--mac 52:54: expected six bytes', ('--mac', '52:54')),
                ('--mac 53:.*a group', ('--mac', '53:54:00:00:00:01')),
                ('--qemu /no/qemu: no such program', ('--qemu', '/no/qemu')),
                ("invalid choice: 'rxe'", ('--adapter', 'rxe'))):
            self.refused(said, *words)
        command = self.command()
        at = command.index('--qemu')
        del command[at:at + 2]
        self.refused('server: QEMU=/no/qemu: no such program', command=command,
                     env={**os.environ, 'QEMU': '/no/qemu'})
        self.refused('leave id= out', netdev='tap,id=n0')
        self.refused('expected TYPE,OPTIONS', netdev='')
        self.refused('no directory', path=self.top / 'none/sock')
        self.refused('121 bytes.*limit is 107',
                     path=self.top / ('x' * (116 - len(str(self.top)))))
        self.refused('no comma', path=self.top / 'a,b')
        self.socket.write_text('', encoding='ascii')
        self.refused('is not a socket')

    def test_options_name_both_sockets(self):
        _, lines = self.start('--slot', '10')
        words = shlex.split(''.join(lines))
        self.assertEqual(words[::2], ['-device', '-device'])
        self.assertIn('"addr": "a.0", "multifunction": true', words[1])
        self.assertIn(f'"path": "{self.socket}.nic"', words[1])
        self.assertIn('"addr": "a.1"', words[3])
        self.assertIn(f'"path": "{self.socket}"', words[3])

    def test_options_can_name_a_bus(self):
        _, lines = self.start('--bus', 'rp0')
        words = shlex.split(''.join(lines))
        self.assertIn('"addr": "0.0", "bus": "rp0"', words[1])
        self.assertIn('"addr": "0.1", "bus": "rp0"', words[3])

    def test_options_are_written_to_a_file(self):
        written = self.top / 'options'
        server, lines = self.start('--write-options', str(written))
        server.terminate()
        server.wait(20)
        self.assertEqual(written.read_text(encoding='utf-8'), ''.join(lines))

    def test_sockets_go_with_the_server(self):
        server, _ = self.start()
        self.assertTrue(self.socket.is_socket())
        server.terminate()
        self.assertEqual(server.wait(20), 0)
        self.assertFalse(self.socket.exists())
        self.assertFalse(Path(f'{self.socket}.nic').exists())

    def test_a_vmm_can_connect_at_once(self):
        self.start()
        for path in self.socket, f'{self.socket}.nic':
            with socket.socket(socket.AF_UNIX) as vmm:
                vmm.connect(str(path))

    def test_stale_sockets_do_not_matter(self):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(self.socket))
        _, lines = self.start()
        self.assertTrue(all(lines))

    def test_a_socket_has_one_server(self):
        self.start()
        self.refused('another server uses it')
        self.assertTrue(self.socket.is_socket())

    def test_qemu_ends_with_the_server(self):
        server, _ = self.start()
        path = Path(f'/proc/{server.pid}/task/{server.pid}/children')
        child = int(path.read_text(encoding='ascii'))
        server.send_signal(signal.SIGKILL)
        server.wait()
        for _ in range(200):
            # A process that no one waits for stays as a zombie.
            stat = Path(f'/proc/{child}/stat')
            if not stat.exists() or ') Z' in stat.read_text(encoding='ascii'):
                return
            time.sleep(0.05)
        os.kill(child, signal.SIGKILL)
        self.fail('QEMU goes on')

    def test_failure_of_qemu_is_its_own(self):
        done = subprocess.run(self.command(netdev='fail'), check=False,
                              capture_output=True, timeout=20)
        self.assertEqual((done.returncode, done.stdout), (5, b''))

    def test_addresses_last_and_differ(self):
        macs = []
        for name in ('a', 'a', 'b'):
            self.socket = self.top / name
            server, _ = self.start()
            macs.append(re.search(r'mac=([0-9a-f:]{17})',
                                  ' '.join(self.words()))[1])
            server.terminate()
            server.wait(20)
        self.assertEqual(macs[0], macs[1])
        self.assertNotEqual(macs[0], macs[2])

    def test_adapters_have_their_nics(self):
        for adapter, nic in (('virtio-rdma', 'virtio-net-pci'),
                             ('pvrdma', 'vmxnet3')):
            server, lines = self.start('--adapter', adapter,
                                       '--adapter-options', 'max-qp=64')
            text = ' '.join(self.words())
            for line in lines:
                self.assertEqual('"x-no-posted-writes": true' in line,
                                 adapter == 'pvrdma')
            self.assertIn(f'-device {nic},id=nic,netdev=net0,addr=4.0', text)
            self.assertRegex(text, rf'-device {adapter}\S*,id=rdma,netdev=net0'
                             r',addr=4\.1\S*,max-qp=64')
            server.terminate()
            server.wait(20)

    def test_backends_and_mtu_reach_the_adapter(self):
        for words, said in (
                (('--mtu', '9000'), 'host_mtu=9000'),
                (('--adapter', 'pvrdma', '--mtu', '9000'),
                 '-object rdma-roce,id=roce0,netdev=net0,mtu=9000 -device '
                 'pvrdma,id=rdma,rdmadev=roce0,addr=4.1'),
                (('--object', 'rdma-roce,id=r1,netdev=net0',
                  '--adapter-options', 'rdmadev=r1'),
                 ',id=rdma,addr=4.1,iommu_platform=on,disable-legacy=on,'
                 'poll-max-ns=100000,rdmadev=r1 ')):
            server, _ = self.start(*words)
            self.assertIn(said, ' '.join(self.words()))
            server.terminate()
            server.wait(20)

    def test_vhost_user_has_one_socket(self):
        _, lines = self.start('--protocol', 'vhost-user', '--mac',
                              '52:54:00:00:00:01', '--slot', '7')
        self.assertEqual(
            shlex.split(''.join(lines)),
            ['-chardev',
             f'socket,id=vrdma,path={self.socket},reconnect-ms=1000',
             '-device',
             'vhost-user-rdma-pci,chardev=vrdma,addr=7.1,num_vqs=256,'
             'vq_size=1024'])
        self.assertFalse(Path(f'{self.socket}.nic').exists())
        self.assertIn('-device virtio-rdma-vhost-user,id=rdma,path='
                      f'{self.socket},ring-reset=on,rdmadev=roce0',
                      ' '.join(self.words()))

    def test_vhost_user_counts_virtqueues(self):
        options = ('--protocol', 'vhost-user', '--mac', '52:54:00:00:00:01',
                   '--adapter-options')
        _, lines = self.start(*options, 'max-cq=1,max-qp=4,max-srq=0,'
                              'queue-size=0x100')
        self.assertIn('num_vqs=11,vq_size=256\n', lines[1])
        self.refused('258 virtqueues', *options, 'max-cq=66')
        self.refused('258 virtqueues', *options, 'max-cq=0x42')
        self.refused('max-cq=many: expected a number', *options, 'max-cq=many')

    def test_vhost_user_needs_the_address_of_the_nic(self):
        self.refused('--mac is missing', '--protocol', 'vhost-user')
        self.refused('only virtio-rdma', '--protocol', 'vhost-user',
                     '--adapter', 'pvrdma', '--mac', '52:54:00:00:00:01')


if __name__ == '__main__':
    tap.main()
