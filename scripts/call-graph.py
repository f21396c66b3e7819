#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
#
# call-graph.py: print, for each component of layers.toml, the graph of its
# files by direct calls and by includes, its cycles with the calls that make
# them, and totals. With --check, print only violations of the rules of
# layers.toml, and fail if there are any.
#
# Definitions come from ctags. Calls come from the text between the first and
# last line of each function: a function's name with a parenthesis after it is
# a call, and without one a reference. A static function is known in its own
# file only. Inline functions and macros belong to their header; their calls
# count as calls of their callers.

import argparse
import collections
import glob
import os
import re
import signal
import subprocess
import sys
import tomllib

TOKEN = re.compile(r'[A-Za-z_]\w*|->|[^\sA-Za-z_]')
BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"'
                     r"|'(?:\\.|[^'\\\n])*'", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"')
# A line of a list of files: quoted, in a comment or with a layer's name before
LISTED = re.compile(r"[\s*#']*(?:\w+\s{2,})?((?:[\w-]+\.[ch][\s',]*)+)$")
MACRO = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)')

Definition = collections.namedtuple('Definition', 'name file line')
Call = collections.namedtuple('Call', 'source target file line direct')


class Source:
    """One file: its includes, definitions, declarations and names used"""

    def __init__(self, name, text):
        self.name = name
        self.functions = []             # (first line, last line, name)
        self.local = {}                 # name: Definition, known here only
        self.shared = {}                # name: Definition, known elsewhere
        self.declared = {}              # name: line of the prototype
        self.includes = {}              # file: line
        blank = BLANKED.sub(self._blank, text)
        blank = blank.split('\n')
        # In `blank`, strings are empty; take the name from the original line.
        self.included = [(m.group(1), number)
                         for number, (line, was) in enumerate(
                             zip(blank, text.split('\n')), 1)
                         if 'include' in line and (m := INCLUDE.match(was))]
        self.lines = self._join(blank)

    @staticmethod
    def _blank(match):
        text = match.group()
        return ('""' if text[0] in '"\'' else ' ') + '\n' * text.count('\n')

    def _join(self, lines):
        """Drop directives, but keep the bodies of macros, on one line"""
        out = []
        i = 0
        while i < len(lines):
            text, first = lines[i], i + 1
            if text.lstrip().startswith('#'):
                while text.endswith('\\') and i + 1 < len(lines):
                    i += 1
                    text = text[:-1] + ' ' + lines[i]
                match = MACRO.match(text)
                if match:
                    out.append((first, text[match.end():], match.group(1)))
            else:
                out.append((first, text, None))
            i += 1
        return out

    def uses(self):
        """Yield (line, user, name, whether it is a call) for each used name"""
        spans = iter(sorted(self.functions))
        span = next(spans, None)
        before = ''
        for line, text, macro in self.lines:
            while span and line > span[1]:
                span = next(spans, None)
            inside = span and span[0] <= line
            user = macro or (span[2] if inside else None)
            tokens = TOKEN.findall(text)
            for i, token in enumerate(tokens):
                if (token[0].isalpha() or token[0] == '_') and \
                        before not in ('.', '->'):
                    called = tokens[i + 1:i + 2] == ['(']
                    if not (called and user is None):
                        yield line, user, token, called
                before = token


class Component:
    def __init__(self, name, rules):
        self.name = name
        self.program = rules['program']
        self.root = rules.get('root')
        self.folders = rules.get('folders', [])
        self.layers = rules.get('layers', [])
        self.order = rules.get('order')
        self.public = rules.get('public', False)
        self.above = rules.get('above', [])
        self.files = sorted({os.path.normpath(name)
                             for pattern in rules['files']
                             for name in glob.glob(pattern, recursive=True)})

    def short(self, name):
        """The short name of a file of this component, for messages"""
        return os.path.relpath(name, self.root) if self.root \
            else os.path.basename(name)

    def folder(self, name):
        return os.path.dirname(os.path.relpath(name, self.root)) or '.'


