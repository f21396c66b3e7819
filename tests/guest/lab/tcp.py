# SPDX-License-Identifier: GPL-2.0-or-later
"""TCP on the guests' virtio-net NICs, measured by qperf."""
import re

from guestkit.adapter import address

from .programs import exchange

NAME = 'TCP'
PORT = 19765
SECONDS = 2

# qperf's units are powers of ten, perftest's MB/s are 2^20 bytes a second
SCALE = {'us': 1, 'ms': 1000, 'sec': 1e6, 'bytes/sec': 1 / 2 ** 20,
         'KB/sec': 1e3 / 2 ** 20, 'MB/sec': 1e6 / 2 ** 20,
         'GB/sec': 1e9 / 2 ** 20}


def parse(text):
    """Return the figure of a run: {'value'}, or None if there is none."""
    found = re.search(r'^\s*(?:bw|latency)\s*=\s*([\d.]+) (\S+)$', text, re.M)
    if not found or found[2] not in SCALE:
        return None
    return {'value': float(found[1]) * SCALE[found[2]]}


def run(pair, latency, size, timeout=60):
    """Send messages of a size to guest 2. Return (Exchange, figures or
    None)."""
    test = 'tcp_lat' if latency else 'tcp_bw'
    result = exchange(pair.two, pair.one, f'qperf -lp {PORT}',
                      f'qperf {address(2)} -lp {PORT} -ip {PORT + 1} '
                      f'-e 4 -t {SECONDS} -m {size} {test} quit', PORT,
                      timeout)
    return result, parse(result.client.out) if result.ok else None
