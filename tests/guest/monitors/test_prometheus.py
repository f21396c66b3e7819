# SPDX-License-Identifier: GPL-2.0-or-later
"""Prometheus reads the counters of both guests' adapters on the host.
node_exporter reads those of one adapter in its guest."""
import atexit
import json
import re
import shutil
import tempfile

from guestkit.paths import TOP
from lab import prometheus
from lab.runner import Skip, ends_guests
from lab.stock import perftest

DASHBOARD = TOP / 'tools/exporter/dashboard.json'
MONITORS = tempfile.mkdtemp(prefix='vrdma-')
atexit.register(shutil.rmtree, MONITORS, ignore_errors=True)
NODE_PORT = 9100
SECONDS = 60


def monitor(index):
    """Return QEMU's arguments for a monitor that only the exporter uses."""
    return ['-qmp', f'unix:{MONITORS}/guest{index}.qmp,server=on,wait=off']


GUESTS = {'extra': monitor}


def test_metrics_reach_the_counters_of_query_rdma(bench):
    with prometheus.running(MONITORS) as server:
        perftest(bench, 'ib_write_bw', '-s 65536 -n 500')
        for index, vm in enumerate(bench.pair.vms, 1):
            info, = vm.qmp('query-rdma')
            for name in 'tx-packets', 'rx-bytes':
                metric = f'vrdma_{name.replace("-", "_")}_total'
                rows = server.wait_for(
                    f'{metric}{{vm="guest{index}"}}',
                    lambda rows, name=name, info=info: rows and
                    rows[0][1] >= info['counters'][name] > 0)
                bench.note(f'guest{index}: {metric} {rows[0][1]:.0f}')


def test_every_panel_of_the_dashboard_has_data(bench):
    panels = json.loads(DASHBOARD.read_text())['panels']
    with prometheus.running(MONITORS) as server:
        server.wait_for('count_over_time(vrdma_up[1m]) > 5')
        for panel in panels:
            for target in panel['targets']:
                expression = re.sub(r'\$__(rate_interval|range)', '10s',
                                    target['expr'])
                expression = re.sub(r'\$(vm|adapter)', '.*', expression)
                assert server.query(expression), \
                    f'{panel["title"]}: {expression}'
    bench.note(f'{len(panels)} panels')


def test_node_exporter_in_the_guest(bench):
    vm = bench.one
    if not vm.run('command -v prometheus-node-exporter').ok:
        raise Skip('no node_exporter: install prometheus-node-exporter')
    job = vm.spawn('prometheus-node-exporter --collector.disable-defaults '
                   '--collector.infiniband '
                   f'--web.listen-address=127.0.0.1:{NODE_PORT}', NODE_PORT)
    fetch = ("python3 -c 'import urllib.request as u; print(u.urlopen("
             f'"http://127.0.0.1:{NODE_PORT}/metrics").read().decode())\'')

    def values():
        text = vm.must(fetch)
        return {name: float(value) for name, value in re.findall(
            r'^node_infiniband_(\w+)\{device="vrdma0",port="1"\} (\S+)$', text,
            re.M)}
    before = values()
    assert before.get('state_id') == 4, job.peek()
    assert before['physical_state_id'] == 5, before
    assert before['rate_bytes_per_second'] > 0, before
    perftest(bench, 'ib_write_bw', '-s 65536 -n 500')
    after = values()
    for name in ('port_data_transmitted_bytes_total',
                 'port_packets_transmitted_total'):
        assert after[name] > before[name], (name, before, after)
    sent = after['port_data_transmitted_bytes_total'] - \
        before['port_data_transmitted_bytes_total']
    assert sent > 500 * 65536, sent
    job.kill()


@ends_guests
def test_vrdma_up_is_0_after_the_end_of_a_qemu(bench):
    with prometheus.running(MONITORS) as server:
        server.wait_for('vrdma_up{vm="guest2"} == 1')
        bench.two.kill()
        server.wait_for('vrdma_up{vm="guest2"} == 0')
        assert server.wait_for('vrdma_up{vm="guest1"} == 1')
