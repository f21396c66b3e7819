# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests build besides programs: a device that does wrong, and the
libibverbs of rdma-core."""
import functools
import shutil

from guestkit import driver, kernel
from guestkit.paths import MODULES, STATE, TOP, state_lock

from .places import PROGRAMS

ABI = TOP / 'include' / 'standard-headers'


@functools.cache
def broken_device(series):
    """Build the module that is a device which does wrong. To ask make again
    whether anything has changed takes as long as a test of it."""
    tree = kernel.headers(series)
    inside = kernel.builder(series)
    build = STATE / 'broken' / series
    with state_lock():
        shutil.copytree(PROGRAMS / 'broken', build, dirs_exist_ok=True)
        shutil.copytree(ABI, build / 'include', dirs_exist_ok=True)
        driver.run_logged(
            'the broken device', STATE / f'broken-{series}.log',
            [*inside, 'make', '-C', str(tree), f'M={build}',
             f'VRDMA_HEADERS={build}/include', 'modules'])
        target = MODULES / series / 'broken_device.ko'
        shutil.copyfile(build / 'broken_device.ko', target)
    return target


def libibverbs():
    """Build the libibverbs of rdma-core, which knows what the machine's may
    not, with rxe's provider. Returns a directory: what its include/ and lib/
    hold is to be used where they are."""
    driver.provider()
    build = STATE / 'rdma-core' / 'build'
    with state_lock():
        driver.run_logged('libibverbs', STATE / 'libibverbs.log', [
            'ninja', '-C', str(build), 'ibverbs', 'rxe-rdmav34'])
    return build
