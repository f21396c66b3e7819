/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Replacement of the engine of a node of the simulated link.
 */
#include <string.h>
#include "roce-link.h"
#include "rdma/roce-state.h"

static const RdmaQpCap no_limit = {
    .max_send_wr = 1 << 20,
    .max_recv_wr = 1 << 20,
    .max_send_sge = 1 << 28,
    .max_recv_sge = 1 << 28,
    .max_inline_data = 1 << 20,
};

static bool same(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0;
}

static void move_mr(RoceEngine *from, RoceEngine *to, uint32_t mrn)
{
    RoceMrImage image, copy;
    char *why;
    int ret;

    if (roce_export_mr(from, mrn, &image)) {
        return;
    }
    ret = roce_import_mr(to, &image, &why);
    g_assert_cmpstr(why, ==, NULL);
    g_assert_cmpint(ret, ==, 0);
    g_assert_cmpint(roce_export_mr(to, mrn, &copy), ==, 0);
    g_assert_cmpuint(copy.attr.npages, ==, image.attr.npages);
    g_assert_true(same(copy.attr.pages, image.attr.pages,
                       image.attr.npages * sizeof(uint64_t)));
    g_assert_cmpuint(copy.valid, ==, image.valid);
    g_assert_cmpuint(copy.pending, ==, image.pending);
    roce_mr_image_clear(&copy);
    roce_mr_image_clear(&image);
}

static void move_mw(RoceEngine *from, RoceEngine *to, uint32_t mwn)
{
    RoceMwImage image, copy;
    char *why;
    int ret;

    memset(&image, 0, sizeof(image));
    memset(&copy, 0, sizeof(copy));
    if (roce_export_mw(from, mwn, &image)) {
        return;
    }
    ret = roce_import_mw(to, &image, &why);
    g_assert_cmpstr(why, ==, NULL);
    g_assert_cmpint(ret, ==, 0);
    g_assert_cmpint(roce_export_mw(to, mwn, &copy), ==, 0);
    g_assert_cmpuint(copy.attr.type, ==, image.attr.type);
    g_assert_cmphex(copy.attr.rkey, ==, image.attr.rkey);
    g_assert_cmpuint(copy.bound, ==, image.bound);
    g_assert_cmpuint(copy.mrn, ==, image.mrn);
    g_assert_cmpuint(copy.qpn, ==, image.qpn);
    g_assert_cmphex(copy.access, ==, image.access);
    g_assert_cmphex(copy.addr, ==, image.addr);
    g_assert_cmpuint(copy.length, ==, image.length);
}

static void move_srq(RoceEngine *from, RoceEngine *to, uint32_t srqn)
{
    static const RdmaSrqAttr most = { .max_wr = 1 << 20, .max_sge = 1 << 16 };
    RoceSrqImage image, copy;
    char *why;
    int ret;

    if (roce_export_srq(from, srqn, &image)) {
        return;
    }
    ret = roce_import_srq(to, &image, &most, &why);
    g_assert_cmpstr(why, ==, NULL);
    g_assert_cmpint(ret, ==, 0);
    g_assert_cmpint(roce_export_srq(to, srqn, &copy), ==, 0);
    g_assert_true(same(&copy.attr, &image.attr, sizeof(copy.attr)));
    g_assert_cmpuint(copy.n_recv, ==, image.n_recv);
    g_assert_cmpuint(copy.n_recv_sges, ==, image.n_recv_sges);
    g_assert_true(same(copy.recv, image.recv,
                       copy.n_recv * sizeof(*copy.recv)));
    g_assert_true(same(copy.recv_sges, image.recv_sges,
                       copy.n_recv_sges * sizeof(RdmaSge)));
    roce_srq_image_clear(&copy);
    roce_srq_image_clear(&image);
}

