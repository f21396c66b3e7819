/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages of 64 bytes, one after the other, each with a doorbell of its own.
 * "make check" checks that they arrive. "make bench BENCH=instructions" counts
 * the instructions of device and engine for a message, from the doorbell to the
 * completion.
 */
#include "qemu/osdep.h"
#include "libqos/virtio-rdma.h"

#define SLOT 4
#define SIZE 64
#define FEATURES (QRDMA_FEATURES | QRDMA_DIRECT_QPS | QRDMA_DIRECT_CQS)

typedef struct Bench {
    QRdmaHost *host;
    QRdma *d;
    QRdmaMr *mr;
    QRdmaCq *cq;                    /* of sends */
    QRdmaCq *recv_cq;
    QRdmaQp *from;
    QRdmaQp *to;
} Bench;

static Bench bench_new(void)
{
    Bench b;
    QRdmaPd *pd;

    b.host = qrdma_host_start("-netdev hubport,id=n0,hubid=0 "
                              "-device virtio-rdma-pci,netdev=n0,addr=%d",
                              SLOT);
    b.d = qrdma_open(b.host, QPCI_DEVFN(SLOT, 0));
    qrdma_start(b.d, FEATURES, 0);
    qrdma_add_event_buffers(b.d, 8);
    qrdma_setup_gids(b.d, 1);
    pd = qrdma_alloc_pd(b.d);
    b.mr = qrdma_reg_mr_at(pd, 0, 2 * 4096,
                           RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE,
                           qrdma_alloc(b.d, 2 * 4096));
    b.cq = qrdma_create_cq(b.d, 16);
    b.recv_cq = qrdma_create_cq(b.d, 16);
    b.from = qrdma_create_qp(pd, b.cq, b.cq, RDMA_QPT_RC);
    b.to = qrdma_create_qp(pd, b.recv_cq, b.recv_cq, RDMA_QPT_RC);
    qrdma_connect(b.from, b.to, NULL);
    return b;
}

static void message(Bench *b, RdmaWrOpcode opcode, uint64_t n)
{
    RdmaSge from = qrdma_sge(b->mr, 0, SIZE), to = qrdma_sge(b->mr, 4096, SIZE);
    RdmaSendWr wr = qrdma_wr(opcode, n, &from);

    if (opcode == RDMA_WR_SEND) {
        qrdma_recv(b->to, n, &to);
    } else {
        wr.wr.rdma.remote_addr = to.addr;
        wr.wr.rdma.rkey = b->mr->rkey;
    }
    qrdma_post_send(b->from, &wr);
    qrdma_expect(b->cq, n, RDMA_WC_SUCCESS);
    if (opcode == RDMA_WR_SEND) {
        qrdma_expect(b->recv_cq, n, RDMA_WC_SUCCESS);
    }
}

/* The parameter, which the script sets: how many messages there are. */
static void run(gconstpointer opcode)
{
    const char *count = g_getenv("MESSAGES");
    uint64_t n = count ? g_ascii_strtoull(count, NULL, 10) : 16;
    Bench b = bench_new();

    for (uint64_t i = 0; i < n; i++) {
        message(&b, GPOINTER_TO_UINT(opcode), i);
    }
    qrdma_host_stop(b.host);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_data_func("/virtio-rdma/message/write",
                        GUINT_TO_POINTER(RDMA_WR_RDMA_WRITE), run);
    qtest_add_data_func("/virtio-rdma/message/send",
                        GUINT_TO_POINTER(RDMA_WR_SEND), run);
    return g_test_run();
}
