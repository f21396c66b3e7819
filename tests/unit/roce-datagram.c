/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The unreliable services: UD, GSI and UC.
 */
#include <string.h>
#include "roce-link.h"

#define GRH 40

static LinkQpSpec ud_spec(bool ipv6)
{
    LinkQpSpec spec = link_spec();

    spec.type = RDMA_QPT_UD;
    spec.ipv6 = ipv6;
    return spec;
}

static RdmaSendWr ud_wr(LinkPair *p, uint32_t opcode, uint64_t wr_id,
                        const RdmaSge *sge, bool ipv6)
{
    RdmaSendWr wr = link_wr(opcode, wr_id, sge);

    wr.wr.ud.remote_qpn = p->bq;
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(p->a, p->b, ipv6);
    wr.wr.ud.av.traffic_class = 0x20;
    return wr;
}

static void check_grh(LinkPair *p, bool ipv6, uint32_t len)
{
    static const uint8_t zero[20];
    uint8_t grh[GRH];

    link_read(p->bmr, 0, grh, GRH);
    if (ipv6) {
        g_assert_cmphex(grh[0] >> 4, ==, 6);
        g_assert_cmphex(grh[6], ==, 17);
        g_assert_cmpmem(grh + 8, 16, p->a->gid6, 16);
        g_assert_cmpmem(grh + 24, 16, p->b->gid6, 16);
    } else {
        g_assert_cmpmem(grh, 20, zero, 20);
        g_assert_cmphex(grh[20], ==, 0x45);
        g_assert_cmphex(grh[21], ==, 0x20);
        g_assert_cmphex(grh[29], ==, 17);
        g_assert_cmpmem(grh + 32, 4, p->a->gid4 + 12, 4);
        g_assert_cmpmem(grh + 36, 4, p->b->gid4 + 12, 4);
    }
}

static void test_ud_sizes(gconstpointer data)
{
    static const uint32_t sizes[] = { 0, 1, 255, 1024, 4095, 4096 };
    bool ipv6 = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = ud_spec(ipv6);
    LinkPair p = link_pair(&spec);
    unsigned i, imm;

    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (imm = 0; imm < 2; imm++) {
            RdmaSge sge = link_sge(p.amr, 100, sizes[i]);
            RdmaSendWr wr = ud_wr(&p, imm ? RDMA_WR_SEND_WITH_IMM
                                          : RDMA_WR_SEND, i, &sge, ipv6);
            LinkWc entry;

            memcpy(wr.ex.imm_data, "data", 4);
            wr.send_flags |= imm ? RDMA_SEND_SOLICITED : 0;
            link_fill(p.amr, i);
            link_pair_recv(&p, 50, 0, sizes[i] + GRH);
            link_post(p.a, p.aq, &wr);
            g_assert_true(link_run(p.l, LINK_FOREVER));

            g_assert_cmpint(link_expect(p.a, i, RDMA_WC_SUCCESS).opcode, ==,
                            RDMA_WC_SEND);
            entry = link_wc(p.b);
            g_assert_cmpuint(entry.wc.wr_id, ==, 50);
            g_assert_cmpint(entry.wc.status, ==, RDMA_WC_SUCCESS);
            g_assert_cmpint(entry.wc.opcode, ==, RDMA_WC_RECV);
            g_assert_cmpuint(entry.wc.byte_len, ==, sizes[i] + GRH);
            g_assert_cmpuint(entry.wc.src_qp, ==, p.aq);
            g_assert_cmpuint(entry.wc.pkey_index, ==, 0);
            g_assert_cmpuint(entry.wc.wc_flags, ==,
                             RDMA_WC_GRH | RDMA_WC_WITH_SMAC |
                             RDMA_WC_WITH_HDR_TYPE |
                             (imm ? RDMA_WC_WITH_IMM : 0));
            g_assert_cmpmem(entry.wc.smac, 6, p.a->mac, 6);
            g_assert_cmpuint(entry.wc.hdr_type, ==,
                             ipv6 ? RDMA_HDR_IPV6 : RDMA_HDR_IPV4);
            g_assert_cmpuint(entry.wc.sl, ==, 0);
            g_assert_cmpint(entry.solicited, ==, imm);
            if (imm) {
                g_assert_cmpmem(entry.wc.ex.imm_data, 4, "data", 4);
            }
            check_grh(&p, ipv6, sizes[i]);
            g_assert_true(link_same(p.amr, 100, p.bmr, GRH, sizes[i]));
        }
    }
    link_pair_free(&p);
}

