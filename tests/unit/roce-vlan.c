/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GIDs that belong to VLANs, and the VLAN in the completion of a datagram.
 */
#include <string.h>
#include "roce-link.h"

#define GRH 40
#define VLAN 100
#define SL 13                       /* the low bits, 5, are the priority */

typedef struct Wire {
    unsigned frames;
    unsigned tagged;                /* frames with VLAN and SL's priority */
    uint8_t last[ROCE_MAX_FRAME];
    size_t last_len;
} Wire;

static bool watch(RoceLink *l, unsigned from, const uint8_t *frame,
                  size_t len, void *opaque)
{
    static const uint8_t tag[4] = { 0x81, 0x00, 5 << 5, VLAN };
    Wire *w = opaque;

    w->frames++;
    w->tagged += memcmp(frame + 12, tag, sizeof(tag)) == 0;
    memcpy(w->last, frame, len);
    w->last_len = len;
    return true;
}

static void set_gids(LinkNode *n, uint16_t vlan)
{
    g_assert_cmpint(roce_add_gid(n->e, 0, n->gid4, vlan), ==, 0);
    g_assert_cmpint(roce_add_gid(n->e, 1, n->gid6, vlan), ==, 0);
}

static RdmaAv vlan_av(LinkNode *from, LinkNode *to, bool ipv6)
{
    RdmaAv av = link_av(from, to, ipv6);

    av.sl = SL;
    return av;
}

/* A pair whose address vectors have SL; connected QPs get it in SQD. */
static LinkPair vlan_pair(RdmaQpType type, bool ipv6, uint16_t vlan, Wire *w)
{
    LinkQpSpec spec = link_spec();
    RdmaQpAttr attr = {};
    LinkPair p;

    spec.type = type;
    spec.ipv6 = ipv6;
    p = link_pair(&spec);
    set_gids(p.a, vlan);
    set_gids(p.b, vlan);
    if (type == RDMA_QPT_RC) {
        link_modify(p.a, p.aq, RDMA_QPS_SQD);
        attr.ah_attr = vlan_av(p.a, p.b, ipv6);
        g_assert_cmpint(roce_qp_modify(p.a->e, p.aq, RDMA_QP_AV, &attr), ==, 0);
        link_modify(p.a, p.aq, RDMA_QPS_RTS);
        link_modify(p.b, p.bq, RDMA_QPS_SQD);
        attr.ah_attr = vlan_av(p.b, p.a, ipv6);
        g_assert_cmpint(roce_qp_modify(p.b->e, p.bq, RDMA_QP_AV, &attr), ==, 0);
        link_modify(p.b, p.bq, RDMA_QPS_RTS);
    }
    memset(w, 0, sizeof(*w));
    p.l->filter = watch;
    p.l->filter_opaque = w;
    return p;
}

static void send_datagram(LinkPair *p, LinkNode *to, bool ipv6, uint32_t len)
{
    RdmaSge sge = link_sge(p->amr, 0, len);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, &sge);

    wr.wr.ud.remote_qpn = to == p->a ? p->aq : p->bq;
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = vlan_av(p->a, to, ipv6);
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));
}

static void check_origin(const RdmaWc *wc, LinkNode *from, uint16_t vlan,
                         uint8_t sl, bool ipv6)
{
    g_assert_cmphex(wc->wc_flags, ==,
                    RDMA_WC_GRH | RDMA_WC_WITH_SMAC | RDMA_WC_WITH_HDR_TYPE |
                    (vlan ? RDMA_WC_WITH_VLAN : 0));
    g_assert_cmpmem(wc->smac, 6, from->mac, 6);
    g_assert_cmpuint(wc->vlan, ==, vlan);
    g_assert_cmpuint(wc->sl, ==, sl);
    g_assert_cmpuint(wc->hdr_type, ==,
                     ipv6 ? RDMA_HDR_IPV6 : RDMA_HDR_IPV4);
}

static void test_connected(gconstpointer data)
{
    bool ipv6 = GPOINTER_TO_UINT(data);
    Wire w;
    LinkPair p = vlan_pair(RDMA_QPT_RC, ipv6, VLAN, &w);

    link_fill(p.amr, 3);
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 50000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, 50000));
    link_set(p.amr, 0);
    link_pair_post(&p, RDMA_WR_RDMA_READ, 2, 0, 50000);
    link_pair_post(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, 3, 56, 8);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_expect(p.a, 3, RDMA_WC_SUCCESS);
    g_assert_true(link_same(p.amr, 1024, p.bmr, 1024, 48000));
    g_assert_cmpuint(w.frames, >, 100);
    g_assert_cmpuint(w.tagged, ==, w.frames);
    link_pair_free(&p);
}

