# SPDX-License-Identifier: GPL-2.0-or-later
"""RDS: sockets of both guests."""
from guestkit.adapter import address
from lab.places import PROGRAMS

ECHO = f'/usr/bin/python3 {PROGRAMS}/rds_echo.py'
COUNT = 420


def test_messages_in_order(bench):
    before = bench.resources()
    for vm in bench.pair.vms:
        vm.must('modprobe -a rds rds_rdma && '
                'sysctl -q -w net.core.wmem_max=4194304 '
                'net.core.rmem_max=4194304')
    server = bench.two.spawn(f'{ECHO} server {address(2)} {COUNT}')
    bench.one.must('sleep 1')
    client = bench.one.run(
        f'{ECHO} client {address(1)} {address(2)} {COUNT}', 90)
    pairs = bench.one.must('rdma resource show qp')
    served = server.wait(10 if client.ok else 1)
    server.kill()
    assert client.ok and served.ok, f'{client}\n{served}'
    assert 'type RC' in pairs, f'not over RDMA:\n{pairs}'
    for vm in bench.pair.vms:
        vm.must('rmmod rds_rdma rds')
    bench.nothing_left(before)
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