static void test_ud_longer_than_mtu(void)
{
    LinkQpSpec spec = ud_spec(false);
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, 1025);
    RdmaSendWr wr = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);

    link_set_mtu(p.a, 1500);
    link_pair_recv(&p, 50, 0, 8192);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(p.l->sent[0], ==, 0);
    sge.length = 1024;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_ud_dropped_silently(void)
{
    LinkQpSpec spec = ud_spec(false);
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);

    /* No receive */
    link_post(p.a, p.aq, &wr);
    link_run(p.l, LINK_FOREVER);
    /* A receive that is too short, which stays in the queue */
    link_pair_recv(&p, 50, 0, 100 + GRH - 1);
    link_post(p.a, p.aq, &wr);
    link_run(p.l, LINK_FOREVER);
    /* A wrong Q_Key */
    wr.wr.ud.remote_qkey = 0x1235;
    sge.length = 50;
    link_post(p.a, p.aq, &wr);
    link_run(p.l, LINK_FOREVER);
    g_assert_cmpuint(roce_stats(p.b->e)->bad_qkey, ==, 1);
    /* A QP that does not exist, and a GID that no node has */
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.remote_qpn = 40;
    link_post(p.a, p.aq, &wr);
    wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
    link_post(p.a, p.aq, &wr);
    link_run(p.l, LINK_FOREVER);

    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 5);
    g_assert_cmpuint(link_wcs(p.a), ==, 5);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);

    wr.wr.ud.remote_qpn = p.bq;
    link_post(p.a, p.aq, &wr);
    link_run(p.l, LINK_FOREVER);
    g_assert_cmpuint(link_expect(p.b, 50, RDMA_WC_SUCCESS).byte_len, ==,
                     50 + GRH);
    link_pair_free(&p);
}

static void test_ud_controlled_qkey(void)
{
    LinkQpSpec spec = ud_spec(false);
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);

    wr.wr.ud.remote_qkey = 0x80001234;
    link_pair_recv(&p, 50, 0, 500);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

static void test_ud_send_error_goes_to_sqe(void)
{
    unsigned how;

    for (how = 0; how < 6; how++) {
        LinkQpSpec spec = ud_spec(false);
        LinkPair p = link_pair(&spec);
        RdmaSge sge = link_sge(p.amr, 0, 100);
        RdmaSendWr good = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);
        RdmaSendWr bad = ud_wr(&p, RDMA_WR_SEND, 2, &sge, false);
        RdmaSge bad_sge = sge;
        RdmaWcStatus status = RDMA_WC_LOC_QP_OP_ERR;
        RdmaSendWr back = link_wr(RDMA_WR_SEND, 9, NULL);

        switch (how) {
        case 0:
            bad_sge.lkey ^= 1;
            bad.sg_list = &bad_sge;
            status = RDMA_WC_LOC_PROT_ERR;
            break;
        case 1:
            bad.wr.ud.av.sgid_index = 5;
            break;
        case 2:
            bad.wr.ud.av.sgid_index = 1;
            break;
        case 3:
            bad.opcode = RDMA_WR_RDMA_WRITE;
            break;
        case 4:
            bad.wr.ud.remote_qpn = 0x1000000;
            break;
        case 5:
            bad.status = RDMA_WC_LOC_LEN_ERR;
            status = RDMA_WC_LOC_LEN_ERR;
            break;
        default:
            break;
        }
        link_pair_recv(&p, 50, 0, 500);
        link_post(p.a, p.aq, &good);
        link_post(p.a, p.aq, &bad);
        good.wr_id = 3;
        link_post(p.a, p.aq, &good);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        link_expect(p.a, 2, status);
        link_expect(p.a, 3, RDMA_WC_WR_FLUSH_ERR);
        link_expect(p.b, 50, RDMA_WC_SUCCESS);
        g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_SQE);

        /* In SQE the QP still receives, and flushes posted sends. */
        link_post_recv(p.a, p.aq, 60, link_sge(p.amr, 0, 500));
        back.wr.ud.remote_qpn = p.aq;
        back.wr.ud.remote_qkey = 0x1234;
        back.wr.ud.av = link_av(p.b, p.a, false);
        link_post(p.b, p.bq, &back);
        link_post(p.a, p.aq, &good);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.b, 9, RDMA_WC_SUCCESS);
        link_expect(p.a, 3, RDMA_WC_WR_FLUSH_ERR);
        link_expect(p.a, 60, RDMA_WC_SUCCESS);

        /* After the transition to RTS it sends again. */
        link_modify(p.a, p.aq, RDMA_QPS_RTS);
        link_pair_recv(&p, 51, 0, 500);
        link_post(p.a, p.aq, &good);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 3, RDMA_WC_SUCCESS);
        link_expect(p.b, 51, RDMA_WC_SUCCESS);
        link_pair_free(&p);
    }
}