static void test_datagram(gconstpointer data)
{
    bool ipv6 = GPOINTER_TO_UINT(data);
    Wire w;
    LinkPair p = vlan_pair(RDMA_QPT_UD, ipv6, VLAN, &w);
    RdmaWc wc;

    link_fill(p.amr, 3);
    link_pair_recv(&p, 50, 0, 4096 + GRH);
    send_datagram(&p, p.b, ipv6, 4096);
    wc = link_expect(p.b, 50, RDMA_WC_SUCCESS);
    check_origin(&wc, p.a, VLAN, 5, ipv6);
    g_assert_true(link_same(p.amr, 0, p.bmr, GRH, 4096));
    g_assert_cmpuint(w.frames, ==, 1);
    g_assert_cmpuint(w.tagged, ==, 1);
    link_pair_free(&p);
}

static void test_to_itself(void)
{
    Wire w;
    LinkPair p = vlan_pair(RDMA_QPT_UD, true, VLAN, &w);
    RdmaWc wc;

    link_post_recv(p.a, p.aq, 60, link_sge(p.amr, 8192, 500));
    send_datagram(&p, p.a, true, 100);
    wc = link_expect(p.a, 60, RDMA_WC_SUCCESS);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    check_origin(&wc, p.a, VLAN, 5, true);
    g_assert_true(link_same(p.amr, 0, p.amr, 8192 + GRH, 100));
    g_assert_cmpuint(w.frames, ==, 0);
    link_pair_free(&p);
}

/* A GID accepts only frames of its VLAN. */
static void test_wrong_vlan(void)
{
    static const uint16_t vlans[] = { RDMA_NO_VLAN, 99, VLAN, 1, 4094 };
    unsigned from, to;

    for (from = 0; from < G_N_ELEMENTS(vlans); from++) {
        Wire w;
        LinkPair p = vlan_pair(RDMA_QPT_UD, false, vlans[from], &w);

        link_pair_recv(&p, 50, 0, 500);
        send_datagram(&p, p.b, false, 64);
        link_expect(p.b, 50, RDMA_WC_SUCCESS);
        for (to = 0; to < G_N_ELEMENTS(vlans); to++) {
            uint64_t dropped = roce_stats(p.b->e)->rx_dropped;
            bool good = from == to;

            set_gids(p.b, vlans[to]);
            g_assert_true(roce_is_ours(p.b->e, w.last, w.last_len) == good);
            link_pair_recv(&p, 51, 0, 500);
            link_inject(p.l, 1, w.last, w.last_len);
            g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped - dropped, ==,
                             !good);
            g_assert_cmpuint(link_wcs(p.b), ==, good);
            if (good) {
                link_expect(p.b, 51, RDMA_WC_SUCCESS);
            }
        }
        link_pair_free(&p);
    }
}

/* A connected QP ignores its peer in another VLAN. */
static void test_connected_qp_accepts_its_vlan_only(void)
{
    Wire w;
    LinkPair p = vlan_pair(RDMA_QPT_RC, false, VLAN, &w);
    uint8_t frame[ROCE_MAX_FRAME];

    p.l->node[1].stopped = true;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 100);
    link_pump(p.l);
    p.l->node[1].stopped = false;
    g_assert_cmpuint(w.frames, ==, 1);
    memcpy(frame, w.last, w.last_len);
    /* The port is in the other VLAN as well, but the QP is not. */
    g_assert_cmpint(roce_add_gid(p.b->e, 2, p.b->gid4, VLAN + 1), ==, 0);
    frame[15]++;
    g_assert_true(roce_is_ours(p.b->e, frame, w.last_len));
    link_inject(p.l, 1, frame, w.last_len);
    g_assert_cmpuint(roce_stats(p.b->e)->rx_dropped, ==, 1);
    link_inject(p.l, 1, w.last, w.last_len);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

