# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames on the wire: a filter-dump on the netdev of guest 1 records them, and
tshark checks them."""
import shutil

from guestkit.paths import LOGS
from lab.capture import summary
from lab.runner import Skip

PCAP = LOGS / 'capture.pcap'
ON_NETDEV = True


def every_kind(bench):
    for family in (4, 6):
        bench.verify('-s 8192 -n 64 -r 1 -V', family=family)
        bench.verify('-t uc -s 4096 -n 32 -r 1 -V -R 64', family=family)
        bench.verify('-t ud -s 1024 -n 32 -r 1 -V -R 64', family=family)


def test_tshark_sees_every_operation_and_nothing_malformed(bench):
    if not shutil.which('tshark'):
        raise Skip('tshark is not installed')
    bench.one.qmp('object-add', **{'qom-type': 'filter-dump', 'id': 'dump',
                                   'netdev': 'n0', 'file': str(PCAP)})
    try:
        every_kind(bench)
    finally:
        bench.one.qmp('object-del', id='dump')
    lines, malformed = summary(PCAP)
    text = '\n'.join(lines)
    assert malformed == 0, text
    for kind in ('RC Send First', 'RC Send Last Immediate',
                 'RC RDMA Write Only Immediate', 'RC RDMA Read Request',
                 'RC RDMA Read Response Last', 'RC Compare Swap',
                 'RC Fetch Add', 'RC Atomic Acknowledge', 'RC Acknowledge',
                 'UC Send First', 'UC RDMA Write Last',
                 'UD Send Only', 'UD Send Only Immediate'):
        assert any(line.strip().split(' ', 1)[1].lower().startswith(
            kind.lower()) for line in lines), f'no {kind} in\n{text}'