class Tree:
    """All components, with their calls and includes resolved"""

    def __init__(self, rules):
        with open(rules, 'rb') as file:
            self.components = {
                name: Component(name, table)
                for name, table in tomllib.load(file).items()}
        self.components = {name: c for name, c in self.components.items()
                           if c.files}
        self.owner = {f: c for c in self.components.values() for f in c.files}
        self.sources = {}
        for name in self.owner:
            with open(name, encoding='utf-8') as file:
                self.sources[name] = Source(name, file.read())
        self._tags()
        self._resolve_includes()
        self._resolve_calls()

    def _tags(self):
        out = subprocess.run(
            ['ctags', '-o', '-', '--sort=no', '--languages=C',
             '--langmap=C:.c.h', '--kinds-C=fpd', '--fields=+neK',
             '--fields-C=+{properties}', '--pattern-length-limit=0',
             '-L', '-'],
            input='\n'.join(self.sources), text=True, check=True,
            stdout=subprocess.PIPE).stdout
        for row in out.splitlines():
            if row.startswith('!'):
                continue
            name, file, rest = row.split('\t', 2)
            fields = dict(f.partition(':')[::2]
                          for f in rest.rsplit(';"\t', 1)[1].split('\t')[1:])
            kind = rest.rsplit(';"\t', 1)[1].split('\t')[0]
            line = int(fields['line'])
            source = self.sources[file]
            static = 'static' in fields.get('properties', '').split(',')
            if kind == 'prototype':
                if not static:
                    source.declared.setdefault(name, line)
                continue
            if kind == 'function':
                source.functions.append((line, int(fields.get('end', line)),
                                         name))
            known = static or kind == 'macro'
            known = source.local if known and file.endswith('.c') \
                else source.shared
            known[name] = Definition(name, file, line)

    def _resolve_includes(self):
        for source in self.sources.values():
            owner = self.owner[source.name]
            for wanted, line in source.included:
                places = [os.path.dirname(source.name), owner.root, 'include',
                          '.']
                found = [os.path.normpath(os.path.join(p, wanted))
                         for p in places if p]
                # A file on another include path of the build
                found += [f for f in owner.files if f.endswith('/' + wanted)]
                for name in found:
                    if name in self.sources:
                        source.includes.setdefault(name, line)
                        break

    def _reach(self, name):
        """All files that a file includes, directly or indirectly"""
        seen, queue = {name}, [name]
        while queue:
            for other in self.sources[queue.pop()].includes:
                if other not in seen:
                    seen.add(other)
                    queue.append(other)
        return seen

    def _resolve_calls(self):
        known = collections.defaultdict(dict)   # program: {name: [Definition]}
        for source in self.sources.values():
            table = known[self.owner[source.name].program]
            for name, definition in source.shared.items():
                table.setdefault(name, []).append(definition)
        self.calls = []
        for source in self.sources.values():
            table = known[self.owner[source.name].program]
            own = {**source.local, **source.shared}
            reach = self._reach(source.name)
            declared = {name for file in reach
                        for name in self.sources[file].declared}
            for line, user, name, direct in source.uses():
                target = own.get(name)
                if not target:
                    there = [d for d in table.get(name, ())
                             if d.file in reach or not d.file.endswith('.h')]
                    # Without a prototype, it is a variable with that name.
                    if not there or not (direct or name in declared):
                        continue
                    target = there[0]
                if target.name == user and target.line == line:
                    continue
                self.calls.append(Call(user, target, source.name, line,
                                       direct))


def edges_of(pairs):
    graph = collections.defaultdict(set)
    for a, b in pairs:
        graph[a].add(b)
        graph[b] |= set()
    return graph


def cycles(graph):
    """The strongly connected components of more than one node (Tarjan)"""
    index, low, stack, on, out = {}, {}, [], set(), []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            node, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    members = set()
                    while node not in members:
                        members.add(stack.pop())
                    on -= members
                    if len(members) > 1 or node in graph[node]:
                        out.append(sorted(members))
    return out


