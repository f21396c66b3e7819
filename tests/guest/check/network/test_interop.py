# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest 2 runs the kernel's rxe on the same wire."""
from lab import interop
from lab.programs import perftest_cm_exchange

SECOND = 'rxe'
SECONDS = 35


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V')


def test_rc_every_operation_over_ipv6(bench):
    bench.verify('-s 16384 -n 64 -r 2 -V -m 4096', family=6)


def test_rc_small_mtu(bench):
    bench.verify('-s 16384 -n 32 -r 1 -V -m 256')


def test_rc_large_messages(bench):
    bench.verify('-s 1048576 -n 8 -r 1 -m 4096 -o send,write,read,write_imm')


def test_rc_more_reads_than_the_responder_takes_at_once(bench):
    """The link hands frames over in bursts, so that all requests that rxe may
    have in flight arrive before the first response."""
    bench.one.qmp('object-add', **{'qom-type': 'filter-buffer', 'id': 'burst',
                                   'netdev': 'n0', 'interval': 20000})
    try:
        bench.verify('-s 1024 -n 64 -r 1 -o read,fadd')
    finally:
        bench.one.qmp('object-del', id='burst')


def test_rc_receiver_not_ready(bench):
    bench.verify('-s 1024 -n 64 -r 2 -R 2 -o send,send_imm,write_imm')


def test_rc_several_queue_pairs(bench):
    bench.verify('-s 8192 -n 32 -r 2 -V -q 4')


def test_uc_every_operation(bench):
    bench.verify('-t uc -s 8192 -n 32 -r 2 -V -R 64')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_programs_both_ways(bench):
    interop.programs_both_ways(bench, 6)


def test_connection_manager(bench):
    bench.exchange('ib_send_bw -R -s 4096 -n 100',
                   'ib_send_bw -R -s 4096 -n 100', form='-F -d {} -x {}',
                   how=perftest_cm_exchange)
