# SPDX-License-Identifier: GPL-2.0-or-later
"""iSER between two guests: the kernel's iSCSI target with a RAM disk, and
Open-iSCSI. The programs of Open-iSCSI are unpacked but not installed, as the
package would start a daemon on the machine."""
from guestkit.packages import Apt, unpack
from guestkit.paths import STATE, LabError, state_lock

from .scsi import DISK, TARGET, drop_disk, make_disk

PACKAGES = ('open-iscsi', 'libopeniscsiusr', 'libisns0')
TREE = STATE / 'iscsi'
TARGET_NAME = 'iqn.2026-01.lab:target'
HOST_NAME = 'iqn.2026-01.lab:host'
PORT = 3260


def prepare():
    """Fetch and unpack Open-iSCSI."""
    with state_lock():
        if (TREE / 'ready').exists():
            return
        apt, debs = Apt(), []
        for name in PACKAGES:
            found = (apt.fetch(name, record['Version'])
                     for record in apt.records(name))
            deb = next((f for f in found if f), None)
            if not deb:
                raise LabError(f'the package {name} cannot be fetched')
            debs.append(deb)
        unpack(debs, TREE)
        (TREE / 'ready').touch()


def tool(name):
    """Return the shell words that run a program of the unpacked packages."""
    found = [p for d in ('sbin', 'bin', 'usr/sbin', 'usr/bin')
             for p in (TREE / d).glob(name)]
    libraries = ':'.join(str(p) for p in (TREE / 'usr' / 'lib').glob('*-gnu'))
    return f'LD_LIBRARY_PATH={libraries} {found[0]}'


def export(vm, address):
    make_disk(vm)
    vm.must(f'''set -e
modprobe -a iscsi_target_mod ib_isert
mkdir -p {TARGET}/iscsi/{TARGET_NAME}/tpgt_1/np/{address}:{PORT}
cd {TARGET}/iscsi/{TARGET_NAME}/tpgt_1
echo 1 > np/{address}:{PORT}/iser
echo 0 > attrib/authentication
echo 1 > attrib/generate_node_acls
echo 1 > attrib/cache_dynamic_acls
echo 0 > attrib/demo_mode_write_protect
mkdir lun/lun_0
ln -s {DISK} lun/lun_0/lab
echo 1 > enable''')


def withdraw(vm, address):
    vm.must(f'''set -e
cd {TARGET}/iscsi/{TARGET_NAME}/tpgt_1
echo 0 > enable
rm lun/lun_0/lab
rmdir lun/lun_0 np/{address}:{PORT}
cd {TARGET}
rmdir iscsi/{TARGET_NAME}/tpgt_1 iscsi/{TARGET_NAME} iscsi
rmmod ib_isert iscsi_target_mod''')
    drop_disk(vm)


def connect(vm, address):
    """Log in, and return the disk's device file."""
    vm.must(f'''set -e
modprobe -a ib_iser sd_mod
mkdir -p /etc/iscsi /run/lock/iscsi
cp {TREE}/etc/iscsi/iscsid.conf /etc/iscsi/
echo InitiatorName={HOST_NAME} > /etc/iscsi/initiatorname.iscsi
{tool("iscsid")}''')
    node = f'{tool("iscsiadm")} -m node -T {TARGET_NAME} ' \
        f'-p {address}:{PORT} -I iser'
    result = vm.run(f'{node} -o new && {node} --login')
    if not result.ok:
        raise LabError(f'{result}\n' + vm.run('dmesg | tail').out)
    return vm.must('for i in $(seq 100); do '
                   'for d in /sys/class/iscsi_session/session*/device/'
                   'target*/*/block/sd*; do '
                   '[ -b /dev/${d##*/} ] && echo /dev/${d##*/} && exit 0; '
                   'done; sleep 0.1; done; exit 1').strip()


def disconnect(vm):
    vm.must(f'{tool("iscsiadm")} -m node --logout && '
            f'{tool("iscsiadm")} -k 0 && '
            'for i in $(seq 50); do rmmod ib_iser && exit 0; sleep 0.1; '
            'done; exit 1')