static void test_ud_receive_error(void)
{
    LinkQpSpec spec = ud_spec(false);
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);
    RdmaSge bad = link_sge(p.bmr, 0, 500);

    bad.lkey ^= 1;
    link_post_recv(p.b, p.bq, 50, bad);
    link_pair_recv(&p, 51, 0, 500);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.b, 50, RDMA_WC_LOC_PROT_ERR);
    link_expect(p.b, 51, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    link_pair_free(&p);
}

/*
 * A program may reuse the buffer once the WQE completes, so the WQE must not
 * complete before the frame is sent.
 */
static void test_ud_completes_when_the_frame_is_out(void)
{
    LinkQpSpec spec = ud_spec(false);
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);
    RoceTxFrame *frame = g_new(RoceTxFrame, 1);

    link_post(p.a, p.aq, &wr);
    g_assert_true(roce_poll_tx(p.a->e, p.l->now, frame));
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    roce_tx_done(p.a->e, frame);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_free(frame);
    link_pair_free(&p);
}

static void test_gsi(void)
{
    LinkQpSpec spec = ud_spec(false);
    RdmaSendWr wr;
    RdmaSge sge;
    LinkPair p;

    spec.type = RDMA_QPT_GSI;
    spec.qpn[0] = spec.qpn[1] = RDMA_QPN_GSI;
    p = link_pair(&spec);
    sge = link_sge(p.amr, 0, 256);
    wr = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);
    wr.wr.ud.remote_qkey = RDMA_GSI_QKEY;
    link_fill(p.amr, 5);
    link_pair_recv(&p, 50, 0, 256 + GRH);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_expect(p.b, 50, RDMA_WC_SUCCESS).src_qp, ==, 1);
    g_assert_true(link_same(p.amr, 0, p.bmr, GRH, 256));

    /* The GSI refuses any other Q_Key. */
    wr.wr.ud.remote_qkey = 0x1234;
    link_pair_recv(&p, 50, 0, 256 + GRH);
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->bad_qkey, ==, 1);
    link_pair_free(&p);
}

/*
 * A work request cannot name a Q_Key with the highest bit, such as that of QP
 * 1: the QP's own Q_Key is sent instead (IBTA 10.2.5). Only a QP that the
 * kernel has given such a Q_Key can reach QP 1.
 */
static void test_qp_1_is_out_of_reach(void)
{
    LinkQpSpec spec = ud_spec(false);
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, 256);
    RdmaSendWr wr = ud_wr(&p, RDMA_WR_SEND, 1, &sge, false);
    LinkQpSpec gsi = spec;
    uint32_t qkeys[] = { RDMA_GSI_QKEY, 0x80000000, 0x1234, 0 };

    gsi.type = RDMA_QPT_GSI;
    gsi.qpn[0] = gsi.qpn[1] = RDMA_QPN_GSI;
    link_connect(p.l, &gsi);
    link_post_recv(p.b, RDMA_QPN_GSI, 50, link_sge(p.bmr, 0, 256 + GRH));
    wr.wr.ud.remote_qpn = RDMA_QPN_GSI;
    for (unsigned i = 0; i < G_N_ELEMENTS(qkeys); i++) {
        wr.wr.ud.remote_qkey = qkeys[i];
        link_post(p.a, p.aq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        g_assert_cmpuint(roce_stats(p.b->e)->bad_qkey, ==, i + 1);
    }
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    link_pair_free(&p);
}

/* UC */

