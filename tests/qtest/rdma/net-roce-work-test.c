/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-net-roce: work requests, beside those of rdma-iface-test, and peers of
 * other kinds.
 */
#include "qemu/osdep.h"
#include "net-roce-test.h"
#include "wire.h"

#define LEN 3000

/* A peer that is a virtio-rdma device, in slot 6 of the same hub */
typedef struct Other {
    QRdma *d;
    QRdmaPd *pd;
    QRdmaCq *cq;
    QRdmaMr *mr;
    QRdmaQp *qp;
} Other;

static Other other_new(QRdmaHost *host, RdmaQpType type)
{
    Other o = { .d = qrdma_open(host, QPCI_DEVFN(6, 0)) };

    qrdma_start(o.d, 0, 0);
    qrdma_setup_gids(o.d, 3);
    o.pd = qrdma_alloc_pd(o.d);
    o.cq = qrdma_create_cq(o.d, 32);
    o.mr = qrdma_reg_mr(o.pd, 0x10000, 65536,
                        RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE);
    o.qp = qrdma_create_qp(o.pd, o.cq, o.cq, type);
    return o;
}

static NrPeer peer_of(const Other *o)
{
    NrPeer peer = { .qpn = o->qp->qpn };

    memcpy(peer.mac, o->d->mac, sizeof(peer.mac));
    memcpy(peer.gid, o->d->gid[1], sizeof(peer.gid));
    return peer;
}

static void connect_other(Other *o, const NrPeer *peer)
{
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_RTR,
        .path_mtu = RDMA_MTU_1024,
        .dest_qp_num = peer->qpn,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .ah_attr = qrdma_av(o->d, 1),
    };

    memcpy(attr.ah_attr.dgid, peer->gid, sizeof(peer->gid));
    memcpy(attr.ah_attr.dmac, peer->mac, sizeof(peer->mac));
    assert_ok(qrdma_modify_init(o->qp, RDMA_ACCESS_REMOTE));
    assert_ok(qrdma_modify_qp(o->qp, RDMA_QP_STATE | RDMA_QP_AV |
                              RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                              RDMA_QP_RQ_PSN | RDMA_QP_MAX_DEST_RD_ATOMIC |
                              RDMA_QP_MIN_RNR_TIMER, &attr));
    assert_ok(qrdma_modify_rts(o->qp, &(QRdmaPath) {
        .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
    }, 0));
}

static QRdmaHost *host_with_other(void)
{
    return nr_host_start("-netdev hubport,id=n2,hubid=0 -device "
                         "virtio-rdma-pci,netdev=n2,addr=6,id=d2,"
                         "mac=52:54:00:12:34:03");
}

/* RC with a virtio-rdma device: SEND, WRITE and READ in both directions */
static void test_other_rc(void)
{
    g_autoptr(QRdmaHost) host = host_with_other();
    NrEnd e = nr_end_new(nr_start(host, 4), RDMA_QPT_RC);
    Other o = other_new(host, RDMA_QPT_RC);
    NrPeer of_e = nr_peer(&e), of_o = peer_of(&o);
    QRoceMr remote = {
        .iova = o.mr->iova,
        .nums.rkey = o.mr->rkey,
    };
    QRdmaMr back = { .iova = e.mr.iova, .rkey = e.mr.nums.rkey };
    RdmaSge sge = qrdma_sge(o.mr, 0, LEN);

    nr_end_init(&e);
    nr_end_connect(&e, &of_o);
    connect_other(&o, &of_e);
    for (int i = 0; i < 40; i++) {
        nr_fill(&e, 0, LEN, i);
        qrdma_recv(o.qp, 100 + i, &(RdmaSge) { o.mr->iova, LEN, o.mr->lkey });
        nr_post(&e, RDMA_WR_SEND, i, LEN, NULL);
        qrdma_expect_wc(o.cq, 100 + i, RDMA_WC_RECV, NULL);
        nr_expect_wc(&e, &e.scq, i, NET_ROCE_WC_SEND);
        /* The peer sends the same bytes back. */
        nr_recv(&e, 200 + i, LEN, LEN);
        qrdma_post(o.qp, qrdma_wr(RDMA_WR_SEND, 7, &sge));
        nr_expect_wc(&e, &e.rcq, 200 + i, NET_ROCE_WC_RECV);
        nr_assert_filled(&e, LEN, LEN, i);
        qrdma_expect_wc(o.cq, 7, RDMA_WC_SEND, NULL);
        nr_fill(&e, 0, LEN, 50 + i);
        nr_post(&e, RDMA_WR_RDMA_WRITE, i, LEN, &remote);
        nr_expect_wc(&e, &e.scq, i, NET_ROCE_WC_RDMA_WRITE);
        nr_fill(&e, 0, LEN, 0);
        nr_post(&e, RDMA_WR_RDMA_READ, i, LEN, &remote);
        nr_expect_wc(&e, &e.scq, i, NET_ROCE_WC_RDMA_READ);
        nr_assert_filled(&e, 0, LEN, 50 + i);
        qrdma_post(o.qp, qrdma_rdma_wr(RDMA_WR_RDMA_WRITE, 8, &sge, &back,
                                       8192));
        qrdma_expect_wc(o.cq, 8, RDMA_WC_RDMA_WRITE, NULL);
        nr_assert_filled(&e, 8192, LEN, 50 + i);
    }
    qroce_close(e.dev);
}

