# SPDX-License-Identifier: GPL-2.0-or-later
"""Containers of one guest, each with an adapter of its own: RDMA devices that
belong to network namespaces ("rdma system set netns exclusive")."""
import re

from lab import containers
from lab.runner import Skip, ends_guests, slow

GUESTS = {'extra': containers.two_more}
SECONDS = 30


@slow
@ends_guests
def test_containers_with_an_adapter_each(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe gets its network namespace from its NIC')
    vm = bench.one
    vm.must('rdma system set netns exclusive && ip netns add c1 && '
            'ip netns add c2')
    both = [containers.Container(vm, n, f'c{n}', f'ip netns exec c{n}')
            for n in containers.SLOTS]
    seen = [re.findall(r'^ +(vrdma\d)', c.must('ibv_devices'), re.M)
            for c in both]
    assert seen == [['vrdma1'], ['vrdma2']], seen
    assert 'vrdma1' not in vm.must('rdma dev show; ibv_devices')
    containers.talk_by_verbs_and_cm(*both)
    # A namespace does not see the adapters of others.
    bench.verify('-s 4096 -n 32 -r 1 -V')

    # An adapter returns when its namespace ends.
    vm.must('ip netns del c1')
    vm.must('timeout 20 sh -c "until rdma dev show vrdma1; do sleep 0.1; '
            'done"', 30)
