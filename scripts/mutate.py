#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Mutate a part of the sources in one small way at a time, and test whether a
test fails. A mutant that survives shows a missing test.

The script mutates a copy of the sources. Mutants of the engine run all unit
programs and replay the corpora of the fuzzers, quick ones first, until one
fails. Mutants of the other parts are linked into a copy of QEMU, for device
tests. Mutants that compile to the same code do not count. Mutants with no
effect that a test could see are in mutate-equivalent.toml, with the reason.
"""

import argparse
import concurrent.futures
import fnmatch
import json
import os
import queue
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
EQUIVALENT = TOP / 'scripts/mutate-equivalent.toml'
PARTS = {
    'engine': ['backends/rdma/roce/**/*.c'],
    'core': ['hw/rdma/hca/*.c'],
    'codec': ['hw/rdma/virtio/codec*.c', 'hw/rdma/virtio/cmd-*.c',
              'hw/rdma/virtio/cq-direct.c'],
    'pvrdma': ['hw/rdma/pvrdma/*.c'],
    'net-roce': ['hw/rdma/virtio-net-roce/*.c'],
}
# Files of the standalone build
COPIED = ['meson.build', 'meson_options.txt', 'backends/rdma/roce', 'include',
          'tests/meson.build', 'tests/bench', 'tests/data', 'tests/fuzz',
          'tests/scripts', 'tests/unit']
SANITIZERS = 'address,undefined'
# Device tests of each part, those that fail most often first
QTESTS = {
    'core': ['virtio-rdma-test', 'virtio-rdma-net-test', 'pvrdma-test',
             'virtio-rdma-migration-test', 'rdma-verbs-fake-test'],
    'codec': ['virtio-rdma-test', 'virtio-rdma-net-test',
              'virtio-rdma-migration-test'],
    'pvrdma': ['pvrdma-test', 'rdma-iface-test'],
    'net-roce': ['virtio-net-roce-test', 'rdma-iface-test'],
}
# Limit for a test that waits for a device without answer
QTEST_SECONDS = 1200

SWAPPED = {'==': '!=', '<=': '<', '>=': '>', '&&': '||', '+': '-', '&': '|',
           '<<': '>>', '*': '/', '%': '*', '+=': '-=', '|=': '&='}
SWAPPED |= {new: old for old, new in SWAPPED.items() if old != '%'}
NAMED = {'true': 'false', 'false': 'true', '++': '--', '--': '++', '!': ''}
# In the project's style, binary operators have blanks around them, and unary
# ones have none after them.
OPERATOR = re.compile(r'(?<= )(?:' + '|'.join(
    re.escape(op) for op in sorted(SWAPPED, key=len, reverse=True)) +
    r')(?= |$)|\b(?:true|false)\b|\+\+|--|(?<=[ (])!(?=[\w(*])')
NUMBER = re.compile(r'(?<![\w.])(?:0x[0-9a-fA-F]+|\d+)(?=[uUlL]*\b)')
CONDITION = re.compile(r'^(\s+(?:\} else )?if \()(.*)(\) \{)$')
STATEMENT = re.compile(r'^\s+(?:\*?[\w\->.\[\]()+&*]+ (?:[-+|&^]|<<|>>)?= .*'
                       r'|[\w\->.]+\(.*\)|(?:return|break|continue)\b.*'
                       r'|.*(?:\+\+|--))?;$')
HIDDEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'',
                    re.S)
ARRAY = re.compile(r'^\s*(?:static )?(?:const )?\w+ \*?\w+\[.*(?:;|= \{)$')
NOT_CODE = re.compile(r'\s*#|\s*_Static_assert|QEMU_BUILD_BUG')


class Mutant(NamedTuple):
    file: str
    number: int                     # of the line
    function: str                   # or table
    old: str                        # the line
    new: str

    def __str__(self):
        return (f'{self.file}:{self.number} {self.function}: '
                f'{self.old.strip()} -> {self.new.strip()}')


def functions(lines):
    """The function or table of each line; '' outside of both."""
    name, begun, names = '', '', []
    for line in lines:
        head = re.match(r'[A-Za-z].*?(\w+)\s*(?:\(|(?:\[.*\])?\s*= \{)', line)
        if head:
            begun = head[1]
        if line == '{' or (head and line.endswith('= {')):
            name = begun
        names.append(name)
        if line in ('}', '};'):
            name = ''
    return names


def changed(code, line, end_of_function, begins):
    """The mutations of a line; @code is the line without strings."""
    for found in OPERATOR.finditer(code):
        new = {**SWAPPED, **NAMED}[found[0]]
        yield line[:found.start()] + new + line[found.end():]
    if not ARRAY.match(code):
        for found in NUMBER.finditer(code):
            yield (line[:found.start()] + str(int(found[0], 0) + 1) +
                   line[found.end():])
    found = CONDITION.match(line)
    if found and CONDITION.match(code):
        yield f'{found[1]}!({found[2]}){found[3]}'
    if begins and STATEMENT.match(code) and \
            not (end_of_function and 'return' in code):
        yield re.match(r'\s*', line)[0] + ';'


def mutants(top, patterns):
    """All mutants of the files, in the order of lines."""
    for path in sorted(p for pattern in patterns for p in top.glob(pattern)):
        text = path.read_text(encoding='utf-8')
        hidden = HIDDEN.sub(lambda m: re.sub(r'[^\n]', '\x01', m[0]), text)
        lines, codes = text.splitlines(), hidden.splitlines()
        names = functions(codes)
        before = ''
        for i, (line, code) in enumerate(zip(lines, codes)):
            code = code.replace('\x01', '"' if '"' in line else ' ')
            if names[i] and code.strip() and not NOT_CODE.match(code):
                end = i + 1 == len(lines) or lines[i + 1] == '}'
                for new in changed(code, line, end,
                                   before.endswith((';', '{', '}', ':'))):
                    yield Mutant(str(path.relative_to(top)), i + 1, names[i],
                                 line, new)
            before = code.strip() or before


def equivalent(mutant, known):
    """The reason why tests cannot detect a mutant, or None. [ and ] match
    themselves in the patterns."""
    def fits(text, pattern):
        return fnmatch.fnmatchcase(text.strip(),
                                   pattern.replace('[', '[[]'))
    for entry in known:
        if (fits(mutant.file, entry['file']) and
                fits(mutant.function, entry.get('function', '*')) and
                fits(mutant.old, entry['old']) and
                fits(mutant.new, entry.get('new', '*'))):
            return entry['reason']
    return None


def quiet(cmd, **options):
    return subprocess.run(cmd, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors='replace', **options)


def must(cmd, **options):
    done = quiet(cmd, **options)
    if done.returncode:
        sys.exit(f'{shlex.join(map(str, cmd))}:\n{done.stdout}')
    return done.stdout


def limits(seconds, memory):
    """Limit a mutant, which may run or allocate without end. The limit is in
    processor time, which other load of the machine does not change."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_AS, (memory, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def update(path, copy):
    """Copy a file if the copy differs, because ninja compares times."""
    if path.is_file() and not (copy.exists() and
                               copy.read_bytes() == path.read_bytes()):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


