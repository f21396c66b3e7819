/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Building and parsing of each opcode, and parsing of frames with one error
 * each.
 */
#include <glib.h>
#include "../../backends/rdma/roce/wire/wire.h"

static const RocePath path_ipv4 = {
    .dmac = { 0x52, 0x54, 0, 0, 0, 2 },
    .smac = { 0x52, 0x54, 0, 0, 0, 1 },
    .sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
    .dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
    .is_ipv4 = true,
    .traffic_class = 0xb9,
    .hop_limit = 3,
    .udp_sport = 0xc123,
};

static const RocePath path_ipv6 = {
    .dmac = { 0x52, 0x54, 0, 0, 0, 2 },
    .smac = { 0x52, 0x54, 0, 0, 0, 1 },
    .sgid = { 0xfd, [15] = 1 },
    .dgid = { 0xfd, [15] = 2 },
    .traffic_class = 0xb9,
    .hop_limit = 255,
    .flow_label = 0xfedcb,
    .udp_sport = 0xffff,
};

static const RocePath path_vlan_ipv4 = {
    .dmac = { 0x52, 0x54, 0, 0, 0, 2 },
    .smac = { 0x52, 0x54, 0, 0, 0, 1 },
    .sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
    .dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
    .vlan = 2748,
    .pcp = 7,
    .is_ipv4 = true,
    .hop_limit = 1,
    .udp_sport = 0xc001,
};

static const RocePath path_vlan_ipv6 = {
    .dmac = { 0x33, 0x33, 0, 0, 0, 2 },
    .smac = { 0x52, 0x54, 0, 0, 0, 1 },
    .sgid = { 0xfd, [15] = 1 },
    .dgid = { 0xff, 0x0e, [15] = 2 },
    .vlan = 1,
    .pcp = 0,
    .hop_limit = 64,
    .udp_sport = 0xc000,
};

/*
 * All fields are set; the parser must clear those that the opcode does not
 * have.
 */
static const RoceBth bth_full = {
    .se = true,
    .migreq = true,
    .ack_req = true,
    .fecn = true,
    .becn = true,
    .pkey = 0x8123,
    .dqpn = 0xfedcba,
    .psn = 0xabcdef,
    .reth = { 0x0123456789abcdef, 0xdeadbeef, 0x80000000 },
    .atomiceth = { 0xfedcba9876543210, 0x1122334455667788,
                   0x99aabbccddeeff00, 0xcafebabe },
    .aeth = { 0x7f, 0x987654 },
    .atomic_ack = 0x5555aaaa12345678,
    .deth = { 0x80010000, 0xffffff },
    .imm = { 1, 2, 3, 4 },
    .ieth = 0x0badcafe,
    .feth = 0x00c0ff11,
};

/* A whole frame in its own allocation, so that ASan detects overruns */
static uint8_t *make_frame(const RocePath *path, const RoceBth *bth,
                           const void *payload, size_t payload_len,
                           size_t *len)
{
    struct iovec iov = { (void *)payload, payload_len };
    uint8_t hdr[ROCE_MAX_HDR], trailer[ROCE_MAX_TRAILER];
    size_t hdr_len = roce_build(hdr, path, bth, payload_len);
    size_t trailer_len = roce_icrc_trailer(hdr, hdr_len, path->is_ipv4,
                                           &iov, 1, trailer);
    uint8_t *frame;

    *len = hdr_len + payload_len + trailer_len;
    frame = g_malloc(*len);
    memcpy(frame, hdr, hdr_len);
    if (payload_len) {
        memcpy(frame + hdr_len, payload, payload_len);
    }
    memcpy(frame + hdr_len + payload_len, trailer, trailer_len);
    return frame;
}

