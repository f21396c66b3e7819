# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the disk image that a guest has as /dev/vda.

read_image.py OUT MODULE...: finds the partition with the root of a system,
prints what there is to know of it as JSON, and copies to the directory OUT:
vmlinuz, the newest kernel; status, what dpkg has installed; and modules/, the
files that these modules need, in their order, and so does that of the root's
file system. Compressed ones stay so.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

DISK = '/dev/vda'
ROOT = '/run/image'
RDMA = ('ib_uverbs', 'rdma_ucm')


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def file_system(device):
    """What is on a partition, or ''."""
    return run('blkid', '-p', '-o', 'value', '-s', 'TYPE',
               device).stdout.strip()


def has_system():
    return all(os.path.lexists(f'{ROOT}/{path}')
               for path in ('etc/os-release', 'sbin', 'var/lib'))


def mount_root():
    """(partition, its file system) of the root, which is mounted; or None
    and what there is in its place."""
    seen = []
    for device in sorted(glob.glob(f'{DISK}?*')) or [DISK]:
        kind = file_system(device)
        seen.append(f'{os.path.basename(device)}: {kind or "nothing known"}')
        run('modprobe', '-q', kind)
        if run('mount', '-o', 'ro', device, ROOT).returncode != 0:
            continue
        if has_system():
            return device, kind
        run('umount', ROOT)
    return None, ', '.join(seen)


def os_release():
    with open(f'{ROOT}/etc/os-release', encoding='utf-8') as f:
        found = re.findall(r'^(\w+)=(.*)$', f.read(), re.M)
    return {name: value.strip('"') for name, value in found}


def kernels():
    """(release, file) of each kernel that has its modules, newest first."""
    found = []
    for path in glob.glob(f'{ROOT}/usr/lib/modules/*/modules.dep') + \
            glob.glob(f'{ROOT}/lib/modules/*/modules.dep'):
        release = path.split('/')[-2]
        for image in (f'{ROOT}/boot/vmlinuz-{release}',
                      os.path.dirname(path) + '/vmlinuz'):
            if os.path.isfile(image):
                found.append((release, image))
    return sorted(set(found), reverse=True, key=lambda pair: [
        int(n) for n in re.findall(r'\d+', pair[0])])


def module_files(release, module):
    """The files that a module needs, in order; None if there is none of that
    name."""
    shown = run('modprobe', '-d', ROOT, '-S', release, '--show-depends',
                module)
    if shown.returncode != 0:
        return None
    return re.findall(r'^insmod (\S+)', shown.stdout, re.M)


def copy_modules(release, modules, out):
    """The names of the files, in order."""
    names = []
    os.makedirs(out, exist_ok=True)
    for module in modules:
        files = module_files(release, module)
        if files is None:
            raise SystemExit(f'its kernel {release} has no {module}')
        for path in files:
            name = os.path.basename(path)
            if name not in names:
                shutil.copyfile(path, f'{out}/{name}')
                names.append(name)
    return names


def main(out, *modules):
    os.makedirs(ROOT, exist_ok=True)
    run('modprobe', 'virtio_blk')
    end = time.monotonic() + 20
    while not os.path.exists(DISK) and time.monotonic() < end:
        time.sleep(0.05)
    device, kind = mount_root()
    if not device:
        print(json.dumps({'partitions': kind}))
        return
    told = {'device': device, 'type': kind, 'os': os_release(),
            'python': os.path.exists(f'{ROOT}/usr/bin/python3'),
            'systemd': os.path.exists(f'{ROOT}/usr/lib/systemd/systemd') or
            os.path.exists(f'{ROOT}/lib/systemd/systemd')}
    status = f'{ROOT}/var/lib/dpkg/status'
    if os.path.exists(status):
        shutil.copyfile(status, f'{out}/status')
    for release, image in kernels()[:1]:
        told['release'] = release
        told['rdma'] = all(module_files(release, m) is not None
                           for m in RDMA)
        shutil.copyfile(image, f'{out}/vmlinuz')
        told['modules'] = copy_modules(release, [*modules, kind],
                                       f'{out}/modules')
    print(json.dumps(told))


if __name__ == '__main__':
    main(*sys.argv[1:])
