# SPDX-License-Identifier: GPL-2.0-or-later
"""Open MPI of Debian over UCX: programs whose ranks are in both guests."""
from contextlib import contextmanager

from guestkit.adapter import address
from guestkit.paths import LabError

from . import unpacked
from .places import PROGRAMS
from .programs import build
from .ucx import SETTINGS

SHELL = PROGRAMS / 'far_shell.sh'
SHELL_PORT = 2222

# Debian's Open MPI uses UCX only on request. If there are more ranks than
# processors, ranks that poll have to yield.
OPTIONS = ('--allow-run-as-root --mca pml ucx --mca osc ucx '
           f'--mca plm_rsh_agent {SHELL} --bind-to none '
           '--mca mpi_yield_when_idle 1')


def tree():
    return unpacked.tree('mpi', ('openmpi-bin', 'libopenmpi3'),
                         alone=('libopenmpi-dev',))


def build_verify():
    """Build mpi_verify for guests that have Open MPI."""
    found = sorted(tree().glob('usr/lib/*/openmpi/include/mpi.h'))
    if not found:
        raise LabError(f'no mpi.h below {tree()}')
    libraries = found[0].parents[2]
    return build('mpi_verify', [PROGRAMS / 'mpi_verify.c'],
                 f'-I{found[0].parent}', f'-L{libraries}/openmpi/lib',
                 f'-Wl,-rpath-link,{libraries}', '-lmpi')


@contextmanager
def shell(bench):
    """Serve a shell in guest 2 during the block. mpirun in guest 1 starts its
    daemon in guest 2 by this shell."""
    job = bench.two.spawn(f'{unpacked.inside(tree())} {SHELL} serve /bin/bash',
                          SHELL_PORT)
    try:
        yield
    finally:
        job.kill()
        job.wait(10)


def run(bench, ranks, command, timeout, more=()):
    """Run a program with half of its ranks in each guest. @more: settings of
    UCX besides those that a guest needs"""
    hosts = ','.join(f'{address(i)}:{ranks // 2}' for i in (1, 2))
    settings = ' '.join(f'-x {s}' for s in (*SETTINGS, *more))
    return bench.one.run(
        f'{unpacked.inside(tree())} mpirun.openmpi {OPTIONS} {settings} '
        f'--host {hosts} -np {ranks} {command}', timeout)