static void assert_bth_equal(const RoceBth *got, const RoceBth *put,
                             uint32_t flags)
{
    static const RoceBth none;
    const RoceBth *w;

    g_assert_cmphex(got->opcode, ==, put->opcode);
    g_assert_true(got->se == put->se);
    g_assert_true(got->migreq == put->migreq);
    g_assert_true(got->ack_req == put->ack_req);
    g_assert_cmphex(got->pkey, ==, put->pkey);
    g_assert_cmphex(got->dqpn, ==, put->dqpn);
    g_assert_cmphex(got->psn, ==, put->psn);

    w = flags & ROCE_OP_RETH ? put : &none;
    g_assert_cmphex(got->reth.va, ==, w->reth.va);
    g_assert_cmphex(got->reth.rkey, ==, w->reth.rkey);
    g_assert_cmphex(got->reth.len, ==, w->reth.len);
    w = flags & ROCE_OP_ATOMICETH ? put : &none;
    g_assert_cmphex(got->atomiceth.va, ==, w->atomiceth.va);
    g_assert_cmphex(got->atomiceth.rkey, ==, w->atomiceth.rkey);
    g_assert_cmphex(got->atomiceth.swap_add, ==, w->atomiceth.swap_add);
    g_assert_cmphex(got->atomiceth.compare, ==, w->atomiceth.compare);
    w = flags & ROCE_OP_AETH ? put : &none;
    g_assert_cmphex(got->aeth.syndrome, ==, w->aeth.syndrome);
    g_assert_cmphex(got->aeth.msn, ==, w->aeth.msn);
    w = flags & ROCE_OP_ATOMICACK ? put : &none;
    g_assert_cmphex(got->atomic_ack, ==, w->atomic_ack);
    w = flags & ROCE_OP_DETH ? put : &none;
    g_assert_cmphex(got->deth.qkey, ==, w->deth.qkey);
    g_assert_cmphex(got->deth.sqpn, ==, w->deth.sqpn);
    w = flags & ROCE_OP_IMM ? put : &none;
    g_assert_cmpmem(got->imm, 4, w->imm, 4);
    w = flags & ROCE_OP_IETH ? put : &none;
    g_assert_cmphex(got->ieth, ==, w->ieth);
    w = flags & ROCE_OP_FETH ? put : &none;
    g_assert_cmphex(got->feth, ==, w->feth);
}

static void assert_path_equal(const RocePath *got, const RocePath *put)
{
    g_assert_cmpmem(got->dmac, 6, put->dmac, 6);
    g_assert_cmpmem(got->smac, 6, put->smac, 6);
    g_assert_cmpmem(got->sgid, 16, put->sgid, 16);
    g_assert_cmpmem(got->dgid, 16, put->dgid, 16);
    g_assert_cmpuint(got->vlan, ==, put->vlan);
    g_assert_cmpuint(got->pcp, ==, put->pcp);
    g_assert_true(got->is_ipv4 == put->is_ipv4);
    g_assert_cmphex(got->traffic_class, ==, put->traffic_class);
    g_assert_cmphex(got->hop_limit, ==, put->hop_limit);
    g_assert_cmphex(got->flow_label, ==, put->flow_label);
    g_assert_cmphex(got->udp_sport, ==, put->udp_sport);
}

typedef void (*OpcodeFn)(const RocePath *path, const RoceBth *bth,
                         const RoceOpcodeInfo *info);

static void for_every_opcode(OpcodeFn fn)
{
    unsigned op;

    for (op = 0; op < 256; op++) {
        const RoceOpcodeInfo *info = roce_opcode_info(op);
        RoceBth bth = bth_full;

        if (!info) {
            continue;
        }
        bth.opcode = op;
        fn(&path_ipv4, &bth, info);
        fn(&path_ipv6, &bth, info);
        fn(&path_vlan_ipv4, &bth, info);
        fn(&path_vlan_ipv6, &bth, info);
    }
}

