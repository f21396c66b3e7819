# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot the system of a disk image. The lab adds its agent and, for
virtio-rdma, driver and provider.

QEMU boots the image's kernel directly. The lab's initramfs mounts the image's
root, and adds a systemd unit with the agent in /run, so the image does not
change. The driver is compiled for the image's kernel, with headers of the same
version from Debian's archive.
"""
import hashlib

from . import diskread, disks, driver, kernel, suites
from .kernel import read_info, write_info
from .paths import INSIDE, LabError, say, state_lock

PLACE = '/run/vrdma-lab'        # in guests

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
# The agent starts as early as possible, to report failures of other units.
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

# Emulated guests that boot at once on a busy machine exceed systemd's default
# timeouts, for example 90 s for a disk.
PATIENCE = '''[Manager]
DefaultTimeoutStartSec=900
DefaultDeviceTimeoutSec=900
'''

# Only the lab gives the NICs addresses.
NETWORKD = '''[Match]
Name=eth*

[Link]
Unmanaged=yes
'''
NETWORK_MANAGER = '''[keyfile]
unmanaged-devices=interface-name:eth*
'''

# Mask units that wait for a network, ask questions at the console, or use the
# terminal of the lab's shells.
APPEND = ('cloud-init=disabled systemd.firstboot=off '
          'systemd.mask=systemd-networkd-wait-online.service '
          'systemd.mask=NetworkManager-wait-online.service '
          'systemd.mask=ifupdown-wait-online.service '
          'systemd.mask=networking.service '
          'systemd.mask=serial-getty@hvc0.service '
          'systemd.mask=apt-daily.timer systemd.mask=apt-daily-upgrade.timer '
          # The lab's link has no duplicates and no routers.
          'sysctl.net.ipv6.conf.default.accept_dad=0 '
          'sysctl.net.ipv6.conf.default.accept_ra=0')


class Boot:
    """Kernel and disk of guests that boot from an image; replaces a
    kernel.Kernel."""

    def __init__(self, disk, vmlinux, initramfs, release, packages,
                 modules=None):
        """@packages: a directory of packages to install, if any; @modules: the
        directory of the kernel's modules, if the image does not have them."""
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
    """The directory of generated files for an image's kernel. Its name is a
    hash, so the image cannot choose it."""
    key = hashlib.sha256(f'{disk.release} {version}'.encode())
    return disks.IMAGES / kind / key.hexdigest()[:16]


def _headers(disk, version):
    """Information on the header tree for an image's kernel. The tree comes
    from packages that apt has verified, not from the image."""
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
            'to compile the driver with. Use a newer image, or boot another '
            f'kernel: --kernel {kernel.series_of(disk.release)}')
    return info


def compile_driver(disk):
    """The driver for an image's kernel."""
    version = disk.installed(f'linux-image-{disk.release}')
    if not version:
        raise LabError(
            f'--image {disk.path}: its kernel {disk.release} is not from a '
            'package of Debian, so there are no headers to compile the '
            'driver with. Boot another kernel, for example: --kernel 6.1')
    with state_lock():
        info = _headers(disk, version)
    inside = kernel.building(info)
    with state_lock():
        return driver.compile_module(
            f'{disk.release} {version}', info['tree'], inside,
            _place('driver', disk, version))


def _files(directory, provider, module):
    """{path: file} that the initramfs copies to the image's root."""
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
    """Require that the image has a kernel with RDMA."""
    if not disk.release:
        raise LabError(f'--image {disk.path}: there is no kernel in it. Boot '
                       'another kernel, for example: --kernel 6.12')
    if not disk.has_rdma:
        raise LabError(
            f'--image {disk.path}: its kernel {disk.release} is configured '
            f'without InfiniBand, like those of "genericcloud". Use an '
            f'image named {disks.FLAVOURS}, or boot another kernel: --kernel '
            f'{kernel.series_of(disk.release)}')


def prepare(disk, directory, provider=(), module=None, other=None,
            packages=None):
    """The Boot of an image. @directory: for generated files; @provider and
    @module: files of virtio-rdma for the guests; @other: a kernel.Kernel, with
    modules, to boot instead of the image's own; @packages: a directory of
    packages to install."""
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