class View:
    """The calls and includes among the files of one component"""

    def __init__(self, tree, component):
        self.tree = tree
        self.component = component
        inside = set(component.files)
        self.calls = [c for c in tree.calls if c.file in inside and
                      c.target.file in inside and c.direct]
        self.between = collections.defaultdict(list)
        for call in self.outlined():
            if call.file != call.target.file:
                self.between[call.file, call.target.file].append(call)
        self.includes = {(f, other): line for f in component.files
                         for other, line in tree.sources[f].includes.items()
                         if other in inside}
        self.call_cycles = cycles(edges_of(self.between))
        self.include_cycles = cycles(edges_of(self.includes))
        self.function_cycles = [c for c in cycles(edges_of(
            ((c.file, c.source), (c.target.file, c.target.name))
            for c in self.calls if c.source)) if len(c) > 1]

    def outlined(self):
        """The calls, with calls of inline functions attributed to callers"""
        body = collections.defaultdict(list)
        for call in self.calls:
            if call.file.endswith('.h'):
                body[call.file, call.source].append(call)
        for call in self.calls:
            if call.file.endswith('.h'):
                continue
            yield call
            seen, queue = set(), [call.target]
            while queue:
                inner = queue.pop()
                if inner in seen or not inner.file.endswith('.h'):
                    continue
                seen.add(inner)
                for part in body[inner.file, inner.name]:
                    yield call._replace(target=part.target)
                    queue.append(part.target)

    def functions(self):
        return sum(len(self.tree.sources[f].functions)
                   for f in self.component.files)

    def totals(self):
        c = self.component
        calls = {(x.source, x.target) for x in self.calls}
        return (f'{c.name}: {len(c.files)} files, {self.functions()} '
                f'functions; {len(calls)} calls, {len(self.between)} between '
                f'files; {len(self.includes)} includes; '
                f'cycles by calls: {sizes(self.call_cycles)} files, '
                f'{sizes(self.function_cycles)} functions; '
                f'by includes: {sizes(self.include_cycles)}')

    def show_cycle(self, members):
        """Print the calls of a cycle, rarest first"""
        short = self.component.short
        print(f'  cycle of {len(members)} files: '
              f'{" ".join(map(short, members))}')
        inside = {pair: calls for pair, calls in self.between.items()
                  if pair[0] in members and pair[1] in members}
        for (a, b), calls in sorted(inside.items(),
                                    key=lambda x: (len(x[1]), x[0])):
            names = sorted({c.target.name for c in calls})
            print(f'    {short(a)} -> {short(b)}: {", ".join(names)}')

    def show(self, brief):
        short = self.component.short
        print(f'== {self.totals()}')
        if not brief:
            for file in self.component.files:
                called = {b: len({c.target.name for c in calls})
                          for (a, b), calls in self.between.items()
                          if a == file}
                included = sorted(b for a, b in self.includes if a == file)
                print(f'  {short(file)}')
                if called:
                    print('    calls ' + ', '.join(
                        f'{short(b)} ({n})' for b, n in sorted(
                            called.items(), key=lambda x: (-x[1], x[0]))))
                if included:
                    print('    includes ' + ', '.join(map(short, included)))
        for members in self.call_cycles:
            self.show_cycle(members)
        for members in self.include_cycles:
            print(f'  cycle of includes: {" ".join(map(short, members))}')
        for members in self.function_cycles:
            print('  cycle of functions: '
                  f'{" ".join(name for _, name in members)}')
        print()


def sizes(found):
    lengths = sorted((len(c) for c in found), reverse=True)
    return '+'.join(map(str, lengths)) or 'no'