static void round_trip(const RocePath *path, const RoceBth *bth,
                       const RoceOpcodeInfo *info)
{
    static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 255, 1024, 4093, 4096 };
    uint8_t payload[ROCE_MAX_PAYLOAD];
    unsigned i;

    memset(payload, 0x5a, sizeof(payload));
    for (i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree uint8_t *frame = NULL;
        uint8_t dgid[RDMA_GID_LEN];
        RocePacket pkt;
        uint16_t vlan;
        size_t len;

        if (sizes[i] && !(info->flags & ROCE_OP_PAYLOAD)) {
            break;
        }
        frame = make_frame(path, bth, payload, sizes[i], &len);
        g_assert_cmpint(roce_parse(frame, len, &pkt), ==, ROCE_PARSE_OK);
        g_assert_true(pkt.info == info);
        g_assert_true(pkt.l3 == pkt.hdr + (path->vlan ? 18 : 14));
        g_assert_true(pkt.payload == frame + (len - sizes[i] - pkt.bth.pad -
                                              ROCE_ICRC_LEN));
        assert_path_equal(&pkt.path, path);
        assert_bth_equal(&pkt.bth, bth, info->flags);
        g_assert_cmpuint(pkt.bth.pad, ==, -sizes[i] & 3);
        g_assert_cmpmem(pkt.payload, pkt.payload_len, payload, sizes[i]);
        g_assert_true(roce_icrc_ok(&pkt));

        g_assert_true(roce_peek(frame, path->vlan ? 62 : 58, dgid, &vlan));
        g_assert_cmpmem(dgid, 16, path->dgid, 16);
        g_assert_cmpuint(vlan, ==, path->vlan);
    }
}

static void test_every_opcode_round_trips(void)
{
    for_every_opcode(round_trip);
}

static void test_opcode_table(void)
{
    unsigned op, n = 0;

    for (op = 0; op < 256; op++) {
        const RoceOpcodeInfo *info = roce_opcode_info(op);
        uint32_t f;

        if (!info) {
            continue;
        }
        n++;
        f = info->flags;
        g_assert_cmphex(info->transport, ==, op & 0xe0);
        g_assert_cmpint(!!(f & ROCE_OP_REQUEST) + !!(f & ROCE_OP_RESPONSE) +
                        !!(f & ROCE_OP_CNP), ==, 1);
        f &= ROCE_OP_STARTS | ROCE_OP_ENDS | ROCE_OP_MIDDLE;
        g_assert_true(f && !(f & (f - 1)));
        g_assert_cmpuint(info->hdr_len % 4, ==, 0);
    }
    /*
     * RC 0x00..0x14, 0x16, 0x17, 0x1c, 0x1d; UC 0x20..0x2b; UD 0x64, 0x65; CNP
     * 0x81
     */
    g_assert_cmpuint(n, ==, 25 + 12 + 2 + 1);

    /* Headers with several extended headers */
    g_assert_cmpuint(roce_opcodes[0x0b].hdr_len, ==, 12 + 16 + 4);
    g_assert_cmpuint(roce_opcodes[0x13].hdr_len, ==, 12 + 28);
    g_assert_cmpuint(roce_opcodes[0x12].hdr_len, ==, 12 + 4 + 8);
    g_assert_cmpuint(roce_opcodes[0x65].hdr_len, ==, 12 + 8 + 4);
    g_assert_cmpuint(roce_opcodes[0x1c].hdr_len, ==, 12 + 4 + 16);
    g_assert_cmpuint(roce_opcodes[0x1d].hdr_len, ==, 12 + 16);
    g_assert_cmpuint(roce_opcodes[0x81].hdr_len, ==, 12 + 16);

    /* Reserved opcodes, and those of RD, XRC and vendors */
    g_assert_null(roce_opcode_info(0x15));
    g_assert_null(roce_opcode_info(0x18));
    g_assert_null(roce_opcode_info(0x3c));
    g_assert_null(roce_opcode_info(0x7d));
    g_assert_null(roce_opcode_info(0x2c));
    g_assert_null(roce_opcode_info(0x31));
    g_assert_null(roce_opcode_info(0x44));
    g_assert_null(roce_opcode_info(0x60));
    g_assert_null(roce_opcode_info(0x80));
    g_assert_null(roce_opcode_info(0x82));
    g_assert_null(roce_opcode_info(0xa4));
    g_assert_null(roce_opcode_info(0xff));
}

