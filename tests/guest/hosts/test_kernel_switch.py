# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests act as hosts, because the machine's kernel may lack Open vSwitch. As
on the page, rxe uses the bridge of such a host."""
import shlex

from guestkit.adapter import address
from lab import unpacked
from lab.openvswitch import DAEMONS, PACKAGES, SCHEMA
from lab.pages import listing
from lab.programs import build_verify, exchange
from lab.runner import ACK_TIMEOUT, ends_guests

SECONDS = 60
PAGE = 'virtio-rdma-hosts'
RUN = '/run/openvswitch'
CONTROL = f'{RUN}/vswitchd.ctl'


def inside(command):
    """Return a command that sees the packages and finds the daemons."""
    root = unpacked.tree('openvswitch', PACKAGES)
    return f'OVS_RUNDIR={RUN} OVS_LOGDIR={RUN} OVS_DBDIR={RUN} ' \
        f'{unpacked.inside(root)} {command}'


def start(vm):
    vm.must(f'modprobe -a openvswitch vport_vxlan && mkdir -p {RUN} && ' +
            inside(f'ovsdb-tool create {RUN}/conf.db {SCHEMA}'))
    vm.spawn(inside(f'ovsdb-server {RUN}/conf.db '
                    f'--remote=punix:{RUN}/db.sock'))
    vm.must(f'until [ -e {RUN}/db.sock ]; do sleep 0.1; done; ' +
            inside('ovs-vsctl --no-wait init'))
    vm.spawn(inside(f'{DAEMONS}/ovs-vswitchd unix:{RUN}/db.sock '
                    f'--unixctl={CONTROL}'))


def be_host(vm, index):
    """Set up a host as the page says, with the kernel's datapath."""
    start(vm)
    script = shlex.quote(listing(PAGE, 'ovs.sh'))
    vm.must(inside(f'sh -ec {script} ovs.sh system {address(3 - index)}'))
    # 50 bytes less than the MTU of eth0
    vm.must(inside('ovs-vsctl set interface br0 mtu_request=8950'))
    vm.must(f'ip link set br0 up && ip addr add 10.9.0.{index}/24 dev br0 && '
            'modprobe rdma_rxe && rdma link add rxe0 type rxe netdev br0')


def gid(vm):
    base = '/sys/class/infiniband/rxe0/ports/1/gids'
    found = vm.must(f'timeout 20 sh -c "until grep -l ffff:0a09 {base}/*; do '
                    'sleep 0.1; done"', 30)
    return found.split()[0].rpartition('/')[2]


def state(vm):
    """Return a text for an error: the state that can explain why no frames
    arrive."""
    flows = inside(f'ovs-appctl -t {CONTROL} dpctl/dump-flows')
    return str(vm.run('ip neigh; ss -tn; rdma resource show qp; '
                      f'rdma statistic; {flows}'))


@ends_guests
def test_rxe_on_bridges_of_open_vswitch_in_the_kernel(bench):
    for index, vm in enumerate(bench.pair.vms, 1):
        be_host(vm, index)
    assert 'mtu 8950' in bench.one.must('ip link show br0')
    flows = bench.one.must(inside(f'ovs-appctl -t {CONTROL} dpif/show'))
    assert flows.startswith('system@'), flows
    commands = [f'{build_verify(vm.arch)} -d rxe0 -g {gid(vm)}'
                for vm in bench.pair.vms]
    result = exchange(
        bench.two, bench.one, commands[1],
        f'{commands[0]} -k {ACK_TIMEOUT} -s 16384 -n 32 -r 1 -V -m 4096 '
        '10.9.0.2')
    assert result.ok, '\n'.join([str(result), *map(state, bench.pair.vms)])
    table = bench.one.must(inside(f'ovs-appctl -t {CONTROL} fdb/show '
                                  'br0'))
    assert len(table.splitlines()) >= 3, table
