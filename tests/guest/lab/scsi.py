# SPDX-License-Identifier: GPL-2.0-or-later
"""The disk of the kernel's SCSI target in a guest."""

TARGET = '/sys/kernel/config/target'
DISK = f'{TARGET}/core/rd_mcp_0/lab'


def make_disk(vm, mebibytes=64):
    vm.must(f'''set -e
mkdir -p /etc/target
modprobe target_core_mod
mkdir -p {DISK}
echo rd_pages={mebibytes << 8} > {DISK}/control
echo 1 > {DISK}/enable''')


def drop_disk(vm):
    vm.must(f'rmdir {DISK} {DISK.rsplit("/", 1)[0]}')
