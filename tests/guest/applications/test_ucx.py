# SPDX-License-Identifier: GPL-2.0-or-later
"""All tests of ucx_perftest: UCT on one transport, and UCP on one transport or
on both."""
from lab.ucx import perftest

WAYS = {'short': 8, 'bcopy': 2048, 'zcopy': 4000}
UCP = {
    'tag_lat': 16384, 'tag_bw': 16384, 'tag_sync_lat': 2048,
    'tag_sync_bw': 2048, 'ucp_am_lat': 16384, 'ucp_am_bw': 16384,
    'stream_lat': 16384, 'stream_bw': 16384, 'ucp_put_lat': 16384,
    'ucp_put_bw': 16384, 'ucp_get': 16384, 'ucp_add': 8, 'ucp_fadd': 8,
    'ucp_swap': 8, 'ucp_cswap': 8,
}


def uct(bench, transport, tests, ways=tuple(WAYS)):
    for test in tests:
        for way in ways:
            perftest(bench, f'-x {transport} -d {{device}} -t {test} -D {way} '
                     f'-s {WAYS[way]}')


def ucp(bench, settings):
    for test, size in UCP.items():
        perftest(bench, f'-t {test} -s {size}', settings)


def test_rc_active_messages(bench):
    uct(bench, 'rc_verbs', ('am_lat', 'am_bw'))


def test_rc_puts(bench):
    uct(bench, 'rc_verbs', ('put_lat', 'put_bw'))


def test_rc_gets(bench):
    uct(bench, 'rc_verbs', ('get',), ('bcopy', 'zcopy'))


def test_rc_atomics(bench):
    for test in 'add_mr', 'fadd', 'cswap':
        perftest(bench, f'-x rc_verbs -d {{device}} -t {test} -s 8')


def test_ud_active_messages(bench):
    uct(bench, 'ud_verbs', ('am_lat', 'am_bw'))


def test_rc_of_ucp(bench):
    ucp(bench, 'UCX_TLS=rc')


def test_ud_of_ucp(bench):
    ucp(bench, 'UCX_TLS=ud')


def test_what_ucp_chooses(bench):
    ucp(bench, '')