static void move_qp(RoceEngine *from, RoceEngine *to, uint32_t qpn)
{
    RoceQpImage image, copy;
    RdmaQpStats stats;
    char *why;
    int ret;

    if (roce_export_qp(from, qpn, &image)) {
        return;
    }
    ret = roce_import_qp(to, &image, &no_limit, &why);
    g_assert_cmpstr(why, ==, NULL);
    g_assert_cmpint(ret, ==, 0);
    g_assert_cmpint(roce_export_qp_stats(from, qpn, &stats), ==, 0);
    g_assert_cmpint(roce_import_qp_stats(to, qpn, &stats), ==, 0);
    g_assert_cmpint(roce_export_qp(to, qpn, &copy), ==, 0);
    g_assert_true(same(&copy.s, &image.s, sizeof(copy.s)));
    g_assert_cmpuint(copy.n_send, ==, image.n_send);
    g_assert_cmpuint(copy.n_send_sges, ==, image.n_send_sges);
    g_assert_cmpuint(copy.inline_len, ==, image.inline_len);
    g_assert_cmpuint(copy.n_pages, ==, image.n_pages);
    g_assert_cmpuint(copy.n_recv, ==, image.n_recv);
    g_assert_cmpuint(copy.n_recv_sges, ==, image.n_recv_sges);
    g_assert_cmpuint(copy.n_res, ==, image.n_res);
    g_assert_true(same(copy.send, image.send,
                       copy.n_send * sizeof(*copy.send)));
    g_assert_true(same(copy.send_sges, image.send_sges,
                       copy.n_send_sges * sizeof(RdmaSge)));
    g_assert_true(same(copy.inline_data, image.inline_data,
                       copy.inline_len));
    g_assert_true(same(copy.pages, image.pages,
                       copy.n_pages * sizeof(uint64_t)));
    g_assert_true(same(copy.recv, image.recv,
                       copy.n_recv * sizeof(*copy.recv)));
    g_assert_true(same(copy.recv_sges, image.recv_sges,
                       copy.n_recv_sges * sizeof(RdmaSge)));
    g_assert_true(same(copy.res, image.res, copy.n_res * sizeof(*copy.res)));
    roce_qp_image_clear(&copy);
    roce_qp_image_clear(&image);
}

static void move_mcast(RoceEngine *from, RoceEngine *to, uint32_t qpn)
{
    uint8_t gids[8][RDMA_GID_LEN];
    uint32_t i, n = roce_get_mcast(from, qpn, gids, G_N_ELEMENTS(gids));

    for (i = 0; i < n; i++) {
        g_assert_cmpint(roce_mcast_attach(to, qpn, gids[i]), ==, 0);
    }
    g_assert_cmpuint(roce_get_mcast(to, qpn, gids, G_N_ELEMENTS(gids)), ==,
                     n);
}

void link_move(LinkNode *n)
{
    RoceEngine *from = n->e;
    RoceEngine *to = roce_new(&link_config, n->link->ops, n);
    uint8_t gid[RDMA_GID_LEN];
    uint16_t vlan;
    uint32_t i;

    roce_set_mac(to, n->mac);
    roce_set_link_mtu(to, n->link_mtu);
    roce_set_extensions(to, n->extensions);
    roce_set_link(to, n->link_up);
    for (i = 0; i < link_config.gid_table_len; i++) {
        if (roce_get_gid(from, i, gid, &vlan)) {
            g_assert_cmpint(roce_add_gid(to, i, gid, vlan), ==, 0);
        }
    }
    for (i = 1; i <= link_config.max_mr; i++) {
        move_mr(from, to, i);
    }
    for (i = 0; i < link_config.max_srq; i++) {
        move_srq(from, to, i);
    }
    for (i = 0; i < link_config.max_qp; i++) {
        move_qp(from, to, i);
        move_mcast(from, to, i);
    }
    for (i = 1; i <= link_config.max_mr; i++) {
        move_mw(from, to, i);
    }
    roce_import_stats(to, roce_stats(from));
    /* From here on, nothing may use the old engine. */
    roce_free(from);
    n->e = to;
}

void link_step(RoceLink *l)
{
    if (l->moves &&
        (unsigned)g_rand_int_range(l->rand, 0, 10000) < l->moves) {
        link_move(&l->node[g_rand_int_range(l->rand, 0, 2)]);
    }
}
