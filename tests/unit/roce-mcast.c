/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups: which QPs get copies.
 */
#include <string.h>
#include "roce-link.h"

#define GRH 40
#define LEN 200
#define QKEY 0x1234
#define SLOT 1024                   /* bytes of each buffer */

static const uint8_t group4[RDMA_GID_LEN] = {
    [10] = 0xff, 0xff, 239, 129, 2, 3
};
static const uint8_t group6[RDMA_GID_LEN] = { 0xff, 0x0e, [14] = 0x12, 0x34 };

/* Node a sends, node b receives. Both have a region. */
typedef struct Fixture {
    RoceLink *l;
    LinkNode *a;
    LinkNode *b;
    LinkMr *amr;
    LinkMr *bmr;
    unsigned frames;
    uint8_t last[ROCE_MAX_FRAME];
    size_t last_len;
} Fixture;

static bool check_mcast_frame(RoceLink *l, unsigned from, const uint8_t *frame,
                              size_t len, void *opaque)
{
    Fixture *f = opaque;

    f->frames++;
    memcpy(f->last, frame, len);
    f->last_len = len;
    return true;
}

static void setup(Fixture *f)
{
    memset(f, 0, sizeof(*f));
    f->l = link_new(1);
    f->l->filter = check_mcast_frame;
    f->l->filter_opaque = f;
    f->a = &f->l->node[0];
    f->b = &f->l->node[1];
    f->amr = link_mr(f->a, 64 * SLOT, LINK_ALL_ACCESS);
    f->bmr = link_mr(f->b, 64 * SLOT, LINK_ALL_ACCESS);
    link_fill(f->amr, 7);
}

static void teardown(Fixture *f)
{
    link_mr_free(f->amr);
    link_mr_free(f->bmr);
    link_free(f->l);
}

static void make_qp(LinkNode *n, RdmaQpType type, uint32_t qpn, bool block)
{
    RdmaQpInitAttr init = {
        .qpn = qpn,
        .pdn = LINK_PDN,
        .qp_type = type,
        .send_cqn = LINK_SEND_CQ(qpn),
        .recv_cqn = LINK_RECV_CQ(qpn),
        .cap = link_spec().cap,
        .block_mcast_loopback = block,
    };

    g_assert_cmpint(roce_qp_create(n->e, &init), ==, 0);
}

static void start_ud(LinkNode *n, uint32_t qpn, uint32_t qkey)
{
    LinkQpSpec spec = link_spec();
    unsigned state;

    spec.type = RDMA_QPT_UD;
    for (state = RDMA_QPS_INIT; state <= RDMA_QPS_RTS; state++) {
        RdmaQpAttr attr;
        uint32_t mask = link_attr(n->link, &spec, 0, state, &attr);

        attr.qkey = qkey;
        g_assert_cmpint(roce_qp_modify(n->e, qpn, mask, &attr), ==, 0);
    }
}

/* Add a UD QP in RTS. */
static void add_ud(LinkNode *n, uint32_t qpn, uint32_t qkey, bool block)
{
    make_qp(n, RDMA_QPT_UD, qpn, block);
    start_ud(n, qpn, qkey);
}

/* Add a UD QP in RTS to a group, with a buffer at slot @qpn. */
static void add_member(Fixture *f, LinkNode *n, uint32_t qpn, uint32_t qkey,
                       const uint8_t *group)
{
    LinkMr *mr = n == f->a ? f->amr : f->bmr;

    add_ud(n, qpn, qkey, false);
    g_assert_cmpint(roce_mcast_attach(n->e, qpn, group), ==, 0);
    link_post_recv(n, qpn, 100 + qpn, link_sge(mr, qpn * SLOT, SLOT));
}

