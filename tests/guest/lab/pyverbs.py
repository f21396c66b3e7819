# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests in a guest, on an adapter or on rxe.

Debian ships them as documentation of the package rdma-core. Their Python
bindings are those of python3-pyverbs. The queue pairs of one guest are
connected to each other.
"""
import gzip
import json
import re
import shlex
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

from guestkit import foreign
from guestkit.adapter import net_up
from guestkit.agent import GuestGone
from guestkit.arch import NATIVE
from guestkit.packages import Apt, unpack
from guestkit.paths import LOGS, LabError, say
from guestkit.stack import STACKS
from guestkit.vm import Vm

from .pair import functions
from .places import PROGRAMS, RESULTS

INSTALLED = Path('/usr/share/doc/rdma-core/tests')
RUNNER = PROGRAMS / 'pyverbs_run.py'
OURS, RXE = 'virtio-rdma', 'rxe'
TIMEOUT = 900

# A hub with a single port drops all frames, but multicast frames need a
# destination.
NETDEV = ('-netdev', 'hubport,id=n0,hubid=0',
          '-netdev', 'user,id=sink,restrict=on',
          '-netdev', 'hubport,id=n1,hubid=0,netdev=sink')

# {pattern: feature that skipped tests need}. The first pattern that matches
# "test: reason" counts. No RoCE device in a guest has the features of FOREIGN.
# A device could have those of LACKS; docs/devel says why this one does not.
FOREIGN = {
    'test_mlx5|test_efa|[Cc]uda': "other vendors' devices",
    'QP type 8|Raw Packet': 'raw Ethernet queue pairs, which NICs have',
    'dmabuf': 'DMA buffers of a GPU',
}
LACKS = {
    'XRCD': 'extended reliable connections (XRC)',
    'test_odp': 'on-demand paging',
    'test_parent_domain': 'parent domains',
    'Device memory': 'memory on the device',
    'test_tag_matching': 'tag matching',
    'atomic_write': 'ATOMIC WRITE',
}

# How many times the process that runs the tests may die.
ATTEMPTS = 20


def version():
    """Return the version of the bindings; the tests need the same one."""
    done = subprocess.run(
        ['dpkg-query', '-W', '-f', '${Version}', 'python3-pyverbs'],
        capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout:
        raise LabError('no Python bindings for the tests: install '
                       'python3-pyverbs')
    return done.stdout


def tests(arch=NATIVE):
    """Return the path of the tests for guests of an architecture."""
    return arch.state / 'pyverbs' / 'tests'


def _lay_out(source, to):
    """Arrange the tests as in rdma-core."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for path in source.glob('*.py*'):
        read = gzip.open if path.suffix == '.gz' else open
        with read(path, 'rb') as f:
            (to / path.name.removesuffix('.gz')).write_bytes(f.read())


def prepare_foreign(arch):
    """Prepare the tests for guests of another architecture. The root of such
    guests has the bindings and the tests."""
    _lay_out(foreign.root(arch) / INSTALLED.relative_to('/'), tests(arch))


def prepare():
    """Prepare the tests for the machine's own bindings, and return their
    version."""
    wanted, source = version(), INSTALLED
    if not (source / 'run_tests.py').exists():
        # Some machines install no documentation.
        deb = Apt().fetch('rdma-core', wanted)
        if not deb:
            raise LabError(f'no {source}, and no package rdma-core {wanted}')
        package = NATIVE.state / 'pyverbs' / 'package'
        unpack([deb], package)
        source = package / INSTALLED.relative_to('/')
    _lay_out(source, tests())
    return wanted


def prepare_root(root):
    """Prepare the tests for programs of another Debian, see userland.py."""
    _lay_out(root / INSTALLED.relative_to('/'), root / 'pyverbs' / 'tests')
    shutil.copy(RUNNER, root / 'pyverbs')


def parse(text):
    """Return {test: (result, seconds, reason)} from the runner's notes. A test
    that began and has no result has killed the process."""
    results = {}
    for line in text.splitlines():
        note = json.loads(line)
        if 'result' in note:
            results[note['test']] = (note['result'], note['seconds'],
                                     ' '.join(note['why'].split()))
        else:
            results[note['test']] = ('ERROR', 0, 'the process died')
    return results


def run_in(vm, stack, cm=True, pattern='', log=None, enter=''):
    """Run the tests in a guest with a running stack, and return their
    results. @enter: what a command in a root of prepare_root() begins with"""
    notes = vm.out / 'results'
    notes.unlink(missing_ok=True)
    runner, of = (Path('/pyverbs') / RUNNER.name, '/pyverbs/tests') \
        if enter else (RUNNER, tests(vm.arch))
    command = enter + ' '.join(map(shlex.quote, (
        '/usr/bin/python3', '-u', '-B', str(runner), str(of),
        '/out/results', 'CM' if cm else 'NOCM', pattern,
        '--dev', stack.device, '--port', '1', '--gid', str(stack.gid(4)))))
    end = time.monotonic() + TIMEOUT
    log = log or LOGS / f'{vm.name}-pyverbs.log'
    with open(log, 'w', encoding='utf-8') as out:
        for _ in range(ATTEMPTS):
            done = vm.run(command, max(1, end - time.monotonic()))
            print(done, file=out, flush=True)
            if done.ok or done.rc is None:
                break
        print(vm.run('dmesg').out, file=out)
    if not done.ok:
        raise LabError(f'{stack.name}: the tests did not end, see {log}')
    if stack.name != RXE and vm.complaints():
        raise LabError(f"the guest's kernel complains, see {log}:\n" +
                       vm.complaints())
    results = parse(notes.read_text()) if notes.exists() else {}
    if not results:
        raise LabError(f'{stack.name}: no test has run, see {log}')
    return results


