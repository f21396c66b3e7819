# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest reboots, its VMM ends, its server ends."""
from lab import lifetimes
from lab.lifetimes import works
from lab.runner import ends_guests
from lab.vfiouser import GET_INFO, Client
from lab.vmm import ServedPair, Server

PAIR = ServedPair
SECONDS = 180


def test_a_guest_reboots(bench):
    lifetimes.reboot(bench)


def test_the_server_serves_the_next_vmm(bench):
    lifetimes.end_vmm(bench)


def test_a_server_outlives_clients_that_break_the_protocol(bench):
    server = Server('check-protocol', 3, bench.pair.directory)
    server.start()
    try:
        pid, path = server.pid, f'{server.directory}/{server.name}.sock'
        for at in (path, f'{path}.nic'):
            with Client(at):
                pass
            with Client(at) as client:
                assert client.negotiate(major=99)[0], 'a wrong version'
            for wrong in ({'size': 3}, {'size': 1 << 31}, {'flags': 1},
                          {'size': 16}):
                with Client(at) as client:
                    assert client.negotiate()[0] == 0
                    client.send(GET_INFO, **wrong)
                    error, _ = client.answer() or ('hung up', b'')
                    assert error, wrong
            with Client(at) as client:
                assert client.negotiate()[0] == 0
                # The client hangs up before it has sent the body.
                client.send(GET_INFO, size=32)
            with Client(at) as client:
                assert client.negotiate()[0] == 0
                # The client never sends the body: the server hangs up.
                client.send(GET_INFO, size=32)
                assert client.answer() is None
            for wrong in ({'size': 0}, {'size': 65537}, {'size': 1 << 46},
                          {'size': 65536, 'offset': 16},
                          {'size': 4096, 'offset': 1 << 63}):
                with Client(at) as client:
                    assert client.negotiate()[0] == 0
                    assert client.map(**wrong), wrong
            with Client(at) as client:
                assert client.negotiate()[0] == 0
                assert client.map(65536 - 16, offset=16) == 0
                assert client.info()[0] >= 9, client.info()
        assert server.pid == pid
    finally:
        server.kill()


@ends_guests
def test_a_guest_outlives_its_server(bench):
    lifetimes.end_server(bench)
    # A guest that starts with the next server has an adapter again.
    bench.two.kill()
    bench.pair.servers[1].start()
    bench.two.start()
    bench.pair.wait(2)
    works(bench)