/* Cut the frame at each length, in memory and in its length fields. */
static void truncate(const RocePath *path, const RoceBth *bth,
                     const RoceOpcodeInfo *info)
{
    static const uint8_t payload[40];
    size_t payload_len = info->flags & ROCE_OP_PAYLOAD ? 37 : 0;
    g_autofree uint8_t *frame = NULL;
    size_t l3 = path->vlan ? 18 : 14;
    size_t l4 = l3 + (path->is_ipv4 ? 20 : 40);
    size_t full, len;

    frame = make_frame(path, bth, payload, payload_len, &full);

    for (len = 0; len < full; len++) {
        g_autofree uint8_t *cut = g_memdup2(frame, len);
        RocePacket pkt;

        g_assert_cmpint(roce_parse(cut, len, &pkt), !=, ROCE_PARSE_OK);
    }

    for (len = l4 + 8; len < full; len++) {
        g_autofree uint8_t *cut = g_memdup2(frame, len);
        RocePacket pkt;
        RoceParse ret;

        if (path->is_ipv4) {
            uint32_t sum = 0;
            unsigned i;

            cut[l3 + 2] = (len - l3) >> 8;
            cut[l3 + 3] = len - l3;
            cut[l3 + 10] = cut[l3 + 11] = 0;
            for (i = l3; i < l4; i += 2) {
                sum += cut[i] << 8 | cut[i + 1];
            }
            sum = ~((sum & 0xffff) + (sum >> 16));
            cut[l3 + 10] = sum >> 8;
            cut[l3 + 11] = sum;
        } else {
            cut[l3 + 4] = (len - l4) >> 8;
            cut[l3 + 5] = len - l4;
        }
        cut[l4 + 4] = (len - l4) >> 8;
        cut[l4 + 5] = len - l4;

        ret = roce_parse(cut, len, &pkt);
        if (ret == ROCE_PARSE_OK) {
            /* If it parses, it is complete except for the ICRC. */
            g_assert_cmpuint((full - len) % 4, ==, 0);
            g_assert_true(pkt.payload + pkt.payload_len + pkt.bth.pad +
                          ROCE_ICRC_LEN == cut + len);
            g_assert_false(roce_icrc_ok(&pkt));
        } else {
            g_assert_cmpint(ret, ==, ROCE_PARSE_MALFORMED);
        }
    }
}

static void test_truncated_frames_are_refused(void)
{
    for_every_opcode(truncate);
}

/*
 * May bit @bit of @byte change without a wrong ICRC? Routers may change some
 * fields; any other flipped bit must fail to parse or make the ICRC wrong.
 */
static bool bit_may_change(size_t byte, unsigned bit, const RocePath *path)
{
    bool is_ipv4 = path->is_ipv4;
    size_t l4 = is_ipv4 ? 34 : 54;

    if (byte < 12) {
        return true;                            /* MAC addresses */
    }
    if (path->vlan && byte < 18) {
        return byte == 14 || byte == 15;        /* the VLAN tag */
    }
    if (path->vlan) {
        byte -= 4;
    }
    if (!is_ipv4 && byte == 14) {
        return bit < 4;                         /* traffic class */
    }
    if (!is_ipv4 && (byte < 18 || byte == 21)) {
        return byte >= 15;                      /* flow label, hop limit */
    }
    return byte == l4 + 6 || byte == l4 + 7 ||  /* UDP checksum */
           byte == l4 + 8 + 4;                  /* FECN, BECN */
}

