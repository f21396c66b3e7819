# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs and libraries of another Debian in guests, with a provider that is
built for its libibverbs. The kernel and its driver stay those of the guest."""
import functools
import re

from guestkit import buildroot, driver
from guestkit.paths import STATE, LabError, Unavailable, say, state_lock

from .runner import Skip

PACKAGES = ('ibverbs-utils', 'ibverbs-providers', 'rdmacm-utils', 'perftest',
            'python3-pyverbs', 'rdma-core', 'iproute2', 'coreutils', 'dash')
LIBRARIES = 'usr/lib/x86_64-linux-gnu'
DRIVERS = 'etc/libibverbs.d'
# Bind mounts, as the root is part of the guest's read-only root
ENTER = '''for name in dev sys proc out; do
    mountpoint -q {root}/$name || mount --rbind /$name {root}/$name || exit
done'''


def version(root):
    """Return the version of rdma-core in a root."""
    found = [re.fullmatch(r'libibverbs\.so\.1\.\d+\.(\d+\.\d+)', path.name)
             for path in (root / LIBRARIES).glob('libibverbs.so.1.*')]
    if len(found) != 1 or not found[0]:
        raise LabError(f'{root}: no libibverbs')
    return found[0][1]


def _add_provider(root):
    """Build the provider for a root, and install it there."""
    library, settings = driver.compile_provider(
        version(root).split('.', maxsplit=1)[0], root / 'provider')
    peers = list((root / LIBRARIES / 'libibverbs').glob(
        'librxe-rdmav*.so'))
    assert [path.name.replace('librxe', 'libvirtio_rdma')
            for path in peers] == [library.name], (peers, library)
    for path, folder in ((library, f'{LIBRARIES}/libibverbs'),
                         (settings, DRIVERS)):
        at = root / folder / path.name
        at.unlink(missing_ok=True)
        at.write_bytes(path.read_bytes())


@functools.cache
def prepare(suite):
    """Return the root of a suite. Skip if its packages are not available."""
    root = STATE / 'userland' / suite
    ready, packages = root / 'ready', ' '.join(PACKAGES)
    with state_lock():
        if not ready.exists() or ready.read_text() != packages:
            say(f'programs of {suite}: fetching')
            root.parent.mkdir(parents=True, exist_ok=True)
            try:
                buildroot.fill(root, suite, PACKAGES)
            except Unavailable as e:
                raise Skip(str(e)) from e
            for name in ('dev', 'sys', 'proc', 'out', 'tmp'):
                (root / name).mkdir()
            ready.write_text(packages)
        _add_provider(root)
    return root


def enter(vms, suite):
    """Let guests run programs of a suite. Return what such a command begins
    with."""
    root = prepare(suite)
    for vm in vms:
        vm.must(ENTER.format(root=root))
    return f'chroot {root} '
