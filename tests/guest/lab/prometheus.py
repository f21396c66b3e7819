# SPDX-License-Identifier: GPL-2.0-or-later
"""Run Debian's Prometheus, which scrapes vrdma-exporter."""
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from guestkit.paths import TOP, LabError
from guestkit.vm import die_with_parent

from .runner import Skip

EXPORTER = TOP / 'tools/exporter/vrdma-exporter'
CONFIG = '''global:
  scrape_interval: 1s
scrape_configs:
  - job_name: vrdma
    static_configs:
      - targets: ['127.0.0.1:{}']
'''


def free_port():
    with socket.socket() as sock:
        sock.bind(('127.0.0.1', 0))
        return sock.getsockname()[1]


class Prometheus:
    """A running Prometheus, which listens on a port of 127.0.0.1."""

    def __init__(self, port):
        self.port = port

    def query(self, expression):
        """Run an instant query. Return [(labels, value)]."""
        words = urllib.parse.urlencode({'query': expression})
        with urllib.request.urlopen(
                f'http://127.0.0.1:{self.port}/api/v1/query?{words}',
                timeout=20) as f:
            answer = json.load(f)
        return [(row['metric'], float(row['value'][1]))
                for row in answer['data']['result']]

    def wait_for(self, expression, wanted=lambda rows: rows, seconds=40):
        """Repeat a query until wanted() accepts its result. Return that."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(OSError):
                rows = self.query(expression)
                if wanted(rows):
                    return rows
                if time.monotonic() > end:
                    raise LabError(f'{expression} is {rows} after {seconds} s')
            if time.monotonic() > end:
                raise LabError(f'Prometheus did not answer in {seconds} s')
            time.sleep(0.3)


@contextlib.contextmanager
def running(monitors):
    """Run Prometheus, and the exporter for a directory of monitors."""
    program = shutil.which('prometheus')
    if not program:
        raise Skip('no Prometheus: install prometheus')
    exporter, server = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix='vrdma-') as directory:
        config = Path(directory) / 'prometheus.yml'
        config.write_text(CONFIG.format(exporter), encoding='ascii')
        commands = (
            [EXPORTER, monitors, '--listen', str(exporter)],
            [program, f'--config.file={config}',
             f'--storage.tsdb.path={directory}/data', '--log.level=error',
             f'--web.listen-address=127.0.0.1:{server}'])
        with contextlib.ExitStack() as stack:
            for command in commands:
                process = subprocess.Popen(command, preexec_fn=die_with_parent)
                stack.callback(process.wait)
                stack.callback(process.terminate)
            yield Prometheus(server)
