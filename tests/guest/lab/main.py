# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of tests/guest/run."""
import argparse
import os

from guestkit import accel, driver, kernel
from guestkit.arch import ARM64
from guestkit.paths import LOGS, LabError, say
from guestkit.vm import Vm

from . import (appbench, demo, guestbench, interop, kernels, migration,
               mrbench, pvrdmabench, pyverbs, qpbench, qtests, querybench,
               soak, tcp, uml, verbsbench, vmmbench, wire, workers)

# Stacks for tests that run on either one. Test files for pvrdma set STACK.
STACKS = ('virtio-rdma', 'rxe')
# Directories of tests below tests/guest
SUITES = (workers.CHECK, 'users', 'newer', 'verbs', 'applications', 'series',
          'hosts', 'libvirt', 'vmm', 'arm64', 'faults', 'images', 'monitors',
          'providers', 'pvrdma', 'vrdma-lab', 'containers', 'layouts')


def do_headers(args):
    print(kernel.headers(args.series))
    return 0


def do_vm(args):
    """Boot one guest, run a script in it, return the script's exit code."""
    script = os.path.realpath(args.script)
    if not os.path.exists(script):
        raise LabError(f'no script {args.script}')
    net = []
    if args.net:
        net = ['-netdev', f'{args.net},id=n0', '-device',
               'virtio-net-pci,netdev=n0,addr=4.0,multifunction=on,'
               'host_mtu=9000,romfile=']
    vm = Vm(args.name, *net, *args.qemu, series=args.series, smp=args.smp,
            mem=args.mem).start()
    try:
        say(f'{vm.name}: up after {vm.wait_ready():.1f} s in the guest')
        log = f'/out/{vm.name}.log'
        result = vm.run(f'exec > {log} 2>&1; . {script}', args.timeout)
        print((vm.out / f'{vm.name}.log').read_text(errors='replace'),
              end='')
        say(f'{vm.name}: logs in {LOGS}')
        if result.rc is None:
            say(f'{vm.name}: no end after {args.timeout} s')
            return 124
        return result.rc & 255
    finally:
        vm.quit()


def choose_kernel(series):
    """Choose the kernel of guests that do not name another one."""
    kernel.DEFAULT = series or kernel.DEFAULT
    if kernel.DEFAULT == 'newest':
        kernel.DEFAULT = kernel.newest()


def do_demo(args):
    choose_kernel(args.series)
    if args.only in (None, 'virtio-rdma'):
        driver.prepare()
    return demo.Demo(args.link, args.only, args.pcap, args.prefer,
                     accel.choose(args.accel)).run()


def do_check(args):
    choose_kernel(args.series)
    if args.stack != 'rxe':
        driver.prepare()
        if args.suite == ARM64.name:
            driver.prepare(arch=ARM64)
    return workers.Check(args.stack, args.pattern, args.suite, args.jobs,
                         args.slow).run()


def do_interop(args):
    driver.prepare()
    return interop.Interop(args.pattern).run()


def do_migration(args):
    driver.prepare()
    return migration.main(args.moves)


def do_soak(args):
    driver.prepare()
    return soak.main(args.seconds, args.seed)


def do_pyverbs(args):
    if args.stack != 'rxe':
        driver.prepare()
    return pyverbs.main(args.stack, args.cm, args.pattern)


def do_qtest(args):
    if args.stack != 'rxe':
        driver.prepare()
    return qtests.main(args.stack, args.programs, args.paths, args.timeout,
                       args.ibdev)


def do_bench_verbs_mr(args):
    return mrbench.main(args.mib)


def do_bench_verbs(args):
    driver.prepare()
    return verbsbench.main(args.rounds)


def do_bench_qps(args):
    driver.prepare()
    return qpbench.main(args.counts or qpbench.COUNTS, args.rounds)


def do_bench_query(args):
    driver.prepare()
    return querybench.main(args.rounds)