static void flip(const RocePath *path, const RoceBth *bth,
                 const RoceOpcodeInfo *info)
{
    static const uint8_t payload[12];
    size_t payload_len = info->flags & ROCE_OP_PAYLOAD ? 11 : 0;
    g_autofree uint8_t *frame = NULL;
    size_t len, i;

    frame = make_frame(path, bth, payload, payload_len, &len);
    for (i = 0; i < len * 8; i++) {
        RocePacket pkt;
        bool ok;

        frame[i / 8] ^= 1 << i % 8;
        ok = roce_parse(frame, len, &pkt) == ROCE_PARSE_OK &&
             roce_icrc_ok(&pkt);
        g_assert_true(ok == bit_may_change(i / 8, i % 8, path));
        frame[i / 8] ^= 1 << i % 8;
    }
}

static void test_a_flipped_bit_does_not_pass(void)
{
    for_every_opcode(flip);
}

static void test_ethernet_padding_is_ignored(void)
{
    RoceBth bth = { .opcode = ROCE_UC | ROCE_SEND_ONLY };
    uint8_t padded[100] = { 0 };
    g_autofree uint8_t *frame = NULL;
    RocePacket pkt;
    size_t len;

    frame = make_frame(&path_ipv4, &bth, NULL, 0, &len);
    g_assert_cmpuint(len, ==, 58);
    memcpy(padded, frame, len);
    memset(padded + len, 0xee, 2);
    g_assert_cmpint(roce_parse(padded, 60, &pkt), ==, ROCE_PARSE_OK);
    g_assert_true(roce_icrc_ok(&pkt));
    g_assert_cmpuint(pkt.payload_len, ==, 0);
    g_assert_cmpint(roce_parse(padded, 100, &pkt), ==, ROCE_PARSE_OK);
}

/* Other CPUs of a guest may change a frame that is in its memory. */
static void test_headers_that_change_are_read_once(void)
{
    RoceBth bth = { .opcode = ROCE_RC | ROCE_WRITE_ONLY };
    static const uint8_t payload[256] = { 1 };
    g_autofree uint8_t *frame = NULL;
    uint8_t grh[ROCE_GRH_LEN];
    RocePacket pkt;
    size_t len;

    frame = make_frame(&path_ipv6, &bth, payload, sizeof(payload), &len);
    g_assert_cmpint(roce_parse(frame, len, &pkt), ==, ROCE_PARSE_OK);
    memset(frame, 0xff, roce_headers_len(false, bth.opcode));
    g_assert_true(roce_icrc_ok(&pkt));
    roce_grh(&pkt, grh);
    g_assert_cmpint(grh[0] >> 4, ==, 6);
}

static void test_hop_limit_has_a_default(void)
{
    const RocePath *paths[] = { &path_ipv4, &path_ipv6 };
    RoceBth bth = { .opcode = ROCE_RC | ROCE_ACKNOWLEDGE };
    unsigned i;

    for (i = 0; i < 2; i++) {
        RocePath path = *paths[i];
        g_autofree uint8_t *frame = NULL;
        RocePacket pkt;
        size_t len;

        path.hop_limit = 0;
        frame = make_frame(&path, &bth, NULL, 0, &len);
        g_assert_cmpint(roce_parse(frame, len, &pkt), ==, ROCE_PARSE_OK);
        g_assert_cmpuint(pkt.path.hop_limit, ==, ROCE_DEFAULT_HOP_LIMIT);
    }
}

