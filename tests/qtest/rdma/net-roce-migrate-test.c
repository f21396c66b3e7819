/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of virtio-net-roce: both devices of a pair move to another QEMU,
 * with work in progress.
 */
#include "qemu/osdep.h"
#include "move.h"
#include "net-roce-test.h"

#define LEN 3000

static void move(const NrPair *p)
{
    g_autofree char *args = nr_host_args("");

    move_host(p->host, args);
}

/* WQEs that are in flight and that wait, and an armed CQ, go along. */
static void test_live(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);
    NetRoceReqNotifyCq arm = { p.b.rcq.cqn, NET_ROCE_NOTIFY_NEXT };

    for (int i = 0; i < 40; i++) {
        assert_ack(qroce_call_void(p.b.dev, REQ_NOTIFY_CQ, &arm));
        nr_fill(&p.a, 0, LEN, i);
        nr_post(&p.a, RDMA_WR_SEND, i, LEN, NULL);
        if (i % 10 == 0) {
            move(&p);
        }
        qroce_interrupted(p.b.dev);
        nr_recv(&p.b, 100 + i, LEN, LEN);
        nr_expect_later(&p.b, &p.b.rcq, 100 + i, NET_ROCE_WC_RECV);
        g_assert_true(qroce_interrupted(p.b.dev));
        nr_expect_later(&p.a, &p.a.scq, i, NET_ROCE_WC_SEND);
        nr_assert_filled(&p.b, LEN, LEN, i);
    }
    /* Receives that wait in their ring */
    nr_recv(&p.a, 7, LEN, LEN);
    move(&p);
    nr_fill(&p.b, 0, LEN, 99);
    nr_post(&p.b, RDMA_WR_SEND, 8, LEN, NULL);
    nr_expect_later(&p.a, &p.a.rcq, 7, NET_ROCE_WC_RECV);
    nr_expect_later(&p.b, &p.b.scq, 8, NET_ROCE_WC_SEND);
    nr_assert_filled(&p.a, LEN, LEN, 99);
    assert_ack(qroce_destroy_qp(p.a.dev, &p.a.qp));
    assert_ack(qroce_id_cmd(p.a.dev, NET_ROCE_CMD_DEREG_MR, p.a.mr.nums.mrn));
    assert_ack(qroce_id_cmd(p.a.dev, NET_ROCE_CMD_DESTROY_PD, p.a.pdn));
}

/* Address handles go along, and keep their PD. */
static void test_handles(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_UD);
    NrPeer peer = nr_peer(&p.b);
    NetRoceAv av = nr_av(&peer);
    uint32_t gone = qroce_create_ah(p.a.dev, p.a.pdn, &av);
    uint32_t ah = qroce_create_ah(p.a.dev, p.a.pdn, &av);
    NetRoceSendWqe wqe = nr_ud_wqe(1, peer.qpn, ah);
    NetRoceSge sge = nr_sge(&p.a, 0, 8);

    assert_ack(qroce_destroy_ah(p.a.dev, p.a.pdn, gone));
    move(&p);
    nr_recv(&p.b, 2, 0, 100);
    qroce_post_send(p.a.dev, &p.a.qp, &wqe, &sge, 1);
    nr_expect_later(&p.a, &p.a.scq, 1, NET_ROCE_WC_SEND);
    nr_expect_later(&p.b, &p.b.rcq, 2, NET_ROCE_WC_RECV);
    assert_ack(qroce_destroy_qp(p.a.dev, &p.a.qp));
    assert_ack(qroce_id_cmd(p.a.dev, NET_ROCE_CMD_DEREG_MR, p.a.mr.nums.mrn));
    assert_refused(qroce_id_cmd(p.a.dev, NET_ROCE_CMD_DESTROY_PD, p.a.pdn));
    assert_refused(qroce_destroy_ah(p.a.dev, p.a.pdn, gone));
    assert_ack(qroce_destroy_ah(p.a.dev, p.a.pdn, ah));
    assert_ack(qroce_id_cmd(p.a.dev, NET_ROCE_CMD_DESTROY_PD, p.a.pdn));
}

/*
 * Virtqueues whose objects are gone, and whose available index the driver has
 * not set to 0 yet
 */
