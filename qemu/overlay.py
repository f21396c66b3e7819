#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
Make a QEMU source tree that contains virtio-rdma.

The result is a copy of a pristine QEMU tree, with patches applied and the
overlay's files laid over it. It is updated in place: a file is written only if
its contents change, so that ninja rebuilds only what depends on it, and what
left the overlay leaves the tree.

The patches of qemu/patches are for all series of QEMU, those in a directory
there for the series that it is named for. They are applied in the order of
their names, wherever they are. QEMU of another series is refused.
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

# The parts of this project's tree that belong in QEMU's tree. The others
# (unit tests, fuzzers, guest side) are built on their own.
OVERLAY_DIRS = ('backends', 'configs', 'docs', 'hw', 'include', 'qapi',
                'tests/qtest')
IGNORED = re.compile(r'(~|\.orig|\.rej|\.sw[a-p]|\.pyc)$|^\.|^__pycache__$')
MANIFEST = '.virtio-rdma-overlay.json'
# Made of this project's VERSION; QEMU has a VERSION of its own.
VERSION_HEADER = 'hw/rdma/virtio/version.h'


def die(message):
    sys.exit(f'overlay: {message}')


def overlay_files(top):
    """Paths, relative to top, of the files that are laid over QEMU."""
    for part in OVERLAY_DIRS:
        for dirpath, dirs, names in os.walk(top / part):
            dirs[:] = sorted(d for d in dirs if not IGNORED.search(d))
            for name in sorted(names):
                if not IGNORED.search(name):
                    yield (Path(dirpath) / name).relative_to(top).as_posix()


def identity(pristine):
    """What tells one pristine tree from another."""
    version = pristine / 'VERSION'
    if not version.is_file():
        die(f'{pristine} is not a QEMU source tree')
    return [str(pristine), version.read_text().strip(),
            version.stat().st_mtime_ns]


def series_patches(directory, version):
    """The patches for this version of QEMU, in the order of their names."""
    known = sorted((path.name for path in directory.iterdir()
                    if path.is_dir()),
                   key=lambda name: [int(n) for n in name.split('.')])
    series = '.'.join(version.split('.')[:2])
    if series not in known:
        die(f'this is QEMU {version}; the tree lies over QEMU '
            f'{" and ".join(known)} only')
    patches = [*directory.glob('*.patch'),
               *(directory / series).glob('*.patch')]
    names = [patch.name for patch in patches]
    for name in names:
        if names.count(name) > 1:
            die(f'{name} is there for all series and for {series}')
    return sorted(patches, key=lambda patch: patch.name)


def applicable(pristine, patches):
    """Leave out patches whose "Only-if: FILE REGEX" line does not hold."""
    for patch in patches:
        cond = re.search(r'^Only-if: (\S+) (.*)$', patch.read_text(), re.M)
        if cond and not re.search(cond[2], (pristine / cond[1]).read_text(),
                                  re.M):
            continue
        yield patch


def patched_files(pristine, patches):
    """Apply the patches to copies; return {path: (contents, mode)}.

    No fuzz: with one line of context it would let a hunk in anywhere. The
    context must be as long behind as before, or patch takes the hunk for the
    file's end.
    """
    patches = list(applicable(pristine, patches))
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
    """A header for the device with what VERSION says."""
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
    parser.add_argument('pristine', type=Path, help='QEMU source tree')
    parser.add_argument('out', type=Path, help='tree to make or update')
    args = parser.parse_args()
    top = Path(__file__).resolve().parent.parent
    pristine, out = args.pristine.resolve(), args.out.resolve()

    ident = identity(pristine)
    patches = series_patches(top / 'qemu/patches', ident[1])
    manifest = out / MANIFEST
    try:
        known = json.loads(manifest.read_text())
    except (OSError, ValueError):
        known = {}
    if known.get('pristine') != ident:
        if out.exists() and not known and any(out.iterdir()):
            die(f'{out} is in the way: not made by this script')
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        # The manifest comes first, so that a copy that was interrupted is
        # recognized and made again.
        manifest.write_text(json.dumps({'pristine': None, 'files': []}))
        # QEMU's configure fetches subprojects when it sees a git tree
        subprocess.run(['cp', '-a', '--reflink=auto', f'{pristine}/.',
                        str(out)], check=True)
        shutil.rmtree(out / '.git', ignore_errors=True)
        known = {'pristine': ident, 'files': []}

    wanted = patched_files(pristine, patches)
    wanted[VERSION_HEADER] = (version_header(top), 0o644)
    for name in overlay_files(top):
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
    # Recorded before the writes: a file is then never forgotten.
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