static void test_grh_is_where_software_looks(void)
{
    RoceBth bth = { .opcode = ROCE_UD | ROCE_SEND_ONLY };
    g_autofree uint8_t *f4 = NULL;
    g_autofree uint8_t *f6 = NULL;
    uint8_t grh[ROCE_GRH_LEN], zero[20] = { 0 };
    RocePacket pkt;
    size_t len;

    f4 = make_frame(&path_ipv4, &bth, NULL, 0, &len);
    g_assert_cmpint(roce_parse(f4, len, &pkt), ==, ROCE_PARSE_OK);
    memset(grh, 0x77, sizeof(grh));
    roce_grh(&pkt, grh);
    g_assert_cmpmem(grh, 20, zero, 20);
    g_assert_cmpmem(grh + 20, 20, f4 + 14, 20);

    f6 = make_frame(&path_ipv6, &bth, NULL, 0, &len);
    g_assert_cmpint(roce_parse(f6, len, &pkt), ==, ROCE_PARSE_OK);
    roce_grh(&pkt, grh);
    g_assert_cmpmem(grh, 40, f6 + 14, 40);
}

static void test_gid_kinds(void)
{
    const uint8_t ip[4] = { 224, 1, 2, 3 }, ip2[4] = { 10, 0, 0, 1 };
    const uint8_t any[4] = { 0 };
    uint8_t gid[RDMA_GID_LEN];
    uint8_t mc6[RDMA_GID_LEN] = { 0xff, 0x02, [12] = 1, 2, 3, 4 };
    uint8_t zero[RDMA_GID_LEN] = { 0 };

    roce_gid_from_ipv4(gid, ip);
    g_assert_true(rdma_gid_is_ipv4(gid));
    g_assert_true(rdma_gid_is_multicast(gid));
    roce_gid_from_ipv4(gid, ip2);
    g_assert_false(rdma_gid_is_multicast(gid));
    g_assert_false(roce_gid_is_zero(gid));
    roce_gid_from_ipv4(gid, any);
    g_assert_true(roce_gid_is_zero(gid));

    g_assert_false(rdma_gid_is_ipv4(mc6));
    g_assert_true(rdma_gid_is_multicast(mc6));
    g_assert_false(rdma_gid_is_multicast(path_ipv6.sgid));
    g_assert_true(roce_gid_is_zero(zero));
}

static void test_udp_ports_spread_the_flows(void)
{
    g_autoptr(GHashTable) ports = g_hash_table_new(NULL, NULL);
    uint32_t qpn;

    for (qpn = 16; qpn < 16 + 256; qpn++) {
        uint16_t port = roce_udp_sport(0, qpn, qpn);

        g_assert_cmphex(port, >=, 0xc000);
        g_assert_cmphex(port, ==, roce_udp_sport(0, qpn, qpn));
        g_hash_table_add(ports, GUINT_TO_POINTER(port));
    }
    /* 256 random values of 16384 ports have about two collisions. */
    g_assert_cmpuint(g_hash_table_size(ports), >, 240);
    g_assert_cmphex(roce_udp_sport(1, 17, 18), !=, roce_udp_sport(2, 17, 18));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);

    g_test_add_func("/wire/codec/opcode-table", test_opcode_table);
    g_test_add_func("/wire/codec/every-opcode-round-trips",
                    test_every_opcode_round_trips);
    g_test_add_func("/wire/codec/truncated-frames-are-refused",
                    test_truncated_frames_are_refused);
    g_test_add_func("/wire/codec/a-flipped-bit-does-not-pass",
                    test_a_flipped_bit_does_not_pass);
    g_test_add_func("/wire/codec/ethernet-padding-is-ignored",
                    test_ethernet_padding_is_ignored);
    g_test_add_func("/wire/codec/headers-that-change-are-read-once",
                    test_headers_that_change_are_read_once);
    g_test_add_func("/wire/codec/hop-limit-has-a-default",
                    test_hop_limit_has_a_default);
    g_test_add_func("/wire/codec/grh-is-where-software-looks",
                    test_grh_is_where_software_looks);
    g_test_add_func("/wire/codec/gid-kinds", test_gid_kinds);
    g_test_add_func("/wire/codec/udp-ports-spread-the-flows",
                    test_udp_ports_spread_the_flows);
    return g_test_run();
}
