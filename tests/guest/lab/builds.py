# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds for tests besides their programs: a faulty device, and the libibverbs
of rdma-core."""
import functools
import shutil

from guestkit import driver, kernel
from guestkit.paths import MODULES, STATE, TOP, state_lock

from .places import PROGRAMS

ABI = TOP / 'include' / 'standard-headers'


@functools.cache
def broken_device(series):
    """Build the module of the faulty device. Later calls do not run make,
    which would take as long as a test."""
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
    """Build rdma-core's libibverbs with rxe's provider: the machine's own may
    be older. Return a directory with include/ and lib/, which programs use in
    place."""
    driver.provider()
    build = STATE / 'rdma-core' / 'build'
    with state_lock():
        driver.run_logged('libibverbs', STATE / 'libibverbs.log', [
            'ninja', '-C', str(build), 'ibverbs', 'rxe-rdmav34'])
    return build
