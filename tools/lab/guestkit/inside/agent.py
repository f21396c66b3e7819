# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent in a lab guest, which serves requests of the host.

It speaks JSON, one object a line, on the virtio-serial port "lab.agent", or
on the terminal that is its argument. The answer repeats the "id" of its
request. Requests are served concurrently, so answers come in any order. This
channel does not depend on the network under test.

  run    cmd, timeout            -> rc, out          (rc null: timed out)
  start  cmd, port, wait, stdin  -> job              (waits for the TCP port;
                                                      stdin: for feed)
  feed   job, data, timeout      -> taken            (bytes that went to its
                                                      standard input; null: no
                                                      program reads it. Empty
                                                      data: end of input)
  wait   job, timeout            -> rc, out
  peek   job                     -> rc, out          (does not wait)
  follow job, at, timeout        -> data, rc         (output from byte `at` on,
                                                      as Latin-1. Forgets the
                                                      output before `at`. With
                                                      the last output: rc; then
                                                      the job is forgotten)
  kill   job, signal             -> (nothing)
  listens port                   -> yes              (TCP or RDMA CM)
  read   path                    -> text
  list   path                    -> names
  texts  patterns                -> texts            (of small files, by path)
  folder path                    -> yes              (whether it is one)
  log    (nothing)               -> text             (new lines of the kernel)

Frequent requests have their own operations, because starting a process takes
an emulated guest longer than most answers.

An answer with "error" means that the request failed.
"""
import glob
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import tty

PORT_NAME = 'lab.agent'
OUTPUT_MAX = 400000
CHUNK = 65536
FREED = 4 << 20     # bytes of output to free at a time; /run is in memory


def find_port():
    """The device node of the agent's virtio-serial port."""
    while True:
        for name in glob.glob('/sys/class/virtio-ports/*/name'):
            with open(name, encoding='ascii') as f:
                if f.read().strip() == PORT_NAME:
                    return '/dev/' + name.split('/')[-2]
        time.sleep(0.05)


def listening(port):
    """Whether a TCP socket listens on the port."""
    for table in ('/proc/net/tcp', '/proc/net/tcp6'):
        try:
            with open(table, encoding='ascii') as f:
                rows = f.readlines()[1:]
        except OSError:
            continue
        for row in rows:
            cell = row.split()
            if cell[3] == '0A' and int(cell[1].rsplit(':', 1)[1], 16) == port:
                return True
    return False


def cm_listening(port):
    """Whether a program listens on the port with RDMA CM."""
    shown = subprocess.run(['rdma', 'resource', 'show', 'cm_id'],
                           capture_output=True, text=True, check=False)
    return any('state LISTEN' in line and f':{port} ' in line + ' '
               for line in shown.stdout.splitlines())


class Job:
    """A shell command in its own process group."""

    def __init__(self, cmd, path, stdin=False):
        self.path, self.freed = path, 0
        with open(path, 'wb') as out:
            self.process = subprocess.Popen(
                ['/bin/bash', '-c', cmd], bufsize=0,
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
        if stdin:
            os.set_blocking(self.process.stdin.fileno(), False)

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def feed(self, data, timeout):
        """Write to its standard input: the number of bytes written, or None if
        no program reads it. Empty data ends the input."""
        pipe = self.process.stdin
        if not data:
            pipe.close()
            return 0
        poll = select.poll()
        poll.register(pipe, select.POLLOUT)
        poll.poll(timeout * 1000)
        try:
            return os.write(pipe.fileno(), data)
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return None

    def result(self):
        with open(self.path, 'rb') as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(0, size - OUTPUT_MAX))
            out = f.read().decode(errors='replace')
        return {'rc': self.process.poll(), 'out': out}

    def free(self, at):
        """Free the memory of the output before position @at."""
        if at - self.freed >= FREED:
            self.freed = at
            try:
                subprocess.run(['fallocate', '--punch-hole', '--length',
                                str(at), self.path], check=False)
            except OSError:
                pass        # too little memory for a process

    def follow(self, at, timeout):
        """Wait for output after position @at, or for the end of the job; "rc"
        is null while there may be more output. Output before @at may be
        gone afterwards."""
        self.free(at)
        end = time.monotonic() + timeout
        with open(self.path, 'rb') as f:
            while True:
                rc = self.process.poll()
                f.seek(at)
                data = f.read(CHUNK)
                if data or rc is not None or time.monotonic() > end:
                    break
                time.sleep(0.05)
        return {'data': data.decode('latin-1'),
                'rc': rc if len(data) < CHUNK else None}

    def wait(self, timeout):
        """The result. A job that exceeds the time is killed, with rc null."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.process.wait()
            return {**self.result(), 'rc': None}
        return self.result()


class KernelLog:
    """The kernel's messages; new() returns each of them once."""

    def __init__(self):
        self.file = os.open('/dev/kmsg', os.O_RDONLY | os.O_NONBLOCK)
        self.lock = threading.Lock()

    def new(self):
        lines = []
        with self.lock:
            while True:
                try:
                    record = os.read(self.file, 8192).decode(errors='replace')
                except BlockingIOError:
                    return ''.join(lines)
                except BrokenPipeError:    # the kernel has dropped some
                    continue
                head, text = record.split(';', 1)
                at = int(head.split(',')[2]) / 1e6
                lines.append(f'[{at:12.6f}] {text.splitlines()[0]}\n')


