# SPDX-License-Identifier: GPL-2.0-or-later
"""Every operation, each byte compared; processes that end in the middle."""
from lab import pvrdma

PAIR, STACK = pvrdma.pair, pvrdma.STACK


def test_rc_every_operation(bench):
    bench.verify('-s 65536 -n 64 -r 3 -V')


def test_rc_many_queue_pairs_with_events(bench):
    bench.verify('-s 4096 -n 32 -r 3 -V -q 16 -e -R 32 -S 16')


def test_rc_receiver_not_ready(bench):
    bench.verify('-s 1024 -n 64 -r 2 -R 2 -o send,send_imm,write_imm')


def test_rc_small_mtu(bench):
    bench.verify('-s 16384 -n 32 -r 1 -V -m 256')


def test_rc_in_many_pieces(bench):
    bench.verify('-s 16384 -n 64 -r 2 -V -G 4')


def test_rc_in_its_own_guest(bench):
    for vm in bench.pair.vms:
        bench.verify('-s 16384 -n 64 -r 2 -V -e', server=vm, client=vm)


def test_rc_over_ipv6(bench):
    bench.verify('-s 16384 -n 64 -r 2 -V -m 4096', family=6)


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_a_killed_process_leaves_nothing_behind(bench):
    before = bench.resources()
    server, client = bench.verify_commands('-s 4096 -n 64 -r 0 -q 4 -e')
    jobs = [bench.two.spawn(server, 18515), bench.one.spawn(client)]
    jobs[1].wait_for('round 2 done')
    for job in jobs:
        job.kill()
        job.wait(10)
    bench.nothing_left(before)
    bench.verify('-s 4096 -n 32 -r 1 -V')
