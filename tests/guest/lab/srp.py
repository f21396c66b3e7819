# SPDX-License-Identifier: GPL-2.0-or-later
"""SRP between two guests: the kernel's target with a RAM disk."""
from guestkit.paths import LabError

from .scsi import DISK, TARGET, drop_disk, make_disk

PORT = 5555


def gid(vm, device):
    """Return the port's first GID, which is the target's name of the port."""
    text = vm.must(f'cat /sys/class/infiniband/{device}/ports/1/gids/0')
    return '0x' + text.strip().replace(':', '')


def export(vm, device, initiator, srq=False):
    """Export the disk to the initiator with this GID. Return the target's GUID
    for connect(). @srq: queue pairs share a receive queue."""
    make_disk(vm)
    wwn = gid(vm, device)
    # The initiator's name: an extension of 0, and the lower half of its GID
    acl = f'{wwn}/{wwn}/acls/0x{"0" * 16}{initiator[-16:]}'
    vm.must(f'''set -e
modprobe ib_srpt
mkdir {TARGET}/srpt
echo {PORT} > {TARGET}/srpt/discovery_auth/rdma_cm_port
cd {TARGET}/srpt
mkdir -p {wwn}/{wwn}/lun/lun_0
ln -s {DISK} {wwn}/{wwn}/lun/lun_0/lab
mkdir {acl} {acl}/lun_0
ln -s {TARGET}/srpt/{wwn}/{wwn}/lun/lun_0 {acl}/lun_0/lab
echo {int(srq)} > {wwn}/{wwn}/attrib/use_srq
echo 1 > {wwn}/{wwn}/enable''')
    guid = vm.must(f'cat /sys/class/infiniband/{device}/node_guid')
    return guid.strip().replace(':', '')


def withdraw(vm, device):
    wwn = gid(vm, device)
    vm.must(f'''set -e
cd {TARGET}/srpt
echo 0 > {wwn}/{wwn}/enable
rm {wwn}/{wwn}/acls/*/lun_0/lab {wwn}/{wwn}/lun/lun_0/lab
rmdir {wwn}/{wwn}/acls/*/lun_0 {wwn}/{wwn}/acls/0x*
rmdir {wwn}/{wwn}/lun/lun_0 {wwn}/{wwn} {wwn}
cd /
rmdir {TARGET}/srpt
rmmod ib_srpt''')
    drop_disk(vm)


def connect(vm, device, guid, address):
    """Log in to a target, and return the disk's device file."""
    vm.must('modprobe -a ib_srp sd_mod')
    host = f'[{address}]' if ':' in address else address
    result = vm.run(f'echo id_ext={guid},ioc_guid={guid},dest={host}:{PORT} '
                    f'> /sys/class/infiniband_srp/srp-{device}-1/add_target')
    if not result.ok:
        raise LabError(f'{result}\n' + vm.run('dmesg | tail').out)
    return vm.must('for i in $(seq 100); do '
                   'for d in /sys/class/srp_remote_ports/port-*/device/'
                   'target*/*/block/sd*; do '
                   '[ -b /dev/${d##*/} ] && echo /dev/${d##*/} && exit 0; '
                   'done; sleep 0.1; done; exit 1').strip()


def disconnect(vm):
    vm.must('for p in /sys/class/srp_remote_ports/port-*; do '
            'echo 1 > $p/delete; done; '
            'for i in $(seq 100); do '
            '[ -z "$(ls /sys/class/srp_remote_ports)" ] && break; '
            'sleep 0.1; done; rmmod ib_srp')