class Checker:
    """Finds violations of the rules of one component"""

    def __init__(self, tree, view):
        self.tree = tree
        self.view = view
        self.component = view.component
        self.bad = []

    def complain(self, file, line, text):
        self.bad.append(f'{file}:{line}: {text}')

    def level(self, file):
        """(rank, name) of the folder or layer of a file"""
        c = self.component
        if c.folders:
            folder = c.folder(file)
            return (c.folders.index(folder), folder.replace('.', 'top')) \
                if folder in c.folders else None
        for rank, patterns in enumerate(c.layers):
            if any(glob.fnmatch.fnmatchcase(os.path.basename(file), p)
                   for p in patterns):
                return rank, f'layer {rank + 1}, {patterns[0]}'
        return None

    def run(self):
        if self.component.folders or self.component.layers:
            self.directions()
        if self.component.folders:
            self.headers()
        if self.component.order:
            self.listed()
        self.private()
        self.acyclic()
        return self.bad

    def directions(self):
        levels = {f: self.level(f) for f in self.component.files}
        for file, level in levels.items():
            if level is None:
                self.complain(file, 1, 'in no folder or layer of '
                              f'scripts/layers.toml ({self.component.name})')
                return
        inside = set(self.component.files)
        seen = set()
        for call in self.tree.calls:
            target = call.target
            if call.file not in inside or target.file not in inside or \
                    levels[target.file][0] <= levels[call.file][0] or \
                    (call.source, target) in seen:
                continue
            seen.add((call.source, target))
            self.complain(
                call.file, call.line,
                f'{call.source or "initializer"} '
                f'{"calls" if call.direct else "names"} {target.name} of '
                f'{self.component.short(target.file)}, which is above '
                f'({levels[call.file][1]} < {levels[target.file][1]})')
        for (file, other), line in self.view.includes.items():
            if levels[other][0] > levels[file][0]:
                self.complain(
                    file, line, f'includes {self.component.short(other)}, '
                    f'which is above ({levels[file][1]} < {levels[other][1]})')
        # A prototype in a lower header would hide a call that goes up.
        defined = {d.name: f for f in inside
                   for d in self.tree.sources[f].shared.values()}
        for file in inside:
            for name, line in self.tree.sources[file].declared.items():
                there = defined.get(name)
                if there and levels[there] != levels[file]:
                    self.complain(file, line, f'declares {name}, which '
                                  f'{self.component.short(there)} defines')

    def headers(self):
        folder = self.component.folder
        used = collections.defaultdict(dict)
        for (file, other), line in self.view.includes.items():
            if folder(file) != folder(other):
                used[folder(other)].setdefault(other, (file, line))
        for name, headers in used.items():
            if len(headers) > 1:
                for other, (file, line) in sorted(headers.items()):
                    self.complain(file, line, f'includes {other}, one of '
                                  f'{len(headers)} headers of folder {name} '
                                  'that others include; one is allowed')

    def listed(self):
        """Each source file is listed in order, and uses only earlier files"""
        short, order = self.component.short, self.component.order
        here = os.path.dirname(order)
        found = []
        with open(order, encoding='utf-8') as file:
            for line in file:
                match = LISTED.match(line)
                found += [os.path.join(here, name)
                          for name in re.findall(r'[\w-]+\.[ch]',
                                                 match[1] if match else '')]
        rank = {f: i for i, f in enumerate(found)}
        for file in self.component.files:
            if file.endswith('.c') and file not in rank and \
                    os.path.dirname(file) == here:
                self.complain(file, 1, f'not listed in {order}')
        used = {pair: (calls[0].line, f'{calls[0].source} calls '
                       f'{calls[0].target.name} of {short(pair[1])}')
                for pair, calls in self.view.between.items()}
        used.update({pair: (line, f'includes {short(pair[1])}')
                     for pair, line in self.view.includes.items()})
        for (file, other), (line, what) in used.items():
            if rank.get(other, -1) > rank.get(file, len(found)):
                self.complain(file, line, f'{what}, which {order} lists '
                              'after it')

    def private(self):
        """No component uses private headers, or calls components above it"""
        inside = set(self.component.files)
        for file in self.component.files:
            for other, line in self.tree.sources[file].includes.items():
                owner = self.tree.owner[other]
                if other not in inside and not owner.public:
                    self.complain(file, line, f'includes {other}, which is '
                                  f'private to the {owner.name}')
        for call in self.tree.calls:
            owner = self.tree.owner[call.target.file]
            if call.file in inside and owner.name in self.component.above:
                self.complain(call.file, call.line, f'calls '
                              f'{call.target.name} of the {owner.name}')

    def acyclic(self):
        short = self.component.short
        for members in self.view.call_cycles:
            rare = min(((len(calls), calls[0]) for (a, b), calls in
                        self.view.between.items()
                        if a in members and b in members),
                       key=lambda x: x[0])[1]
            self.complain(
                rare.file, rare.line, f'{len(members)} files call each other '
                f'in a circle: {" ".join(map(short, members))}; here '
                f'{rare.source} calls {rare.target.name} of '
                f'{short(rare.target.file)}')
        for members in self.view.include_cycles:
            self.complain(members[0], 1, 'includes in a circle: '
                          + ' '.join(map(short, members)))


def main():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
    parser = argparse.ArgumentParser(
        description='Print which file calls and includes which.')
    parser.add_argument('component', nargs='*',
                        help='a component of layers.toml (default: all)')
    parser.add_argument('--root', default=top, help='top of the source tree')
    parser.add_argument('--rules', help='default: scripts/layers.toml there')
    parser.add_argument('--brief', action='store_true',
                        help='only totals and cycles')
    parser.add_argument('--calls', nargs=2, metavar=('FROM', 'TO'),
                        help='list the calls between two files, or folders')
    parser.add_argument('--check', action='store_true',
                        help='fail if a rule of layers.toml is broken')
    args = parser.parse_args()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    rules = os.path.abspath(args.rules) if args.rules else None
    os.chdir(args.root)
    tree = Tree(rules or 'scripts/layers.toml')
    unknown = set(args.component) - set(tree.components)
    if unknown:
        parser.error(f'no component {" ".join(sorted(unknown))}; expected one '
                     f'of: {" ".join(tree.components)}')
    views = [View(tree, c) for name, c in tree.components.items()
             if not args.component or name in args.component]
    if args.calls:
        source, target = args.calls
        for call in tree.calls:
            if source in call.file and target in call.target.file and \
                    call.file != call.target.file and call.direct:
                print(f'{call.file}:{call.line}: {call.source} calls '
                      f'{call.target.name} ({call.target.file})')
        return 0
    if args.check:
        bad = [line for view in views for line in Checker(tree, view).run()]
        for line in bad:
            print(line)
        return 1 if bad else 0
    for view in views:
        view.show(args.brief)
    return 0


if __name__ == '__main__':
    sys.exit(main())
