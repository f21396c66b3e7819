# SPDX-License-Identifier: GPL-2.0-or-later
"""The background process of a lab.

It boots the guests, and serves clients on a socket in the lab's directory, one
request for each connection. When it ends, in any way, its guests end, too.
"""
import os
import shutil
import signal
import socket
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from guestkit.agent import GuestGone
from guestkit.kernel import prepared
from guestkit.paths import LabError

from . import images, installed
from .diskguest import DiskGuest
from .guests import LabGuest
from .network import Network, all_gone
from .session import Run, Shell, Wire

SHELL_ENDS = 10     # seconds until a shell has ended without its client


class Keeper:
    def __init__(self, place, plan):
        self.place, self.plan = place, plan
        self.logs = Path(plan.logs) if plan.logs else place.directory / 'logs'
        self.began = time.time()
        self.networks = []      # of adapter 1, 2 ...
        self.preferred = False  # main loops have priority over vCPUs
        self.guests = {}        # by number
        self.stop = threading.Event()
        self.lock = threading.Lock()    # of the networks

    def boot(self):
        """Boot all guests; return when they are ready."""
        directory = str(self.place.directory)
        self.logs.mkdir(parents=True, exist_ok=True)
        kernel = None
        if self.plan.release:
            kernel = installed.kernel_of(self.plan, self.place.directory)
        elif self.plan.sources and self.plan.series:
            kernel = prepared(self.plan.series)
        for number in self.plan.adapter_numbers:
            self.networks.append(
                Network(self.plan, directory, self.logs, number))
        make, kernels = LabGuest, [kernel] * self.plan.guests
        if self.plan.sources:
            make = DiskGuest
            kernels = images.boots(self.plan, self.place.directory, kernel)
        for index, its in zip(self.plan.numbers, kernels):
            guest = make(index, self.plan, self.networks, self.logs, its)
            self.guests[index] = guest
            guest.start()
        for network in self.networks:
            network.booted(self.guests)
        with ThreadPoolExecutor(len(self.guests)) as pool:
            ends = [pool.submit(guest.bring_up)
                    for guest in self.guests.values()]
            try:
                for end in as_completed(ends):
                    end.result()
            except BaseException:
                # End the others, so that the pool does not wait for them.
                self.end()
                raise
        self.preferred = all([network.prefer() for network in self.networks]) \
            and all(guest.preferred for guest in self.guests.values())

    def end(self):
        for guest in self.guests.values():
            guest.kill()
        for network in self.networks:
            network.kill()

    # Requests of clients.

    def chosen(self, numbers):
        """The guests with these numbers; all guests for an empty list."""
        for number in numbers:
            if number not in self.guests:
                raise LabError(f'no guest {number}: there are '
                               f'{min(self.guests)} to {max(self.guests)}')
        return [self.guests[n] for n in numbers or self.guests]

    def alive(self, number):
        """The guest with this number, whose QEMU has to run."""
        guest = self.chosen([number])[0]
        if guest.fate:
            raise LabError(f'guest {guest.index}: {guest.fate}')
        return guest

    def network(self, number):
        """The network of the adapters with this number."""
        if number not in self.plan.adapter_numbers:
            raise LabError(f'no adapter {number}: each guest has 1 to '
                           f'{self.plan.adapters}')
        return self.networks[number - 1]

    def _describe(self, guest):
        """The entry of a guest in the status."""
        entry = guest.describe()
        for network, its in zip(self.networks, entry['adapters']):
            its['impaired'] = network.impaired.get(guest.index)
        return entry

    def do_status(self, wire, _):
        with self.lock:
            networks = self.networks
            wire.send(lab=self.place.name, began=self.began,
                      stack=self.plan.stack, wire=self.plan.wire,
                      links=self.plan.links, mtu=self.plan.mtu,
                      kernel=self.guests[self.plan.first].kernel.release,
                      shares=self.plan.shares, logs=str(self.logs),
                      captures=[n.capture for n in networks if n.capture],
                      network=all(n.alive() for n in networks),
                      accelerator=self.plan.accelerator.about,
                      preferred=self.preferred,
                      processes=[os.getpid(),
                                 *sum((n.processes() for n in networks), []),
                                 *(g.process.pid for g in
                                   self.guests.values())],
                      guests=[self._describe(g) for g in
                              self.guests.values()])

    def do_run(self, wire, request):
        guests = self.chosen(request['guests'])
        if request['after']:
            self.chosen(request['after'][:1])
        wire.send(guests=[g.index for g in guests], shares=self.plan.shares)
        Run(wire, guests, request).run(self.guests)

    def do_shell(self, wire, request):
        guest = self.chosen([request['guest']])[0]
        guest.require_folder(request['directory'])
        last = guest.shell
        ends = last and last.is_ending()
        if not guest.in_shell.acquire(timeout=SHELL_ENDS if ends else 0):
            raise LabError(f'guest {guest.index} has a shell already, on its '
                           'only terminal: end it first')
        try:
            guest.shell = Shell(wire, guest, request)
            guest.shell.run()
        finally:
            guest.in_shell.release()

    def do_qmp(self, wire, request):
        guest = self.alive(request['guest'])
        wire.send(returned=guest.execute(request['execute'],
                                         request['arguments']))

    def do_counters(self, wire, _):
        """The adapters of each guest, from query-rdma. A guest that is gone
        has none."""
        entries = []
        for guest in self.guests.values():
            try:
                adapters = guest.qmp('query-rdma')
            except GuestGone:
                adapters = None
            entries.append({'guest': guest.index, 'time': time.monotonic(),
                            'adapters': adapters})
        wire.send(guests=entries)

    def do_link(self, wire, request):
        guest = self.alive(request['guest'])
        network = self.network(request['adapter'])
        with self.lock:
            guest.set_link(network, request['up'])
        wire.send(done=True)

    def do_pcap(self, wire, request):
        with self.lock:
            if request['file']:
                self.network(request['adapter']).start_capture(request['file'])
                wire.send(done=f'capturing all frames to {request["file"]}')
                return
            found = [network.end_capture() for network in self.networks
                     if network.capture]
        if not found:
            raise LabError('pcap off: no capture runs; begin one with '
                           '"vrdma-lab pcap FILE"')
        wire.send(done='\n'.join(f'{path}: {size} bytes'
                                 for path, size in found))

    def do_impair(self, wire, request):
        """Impair frames to the adapter in the request, or else to all. A
        guest that the request names has to run."""
        guests = [self.alive(number) for number in request['guests']] or \
            [g for g in self.guests.values() if not g.fate]
        if not guests:
            raise LabError(all_gone('impair', self.guests.values()))
        networks = [self.network(request['adapter'])] \
            if request['adapter'] is not None else self.networks
        with self.lock:
            for guest in guests:
                for network in networks:
                    network.impair(guest.index, request['spec'])
        wire.send(done=', '.join(f'to guest {g.index}: {request["spec"]}'
                                 for g in guests))

    def _copy_logs(self, to):
        """Copy the logs, unless they are there already."""
        try:
            if self.logs.resolve() != Path(to).resolve():
                shutil.copytree(self.logs, to, dirs_exist_ok=True)
        except shutil.Error as e:
            raise LabError('\n'.join(why for _, _, why in e.args[0])) from e

    def do_down(self, wire, request):
        try:
            if request['logs']:
                self._copy_logs(request['logs'])
        except (LabError, OSError) as e:
            # The lab ends all the same.
            wire.send(error=f'cannot copy the logs to {request["logs"]}: {e}')
        self.stop.set()
        # The client waits until this process closes the connection by ending.
        threading.Event().wait()

    def _serve(self, sock):
        wire = Wire(sock)
        try:
            request = next(wire.messages(), None)
            if request:
                getattr(self, 'do_' + request['op'])(wire, request)
        except (LabError, OSError) as e:
            wire.send(error=str(e))
        except Exception as e:    # also report it to the client
            traceback.print_exc()
            wire.send(error=f'{type(e).__name__}: {e}; see '
                            f'{self.place.keeper_log}')
        finally:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()

    def _accept(self, listener):
        while not self.stop.is_set():
            try:
                sock = listener.accept()[0]
            except OSError as e:
                # Either serve() has closed it, or there are too many clients.
                if not self.stop.wait(0.1):
                    print(f'vrdma-lab: accept: {e}', flush=True)
                continue
            threading.Thread(target=self._serve, daemon=True,
                             args=(sock,)).start()

    def serve(self, ready):
        """Serve clients until do_down(). ready() is called when clients can
        connect."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.place.control))
            self.place.control.chmod(0o600)
            listener.listen(64)
            threading.Thread(target=self._accept, daemon=True,
                             args=(listener,)).start()
            ready()
            self.stop.wait()


def keep(place, plan, report):
    """Run the keeper's process. @report: a Wire to the process that started
    it, for errors until the lab is up."""
    os.setsid()
    os.chdir('/')
    null = os.open(os.devnull, os.O_RDONLY)
    log = os.open(place.keeper_log, os.O_WRONLY | os.O_CREAT, 0o600)
    for fd, to in ((null, 0), (log, 1), (log, 2)):
        os.dup2(fd, to)
    keeper, is_up = Keeper(place, plan), threading.Event()

    interrupted = False

    def interrupt(*_):
        """Raise once. Event.set() could wait for a lock that the interrupted
        thread holds."""
        nonlocal interrupted
        if not interrupted and not keeper.stop.is_set():
            interrupted = True
            raise LabError('interrupted')
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupt)

    def watch():
        """End the boot when the process that waits for it ends."""
        for _ in report.messages():
            pass
        if not is_up.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    def ready():
        is_up.set()
        report.send(up=True)
    try:
        threading.Thread(target=watch, daemon=True).start()
        keeper.boot()
        keeper.serve(ready)
    except Exception as e:
        keeper.stop.set()
        if not isinstance(e, LabError):
            traceback.print_exc()
        if not is_up.is_set():
            report.send(error=str(e) or type(e).__name__)
    finally:
        keeper.end()
        place.leave()
