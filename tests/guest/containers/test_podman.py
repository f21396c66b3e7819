# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's podman in a guest: two containers with an adapter each, and the
limits of the kernel's rdma controller."""
import re

from lab import containers, unpacked
from lab.runner import Skip, ends_guests

PACKAGES = ('podman',)
GUESTS = {'extra': containers.two_more}
SECONDS = 60

# The containers' root: that of the guest, without what is mounted on it
ROOT = '/run/root'
PREPARE = f'''
mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +rdma > /sys/fs/cgroup/cgroup.subtree_control
mkdir -p {ROOT} /run/storage /run/tmp
mount --bind / {ROOT}
rdma system set netns exclusive
'''
RUN = ('--storage-driver vfs --root /run/storage --tmpdir /run/tmp '
       '--cgroup-manager cgroupfs --events-backend file')


class Podman:
    """Debian's podman in a guest."""

    def __init__(self, vm):
        self.vm = vm
        tree = unpacked.tree('podman', PACKAGES)
        self.command = f'{unpacked.inside(tree)} podman {RUN}'

    def start(self, number):
        """Start a container that has its adapter's character devices, and the
        right to lock memory. Return it with NIC and adapter."""
        name = f'c{number}'
        self.vm.must(
            f'{self.command} run --detach --name {name} --network none '
            f'--device /dev/infiniband/uverbs{number} '
            '--device /dev/infiniband/rdma_cm --cap-add NET_ADMIN '
            f'--ulimit memlock=-1 --rootfs {ROOT} sleep 1000', 60)
        pid = self.vm.must(f'{self.command} inspect --format '
                           f'{{{{.State.Pid}}}} {name}').strip()
        # rdma, unlike ip, takes names of network namespaces only.
        self.vm.must(f'ip netns attach {name} {pid}')
        container = containers.Container(
            self.vm, number, name, f'nsenter --target {pid} --all',
            f'{self.command} exec {name}')
        container.cgroup = '/sys/fs/cgroup' + self.vm.must(
            f'sed s/^0::// /proc/{pid}/cgroup').strip()
        return container


def limit(container, limits):
    """Set limits of the container's RDMA objects."""
    container.vm.must(f'echo vrdma{container.number} {limits} > '
                      f'{container.cgroup}/rdma.max')


@ends_guests
def test_podman_with_an_adapter_for_each_container(bench):
    if bench.stack == 'rxe':
        raise Skip('rxe gets its network namespace from its NIC')
    vm = bench.one
    vm.must(PREPARE)
    podman = Podman(vm)
    one, two = both = [podman.start(n) for n in containers.SLOTS]
    seen = [re.findall(r'^ +(vrdma\d)', c.must('ibv_devices'), re.M)
            for c in both]
    assert seen == [['vrdma1'], ['vrdma2']], seen
    containers.talk_by_verbs_and_cm(*both)

    # The second context, and the second object, exceed their limits.
    limit(one, 'hca_handle=1')
    job = vm.spawn(f'{one.run} ibv_rc_pingpong {one.options()}')
    one.wait_until('ss -Hltn sport = 18515 | grep -q .')
    result = vm.run(f'{one.run} ibv_devinfo -d vrdma1', 60)
    assert not result.ok and 'Failed to open' in result.out, str(result)
    current = vm.must(f'cat {one.cgroup}/rdma.current')
    assert 'vrdma1 hca_handle=1 ' in current, current
    options = f'{two.options()} {containers.SERVER}'
    limit(two, 'hca_object=1')
    result = vm.run(f'{two.run} ibv_rc_pingpong {options}', 60)
    assert not result.ok and 'Couldn\'t' in result.out, str(result)
    limit(two, 'hca_object=max')
    vm.must(f'{two.run} ibv_rc_pingpong {options}', 60)
    result = job.wait(15)
    assert result.ok, str(result)