static void test_other_ud(void)
{
    g_autoptr(QRdmaHost) host = host_with_other();
    NrEnd e = nr_end_new(nr_start(host, 4), RDMA_QPT_UD);
    Other o = other_new(host, RDMA_QPT_UD);
    NrPeer of_e = nr_peer(&e), of_o = peer_of(&o);
    NetRoceAv av = nr_av(&of_o);
    NetRoceSendWqe wqe = nr_ud_wqe(1, of_o.qpn,
                                   qroce_create_ah(e.dev, e.pdn, &av));
    NetRoceSge sge = nr_sge(&e, 0, 500);
    RdmaSge theirs = qrdma_sge(o.mr, 0, 1000);
    RdmaSendWr wr = qrdma_wr(RDMA_WR_SEND, 3, &theirs);

    nr_end_start_ud(&e, NR_QKEY);
    qrdma_start_ud(o.qp, NR_QKEY);
    qrdma_recv(o.qp, 2, &theirs);
    nr_fill(&e, 0, 500, 9);
    qroce_post_send(e.dev, &e.qp, &wqe, &sge, 1);
    nr_expect_wc(&e, &e.scq, 1, NET_ROCE_WC_SEND);
    qrdma_expect_wc(o.cq, 2, RDMA_WC_RECV, NULL);
    /* With the GRH it goes back. */
    theirs.length = 540;
    wr.wr.ud.remote_qpn = of_e.qpn;
    wr.wr.ud.remote_qkey = NR_QKEY;
    wr.wr.ud.av = qrdma_av(o.d, 1);
    memcpy(wr.wr.ud.av.dgid, of_e.gid, sizeof(of_e.gid));
    memcpy(wr.wr.ud.av.dmac, of_e.mac, sizeof(of_e.mac));
    nr_recv(&e, 4, 2000, 1000);
    qrdma_post_send(o.qp, &wr);
    nr_expect_wc(&e, &e.rcq, 4, NET_ROCE_WC_RECV);
    nr_assert_filled(&e, 2080, 500, 9);
    qroce_close(e.dev);
}

/* A QP that is connected with itself */
static void test_self(void)
{
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_RC);

    nr_connect(&e, &e);
    for (int i = 0; i < 40; i++) {
        nr_send_one(&e, &e, i);
    }
}

/* Loss, duplication, reordering and corruption: data is intact. */
static void test_loss(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    qtest_qmp_assert_success(p.host->qts, "{'execute': 'object-add', "
        "'arguments': {'qom-type': 'filter-impair', 'id': 'lossy', "
        "'netdev': 'n0', 'drop': 150, 'dup': 100, 'reorder': 100, "
        "'corrupt': 100, 'seed': 7}}");
    for (int i = 0; i < 12; i++) {
        nr_fill(&p.a, 0, 20000, i);
        nr_recv(&p.b, 100 + i, 0, 20000);
        nr_post(&p.a, RDMA_WR_SEND, 1, 20000, NULL);
        nr_expect_later(&p.a, &p.a.scq, 1, NET_ROCE_WC_SEND);
        nr_expect_wc(&p.b, &p.b.rcq, 100 + i, NET_ROCE_WC_RECV);
        nr_assert_filled(&p.b, 0, 20000, i);
        nr_fill(&p.b, 0, 20000, 50 + i);
        nr_post(&p.a, RDMA_WR_RDMA_READ, 2, 20000, &p.b.mr);
        nr_expect_later(&p.a, &p.a.scq, 2, NET_ROCE_WC_RDMA_READ);
        nr_assert_filled(&p.a, 0, 20000, 50 + i);
    }
}