static LinkPair uc_pair(void)
{
    LinkQpSpec spec = link_spec();

    spec.type = RDMA_QPT_UC;
    return link_pair(&spec);
}

static void test_uc_good_link(void)
{
    static const uint32_t sizes[] = { 0, 1, 1023, 1024, 1025, 3079, 65537 };
    LinkPair p = uc_pair();
    RdmaWc wc;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        uint32_t len = sizes[i];

        link_fill(p.amr, i);
        link_set(p.bmr, 0);
        link_pair_recv(&p, 50, 0, len);
        link_pair_recv(&p, 51, 0, 0);
        link_pair_post(&p, RDMA_WR_SEND_WITH_IMM, 1, 0, len);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        g_assert_true(link_same(p.amr, 0, p.bmr, 0, len));
        wc = link_expect(p.b, 50, RDMA_WC_SUCCESS);
        g_assert_cmpuint(wc.byte_len, ==, len);
        g_assert_cmpuint(wc.wc_flags, ==, RDMA_WC_WITH_IMM);

        link_fill(p.amr, 100 + i);
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, len);
        link_pair_post(&p, RDMA_WR_RDMA_WRITE_WITH_IMM, 3, 0, len);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        g_assert_true(link_same(p.amr, 0, p.bmr, 0, len));
        wc = link_expect(p.b, 51, RDMA_WC_SUCCESS);
        g_assert_cmpint(wc.opcode, ==, RDMA_WC_RECV_RDMA_WITH_IMM);
        g_assert_cmpuint(wc.byte_len, ==, len);
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        link_expect(p.a, 2, RDMA_WC_SUCCESS);
        link_expect(p.a, 3, RDMA_WC_SUCCESS);
    }
    /* UC sends no responses. */
    g_assert_cmpuint(p.l->sent[1], ==, 0);
    link_pair_free(&p);
}

static bool lose_nth(RoceLink *l, unsigned from, const uint8_t *frame,
                     size_t len, void *opaque)
{
    unsigned *nth = opaque;

    return --*nth;
}

static void test_uc_gap_drops_one_message(void)
{
    unsigned lost;

    /* Three messages of four packets each, of which one packet is lost */
    for (lost = 1; lost <= 12; lost++) {
        LinkPair p = uc_pair();
        unsigned nth = lost, i, got = 0;

        p.l->filter = lose_nth;
        p.l->filter_opaque = &nth;
        for (i = 0; i < 3; i++) {
            link_pair_recv(&p, 50 + i, 8192 * i, 4096);
        }
        link_fill(p.amr, lost);
        for (i = 0; i < 3; i++) {
            link_pair_post(&p, RDMA_WR_SEND, i, 8192 * i, 4000 + i);
        }
        g_assert_true(link_run(p.l, LINK_FOREVER));
        for (i = 0; i < 3; i++) {
            link_expect(p.a, i, RDMA_WC_SUCCESS);
            if (i == (lost - 1) / 4) {
                continue;
            }
            /* The buffer of the lost message receives the next one. */
            g_assert_cmpuint(link_expect(p.b, 50 + got, RDMA_WC_SUCCESS)
                             .byte_len, ==, 4000 + i);
            g_assert_true(link_same(p.amr, 8192 * i, p.bmr, 8192 * got,
                                    4000 + i));
            got++;
        }
        g_assert_cmpuint(link_wcs(p.b), ==, 0);
        link_pair_free(&p);
    }
}

static void test_uc_bad_requests_are_dropped(void)
{
    LinkPair p = uc_pair();
    RdmaSge sge = link_sge(p.amr, 0, 3000);
    RdmaSendWr wr = link_wr(RDMA_WR_RDMA_WRITE, 1, &sge);

    /* No buffer, a short buffer, a bad key */
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 3000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_pair_recv(&p, 50, 0, 2999);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 3000);
    wr.wr.rdma.remote_addr = p.bmr->attr.iova;
    wr.wr.rdma.rkey = p.bmr->attr.rkey ^ 1;
    link_post(p.a, p.aq, &wr);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    g_assert_cmpuint(p.b->events->len, ==, 0);

    /* The next message arrives. */
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 2999);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* A receive WQE with an error completes with it, and the QP moves to ERR. */
static void test_uc_bad_receive_goes_to_err(void)
{
    LinkPair p = uc_pair();
    RdmaSge sge = link_sge(p.bmr, 0, 100);

    sge.lkey ^= 1;
    link_post_recv(p.b, p.bq, 50, sge);
    link_pair_recv(&p, 51, 0, 100);
    link_pair_post(&p, RDMA_WR_SEND, 1, 0, 100);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.b, 50, RDMA_WC_LOC_PROT_ERR);
    link_expect(p.b, 51, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 0);
    link_pair_free(&p);
}

