/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On each guest interface: datagrams. */
#include "qemu/osdep.h"
#include "iface-test.h"

#define GRH_LEN 40
#define LEN 200

static void send_to(IfacePair *p, uint64_t wr_id, uint32_t len, uint32_t qkey)
{
    RdmaSge sge = iface_sge(&p->a, 0, len);
    RdmaSendWr wr = iface_wr(RDMA_WR_SEND, wr_id, &sge, NULL, 0);

    p->iface->address(&p->a, &p->b, &wr);
    wr.wr.ud.remote_qkey ^= qkey;
    iface_send(&p->a, wr);
    iface_expect_wc(&p->a, false, wr_id, RDMA_WC_SEND);
}

static void test_send(IfacePair *p)
{
    for (int i = 0; i < 40; i++) {
        RdmaWc wc;

        iface_fill(&p->a, 0, LEN + i, i);
        iface_recv(&p->b, 100 + i, 0, 1000);
        send_to(p, i, LEN + i, 0);
        wc = iface_expect_wc(&p->b, true, 100 + i, RDMA_WC_RECV);
        g_assert_cmpint(wc.byte_len, ==, GRH_LEN + LEN + i);
        g_assert_cmphex(wc.wc_flags & RDMA_WC_GRH, ==, RDMA_WC_GRH);
        iface_check(&p->b, GRH_LEN, LEN + i, i);
    }
}

/* A bad Q_Key, and a datagram without a receive: both are lost. */
static void test_lost(IfacePair *p)
{
    send_to(p, 1, LEN, 0);
    /* The datagram is to arrive before the next receive is there. */
    qrdma_host_settle(p->b.host);
    iface_recv(&p->b, 2, 0, 1000);
    send_to(p, 3, LEN, 1);
    iface_fill(&p->a, 0, LEN, 5);
    send_to(p, 4, LEN, 0);
    iface_expect_wc(&p->b, true, 2, RDMA_WC_RECV);
    iface_check(&p->b, GRH_LEN, LEN, 5);
    iface_expect_none(&p->b, true);
}

const IfaceTest iface_ud_tests[] = {
    { "ud/send", test_send, RDMA_QPT_UD },
    { "ud/lost", test_lost, RDMA_QPT_UD },
    { }
};
