# SPDX-License-Identifier: GPL-2.0-or-later
"""NVMe over RDMA between two guests: one has a RAM disk, the other its block
device. The tests use configfs and /dev/nvme-fabrics directly."""

from guestkit.adapter import address
from guestkit.paths import LabError

from . import storage

NQN = 'lab'
PORT = 4420
DISK = '/dev/ram0'
MEBIBYTES = 64    # of the disk
TARGET_MODULES = 'nvmet_rdma nvmet brd'
HOST_MODULES = 'nvme_rdma nvme_fabrics nvme_core'
NVMET = '/sys/kernel/config/nvmet'


def export(vm, traddr, family=4, mebibytes=MEBIBYTES, options=''):
    """Export a RAM disk at an address of the guest. The options are those of
    nvmet-rdma."""
    vm.must(f'modprobe brd rd_nr=1 rd_size={mebibytes << 10} && '
            f'modprobe nvmet && modprobe nvmet-rdma {options}')
    vm.must(f'''set -e
cd {NVMET}
mkdir subsystems/{NQN}
echo 1 > subsystems/{NQN}/attr_allow_any_host
mkdir subsystems/{NQN}/namespaces/1
echo -n {DISK} > subsystems/{NQN}/namespaces/1/device_path
echo 1 > subsystems/{NQN}/namespaces/1/enable
mkdir ports/1
cd ports/1
echo rdma > addr_trtype
echo ipv{family} > addr_adrfam
echo {traddr} > addr_traddr
echo {PORT} > addr_trsvcid
ln -s {NVMET}/subsystems/{NQN} subsystems/{NQN}''')


def withdraw(vm):
    """Undo export(), module by module."""
    vm.must(f'''set -e
cd {NVMET}
rm ports/1/subsystems/{NQN}
rmdir ports/1
echo 0 > subsystems/{NQN}/namespaces/1/enable
rmdir subsystems/{NQN}/namespaces/1 subsystems/{NQN}
cd /
rmmod {TARGET_MODULES}''')


def connect(vm, traddr, queues=1, options=''):
    """Connect to the export of a peer, with more options that each begin with
    a comma. Return the controller's name."""
    vm.must('modprobe nvme-rdma')
    result = vm.run(f"""python3 -c "
import os
f = os.open('/dev/nvme-fabrics', os.O_RDWR)
os.write(f, b'transport=rdma,traddr={traddr},trsvcid={PORT},nqn={NQN},'
         b'nr_io_queues={queues}{options}')
print(os.read(f, 100).decode())
" """)
    if not result.ok:
        raise LabError(f'{result}\n' + vm.run('dmesg | tail').out)
    name = f'nvme{result.out.split(",")[0].split("=")[1]}'
    vm.must(f'for i in $(seq 100); do [ -b /dev/{name}n1 ] && exit 0; '
            'sleep 0.05; done; exit 1')
    return name


def disconnect(vm, name):
    vm.must(f'echo 1 > /sys/class/nvme/{name}/delete_controller')
    vm.must(f'rmmod {HOST_MODULES}')


def use_disk(bench, family=4, queues=1, target=None, srq=False):
    """Connect, use the disk and unload; guest 1 or 2 is the initiator."""
    target = target or bench.two
    host = bench.one if target is bench.two else bench.two
    traddr = address(bench.pair.vms.index(target) + 1, family)
    before = bench.resources()
    export(target, traddr, family,
           # The target posts more receives at once than a virtqueue holds.
           options='use_srq=1 srq_size=4000' if srq else '')
    name = connect(host, traddr, queues)
    assert bool(bench.count(target, 'srq')) == srq
    device = f'/dev/{name}n1'
    storage.blocks(host, device, target, DISK)
    storage.parallel(host, device)
    storage.file_system(host, device)
    disconnect(host, name)
    withdraw(target)
    bench.nothing_left(before)


def connect_repeatedly(bench, times):
    """Connect to a disk of guest 2, use it and disconnect, several times."""
    before = bench.resources()
    export(bench.two, address(2))
    for _ in range(times):
        name = connect(bench.one, address(2))
        storage.blocks(bench.one, f'/dev/{name}n1', sizes=(('64k', 1),))
        disconnect(bench.one, name)
    withdraw(bench.two)
    bench.nothing_left(before)
