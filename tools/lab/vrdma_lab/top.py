# SPDX-License-Identifier: GPL-2.0-or-later
"""Rates of all adapters of a lab, from the counters of query-rdma."""
import shutil
import sys
import time

from guestkit.paths import LabError

from . import client

HOME_AND_CLEAR = '\033[H\033[J'
# {title of a column: (counters whose sum it is, units of them in one of the
# column)}
RATES = {
    'tx MB/s': (['tx-bytes'], 1e6),
    'rx MB/s': (['rx-bytes'], 1e6),
    'tx pkt/s': (['tx-packets'], 1),
    'rx pkt/s': (['rx-packets'], 1),
    'retrans/s': (['retransmits'], 1),
    'RNR NAK/s': (['rnr-naks-sent', 'rnr-naks-received'], 1),
}
LEFT = f'{"adapter":8}{"port":6}{"QPs":>6}'
TITLE = LEFT + ''.join(f'{name:>11}' for name in RATES)


def sample(place):
    """{guest: its entry in the answer of the keeper}"""
    answer = client.ask(place, 'counters')
    return {entry['guest']: entry for entry in answer['guests']}


def figure(value):
    """A number with three digits or more."""
    digits = 0 if value == 0 or value >= 100 else 1 if value >= 10 else 2
    return f'{value:.{digits}f}'


def rates(before, after, seconds):
    """The values of RATES between two answers of query-rdma about an adapter.
    A reset of the adapter sets its counters to 0."""
    found = []
    for names, unit in RATES.values():
        change = 0
        for name in names:
            new, old = after['counters'][name], before['counters'][name]
            change += new - old if new >= old else new
        found.append(change / unit / seconds)
    return found


def rows(before, after):
    """The lines of a guest, one for each adapter. @before: may be None."""
    guest, lines = after['guest'], []
    if after['adapters'] is None:
        return [f'{guest:<8}GONE']
    known = {its['path']: its for its in (before or {}).get('adapters') or ()}
    for number, its in enumerate(after['adapters'], 1):
        line = f'{f"{guest}.{number}":8}' \
            f'{"up" if its["port"]["active"] else "down":6}' \
            f'{its["count"]["qp"]["used"]:>6}'
        old = known.get(its['path'])
        if old:
            values = rates(old, its, after['time'] - before['time'])
            line += ''.join(f'{figure(value):>11}' for value in values)
        lines.append(line)
    return lines


def table(before, after):
    """The lines of all guests between two samples."""
    return [TITLE, *sum((rows(before.get(guest), its)
                         for guest, its in after.items()), [])]


def show(lines):
    """Print a table. On a terminal, it replaces the one before."""
    if sys.stdout.isatty():
        size = shutil.get_terminal_size()
        lines = [line[:size.columns] for line in lines[:size.lines - 1]]
        print(HOME_AND_CLEAR, end='')
    print('\n'.join(lines), flush=True)


def top(place, interval, count):
    """Show rates every @interval seconds, @count times. None: for ever"""
    before = sample(place)
    if not any(its['adapters'] for its in before.values()):
        raise LabError('top: no guest has an adapter of QEMU, whose counters '
                       'it shows')
    shown = 0
    while count is None or shown < count:
        time.sleep(interval)
        after = sample(place)
        show(table(before, after))
        before, shown = after, shown + 1