static void group_mac(uint8_t mac[RDMA_MAC_LEN], const uint8_t *group)
{
    static const uint8_t ip4[] = { 0x01, 0x00, 0x5e };
    static const uint8_t ip6[] = { 0x33, 0x33 };

    if (group == group6) {
        memcpy(mac, ip6, 2);
        memcpy(mac + 2, group + 12, 4);
    } else {
        memcpy(mac, ip4, 3);
        memcpy(mac + 3, group + 13, 3);
        mac[3] &= 0x7f;
    }
}

static void post(Fixture *f, uint32_t qpn, const uint8_t *group)
{
    RdmaSge sge = link_sge(f->amr, 0, LEN);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, &sge);
    RdmaAv *av = &wr.wr.ud.av;

    wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
    wr.wr.ud.remote_qkey = QKEY;
    *av = link_av(f->a, f->b, group == group6);
    av->hop_limit = 1;
    memcpy(av->dgid, group, RDMA_GID_LEN);
    group_mac(av->dmac, group);
    link_post(f->a, qpn, &wr);
}

static void run(Fixture *f)
{
    g_assert_true(link_run(f->l, LINK_FOREVER));
}

/* Take the completion of QP @qpn, wherever it is in the list. */
static bool take_copy(Fixture *f, LinkNode *n, uint32_t qpn,
                      const uint8_t *group)
{
    LinkMr *mr = n == f->a ? f->amr : f->bmr;
    uint8_t grh[GRH];
    GList *i;

    for (i = n->wcs.head; i; i = i->next) {
        LinkWc *entry = i->data;

        if (entry->cqn == LINK_RECV_CQ(qpn)) {
            g_assert_cmpuint(entry->wc.wr_id, ==, 100 + qpn);
            g_assert_cmpint(entry->wc.status, ==, RDMA_WC_SUCCESS);
            g_assert_cmpuint(entry->wc.byte_len, ==, GRH + LEN);
            g_assert_cmpuint(entry->wc.qp_num, ==, qpn);
            g_assert_cmpmem(entry->wc.smac, 6, f->a->mac, 6);
            g_assert_true(link_same(f->amr, 0, mr, qpn * SLOT + GRH, LEN));
            link_read(mr, qpn * SLOT, grh, GRH);
            if (group == group6) {
                g_assert_cmpmem(grh + 24, 16, group, 16);
            } else {
                g_assert_cmpmem(grh + 36, 4, group + 12, 4);
            }
            g_free(entry);
            g_queue_delete_link(&n->wcs, i);
            return true;
        }
    }
    return false;
}

static void test_each_member_gets_a_copy(gconstpointer data)
{
    const uint8_t *group = data;
    uint8_t mac[RDMA_MAC_LEN];
    Fixture f;

    setup(&f);
    add_member(&f, f.a, 2, QKEY, group);
    add_member(&f, f.a, 3, QKEY, group);
    add_member(&f, f.b, 2, QKEY, group);
    add_member(&f, f.b, 9, QKEY, group);
    add_member(&f, f.b, 5, QKEY + 1, group);
    add_member(&f, f.b, 6, QKEY, group == group4 ? group6 : group4);
    post(&f, 2, group);
    run(&f);

    g_assert_cmpuint(f.frames, ==, 1);
    group_mac(mac, group);
    g_assert_cmpmem(f.last, 6, mac, 6);
    g_assert_true(take_copy(&f, f.a, 2, group));
    g_assert_true(take_copy(&f, f.a, 3, group));
    g_assert_cmpuint(link_expect(f.a, 1, RDMA_WC_SUCCESS).qp_num, ==, 2);
    g_assert_true(take_copy(&f, f.b, 2, group));
    g_assert_true(take_copy(&f, f.b, 9, group));
    g_assert_cmpuint(link_wcs(f.a), ==, 0);
    g_assert_cmpuint(link_wcs(f.b), ==, 0);
    g_assert_cmpuint(roce_stats(f.a->e)->tx_mcast_frames, ==, 1);
    g_assert_cmpuint(roce_stats(f.a->e)->loopback_frames, ==, 1);
    g_assert_cmpuint(roce_stats(f.a->e)->rx_mcast_frames, ==, 0);
    g_assert_cmpuint(roce_stats(f.b->e)->rx_mcast_frames, ==, 1);
    g_assert_cmpuint(roce_stats(f.b->e)->bad_qkey, ==, 1);
    teardown(&f);
}

