#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pack-corpus.sh writes the corpora that run-device-fuzzers.sh reads. The
fuzzers here are a script that keeps all inputs."""
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import tap

TOP = Path(__file__).resolve().parents[2]
SCRIPTS = 'run-device-fuzzers.sh', 'pack-corpus.sh'
# Without arguments, QEMU's program lists its fuzzers. With -merge=1 the first
# directory is the new corpus.
FUZZER = """#!/bin/bash
[ $# != 0 ] || { printf ' * %s  \\n' TARGETS; exit; }
paths=()
for word; do
    case $word in
    --fuzz-target=*) echo "${word#*=}" >> targets ;;
    /*) [ ! -d "$word" ] || paths+=("$word") ;;
    esac
done
case " $* " in
*' -merge=1 '*) into=${paths[0]} paths=("${paths[@]:1}") ;;
*) into=seen; mkdir -p seen ;;
esac
for path in "${paths[@]}"; do
    cp -n "$path"/* "$into"
done 2> /dev/null
exit 0
"""


class Corpora(unittest.TestCase):
    def setUp(self):
        self.top = Path(tempfile.mkdtemp(prefix='fuzzers-test-'))
        self.addCleanup(shutil.rmtree, self.top)
        (self.top / 'scripts').mkdir()
        for name in SCRIPTS:
            shutil.copy(TOP / 'scripts' / name, self.top / 'scripts')
        self.corpora = self.top / 'tests/fuzz/corpus'
        self.corpora.mkdir(parents=True)
        self.build = self.top / 'build'
        self.build.mkdir()
        text = (TOP / 'scripts' / SCRIPTS[0]).read_text(encoding='utf-8')
        self.targets = re.search(r'^all=\(([^)]*)\)', text, re.M)[1].split()
        # QEMU has one fuzzer for both kinds of rdma-generic.
        there = [*self.targets, 'generic-fuzz']
        fuzzer = self.build / 'qemu-fuzz-x86_64'
        fuzzer.write_text(FUZZER.replace('TARGETS', ' '.join(there)),
                          encoding='ascii')
        fuzzer.chmod(0o755)

    def call(self, script, *words):
        return subprocess.run(
            [self.top / 'scripts' / script, *words], text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)

    def add(self, target):
        """Make an input that the fuzzer of a target has found."""
        path = self.build / 'corpus' / target
        path.mkdir(parents=True)
        (path / f'of-{target}').write_text(target, encoding='ascii')

    def test_each_fuzzer_reads_what_was_packed_for_it(self):
        self.assertIn('rdma-vhost-user', self.targets)
        for target in self.targets:
            self.add(target)
            done = self.call('pack-corpus.sh', self.build, target)
            self.assertEqual(done.returncode, 0, done.stdout)
            shutil.rmtree(self.build / 'corpus')
            shutil.rmtree(self.build / 'seen', ignore_errors=True)
            done = self.call('run-device-fuzzers.sh', self.build, '1', target)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertTrue((self.build / f'seen/of-{target}').exists(),
                            target)
        names = {path.name.split('.')[0] for path in self.corpora.iterdir()}
        # These have the same input format.
        shared = {'rdma-split', 'rdma-packed', 'rdma-iommu', 'rdma-direct',
                  'rdma-eject', 'rdma-demo'}
        self.assertEqual(names, {*self.targets} - shared | {'rdma-all'})

    def test_an_unknown_target_changes_no_corpus(self):
        self.add('rdma-other')
        done = self.call('pack-corpus.sh', self.build, 'rdma-other')
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('has no fuzzer rdma-other', done.stdout)
        self.assertEqual([*self.corpora.iterdir()], [])


if __name__ == '__main__':
    tap.main()
