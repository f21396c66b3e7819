/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames from and to wrong addresses: frames to other ports, and frames that a
 * third party forges, which knows all addresses of a connection, but not its
 * PSNs.
 */
#include <string.h>
#include "roce-link.h"
#include "../../backends/rdma/roce/wire/wire.h"

#define ROUNDS 150
#define FORGED 12

static const uint8_t group_mac[RDMA_MAC_LEN] = { 1, 0, 0x5e, 1, 2, 3 };
static const uint8_t broadcast[RDMA_MAC_LEN] = {
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};
static const uint8_t group[RDMA_GID_LEN] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3,
};

static RocePath path_between(const LinkNode *from, const LinkNode *to)
{
    RocePath path = { .is_ipv4 = true, .udp_sport = 0xc001 };

    memcpy(path.dmac, to->mac, RDMA_MAC_LEN);
    memcpy(path.smac, from->mac, RDMA_MAC_LEN);
    memcpy(path.sgid, from->gid4, RDMA_GID_LEN);
    memcpy(path.dgid, to->gid4, RDMA_GID_LEN);
    return path;
}

/* A frame, with 8 bytes of payload if its opcode may have any */
static size_t make_frame(const RocePath *path, const RoceBth *bth,
                         uint8_t *frame)
{
    static uint8_t payload[8];
    struct iovec iov = { payload, sizeof(payload) };
    size_t hdr_len, n = 0;

    if (roce_opcode_info(bth->opcode)->flags & ROCE_OP_PAYLOAD) {
        n = sizeof(payload);
    }
    iov.iov_len = n;
    hdr_len = roce_build(frame, path, bth, n);
    memcpy(frame + hdr_len, payload, n);
    return hdr_len + n + roce_icrc_trailer(frame, hdr_len, true, &iov, 1,
                                           frame + hdr_len + n);
}

/* MAC addresses */

typedef struct Ud {
    LinkPair p;
    RocePath path;
    RoceBth bth;
    uint64_t dropped;
} Ud;

static Ud ud_new(void)
{
    LinkQpSpec spec = link_spec();
    Ud u;

    spec.type = RDMA_QPT_UD;
    u.p = link_pair(&spec);
    u.path = path_between(u.p.a, u.p.b);
    u.bth = (RoceBth) {
        .opcode = ROCE_UD | ROCE_SEND_ONLY,
        .pkey = RDMA_DEFAULT_PKEY,
        .dqpn = u.p.bq,
        .deth = { .qkey = 0x1234, .sqpn = u.p.aq },
    };
    u.dropped = 0;
    return u;
}

/* Is the datagram accepted? roce_is_ours() and roce_rx() must agree. */
static bool is_accepted(Ud *u)
{
    LinkPair *p = &u->p;
    uint8_t frame[ROCE_MAX_FRAME];
    size_t len = make_frame(&u->path, &u->bth, frame);
    bool ours = roce_is_ours(p->b->e, frame, len);

    link_pair_recv(p, 7, 0, 100);
    link_inject(p->l, 1, frame, len);
    u->dropped += !ours;
    g_assert_cmpuint(roce_stats(p->b->e)->rx_dropped, ==, u->dropped);
    g_assert_cmpuint(link_wcs(p->b), ==, ours);
    if (ours) {
        link_expect(p->b, 7, RDMA_WC_SUCCESS);
    }
    return ours;
}

static void test_unicast_to_own_mac_only(void)
{
    Ud u = ud_new();

    g_assert_true(is_accepted(&u));
    for (unsigned i = 0; i < RDMA_MAC_LEN; i++) {
        u.path.dmac[i] ^= 1;
        g_assert_false(is_accepted(&u));
        u.path.dmac[i] ^= 1;
    }
    memcpy(u.path.dmac, u.p.a->mac, RDMA_MAC_LEN);
    g_assert_false(is_accepted(&u));
    memcpy(u.path.dmac, broadcast, RDMA_MAC_LEN);
    g_assert_false(is_accepted(&u));
    memcpy(u.path.dmac, group_mac, RDMA_MAC_LEN);
    g_assert_false(is_accepted(&u));
    memset(u.path.dmac, 0, RDMA_MAC_LEN);
    g_assert_false(is_accepted(&u));
    link_pair_free(&u.p);
}