/* Inline data of SEND, and of WRITE, which the text leaves open */
static void test_inline(void)
{
    static const uint16_t lengths[] = { 0, 1, 511, 512 };
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    for (size_t i = 0; i < 2 * ARRAY_SIZE(lengths); i++) {
        uint16_t len = lengths[i / 2];
        bool write = i % 2;
        NetRoceSendWqe wqe = {
            .wr_id = i,
            .opcode = write ? RDMA_WR_RDMA_WRITE : RDMA_WR_SEND,
            .send_flags = RDMA_SEND_SIGNALED | RDMA_SEND_INLINE,
            /* The upper half of the field has no meaning. */
            .n.num_sge = 0xabcd0000u | len,
        };

        for (int j = 0; j < len; j++) {
            wqe.inline_data[j] = i + j;
        }
        if (write) {
            wqe.wr.rdma.remote_addr = p.b.mr.iova;
            wqe.wr.rdma.rkey = p.b.mr.nums.rkey;
        } else {
            nr_recv(&p.b, i, 0, 1000);
        }
        qroce_post_send(p.a.dev, &p.a.qp, &wqe, NULL, 0);
        nr_expect_wc(&p.a, &p.a.scq, i, write ? NET_ROCE_WC_RDMA_WRITE
                                              : NET_ROCE_WC_SEND);
        if (!write) {
            nr_expect_wc(&p.b, &p.b.rcq, i, NET_ROCE_WC_RECV);
        }
        nr_assert_filled(&p.b, 0, len, i);
    }
}

/*
 * The authors' driver writes 0xff for any combination of flags: the request is
 * signaled, and has inline data only if it has no SGEs.
 */
static void test_combined_flags(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);
    NetRoceSge sge = nr_sge(&p.a, 0, LEN);
    NetRoceSendWqe wqe = {
        .wr_id = 1,
        .opcode = RDMA_WR_SEND,
        .send_flags = NET_ROCE_SEND_COMBINED,
        .n.num_sge = 1,
    };

    nr_fill(&p.a, 0, LEN, 3);
    nr_recv(&p.b, 2, 0, LEN);
    qroce_post_send(p.a.dev, &p.a.qp, &wqe, &sge, 1);
    nr_expect_wc(&p.a, &p.a.scq, 1, NET_ROCE_WC_SEND);
    nr_expect_wc(&p.b, &p.b.rcq, 2, NET_ROCE_WC_RECV);
    nr_assert_filled(&p.b, 0, LEN, 3);
    wqe.n.num_sge = 2;
    wqe.inline_data[0] = 0x77;
    wqe.inline_data[1] = 0x78;
    nr_recv(&p.b, 3, 0, LEN);
    qroce_post_send(p.a.dev, &p.a.qp, &wqe, NULL, 0);
    nr_expect_wc(&p.a, &p.a.scq, 1, NET_ROCE_WC_SEND);
    g_assert_cmpint(nr_expect_wc(&p.b, &p.b.rcq, 3,
                                 NET_ROCE_WC_RECV).byte_len, ==, 2);
    nr_assert_filled(&p.b, 0, 2, 0x77);
}

static void req_notify(NrEnd *e, const QRoceCq *cq, uint32_t flags)
{
    NetRoceReqNotifyCq req = { cq->cqn, flags };

    assert_ack(qroce_call_void(e->dev, REQ_NOTIFY_CQ, &req));
}

/* The driver is interrupted by a completion only if it has armed the CQ. */
static void test_notify(void)
{
    static const struct {
        uint32_t arm;
        uint8_t flags;
        bool interrupts;
    } cases[] = {
        { 0, RDMA_SEND_SOLICITED, false },
        { NET_ROCE_NOTIFY_NEXT, 0, true },
        { 0, RDMA_SEND_SOLICITED, false },
        { NET_ROCE_NOTIFY_SOLICITED, 0, false },
        /* still armed */
        { 0, RDMA_SEND_SOLICITED, true },
        { NET_ROCE_NOTIFY_SOLICITED, RDMA_SEND_SOLICITED, true },
        { NET_ROCE_NOTIFY_SOLICITED | NET_ROCE_NOTIFY_NEXT, 0, true },
    };
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        NetRoceSge sge = nr_sge(&p.a, 0, 8);
        NetRoceSendWqe wqe = {
            .opcode = RDMA_WR_SEND,
            .send_flags = cases[i].flags,
            .n.num_sge = 1,
        };

        if (cases[i].arm) {
            req_notify(&p.b, &p.b.rcq, cases[i].arm);
        }
        nr_recv(&p.b, i, 0, 8);
        qroce_interrupted(p.b.dev);
        /* Its used buffers must not interrupt the driver here. */
        qtest_writew(p.host->qts, p.b.qp.rq->pci.vq.avail, 1);
        qroce_post_send(p.a.dev, &p.a.qp, &wqe, &sge, 1);
        nr_expect_wc(&p.b, &p.b.rcq, i, NET_ROCE_WC_RECV);
        g_assert_cmpint(qroce_interrupted(p.b.dev), ==, cases[i].interrupts);
    }
}