class Agent:
    def __init__(self, path):
        self.file = os.open(path, os.O_RDWR | os.O_NOCTTY)
        if os.isatty(self.file):
            tty.setraw(self.file)
        self.kernel_log = KernelLog()
        self.lock = threading.Lock()
        self.jobs = {}
        self.numbers = itertools.count(1)

    def send(self, message):
        data = (json.dumps(message) + '\n').encode()
        with self.lock:
            while data:
                data = data[os.write(self.file, data):]

    def start(self, cmd, stdin=False):
        with self.lock:
            number = next(self.numbers)
        job = Job(cmd, f'/run/job-{number}.out', stdin)
        self.jobs[number] = job
        return number, job

    def op_run(self, cmd, timeout=60):
        number, job = self.start(cmd)
        try:
            return job.wait(timeout)
        finally:
            del self.jobs[number]
            os.unlink(job.path)

    def op_start(self, cmd, port=None, wait=60, stdin=False):
        number, job = self.start(cmd, stdin)
        end = time.monotonic() + wait
        while port and not listening(port) and job.process.poll() is None:
            if time.monotonic() > end:
                raise TimeoutError(f'{cmd} does not listen on port {port}:\n'
                                   f'{job.wait(0)["out"]}')
            time.sleep(0.03)
        return {'job': number}

    def op_wait(self, job, timeout=60):
        return self.jobs[job].wait(timeout)

    def op_peek(self, job):
        return self.jobs[job].result()

    def op_feed(self, job, data, timeout=5):
        return {'taken': self.jobs[job].feed(data.encode('latin-1'), timeout)}

    def op_follow(self, job, at, timeout=5):
        answer = self.jobs[job].follow(at, timeout)
        if answer['rc'] is not None:
            os.unlink(self.jobs.pop(job).path)
        return answer

    def op_listens(self, port):
        return {'yes': listening(port) or cm_listening(port)}

    def op_kill(self, job, signal=9):
        self.jobs[job].signal(signal)
        return {}

    def op_read(self, path):
        with open(path, encoding='utf-8', errors='replace') as f:
            return {'text': f.read(OUTPUT_MAX)}

    def op_list(self, path):
        return {'names': sorted(os.listdir(path))}

    def op_texts(self, patterns):
        texts = {}
        for path in itertools.chain(*map(glob.glob, patterns)):
            try:
                with open(path, encoding='utf-8', errors='replace') as f:
                    texts[path] = f.read(CHUNK)
            except OSError:
                pass    # some attributes may have no value
        return {'texts': texts}

    def op_folder(self, path):
        return {'yes': os.path.isdir(path)}

    def op_log(self):
        return {'text': self.kernel_log.new()}

    def serve(self, request):
        number = request.pop('id')
        try:
            answer = getattr(self, 'op_' + request.pop('op'))(**request)
        except Exception as e:    # pass any failure to the host
            answer = {'error': f'{type(e).__name__}: {e}'}
        self.send({'id': number, **answer})

    def loop(self):
        with open('/proc/uptime', encoding='ascii') as f:
            up = float(f.read().split()[0])
        self.send({'event': 'ready', 'release': os.uname().release,
                   'uptime': up})
        buffer = b''
        while True:
            data = os.read(self.file, 65536)
            if not data:
                time.sleep(0.05)    # the host has closed its end
                continue
            *lines, buffer = (buffer + data).split(b'\n')
            for line in lines:
                threading.Thread(target=self.serve, daemon=True,
                                 args=(json.loads(line),)).start()


if __name__ == '__main__':
    Agent(sys.argv[1] if len(sys.argv) > 1 else find_port()).loop()
