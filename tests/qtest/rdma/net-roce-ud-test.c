/* SPDX-License-Identifier: GPL-2.0-or-later */
/* virtio-net-roce: datagrams and address handles. */
#include "qemu/osdep.h"
#include "net-roce-test.h"

#define GRH_LEN 40
#define LEN 200

static uint32_t ah_to(const NrEnd *e, const NrEnd *to)
{
    NrPeer peer = nr_peer(to);
    NetRoceAv av = nr_av(&peer);

    return qroce_create_ah(e->dev, e->pdn, &av);
}

static void post(NrEnd *e, const NetRoceSendWqe *wqe)
{
    NetRoceSge sge = nr_sge(e, 0, LEN);

    qroce_post_send(e->dev, &e->qp, wqe, &sge, 1);
}

static void expect_datagram(NrEnd *a, NrEnd *b, uint64_t wr_id)
{
    NetRoceCqe cqe = nr_expect_wc(b, &b->rcq, wr_id, NET_ROCE_WC_RECV);

    g_assert_cmpint(cqe.byte_len, ==, GRH_LEN + LEN);
    g_assert_cmpint(cqe.src_qp, ==, a->qp.qpn);
    g_assert_cmphex(cqe.wc_flags & RDMA_WC_GRH, ==, RDMA_WC_GRH);
    nr_assert_filled(b, GRH_LEN, LEN, wr_id);
}

/* UD, and the GSI, whose number is 1 */
static void test_send(const void *data)
{
    RdmaQpType type = GPOINTER_TO_UINT(data);
    g_auto(NrPair) p = nr_pair_new(type);
    NetRoceSendWqe wqe = nr_ud_wqe(0, p.b.qp.qpn, ah_to(&p.a, &p.b));

    if (type == RDMA_QPT_GSI) {
        g_assert_cmpint(p.a.qp.qpn, ==, RDMA_QPN_GSI);
        wqe.wr.ud.remote_qkey = RDMA_GSI_QKEY;
    }
    for (int i = 1; i < 100; i++) {
        wqe.wr_id = i;
        wqe.opcode = i % 2 ? RDMA_WR_SEND : RDMA_WR_SEND_WITH_IMM;
        wqe.imm_data[2] = i;
        nr_fill(&p.a, 0, LEN, 100 + i);
        nr_recv(&p.b, 100 + i, 0, 1000);
        post(&p.a, &wqe);
        expect_datagram(&p.a, &p.b, 100 + i);
        nr_expect_wc(&p.a, &p.a.scq, i, NET_ROCE_WC_SEND);
    }
}

/* There is one GSI, and no other QP ever has its number. */
static void test_numbers(void)
{
    g_autoptr(QRoce) d = nr_alone();
    NrEnd e = nr_end_new(d, RDMA_QPT_GSI);
    NetRoceCreateQp req = {
        .pdn = e.pdn, .qp_type = RDMA_QPT_GSI,
        .send_cqn = e.scq.cqn, .recv_cqn = e.rcq.cqn,
    };
    QRoceQp qp;
    unsigned n = 0;

    assert_refused(qroce_try_create_qp(d, &req, &qp));
    assert_ack(qroce_destroy_qp(d, &e.qp));
    req.qp_type = RDMA_QPT_UD;
    while (qroce_try_create_qp(d, &req, &qp) == NET_ROCE_ACK_OK) {
        g_assert_cmpint(qp.qpn, >, RDMA_QPN_GSI);
        g_assert_cmpint(qp.qpn, <, NR_MAX_QP);
        n++;
    }
    g_assert_cmpint(n, ==, NR_MAX_QP - 2);
    req.qp_type = RDMA_QPT_GSI;
    assert_ack(qroce_try_create_qp(d, &req, &qp));
}

/*
 * A request whose address handle was destroyed before the device took the
 * request fails, and so does one with the handle of another PD, or with none.
 */