/*
 * A frame without an ICRC must have the same MAC addresses and GIDs as another.
 */
static void test_unchecked_to_own_addresses_only(void)
{
    Ud u = ud_new();
    RoceEngine *e = u.p.b->e;
    uint8_t frame[ROCE_MAX_FRAME];
    size_t len = make_frame(&u.path, &u.bth, frame);

    memset(frame + len - ROCE_ICRC_LEN, 0, ROCE_ICRC_LEN);
    link_pair_recv(&u.p, 7, 0, 100);
    roce_rx(e, frame, len, 0);
    g_assert_cmpuint(roce_stats(e)->rx_icrc_errors, ==, 1);
    g_assert_cmpuint(link_wcs(u.p.b), ==, 0);
    roce_rx_unchecked(e, frame, len, 0);
    g_assert_cmpuint(roce_stats(e)->rx_icrc_errors, ==, 1);
    link_expect(u.p.b, 7, RDMA_WC_SUCCESS);

    link_pair_recv(&u.p, 8, 0, 100);
    u.path.dgid[15] ^= 0x40;
    len = make_frame(&u.path, &u.bth, frame);
    roce_rx_unchecked(e, frame, len, 0);
    u.path.dgid[15] ^= 0x40;
    u.path.dmac[5] ^= 0x40;
    len = make_frame(&u.path, &u.bth, frame);
    roce_rx_unchecked(e, frame, len, 0);
    g_assert_cmpuint(roce_stats(e)->rx_dropped, ==, 2);
    g_assert_cmpuint(link_wcs(u.p.b), ==, 0);
    link_pair_free(&u.p);
}

static void test_mac_that_changes(void)
{
    Ud u = ud_new();
    uint8_t mac[RDMA_MAC_LEN];

    memcpy(mac, u.p.b->mac, RDMA_MAC_LEN);
    mac[5] ^= 0x40;
    roce_set_mac(u.p.b->e, mac);
    g_assert_false(is_accepted(&u));
    memcpy(u.path.dmac, mac, RDMA_MAC_LEN);
    g_assert_true(is_accepted(&u));
    link_pair_free(&u.p);
}

static void test_mac_of_the_nic(void)
{
    Ud u = ud_new();
    uint8_t mac[RDMA_MAC_LEN];

    memcpy(mac, u.p.b->mac, RDMA_MAC_LEN);
    mac[5] ^= 0x40;
    roce_set_nic_mac(u.p.b->e, mac);
    g_assert_true(is_accepted(&u));
    memcpy(u.path.dmac, mac, RDMA_MAC_LEN);
    g_assert_true(is_accepted(&u));
    /* roce_set_mac() also replaces the MAC address of the NIC. */
    roce_set_mac(u.p.b->e, u.p.b->mac);
    g_assert_false(is_accepted(&u));
    link_pair_free(&u.p);
}

static void test_multicast_to_multicast_mac_only(void)
{
    Ud u = ud_new();

    g_assert_cmpint(roce_mcast_attach(u.p.b->e, u.p.bq, group), ==, 0);
    memcpy(u.path.dgid, group, RDMA_GID_LEN);
    u.bth.dqpn = RDMA_QPN_MCAST;
    g_assert_false(is_accepted(&u));
    memcpy(u.path.dmac, group_mac, RDMA_MAC_LEN);
    g_assert_true(is_accepted(&u));
    link_pair_free(&u.p);
}

/* Source addresses */

/* Check the source GID of each frame of node 0, which must be in its table. */
static bool check_source_gid(RoceLink *l, unsigned from, const uint8_t *frame,
                             size_t len, void *opaque)
{
    bool ipv4 = frame[12] == 0x08 && frame[13] == 0;

    if (from == 0) {
        ++*(unsigned *)opaque;
        g_assert_cmpmem(frame + 6, RDMA_MAC_LEN, l->node[0].mac, RDMA_MAC_LEN);
        if (ipv4) {
            g_assert_cmpmem(frame + 26, 4, l->node[0].gid4 + 12, 4);
        } else {
            g_assert_cmpmem(frame + 22, RDMA_GID_LEN, l->node[0].gid6,
                            RDMA_GID_LEN);
        }
    }
    return true;
}

