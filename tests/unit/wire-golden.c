/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames that another implementation (rxe) has sent: we parse them correctly,
 * and build the same frames.
 */
#include "../../backends/rdma/roce/wire/wire.h"
#include "wire-pcap.h"

#define N_FRAMES 406

static GArray *frames;

static void parse_all(RocePacket *pkts)
{
    unsigned i;

    g_assert_cmpuint(frames->len, ==, N_FRAMES);
    for (i = 0; i < frames->len; i++) {
        WireFrame *f = &g_array_index(frames, WireFrame, i);

        g_assert_cmpint(roce_parse(f->data, f->len, &pkts[i]), ==,
                        ROCE_PARSE_OK);
    }
}

static void test_every_frame_parses(void)
{
    RocePacket pkts[N_FRAMES];
    unsigned seen[2][256] = { 0 }, opcodes = 0, i;

    parse_all(pkts);
    for (i = 0; i < N_FRAMES; i++) {
        WireFrame *f = &g_array_index(frames, WireFrame, i);
        const RocePacket *p = &pkts[i];

        seen[p->path.is_ipv4][p->bth.opcode]++;
        g_assert_cmphex(p->bth.pkey, ==, RDMA_DEFAULT_PKEY);
        g_assert_true(p->payload + p->payload_len + p->bth.pad +
                      ROCE_ICRC_LEN == f->data + f->len);
    }
    for (i = 0; i < 256; i++) {
        opcodes += seen[0][i] || seen[1][i];
    }
    g_assert_cmpuint(opcodes, ==, 22);

    /* Numbers of another dissector */
    g_assert_cmpuint(seen[true][ROCE_RC | ROCE_SEND_ONLY], ==, 17);
    g_assert_cmpuint(seen[false][ROCE_RC | ROCE_SEND_ONLY], ==, 17);
    g_assert_cmpuint(seen[true][ROCE_RC | ROCE_READ_RESP_MIDDLE], ==, 35);
    g_assert_cmpuint(seen[false][ROCE_RC | ROCE_ATOMIC_ACKNOWLEDGE], ==, 10);
    g_assert_cmpuint(seen[true][ROCE_UC | ROCE_SEND_MIDDLE], ==, 6);
    g_assert_cmpuint(seen[false][ROCE_UD | ROCE_SEND_ONLY], ==, 11);
    g_assert_cmpuint(seen[true][ROCE_UD | ROCE_SEND_ONLY_IMM], ==, 6);
}

