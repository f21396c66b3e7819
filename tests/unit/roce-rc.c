/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RC on a good link: each opcode, MTU and size, checked byte for byte; and
 * lists of memory when one packet is lost.
 */
#include <string.h>
#include "roce-link.h"

static uint32_t test_size(unsigned i, uint32_t mtu)
{
    const uint32_t sizes[] = {
        0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu + 7, 64 * 1024 + 1,
    };

    return i < G_N_ELEMENTS(sizes) ? sizes[i] : UINT32_MAX;
}

static void one_send(LinkPair *p, uint32_t opcode, uint32_t len)
{
    LinkMr *inv = NULL;
    RdmaSge sge = link_sge(p->amr, 5, len);
    RdmaSendWr wr = link_wr(opcode, 100, &sge);
    RdmaWc wc;

    link_fill(p->amr, len);
    link_set(p->bmr, 0xee);
    wr.send_flags |= RDMA_SEND_SOLICITED;
    if (opcode == RDMA_WR_SEND_WITH_IMM) {
        memcpy(wr.ex.imm_data, "imm!", 4);
    }
    if (opcode == RDMA_WR_SEND_WITH_INV) {
        RdmaSendWr reg = link_wr(RDMA_WR_REG_MR, 1, NULL);

        inv = link_fast_mr(p->b, 5000);
        link_mr_map(inv);
        reg.wr.reg.mrn = inv->attr.mrn;
        reg.wr.reg.key = inv->attr.mrn << 8 | 0x77;
        reg.wr.reg.access = LINK_ALL_ACCESS;
        link_post(p->b, p->bq, &reg);
        g_assert_true(link_run(p->l, LINK_FOREVER));
        g_assert_cmpint(link_expect(p->b, 1, RDMA_WC_SUCCESS).opcode, ==,
                        RDMA_WC_REG_MR);
        wr.ex.invalidate_rkey = reg.wr.reg.key;
    }
    link_post_recv(p->b, p->bq, 200, link_sge(p->bmr, 9, len + 10));
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));

    wc = link_expect(p->a, 100, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, RDMA_WC_SEND);
    g_assert_cmpuint(wc.qp_num, ==, p->aq);
    g_assert_true(((LinkWc *)p->b->wcs.head->data)->solicited);
    wc = link_expect(p->b, 200, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, RDMA_WC_RECV);
    g_assert_cmpuint(wc.byte_len, ==, len);
    g_assert_cmpuint(wc.qp_num, ==, p->bq);
    g_assert_cmpuint(wc.src_qp, ==, p->aq);
    g_assert_true(link_same(p->amr, 5, p->bmr, 9, len));
    switch (opcode) {
    case RDMA_WR_SEND_WITH_IMM:
        g_assert_cmpuint(wc.wc_flags, ==, RDMA_WC_WITH_IMM);
        g_assert_cmpmem(wc.ex.imm_data, 4, "imm!", 4);
        break;
    case RDMA_WR_SEND_WITH_INV:
        g_assert_cmpuint(wc.wc_flags, ==, RDMA_WC_WITH_INVALIDATE);
        g_assert_cmpuint(wc.ex.invalidate_rkey, ==, wr.ex.invalidate_rkey);
        /* A region can be mapped again only if it is not valid. */
        link_mr_map(inv);
        link_mr_free(inv);
        break;
    default:
        g_assert_cmpuint(wc.wc_flags, ==, 0);
    }
}

static void one_write(LinkPair *p, uint32_t opcode, uint32_t len)
{
    RdmaSge sge = link_sge(p->amr, 3, len);
    RdmaSendWr wr = link_wr(opcode, 101, &sge);
    RdmaWc wc;

    link_fill(p->amr, len);
    link_set(p->bmr, 0xee);
    wr.wr.rdma.remote_addr = p->bmr->attr.iova + 21;
    wr.wr.rdma.rkey = p->bmr->attr.rkey;
    memcpy(wr.ex.imm_data, "\1\2\3\4", 4);
    if (opcode == RDMA_WR_RDMA_WRITE_WITH_IMM) {
        link_post_recv(p->b, p->bq, 201, link_sge(p->bmr, 0, 0));
    }
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));

    wc = link_expect(p->a, 101, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, RDMA_WC_RDMA_WRITE);
    g_assert_true(link_same(p->amr, 3, p->bmr, 21, len));
    if (opcode == RDMA_WR_RDMA_WRITE_WITH_IMM) {
        wc = link_expect(p->b, 201, RDMA_WC_SUCCESS);
        g_assert_cmpint(wc.opcode, ==, RDMA_WC_RECV_RDMA_WITH_IMM);
        g_assert_cmpuint(wc.byte_len, ==, len);
        g_assert_cmpuint(wc.wc_flags, ==, RDMA_WC_WITH_IMM);
        g_assert_cmpmem(wc.ex.imm_data, 4, "\1\2\3\4", 4);
    }
    g_assert_cmpuint(link_wcs(p->b), ==, 0);
}