static void post_datagram(LinkPair *p, unsigned sgid_index, bool ipv6)
{
    RdmaSge sge = link_sge(p->amr, 0, 100);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 1, &sge);

    wr.wr.ud.remote_qpn = p->bq;
    wr.wr.ud.remote_qkey = 0x1234;
    wr.wr.ud.av = link_av(p->a, p->b, ipv6);
    wr.wr.ud.av.sgid_index = sgid_index;
    link_post(p->a, p->aq, &wr);
    g_assert_true(link_run(p->l, LINK_FOREVER));
}

/*
 * A datagram's WR selects the source GID by its index; any index is possible.
 */
static void test_datagrams_from_own_gids_only(void)
{
    LinkQpSpec spec = link_spec();
    unsigned frames = 0;
    LinkPair p;

    spec.type = RDMA_QPT_UD;
    p = link_pair(&spec);
    p.l->filter = check_source_gid;
    p.l->filter_opaque = &frames;
    for (unsigned i = 0; i < 300; i++) {
        unsigned before = frames;

        post_datagram(&p, i & 0xff, i & 1);
        g_assert_cmpuint(frames - before, ==, (i & 0xff) < 2);
        while (link_wcs(p.a)) {
            link_wc(p.a);
        }
        if (link_state(p.a, p.aq) == RDMA_QPS_SQE) {
            link_modify(p.a, p.aq, RDMA_QPS_RTS);
        }
    }
    /* A path from an IPv4 to an IPv6 address, and the reverse */
    frames = 0;
    post_datagram(&p, 0, true);
    post_datagram(&p, 1, false);
    g_assert_cmpuint(frames, ==, 0);
    link_pair_free(&p);
}

/* A connection whose GID was deleted sends nothing. */
static void test_nothing_from_a_deleted_gid(void)
{
    LinkQpSpec spec = link_spec();
    unsigned frames = 0;
    LinkPair p;

    spec.retry_cnt = 1;
    spec.timeout = 5;
    p = link_pair(&spec);
    p.l->filter = check_source_gid;
    p.l->filter_opaque = &frames;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 0, 5000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    g_assert_cmpuint(frames, ==, 5);

    g_assert_cmpint(roce_del_gid(p.a->e, 0), ==, 0);
    frames = 0;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 2, 0, 5000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 2, RDMA_WC_RETRY_EXC_ERR);
    g_assert_cmpuint(frames, ==, 0);
    link_pair_free(&p);
}

/* A third party that forges frames */

static uint8_t opcode_of(GRand *rand, bool request)
{
    for (;;) {
        uint8_t opcode = ROCE_RC | g_rand_int_range(rand, 0, 0x20);
        const RoceOpcodeInfo *info = roce_opcode_info(opcode);

        if (info && !(info->flags & ROCE_OP_REQUEST) == !request) {
            return opcode;
        }
    }
}

/*
 * Inject a frame with the addresses of a connection and a wrong PSN: up to a
 * quarter of the PSN range before or after the first PSN of the connection,
 * which does not send so many packets.
 */