def do_bench_pvrdma(args):
    driver.prepare()
    return pvrdmabench.main(args.rounds)


def do_bench_vmm(args):
    driver.prepare()
    return vmmbench.main(args.rounds)


def do_bench_guests(args):
    driver.prepare()
    return guestbench.main(args.rounds)


def do_bench_applications(args):
    driver.prepare()
    return appbench.main(args.rounds, args.pattern)


def do_kernels(args):
    return kernels.main(args.pattern)


def do_uml(args):
    print(uml.prepare(args.series).program)
    return 0


def parser():
    top = argparse.ArgumentParser(
        prog='tests/guest/run',
        description='Real Debian guests on the QEMU built here.')
    commands = top.add_subparsers(dest='command', required=True)
    headers = commands.add_parser(
        'headers', help='print a directory to build modules against')
    headers.add_argument('series')
    headers.set_defaults(do=do_headers)
    one = commands.add_parser('vm', help='run a shell script in one guest')
    one.add_argument('--net', help='netdev without id, e.g. user')
    one.add_argument('--name', default='vm')
    one.add_argument('--series', help='kernel series')
    one.add_argument('--smp', type=int, default=1)
    one.add_argument('--mem', default='2G')
    one.add_argument('--timeout', type=float, default=300)
    one.add_argument('script')
    one.add_argument('qemu', nargs='*',
                     help='more QEMU arguments, after --')
    one.set_defaults(do=do_vm)
    show = commands.add_parser(
        'demo', help='RDMA between two guests, virtio-rdma beside rxe and '
                     'TCP')
    show.add_argument('--only', choices=[*STACKS, tcp.NAME])
    show.add_argument('--link', choices=wire.WIRES, default='stream')
    show.add_argument('--pcap', default=os.environ.get('PCAP') or None,
                      help='record some traffic of each kind here '
                           '(default: $PCAP)')
    show.add_argument('--series', help='kernel series of the guests')
    show.add_argument('--accel', choices=accel.CHOICES, default='auto',
                      help='accelerator of the guests (default: kvm if it '
                           'works, or else tcg)')
    show.add_argument('--same-priority', dest='prefer', action='store_false',
                      help="leave the priority of QEMU's main loops as it is")
    show.set_defaults(do=do_demo)
    check = commands.add_parser('check', help='run the guest tests')
    check.add_argument('--stack', choices=STACKS, default='virtio-rdma',
                       help='the stack under test; rxe shows whether the '
                            'tests themselves are right')
    check.add_argument('--series',
                       help='kernel series of the guests, or "newest" for '
                            'the last one that the archive has (default: '
                            '$GUEST_SERIES)')
    check.add_argument('--suite', choices=SUITES,
                       default=workers.CHECK,
                       help='a directory of tests (default: that of CI)')
    check.add_argument('--jobs', type=int,
                       help='how many pairs of guests at once')
    check.add_argument('--slow', action='store_true',
                       help='run slow tests, too, as with a pattern')
    check.add_argument('pattern', nargs='?',
                       help='regular expression of test names to run')
    check.set_defaults(do=do_check)
    matrix = commands.add_parser(
        'interop', help='virtio-rdma in one guest, rxe in the other')
    matrix.add_argument('pattern', nargs='?',
                        help='regular expression of cells to run, e.g. '
                             '"rping.*clean IPv6"')
    matrix.set_defaults(do=do_interop)
    cost = commands.add_parser(
        'bench-migration', help='measure what migration costs')
    cost.add_argument('--moves', type=int, default=9)
    cost.set_defaults(do=do_migration)
    long = commands.add_parser(
        'soak', help='trouble of all kinds during traffic, for a long time')
    long.add_argument('--seconds', type=int, default=1200)
    long.add_argument('--seed', type=int, default=1)
    long.set_defaults(do=do_soak)
    suite = commands.add_parser(
        'pyverbs', help="run rdma-core's own tests in a guest")
    suite.add_argument('--stack', choices=[*STACKS, 'both'],
                       default='virtio-rdma',
                       help='both compares: which tests does only rxe pass?')
    suite.add_argument('--no-cm', dest='cm', action='store_false',
                       help='leave the tests of RDMA CM out')
    suite.add_argument('pattern', nargs='?', default='',
                       help='regular expression of test names to run')
    suite.set_defaults(do=do_pyverbs)
    device = commands.add_parser(
        'qtest', help="run the device's tests in a guest that has an RDMA "
                      'device')
    device.add_argument('--stack', choices=STACKS, default='rxe',
                        help="the guest's device")
    device.add_argument('--programs', default=qtests.PROGRAMS,
                        help='regular expression of programs to run')
    device.add_argument('--paths', default='',
                        help='regular expression of tests to run')
    device.add_argument('--no-ibdev', dest='ibdev', action='store_false',
                        help="run them without the guest's RDMA device, as "
                             'on this machine')
    device.add_argument('--timeout', type=int, default=3000)
    device.set_defaults(do=do_qtest)
    register = commands.add_parser(
        'bench-verbs-mr', help='measure what registration of memory costs '
                               'with rdma-verbs')
    register.add_argument('--mib', type=int, default=1024)
    register.set_defaults(do=do_bench_verbs_mr)
    speed = commands.add_parser(
        'bench-verbs', help='measure rdma-verbs in a nested guest beside its '
                            'host')
    speed.add_argument('--rounds', type=int, default=verbsbench.ROUNDS)
    speed.set_defaults(do=do_bench_verbs)
    qps = commands.add_parser(
        'bench-qps', help='measure rate, latency and memory with many queue '
                          'pairs')
    qps.add_argument('counts', type=int, nargs='*')
    qps.add_argument('--rounds', type=int, default=qpbench.ROUNDS)
    qps.set_defaults(do=do_bench_qps)
    look = commands.add_parser(
        'bench-query', help='measure query-rdma of 1000 queue pairs at work')
    look.add_argument('--rounds', type=int, default=querybench.ROUNDS)
    look.set_defaults(do=do_bench_query)
    guests = commands.add_parser(
        'bench-guests', help='measure two guests of one host beside a copy '
                             'and beside rxe')
    guests.add_argument('--rounds', type=int, default=guestbench.ROUNDS)
    guests.set_defaults(do=do_bench_guests)
    other = commands.add_parser(
        'bench-pvrdma', help='measure pvrdma beside virtio-rdma')
    other.add_argument('--rounds', type=int, default=pvrdmabench.ROUNDS)
    other.set_defaults(do=do_bench_pvrdma)
    served = commands.add_parser(
        'bench-vmm', help='measure adapters of virtio-rdma-server beside '
                          'those in QEMU')
    served.add_argument('--rounds', type=int, default=vmmbench.ROUNDS)
    served.set_defaults(do=do_bench_vmm)
    programs = commands.add_parser(
        'bench-applications', help='measure applications beside rxe')
    programs.add_argument('--rounds', type=int, default=appbench.ROUNDS)
    programs.add_argument('pattern', nargs='?', default='',
                          help='regular expression of rows to measure')
    programs.set_defaults(do=do_bench_applications)
    every = commands.add_parser(
        'kernels', help='compile the driver for all kernels of the archive')
    every.add_argument('pattern', nargs='?', default='',
                       help='regular expression of names of packages, e.g. '
                            '"6.1.0.*[0-9]-amd64"')
    every.set_defaults(do=do_kernels)
    user_mode = commands.add_parser(
        'uml', help='make the host of nested guests, User-mode Linux')
    user_mode.add_argument('series', nargs='?')
    user_mode.set_defaults(do=do_uml)
    return top


def main(argv=None):
    args = parser().parse_args(argv)
    try:
        wire.chosen()
        return args.do(args)
    except LabError as e:
        say(f'tests/guest/run: {e}')
        return 1
    except KeyboardInterrupt:
        return 130
