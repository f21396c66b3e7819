# SPDX-License-Identifier: GPL-2.0-or-later
"""rdma_verify on a stream link: it checks every byte and every completion."""


def test_rc_every_operation(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V')


def test_rc_every_operation_over_ipv6(bench):
    bench.verify('-s 4096 -n 64 -r 1 -V -m 4096', family=6)


def test_rc_large_messages_at_mtu_4096(bench):
    bench.verify('-s 1048576 -n 12 -r 1 -m 4096 -o send,write,read,write_imm')


def test_rc_mtu_256(bench):
    bench.verify('-s 16384 -n 32 -r 1 -V -m 256')


def test_rc_mtu_512(bench):
    bench.verify('-s 16384 -n 32 -r 1 -V -m 512')


def test_rc_mtu_2048(bench):
    bench.verify('-s 16384 -n 32 -r 1 -V -m 2048')


def test_rc_waits_for_events(bench):
    bench.verify('-s 4096 -n 64 -r 3 -V -e')


def test_rc_eight_queue_pairs(bench):
    bench.verify('-s 8192 -n 32 -r 2 -V -q 8')


def test_rc_scattered_buffers(bench):
    bench.verify('-s 8192 -n 64 -r 2 -V -G 4')


def test_rc_inline_data(bench):
    bench.verify('-s 64 -n 64 -r 2 -V -I 64')


def test_rc_large_inline_data(bench):
    bench.verify('-s 500 -n 64 -r 1 -V -I 500 -m 256')


def test_rc_unsignalled_requests(bench):
    bench.verify('-s 1024 -n 64 -r 2 -V -u 8')


def test_rc_receiver_not_ready(bench):
    bench.verify('-s 1024 -n 64 -r 2 -R 2 -o send,send_imm,write_imm')


def test_rc_regions_of_five_gibibytes(bench):
    """The messages lie at the beginning, in the middle and at the end of a
    region."""
    for vm in bench.pair.vms:
        vm.must('echo 96 > /proc/sys/vm/nr_hugepages')
    bench.verify('-s 65536 -n 32 -r 1 -V -q 3 -M 5120')
    for vm in bench.pair.vms:
        vm.must('echo 0 > /proc/sys/vm/nr_hugepages')


def test_rc_atomics(bench):
    bench.verify('-n 256 -r 2 -q 2 -o fadd,cas')


def test_rc_empty_messages(bench):
    bench.verify('-s 0 -n 64 -r 1 -o send,send_imm,write,write_imm,read')


def test_uc_every_operation(bench):
    bench.verify('-t uc -s 8192 -n 32 -r 2 -V -R 64')


def test_ud_datagrams(bench):
    bench.verify('-t ud -s 1024 -n 64 -r 2 -V -R 64')


def test_ud_datagrams_over_ipv6(bench):
    bench.verify('-t ud -s 4096 -m 4096 -n 64 -r 1 -V -R 64', family=6)