/* Copies for QPs of the sending node, with and without blocked loopback */
static void test_blocked_loopback(void)
{
    Fixture f;

    setup(&f);
    add_member(&f, f.a, 2, QKEY, group6);
    add_ud(f.a, 3, QKEY, true);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 3, group6), ==, 0);
    link_post_recv(f.a, 3, 103, link_sge(f.amr, 3 * SLOT, SLOT));

    post(&f, 3, group6);
    run(&f);
    g_assert_true(take_copy(&f, f.a, 2, group6));
    link_expect(f.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(f.a), ==, 0);

    /* The flag blocks only the QP's own multicasts. */
    post(&f, 2, group6);
    run(&f);
    g_assert_true(take_copy(&f, f.a, 3, group6));
    link_expect(f.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(f.a), ==, 0);
    teardown(&f);
}

/* A QP of the group that gets no copy does not affect the others. */
static void test_members_fail_alone(void)
{
    RdmaSge bad;
    Fixture f;

    setup(&f);
    /*
     * QPs without a buffer, with a short one, a bad one, a failed CQ, not in
     * RTR, and a good one
     */
    add_ud(f.b, 2, QKEY, false);
    add_ud(f.b, 3, QKEY, false);
    add_ud(f.b, 4, QKEY, false);
    add_ud(f.b, 6, QKEY, false);
    make_qp(f.b, RDMA_QPT_UD, 7, false);
    g_assert_cmpint(roce_mcast_attach(f.b->e, 7, group4), ==, 0);
    g_assert_cmpint(roce_mcast_attach(f.b->e, 2, group4), ==, 0);
    g_assert_cmpint(roce_mcast_attach(f.b->e, 3, group4), ==, 0);
    g_assert_cmpint(roce_mcast_attach(f.b->e, 4, group4), ==, 0);
    g_assert_cmpint(roce_mcast_attach(f.b->e, 6, group4), ==, 0);
    add_member(&f, f.b, 5, QKEY, group4);
    link_post_recv(f.b, 3, 103, link_sge(f.bmr, 0, GRH + LEN - 1));
    bad = link_sge(f.bmr, 0, SLOT);
    bad.lkey ^= 1;
    link_post_recv(f.b, 4, 104, bad);
    link_post_recv(f.b, 6, 106, link_sge(f.bmr, 0, SLOT));
    f.b->cq_room[LINK_RECV_CQ(6)] = 0;

    add_ud(f.a, 2, QKEY, false);
    post(&f, 2, group4);
    run(&f);
    g_assert_true(take_copy(&f, f.b, 5, group4));
    link_expect(f.b, 104, RDMA_WC_LOC_PROT_ERR);
    g_assert_cmpuint(link_wcs(f.b), ==, 0);
    g_assert_cmpint(link_state(f.b, 2), ==, RDMA_QPS_RTS);
    g_assert_cmpint(link_state(f.b, 3), ==, RDMA_QPS_RTS);
    g_assert_cmpint(link_state(f.b, 4), ==, RDMA_QPS_ERR);
    g_assert_cmpint(link_state(f.b, 6), ==, RDMA_QPS_ERR);
    g_assert_cmpint(link_state(f.b, 5), ==, RDMA_QPS_RTS);
    g_assert_cmpuint(roce_stats(f.b->e)->rx_dropped, ==, 2);

    /* The QP that was not in RTR gets a copy; those in ERR get none. */
    start_ud(f.b, 7, QKEY);
    link_post_recv(f.b, 7, 107, link_sge(f.bmr, 7 * SLOT, SLOT));
    post(&f, 2, group4);
    run(&f);
    g_assert_true(take_copy(&f, f.b, 7, group4));
    g_assert_cmpuint(link_wcs(f.b), ==, 0);
    teardown(&f);
}

