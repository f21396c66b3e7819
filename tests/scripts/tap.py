# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the unittest cases of the calling script and print TAP."""
import sys
import unittest


def main():
    suite = unittest.defaultTestLoader.loadTestsFromModule(
        sys.modules['__main__'])
    cases = [case for group in suite for case in group]
    print(f'1..{len(cases)}')
    failed = False
    for number, case in enumerate(cases, 1):
        result = unittest.TestResult()
        case.run(result)
        group, method = case.id().split('.')[-2:]
        title = group + ': ' + method.removeprefix('test_').replace('_', ' ')
        good = result.wasSuccessful()
        print(f'{"ok" if good else "not ok"} {number} - {title}' +
              ''.join(f' # SKIP {why}' for _, why in result.skipped))
        for _, text in result.failures + result.errors:
            print('\n'.join('# ' + line for line in text.splitlines()))
        failed |= not good
    sys.exit(failed)
