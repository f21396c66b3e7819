#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Run test programs of a meson build and print one TAP stream.

The programs speak TAP. A program that crashes, hangs, ends early or exits with
an error adds a failure with its name. A GLib program that crashed or hung
starts again without the tests that it had reached, so that one bad test does
not hide the others. Programs with many tests run in shares, in parallel.
"""

import argparse
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

RESULT = re.compile(r'^(ok|not ok)\s+\d*\s*-?\s*(.*?)\s*'
                    r'(?:#\s*(skip|todo)\b\s*(.*))?$', re.I)

# After so many hangs, a program does not start again.
MAX_HANGS = 2


def programs(build, select):
    """The selected tests of meson: (name, command, environment, timeout)."""
    info = json.loads((build / 'meson-info/intro-tests.json').read_text())
    for test in info:
        name = test['name'].rsplit('/', 1)[-1]
        if select.search(name):
            yield name, test['cmd'], test['env'], test['timeout']


def environment(build, extra):
    env = dict(os.environ, **extra)
    emulator = build / 'qemu-system-x86_64'
    if 'QTEST_QEMU_BINARY' in extra:
        env['QTEST_QEMU_BINARY'] = str(emulator)
    env.setdefault('ASAN_OPTIONS', 'detect_leaks=1')
    env.setdefault('UBSAN_OPTIONS', 'halt_on_error=1:print_stacktrace=1')
    return env


def run(cmd, env, cwd, timeout):
    """(exit status or None for a timeout, output)."""
    with subprocess.Popen(cmd, cwd=cwd, env=env, text=True, errors='replace',
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          start_new_session=True) as child:
        try:
            out, _ = child.communicate(timeout=timeout)
            return child.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, _ = child.communicate()
            return None, out


def judge(status, output, timeout, where='', least=None):
    """
    Turn one run of a program into ([(state, title, reason to skip)], whether
    anything failed). A failure of the program itself gets the title @where. At
    least as many tests have to run as the program plans, or as @least.
    """
    results = []
    plan = least
    for line in output.splitlines():
        found = RESULT.match(line)
        if found:
            state, title = found[1].lower(), found[2]
            if (found[3] or '').lower() == 'skip' and state == 'ok':
                results.append(('skip', title, found[4] or 'no reason given'))
            else:
                results.append((state, title, ''))
        elif re.match(r'1\.\.\d+', line):
            plan = max(least or 0, int(re.match(r'1\.\.(\d+)', line)[1]))
    failed = any(r[0] == 'not ok' for r in results)
    why = None
    if status is None:
        why = f'no end after {timeout:.0f} s'
    elif status and not failed:
        why = (f'killed by signal {-status}' if status < 0
               else f'exit status {status}')
    elif plan is not None and len(results) < plan:
        why = f'only {len(results)} of {plan} tests ran'
    elif not results:
        why = 'no test ran'
    if why:
        results.append(('not ok', f'{where}: {why}' if where else why, ''))
        failed = True
    return results, failed


def listed(cmd, env, cwd, timeout):
    """The paths of a GLib program's tests. Recent GLibs print comments."""
    _, output = run([cmd[0], '-l'], env, cwd, timeout)
    return re.findall(r'^(?:# )?(/.*)$', output, re.M)


def shares(cmd, env, cwd, timeout, size, wanted, but=None):
    """Lists of paths of a program's tests, each to run as one share; [None]
    stands for all tests. @size: of a share; @wanted, @but: patterns for tests
    to run and not to run."""
    paths = listed(cmd, env, cwd, timeout) if size or wanted or but else []
    if wanted or but:
        paths = [path for path in paths
                 if (not wanted or wanted.search(path)) and
                 not (but and but.search(path))]
        size = size or len(paths)
    elif len(paths) <= size:
        return [None]
    if not paths:
        return []
    count = -(-len(paths) // size)
    return [paths[i * len(paths) // count:(i + 1) * len(paths) // count]
            for i in range(count)]


def run_all(cmd, env, cwd, timeout, share=None):
    """Run all tests of a program, or of a share of it, and start it again
    after a crash or a hang; ([results], output of the failed runs)."""
    cmd = cmd + [arg for path in share or () for arg in ('-p', path)]
    results, troubles, hangs = [], [], 0
    skip = []    # paths of tests that must not run again
    while True:
        skipped = set(skip)
        cmd_with_skips = cmd + [arg for path in skip for arg in ('-s', path)]
        status, output = run(cmd_with_skips, env, cwd, timeout)
        where = ''
        if status is None or status < 0:
            reached = {f[2] for f in map(RESULT.match, output.splitlines())
                       if f}
            left = [path
                    for path in share or listed(cmd, env, cwd, timeout)
                    if path not in reached and path not in skip]
            if left:
                where = left.pop(0)
                skip += sorted(reached) + [where]
        found, failed = judge(status, output, timeout, where,
                              share and len(share))
        # GLib reports a test of -s as a skip.
        results += [f for f in found if f[0] != 'skip' or f[1] not in skipped]
        if failed:
            troubles.append(output)
        hangs += status is None
        if not where or not left or hangs == MAX_HANGS:
            return results, troubles


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.strip().splitlines()[0])
    parser.add_argument('build', type=Path, help='build directory')
    parser.add_argument('--select', type=re.compile, default=re.compile(''),
                        help='regular expression for program names')
    parser.add_argument('--list', action='store_true',
                        help='print the programs, for ninja to build')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--share', type=int, default=0,
                        help='split programs into runs of at most so many '
                             'tests')
    parser.add_argument('--paths', type=re.compile,
                        help='regular expression for paths of tests in GLib '
                             'programs')
    parser.add_argument('--but', type=re.compile,
                        help='regular expression for paths of tests to leave '
                             'out')
    parser.add_argument('--slow', action='store_true',
                        help='run GLib programs in full, not as a sample')
    parser.add_argument('--timeout', type=float, default=0,
                        help="minimum of a program's timeout, in seconds")
    args = parser.parse_args()
    build = args.build.resolve()

    chosen = list(programs(build, args.select))
    if args.list:
        for _, cmd, _, _ in chosen:
            print(os.path.relpath(cmd[0], build))
        return

    counts = {'ok': 0, 'not ok': 0, 'skip': 0}
    troubles = []
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        runs = {}
        for name, cmd, env, timeout in chosen:
            how = (cmd + ['-m', 'slow'] * args.slow,
                   environment(build, env), build,
                   max(timeout, args.timeout))
            for share in shares(*how, args.share, args.paths,
                                args.but):
                runs[pool.submit(run_all, *how, share)] = name, cmd
        for done in concurrent.futures.as_completed(runs):
            name, cmd = runs[done]
            results, outputs = done.result()
            for state, title, reason in results:
                counts[state] += 1
                print(f'{"not ok" if state == "not ok" else "ok"} '
                      f'{sum(counts.values())} - {name}: '
                      f'{title.lstrip("/")}' +
                      (f' # SKIP {reason}' if state == 'skip' else ''))
            sys.stdout.flush()
            troubles += [(cmd, output) for output in outputs]
    print(f'1..{sum(counts.values())}')
    if not sum(counts.values()):
        print('# no test ran: ' + (
            'no program matches --select' if not chosen else
            'no path of a test matches --paths or passes --but'))
    for cmd, output in troubles:
        print('#\n# ' + ' '.join(cmd))
        for line in output.splitlines()[-60:]:
            print(f'#   {line}')
    sys.exit(1 if counts['not ok'] or not sum(counts.values()) else 0)


if __name__ == '__main__':
    main()
