# SPDX-License-Identifier: GPL-2.0-or-later
"""The root of guests of another architecture: files of its Debian packages, of
the machine's own suite. None of their programs runs on the machine."""
from . import buildroot, suites
from .paths import say, state_lock

PACKAGES = ('bash', 'dash', 'coreutils', 'findutils', 'grep', 'sed', 'mawk',
            'gzip', 'hostname', 'procps', 'util-linux', 'mount', 'kmod',
            'iproute2', 'libc-bin', 'e2fsprogs', 'busybox-static',
            'python3', 'rdma-core', 'ibverbs-providers', 'ibverbs-utils',
            'rdmacm-utils', 'perftest', 'python3-pyverbs', 'libibverbs-dev')

# Files that packages would create during their installation
FILES = {
    'passwd': 'root:x:0:0:root:/root:/bin/bash\n',
    'group': 'root:x:0:\n',
    'hosts': '127.0.0.1 localhost\n',
}


def root(arch):
    """The root of such guests; instant if it exists."""
    made = arch.state / 'root'
    ready = arch.state / 'root.ready'
    stamp = ' '.join(PACKAGES)

    def there():
        return ready.exists() and ready.read_text() == stamp
    if there():
        return made
    with state_lock():
        if there():
            return made
        say(f'root of {arch.name} guests: fetching')
        arch.state.mkdir(parents=True, exist_ok=True)
        ready.unlink(missing_ok=True)
        buildroot.fill(made, suites.machine(), PACKAGES, arch)
        for name, text in FILES.items():
            (made / 'etc' / name).write_text(text)
        ready.write_text(stamp)
    return made
