# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in guests: a server in one guest, its client in the other."""
import os
import subprocess

from guestkit import foreign
from guestkit.adapter import address
from guestkit.arch import NATIVE
from guestkit.paths import PROVIDER, LabError

from . import builds
from .places import PROGRAMS

PORT = 18515


class Exchange:
    """Results of a server and of its client."""

    def __init__(self, client, server):
        self.client, self.server = client, server

    @property
    def ok(self):
        return self.client.ok and self.server.ok

    @property
    def seconds(self):
        return self.client.seconds

    def __str__(self):
        # Reports of failed tests may be cut, so both ends of the output come
        # first.
        return (f'server: {self.server.end}\nclient: {self.client.end}\n'
                f'server: {self.server}\nclient: {self.client}')


def exchange(server_vm, client_vm, server_cmd, client_cmd, port=PORT,
             timeout=60):
    """Run a server until its client ends. Both must end by themselves."""
    job = server_vm.spawn(server_cmd, port)
    client = client_vm.run(client_cmd, timeout)
    # A client that failed leaves its server waiting for ever.
    server = job.wait(10 if client.ok else 1)
    return Exchange(client, server)


def wait_listening(vm, command):
    """Wait for the listener of a program that RDMA CM connects to. The
    listener of the program before it may still exist for a moment."""
    name = os.path.basename(command.split()[0])[:15]
    vm.must('for i in $(seq 100); do rdma resource show cm_id | '
            f'grep -q "state LISTEN .*comm {name} " && exit 0; sleep 0.1; '
            'done; exit 1')


def cm_exchange(server_vm, client_vm, server_cmd, client_cmd, timeout=30,
                listener=None):
    """Like exchange(), for a server that its client connects to by RDMA CM.
    @listener: the program that listens, if the command begins with another
    one."""
    job = server_vm.spawn(server_cmd)
    wait_listening(server_vm, listener or server_cmd)
    client = client_vm.run(client_cmd, timeout)
    return Exchange(client, job.wait(15 if client.ok else 1))


def rping_time(pair, count):
    """Return (Exchange, mean seconds of a ping of 64 bytes, or None). Subtract
    the time of a run with one ping, in which most of the time goes into the
    connection, from that of a run with @count more."""
    def ping(number):
        options = f'-a {address(2)} -C {number} -S 64'
        return cm_exchange(pair.two, pair.one, f'rping -s {options}',
                           f'rping -c {options}', 60)

    first, rest = ping(1), ping(1 + count)
    took = rest.seconds - first.seconds
    good = first.ok and rest.ok and took > 0
    return rest, took / count if good else None


def perftest_cm_exchange(*args, **kwargs):
    """Like cm_exchange(), for perftest with -R. Its client may connect before
    its server listens. Then the client is rejected for an unknown service ID
    (error 8), and may crash when it tries again. So run both again, up to five
    times in all."""
    for _ in range(5):
        result = cm_exchange(*args, **kwargs)
        if 'RDMA_CM_EVENT_REJECTED; error: 8' not in result.client.out:
            break
    return result


def _compiler(arch):
    """Return a compiler that uses the libraries of the guests' root."""
    if not arch.foreign:
        return ['cc']
    return [f'{arch.cross}gcc', f'--sysroot={foreign.root(arch)}']


def build(name, sources, *options, arch=NATIVE):
    """Compile a program against the guests' libibverbs, or the one that the
    options name. Guests find the program where it is built."""
    binary = arch.bin / name
    if binary.exists() and binary.stat().st_mtime >= \
            max(s.stat().st_mtime for s in sources):
        return binary
    arch.bin.mkdir(parents=True, exist_ok=True)
    # Other processes may build it at the same time, or run it.
    made = f'{binary}.{os.getpid()}'
    done = subprocess.run(
        [*_compiler(arch), '-std=gnu11', '-O2', '-g', '-Wall', '-Wextra',
         '-Werror', '-o', made] +
        [str(s) for s in sources if s.suffix == '.c'] +
        [*options, '-libverbs'], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f'cannot build {name}:\n{done.stderr}')
    os.replace(made, binary)
    return binary


def build_folder(name, *options, arch=NATIVE):
    """Build the program rdma_NAME from the sources in a folder."""
    return build(f'rdma_{name}', sorted(PROGRAMS.glob(f'{name}/*.[ch]')),
                 *options, arch=arch)


def build_verify(arch=NATIVE):
    return build_folder('verify', arch=arch)


def build_objects():
    return build_folder('objects')


def build_posts():
    return build_folder('posts', '-lrdmacm')


def build_hostile():
    """Build rdma_hostile, which replaces functions that libibverbs calls."""
    return build_folder('hostile', '-rdynamic', '-pthread')


def build_bad_response():
    return build('bad_response', [PROGRAMS / 'bad_response.c',
                                  PROGRAMS / 'open_device.h'], '-pthread')


def build_hold():
    return build('hold_region', [PROGRAMS / 'hold_region.c',
                                 PROGRAMS / 'open_device.h'])


def build_no_doorbells():
    return build('no_doorbells.so', [PROGRAMS / 'no_doorbells.c'],
                 '-shared', '-fPIC', '-ldl')


def build_self_qp(name, arch=NATIVE):
    """Build a program whose queue pairs are connected to themselves."""
    return build(name, [PROGRAMS / source for source in (
        f'{name}.c', 'self_qp.c', 'self_qp.h')], arch=arch)


def run_no_syscalls(bench):
    """Run a process in guest 1 that posts, polls and arms. A system call for
    these ends the process."""
    vm = bench.one
    result = vm.run(f'{build_self_qp("no_syscalls", vm.arch)} '
                    f'{bench.where(vm, "{} {}")}', 60)
    assert result.ok, str(result)


def run_case(bench, name, family=4, timeout=60):
    """Run a case of rdma_objects in guest 1; return its output."""
    where = bench.where(bench.one, '-d {} -g {}', family)
    result = bench.one.run(f'{build_objects()} {where} {name}', timeout)
    if not result.ok or not result.out.rstrip().endswith(': fine'):
        raise LabError(str(result))
    return result.out


def build_placement():
    """Build rdma_placement, and return the command that starts it. Debian 12's
    libibverbs has no FLUSH: the program uses one that is built here, and gets
    the path of the providers."""
    tree = builds.libibverbs()
    binary = build('rdma_placement', [PROGRAMS / 'placement.c'],
                   f'-I{tree}/include', f'-L{tree}/lib')
    return (f'LD_LIBRARY_PATH={tree}/lib '
            f'IBV_DRIVERS={PROVIDER}/libvirtio_rdma:{tree}/lib/librxe '
            f'{binary}')
