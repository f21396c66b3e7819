# SPDX-License-Identifier: GPL-2.0-or-later
"""SMC-R: sockets of both guests, whose streams use RDMA once TCP has connected
them."""
import re

from guestkit.adapter import address
from lab.places import PROGRAMS
from lab.runner import slow

ECHO = f'/usr/bin/python3 -B {PROGRAMS}/smc_echo.py'
CONNECTIONS = 4
# Bytes that smc_echo.py sends on each connection, each way
BYTES = 4 << 20


def sent(bench, vm):
    """Return the bytes that the guest's adapter has sent."""
    # The RDMA core refreshes counters at most every 10 ms.
    vm.must('sleep 0.05')
    return int(vm.must(f'cat /sys/class/infiniband/{bench.device(vm)}'
                       '/ports/1/hw_counters/tx_bytes'))


def streams(bench):
    """Run connections, which must succeed and use RDMA at both ends."""
    before = [sent(bench, vm) for vm in bench.pair.vms]
    server = bench.two.spawn(f'{ECHO} server {address(2)} {CONNECTIONS}')
    server.wait_for('listening')
    client = bench.one.run(f'{ECHO} client {address(2)} {CONNECTIONS}', 120)
    served = server.wait(10 if client.ok else 1)
    server.kill()
    assert client.ok and served.ok, f'{client}\n{served}'
    wanted = 'carried by' + ' SMC-R' * CONNECTIONS
    for side in client, served:
        assert wanted in side.out.splitlines(), f'{client}\n{served}'
    for vm, old in zip(bench.pair.vms, before):
        new = sent(bench, vm)
        assert new - old >= CONNECTIONS * BYTES, \
            f'{vm.name}: only {new - old} bytes have left by RDMA'


def round_trip(bench, pieces):
    """Load the module, run the streams, and unload the module."""
    before = bench.resources()
    for vm in bench.pair.vms:
        vm.must('modprobe -a smc smc_diag && '
                f'sysctl -q -w net.smc.smcr_buf_type={pieces} && '
                f'{ECHO} setup eth0 {bench.device(vm)}')
    streams(bench)
    pairs = bench.one.must('rdma resource show qp')
    assert re.search(r'type RC state RTS.*\[smc\]', pairs), pairs
    for vm in bench.pair.vms:
        vm.must('rmmod smc_diag smc')
    bench.nothing_left(before)


def test_streams(bench):
    round_trip(bench, 0)


@slow
def test_buffers_in_many_pieces(bench):
    round_trip(bench, 1)


def test_the_driver_unloads_afterwards(bench):
    for vm, stack in bench.stacks.items():
        stack.unload(vm)
        stack.up(vm)
    bench.verify('-s 4096 -n 32 -r 1 -V')
