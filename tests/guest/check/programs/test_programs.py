# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock programs of rdma-core and perftest between two guests."""
import re

from guestkit.adapter import address
from lab.programs import cm_exchange, perftest_cm_exchange
from lab.stock import perftest, pingpong

SECONDS = 30


def test_ibv_devices_lists_the_device(bench):
    assert bench.device(bench.one) in bench.one.must('ibv_devices')


def test_ibv_devinfo_shows_an_active_roce_port(bench):
    text = bench.one.must(f'ibv_devinfo -v -d {bench.device(bench.one)}')
    for expected in (r'state:\s+PORT_ACTIVE', r'active_mtu:\s+4096',
                     r'link_layer:\s+Ethernet', r'node_guid:\s+[0-9a-f:]*'
                     r'[1-9a-f]', r'max_qp:\s+[1-9]', r'max_cqe:\s+[1-9]',
                     r'GID\[\s*\d+\]:\s+fe80:.*RoCE v2',
                     r'GID\[\s*\d+\]:\s+::ffff:10\.0\.0\.1, RoCE v2'):
        assert re.search(expected, text), f'no {expected} in\n{text}'


def test_ibv_devinfo_shows_what_the_device_can_do(bench):
    text = bench.one.must(f'ibv_devinfo -v -d {bench.device(bench.one)}')
    for expected in ('BAD_PKEY_CNTR', 'BAD_QKEY_CNTR', 'PORT_ACTIVE_EVENT',
                     'SYS_IMAGE_GUID', 'RC_RNR_NAK_GEN', 'MEM_WINDOW',
                     'MEM_MGT_EXTENSIONS', 'MEM_WINDOW_TYPE_2B'):
        assert re.search(rf'\s{expected}\s', text), \
            f'no {expected} in\n{text}'


def test_rdma_link_names_the_netdev(bench):
    text = bench.one.must('rdma link')
    assert f'{bench.device(bench.one)}/1 state ACTIVE physical_state ' \
        'LINK_UP netdev eth0' in text, text


def test_rdma_resource_shows_a_process_and_its_queue_pair(bench):
    device = bench.device(bench.one)
    job = bench.one.spawn('ibv_rc_pingpong ' +
                          bench.where(bench.one, '-d {} -g {}'), 18515)
    try:
        text = bench.one.must(f'rdma resource show qp link {device}/1')
        assert re.search(r'type RC.*comm ibv_rc_pingpong', text), text
        for kind in ('cq', 'pd', 'mr'):
            text = bench.one.must(f'rdma resource show {kind} dev {device}')
            assert 'comm ibv_rc_pingpong' in text, f'{kind}:\n{text}'
    finally:
        job.kill()
        job.wait(10)
    text = bench.one.must(f'rdma resource show qp link {device}/1')
    assert 'ibv_rc_pingpong' not in text, text


def test_ibv_rc_pingpong_validates(bench):
    pingpong(bench, 'ibv_rc_pingpong')


def test_ibv_rc_pingpong_with_events(bench):
    pingpong(bench, 'ibv_rc_pingpong', '-e')


def test_ibv_rc_pingpong_with_large_messages(bench):
    pingpong(bench, 'ibv_rc_pingpong', '-s 262144 -m 4096', 50)


def test_ibv_uc_pingpong_validates(bench):
    pingpong(bench, 'ibv_uc_pingpong')


def test_ibv_ud_pingpong_validates(bench):
    pingpong(bench, 'ibv_ud_pingpong', '-s 1024')


def test_ib_send_bw_all_services(bench):
    for service in ('RC', 'UC', 'UD'):
        perftest(bench, 'ib_send_bw', f'-c {service} -s 2048 -n 200')


def test_ib_send_bw_both_ways(bench):
    perftest(bench, 'ib_send_bw', '-b -s 4096 -n 200')


def test_ib_send_bw_with_events(bench):
    perftest(bench, 'ib_send_bw', '-e -s 4096 -n 200')


def test_ib_write_bw_four_queue_pairs(bench):
    perftest(bench, 'ib_write_bw', '-q 4 -s 65536 -n 100')


def test_ib_write_bw_all_sizes(bench):
    perftest(bench, 'ib_write_bw', '-a -n 5')


def test_ib_read_bw_large(bench):
    perftest(bench, 'ib_read_bw', '-s 1048576 -n 20')


def test_ib_lat_of_every_kind(bench):
    for tool in ('ib_send_lat', 'ib_write_lat', 'ib_read_lat'):
        perftest(bench, tool, '-s 64 -n 100')


def test_ib_atomic_bw_both_kinds(bench):
    for kind in ('FETCH_AND_ADD', 'CMP_AND_SWAP'):
        perftest(bench, 'ib_atomic_bw', f'-A {kind} -n 200')


def test_ib_send_bw_through_the_connection_manager(bench):
    perftest(bench, 'ib_send_bw', '-R -s 4096 -n 100',
             perftest_cm_exchange)


def test_rping(bench):
    options = f'-a {address(2)} -C 20 -V'
    result = cm_exchange(bench.two, bench.one, f'rping -s {options}',
                         f'rping -c {options} -v')
    assert result.ok and result.client.out.count('ping data') == 20, \
        str(result)


def test_two_programs_at_once(bench):
    job = bench.two.spawn('ibv_rc_pingpong -c -p 20001 ' +
                          bench.where(bench.two, '-d {} -g {}'), 20001)
    other = bench.one.spawn('ibv_rc_pingpong -c -p 20001 ' +
                            bench.where(bench.one, '-d {} -g {}') +
                            f' {address(2)}')
    bench.verify('-s 4096 -n 64 -r 2 -V')
    for result in (other.wait(30), job.wait(10)):
        assert result.ok, str(result)
