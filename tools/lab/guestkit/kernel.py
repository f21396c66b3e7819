# SPDX-License-Identifier: GPL-2.0-or-later
"""Guest kernels from Debian's packages.

A series is "6.1", "6.12" and so on. Kernel image and headers have the same
version, so that a module built against the headers loads into the kernel. The
lab queries the machine's own index first, and then backports and other suites
with private lists. It installs nothing on the machine.
"""
import functools
import json
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from pathlib import Path

from . import buildroot, foreign, suites
from .arch import NATIVE
from .packages import Apt, fetch_set, unpack
from .paths import LabError, Unavailable, say, state_lock

# The default series of guests; without $GUEST_SERIES that of the machine's own
# suite.
DEFAULT = os.environ.get('GUEST_SERIES') or None

# Limits for the decompression of a kernel, which may come from a hostile
# image: its size, the memory of xz, and the number of positions to try.
KERNEL_MAX = 256 << 20
XZ_MEMORY = 256 << 20
PLACES_MAX = 64
XZ = b'\xfd7zXZ\x00'

# Increase it when the layout of the generated files changes.
LAYOUT = 5

EARLY_MODULES = ('virtio_pci', '9pnet_virtio', '9p', 'overlay')

# Programs for scripts in an initramfs
APPLETS = ('sh', 'cp', 'insmod', 'ln', 'mkdir', 'mount', 'poweroff', 'sed',
           'sleep', 'switch_root')

# The beginning of each such script
INIT_BEGIN = r'''#!/bin/sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
die() { echo "lab: $*"; poweroff -f; }
while read m; do
    insmod "/mods/$m" || echo "lab: insmod $m failed"
done < /mods/list'''

INIT = INIT_BEGIN + r'''
share() {
    mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose \
        "$1" "$2" || die "cannot mount $1 at $2"
}
param() { sed -n "s|.*lab\.$1=\([^ ]*\).*|\1|p" /newroot/proc/cmdline; }
share hostroot /lower
mount -t tmpfs -o mode=755 tmpfs /rw
mkdir -p /rw/up /rw/wk
mount -t overlay -o lowerdir=/lower,upperdir=/rw/up,workdir=/rw/wk \
    overlay /newroot || die "cannot mount the overlay"
for d in dev proc sys; do
    mount -o move /$d /newroot/$d
done
# A foreign root lacks the lab's files, which are shares: TAG:PLACE,...
for at in $(param shares | sed 's/,/ /g'); do
    mkdir -p "/newroot${at#*:}"
    share "${at%%:*}" "/newroot${at#*:}"
done
exec switch_root /newroot /bin/bash "$(param init)"
'''


def series_of(version):
    """The series of a package version: 6.12 of '6.12.48-1~bpo12+1'."""
    found = re.match(r'(\d+\.\d+)', version)
    return found.group(1) if found else ''


@functools.cache
def machine_series():
    """The series of the machine's own suite, the default of guests."""
    for record in Apt().records('linux-image-amd64'):
        return series_of(record['Version'])
    raise LabError('apt knows no linux-image-amd64: run apt-get update')


def _first_dependency(record, prefix):
    """The (package, version) that a metapackage depends on."""
    for item in record.get('Depends', '').split(', '):
        found = re.match(rf'({prefix}\S+) \(= (\S+)\)', item)
        if found:
            return found.groups()
    return None


def _candidates(series, kind, arch):
    """(Apt, suite, package, version) of a series, best first; the kind is
    linux-image or linux-headers."""
    meta = f'{kind}-{arch.name}{arch.flavour}'
    for apt, where in suites.sources(arch):
        seen = False
        for record in apt.records(meta):
            real = _first_dependency(record, f'{kind}-')
            if real and series_of(record['Version']) == series:
                seen = True
                yield apt, where, *real
        if not seen:
            say(f'  no {meta} {series} in {where}')


def _needed(apt, package, version, pattern):
    """(package, version) of this package, and of its dependencies whose names
    match the pattern."""
    wanted = [(package, version)]
    for record in apt.records(package):
        if record['Version'] != version:
            continue
        for item in re.split(r', | \| ', record['Depends']):
            name = item.split()[0]
            if not re.match(pattern, name):
                continue
            have = [r['Version'] for r in apt.records(name)]
            wanted.append((name, version if version in have or not have
                           else have[0]))
    return wanted


