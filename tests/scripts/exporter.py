#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-exporter: its metrics of monitors that answer, hang, hang up or fail.
The monitors here are threads that speak QMP."""
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import tap

sys.dont_write_bytecode = True
TOP = Path(__file__).resolve().parents[2]
EXPORTER = TOP / 'tools/exporter/vrdma-exporter'
GREETING = {'QMP': {'version': {}, 'capabilities': []}}
EVENT = {'event': 'RTC_CHANGE', 'timestamp': {'seconds': 1}, 'data': {}}
ADAPTER = {
    'device': 'rdma0', 'path': '/machine/peripheral/rdma0', 'driver': True,
    'backend': {'type': 'rdma-roce', 'path': '/objects/r0'},
    'port': {'active': True, 'active-mtu': 4096, 'mac': '52:54:00:00:00:01'},
    'count': {'qp': {'used': 3, 'max': 4096}, 'mr': {'used': 2, 'max': 9}},
    'counters': {'tx-packets': 17, 'rnr-naks-sent': 4}, 'qp-errors': 5}
UNNAMED = {**{key: value for key, value in ADAPTER.items()
              if key not in ('device', 'counters')},
           'path': '/machine/peripheral-anon/device[1]'}


def answer(sock, result):
    """Serve one client: greeting, capabilities, and a result."""
    with sock, sock.makefile('rwb') as f:
        for message in (GREETING, {'return': {}}, result):
            if message is not GREETING:
                json.loads(f.read1())
                f.write(json.dumps(EVENT).encode() + b'\r\n')
            f.write(json.dumps(message).encode() + b'\r\n')
            f.flush()


class Exporter(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix='vrdma-')
        self.addCleanup(held.cleanup)
        self.top = Path(held.name)

    def monitor(self, name, serve):
        """Listen as a monitor, and serve each client in turn."""
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        sock.bind(str(self.top / name))
        sock.listen()

        def loop():
            while True:
                try:
                    serve(sock.accept()[0])
                except OSError:
                    return
        threading.Thread(target=loop, daemon=True).start()

    def start(self, *words):
        """Start an exporter on any free port: (process, its address)"""
        with socket.socket() as sock:
            sock.bind(('127.0.0.1', 0))
            port = sock.getsockname()[1]
        process = subprocess.Popen(
            [str(EXPORTER), '--listen', str(port), *map(str, words)],
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, f'http://127.0.0.1:{port}/metrics'

    def scrape(self, url):
        """Return {metric with its labels: value}"""
        for _ in range(100):
            try:
                with urllib.request.urlopen(url, timeout=20) as f:
                    text = f.read().decode()
                break
            except urllib.error.URLError:    # not listening yet
                threading.Event().wait(0.1)
        return {name: float(value) for name, value in
                re.findall(r'^(vrdma_\S+(?: \S+)*) (\S+)$', text, re.M)}

    def test_adapters_of_several_machines(self):
        self.monitor('a.qmp', lambda sock: answer(sock, {'return':
                                                         [ADAPTER, UNNAMED]}))
        self.monitor('b.qmp', lambda sock: answer(sock, {'return': []}))
        _, url = self.start(f'guest1={self.top}/a.qmp', f'{self.top}/b.qmp')
        for _ in range(2):
            got = self.scrape(url)
            at = 'adapter="rdma0",vm="guest1"'
            for name, value in (
                    ('vrdma_up{vm="guest1"}', 1), ('vrdma_up{vm="b"}', 1),
                    (f'vrdma_port_active{{{at}}}', 1),
                    (f'vrdma_port_active_mtu_bytes{{{at}}}', 4096),
                    (f'vrdma_driver_loaded{{{at}}}', 1),
                    (f'vrdma_qp_errors_total{{{at}}}', 5),
                    (f'vrdma_tx_packets_total{{{at}}}', 17),
                    (f'vrdma_rnr_naks_sent_total{{{at}}}', 4)):
                self.assertEqual(got.get(name), value, name)
            self.assertIn(
                'vrdma_objects{adapter="rdma0",kind="qp",vm="guest1"}', got)
            self.assertEqual(sum('device[1]' in name and '_total' in name
                                 for name in got), 1)

    def test_a_directory_has_the_monitors(self):
        _, url = self.start(self.top)
        self.assertEqual(self.scrape(url), {})
        self.monitor('c.sock', lambda sock: answer(sock, {'return': []}))
        (self.top / 'file').touch()
        self.assertEqual(self.scrape(url), {'vrdma_up{vm="c"}': 1})

    def test_monitors_of_one_name_keep_apart(self):
        for name in ('d.qmp', 'd.sock', 'e.qmp'):
            self.monitor(name, lambda sock: answer(sock, {'return': []}))
        _, url = self.start(self.top)
        self.assertEqual(self.scrape(url), {
            f'vrdma_up{{vm="{name}"}}': 1 for name in
            (f'{self.top}/d.qmp', f'{self.top}/d.sock', 'e')})

    def test_a_scrape_ends_with_monitors_that_send_forever(self):
        def trickle(sock):
            while True:
                sock.sendall(b' ')
                threading.Event().wait(0.5)

        def flood(sock):
            while True:
                sock.sendall(bytes(1 << 16))
        self.monitor('trickles', trickle)
        self.monitor('floods', flood)
        self.monitor('lives', lambda sock: answer(sock, {'return': []}))
        _, url = self.start(self.top)
        self.assertEqual(self.scrape(url), {
            f'vrdma_up{{vm="{name}"}}': name == 'lives' for name in
            ('trickles', 'floods', 'lives')})

    def test_one_bad_monitor_does_not_hide_others(self):
        wrong = {'error': {'class': 'CommandNotFound', 'desc': 'no command'}}
        held = []
        self.monitor('hangs', held.append)
        self.monitor('ends', lambda sock: sock.close())
        self.monitor('fails', lambda sock: answer(sock, wrong))
        self.monitor('lives', lambda sock: answer(sock, {'return': []}))
        long = 'x' * 300
        process, url = self.start(self.top, f'gone={self.top}/none', long)
        for _ in range(2):
            self.assertEqual(self.scrape(url), {
                f'vrdma_up{{vm="{name}"}}': name == 'lives' for name in
                ('hangs', 'ends', 'fails', 'lives', 'gone', long)})
        process.terminate()
        self.assertEqual(process.wait(20), 0)
        said = process.stderr.read()
        # Each once
        self.assertEqual(said.count('\n'), 5, said)
        for text in ('hangs: .*timed out', 'ends: .*', 'no command',
                     'gone: .*No such file', 'xx: .*path too long'):
            self.assertRegex(said, text)
        for sock in held:
            sock.close()

    def test_wrong_arguments_are_named(self):
        for said, words in (
                ("got 'x:y'", ('--listen', 'x:y', 'a')),
                ("got '65536'", ('--listen', '65536', 'a')),
                ('required: SOCKET', ()),
                ('--listen 192.0.2.1:9: Cannot assign',
                 ('--listen', '192.0.2.1:9', 'a'))):
            done = subprocess.run([str(EXPORTER), *words], text=True,
                                  capture_output=True, check=False, timeout=20)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(said, done.stderr)


if __name__ == '__main__':
    tap.main()