static void test_bad_handles(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_UD);
    NrPeer peer = nr_peer(&p.b);
    NetRoceAv av = nr_av(&peer);
    uint32_t gone = qroce_create_ah(p.a.dev, p.a.pdn, &av);
    uint32_t other_pd = qroce_create_pd(p.a.dev);
    uint32_t bad[] = {
        gone, qroce_create_ah(p.a.dev, other_pd, &av), 1000, 1024, UINT32_MAX,
    };

    assert_ack(qroce_destroy_ah(p.a.dev, p.a.pdn, gone));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        NetRoceSendWqe wqe = nr_ud_wqe(i, peer.qpn, bad[i]);

        post(&p.a, &wqe);
        nr_expect(&p.a, &p.a.scq, i, NET_ROCE_WC_LOC_QP_OP_ERR);
        /* SQE, or ERR: the driver goes on by way of RESET. */
        nr_modify_state(&p.a, RDMA_QPS_RESET);
        nr_end_start_ud(&p.a, NR_QKEY);
    }
}

/* Posted work that the device has taken goes out; the handle may be gone. */
static void test_destroy_with_work(void)
{
    g_auto(NrPair) p = nr_pair_new(RDMA_QPT_UD);

    for (int i = 1; i < 20; i++) {
        uint32_t ah = ah_to(&p.a, &p.b);
        NetRoceSendWqe wqe = nr_ud_wqe(i, p.b.qp.qpn, ah);

        nr_fill(&p.a, 0, LEN, 100 + i);
        nr_recv(&p.b, 100 + i, 0, 1000);
        post(&p.a, &wqe);
        assert_ack(qroce_destroy_ah(p.a.dev, p.a.pdn, ah));
        nr_expect_wc(&p.a, &p.a.scq, i, NET_ROCE_WC_SEND);
        expect_datagram(&p.a, &p.b, 100 + i);
        assert_refused(qroce_destroy_ah(p.a.dev, p.a.pdn, ah));
    }
}

/* As many as QUERY_DEVICE says; a PD with handles cannot be destroyed. */
static void test_limit(void)
{
    g_autoptr(QRoce) d = nr_alone();
    uint32_t pdn = qroce_create_pd(d), other = qroce_create_pd(d);
    NetRoceCreateAh req = { .pdn = pdn };
    NetRoceDevice device;
    NetRoceId rsp;

    assert_ack(qroce_cmd(d, NET_ROCE_CMD_QUERY_DEVICE, NULL, 0, &device,
                         sizeof(device)));
    for (uint32_t i = 0; i < device.max_ah; i++) {
        assert_ack(qroce_call(d, CREATE_AH, &req, &rsp));
        g_assert_cmpint(rsp.id, ==, i);
    }
    assert_refused(qroce_call(d, CREATE_AH, &req, &rsp));
    assert_refused(qroce_id_cmd(d, NET_ROCE_CMD_DESTROY_PD, pdn));
    assert_refused(qroce_destroy_ah(d, other, 3));
    assert_ack(qroce_destroy_ah(d, pdn, 3));
    assert_ack(qroce_call(d, CREATE_AH, &req, &rsp));
    g_assert_cmpint(rsp.id, ==, 3);
    for (uint32_t i = 0; i < device.max_ah; i++) {
        assert_ack(qroce_destroy_ah(d, pdn, i));
    }
    assert_ack(qroce_id_cmd(d, NET_ROCE_CMD_DESTROY_PD, pdn));
}

const QRdmaTest net_roce_ud_tests[] = {
    { "send", .run_case = test_send, .data = GUINT_TO_POINTER(RDMA_QPT_UD) },
    { "gsi", .run_case = test_send, .data = GUINT_TO_POINTER(RDMA_QPT_GSI) },
    { "numbers", test_numbers },
    { "bad-handles", test_bad_handles },
    { "destroy-with-work", test_destroy_with_work },
    { "limit", test_limit },
    { }
};
