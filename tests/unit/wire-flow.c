/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flows and templates: frames of a known flow are parsed and checked like any
 * others, and frames with a template are built like the first one.
 */
#include <glib.h>
#include "../../backends/rdma/roce/wire/wire.h"

#define ROUNDS 200000

static const RocePath paths[] = {
    {
        .dmac = { 0x52, 0x54, 0, 0, 0, 2 }, .smac = { 0x52, 0x54, 0, 0, 0, 1 },
        .sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
        .dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
        .vlan = RDMA_NO_VLAN, .is_ipv4 = true, .hop_limit = 64,
        .udp_sport = 0xc001,
    },
    {
        .dmac = { 0x52, 0x54, 0, 0, 0, 2 }, .smac = { 0x52, 0x54, 0, 0, 0, 1 },
        .sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
        .dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
        .vlan = 7, .pcp = 3, .is_ipv4 = true, .hop_limit = 64,
        .traffic_class = ROCE_ECN_CE, .udp_sport = 0xc001,
    },
    {
        .dmac = { 0x52, 0x54, 0, 0, 0, 2 }, .smac = { 0x52, 0x54, 0, 0, 0, 1 },
        .sgid = { 0xfe, 0x80, [15] = 1 }, .dgid = { 0xfe, 0x80, [15] = 2 },
        .vlan = RDMA_NO_VLAN, .hop_limit = 1, .flow_label = 0x12345,
        .udp_sport = 0xffff,
    },
    {
        .dmac = { 0x52, 0x54, 0, 0, 0, 2 }, .smac = { 0x52, 0x54, 0, 0, 0, 1 },
        .sgid = { 0xfe, 0x80, [15] = 1 }, .dgid = { 0xfe, 0x80, [15] = 2 },
        .vlan = 4094, .pcp = 7, .hop_limit = 255, .udp_sport = 0xc000,
    },
};

static const uint8_t opcodes[] = {
    ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST, ROCE_WRITE_ONLY_IMM,
    ROCE_READ_RESP_FIRST, ROCE_SEND_LAST_INV, ROCE_ACKNOWLEDGE,
    ROCE_COMPARE_SWAP, ROCE_FLUSH, ROCE_UD | ROCE_SEND_ONLY_IMM,
    ROCE_CNP_OPCODE,
};

static const uint16_t sizes[] = { 0, 1, 64, 67, 1024, 4095, 4096 };

/* The kind of a frame: all but its contents */
typedef struct Kind {
    const RocePath *path;
    uint8_t opcode;
    uint16_t size;
} Kind;

static Kind make_kind(void)
{
    Kind k = {
        &paths[g_test_rand_int_range(0, G_N_ELEMENTS(paths))],
        opcodes[g_test_rand_int_range(0, G_N_ELEMENTS(opcodes))],
        sizes[g_test_rand_int_range(0, G_N_ELEMENTS(sizes))],
    };

    if (!(roce_opcodes[k.opcode].flags & ROCE_OP_PAYLOAD)) {
        k.size = 0;
    }
    return k;
}

static RoceBth make_bth(const Kind *k)
{
    return (RoceBth) {
        .opcode = k->opcode,
        .se = g_test_rand_bit(),
        .ack_req = g_test_rand_bit(),
        .fecn = g_test_rand_int_range(0, 8) == 0,
        .pkey = RDMA_DEFAULT_PKEY,
        .dqpn = g_test_rand_int_range(0, 1 << 24),
        .psn = g_test_rand_int_range(0, 1 << 24),
        .reth.va = g_test_rand_int(),
        .aeth.msn = g_test_rand_int_range(0, 1 << 24),
        .atomiceth.swap_add = g_test_rand_int(),
        .ieth = g_test_rand_int(),
    };
}

/* Write a frame with random contents to @frame. Returns its length. */
static size_t make_frame(const Kind *k, uint8_t frame[ROCE_MAX_FRAME])
{
    RoceBth bth = make_bth(k);
    size_t hdr_len = roce_build(frame, k->path, &bth, k->size), i;
    struct iovec iov = { frame + hdr_len, k->size };

    for (i = 0; i < k->size; i++) {
        frame[hdr_len + i] = i < 32 ? (uint8_t)g_test_rand_int() : i;
    }
    return hdr_len + k->size +
           roce_icrc_trailer(frame, hdr_len, k->path->is_ipv4, &iov, 1,
                             frame + hdr_len + k->size);
}

/* Compare both parsers on a frame in its own allocation. */
static bool compare(const uint8_t *data, size_t len,
                    RoceFlow flows[ROCE_FLOWS])
{
    g_autofree uint8_t *frame = g_memdup2(data, len);
    uint8_t a_hdr[ROCE_MAX_HDR], b_hdr[ROCE_MAX_HDR];
    size_t a_len, b_len;
    RocePacket a, b;
    RoceParse ret;

    ret = roce_parse(frame, len, &a);
    g_assert_cmpint(roce_parse_flow(frame, len, &b, flows), ==, ret);
    if (ret != ROCE_PARSE_OK) {
        return false;
    }
    g_assert_true(a.info == b.info);
    g_assert_true(a.payload == b.payload);
    g_assert_cmpuint(a.payload_len, ==, b.payload_len);
    g_assert_cmpuint(a.bth.pad, ==, b.bth.pad);
    g_assert_cmpint(a.l3 - a.hdr, ==, b.l3 - b.hdr);
    g_assert_cmpint(a.bth_start - a.hdr, ==, b.bth_start - b.hdr);
    a_len = roce_build(a_hdr, &a.path, &a.bth, a.payload_len);
    b_len = roce_build(b_hdr, &b.path, &b.bth, b.payload_len);
    g_assert_cmpmem(a_hdr, a_len, b_hdr, b_len);
    g_assert_true(roce_icrc_ok(&a) == roce_icrc_ok(&b));
    return b.flow != NULL;
}