static void one_read(LinkPair *p, uint32_t opcode, uint32_t len)
{
    LinkMr *local = p->amr;
    RdmaSendWr wr = link_wr(opcode, 102, NULL);
    RdmaSge sge;
    RdmaWc wc;

    if (opcode == RDMA_WR_RDMA_READ_WITH_INV) {
        RdmaSendWr reg = link_wr(RDMA_WR_REG_MR, 1, NULL);

        local = link_fast_mr(p->a, LINK_PAIR_MEM);
        link_mr_map(local);
        reg.wr.reg.mrn = local->attr.mrn;
        reg.wr.reg.key = local->attr.lkey;
        reg.wr.reg.access = RDMA_ACCESS_LOCAL_WRITE;
        reg.send_flags = 0;
        link_post(p->a, p->aq, &reg);
        wr.ex.invalidate_rkey = local->attr.lkey;
    }
    link_fill(p->bmr, len);
    link_set(local, 0xee);
    sge = link_sge(local, 77, len);
    wr.num_sge = 1;
    wr.sg_list = &sge;
    wr.wr.rdma.remote_addr = p->bmr->attr.iova + 33;
    wr.wr.rdma.rkey = p->bmr->attr.rkey;
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));

    wc = link_expect(p->a, 102, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, RDMA_WC_RDMA_READ);
    g_assert_cmpuint(wc.byte_len, ==, len);
    g_assert_true(link_same(p->bmr, 33, local, 77, len));
    if (opcode == RDMA_WR_RDMA_READ_WITH_INV) {
        link_mr_map(local);
        link_mr_free(local);
    }
}

static void one_atomic(LinkPair *p, uint32_t opcode, uint64_t before,
                       uint64_t compare_add, uint64_t swap, uint64_t after)
{
    RdmaSge sge = link_sge(p->amr, 13, 8);
    RdmaSendWr wr = link_wr(opcode, 103, &sge);
    uint64_t value = GUINT64_TO_LE(before);
    RdmaWc wc;

    link_write(p->bmr, 80, &value, 8);
    wr.wr.atomic.remote_addr = p->bmr->attr.iova + 80;
    wr.wr.atomic.rkey = p->bmr->attr.rkey;
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));

    wc = link_expect(p->a, 103, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==,
                    opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD ?
                    RDMA_WC_FETCH_ADD : RDMA_WC_COMP_SWAP);
    link_read(p->amr, 13, &value, 8);
    g_assert_cmphex(GUINT64_FROM_LE(value), ==, before);
    link_read(p->bmr, 80, &value, 8);
    g_assert_cmphex(GUINT64_FROM_LE(value), ==, after);
}

/* Does the AtomicETH of a FETCH_ADD (IPv4) have a compare operand of 0? */
static bool has_no_compare(RoceLink *l, unsigned from, const uint8_t *frame,
                           size_t len, void *opaque)
{
    static const uint8_t nothing[8];
    const uint8_t *bth = frame + 14 + 20 + 8;
    const uint8_t *eth = bth + 12;
    unsigned *seen = opaque;

    if (from == 0 && *bth == 0x14) {
        g_assert_cmpmem(eth + 20, 8, nothing, 8);
        ++*seen;
    }
    return true;
}

static void test_fetch_add_compares_nothing(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned seen = 0;

    p.l->filter = has_no_compare;
    p.l->filter_opaque = &seen;
    one_atomic(&p, RDMA_WR_ATOMIC_CMP_AND_SWP, 1, 1, 2, 2);
    one_atomic(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, 5, 6, 7, 11);
    g_assert_cmpuint(seen, ==, 1);
    link_pair_free(&p);
}

