/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two virtio-rdma devices: connections come and go, and QEMU keeps nothing of
 * them.
 */
#include "qemu/osdep.h"
#include "net-test.h"

/* Connections until the memory of guest and test is given back */
#define AT_ONCE 50
#define WARM_UP 2
#define ROUNDS 4
#define MR_SIZE 8192

/*
 * Bytes that the heap may grow by, which it does in steps of a few pages. A
 * kilobyte lost per connection makes twice as much.
 */
#define NOISE (AT_ONCE * ROUNDS * 512)

/* Bytes of the heap of QEMU's main thread; 0 if this libc has no such. */
static size_t heap_size(QTestState *qts)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/maps", qtest_pid(qts));
    g_autofree char *maps = NULL;
    g_auto(GStrv) lines = NULL;

    g_assert_true(g_file_get_contents(path, &maps, NULL, NULL));
    lines = g_strsplit(maps, "\n", -1);
    for (int i = 0; lines[i]; i++) {
        if (g_str_has_suffix(lines[i], "[heap]")) {
            uint64_t start, end;

            g_assert_cmpint(sscanf(lines[i], "%" SCNx64 "-%" SCNx64,
                                   &start, &end), ==, 2);
            return end - start;
        }
    }
    return 0;
}

static NetEnd end_new(QRdma *dev)
{
    NetEnd e = { .dev = dev };

    e.pd = qrdma_alloc_pd(dev);
    e.scq = qrdma_create_cq(dev, 8);
    e.rcq = qrdma_create_cq(dev, 8);
    e.qp = qrdma_create_qp(e.pd, e.scq, e.rcq, RDMA_QPT_RC);
    e.mr = qrdma_reg_mr(e.pd, NET_IOVA_1, MR_SIZE, NET_ACCESS_ALL);
    return e;
}

static void end_destroy(NetEnd *e)
{
    assert_ok(qrdma_destroy_qp(e->qp));
    assert_ok(qrdma_destroy_cq(e->scq));
    assert_ok(qrdma_destroy_cq(e->rcq));
    assert_ok(qrdma_dereg_mr(e->mr));
    assert_ok(qrdma_dealloc_pd(e->pd));
}

/* A message, a WRITE and a READ; a receive is left when the QPs go. */
static void connect_once(Net *net)
{
    NetEnd a = end_new(net->dev[0]);
    NetEnd b = end_new(net->dev[1]);
    RdmaSge sge = net_sge(&a, 0, 2000);
    RdmaSendWr send = net_wr(RDMA_WR_SEND, 1, &sge);
    RdmaSendWr write = net_rdma_wr(RDMA_WR_RDMA_WRITE, 2, &sge, &b, 4000);
    RdmaSendWr read = net_rdma_wr(RDMA_WR_RDMA_READ, 3, &sge, &b, 4000);
    RdmaWc wc;

    qrdma_connect(a.qp, b.qp, NULL);
    net_post_recv(&b, 1, 0, 2000);
    net_post_recv(&b, 2, 0, 2000);
    qrdma_post_send(a.qp, &send);
    qrdma_post_send(a.qp, &write);
    qrdma_post_send(a.qp, &read);
    for (int i = 1; i <= 3; i++) {
        qrdma_expect(a.scq, i, RDMA_WC_SUCCESS);
    }
    qrdma_expect_wc(b.rcq, 1, RDMA_WC_RECV, &wc);
    end_destroy(&a);
    end_destroy(&b);
}

static void test_connections_leave_nothing(NetKind kind)
{
    Net *net = net_new(kind, "");
    size_t before[2] = {};

    for (int round = 0; round < WARM_UP + ROUNDS; round++) {
        NetPair p = net_pair_new(net, RDMA_QPT_RC);

        for (int i = 0; i < AT_ONCE; i++) {
            connect_once(p.net);
        }
        for (int i = 0; i < 2 && round == WARM_UP - 1; i++) {
            before[i] = heap_size(net->host[i]->qts);
        }
    }
    for (int i = 0; i < 2; i++) {
        size_t after = heap_size(net->host[i]->qts);

        g_test_message("heap of QEMU: %zu, was %zu", after, before[i]);
        g_assert_cmpuint(after, <, before[i] + NOISE);
    }
    net_free(net);
}

void add_net_life_tests(void)
{
    net_add_test_of_one_host("life/connections-leave-nothing",
                             test_connections_leave_nothing);
}
