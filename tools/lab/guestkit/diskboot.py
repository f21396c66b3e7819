# SPDX-License-Identifier: GPL-2.0-or-later
"""Booting the system of a disk image as it is, but for an agent and, if it is
to have virtio-rdma, driver and provider.

Its kernel is booted directly, with an initramfs that mounts its root and
leaves to its systemd a unit with the agent, in /run: nothing of the image
changes. The driver is compiled for its kernel, with headers that the archive
has for that very version.
"""
import hashlib
import re

from . import diskread, disks, driver, kernel, suites
from .kernel import read_info, write_info
from .paths import INSIDE, LabError, say, state_lock

PLACE = '/run/vrdma-lab'        # in guests
LAST_ABI = 56                   # of rdma-core, whose libibverbs has our ABI

INIT = kernel.INIT_BEGIN + r'''
param() { sed -n "s|.*lab\.$1=\([^ ]*\).*|\1|p" /proc/cmdline; }
root=$(param root)
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -b "$root" ] && break
    sleep 0.5
done
mount -t "$(param type)" "$root" /newroot || die "cannot mount $root"
modules=$(param modules)
if [ -n "$modules" ]; then
    mkdir -p "/newroot/lib/modules/$modules"
    mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose \
        modules "/newroot/lib/modules/$modules" || die "cannot mount modules"
fi
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /newroot/run
cp -a /lab /newroot/run/vrdma-lab
cp -a /bin/busybox /newroot/run/vrdma-lab/
cp -a /run/. /newroot/run/
wants=/newroot/run/systemd/system/sysinit.target.wants
mkdir -p "$wants"
ln -s ../vrdma-lab.service "$wants/"
for d in dev proc sys; do
    mount -o move /$d /newroot/$d
done
exec switch_root /newroot /sbin/init
'''

PATH = f'/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:{PLACE}'
# It runs as early as may be, to tell what goes wrong with the others.
UNIT = f'''[Unit]
Description=Agent of vrdma-lab
DefaultDependencies=no
IgnoreOnIsolate=yes

[Service]
Environment=HOME=/root TERM=dumb LC_ALL=C
Environment=PATH={PATH}
ExecStart=/usr/bin/python3 -E -s -B {PLACE}/agent.py
LimitMEMLOCK=infinity
LimitCORE=0
TasksMax=infinity
OOMPolicy=continue
KillMode=process
'''

# Several guests that boot at once, emulated on a busy machine, take longer
# than any machine that systemd knows: for a disk, say, it waits 90 s.
PATIENCE = '''[Manager]
DefaultTimeoutStartSec=900
DefaultDeviceTimeoutSec=900
'''

# The lab gives the NIC its addresses: nothing else is to.
NETWORKD = '''[Match]
Name=eth0

[Link]
Unmanaged=yes
'''
NETWORK_MANAGER = '''[keyfile]
unmanaged-devices=interface-name:eth0
'''

# What waits for a network that comes from elsewhere, asks questions at the
# console, or takes the terminal of the lab's shells
APPEND = ('cloud-init=disabled systemd.firstboot=off '
          'systemd.mask=systemd-networkd-wait-online.service '
          'systemd.mask=NetworkManager-wait-online.service '
          'systemd.mask=ifupdown-wait-online.service '
          'systemd.mask=networking.service '
          'systemd.mask=serial-getty@hvc0.service '
          'systemd.mask=apt-daily.timer systemd.mask=apt-daily-upgrade.timer '
          # No duplicates, and no routers: the lab has the link for itself.
          'sysctl.net.ipv6.conf.default.accept_dad=0 '
          'sysctl.net.ipv6.conf.default.accept_ra=0')


class Boot:
    """How guests boot from an image, in the place of a kernel.Kernel."""

    def __init__(self, disk, vmlinux, initramfs, release, packages,
                 modules=None):
        """@packages: a directory of those to be installed, if any; @modules:
        that of the kernel's modules, if they are not in the image."""
        self.disk, self.packages = disk, packages
        self.vmlinux, self.initramfs = vmlinux, initramfs
        self.release, self.series = release, kernel.series_of(release)
        self.modules = modules

    def append(self, name):
        """Kernel parameters for the guest of that name."""
        words = [APPEND, f'systemd.hostname={name}',
                 f'lab.root={self.disk.root} lab.type={self.disk.type}']
        if self.modules:
            words.append(f'lab.modules={self.release}')
        return ' '.join(words)


def _place(kind, disk, version):
    """A directory for what is made for an image's kernel. Nothing that comes
    from the image is part of its name."""
    key = hashlib.sha256(f'{disk.release} {version}'.encode())
    return disks.IMAGES / kind / key.hexdigest()[:16]