static void test_fields_are_right(void)
{
    RocePacket pkts[N_FRAMES];
    const RocePacket *p;

    parse_all(pkts);

    p = &pkts[0];                   /* RC SEND FIRST, IPv4 */
    g_assert_cmphex(p->bth.opcode, ==, ROCE_RC | ROCE_SEND_FIRST);
    g_assert_cmphex(p->bth.dqpn, ==, 0x11);
    g_assert_cmpuint(p->bth.psn, ==, 1364415);
    g_assert_cmpuint(p->path.udp_sport, ==, 49441);
    g_assert_cmpuint(p->payload_len, ==, 4096);
    g_assert_cmphex(p->path.dgid[15], ==, 2);
    g_assert_cmphex(p->path.smac[5], ==, 1);

    p = &pkts[3];                   /* RC ACK */
    g_assert_cmphex(p->bth.aeth.syndrome, ==, ROCE_AETH_NO_CREDITS);
    g_assert_cmpuint(p->bth.aeth.msn, ==, 1);
    g_assert_cmpuint(p->payload_len, ==, 0);

    p = &pkts[48];                  /* RC WRITE FIRST */
    g_assert_cmphex(p->bth.reth.va, ==, 0x562e0aea8388);
    g_assert_cmphex(p->bth.reth.rkey, ==, 0x598);
    g_assert_cmpuint(p->bth.reth.len, ==, 5000);

    p = &pkts[78];                  /* RC READ REQUEST of an odd length */
    g_assert_cmphex(p->bth.reth.va, ==, 0x55d6dae4c329);
    g_assert_cmpuint(p->bth.reth.len, ==, 9001);
    g_assert_true(p->bth.ack_req);
    p = &pkts[89];                  /* and the last of its response */
    g_assert_cmphex(p->bth.opcode, ==, ROCE_RC | ROCE_READ_RESP_LAST);
    g_assert_cmpuint(p->bth.pad, ==, 3);
    g_assert_cmpuint(p->payload_len, ==, 9001 - 8 * 1024);

    p = &pkts[148];                 /* RC COMPARE AND SWAP */
    g_assert_cmphex(p->bth.atomiceth.va, ==, 0x5564c4bc1000);
    g_assert_cmphex(p->bth.atomiceth.rkey, ==, 0x9e2);
    p = &pkts[153];
    g_assert_cmphex(p->bth.opcode, ==, ROCE_RC | ROCE_ATOMIC_ACKNOWLEDGE);
    g_assert_cmpuint(p->bth.aeth.msn, ==, 1);

    p = &pkts[316];                 /* a MAD to the GSI */
    g_assert_cmphex(p->bth.dqpn, ==, RDMA_QPN_GSI);
    g_assert_cmphex(p->bth.deth.sqpn, ==, RDMA_QPN_GSI);
    g_assert_cmphex(p->bth.deth.qkey, ==, RDMA_GSI_QKEY);
    g_assert_cmpuint(p->payload_len, ==, 256);
}

static void test_every_icrc_is_right(void)
{
    RocePacket pkts[N_FRAMES];
    unsigned i;

    parse_all(pkts);
    for (i = 0; i < N_FRAMES; i++) {
        g_assert_true(roce_icrc_ok(&pkts[i]));
    }
}

static void test_built_frames_are_the_same(void)
{
    RocePacket pkts[N_FRAMES];
    unsigned i;

    parse_all(pkts);
    for (i = 0; i < N_FRAMES; i++) {
        WireFrame *f = &g_array_index(frames, WireFrame, i);
        const RocePacket *p = &pkts[i];
        struct iovec iov[2] = {
            { (void *)p->payload, p->payload_len / 3 },
        };
        uint8_t hdr[ROCE_MAX_HDR], trailer[ROCE_MAX_TRAILER];
        size_t hdr_len, trailer_len;

        iov[1].iov_base = (uint8_t *)p->payload + iov[0].iov_len;
        iov[1].iov_len = p->payload_len - iov[0].iov_len;

        hdr_len = roce_build(hdr, &p->path, &p->bth, p->payload_len);
        g_assert_cmpuint(hdr_len, ==,
                         roce_headers_len(p->path.is_ipv4, p->bth.opcode));
        if (p->path.is_ipv4) {
            /* We use another IP ID, which changes the checksum. */
            memcpy(hdr + 18, f->data + 18, 2);
            memcpy(hdr + 24, f->data + 24, 2);
        }
        trailer_len = roce_icrc_trailer(hdr, hdr_len, p->path.is_ipv4,
                                        iov, 2, trailer);

        g_assert_cmpmem(hdr, hdr_len, f->data, (p->payload - f->data));
        g_assert_cmpmem(trailer, trailer_len, p->payload + p->payload_len,
                        p->bth.pad + ROCE_ICRC_LEN);
    }
}

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    frames = wire_pcap_read_rxe();

    g_test_add_func("/wire/golden/every-frame-parses",
                    test_every_frame_parses);
    g_test_add_func("/wire/golden/fields-are-right",
                    test_fields_are_right);
    g_test_add_func("/wire/golden/every-icrc-is-right",
                    test_every_icrc_is_right);
    g_test_add_func("/wire/golden/built-frames-are-the-same",
                    test_built_frames_are_the_same);

    ret = g_test_run();
    g_array_unref(frames);
    return ret;
}