static void inject_forged_frame(LinkPair *p, GRand *rand,
                                const LinkQpSpec *spec, bool to_b,
                                bool request)
{
    LinkNode *from = to_b ? p->a : p->b;
    LinkNode *to = to_b ? p->b : p->a;
    RocePath path = path_between(from, to);
    /* Responses have the PSNs of the requester, as requests do. */
    uint32_t psn = spec->psn[to_b == request ? 0 : 1];
    uint32_t off = g_rand_int_range(rand, 1 << 21, 1 << 22);
    LinkMr *mr = to_b ? p->bmr : p->amr;
    uint8_t frame[ROCE_MAX_FRAME];
    RoceBth bth = {
        .opcode = opcode_of(rand, request),
        .pkey = RDMA_DEFAULT_PKEY,
        .dqpn = to_b ? p->bq : p->aq,
        .psn = (g_rand_boolean(rand) ? psn + off : psn - off) &
               RDMA_24BIT_MASK,
        .ack_req = g_rand_boolean(rand),
        .reth = {
            .va = mr->attr.iova,
            .rkey = mr->attr.rkey,
            .len = sizeof(uint64_t),
        },
        .aeth = {
            .syndrome = g_rand_int_range(rand, 0, 256),
            .msn = g_rand_int_range(rand, 0, 1 << 24),
        },
    };

    bth.atomiceth.va = mr->attr.iova;
    bth.atomiceth.rkey = mr->attr.rkey;
    bth.ieth = mr->attr.rkey;
    link_inject(p->l, to_b, frame, make_frame(&path, &bth, frame));
}

/*
 * Forged requests, READ responses, ACKs and NAKs with any syndrome arrive
 * during traffic in both directions. None is executed, completes a request or
 * ends the connection.
 */
static void test_third_party_without_psn(gconstpointer data)
{
    static const uint32_t opcodes[] = {
        RDMA_WR_SEND, RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ,
    };
    GRand *rand = g_rand_new_with_seed(GPOINTER_TO_UINT(data));
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);

    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t opcode = opcodes[i % G_N_ELEMENTS(opcodes)];
        uint8_t before[2][64], after[2][64];

        link_fill(p.amr, i);
        link_fill(p.bmr, ~i);
        /* The memory that the forged frames address */
        link_read(p.amr, 0, before[0], sizeof(before[0]));
        link_read(p.bmr, 0, before[1], sizeof(before[1]));
        if (opcode == RDMA_WR_SEND) {
            link_pair_recv(&p, 1000 + i, 8192, 6000);
        }
        link_pair_post(&p, opcode, i, 8192, 6000);
        for (unsigned j = 0; j < FORGED; j++) {
            inject_forged_frame(&p, rand, &spec, g_rand_boolean(rand),
                                g_rand_boolean(rand));
            link_run(p.l, LINK_DELAY / 3);
        }
        g_assert_true(link_run(p.l, LINK_FOREVER));
        link_expect(p.a, i, RDMA_WC_SUCCESS);
        if (opcode == RDMA_WR_SEND) {
            link_expect(p.b, 1000 + i, RDMA_WC_SUCCESS);
        }
        g_assert_true(link_same(p.amr, 8192, p.bmr, 8192, 6000));
        link_read(p.amr, 0, after[0], sizeof(after[0]));
        link_read(p.bmr, 0, after[1], sizeof(after[1]));
        g_assert_cmpmem(before, sizeof(before), after, sizeof(after));
    }
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_RTS);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
    g_assert_cmpuint(roce_stats(p.a->e)->timeouts, ==, 0);
    g_assert_cmpuint(p.a->atomics + p.b->atomics, ==, 0);
    g_rand_free(rand);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/address/unicast-to-own-mac-only",
                    test_unicast_to_own_mac_only);
    g_test_add_func("/roce/address/mac-that-changes", test_mac_that_changes);
    g_test_add_func("/roce/address/unchecked-to-own-addresses-only",
                    test_unchecked_to_own_addresses_only);
    g_test_add_func("/roce/address/mac-of-the-nic", test_mac_of_the_nic);
    g_test_add_func("/roce/address/multicast-to-multicast-mac-only",
                    test_multicast_to_multicast_mac_only);
    g_test_add_func("/roce/address/datagrams-from-own-gids-only",
                    test_datagrams_from_own_gids_only);
    g_test_add_func("/roce/address/nothing-from-a-deleted-gid",
                    test_nothing_from_a_deleted_gid);
    for (unsigned i = 1; i <= 8; i++) {
        g_autofree char *name =
            g_strdup_printf("/roce/address/third-party-without-psn/%u", i);

        g_test_add_data_func(name, GUINT_TO_POINTER(i),
                             test_third_party_without_psn);
    }
    return g_test_run();
}