def image_set(apt, package, version):
    """The packages that make a kernel with its modules."""
    return _needed(apt, package, version, 'linux-(base|binary|modules)-.*'
                   + re.escape(release_of(package)))


def header_set(apt, package, version):
    """The packages that make a complete header tree."""
    return _needed(apt, package, version,
                   'linux-(headers-.*-common|kbuild-)')


def release_of(package):
    """The kernel's release, as uname prints it, from a package's name."""
    return re.sub('^linux-(image|headers)-', '', package)


def read_info(directory):
    try:
        info = json.loads((directory / 'info.json').read_text())
    except (OSError, ValueError):
        return None
    return info if info.get('layout') == LAYOUT else None


def write_info(directory, **info):
    (directory / 'info.json').write_text(
        json.dumps({'layout': LAYOUT, **info}, indent=1) + '\n')


def _zstd(data, most):
    # Python 3.11 has no module for it.
    if not shutil.which('zstd'):
        raise LabError('no program zstd, which decompresses the kernel: '
                       'install the package zstd')
    with tempfile.TemporaryFile() as f:
        f.write(data)
        f.seek(0)
        with subprocess.Popen(['zstd', '-dcq'], stdin=f,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            found = process.stdout.read(most)
            process.kill()
    return found


def _xz(data, most):
    return lzma.LZMADecompressor(memlimit=XZ_MEMORY).decompress(data, most)


# (magic, function); it decompresses data to at most the given size.
COMPRESSIONS = (
    (XZ, _xz),
    (b'\x28\xb5\x2f\xfd', _zstd),
    (b'\x1f\x8b\x08',
     lambda data, most: zlib.decompressobj(31).decompress(data, most)))


def _places(data, magic):
    """The first positions of these bytes, which may also occur by chance."""
    at = -1
    for _ in range(PLACES_MAX):
        at = data.find(magic, at + 1)
        if at < 0:
            return
        yield at


def decompress(image, out):
    """Cut the ELF kernel out of a bzImage: booting it directly (PVH) saves
    the guest the decompression."""
    data = image.read_bytes()
    missing = None
    for magic, unpacked in COMPRESSIONS:
        for at in _places(data, magic):
            rest = memoryview(data)[at:]
            try:
                if unpacked(rest, 4) != b'\x7fELF':
                    continue
                kernel = unpacked(rest, KERNEL_MAX + 1)
            except (lzma.LZMAError, zlib.error):
                continue
            except LabError as e:
                missing = e
                continue
            if len(kernel) > KERNEL_MAX:
                raise LabError(f'the decompressed kernel in {image.name} has '
                               f'more than {KERNEL_MAX} bytes')
            out.write_bytes(kernel)
            return
    raise missing or LabError(f'no compressed kernel found in {image.name}')


def unpack_module(data, most):
    """Decompress a module if it is compressed, as insmod needs it."""
    if data.startswith(XZ):
        try:
            data = _xz(data, most + 1)
        except lzma.LZMAError as e:
            raise LabError(f'a module is damaged: {e}') from e
    if len(data) > most:
        raise LabError(f'decompressed modules have more than {most} bytes')
    return data


def vmlinuz(root, release):
    """The kernel's file, which Debian 14 and later have beside the modules."""
    beside = root / 'lib' / 'modules' / release / 'vmlinuz'
    return beside if beside.exists() else root / 'boot' / f'vmlinuz-{release}'


def _busybox(arch):
    root = foreign.root(arch) if arch.foreign else Path('/')
    for path in (root / 'bin' / 'busybox', root / 'usr' / 'bin' / 'busybox'):
        if os.access(path, os.X_OK):
            return path
    raise LabError('no busybox: install busybox-static')


def module_files(root, release, names):
    """Files for insmod, in order, of modules of an unpacked kernel."""
    files = []
    for module in names:
        shown = subprocess.run(
            ['/sbin/modprobe', '-d', str(root), '-S', release,
             '--show-depends', module], text=True, capture_output=True,
            check=False)
        if shown.returncode != 0:
            raise LabError(f'kernel module {module}: '
                           f'{shown.stderr.strip()}')
        for line in shown.stdout.splitlines():
            if line.startswith('insmod ') and line.split()[1] not in files:
                files.append(line.split()[1])
    return files


def write_cpio(tree, out):
    """Pack a directory as an initramfs, with files owned by root."""
    files = '\n'.join(str(p.relative_to(tree))
                      for p in sorted(tree.rglob('*')))
    with open(out, 'wb') as f:
        subprocess.run(['cpio', '-o', '-H', 'newc', '--quiet', '-R', '+0:+0'],
                       input=files.encode(), stdout=f, cwd=tree, check=True)


def _early_modules(files, to):
    """Copy modules, decompressed, as insmod needs them; their names."""
    names = []
    for source in map(Path, files):
        name = source.name.removesuffix('.xz')
        data = source.read_bytes()
        (to / name).write_bytes(lzma.decompress(data) if name != source.name
                                else data)
        names.append(name)
    return names


def write_initramfs(out, init, modules, arch=NATIVE, more=None):
    """Write an initramfs that runs the script @init. @modules: files to
    insmod, in this order, which /mods/list repeats; @more: {path: file} to
    add."""
    busybox = _busybox(arch)
    with tempfile.TemporaryDirectory() as temp:
        tree = Path(temp)
        for name in ('bin', 'dev', 'proc', 'sys', 'lower', 'rw', 'newroot',
                     'mods'):
            (tree / name).mkdir()
        shutil.copy(busybox, tree / 'bin' / 'busybox')
        for name in APPLETS:
            (tree / 'bin' / name).symlink_to('busybox')
        names = _early_modules(modules, tree / 'mods')
        (tree / 'mods' / 'list').write_text(''.join(f'{n}\n' for n in names))
        for path, source in (more or {}).items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tree / path)
        (tree / 'init').write_text(init)
        (tree / 'init').chmod(0o755)
        write_cpio(tree, out)


