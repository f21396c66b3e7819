# SPDX-License-Identifier: GPL-2.0-or-later
"""Steps that tests of all kinds of servers share: a guest reboots, its VMM
ends, its server ends."""
from guestkit.adapter import address, net_up

PORT = 18515    # of perftest
SENT = 'hw_counters/tx_packets'


def stream(bench):
    """Start writes from guest 1 to guest 2, and wait until they flow:
    (client, server)"""
    before = bench.counters()[SENT]
    command = bench.where(bench.two, 'ib_write_bw -F -D 60 -d {} -x {}')
    server = bench.two.spawn(command, PORT)
    command = bench.where(bench.one, 'ib_write_bw -F -D 60 -d {} -x {}')
    client = bench.one.spawn(f'{command} {address(2)}')
    for _ in range(100):
        if bench.counters()[SENT] > before + 1000:
            return client, server
    raise AssertionError(f'nothing is sent:\n{client.peek()}')


def works(bench):
    """Set up guest 2 again, and check data."""
    bench.stacks[bench.two].up(bench.two)
    bench.verify('-s 65536 -n 64 -r 2 -V')


def reboot(bench):
    """Guest 2 reboots in different ways. Its server stays."""
    servers = [server.pid for server in bench.pair.servers]
    for command in ('', 'reboot -f', ''):
        client, _ = stream(bench)
        bench.two.reboot(command)
        net_up(bench.two, 2)
        client.kill()
        client.wait()
        works(bench)
    assert [server.pid for server in bench.pair.servers] == servers


def end_vmm(bench):
    """The VMM of guest 2 ends. Its server serves the next one."""
    servers = [server.pid for server in bench.pair.servers]
    for _ in range(2):
        client, _ = stream(bench)
        bench.two.kill()
        client.kill()
        client.wait()
        bench.two.start()
        bench.pair.wait(2)
        works(bench)
    assert [server.pid for server in bench.pair.servers] == servers


def end_server(bench):
    """The server of guest 2 ends. Programs in both guests see errors."""
    vm = bench.two
    client, server = stream(bench)
    assert bench.pair.servers[1].kill() == 128 + 9
    # The client's retransmits time out.
    assert client.wait(40).rc not in (0, None)
    server.kill()
    server.wait(40)
    its = vm.run(bench.where(vm, 'ibv_rc_pingpong -d {} -g {}'), 40)
    assert its.rc not in (0, None), str(its)
    assert 'the device needs a reset' in vm.kernel_log()
    assert bench.one.run('ibv_devinfo').ok
