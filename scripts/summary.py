#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""
summary.py LOGDIR STAGE...: sum up the TAP in the logs of stages.

Names skipped and failed tests; the last line is "N passed, N failed, N
skipped". A stage fails if it has no results or fewer than planned, if it was
interrupted, or if its command failed although no test failed. A log may have
several streams of TAP, each with a plan, such as one for each release of
Debian. With SKIPS_FAIL in the environment, a run with a skipped test fails,
too.
"""

import os
import re
import sys
from pathlib import Path

LINE = re.compile(r'^(ok|not ok) \d+ - (.*?)(?: # SKIP ?(.*))?$')
# scripts/stage ends each log with this line.
STATUS = re.compile(r'\n# exit status (\d+)\n\Z')


def main():
    args = sys.argv[1:]
    logs = Path(args.pop(0))
    passed = failed = skipped = 0
    for stage in args:
        path = logs / f'{stage}.log'
        text = path.read_text(errors='replace') if path.is_file() else ''
        found = [LINE.match(line) for line in text.splitlines()]
        found = [f for f in found if f]
        status = STATUS.search(text)
        said = [int(n) for n in re.findall(r'^1\.\.(\d+)$', text, re.M)]
        if not found or not status or not said or len(found) < sum(said):
            print(f'FAIL {stage}: did not run to its end, see {path}')
            failed += 1
        elif int(status[1]) and not any(f[1] == 'not ok' for f in found):
            print(f'FAIL {stage}: exit status {status[1]} although no test '
                  f'failed, see {path}')
            failed += 1
        for kind, title, reason in (f.groups() for f in found):
            if reason is not None and kind == 'ok':
                print(f'SKIP {stage}: {title}: {reason}')
                skipped += 1
            elif kind == 'ok':
                passed += 1
            else:
                print(f'FAIL {stage}: {title}')
                failed += 1
    print(f'{passed} passed, {failed} failed, {skipped} skipped')
    sys.exit(1 if failed or not passed or
             (skipped and os.environ.get('SKIPS_FAIL')) else 0)


if __name__ == '__main__':
    main()
