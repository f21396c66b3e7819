# SPDX-License-Identifier: GPL-2.0-or-later
"""The device's tests that cannot pass on an RDMA device of the host, by
reason: the table tests/guest/verbs/cannot.toml, and the results of its
tests."""
import re
import tomllib

from guestkit.paths import LabError

from .places import GUEST_TESTS

TABLE = GUEST_TESTS / 'verbs' / 'cannot.toml'
RESULT = re.compile(r'(ok|not ok) \d+ - (.*?)( # SKIP .*)?$')


class Entry:
    """Tests that fail for one reason."""

    def __init__(self, row):
        self.row = dict(row)
        try:
            self.kind, self.reason = row['kind'], row['reason']
            tails = f'({"|".join(row["paths"])})$'
            self.paths = re.compile(tails)
            # The link between the two devices of the test
            link = row.get('link', 'hub')
            self.tried = f'/{link}{tails}' if link else tails
        except (KeyError, re.error) as e:
            raise LabError(f'{TABLE}: {row}: {e}') from e
        self.run = row.get('run', True)
        self.sometimes = row.get('sometimes', False)
        self.used = False


class Cannot:
    """The part of the table for one stack, if any."""

    def __init__(self, stack, text=None):
        table = tomllib.loads(TABLE.read_text() if text is None else text)
        self.kinds = table['kinds']
        self.entries = [Entry(row) for row in table['cannot']
                        if stack and stack in row.get('on', [stack])]
        wrong = [entry.row for entry in self.entries
                 if entry.kind not in self.kinds]
        if wrong:
            raise LabError(f'{TABLE}: no such kind: {wrong}')
        self.counts = dict.fromkeys(self.kinds, 0)

    def regex(self):
        """Return a regular expression for all paths that the table has."""
        return '|'.join(entry.paths.pattern for entry in self.entries)

    def regex_tried(self):
        """Return one for the tests to run. Each runs on one link only: a
        failing test takes its time, and a QEMU of its own."""
        return '|'.join(entry.tried for entry in self.entries if entry.run)

    def left_out(self):
        """Return TAP lines for the tests that do not run."""
        lines = []
        for entry in self.entries:
            if not entry.run:
                entry.used = True
                self.counts[entry.kind] += 1
                lines.append(f'ok 0 - {entry.paths.pattern} # SKIP '
                             f'{entry.kind}: {entry.reason}')
        return lines

    def find(self, title):
        """Find the entry for a test with this title, "program: path" or
        "program: path: reason of the failure"."""
        path = title.split(': ')[1] if ': ' in title else title
        return next((entry for entry in self.entries
                     if entry.paths.search(path)), None)

    def judge(self, line):
        """Return a line of TAP as it is, or changed as the table says."""
        found = RESULT.match(line)
        if not found:
            return line
        state, title, skip = found.groups()
        entry = self.find(title)
        if not entry:
            return line
        entry.used = True
        if state == 'not ok':
            self.counts[entry.kind] += 1
            title = ': '.join(title.split(': ')[:2])
            return f'ok 0 - {title} # SKIP {entry.kind}: {entry.reason}'
        if skip or entry.sometimes:
            return line
        return f'not ok 0 - {title}: passes, which {TABLE.name} rules out'

    def unused(self):
        """Return lines for entries that no test matched, after a run of all
        tests."""
        return [f'not ok 0 - {TABLE.name} has no test {entry.paths.pattern}'
                for entry in self.entries if not entry.used]

    def summary(self):
        return ', '.join(f'{kind} {count}'
                         for kind, count in self.counts.items() if count)