static void make_group_gid(uint8_t gid[RDMA_GID_LEN], unsigned n)
{
    memcpy(gid, group6, RDMA_GID_LEN);
    gid[15] = n;
}

static void test_attach_and_detach(void)
{
    uint8_t gid[RDMA_GID_LEN];
    unsigned i;
    Fixture f;

    setup(&f);
    for (i = 2; i < 12; i++) {
        make_qp(f.a, RDMA_QPT_UD, i, false);
    }
    make_qp(f.a, RDMA_QPT_RC, 20, false);
    make_qp(f.a, RDMA_QPT_GSI, RDMA_QPN_GSI, false);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 2, f.a->gid4), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 2, f.b->gid6), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 20, group4), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 1, group4), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 21, group4), ==, -ENOENT);
    g_assert_cmpint(roce_mcast_attach(f.a->e, RDMA_QPN_MCAST, group4), ==,
                    -ENOENT);
    g_assert_cmpint(roce_mcast_detach(f.a->e, 2, group4), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_detach(f.a->e, 21, group4), ==, -ENOENT);

    /* The most QPs that a group may have */
    for (i = 0; i < link_config.max_mcast_qp_attach; i++) {
        g_assert_cmpint(roce_mcast_attach(f.a->e, 2 + i, group4), ==, 0);
        g_assert_cmpint(roce_mcast_attach(f.a->e, 2 + i, group4), ==,
                        -EINVAL);
    }
    g_assert_cmpint(roce_mcast_attach(f.a->e, 2 + i, group4), ==, -ENOSPC);
    g_assert_cmpint(roce_mcast_detach(f.a->e, 2 + i, group4), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_detach(f.a->e, 3, group4), ==, 0);
    g_assert_cmpint(roce_mcast_detach(f.a->e, 3, group4), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 2 + i, group4), ==, 0);

    /* The most groups; a group without QPs does not exist. */
    for (i = 1; i < link_config.max_mcast_grp; i++) {
        make_group_gid(gid, i);
        g_assert_cmpint(roce_mcast_attach(f.a->e, 11, gid), ==, 0);
    }
    make_group_gid(gid, i);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 3, gid), ==, -ENOSPC);
    g_assert_cmpint(roce_qp_destroy(f.a->e, 11), ==, 0);
    for (i = 1; i < link_config.max_mcast_grp; i++) {
        make_group_gid(gid, i);
        g_assert_cmpint(roce_mcast_attach(f.a->e, 3, gid), ==, 0);
    }
    roce_reset(f.a->e);
    make_qp(f.a, RDMA_QPT_UD, 2, false);
    g_assert_cmpint(roce_mcast_detach(f.a->e, 2, group4), ==, -EINVAL);
    g_assert_cmpint(roce_mcast_attach(f.a->e, 2, group4), ==, 0);
    teardown(&f);
}

/* A datagram for one QP of another node is not delivered to members here. */
static void test_unicast_is_not_looped_back(void)
{
    RdmaSendWr wr;
    RdmaSge sge;
    Fixture f;

    setup(&f);
    sge = link_sge(f.amr, 0, LEN);
    wr = link_wr(RDMA_WR_SEND, 1, &sge);
    add_member(&f, f.a, 2, QKEY, group4);
    add_member(&f, f.a, 3, QKEY, group4);
    add_member(&f, f.b, 3, QKEY, group4);
    wr.wr.ud.remote_qpn = 3;
    wr.wr.ud.remote_qkey = QKEY;
    wr.wr.ud.av = link_av(f.a, f.b, false);
    link_post(f.a, 2, &wr);
    run(&f);
    link_expect(f.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(f.a), ==, 0);
    link_expect(f.b, 103, RDMA_WC_SUCCESS);
    g_assert_cmpuint(roce_stats(f.a->e)->loopback_frames, ==, 0);
    teardown(&f);
}

