# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver in guests that run Debian 13's kernel, and features that 6.1
lacks: FLUSH, ATOMIC WRITE, DMA buffers of memory (udmabuf)."""
from lab.newer import SERIES, pair
from lab.programs import build_placement, build_self_qp

PAIR = pair


def test_the_driver_works(bench):
    for vm in bench.pair.vms:
        assert vm.must('uname -r').startswith(SERIES + '.'), vm.name
    bench.verify('-s 65536 -n 64 -r 2 -V')
    bench.exchange('ib_send_bw -s 4096 -n 200', 'ib_send_bw -s 4096 -n 200',
                   form='-F -d {} -x {}')


def test_flush_and_atomic_write(bench):
    command = build_placement()
    bench.exchange(command, command)


def test_regions_of_dma_buffers(bench):
    vm = bench.one
    vm.must(f'{build_self_qp("dma_buffers")} {bench.device(vm)} '
            f'{bench.gid(vm)}', 60)
