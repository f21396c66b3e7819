# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver, compiled for every kernel whose headers the archive lists.

Each is compiled as in its own suite, with the suite's compiler and programs of
kbuild. A warning is a failure. The result is one TAP stream.
"""
import os
import re
import shutil
import subprocess
import time

from guestkit import buildroot, driver, kernel, suites
from guestkit.packages import unpack
from guestkit.paths import STATE, LabError

# Messages about the machine, not about the driver
HARMLESS = re.compile('warning: (the compiler|pahole version) differs')


class Headers:
    """A package of kernel headers that the archive lists."""

    def __init__(self, apt, suite, package, version):
        self.apt, self.suite = apt, suite
        self.package, self.version = package, version
        self.release = kernel.release_of(package)
        self.compiler = kernel.compiler_of(apt, package)

    def __str__(self):
        return (f'{self.package} {self.version} ({self.suite}, '
                f'{self.compiler})')

    def order(self):
        """Sort key: older kernels come first."""
        return [int(n) for n in re.findall(r'\d+', self.version)]


def listed(pattern):
    """Return all Headers of the archive whose names match the pattern. A
    package of two suites appears once."""
    found = {}
    for suite in suites.SUITES:
        apt = suites.apt(suite)
        for name in apt.names('linux-headers-') if apt else ():
            if not name.endswith('-amd64') or not pattern.search(name):
                continue
            for record in apt.records(name):
                # A package without -common stands for the newest one of a
                # series.
                if '-common' in record.get('Depends', ''):
                    found.setdefault((name, record['Version']), Headers(
                        apt, suite, name, record['Version']))
    return sorted(found.values(), key=lambda h: (h.order(), h.package))


def _unpacked(headers, prefix):
    """Unpack the header tree. Return (None, reason) if the archive lists a
    package that it lacks."""
    wanted = kernel.header_set(headers.apt, headers.package, headers.version)
    debs = []
    for package, version in wanted:
        deb = headers.apt.cached(package, version)
        why = None if deb else headers.apt.download([f'{package}={version}'])
        deb = deb or headers.apt.cached(package, version)
        if not deb:
            return None, f'{package} {version} is not available: {why}'
        debs.append(deb)
    unpack(debs, prefix)
    tree = kernel.relocate(prefix, headers.release)
    if not re.search('^CONFIG_INFINIBAND=', (tree / '.config').read_text(),
                     re.M):
        return None, 'this kernel is configured without InfiniBand'
    return tree, None


def _complaints(output):
    return [line for line in output.splitlines()
            if re.search('warning|error', line, re.I) and
            not HARMLESS.search(line)]


def _compile(headers, tree, build, log):
    """Return the text of the error, or nothing."""
    inside = buildroot.inside(buildroot.prepare(
        suites.base(headers.suite), headers.compiler))
    driver.source(build, log)
    done = subprocess.run(
        [*inside, 'make', '-C', str(build), f'-j{os.cpu_count()}',
         f'KDIR={tree}', 'KCFLAGS=-Werror', 'modules'], text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False)
    log.write_text(done.stdout)
    wrong = _complaints(done.stdout)
    if not wrong and (done.returncode or
                      not (build / 'virtio_rdma.ko').exists()):
        wrong = done.stdout.splitlines()[-20:]
    return '\n'.join([*wrong, f'see {log}']) if wrong else ''


def _one(headers):
    """Compile the driver against one header package. Return (kind, detail) for
    a line of TAP."""
    work = STATE / 'check' / headers.package
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        tree, reason = _unpacked(headers, work / 'headers')
        if not tree:
            return 'skip', reason
        wrong = _compile(headers, tree, work / 'driver',
                         work.with_name(f'{headers.package}.log'))
    except LabError as e:
        wrong = str(e)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return ('not ok', wrong) if wrong else ('ok', '')


def main(pattern):
    """The exit code."""
    failed = 0
    found = listed(re.compile(pattern))
    for number, headers in enumerate(found, 1):
        start = time.monotonic()
        kind, detail = _one(headers)
        failed += kind == 'not ok'
        if kind == 'skip':
            print(f'ok {number} - {headers} # SKIP {detail}', flush=True)
            continue
        print(f'{kind} {number} - {headers} '
              f'# {time.monotonic() - start:.1f} s', flush=True)
        for line in detail.splitlines():
            print(f'#   {line}')
    print(f'1..{len(found)}')
    if not found:
        raise LabError('the archive lists no headers with such a name')
    return 1 if failed else 0