/* Each member counts as work, even if it gets no copy. */
static void test_each_member_counts_as_work(void)
{
    uint64_t work[2];

    for (unsigned i = 0; i < 2; i++) {
        Fixture f;

        setup(&f);
        add_ud(f.a, 2, QKEY, false);
        add_member(&f, f.b, 2, QKEY, group4);
        for (unsigned qpn = 3; i && qpn < 7; qpn++) {
            make_qp(f.b, RDMA_QPT_UD, qpn, false);
            g_assert_cmpint(roce_mcast_attach(f.b->e, qpn, group4), ==, 0);
        }
        work[i] = roce_work(f.b->e);
        post(&f, 2, group4);
        run(&f);
        g_assert_true(take_copy(&f, f.b, 2, group4));
        work[i] = roce_work(f.b->e) - work[i];
        teardown(&f);
    }
    g_assert_cmpuint(work[1], >=, work[0] + 4);
}

/* Membership ends by detaching or destroying the QP, not by RESET. */
static void test_frames_are_ours_while_joined(void)
{
    Fixture f;

    setup(&f);
    add_member(&f, f.b, 5, QKEY, group6);
    add_ud(f.a, 2, QKEY, false);
    post(&f, 2, group6);
    run(&f);
    g_assert_true(take_copy(&f, f.b, 5, group6));
    g_assert_true(roce_is_ours(f.b->e, f.last, ROCE_PEEK_LEN));
    g_assert_false(roce_is_ours(f.a->e, f.last, ROCE_PEEK_LEN));

    link_modify(f.b, 5, RDMA_QPS_RESET);
    g_assert_true(roce_is_ours(f.b->e, f.last, ROCE_PEEK_LEN));
    start_ud(f.b, 5, QKEY);
    link_post_recv(f.b, 5, 105, link_sge(f.bmr, 5 * SLOT, SLOT));
    link_inject(f.l, 1, f.last, f.last_len);
    g_assert_true(take_copy(&f, f.b, 5, group6));

    link_post_recv(f.b, 5, 105, link_sge(f.bmr, 5 * SLOT, SLOT));
    g_assert_cmpint(roce_mcast_detach(f.b->e, 5, group6), ==, 0);
    g_assert_false(roce_is_ours(f.b->e, f.last, ROCE_PEEK_LEN));
    link_inject(f.l, 1, f.last, f.last_len);
    g_assert_cmpuint(link_wcs(f.b), ==, 0);
    g_assert_cmpuint(roce_stats(f.b->e)->rx_dropped, ==, 1);

    g_assert_cmpint(roce_mcast_attach(f.b->e, 5, group6), ==, 0);
    g_assert_cmpint(roce_qp_destroy(f.b->e, 5), ==, 0);
    g_assert_false(roce_is_ours(f.b->e, f.last, ROCE_PEEK_LEN));
    teardown(&f);
}