/* The same address in two VLANs makes two GIDs. */
static void test_same_gid_in_two_vlans(void)
{
    Wire w;
    LinkPair p = vlan_pair(RDMA_QPT_UD, true, VLAN, &w);
    RdmaWc wc;

    g_assert_cmpint(roce_add_gid(p.b->e, 2, p.b->gid6, RDMA_NO_VLAN), ==, 0);
    g_assert_cmpint(roce_add_gid(p.a->e, 2, p.a->gid6, RDMA_NO_VLAN), ==, 0);
    link_pair_recv(&p, 50, 0, 500);
    link_pair_recv(&p, 51, 0, 500);
    send_datagram(&p, p.b, true, 64);
    wc = link_expect(p.b, 50, RDMA_WC_SUCCESS);
    check_origin(&wc, p.a, VLAN, 5, true);

    g_assert_cmpint(roce_del_gid(p.a->e, 1), ==, 0);
    g_assert_cmpint(roce_add_gid(p.a->e, 1, p.a->gid6, RDMA_NO_VLAN), ==, 0);
    send_datagram(&p, p.b, true, 64);
    wc = link_expect(p.b, 51, RDMA_WC_SUCCESS);
    check_origin(&wc, p.a, RDMA_NO_VLAN, 0, true);
    g_assert_cmpuint(w.tagged, ==, 1);

    /* After deletion in one VLAN, the GID of the other VLAN remains. */
    g_assert_cmpint(roce_del_gid(p.b->e, 1), ==, 0);
    g_assert_true(roce_is_ours(p.b->e, w.last, w.last_len));
    link_pair_free(&p);
}

/* A tag with VLAN 0 has only a priority; the frame is in no VLAN. */
static void test_priority_tag(void)
{
    Wire w;
    LinkPair p = vlan_pair(RDMA_QPT_UD, false, RDMA_NO_VLAN, &w);
    uint8_t frame[ROCE_MAX_FRAME];
    RdmaWc wc;

    link_pair_recv(&p, 50, 0, 500);
    link_pair_recv(&p, 51, 0, 500);
    send_datagram(&p, p.b, false, 64);
    wc = link_expect(p.b, 50, RDMA_WC_SUCCESS);
    check_origin(&wc, p.a, RDMA_NO_VLAN, 0, false);

    memcpy(frame, w.last, 12);
    memcpy(frame + 12, "\x81\x00\xd0\x00", 4);
    memcpy(frame + 16, w.last + 12, w.last_len - 12);
    g_assert_true(roce_is_ours(p.b->e, frame, ROCE_PEEK_LEN));
    link_inject(p.l, 1, frame, w.last_len + 4);
    wc = link_expect(p.b, 51, RDMA_WC_SUCCESS);
    check_origin(&wc, p.a, RDMA_NO_VLAN, 6, false);
    link_pair_free(&p);
}

static void test_bad_vlan_is_refused(void)
{
    Wire w;
    LinkPair p = vlan_pair(RDMA_QPT_UD, false, VLAN, &w);

    g_assert_cmpint(roce_add_gid(p.b->e, 0, p.b->gid4, 4095), ==, -EINVAL);
    g_assert_cmpint(roce_add_gid(p.b->e, 0, p.b->gid4, 0x8001), ==, -EINVAL);
    link_pair_recv(&p, 50, 0, 500);
    send_datagram(&p, p.b, false, 64);
    link_expect(p.b, 50, RDMA_WC_SUCCESS);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    unsigned ipv6;

    g_test_init(&argc, &argv, NULL);
    for (ipv6 = 0; ipv6 < 2; ipv6++) {
        const char *ip = ipv6 ? "ipv6" : "ipv4";
        g_autofree char *rc = g_strdup_printf("/vlan/connected/%s", ip);
        g_autofree char *ud = g_strdup_printf("/vlan/datagram/%s", ip);

        g_test_add_data_func(rc, GUINT_TO_POINTER(ipv6), test_connected);
        g_test_add_data_func(ud, GUINT_TO_POINTER(ipv6), test_datagram);
    }
    g_test_add_func("/vlan/to-itself", test_to_itself);
    g_test_add_func("/vlan/wrong-vlan", test_wrong_vlan);
    g_test_add_func("/vlan/connected-qp-accepts-its-vlan-only",
                    test_connected_qp_accepts_its_vlan_only);
    g_test_add_func("/vlan/same-gid-in-two-vlans",
                    test_same_gid_in_two_vlans);
    g_test_add_func("/vlan/priority-tag", test_priority_tag);
    g_test_add_func("/vlan/bad-vlan-is-refused", test_bad_vlan_is_refused);
    return g_test_run();
}
