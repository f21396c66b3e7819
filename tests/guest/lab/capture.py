# SPDX-License-Identifier: GPL-2.0-or-later
"""Check a capture of the link with tshark."""
import re
import shutil
import subprocess
from collections import Counter


def summary(path):
    """Return (lines of text, number of malformed frames) of a capture file.
    The number is None if there is no tshark."""
    if not shutil.which('tshark'):
        return ['tshark is not installed: capture not examined'], None
    done = subprocess.run(
        ['tshark', '-r', str(path), '-T', 'fields', '-E', 'separator=/t',
         '-e', 'infiniband.bth.opcode', '-e', '_ws.malformed',
         '-e', '_ws.col.Info'], capture_output=True, text=True, check=False)
    kinds, malformed, frames = Counter(), 0, 0
    for line in done.stdout.splitlines():
        opcode, bad, info = (line.split('\t') + ['', ''])[:3]
        frames += 1
        if bad or 'Malformed' in info:
            malformed += 1
        if opcode:
            kinds[re.sub(r'\s*QP=.*', '', info)] += 1
    text = [f'{frames} frames, {sum(kinds.values())} of them RoCEv2, '
            f'{malformed} malformed']
    text += [f'{count:8} {kind}' for kind, count in sorted(kinds.items())]
    if done.returncode != 0:
        text.append(f'tshark: {done.stderr.strip()}')
        malformed = max(malformed, 1)
    return text, malformed