class Kernel:
    """A prepared guest kernel."""

    def __init__(self, series, release, root=None, made=None, arch=NATIVE):
        """@root: the directory of its modules; @made: that of vmlinux and
        initramfs"""
        self.series = series
        self.release = release
        self.arch = arch
        self.root = root or arch.kernels / series
        self.made = made or self.root
        self.vmlinux = self.made / 'vmlinux'
        self.initramfs = self.made / 'initramfs.cpio'
        self.modules = self.root / 'lib' / 'modules' / self.release

    def make(self):
        """Make vmlinux and the initramfs."""
        image = vmlinuz(self.root, self.release)
        if self.arch.foreign:
            shutil.copy(image, self.vmlinux)    # QEMU can boot it as it is
        else:
            decompress(image, self.vmlinux)
        write_initramfs(self.initramfs, INIT, module_files(
            self.root, self.release, EARLY_MODULES), self.arch)


def _headers_exist(apt, image, version):
    """Fetch the headers of a kernel image; whether the archive has them. The
    lab cannot use a kernel without headers."""
    package = f'linux-headers-{release_of(image)}'
    wanted = header_set(apt, package, version)
    return len(wanted) > 1 and fetch_set(apt, wanted) is not None


def prepared(series, arch=NATIVE):
    """The kernel of a series if it was prepared, or None."""
    info = read_info(arch.kernels / series)
    return Kernel(series, info['release'], arch=arch) if info else None


def prepare(series=None, arch=NATIVE):
    """Fetch and unpack the kernel of a series; instant if it exists."""
    series = series or arch.series or DEFAULT or machine_series()
    made = prepared(series, arch)
    if made:
        return made
    if arch.foreign:
        foreign.root(arch)
    with state_lock():
        root = arch.kernels / series
        made = prepared(series, arch)    # by another process meanwhile
        if made:
            return made
        say(f'guest kernel {series} {arch.name}: fetching')
        for apt, _, package, version in _candidates(
                series, 'linux-image', arch):
            if not _headers_exist(apt, package, version):
                continue
            debs = fetch_set(apt, image_set(apt, package, version))
            if debs is None:
                continue
            say(f'guest kernel {series} {arch.name}: taking {package} '
                f'{version}')
            release = release_of(package)
            shutil.rmtree(root, ignore_errors=True)
            unpack(debs, root)
            # A merged-usr package unpacks below usr/.
            if not (root / 'lib').exists():
                (root / 'lib').symlink_to('usr/lib')
            subprocess.run(['/sbin/depmod', '-b', str(root), release],
                           check=True)
            Kernel(series, release, arch=arch).make()
            write_info(root, release=release, version=version,
                        package=package)
            return prepared(series, arch)
    raise Unavailable(f'cannot fetch a Debian kernel {series} for '
                      f'{arch.name}{arch.flavour}: see above')