class Program(NamedTuple):
    name: str
    cmd: list
    env: dict
    cost: float                     # seconds of a run without mutation


class Engine:
    """A copy of the tree with the standalone build. There the engine is a
    shared library, so that a mutant costs one link."""

    costs = {}                      # {(sanitize, program): seconds}

    def __init__(self, work, meson, sanitize=False, only=None):
        self.sanitize = sanitize
        self.tree, self.out = work / 'tree', work / 'out'
        self.memory = resource.RLIM_INFINITY if sanitize else 2 << 30
        for part in COPIED:
            for path in [TOP / part, *(TOP / part).rglob('*')]:
                update(path, self.tree / path.relative_to(TOP))
        rules = self.tree / 'backends/rdma/roce/meson.build'
        rules.write_text(rules.read_text().replace('static_library(',
                                                   'shared_library('))
        if not (self.out / 'build.ninja').exists():
            # Without debug information, objects differ only in their code.
            must([*meson, 'setup', self.out, self.tree, '-Dbuildtype=plain',
                  '-Dc_args=-O1', '-Db_lundef=false',
                  f'-Db_sanitize={SANITIZERS if sanitize else "none"}'])
        must(['ninja', '-C', self.out, 'build.ninja'])
        self.library = next(
            str(Path(t['filename'][0]).relative_to(self.out))
            for t in self.introspect('targets') if t['name'] == 'roce')
        tests = [t for t in self.introspect('tests')
                 if any('unit' in suite for suite in t['suite']) and
                 (not only or t['name'] in only)]
        # Also build the directories of seeds that some programs read.
        must(['ninja', '-C', self.out, self.library,
              *{os.path.relpath(path, self.out) for t in tests
                for path in [t['cmd'][0],
                             *map(os.path.dirname, t['cmd'][1:])]}])
        self.programs = [self.measured(test) for test in tests]
        self.last = {}              # {file: the program that failed}
        self.kills = dict.fromkeys((p.name for p in self.programs), 0)

    def introspect(self, what):
        path = self.out / f'meson-info/intro-{what}.json'
        return json.loads(path.read_text())

    def build(self):
        return quiet(['ninja', '-j1', '-C', self.out,
                      self.library]).returncode == 0

    def object(self, file):
        """The object file of a source."""
        name = file.removeprefix('backends/rdma/roce/').replace('/', '_')
        return self.out / f'{self.library}.p' / f'{name}.o'

    def fails(self, program):
        seconds = int(3 + 5 * program.cost)
        return quiet(program.cmd, cwd=self.out, env={
            **os.environ, 'UBSAN_OPTIONS': 'halt_on_error=1', **program.env},
            preexec_fn=lambda: limits(seconds, self.memory)).returncode != 0

    def measured(self, test):
        key = self.sanitize, test['name']
        program = Program(test['name'], test['cmd'], test['env'], 60)
        if key not in self.costs:
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            if self.fails(program):
                sys.exit(f'{program.name} fails without any mutation')
            after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.costs[key] = after - before
        return program._replace(cost=self.costs[key])

    def judge(self, mutant):
        """'same', 'invalid', 'survives', or the name of a failed program."""
        path = self.tree / mutant.file
        text, code = path.read_text(), self.object(mutant.file).read_bytes()
        lines = text.splitlines()
        assert lines[mutant.number - 1] == mutant.old
        lines[mutant.number - 1] = mutant.new
        path.write_text('\n'.join(lines) + '\n')
        try:
            if not self.build():
                return 'invalid'
            if self.object(mutant.file).read_bytes() == code:
                return 'same'
            return self.killer(mutant.file)
        finally:
            path.write_text(text)
            self.build()

    def killer(self, file):
        """The first program that fails, or 'survives'. Programs that failed
        last for the file, or fail often for their cost, run first."""
        for program in sorted(self.programs, key=lambda p: (
                p.name != self.last.get(file),
                -(self.kills[p.name] + 1) / (p.cost + .05))):
            if self.fails(program):
                self.last[file] = program.name
                self.kills[program.name] += 1
                return program.name
        return 'survives'