def run(name, cm=True, pattern=''):
    """Boot a guest with a stack, run the tests there, and return their
    results."""
    vm = Vm(f'pyverbs-{name}', *NETDEV, *functions(1, name != RXE), smp=2)
    try:
        vm.start()
        vm.wait_ready()
        net_up(vm, 1)
        stack = STACKS[name]()
        stack.up(vm)
        return run_in(vm, stack, cm, pattern, LOGS / f'pyverbs-{name}.log')
    except GuestGone as e:
        raise LabError(f'{e}\n{vm.errors()}') from e
    finally:
        vm.quit()


def counts(results):
    """Return (passed, failed, skipped)."""
    kinds = Counter(kind for kind, _, _ in results.values())
    return kinds['ok'], kinds['FAIL'] + kinds['ERROR'], kinds['skip']


def summary(results):
    return '{} passed, {} failed, {} skipped'.format(*counts(results))


def failures(results):
    """Return the failed tests: (test, result, reason)."""
    return [(test, kind, why)
            for test, (kind, _, why) in sorted(results.items())
            if kind in ('FAIL', 'ERROR')]


def require(results, passed):
    """Require that no test failed, and that so many passed."""
    bad = failures(results)
    assert counts(results)[0] >= passed, \
        f'only these pass: {summary(results)}'
    assert not bad, '\n'.join(map(str, bad))


def failed_only_here(ours, rxe):
    """Return the tests that pass on rxe but not on our device: (test, result,
    reason)."""
    return [(test, *missing(ours, test))
            for test, (kind, _, _) in sorted(rxe.items())
            if kind == 'ok' and missing(ours, test)[0] != 'ok']


def missing(results, test):
    """Return (result, reason) of a test, which the run may not have
    reached."""
    kind, _, why = results.get(test, ('ERROR', 0, 'has not run'))
    return kind, why


def skipped_only_here(ours, rxe):
    """Return the tests that are skipped on our device and run on rxe, with any
    result."""
    return [(test, f'{kind} on rxe', ours[test][2])
            for test, (kind, _, _) in sorted(rxe.items())
            if kind != 'skip' and test in ours and ours[test][0] == 'skip']


def plain(reason):
    """Return a reason to skip without the parts that vary between tests."""
    return re.sub(r'0x[0-9a-f]+', '…', reason) or 'no reason given'


def group(test, why):
    """Return (what a skipped test needs, whether a RoCE device could have
    it)."""
    for table, possible in (FOREIGN, False), (LACKS, True):
        for pattern, what in table.items():
            if re.search(pattern, f'{test}: {why}'):
                return what, possible
    return plain(why), True


def skips(results):
    """Return lines about skipped tests, grouped by the missing feature. They
    name each test, except those for features that no RoCE device has."""
    groups = {}
    for test, (kind, _, why) in sorted(results.items()):
        if kind == 'skip':
            groups.setdefault(group(test, why), []).append((test, why))
    parts = {True: [], False: []}
    for (what, possible), tests in sorted(groups.items()):
        parts[possible].append(f'{len(tests):5}  {what}')
        if possible:
            parts[possible] += [f'         {test}: {plain(why)}'
                                for test, why in tests]
    return ['Skipped: what no RoCE device in a guest has:',
            *parts[False],
            'Skipped: what a RoCE device could have:', *parts[True], '']


def report(results, heading, more=()):
    """Return the text of a result file."""
    lines = [f'{heading}: {summary(results)}', '']
    lines += more
    lines += skips(results)
    for test, (kind, seconds, why) in sorted(results.items()):
        lines.append(f'{kind:5}  {test}  {seconds:.2f} s' +
                     (f'  # {why}' if why else ''))
    return '\n'.join(lines) + '\n'


def listed(heading, rows):
    lines = [f'{heading}: {len(rows)}']
    return lines + [f'  {test}: {kind}: {why or "no reason given"}'
                    for test, kind, why in rows]


def judged(ours, rxe):
    """Return (lines about failures and differences, whether these are
    acceptable)."""
    wrong = [('Failures', failures(ours))]
    lines = []
    if rxe is not None:
        lines.append(f'On rxe in the same kind of guest: {summary(rxe)}')
        wrong.append(('Tests that pass on rxe and not here',
                      failed_only_here(ours, rxe)))
        lines += listed('Tests that run on rxe and are skipped here',
                        skipped_only_here(ours, rxe))
    for heading, rows in wrong:
        lines += listed(heading, rows)
    return lines + [''], not any(rows for _, rows in wrong)


def main(stack, cm, pattern):
    """Run the tests on one stack, or on both and compare. Return the exit
    code."""
    what = f"rdma-core {prepare()}'s own tests"
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = [RXE, OURS] if stack == 'both' else [stack]
    found = {}
    for name in names:
        began = time.monotonic()
        found[name] = run(name, cm, pattern)
        say(f'{name}: {summary(found[name])} in '
            f'{time.monotonic() - began:.0f} s')
    ours = found.get(OURS)
    lines, good = judged(ours, found.get(RXE)) if ours else ([], True)
    for name in names:
        # A partial run must not count as a full one.
        path = RESULTS / '-'.join(
            ['pyverbs'] + [name] * (name != OURS) +
            ['part'] * (not cm or bool(pattern)))
        path = path.with_suffix('.txt')
        path.write_text(report(found[name], f'{what} on {name}',
                               lines if name == OURS else ()))
        say(f'results on {name} in {path}')
    print('\n'.join(lines + skips(found[names[-1]])))
    passed = counts(found[names[-1]])[0]
    print(summary(found[names[-1]]))
    return 0 if good and passed else 1