static void test_every_opcode(gconstpointer data)
{
    unsigned param = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    uint32_t mtu;
    unsigned i;
    LinkPair p;

    spec.mtu = param / 2;
    spec.ipv6 = param % 2;
    mtu = rdma_mtu_bytes(spec.mtu);
    p = link_pair(&spec);

    for (i = 0; test_size(i, mtu) != UINT32_MAX; i++) {
        uint32_t len = test_size(i, mtu);

        one_send(&p, RDMA_WR_SEND, len);
        one_send(&p, RDMA_WR_SEND_WITH_IMM, len);
        one_send(&p, RDMA_WR_SEND_WITH_INV, len);
        one_write(&p, RDMA_WR_RDMA_WRITE, len);
        one_write(&p, RDMA_WR_RDMA_WRITE_WITH_IMM, len);
        one_read(&p, RDMA_WR_RDMA_READ, len);
        one_read(&p, RDMA_WR_RDMA_READ_WITH_INV, len);
    }
    one_atomic(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, 0x1122334455667788,
               0x10, 0, 0x1122334455667798);
    one_atomic(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, UINT64_MAX, 2, 0, 1);
    one_atomic(&p, RDMA_WR_ATOMIC_CMP_AND_SWP, 0xabcd, 0xabcd, 0x4321,
               0x4321);
    one_atomic(&p, RDMA_WR_ATOMIC_CMP_AND_SWP, 0xabcd, 0xabce, 0x4321,
               0xabcd);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(roce_stats(p.a->e)->retransmits, ==, 0);
    g_assert_cmpuint(roce_stats(p.b->e)->naks_sent, ==, 0);
    link_pair_free(&p);
}

#define PIECES 5

/* Lose one packet, after the number of packets that @opaque points to. */
static bool lose_nth(RoceLink *l, unsigned from, const uint8_t *frame,
                     size_t len, void *opaque)
{
    int *left = opaque;

    return (*left)-- != 0;
}

/* A retransmission may start anywhere in a list of memory, at either end. */
static void test_lists_after_loss(gconstpointer data)
{
    static const uint32_t lens[PIECES] = { 100, 1, 3000, 7, 1500 };
    uint32_t opcode = GPOINTER_TO_UINT(data);

    for (int lost = 0; lost < 12; lost++) {
        LinkQpSpec spec = link_spec();
        LinkPair p = link_pair(&spec);
        RdmaSge here[PIECES], there[PIECES];
        RdmaSendWr wr = link_wr(opcode, 1, here);
        RdmaRecvWr recv = { .wr_id = 2, .num_sge = PIECES, .sg_list = there };
        uint32_t at = 0;
        int left = lost;

        /* The pieces have gaps between them. */
        for (unsigned i = 0; i < PIECES; i++) {
            here[i] = link_sge(p.amr, 50000 + at + 30 * i, lens[i]);
            there[PIECES - 1 - i] = link_sge(p.bmr, 50000 + 5000 * i,
                                             lens[PIECES - 1 - i]);
            at += lens[i];
        }
        link_fill(p.amr, 1);
        link_fill(p.bmr, 2);
        wr.num_sge = PIECES;
        wr.wr.rdma.remote_addr = p.bmr->attr.iova;
        wr.wr.rdma.rkey = p.bmr->attr.rkey;
        consumer_post_recv(p.b->consumer, p.bq, &recv);
        p.l->filter = lose_nth;
        p.l->filter_opaque = &left;
        link_post(p.a, p.aq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        if (opcode == RDMA_WR_SEND) {
            link_expect(p.b, 2, RDMA_WC_SUCCESS);
        }
        at = 0;
        for (unsigned i = 0; i < PIECES; i++) {
            uint32_t to = opcode == RDMA_WR_SEND ? there[i].addr -
                                                   p.bmr->attr.iova : at;

            g_assert_true(link_same(p.amr, here[i].addr - p.amr->attr.iova,
                                    p.bmr, to, lens[i]));
            at += lens[i];
        }
        link_pair_free(&p);
    }
}

int main(int argc, char **argv)
{
    unsigned mtu, ipv6;

    g_test_init(&argc, &argv, NULL);
    for (mtu = RDMA_MTU_256; mtu <= RDMA_MTU_4096; mtu++) {
        for (ipv6 = 0; ipv6 < 2; ipv6++) {
            g_autofree char *path =
                g_strdup_printf("/roce/rc/every-opcode/ipv%c/mtu-%u",
                                ipv6 ? '6' : '4', rdma_mtu_bytes(mtu));

            g_test_add_data_func(path, GUINT_TO_POINTER(mtu * 2 + ipv6),
                                 test_every_opcode);
        }
    }
    g_test_add_func("/roce/rc/fetch-add-compares-nothing",
                    test_fetch_add_compares_nothing);
    g_test_add_data_func("/roce/rc/lists-after-loss/send",
                         GUINT_TO_POINTER(RDMA_WR_SEND),
                         test_lists_after_loss);
    g_test_add_data_func("/roce/rc/lists-after-loss/write",
                         GUINT_TO_POINTER(RDMA_WR_RDMA_WRITE),
                         test_lists_after_loss);
    g_test_add_data_func("/roce/rc/lists-after-loss/read",
                         GUINT_TO_POINTER(RDMA_WR_RDMA_READ),
                         test_lists_after_loss);
    return g_test_run();
}
