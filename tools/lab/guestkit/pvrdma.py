# SPDX-License-Identifier: GPL-2.0-or-later
"""vmw_pvrdma, Linux's own driver of pvrdma. Debian's kernels are configured
without this driver, so it is built here, unmodified, from the source of a
kernel of the same series."""
import shutil
import tempfile
from pathlib import Path

from . import kernel
from .arch import NATIVE
from .driver import run_logged
from .paths import say, state_lock
from .source import unpack_source

DRIVER = 'vmw_pvrdma'
FOLDER = f'drivers/infiniband/hw/{DRIVER}'
OPTION = 'CONFIG_INFINIBAND_VMWARE_PVRDMA=m'


def _compile(made, tree, inside, build):
    """Build the module in a directory; its file. @inside: the answer of
    kernel.builder()"""
    log = build.with_name(f'{build.name}.log')
    shutil.rmtree(build, ignore_errors=True)
    build.parent.mkdir(parents=True, exist_ok=True)
    its = kernel.read_info(made.root)['version']
    with tempfile.TemporaryDirectory(dir=build.parent) as temp:
        version, source = unpack_source(
            made.series, Path(temp), log,
            ['--wildcards', f'*/{FOLDER}/*'], its)
        shutil.copytree(source / FOLDER, build)
    say(f'{DRIVER} of Linux {version}: building for {made.release}')
    run_logged(f'{DRIVER} for {made.release}', log,
               [*inside, 'make', '-C', str(tree), f'M={build}', OPTION,
                'modules'])
    kernel.write_info(build, release=made.release, version=version)
    return build / f'{DRIVER}.ko'


def module(made):
    """Build the module for a prepared kernel; instant if it exists."""
    tree = kernel.headers(made.series)
    inside = kernel.builder(made.series)
    build = NATIVE.drivers / f'{DRIVER}-{made.series}'
    target = NATIVE.modules / made.series / f'{DRIVER}.ko'
    with state_lock():
        info = kernel.read_info(build)
        if not info or info['release'] != made.release or \
                not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_compile(made, tree, inside, build), target)
    return target


def prepare(series=None):
    """Prepare a guest with pvrdma: (kernel, module)."""
    made = kernel.prepare(series)
    result = made, module(made)
    say(f'guest: Linux {made.release}, {result[1].name}')
    return result