class Device:
    """A QEMU linked with one mutated object."""
    good = set()                    # tests that pass without any mutation

    def __init__(self, work, build, names):
        self.work, self.out = work, build / 'qemu'
        work.mkdir(parents=True, exist_ok=True)
        self.link = self.command('c_LINKER_RSP', 'qemu-system-x86_64')
        tests = {t['name'].rsplit('/', 1)[-1]: t for t in json.loads(
            (self.out / 'meson-info/intro-tests.json').read_text())}
        self.tests = [tests[name] for name in names]
        for test in self.tests:
            if test['name'] not in self.good and \
                    self.fails(test, self.out / 'qemu-system-x86_64'):
                sys.exit(f'{test["name"]} fails without any mutation')
            self.good.add(test['name'])

    def command(self, rule, output):
        """ninja's command line that makes a file: a list of words."""
        for known in json.loads(must(['ninja', '-C', self.out, '-t', 'compdb',
                                      '-x', rule])):
            if known['output'] == output:
                return shlex.split(known['command'])
        sys.exit(f'{self.out} has no rule that makes {output}')

    def compiled(self, cmd, file, text):
        """The object of a file with other contents, or None."""
        source, made = self.work / 'mutant.c', self.work / 'mutant.o'
        source.write_text(text)
        cmd = [*cmd[:cmd.index('-MD')], '-g0', '-iquote',
               str((TOP / file).parent), '-o', made, '-c', source]
        if quiet(cmd, cwd=self.out).returncode:
            return None
        return made.read_bytes()

    def judge(self, mutant):
        name = f'{mutant.file}.o'.replace('/', '_')
        name = f'libqemu-x86_64-softmmu.a.p/{name}'
        cmd = self.command('c_COMPILER', name)
        text = (TOP / mutant.file).read_text()
        code = self.compiled(cmd, mutant.file, text)
        lines = text.splitlines()
        lines[mutant.number - 1] = mutant.new
        changed_code = self.compiled(cmd, mutant.file, '\n'.join(lines) + '\n')
        if changed_code in (None, code):
            return 'invalid' if changed_code is None else 'same'
        emulator = self.work / 'qemu-system-x86_64'
        where = self.link.index('-o') + 1
        must([*self.link[:where], emulator,
              *(self.work / 'mutant.o' if word == name else word
                for word in self.link[where + 1:])], cwd=self.out)
        for test in self.tests:
            if self.fails(test, emulator):
                return test['name'].rsplit('/', 1)[-1]
        return 'survives'

    def fails(self, test, emulator):
        env = {**os.environ, **test['env'],
               'QTEST_QEMU_BINARY': str(emulator)}
        with subprocess.Popen(test['cmd'], cwd=self.out, env=env,
                              stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL,
                              start_new_session=True) as child:
            try:
                return child.wait(QTEST_SECONDS) != 0
            except subprocess.TimeoutExpired:
                return True
            finally:
                try:
                    os.killpg(child.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


def make_judges(part, args):
    """Functions that make a judge for a worker's number: the first for all
    mutants, the second, or None, for those that survive."""
    work = args.build / 'mutate'
    if part in QTESTS:
        return lambda job: Device(work / f'{part}-{job}', args.build,
                                  QTESTS[part]), None
    meson = [os.environ.get('PYTHON', sys.executable),
             args.build / 'tools/meson.py']
    again = (lambda job: Engine(work / f'sanitized-{job}', meson, True))
    return (lambda job: Engine(work / f'engine-{job}', meson),
            again if args.sanitize else None)


def judged(chosen, make, jobs):
    """Judge mutants in parallel: yield (mutant, result) in their order."""
    free = queue.SimpleQueue()
    for job in range(min(jobs, len(chosen))):
        free.put(make(job))

    def judge(mutant):
        mine = free.get()
        try:
            return mutant, mine.judge(mutant)
        finally:
            free.put(mine)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(judge, chosen)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.strip().splitlines()[0])
    parser.add_argument('--part', choices=PARTS, default='engine')
    parser.add_argument('--seed', type=int, default=1,
                        help='seed of the choice of mutants (%(default)s)')
    parser.add_argument('--count', type=int, default=40,
                        help='number of mutants to try (%(default)s)')
    parser.add_argument('--match', type=re.compile,
                        help='instead, try all mutants whose output line '
                             'matches this regular expression')
    parser.add_argument('--list', action='store_true',
                        help='only print the mutants')
    parser.add_argument('--sanitize', action='store_true',
                        help='try surviving mutants of the engine again with '
                             'sanitizers')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--build', type=Path,
                        default=os.environ.get('B', TOP / 'build'))
    args = parser.parse_args()

    chosen = list(mutants(TOP, PARTS[args.part]))
    known = tomllib.loads(EQUIVALENT.read_text())['mutant']
    if args.match:
        chosen = [m for m in chosen if args.match.search(str(m))]
        how = args.match.pattern
    else:
        random.Random(args.seed).shuffle(chosen)
        chosen = chosen[:args.count]
        how = f'seed {args.seed}'
    counts = dict.fromkeys(('dies', 'SURVIVES', 'same', 'invalid',
                            'equivalent'), 0)

    def report(verdict, mutant, why):
        counts[verdict] += 1
        print(f'{verdict:10} {mutant}  ({why})', flush=True)

    left = []
    for mutant in chosen:
        why = equivalent(mutant, known)
        if args.list:
            print(mutant)
        elif why:
            report('equivalent', mutant, why)
        else:
            left.append(mutant)
    if args.list:
        return
    first, second = make_judges(args.part, args)
    for make in filter(None, (first, second)):
        surviving = []
        for mutant, result in judged(left, make, args.jobs):
            if result == 'survives' and make is first and second:
                surviving.append(mutant)
            elif result == 'survives':
                report('SURVIVES', mutant, 'no test fails')
            elif result in counts:
                report(result, mutant, 'same code' if result == 'same'
                       else 'does not compile')
            else:
                report('dies', mutant, result if make is first
                       else f'{result} with sanitizers')
        left = surviving
    total = counts['dies'] + counts['SURVIVES']
    print(f'{args.part}, {how}: {counts["dies"]} of {total} mutants that are '
          f'not equivalent die'
          f' ({100 * counts["dies"] / max(total, 1):.1f} %); '
          f'{counts["same"]} compile to the same code, '
          f'{counts["equivalent"]} are listed as equivalent, '
          f'{counts["invalid"]} do not compile')


if __name__ == '__main__':
    main()
