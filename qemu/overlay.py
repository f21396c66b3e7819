#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Make a QEMU source tree that contains virtio-rdma.

The result is a copy of a pristine QEMU tree, with patches applied and with the
overlay's files. It is updated in place: a file is written only if its contents
change, so that ninja rebuilds only files that depend on it. Files that are no
longer in the overlay are removed.

The patches in qemu/patches are applied in the order of their names. The head
of a patch says what it is for, and then:

  Kind: KIND          build (Debian's source or compiler needs it), needed,
                      fix, speed, extra or test
  Needs: PATCH...     the patches that this one builds upon
  Tests: REGEX        the device tests that fail without it
  Series: from X.Y    only for these series of QEMU; or "until X.Y"
  Only-if: FILE REGEX only if this file of QEMU has such a line

qemu/series has the known series. Other series are refused.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

# The parts of this project that belong in QEMU's tree. The others (unit tests,
# fuzzers, guest side) have their own builds.
OVERLAY_DIRS = ('backends', 'configs', 'docs', 'hw', 'include', 'qapi',
                'tests/bench/device', 'tests/fake-ibverbs', 'tests/qtest')
# For HTML of the pages alone; QEMU's manuals have their own.
OWN_DOCS = ('docs/index.rst', 'docs/html/')
IGNORED = re.compile(r'(~|\.orig|\.rej|\.sw[a-p]|\.pyc)$|^\.|^__pycache__$')
MANIFEST = '.virtio-rdma-overlay.json'
KINDS = ('build', 'needed', 'fix', 'speed', 'extra', 'test')
# Generated from this project's VERSION, as QEMU has its own VERSION.
VERSION_HEADER = 'hw/rdma/virtio/version.h'


def die(message):
    sys.exit(f'overlay: {message}')


def overlay_files(top):
    """Paths, relative to top, of the files that are laid over QEMU."""
    for part in OVERLAY_DIRS:
        for dirpath, dirs, names in os.walk(top / part):
            dirs[:] = sorted(d for d in dirs if not IGNORED.search(d))
            for name in sorted(names):
                file = (Path(dirpath) / name).relative_to(top).as_posix()
                if not (IGNORED.search(name) or file.startswith(OWN_DOCS)):
                    yield file


def identity(pristine):
    """Values that distinguish pristine trees."""
    version = pristine / 'VERSION'
    if not version.is_file():
        die(f'{pristine} is not a QEMU source tree')
    return [str(pristine), version.read_text().strip(),
            version.stat().st_mtime_ns]


def series_number(series):
    """A key that sorts series."""
    return [int(n) for n in series.split('.')]


def check_series(top, version):
    """Return the series of this version of QEMU. Refuse unknown series."""
    known = (top / 'qemu/series').read_text(encoding='utf-8').split()
    series = '.'.join(version.split('.')[:2])
    # Release candidates and the development branch have micro versions from
    # 50 on: 11.1.91 is 11.2-rc1.
    micro = (series_number(version) + [0])[2]
    if series not in known or micro >= 50:
        die(f'this is QEMU {version}; expected a release of QEMU '
            f'{", ".join(known)}')
    return series


def read_head(patch):
    """The fields in the head of a patch: {keyword: value}."""
    text = patch.read_text(encoding='utf-8').split('\n--- ')[0]
    head = dict(re.findall(r'^(Kind|Needs|Tests|Series|Only-if): (.+)$', text,
                           re.M))
    if head.get('Kind') not in KINDS:
        die(f'{patch.name}: expected a line "Kind: " with one of '
            f'{", ".join(KINDS)}')
    if not re.fullmatch(r'(from|until) \d+\.\d+',
                        head.get('Series', 'from 0.0')):
        die(f'{patch.name}: expected "Series: from X.Y" or "until X.Y", got '
            f'"{head["Series"]}"')
    return head


def is_for_series(head, series):
    """Whether a patch with this head is for a series."""
    word, _, other = head.get('Series', f'from {series}').partition(' ')
    own, limit = series_number(series), series_number(other)
    return own >= limit if word == 'from' else own <= limit


def is_for_source(head, pristine):
    """Whether the condition of a patch with this head holds."""
    if 'Only-if' not in head:
        return True
    file, _, regex = head['Only-if'].partition(' ')
    path = pristine / file
    return path.is_file() and re.search(
        regex, path.read_text(encoding='utf-8'), re.M)


def split_patches(directory, leave_out):
    """The heads of patches by name: of those to apply, and of those left out.
    @leave_out: names and kinds of patches. A name stands for the patch with
    "-data" at its end, too. Patches that need those are left out, too."""
    heads = {patch.stem: read_head(patch)
             for patch in sorted(directory.glob('*.patch'),
                                 key=lambda path: path.stem)}
    for word in leave_out:
        if word not in KINDS and word not in heads:
            die(f'"{word}" is neither a patch nor a kind of patches; kinds: '
                f'{", ".join(KINDS)}')

    def is_wanted(name):
        head = heads[name]
        words = {name, name.removesuffix('-data'), head['Kind']}
        return (not words & set(leave_out) and
                all(map(is_wanted, head.get('Needs', '').split())))

    wanted = {name: heads[name] for name in heads if is_wanted(name)}
    return wanted, {name: heads[name] for name in heads if name not in wanted}


def applicable(pristine, directory, series, leave_out):
    """The patches for this tree, in the order of their names."""
    wanted, _ = split_patches(directory, leave_out)
    return [directory / f'{name}.patch' for name, head in wanted.items()
            if is_for_series(head, series) and is_for_source(head, pristine)]


def patched_files(pristine, patches):
    """Apply the patches to copies; return {path: (contents, mode)}.

    No fuzz: with one line of context, a hunk could apply anywhere. A hunk
    needs as many lines of context after the change as before it; otherwise
    patch applies it only at the end of the file.
    """
    names, new = [], set()
    for patch in patches:
        lines = patch.read_text().splitlines()
        for before, line in zip(lines, lines[1:]):
            if line.startswith('+++ b/'):
                names.append(line[len('+++ b/'):].split('\t')[0])
                if before == '--- /dev/null':
                    new.add(names[-1])
    result = {}
    with tempfile.TemporaryDirectory(prefix='overlay-') as tmp:
        for name in dict.fromkeys(names):
            if name in new:
                if (pristine / name).exists():
                    die(f'a patch adds {name}, which QEMU has')
                continue
            if not (pristine / name).is_file():
                die(f'a patch names {name}, which QEMU does not have')
            copy = Path(tmp, name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(pristine / name, copy)
        for patch in patches:
            run = subprocess.run(
                ['patch', '-p1', '-s', '-F0', '-d', tmp,
                 '--no-backup-if-mismatch', '-i', str(patch)],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                check=False)
            if run.returncode:
                die(f'{patch.name} does not apply:\n{run.stdout}')
        for name in dict.fromkeys(names):
            copy = Path(tmp, name)
            result[name] = (copy.read_bytes(), copy.stat().st_mode & 0o777)
    return result


def version_header(top):
    """A header for the device with the version of the project."""
    version = (top / 'VERSION').read_text(encoding='utf-8').strip()
    return f'#define VIRTIO_RDMA_VERSION "{version}"\n'.encode()


def write_if_changed(path, data, mode):
    if path.is_file() and not path.is_symlink():
        if path.read_bytes() == data:
            if path.stat().st_mode & 0o777 != mode:
                path.chmod(mode)
            return False
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('pristine', type=Path, nargs='?',
                        help='QEMU source tree')
    parser.add_argument('out', type=Path, nargs='?',
                        help='tree to make or update')
    parser.add_argument('--leave-out', metavar='WORD,...', default='',
                        help='names and kinds of patches not to apply')
    parser.add_argument('--stock', action='store_true',
                        help='apply only patches of the kind "build", and lay '
                             'no files over')
    parser.add_argument('--list-tests', action='store_true',
                        help='only print a pattern of the device tests that '
                             'need the patches of --leave-out')
    parser.add_argument('--series', help='series of QEMU for --list-tests')
    args = parser.parse_args()
    top = Path(__file__).resolve().parent.parent
    leave_out = args.leave_out.replace(',', ' ').split()
    if args.list_tests:
        _, left = split_patches(top / 'qemu/patches', leave_out)
        print('|'.join(sorted({
            head['Tests'] for head in left.values()
            if 'Tests' in head and is_for_series(head, args.series)})))
        return
    if not args.out:
        parser.error('expected a source tree and the tree to make')
    pristine, out = args.pristine.resolve(), args.out.resolve()

    ident = identity(pristine)
    series = check_series(top, ident[1])
    if args.stock:
        leave_out = [kind for kind in KINDS if kind != 'build']
    patches = applicable(pristine, top / 'qemu/patches', series, leave_out)
    manifest = out / MANIFEST
    try:
        known = json.loads(manifest.read_text())
    except (OSError, ValueError):
        known = {}
    if known.get('pristine') != ident:
        if out.exists() and not known and any(out.iterdir()):
            die(f'{out} was not made by this script: remove it, or choose '
                'another directory')
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        # Write the manifest first, so that the next run recognizes an
        # interrupted copy and makes it again.
        manifest.write_text(json.dumps({'pristine': None, 'files': []}))
        # In a git tree, QEMU's configure would fetch subprojects.
        subprocess.run(['cp', '-a', '--reflink=auto', f'{pristine}/.',
                        str(out)], check=True)
        shutil.rmtree(out / '.git', ignore_errors=True)
        known = {'pristine': ident, 'files': []}

    wanted = patched_files(pristine, patches)
    if not args.stock:
        wanted[VERSION_HEADER] = (version_header(top), 0o644)
    for name in overlay_files(top) if not args.stock else ():
        if (pristine / name).exists():
            die(f'{name} would replace a file of QEMU; use a patch')
        source = top / name
        wanted[name] = (source.read_bytes(), source.stat().st_mode & 0o777)

    changed = []
    for name in known['files']:
        if name not in wanted:
            (out / name).unlink(missing_ok=True)
            if (pristine / name).exists():
                shutil.copy(pristine / name, out / name)
            changed.append(name)
    # Record the files before writing them, so that an interruption loses none.
    files = sorted(set(wanted) | set(known['files']))
    manifest.write_text(json.dumps({'pristine': ident, 'files': files}))
    for name, (data, mode) in wanted.items():
        if write_if_changed(out / name, data, mode):
            changed.append(name)
    manifest.write_text(json.dumps({'pristine': ident,
                                    'files': sorted(wanted)}))
    for name in changed:
        print(f'  {name}')


if __name__ == '__main__':
    main()