static void test_uc_send_error_goes_to_sqe(void)
{
    LinkPair p = uc_pair();
    RdmaSendWr bad = link_wr(RDMA_WR_RDMA_READ, 2, NULL);

    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 3000);
    link_post(p.a, p.aq, &bad);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 3, 0, 3000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_LOC_QP_OP_ERR);
    link_expect(p.a, 3, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_SQE);
    link_modify(p.a, p.aq, RDMA_QPS_RTS);
    link_fill(p.amr, 8);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 4, 0, 3000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 4, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, 3000));
    link_pair_free(&p);
}

/* On a bad link, each message that arrives is complete. */
static void test_uc_bad_link(void)
{
    const LinkFaults faults = { .loss = 500, .corrupt = 200 };
    LinkFaults faulty = { 0 };
    unsigned seed;

    for (seed = 0; seed < 50; seed++) {
        LinkPair p = uc_pair();
        unsigned i, received = 0;

        g_rand_set_seed(p.l->rand, seed);
        p.l->faults = faults;
        link_fill(p.amr, seed);
        for (i = 0; i < 20; i++) {
            link_pair_recv(&p, i, 6000 * i, 6000);
        }
        for (i = 0; i < 20; i++) {
            link_pair_post(&p, RDMA_WR_SEND, i, 6000 * i, 300 * i);
        }
        g_assert_true(link_run(p.l, LINK_FOREVER));
        for (i = 0; i < 20; i++) {
            link_expect(p.a, i, RDMA_WC_SUCCESS);
        }
        while (link_wcs(p.b)) {
            RdmaWc wc = link_expect(p.b, received, RDMA_WC_SUCCESS);

            g_assert_cmpuint(wc.byte_len % 300, ==, 0);
            g_assert_true(link_same(p.amr, wc.byte_len / 300 * 6000, p.bmr,
                                    6000 * received, wc.byte_len));
            received++;
        }
        g_assert_cmpuint(received, >, 0);
        link_add_faults(&faulty, &p.l->faulty);
        link_pair_free(&p);
    }
    link_assert_faults(&faults, &faulty);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/roce/ud/sizes/ipv4", GUINT_TO_POINTER(0),
                         test_ud_sizes);
    g_test_add_data_func("/roce/ud/sizes/ipv6", GUINT_TO_POINTER(1),
                         test_ud_sizes);
    g_test_add_func("/roce/ud/longer-than-mtu", test_ud_longer_than_mtu);
    g_test_add_func("/roce/ud/dropped-silently", test_ud_dropped_silently);
    g_test_add_func("/roce/ud/controlled-qkey", test_ud_controlled_qkey);
    g_test_add_func("/roce/ud/send-error-goes-to-sqe",
                    test_ud_send_error_goes_to_sqe);
    g_test_add_func("/roce/ud/receive-error", test_ud_receive_error);
    g_test_add_func("/roce/ud/completes-when-the-frame-is-out",
                    test_ud_completes_when_the_frame_is_out);
    g_test_add_func("/roce/ud/qp-1-is-out-of-reach",
                    test_qp_1_is_out_of_reach);
    g_test_add_func("/roce/gsi", test_gsi);
    g_test_add_func("/roce/uc/good-link", test_uc_good_link);
    g_test_add_func("/roce/uc/gap-drops-one-message",
                    test_uc_gap_drops_one_message);
    g_test_add_func("/roce/uc/bad-requests-are-dropped",
                    test_uc_bad_requests_are_dropped);
    g_test_add_func("/roce/uc/send-error-goes-to-sqe",
                    test_uc_send_error_goes_to_sqe);
    g_test_add_func("/roce/uc/bad-receive-goes-to-err",
                    test_uc_bad_receive_goes_to_err);
    g_test_add_func("/roce/uc/bad-link", test_uc_bad_link);
    return g_test_run();
}
