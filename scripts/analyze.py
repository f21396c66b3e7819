#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
analyze.py BUILD: run clang's static analyzer on the engine, and on the device
and the provider if they are built in BUILD, which has their compiler command
lines. Prints findings, and fails if there are any. With ANALYZE_COMMITS=n in
the environment, analyze only files that the last n commits have changed.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

# (build directory in BUILD, its product, pattern of our files there)
BUILT = (
    ('qemu', 'device',
     re.compile(r'/(hw/rdma(/[\w-]+)?|hw/virtio/vhost-user-server|'
                r'backends/rdma(?!/roce/).*)/[^/]+\.c$|'
                r'/hw/virtio/(virtio-rdma|vhost-user-rdma)[\w-]*\.c$')),
    ('guest/rdma-core/build', 'provider',
     re.compile(r'/providers/virtio_rdma/[^/]+\.c$')),
)
WITH_VALUE = ('-I', '-D', '-U', '-include', '-iquote', '-isystem')
LEAK = re.compile(r"^(\S+?):\d+:\d+: warning: Potential leak of memory "
                  r"pointed to by '(\w+)'")
WARNING = re.compile(r'^\S+:\d+:\d+: (warning|error): ')


def engine():
    """The engine's files: (path, flags, directory). They need no build."""
    flags = subprocess.run(['pkg-config', '--cflags', 'glib-2.0'], text=True,
                           stdout=subprocess.PIPE, check=True).stdout.split()
    flags += ['-Iinclude', '-Ibackends/rdma/roce', '-DROCE_HAVE_LIBDEFLATE',
              '-std=gnu11']
    for path in sorted(Path('backends/rdma/roce').rglob('*.c')):
        yield str(path), flags, '.'


def front_end(command):
    """The options of a compiler that affect the meaning of the source."""
    words = iter(shlex.split(command))
    for word in words:
        if word in WITH_VALUE:
            yield word
            yield next(words)
        elif word.startswith(WITH_VALUE + ('-std=', '-m')):
            yield word


def built(directory, ours):
    """Our files in a build with ninja: (path, flags, directory)."""
    found = subprocess.run(['ninja', '-t', 'compdb'], cwd=directory, text=True,
                           stdout=subprocess.PIPE, check=True)
    for entry in json.loads(found.stdout):
        if ours.search(entry['file']) and ' -c ' in entry['command']:
            yield (entry['file'], list(front_end(entry['command'])),
                   entry['directory'])


def changed(commits):
    """The names, without directories, of files that commits have changed: the
    builds have them in other directories."""
    said = subprocess.run(['git', 'log', f'-{commits}', '--name-only',
                           '--format='], text=True, stdout=subprocess.PIPE,
                          check=True).stdout
    return {Path(line).name for line in said.splitlines()}


def freed_by_scope(path, name):
    """Whether scope frees the variable, which clang 14 does not see."""
    return re.search(r'\bg_auto(free|ptr\(\w+\))[^;]*\b' + name + r'\b',
                     path.read_text())


def analyze(path, flags, directory):
    """The analyzer's reports of a file, each with its path of execution."""
    run = subprocess.run(['clang', '--analyze', '--analyzer-output', 'text',
                          '-w', *flags, path], cwd=directory, text=True,
                         stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                         check=False)
    reports = []
    for line in run.stderr.splitlines():
        if WARNING.match(line):
            reports.append([])
        if reports and not re.match(r'\d+ warnings? generated', line):
            reports[-1].append(line)
    for report in reports:
        leak = LEAK.match(report[0])
        if not leak or not freed_by_scope(Path(directory, leak[1]), leak[2]):
            yield '\n'.join(report)
    if run.returncode and not reports:
        yield f'{path}: {run.stderr}'


def main():
    build = Path(sys.argv[1]).resolve()
    jobs = list(engine())
    missing = False
    for name, what, ours in BUILT:
        if (build / name / 'build.ninja').is_file():
            jobs += built(build / name, ours)
        else:
            missing = True
            print(f'SKIP: the {what} is not built in {build / name}')
    known, commits = len(jobs), os.environ.get('ANALYZE_COMMITS')
    if commits:
        names = changed(int(commits))
        jobs = [job for job in jobs if Path(job[0]).name in names]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [report for reports in
                 pool.map(lambda job: list(analyze(*job)), jobs)
                 for report in reports]
    print('\n'.join(found))
    print(f'{len(jobs)} of {known} files, {len(found)} findings')
    # CI has built everything.
    sys.exit(1 if found or not known or (missing and os.environ.get('CI'))
             else 0)


if __name__ == '__main__':
    main()