static void test_destroyed(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);
    QRoceRing *const rings[] = { p.a.qp.sq, p.a.scq.ring };

    for (int i = 0; i < p.a.qp.sq->pci.vq.size + 10; i++) {
        nr_post(&p.a, RDMA_WR_RDMA_WRITE, i, 8, &p.b.mr);
        nr_expect_wc(&p.a, &p.a.scq, i, NET_ROCE_WC_RDMA_WRITE);
    }
    assert_ack(qroce_id_cmd(p.a.dev, NET_ROCE_CMD_DESTROY_QP, p.a.qp.qpn));
    assert_ack(qroce_id_cmd(p.a.dev, NET_ROCE_CMD_DESTROY_CQ, p.a.scq.cqn));
    assert_ack(qroce_destroy_qp(p.b.dev, &p.b.qp));
    move(&p);
    for (size_t i = 0; i < ARRAY_SIZE(rings); i++) {
        qroce_ring_restart(p.a.dev, rings[i]);
    }
    p.a.scq = qroce_create_cq(p.a.dev, 32);
    nr_new_qp(&p.a);
    nr_new_qp(&p.b);
    nr_connect(&p.a, &p.b);
    nr_fill(&p.a, 0, LEN, 1);
    nr_recv(&p.b, 2, LEN, LEN);
    nr_post(&p.a, RDMA_WR_SEND, 1, LEN, NULL);
    nr_expect_later(&p.b, &p.b.rcq, 2, NET_ROCE_WC_RECV);
    nr_expect_later(&p.a, &p.a.scq, 1, NET_ROCE_WC_SEND);
    nr_assert_filled(&p.b, LEN, LEN, 1);
}

/* The link goes down after the guest has stopped, on both hosts. */
static void test_link_down_while_stopped(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);
    g_autofree char *args = nr_host_args("");
    QVirtioDevice *vdev = &p.a.dev->pci->vdev;

    /* Clear the interrupt status. */
    vdev->bus->get_queue_isr_status(
        vdev, &p.a.dev->rings[NET_ROCE_CTRL_VQ].pci.vq);
    qtest_qmp_assert_success(p.host->qts, "{'execute': 'stop'}");
    qtest_qmp_assert_success(p.host->qts, "{'execute': 'set_link', "
                             "'arguments': {'name': 'n0', 'up': false}}");
    move_host_unplugged(p.host, args, "n0");
    vdev->bus->wait_config_isr_status(vdev, qrdma_patience());
    g_assert_cmpint(qroce_config(p.a.dev).status, ==, 0);
}

/* A destination that differs is named. */
static void test_refuse(void)
{
    static const char *const cases[][2] = {
        { ",max-cq=7", "this device has 7" },
        { ",max-qp=9", "this device has 9" },
        { ",queue-size=128", "max-qp-wr" },
        { ",host_mtu=9000", "the source has host_mtu=" },
        { ",mac=52:54:00:12:34:77", "the source has mac=" },
    };
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);
    Move m = move_save(p.host);

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_autofree char *args = nr_host_args(cases[i][0]);

        move_expect_refused(&m, args, cases[i][1]);
    }
    move_end(&m);
}

static void test_spoilt(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_UD);
    /* One handle, after their number, with a path that nothing else has */
    NetRoceAv av = { .dgid = "\xa1\xa2\xa3\xa4" };
    const uint32_t pdn = p.a.pdn;
    const MoveSpoilt cases[] = {
        { { 1, pdn, 0xa1a2a3a4 }, 3, 0, 1025,
          "more address handles than the device has" },
        { { 1, pdn, 0xa1a2a3a4 }, 3, 0, UINT32_MAX,
          "more address handles than the device has" },
        { { 1, pdn, 0xa1a2a3a4 }, 3, 1, pdn + 1,
          "which must be a PD" },
        { { 1, pdn, 0xa1a2a3a4 }, 3, 1, UINT32_MAX,
          "which must be a PD" },
    };
    g_autofree char *args = nr_host_args("");

    qroce_create_ah(p.a.dev, pdn, &av);
    move_refuse_spoilt(p.host, args, cases, ARRAY_SIZE(cases));
}

/* From 11.1 on, QEMU itself refuses sizes above the device's. */
static void test_spoilt_ring_sizes(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_UD);
    g_autofree char *args = nr_host_args("");
    const QVirtQueue *vq = &p.a.dev->rings[NET_ROCE_CTRL_VQ].pci.vq;
    const MoveSpoilt cases[] = {
        { { vq->size, 0, vq->desc }, 3, 0, 0, "has size=0, which" },
        { { vq->size, 0, vq->desc }, 3, 0, 1025, "1025" },
        { { vq->size, 0, vq->desc }, 3, 0, UINT32_MAX,
          "4294967295" },
    };

    move_refuse_spoilt(p.host, args, cases, ARRAY_SIZE(cases));
}

const QRdmaTest net_roce_migrate_tests[] = {
    { "live", test_live },
    { "handles", test_handles },
    { "destroyed", test_destroyed },
    { "link-down-while-stopped", test_link_down_while_stopped },
    { "spoilt-ring-sizes", test_spoilt_ring_sizes },
    { "refuse", test_refuse },
    { "spoilt", test_spoilt },
    { }
};
