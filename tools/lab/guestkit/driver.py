# SPDX-License-Identifier: GPL-2.0-or-later
"""The guest's own software, built on the host: virtio_rdma.ko for a kernel
series, and the libibverbs provider."""
import os
import shutil
import subprocess

from . import kernel
from .arch import NATIVE
from .paths import INSTALLED, STATE, TOP, LabError, say, state_lock

DRIVER = TOP / 'guest' / 'linux'
PROVIDER_SCRIPT = TOP / 'guest' / 'rdma-core' / 'build.sh'


def run_logged(what, log, command):
    """Run a build command with its output in the file @log. If it fails, the
    error has the end of that output."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, 'w', encoding='utf-8') as out:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT, check=False,
                              env={**os.environ,
                                   'MAKEFLAGS': f'-j{os.cpu_count()}'})
    if done.returncode != 0:
        tail = '\n'.join(log.read_text(errors='replace').splitlines()[-30:])
        raise LabError(f'cannot build {what}, see {log}:\n{tail}')


def source(build, log):
    """Copy the driver's source into a directory, in the layout of DKMS."""
    if INSTALLED:
        version = (TOP / 'VERSION').read_text(encoding='ascii')
        shutil.copytree(f'/usr/src/virtio-rdma-{version.strip()}', build,
                        dirs_exist_ok=True)
        return
    run_logged('the source of the driver', log,
               [str(DRIVER / 'dist.sh'), str(build)])
    # Remove files that the driver no longer has. kbuild writes *.mod.c.
    for old in list(build.glob('*.c')) + list(build.glob('*.h')):
        if not (DRIVER / old.name).exists() and \
                not old.name.endswith('.mod.c'):
            old.unlink()


def compile_module(what, tree, inside, build):
    """Copy the driver's source to the directory @build, and compile there what
    has changed, with the command of DKMS. @what: the kernel, for errors;
    @tree: its headers; @inside: the answer of kernel.builder(). The caller
    holds state_lock()."""
    log = build.with_name(f'{build.name}.log')
    source(build, log)
    run_logged(f'the driver for {what}', log, [
        *inside, 'bash', '-euc', 'cd "$1"; kernel_source_dir=$2; '
        '. ./dkms.conf; ${MAKE[0]}', 'dkms', str(build), str(tree)])
    return build / 'virtio_rdma.ko'


def module(series, arch=NATIVE):
    """Build virtio_rdma.ko for a series."""
    tree = kernel.headers(series, arch)
    inside = kernel.builder(series, arch)
    with state_lock():
        made = compile_module(series, tree, inside, arch.drivers / series)
        target = arch.modules / series / 'virtio_rdma.ko'
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made, target)
    return target


def compile_provider(release, out):
    """Build the provider for a release of rdma-core, such as 65, into a
    directory, and return its files. The caller holds state_lock()."""
    run_logged(f'the provider for rdma-core {release}',
               out.with_name(f'{out.name}.log'),
               ['env', f'RDMA_CORE={release}', str(PROVIDER_SCRIPT), str(out),
                str(STATE / f'rdma-core-{release}')])
    library, = out.glob('libvirtio_rdma-rdmav*.so')
    return [library, out / 'virtio_rdma.driver']


def provider(arch=NATIVE):
    """Build the provider."""
    with state_lock():
        run_logged('the provider', arch.state / 'provider.log', [
            'env', f'CROSS_COMPILE={arch.cross}', str(PROVIDER_SCRIPT),
            str(arch.provider)])
    found = sorted(arch.provider.glob('libvirtio_rdma-rdmav*.so'))
    if not found:
        raise LabError(f'no provider in {arch.provider}')
    return found[0]


def prepare(series=None, arch=NATIVE):
    """Prepare a guest with virtio-rdma: (kernel, module, provider)."""
    made = kernel.prepare(series, arch)
    result = made, module(made.series, arch), provider(arch)
    say(f'guest: Linux {made.release}, {result[1].name}, {result[2].name}')
    return result