def relocate(prefix, release):
    """Change an unpacked header tree to refer to itself instead of /usr."""
    tree = prefix / 'usr' / 'src' / f'linux-headers-{release}'
    makefile = tree / 'Makefile'
    text = makefile.read_text()
    makefile.write_text(re.sub(r'(?<![\w/])/usr/src/', f'{prefix}/usr/src/',
                               text))
    for base in (prefix / 'usr' / 'src').iterdir():
        for entry in base.iterdir():
            if not entry.is_symlink():
                continue
            target = os.readlink(entry)
            if target.startswith('/usr/'):
                entry.unlink()
                entry.symlink_to(f'{prefix}{target}')
    # If the kernel's type information exists, kbuild needs pahole to add the
    # module's. Guests do not need it.
    (tree / 'vmlinux').unlink(missing_ok=True)
    return tree


def _kbuild(suite, package, version):
    """The files of kbuild's package for this machine's architecture."""
    apt = suites.apt(suite)
    if not apt:
        return None
    versions = [r['Version'] for r in apt.records(package)]
    versions.sort(key=lambda v: v != version)
    return next((debs for v in versions
                 if (debs := fetch_set(apt, [(package, v)]))), None)


def unpack_headers(apt, suite, package, version, prefix, arch):
    """Make a header tree to build modules against; None if a package cannot be
    fetched."""
    wanted = header_set(apt, package, version)
    if len(wanted) < 3:
        return None
    kbuild = []
    if arch.foreign:
        own = next(w for w in wanted if w[0].startswith('linux-kbuild-'))
        wanted.remove(own)
        kbuild = _kbuild(suite, *own)
    debs = fetch_set(apt, wanted)
    if debs is None or kbuild is None:
        return None
    debs += kbuild
    shutil.rmtree(prefix, ignore_errors=True)
    unpack(debs, prefix)
    return relocate(prefix, release_of(package))


def compiler_of(apt, package):
    """The package of the compiler that headers need."""
    for record in apt.records(package):
        found = re.search(r'\bgcc-(\d+)', record['Depends'])
        if found:
            return f'gcc-{found[1]}'
    raise LabError(f'{package} names no compiler')


def headers(series, arch=NATIVE):
    """A directory that `make -C DIR M=...` builds modules against."""
    with state_lock():
        prefix = arch.headers / series
        info = read_info(prefix)
        if info:
            return Path(info['tree'])
        kernel = read_info(arch.kernels / series)
        for apt, suite, package, version in _candidates(
                series, 'linux-headers', arch):
            # The same version as the guest kernel, if that exists
            if kernel and kernel['version'] != version:
                continue
            say(f'kernel headers {series}: taking {package} {version}')
            tree = unpack_headers(apt, suite, package, version, prefix, arch)
            if not tree:
                continue
            write_info(prefix, release=release_of(package), version=version,
                       tree=str(tree), suite=suites.base(suite),
                       compiler=compiler_of(apt, package))
            return tree
    raise Unavailable(
        f'cannot fetch Debian kernel headers {series}: see above')


def building(info, arch=NATIVE):
    """The words before a make that builds modules. @info: that of the header
    tree. Headers of this machine's Debian need only this machine's compiler.
    Other headers need the compiler of their suite, in a root of its own."""
    suite = info.get('suite', suites.machine())
    cross = ['env', f'CROSS_COMPILE={arch.cross}'] if arch.foreign else []
    if suite == suites.machine():
        return cross
    compiler = info['compiler']
    if arch.foreign:
        compiler += '-' + arch.cross.strip('-')
    return [*buildroot.inside(buildroot.prepare(suite, compiler)), *cross]


def builder(series, arch=NATIVE):
    """Like building(), for the headers of a series. They must have been
    fetched."""
    return building(read_info(arch.headers / series), arch)


def newest():
    """The newest series of all suites, without release candidates."""
    found = {series_of(record['Version']) for apt, _ in suites.sources()
             for record in apt.records('linux-image-amd64')}
    return max(found, key=lambda series: [int(n) for n in series.split('.')])