/* A multicast GID requires the multicast QPN, and the reverse. */
static void test_gid_and_qpn_must_match(void)
{
    RdmaSge sge;
    RdmaSendWr wr;
    Fixture f;

    setup(&f);
    add_member(&f, f.a, 5, QKEY, group4);
    add_member(&f, f.b, 5, QKEY, group4);
    add_ud(f.a, 2, QKEY, false);
    sge = link_sge(f.amr, 0, LEN);
    wr = link_wr(RDMA_WR_SEND, 1, &sge);
    wr.wr.ud.remote_qkey = QKEY;
    wr.wr.ud.av = link_av(f.a, f.b, false);
    wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
    link_post(f.a, 2, &wr);
    memcpy(wr.wr.ud.av.dgid, group4, RDMA_GID_LEN);
    wr.wr.ud.av.dmac[0] = 1;
    wr.wr.ud.remote_qpn = 5;
    link_post(f.a, 2, &wr);
    run(&f);
    g_assert_cmpuint(f.frames, ==, 2);
    link_expect(f.a, 1, RDMA_WC_SUCCESS);
    link_expect(f.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(link_wcs(f.a), ==, 0);
    g_assert_cmpuint(link_wcs(f.b), ==, 0);
    g_assert_cmpuint(roce_stats(f.b->e)->rx_dropped, ==, 2);
    teardown(&f);
}

/* Some networks return a multicast to its sender. */
static void test_echo_of_own_multicast_is_dropped(void)
{
    Fixture f;

    setup(&f);
    add_member(&f, f.a, 2, QKEY, group6);
    post(&f, 2, group6);
    run(&f);
    g_assert_true(take_copy(&f, f.a, 2, group6));
    link_expect(f.a, 1, RDMA_WC_SUCCESS);
    link_post_recv(f.a, 2, 102, link_sge(f.amr, 2 * SLOT, SLOT));
    link_inject(f.l, 0, f.last, f.last_len);
    g_assert_cmpuint(link_wcs(f.a), ==, 0);
    g_assert_cmpuint(roce_stats(f.a->e)->rx_dropped, ==, 1);
    teardown(&f);
}

/* While the link is down, QPs of the sending node still get copies. */
static void test_link_down(void)
{
    Fixture f;

    setup(&f);
    add_member(&f, f.a, 2, QKEY, group6);
    link_set_up(f.a, false);
    post(&f, 2, group6);
    run(&f);
    g_assert_true(take_copy(&f, f.a, 2, group6));
    link_expect(f.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(f.frames, ==, 0);
    g_assert_cmpuint(roce_stats(f.a->e)->tx_mcast_frames, ==, 0);
    teardown(&f);
}

/* A group receives in all VLANs of the port's GIDs. */
static void test_vlan(void)
{
    Fixture f;

    setup(&f);
    add_member(&f, f.b, 5, QKEY, group6);
    add_ud(f.a, 2, QKEY, false);
    g_assert_cmpint(roce_add_gid(f.a->e, 1, f.a->gid6, 77), ==, 0);
    post(&f, 2, group6);
    run(&f);
    g_assert_false(roce_is_ours(f.b->e, f.last, f.last_len));
    g_assert_cmpuint(link_wcs(f.b), ==, 0);

    g_assert_cmpint(roce_add_gid(f.b->e, 2, f.b->gid6, 77), ==, 0);
    g_assert_true(roce_is_ours(f.b->e, f.last, f.last_len));
    post(&f, 2, group6);
    run(&f);
    g_assert_true(take_copy(&f, f.b, 5, group6));

    g_assert_cmpint(roce_del_gid(f.b->e, 2), ==, 0);
    g_assert_false(roce_is_ours(f.b->e, f.last, f.last_len));
    teardown(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/mcast/each-member-gets-a-copy/ipv4", group4,
                         test_each_member_gets_a_copy);
    g_test_add_data_func("/mcast/each-member-gets-a-copy/ipv6", group6,
                         test_each_member_gets_a_copy);
    g_test_add_func("/mcast/blocked-loopback", test_blocked_loopback);
    g_test_add_func("/mcast/members-fail-alone", test_members_fail_alone);
    g_test_add_func("/mcast/attach-and-detach", test_attach_and_detach);
    g_test_add_func("/mcast/frames-are-ours-while-joined",
                    test_frames_are_ours_while_joined);
    g_test_add_func("/mcast/gid-and-qpn-must-match",
                    test_gid_and_qpn_must_match);
    g_test_add_func("/mcast/echo-of-own-multicast-is-dropped",
                    test_echo_of_own_multicast_is_dropped);
    g_test_add_func("/mcast/link-down", test_link_down);
    g_test_add_func("/mcast/vlan", test_vlan);
    g_test_add_func("/roce/mcast/unicast-is-not-looped-back",
                    test_unicast_is_not_looped_back);
    g_test_add_func("/roce/mcast/each-member-counts-as-work",
                    test_each_member_counts_as_work);
    return g_test_run();
}
