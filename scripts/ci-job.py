#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
ci-job.py FILE: print the container's image and then the commands, a line each,
of the CI job that the page about vrdma-lab shows as FILE. Actions of the
service itself, such as checking out and caching, are left out.
"""
import sys
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[1]

sys.dont_write_bytecode = True
sys.path[:0] = [str(TOP / 'tests' / 'guest'), str(TOP / 'tools' / 'lab')]

from lab.pages import listing    # noqa: E402


def commands(job):
    """(image, commands) of a job of GitHub or GitLab."""
    if 'script' in job:
        return job['image'], job['script']
    return job['container']['image'], [step['run'] for step in job['steps']
                                       if 'run' in step]


def main():
    described = yaml.safe_load(listing('virtio-rdma-lab', sys.argv[1]))
    image, lines = commands(described.get('jobs', described)['rdma'])
    if not lines or any('\n' in line for line in lines):
        sys.exit(f'ci-job: {sys.argv[1]}: expected commands of one line each')
    print(image, *lines, sep='\n')


if __name__ == '__main__':
    main()
