# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs rdma-core's own tests inside a lab guest, as their run_tests.py does,
and notes each result at once, one JSON object per line:

  {"test": id, "begun": true}
  {"test": id, "result": "ok|FAIL|ERROR|skip", "seconds": n, "why": text}

pyverbs_run.py TESTS RESULTS CM|NOCM PATTERN [run_tests.py's arguments]

Tests that RESULTS already names are left out. So if a test kills the process,
the caller runs this program again. A test that takes longer than LIMIT fails.
"""
import faulthandler
import importlib.util
import json
import os
import re
import signal
import sys
import time
import traceback
import unittest

# Seconds for a test. Tests of RDMA CM wait half a minute for their processes.
LIMIT = 50


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def is_cm(name):
    return 'rdmacm' in name.lower()


def netdev_of_gid(dev, port, index):
    """The netdev that a GID belongs to."""
    path = f'/sys/class/infiniband/{dev}/ports/{port}/gid_attrs/ndevs/' \
        f'{index}'
    try:
        with open(path, encoding='ascii') as f:
            return f.read().strip()
    except OSError:
        return None


def name_netdev(base):
    """The tests look for the netdev below the RDMA device's PCI function. That
    of a pvrdma is below another function, and rxe has no function."""
    original = base.RDMATestCase._get_ip_mac

    def get_ip_mac(self, dev, port, index):
        if os.path.exists(f'/sys/class/infiniband/{dev}/device/net'):
            original(self, dev, port, index)
            return
        name = netdev_of_gid(dev, port, index or 0)
        found = self.get_ip_mac_address(name) if name else (None, None)
        self.args.append([dev, port, index, *found])
    base.RDMATestCase._get_ip_mac = get_ip_mac


class Notes(unittest.TestResult):
    """Writes every result down as soon as it is known."""

    def __init__(self, path):
        super().__init__()
        self.out = open(path, 'a', encoding='utf-8')
        self.began = 0.0
        self.result = None     # None outside of tests

    def write(self, **fields):
        self.out.write(json.dumps(fields) + '\n')
        self.out.flush()

    def startTest(self, test):
        super().startTest(test)
        self.write(test=test.id(), begun=True)
        print(f'=== {test.id()}', flush=True)
        self.began = time.monotonic()
        self.result = ('ok', '')
        signal.alarm(LIMIT)
        faulthandler.dump_traceback_later(LIMIT + 10, exit=True)

    def stopTest(self, test):
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        kind, why = self.result
        self.write(test=test.id(), result=kind, why=why,
                   seconds=round(time.monotonic() - self.began, 2))
        self.result = None
        super().stopTest(test)

    def _bad(self, kind, err):
        print(''.join(traceback.format_exception(*err)), flush=True)
        # Keep the first fault, as it may be the cause of later ones.
        if self.result[0] == 'ok':
            self.result = (kind, str(err[1]).strip() or err[0].__name__)

    def addError(self, test, err):
        if self.result is None:     # setUpClass failed
            self.startTest(test)
            self._bad('ERROR', err)
            self.stopTest(test)
        else:
            self._bad('ERROR', err)

    def addFailure(self, test, err):
        self._bad('FAIL', err)

    def addSubTest(self, test, subtest, err):
        if err:
            self._bad('FAIL' if issubclass(err[0], test.failureException)
                      else 'ERROR', err)

    def addSkip(self, test, reason):
        if self.result is None:
            self.startTest(test)
            self.result = ('skip', reason)
            self.stopTest(test)
        else:
            self.result = ('skip', reason)


def expire(*_):
    raise TimeoutError(f'no end after {LIMIT} s')


def main():
    directory, results, cm, pattern = sys.argv[1:5]
    sys.argv[1:5] = []
    sys.path.insert(0, directory)
    from args_parser import parser
    parser.parse_args()
    spec = importlib.util.spec_from_file_location(
        'tests', os.path.join(directory, '__init__.py'),
        submodule_search_locations=[directory])
    tests = importlib.util.module_from_spec(spec)
    sys.modules['tests'] = tests
    spec.loader.exec_module(tests)
    name_netdev(sys.modules['tests.base'])

    done = set()
    if os.path.exists(results):
        with open(results, encoding='utf-8') as f:
            done = {json.loads(line)['test'] for line in f}
    found = flatten(unittest.defaultTestLoader.loadTestsFromModule(tests))
    todo = [t for t in found if t.id() not in done and
            re.search(pattern, t.id()) and (cm == 'CM' or not is_cm(t.id()))]
    todo.sort(key=lambda t: is_cm(t.id()))
    signal.signal(signal.SIGALRM, expire)
    unittest.TestSuite(todo).run(Notes(results))


main()