def _headers(disk, version):
    """Information on the header tree for an image's kernel: of packages of
    the archive, which apt has verified, and nothing of the image."""
    package = f'linux-headers-{disk.release}'
    prefix = _place('headers', disk, version)
    info = read_info(prefix)
    if not info:
        say(f'kernel headers {disk.release} {version}: fetching')
        for suite in (disk.suite, f'{disk.suite}-security',
                      f'{disk.suite}-backports'):
            apt = suites.apt(suite)
            if not apt or version not in [
                    r['Version'] for r in apt.records(package)]:
                continue
            tree = kernel.unpack_headers(apt, suite, package, version,
                                         prefix, kernel.NATIVE)
            if tree:
                write_info(prefix, release=disk.release, version=version,
                           tree=str(tree), suite=suites.base(suite),
                           compiler=kernel.compiler_of(apt, package))
                break
    info = read_info(prefix)
    if not info:
        raise LabError(
            f'--image {disk.path}: its kernel is {disk.release}, version '
            f'{version}, and the archive has no headers of that version '
            'to compile the driver with. Take an image with a kernel of '
            f'today, or boot another kernel: --kernel '
            f'{kernel.series_of(disk.release)}')
    return info


def compile_driver(disk):
    """The driver for an image's kernel."""
    version = disk.installed(f'linux-image-{disk.release}')
    if not version:
        raise LabError(
            f'--image {disk.path}: its kernel {disk.release} is none of '
            "Debian's packages, so there are no headers to compile the "
            'driver with. Boot another kernel: --kernel 6.1, say')
    with state_lock():
        info = _headers(disk, version)
    inside = kernel.building(info)
    with state_lock():
        return driver.compile_module(
            f'{disk.release} {version}', info['tree'], inside,
            _place('driver', disk, version))


def _number(version):
    return [int(n) for n in re.findall(r'\d+', version)]


def check_provider(disk, library):
    """Require that the image's libibverbs, if it has one, can load it."""
    ibverbs = disk.installed('libibverbs1')
    if ibverbs and _number(ibverbs)[0] > LAST_ABI:
        raise LabError(f'--image {disk.path}: its libibverbs is {ibverbs}, '
                       f'and the provider fits none after {LAST_ABI}')
    libc = disk.installed('libc6') or '0'
    wants = max((found.decode() for found in re.findall(
        rb'GLIBC_([\d.]+)\0', library.read_bytes())), key=_number)
    if _number(libc) < _number(wants):
        raise LabError(f'--image {disk.path}: its libc6 is {libc}, and the '
                       f"provider of this machine's Debian wants {wants}. "
                       'Build the provider on the older Debian')


def _files(directory, provider, module):
    """{path: file} that an initramfs has for the root, besides."""
    more = {}
    for path, text in (
            ('run/systemd/system/vrdma-lab.service', UNIT),
            ('run/systemd/system.conf.d/00-vrdma-lab.conf', PATIENCE),
            ('run/systemd/network/00-vrdma-lab.network', NETWORKD),
            ('run/NetworkManager/conf.d/vrdma-lab.conf', NETWORK_MANAGER)):
        more[path] = directory / path.replace('/', '-')
        more[path].write_text(text)
    more['lab/agent.py'] = INSIDE / 'agent.py'
    for path in provider:
        more[f'lab/{path.name}'] = path
    if module:
        more['lab/virtio_rdma.ko'] = module
    return more


def check_kernel(disk):
    """Require that the image has a kernel which knows RDMA."""
    if not disk.release:
        raise LabError(f'--image {disk.path}: there is no kernel in it. Boot '
                       'another kernel: --kernel 6.12, say')
    if not disk.has_rdma:
        raise LabError(
            f'--image {disk.path}: its kernel {disk.release} is configured '
            f'without InfiniBand, as those of "genericcloud" are. Take an '
            f'image named {disks.FLAVOURS}, or boot another kernel: --kernel '
            f'{kernel.series_of(disk.release)}')


def prepare(disk, directory, provider=(), module=None, other=None,
            packages=None):
    """The Boot of an image. @directory is for what is made. @provider and
    @module are what guests are to have of virtio-rdma; @other is a
    kernel.Kernel in the place of the image's own, and has its modules;
    @packages: a directory of these."""
    directory.mkdir(parents=True, exist_ok=True)
    initramfs = directory / 'initramfs.cpio'
    early = disk.modules
    if other:
        early = kernel.module_files(other.root, other.release, [
            *diskread.EARLY_MODULES, disk.type, '9pnet_virtio', '9p'])
    kernel.write_initramfs(initramfs, INIT, early,
                           more=_files(directory, provider, module))
    if other:
        return Boot(disk, other.vmlinux, initramfs, other.release, packages,
                    other.modules)
    return Boot(disk, disk.vmlinux, initramfs, disk.release, packages)
