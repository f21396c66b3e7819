# SPDX-License-Identifier: GPL-2.0-or-later
"""Disk images for tests, built from Debian's archive to resemble Debian's
cloud images, and labs of guests that boot from them."""
import os
import shutil
import subprocess

from guestkit.paths import BUILD, TOP, LabError, say, state_lock

from .runner import Skip
from .userlab import UserLab

IMAGES = BUILD / 'images'
SCRIPT = TOP / 'scripts' / 'make-image.sh'
TOOLS = ('debootstrap', 'sfdisk', 'mkfs.vfat', 'qemu-img')
PROGRAMS = ('ibverbs-utils', 'rdmacm-utils', 'perftest')
# (file, packages): one image has programs that use RDMA, the others none, as
# Debian's have
KINDS = {'bookworm': ('bookworm.raw', PROGRAMS),
         'trixie': ('trixie.qcow2', ()),
         'testing': ('testing.qcow2', ())}


def _make(suite, path, packages):
    """Build the image, which takes minutes."""
    if os.getuid() != 0:
        raise Skip(f'no {path}, and only root can make it')
    lacks = [tool for tool in TOOLS if not shutil.which(tool)]
    if lacks:
        raise Skip(f'no programs {" ".join(lacks)}, which make disk images')
    say(f'image of {suite}: making it')
    log = path.with_suffix('.log')
    with open(log, 'w', encoding='utf-8') as out:
        done = subprocess.run(
            [str(SCRIPT), suite, str(path), *packages],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False,
            env={**os.environ, 'B': str(BUILD)})
    if done.returncode != 0:
        tail = '\n'.join(log.read_text(errors='replace').splitlines()[-20:])
        raise LabError(f'no image of {suite}, see {log}:\n{tail}')


def image(suite):
    """Return the image of a suite. Build it if it does not exist, or if its
    recipe has changed."""
    name, packages = KINDS[suite]
    path = IMAGES / name
    recipe = path.with_suffix('.recipe')
    text = f'{SCRIPT.read_text()}{packages}\n'
    with state_lock():
        if not (path.exists() and recipe.exists() and
                recipe.read_text() == text):
            IMAGES.mkdir(parents=True, exist_ok=True)
            _make(suite, path, packages)
            recipe.write_text(text)
    return path


class ImageLab(UserLab):
    """A lab whose guests boot from images of these suites."""

    def __init__(self, tag, rdma=True, suites=(), up=()):
        super().__init__(tag, rdma, len(suites), up=up)
        self.images = [image(suite) for suite in suites]
        for path in self.images:
            self.up += ['--image', str(path)]
