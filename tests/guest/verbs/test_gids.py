# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses of guest 1 that the host gets later, or loses."""
import time

from lab.nested import NestedPair, on_rxe

PAIR = NestedPair
GUESTS = {'devices': on_rxe}
SECONDS = 60

ADDRESS = '10.9.9.9'
GID = '0000:0000:0000:0000:0000:ffff:0a09:0909'
REFUSED = 'unable to add gid ' + GID


def wait_for(what, condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_refused_gid_is_there_when_the_host_has_the_address(bench):
    guest, host = bench.one, bench.pair.host
    stack = bench.stacks[guest]
    command = f'ip addr {{}} {ADDRESS}/32 dev eth0'
    guest.must(command.format('add'))
    wait_for('the device does not refuse what the host does not have',
             lambda: REFUSED in guest.kernel_log())
    assert GID not in stack.gids(guest).values()
    host.must(command.format('add'))
    try:
        wait_for('the guest does not try again',
                 lambda: GID in stack.gids(guest).values())
    finally:
        guest.must(command.format('del'))
        host.must(command.format('del'))
    wait_for('the guest keeps a GID without its address',
             lambda: GID not in stack.gids(guest).values())