static void test_frames_of_known_flows_are_parsed_alike(void)
{
    RoceFlow flows[ROCE_FLOWS] = { 0 };
    uint8_t frame[ROCE_MAX_FRAME + 64] = { 0 };
    Kind kinds[4] = { 0 };
    unsigned i, known = 0;

    for (i = 0; i < ROUNDS; i++) {
        unsigned n = g_test_rand_int_range(0, G_N_ELEMENTS(kinds));
        size_t len, bit;

        /*
         * Several frames of a kind follow one another before the kind changes.
         */
        if (!kinds[n].path || g_test_rand_int_range(0, 20) == 0) {
            kinds[n] = make_kind();
        }
        len = make_frame(&kinds[n], frame);
        known += compare(frame, len, flows);
        switch (g_test_rand_int_range(0, 4)) {
        case 0:
            /* Flip bits mainly in the headers. */
            bit = g_test_rand_int_range(0, 8 * MIN(len, 128));
            frame[bit / 8] ^= 1 << bit % 8;
            compare(frame, len, flows);
            break;
        case 1:
            compare(frame, g_test_rand_int_range(0, len), flows);
            break;
        case 2:
            /* Ethernet padding */
            known += compare(frame, len + g_test_rand_int_range(1, 64), flows);
            break;
        default:
            bit = g_test_rand_int_range(0, 8 * len);
            frame[bit / 8] ^= 1 << bit % 8;
            compare(frame, len, flows);
            break;
        }
    }
    g_assert_cmpuint(known, >, ROUNDS / 2);
}

/*
 * In a frame of a known flow, each other flipped bit must make the ICRC wrong.
 */
static void test_a_flipped_bit_in_a_known_flow_does_not_pass(void)
{
    RoceBth bth = { .opcode = ROCE_WRITE_ONLY, .pkey = RDMA_DEFAULT_PKEY };
    unsigned p;

    for (p = 0; p < G_N_ELEMENTS(paths); p++) {
        uint8_t frame[ROCE_MAX_FRAME] = { 0 };
        RoceFlow flows[ROCE_FLOWS] = { 0 };
        size_t l4, len, i, hdr_len = roce_build(frame, &paths[p], &bth, 99);
        struct iovec iov = { frame + hdr_len, 99 };
        RocePacket pkt;

        len = hdr_len + 99 +
              roce_icrc_trailer(frame, hdr_len, paths[p].is_ipv4, &iov, 1,
                                frame + hdr_len + 99);
        /* After some frames of a flow, its ICRC is computed in another way. */
        for (i = 0; i < 20; i++) {
            g_assert_cmpint(roce_parse_flow(frame, len, &pkt, flows), ==,
                            ROCE_PARSE_OK);
            g_assert_true(roce_icrc_ok(&pkt));
        }
        l4 = pkt.bth_start - pkt.hdr;
        for (i = l4 * 8; i < len * 8; i++) {
            bool ok;

            g_assert_cmpint(roce_parse_flow(frame, len, &pkt, flows), ==,
                            ROCE_PARSE_OK);
            g_assert_nonnull(pkt.flow);
            g_assert_true(roce_icrc_ok(&pkt));

            frame[i / 8] ^= 1 << i % 8;
            ok = roce_parse_flow(frame, len, &pkt, flows) == ROCE_PARSE_OK &&
                 roce_icrc_ok(&pkt);
            /* Routers may set the FECN bit. */
            g_assert_true(ok == (i / 8 == l4 + 4));
            frame[i / 8] ^= 1 << i % 8;
        }
    }
}

static void test_the_next_frame_of_a_path_is_built_alike(void)
{
    static const uint8_t payload[ROCE_MAX_PAYLOAD] = { 1, 2, 3, [99] = 4 };
    RoceTemplate t[G_N_ELEMENTS(paths)] = { 0 };
    Kind k = make_kind();
    unsigned i;

    for (i = 0; i < ROUNDS; i++) {
        uint8_t a[ROCE_MAX_HDR], b[ROCE_MAX_HDR];
        uint8_t a_end[ROCE_MAX_TRAILER], b_end[ROCE_MAX_TRAILER];
        size_t a_len, b_len, cut;
        RoceTemplate *of_path;
        struct iovec iov[2];
        RoceBth bth;

        if (g_test_rand_int_range(0, 3) == 0) {
            k = make_kind();
        }
        cut = k.size / 3;
        iov[0] = (struct iovec) { (void *)payload, cut };
        iov[1] = (struct iovec) { (void *)(payload + cut), k.size - cut };
        of_path = &t[k.path - paths];
        bth = make_bth(&k);

        a_len = roce_build(a, k.path, &bth, k.size);
        b_len = roce_build_next(b, of_path, k.path, &bth, k.size);
        g_assert_cmpmem(a, a_len, b, b_len);
        a_len = roce_icrc_trailer(a, a_len, k.path->is_ipv4, iov, 2, a_end);
        b_len = roce_icrc_trailer_next(b, b_len, of_path, iov, 2, b_end);
        g_assert_cmpmem(a_end, a_len, b_end, b_len);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wire/flow/frames-of-known-flows-are-parsed-alike",
                    test_frames_of_known_flows_are_parsed_alike);
    g_test_add_func("/wire/flow/a-flipped-bit-in-a-known-flow-does-not-pass",
                    test_a_flipped_bit_in_a_known_flow_does_not_pass);
    g_test_add_func("/wire/flow/the-next-frame-of-a-path-is-built-alike",
                    test_the_next_frame_of_a_path_is_built_alike);
    return g_test_run();
}