/* Without a buffer for a completion the CQ fails, and with it its QPs. */
static void test_cq_overrun(const void *data)
{
    bool small = data;
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    p.b.rcq = qroce_create_cq(p.b.dev, 1);
    assert_ack(qroce_destroy_qp(p.b.dev, &p.b.qp));
    nr_new_qp(&p.b);
    nr_modify_state(&p.a, RDMA_QPS_RESET);
    nr_connect(&p.a, &p.b);
    p.b.rcq.no_refill = true;
    nr_send_one(&p.a, &p.b, 1);
    if (small) {
        qroce_post(p.b.dev, p.b.rcq.ring, NULL, sizeof(NetRoceCqe) - 1, true);
    }
    nr_recv(&p.b, 2, 0, 8);
    nr_post(&p.a, RDMA_WR_SEND, 3, 8, NULL);
    qrdma_wait_until(p.b.dev, qroce_query_qp(p.b.dev, p.b.qp.qpn).qp_state ==
                     RDMA_QPS_ERR);
}

/* DESTROY_QP discards what is posted, and the rings begin at 0 again. */
static void test_destroy_with_work(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    for (int lap = 0; lap < 3; lap++) {
        for (int i = 0; i < 10; i++) {
            nr_recv(&p.a, i, 0, 8);
            nr_post(&p.a, RDMA_WR_SEND, i, 8, NULL);
        }
        /* The peer has no receive, so all of them wait. */
        assert_ack(qroce_destroy_qp(p.a.dev, &p.a.qp));
        assert_ack(qroce_destroy_qp(p.b.dev, &p.b.qp));
        assert_refused(qroce_destroy_qp(p.b.dev, &p.b.qp));
        nr_new_qp(&p.a);
        nr_new_qp(&p.b);
        nr_connect(&p.a, &p.b);
        nr_send_one(&p.a, &p.b, lap);
    }
}

/* CQs, with completions that the driver has not taken */
static void test_destroy_cq(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    for (int lap = 0; lap < 2 * NR_MAX_CQ; lap++) {
        assert_refused(qroce_destroy_cq(p.a.dev, &p.a.scq));
        nr_post(&p.a, RDMA_WR_RDMA_WRITE, 1, 8, &p.b.mr);
        qrdma_wait_until(p.a.dev, qroce_in_device(p.a.dev, p.a.qp.sq) == 0);
        assert_ack(qroce_destroy_qp(p.a.dev, &p.a.qp));
        assert_ack(qroce_destroy_cq(p.a.dev, &p.a.scq));
        p.a.scq = qroce_create_cq(p.a.dev, NR_RING);
        nr_new_qp(&p.a);
        assert_ack(qroce_destroy_qp(p.b.dev, &p.b.qp));
        nr_new_qp(&p.b);
        nr_connect(&p.a, &p.b);
        nr_send_one(&p.a, &p.b, lap);
    }
}

/* A RESET of the device, with work in progress */
static void test_reset(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    for (int lap = 0; lap < 3; lap++) {
        nr_recv(&p.a, 1, 0, 8);
        nr_post(&p.a, RDMA_WR_SEND, 1, 8, NULL);
        qvirtio_reset(&p.a.dev->pci->vdev);
        qroce_close(p.a.dev);
        p.a.dev = nr_start(p.host, 4);
        p.a = nr_end_new(p.a.dev, RDMA_QPT_RC);
        nr_modify_state(&p.b, RDMA_QPS_RESET);
        nr_connect(&p.a, &p.b);
        nr_send_one(&p.a, &p.b, lap);
    }
}

/* Unplug, with work in progress */
static void test_unplug(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_RC);

    nr_recv(&p.a, 1, 0, 8);
    nr_post(&p.a, RDMA_WR_SEND, 1, 8, NULL);
    qtest_qmp_assert_success(p.host->qts, "{'execute': 'device_del', "
                             "'arguments': {'id': 'd0'}}");
    /* The PIIX4's register that ejects slots */
    qtest_outl(p.host->qts, 0xae08, 1u << 4);
    qtest_qmp_eventwait(p.host->qts, "DEVICE_DELETED");
    nr_post(&p.b, RDMA_WR_SEND, 1, 8, NULL);
    qrdma_host_settle(p.host);
}

const QRdmaTest net_roce_work_tests[] = {
    { "other-rc", test_other_rc },
    { "other-ud", test_other_ud },
    { "self", test_self },
    { "loss", test_loss },
    { "inline", test_inline },
    { "combined-flags", test_combined_flags },
    { "notify", test_notify },
    { "cq-overrun", .run_case = test_cq_overrun },
    { "cq-small-buffer", .run_case = test_cq_overrun,
      .data = GUINT_TO_POINTER(1) },
    { "destroy-with-work", test_destroy_with_work },
    { "destroy-cq", test_destroy_cq },
    { "reset", test_reset },
    { "unplug", test_unplug },
    { }
};
