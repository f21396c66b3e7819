# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma-core's own tests in a guest, on virtio-rdma and on rxe.

Debian ships them as documentation of the package rdma-core; the Python
bindings they need are those of python3-pyverbs. One guest speaks to itself.
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

from .packages import Apt, unpack
from .pair import functions, net_up
from .paths import GUEST_TESTS, LOGS, RESULTS, STATE, LabError, say
from .stack import STACKS
from .vm import GuestGone, Vm

INSTALLED = Path('/usr/share/doc/rdma-core/tests')
TESTS = STATE / 'pyverbs' / 'tests'
RUNNER = GUEST_TESTS / 'guest' / 'pyverbs_run.py'
OURS, RXE = 'virtio-rdma', 'rxe'
TIMEOUT = 900
# How often the process that runs the tests may die.
ATTEMPTS = 20


def version():
    """Version of the bindings, which the tests have to be of, too."""
    done = subprocess.run(
        ['dpkg-query', '-W', '-f', '${Version}', 'python3-pyverbs'],
        capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout:
        raise LabError('no Python bindings for the tests: install '
                       'python3-pyverbs')
    return done.stdout


def prepare():
    """Lay the tests out as rdma-core has them; (their version)."""
    wanted, source = version(), INSTALLED
    if not (source / 'run_tests.py').exists():
        # Some machines install no documentation.
        deb = Apt().fetch('rdma-core', wanted)
        if not deb:
            raise LabError(f'no {source}, and no package rdma-core {wanted}')
        unpack([deb], STATE / 'pyverbs' / 'package')
        source = STATE / 'pyverbs' / 'package' / INSTALLED.relative_to('/')
    shutil.rmtree(TESTS, ignore_errors=True)
    TESTS.mkdir(parents=True)
    for path in source.glob('*.py*'):
        read = gzip.open if path.suffix == '.gz' else open
        with read(path, 'rb') as f:
            (TESTS / path.name.removesuffix('.gz')).write_bytes(f.read())
    return wanted


def parse(text):
    """{test: (result, seconds, reason)} of what the runner noted; a test
    that has begun and has no result took its process along."""
    results = {}
    for line in text.splitlines():
        note = json.loads(line)
        if 'result' in note:
            results[note['test']] = (note['result'], note['seconds'],
                                     ' '.join(note['why'].split()))
        else:
            results[note['test']] = ('ERROR', 0, 'the process died')
    return results


def run(name, cm=True, pattern=''):
    """Boot a guest with a stack and run the tests there: their results."""
    with_rdma = name != RXE
    vm = Vm(f'pyverbs-{name}', '-netdev', 'hubport,id=n0,hubid=0',
            *functions(1, with_rdma), smp=2)
    notes = vm.out / 'results'
    log = LOGS / f'pyverbs-{name}.log'
    try:
        vm.start()
        notes.unlink(missing_ok=True)
        vm.wait_ready()
        net_up(vm, 1)
        stack = STACKS[name]()
        stack.up(vm)
        command = ' '.join(map(shlex.quote, (
            '/usr/bin/python3', '-u', '-B', str(RUNNER), str(TESTS),
            '/out/results', 'CM' if cm else 'NOCM', pattern,
            '--dev', stack.device, '--port', '1',
            '--gid', str(stack.gid(4)))))
        end = time.monotonic() + TIMEOUT
        with open(log, 'w', encoding='utf-8') as out:
            for _ in range(ATTEMPTS):
                done = vm.run(command, max(1, end - time.monotonic()))
                print(done, file=out, flush=True)
                if done.ok or done.rc is None:
                    break
            print(vm.run('dmesg').out, file=out)
        if not done.ok:
            raise LabError(f'{name}: the tests did not end, see {log}')
    except GuestGone as e:
        raise LabError(f'{e}\n{vm.errors()}') from e
    finally:
        vm.quit()
    results = parse(notes.read_text())
    if not results:
        raise LabError(f'{name}: no test has run, see {log}')
    return results


def counts(results):
    """(passed, failed, skipped)."""
    kinds = Counter(kind for kind, _, _ in results.values())
    return kinds['ok'], kinds['FAIL'] + kinds['ERROR'], kinds['skip']


def summary(results):
    return '{} passed, {} failed, {} skipped'.format(*counts(results))


def behind(ours, rxe):
    """Tests that pass on rxe and not on ours: (test, result, reason)."""
    return [(test, ours[test][0], ours[test][2])
            for test, (kind, _, _) in sorted(rxe.items())
            if kind == 'ok' and test in ours and ours[test][0] != 'ok']


def plain(reason):
    """A reason to skip without what differs from test to test."""
    return re.sub(r'0x[0-9a-f]+', '…', reason) or 'no reason given'


def report(name, results, heading, more=()):
    """The text of a result file."""
    lines = [f'{heading}: {summary(results)}', '']
    lines += more
    reasons = Counter(plain(why) for kind, _, why in results.values()
                      if kind == 'skip')
    lines.append(f'Reasons for skipping on {name}:')
    lines += [f'{n:5}  {why}' for why, n in reasons.most_common()] + ['']
    for test, (kind, seconds, why) in sorted(results.items()):
        lines.append(f'{kind:5}  {test}  {seconds:.2f} s' +
                     (f'  # {why}' if why else ''))
    return '\n'.join(lines) + '\n'


def compared(ours, rxe):
    """Lines on the tests that only rxe passes."""
    lines = [f'On rxe in the same kind of guest: {summary(rxe)}']
    missing = behind(ours, rxe)
    if not missing:
        return lines + ['Every test that passes on rxe passes here.', '']
    lines.append(f'Tests that pass on rxe and not here: {len(missing)}')
    lines += [f'{kind:5}  {test}  # {why}' for test, kind, why in missing]
    return lines + ['']


def main(stack, cm, pattern):
    """Run the tests on one stack, or on both and compare; the exit code."""
    what = f"rdma-core {prepare()}'s own tests"
    RESULTS.mkdir(parents=True, exist_ok=True)
    names = [RXE, OURS] if stack == 'both' else [stack]
    found = {}
    for name in names:
        began = time.monotonic()
        found[name] = run(name, cm, pattern)
        say(f'{name}: {summary(found[name])} in '
            f'{time.monotonic() - began:.0f} s')
    for name in names:
        more = compared(found[OURS], found[RXE]) \
            if name == OURS and RXE in found else []
        # Part of the tests must not pass for the whole.
        path = RESULTS / '-'.join(
            ['pyverbs'] + [name] * (name != OURS) +
            ['part'] * (not cm or bool(pattern)))
        path = path.with_suffix('.txt')
        path.write_text(report(name, found[name], f'{what} on {name}', more))
        say(f'results on {name} in {path}')
        if name == names[-1]:
            print('\n'.join(more), end='\n' if more else '')
    last = found[names[-1]]
    for test, (kind, _, why) in sorted(last.items()):
        if kind in ('FAIL', 'ERROR'):
            print(f'{kind} {test}: {why}')
    print(summary(last))
    return 1 if counts(last)[1] or not counts(last)[0] else 0
