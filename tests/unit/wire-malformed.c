/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames with one error each. All have a right ICRC and, unless it is the
 * error, a right IPv4 header checksum. So the parser must detect the error.
 */
#include <glib.h>
#include "../../backends/rdma/roce/wire/wire.h"

/* Offsets in a frame */
#define TAG 14
#define IP4 14
#define UDP4 34
#define BTH4 42
#define IP6 14
#define UDP6 54
#define BTH6 62

typedef struct Patch {
    unsigned at;
    uint8_t n;                      /* bytes */
    uint32_t value;
} Patch;

typedef struct Case {
    const char *name;
    bool ipv6;
    uint8_t opcode;
    size_t payload_len;
    Patch patch[3];
    bool keep_checksum;
    uint16_t vlan;
    RoceParse want;
} Case;

#define WRITE_ONLY (ROCE_RC | ROCE_WRITE_ONLY)
#define SEND_ONLY (ROCE_RC | ROCE_SEND_ONLY)
#define ACK (ROCE_RC | ROCE_ACKNOWLEDGE)
#define UD_SEND (ROCE_UD | ROCE_SEND_ONLY)
#define NOT_ROCE ROCE_PARSE_NOT_ROCE
#define MALFORMED ROCE_PARSE_MALFORMED
#define OK ROCE_PARSE_OK

/*
 * A WRITE ONLY of 10 bytes: UDP has 8 + 28 + 12 + 4 = 52 bytes, the IPv4
 * packet 72.
 */
static const Case cases[] = {
    /* Frames that are not RoCEv2 */
    { "ethertype-arp", false, WRITE_ONLY, 10,
      { { 12, 2, 0x0806 } }, .want = NOT_ROCE },
    { "ethertype-vlan", false, WRITE_ONLY, 10,
      { { 12, 2, 0x8100 } }, .want = NOT_ROCE },
    { "vlan", false, WRITE_ONLY, 10, .vlan = 5, .want = OK },
    { "vlan-ipv6", true, WRITE_ONLY, 10, .vlan = 4094, .want = OK },
    { "vlan-drop-eligible", false, WRITE_ONLY, 10,
      { { TAG, 2, 0x1005 } }, .vlan = 5, .want = OK },
    { "vlan-0-with-priority", false, WRITE_ONLY, 10,
      { { TAG, 2, 0xe000 } }, .vlan = 5, .want = OK },
    { "vlan-4095", false, WRITE_ONLY, 10,
      { { TAG, 2, 0x0fff } }, .vlan = 5, .want = NOT_ROCE },
    { "vlan-in-vlan", false, WRITE_ONLY, 10,
      { { TAG + 2, 2, 0x8100 } }, .vlan = 5, .want = NOT_ROCE },
    { "vlan-in-service-vlan", true, WRITE_ONLY, 10,
      { { TAG + 2, 2, 0x88a8 } }, .vlan = 5, .want = NOT_ROCE },
    { "service-vlan", false, WRITE_ONLY, 10,
      { { 12, 2, 0x88a8 } }, .vlan = 5, .want = NOT_ROCE },
    { "vlan-of-arp", false, WRITE_ONLY, 10,
      { { TAG + 2, 2, 0x0806 } }, .vlan = 5, .want = NOT_ROCE },
    { "ethertype-rocev1", false, WRITE_ONLY, 10,
      { { 12, 2, 0x8915 } }, .want = NOT_ROCE },
    { "ethertype-says-ipv6", false, WRITE_ONLY, 10,
      { { 12, 2, 0x86dd } }, .want = NOT_ROCE },
    { "ethertype-says-ipv4", true, WRITE_ONLY, 10,
      { { 12, 2, 0x0800 } }, .want = NOT_ROCE },
    { "ipv4-version-5", false, WRITE_ONLY, 10,
      { { IP4, 1, 0x55 } }, .want = NOT_ROCE },
    { "ipv4-options", false, WRITE_ONLY, 10,
      { { IP4, 1, 0x46 } }, .want = NOT_ROCE },
    { "ipv4-header-too-short", false, WRITE_ONLY, 10,
      { { IP4, 1, 0x44 } }, .want = NOT_ROCE },
    { "ipv4-tcp", false, WRITE_ONLY, 10,
      { { IP4 + 9, 1, 6 } }, .want = NOT_ROCE },
    { "ipv4-first-fragment", false, WRITE_ONLY, 10,
      { { IP4 + 6, 2, 0x2000 } }, .want = NOT_ROCE },
    { "ipv4-later-fragment", false, WRITE_ONLY, 10,
      { { IP4 + 6, 2, 0x0001 } }, .want = NOT_ROCE },
    { "ipv4-may-be-fragmented", false, WRITE_ONLY, 10,
      { { IP4 + 6, 2, 0x0000 } }, .want = OK },
    { "ipv6-version-4", true, WRITE_ONLY, 10,
      { { IP6, 1, 0x40 } }, .want = NOT_ROCE },
    { "ipv6-hop-by-hop-header", true, WRITE_ONLY, 10,
      { { IP6 + 6, 1, 0 } }, .want = NOT_ROCE },
    { "ipv6-fragment-header", true, WRITE_ONLY, 10,
      { { IP6 + 6, 1, 44 } }, .want = NOT_ROCE },
    { "ipv6-mapped-ipv4-source", true, WRITE_ONLY, 10,
      { { IP6 + 8, 4, 0 }, { IP6 + 16, 4, 0xffff },
        { IP6 + 20, 4, 0x0a000001 } }, .want = NOT_ROCE },
    { "ipv6-mapped-ipv4-destination", true, WRITE_ONLY, 10,
      { { IP6 + 24, 4, 0 }, { IP6 + 32, 4, 0xffff },
        { IP6 + 36, 4, 0x0a000001 } }, .want = NOT_ROCE },
    { "udp-port-4790", false, WRITE_ONLY, 10,
      { { UDP4 + 2, 2, 4790 } }, .want = NOT_ROCE },
    { "udp-source-port-4791", false, WRITE_ONLY, 10,
      { { UDP4, 2, 4791 }, { UDP4 + 2, 2, 53 } }, .want = NOT_ROCE },

    /* IP */
    { "ipv4-bad-checksum", false, WRITE_ONLY, 10,
      { { IP4 + 10, 2, 0x1234 } }, .keep_checksum = true, .want = MALFORMED },
    { "ipv4-zero-checksum", false, WRITE_ONLY, 10,
      { { IP4 + 10, 2, 0 } }, .keep_checksum = true, .want = MALFORMED },
    { "ipv4-length-past-frame", false, WRITE_ONLY, 10,
      { { IP4 + 2, 2, 73 } }, .want = MALFORMED },
    { "ipv4-length-65535", false, WRITE_ONLY, 10,
      { { IP4 + 2, 2, 0xffff } }, .want = MALFORMED },
    { "ipv4-length-0", false, WRITE_ONLY, 10,
      { { IP4 + 2, 2, 0 } }, .want = MALFORMED },
    { "ipv4-length-below-header", false, WRITE_ONLY, 10,
      { { IP4 + 2, 2, 19 } }, .want = MALFORMED },
    { "ipv4-length-without-udp", false, WRITE_ONLY, 10,
      { { IP4 + 2, 2, 27 } }, .want = MALFORMED },
    { "ipv4-length-below-udp-length", false, WRITE_ONLY, 10,
      { { IP4 + 2, 2, 68 } }, .want = MALFORMED },
    { "ipv6-length-past-frame", true, WRITE_ONLY, 10,
      { { IP6 + 4, 2, 53 } }, .want = MALFORMED },
    { "ipv6-length-0", true, WRITE_ONLY, 10,
      { { IP6 + 4, 2, 0 } }, .want = MALFORMED },
    { "ipv6-length-without-udp", true, WRITE_ONLY, 10,
      { { IP6 + 4, 2, 7 } }, .want = MALFORMED },

    /* UDP */
    { "udp-length-past-ip", false, WRITE_ONLY, 10,
      { { UDP4 + 4, 2, 56 } }, .want = MALFORMED },
    { "udp-length-below-ip", false, WRITE_ONLY, 10,
      { { UDP4 + 4, 2, 48 } }, .want = MALFORMED },
    { "udp-length-0", true, WRITE_ONLY, 10,
      { { UDP6 + 4, 2, 0 } }, .want = MALFORMED },
    { "udp-length-65535", true, WRITE_ONLY, 10,
      { { UDP6 + 4, 2, 0xffff } }, .want = MALFORMED },
    { "udp-without-bth", false, SEND_ONLY, 0,
      { { IP4 + 2, 2, 28 }, { UDP4 + 4, 2, 8 } }, .want = MALFORMED },
    { "udp-of-icrc-only", false, SEND_ONLY, 0,
      { { IP4 + 2, 2, 32 }, { UDP4 + 4, 2, 12 } }, .want = MALFORMED },
    { "udp-of-bth-without-icrc", false, SEND_ONLY, 0,
      { { IP4 + 2, 2, 40 }, { UDP4 + 4, 2, 20 } }, .want = MALFORMED },
    { "udp-of-half-an-icrc", false, SEND_ONLY, 0,
      { { IP4 + 2, 2, 42 }, { UDP4 + 4, 2, 22 } }, .want = MALFORMED },

    /* BTH */
    { "bth-version-1", false, WRITE_ONLY, 10,
      { { BTH4 + 1, 1, 0x21 } }, .want = MALFORMED },
    { "bth-version-15", false, WRITE_ONLY, 10,
      { { BTH4 + 1, 1, 0x2f } }, .want = MALFORMED },
    { "opcode-reserved-rc", false, SEND_ONLY, 0,
      { { BTH4, 1, 0x15 } }, .want = MALFORMED },
    { "opcode-rd", false, SEND_ONLY, 64,
      { { BTH4, 1, 0x44 } }, .want = MALFORMED },
    { "opcode-ud-read", false, SEND_ONLY, 64,
      { { BTH4, 1, 0x6c } }, .want = MALFORMED },
    { "opcode-uc-read", true, SEND_ONLY, 64,
      { { BTH6, 1, 0x2c } }, .want = MALFORMED },
    { "opcode-cnp", true, SEND_ONLY, 16,
      { { BTH6, 1, 0x82 } }, .want = MALFORMED },
    { "opcode-255", true, SEND_ONLY, 64,
      { { BTH6, 1, 0xff } }, .want = MALFORMED },
    { "no-room-for-reth", false, SEND_ONLY, 12,
      { { BTH4, 1, ROCE_RC | ROCE_READ_REQUEST } }, .want = MALFORMED },
    { "no-room-for-atomiceth", false, SEND_ONLY, 24,
      { { BTH4, 1, ROCE_RC | ROCE_COMPARE_SWAP } }, .want = MALFORMED },
    { "no-room-for-aeth", true, SEND_ONLY, 0,
      { { BTH6, 1, ROCE_RC | ROCE_ACKNOWLEDGE } }, .want = MALFORMED },
    { "no-room-for-atomicack", true, SEND_ONLY, 8,
      { { BTH6, 1, ROCE_RC | ROCE_ATOMIC_ACKNOWLEDGE } },
      .want = MALFORMED },
    { "no-room-for-deth", false, SEND_ONLY, 4,
      { { BTH4, 1, UD_SEND } }, .want = MALFORMED },
    { "no-room-for-immediate", false, SEND_ONLY, 0,
      { { BTH4, 1, ROCE_RC | ROCE_SEND_ONLY_IMM } }, .want = MALFORMED },
    { "no-room-for-ieth", true, SEND_ONLY, 0,
      { { BTH6, 1, ROCE_RC | ROCE_SEND_ONLY_INV } }, .want = MALFORMED },

    /* Payload */
    { "pad-without-payload", false, SEND_ONLY, 0,
      { { BTH4 + 1, 1, 0x10 } }, .want = MALFORMED },
    { "pad-3-without-payload", true, UD_SEND, 0,
      { { BTH6 + 1, 1, 0x30 } }, .want = MALFORMED },
    { "pad-of-an-ack", false, ACK, 0,
      { { BTH4 + 1, 1, 0x30 } }, .want = MALFORMED },
    { "payload-not-padded", false, WRITE_ONLY, 8,
      { { IP4 + 2, 2, 67 }, { UDP4 + 4, 2, 47 } }, .want = MALFORMED },
    { "payload-of-an-ack", false, SEND_ONLY, 8,
      { { BTH4, 1, ACK } }, .want = MALFORMED },
    { "payload-of-a-read-request", false, WRITE_ONLY, 4,
      { { BTH4, 1, ROCE_RC | ROCE_READ_REQUEST } }, .want = MALFORMED },
    { "payload-of-an-atomic", true, SEND_ONLY, 32,
      { { BTH6, 1, ROCE_RC | ROCE_FETCH_ADD } }, .want = MALFORMED },
    { "payload-too-long", false, SEND_ONLY, 4100, .want = MALFORMED },
    { "payload-of-a-jumbo-frame", true, SEND_ONLY, 8192,
      .want = MALFORMED },
    { "payload-of-maximum-length", false, SEND_ONLY, 4096, .want = OK },

    /* Unusual frames that the caller of the parser must judge */
    { "multicast-qpn", false, WRITE_ONLY, 10,
      { { BTH4 + 4, 4, 0xffffff } }, .want = OK },
    { "udp-checksum", false, WRITE_ONLY, 10,
      { { UDP4 + 6, 2, 0x1234 } }, .want = OK },
    { "congestion-experienced", true, WRITE_ONLY, 10,
      { { BTH6 + 4, 1, 0xc0 } }, .want = OK },
};

static void patch(uint8_t *frame, const Patch *p)
{
    unsigned i;

    for (i = 0; i < p->n; i++) {
        frame[p->at + i] = p->value >> 8 * (p->n - 1 - i);
    }
}

static void fix_checksum(uint8_t *ip)
{
    uint32_t sum = 0;
    unsigned i;

    ip[10] = ip[11] = 0;
    for (i = 0; i < 20; i += 2) {
        sum += ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum += sum >> 16;
    ip[10] = ~sum >> 8;
    ip[11] = ~sum;
}

static void run_case(const void *opaque)
{
    RocePath path4 = {
        .sgid = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
        .dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
        .is_ipv4 = true,
        .udp_sport = 0xc123,
    };
    RocePath path6 = {
        .sgid = { [15] = 1 },
        .dgid = { [15] = 2 },
        .udp_sport = 0xc123,
    };
    const Case *c = opaque;
    RoceBth bth = { .opcode = c->opcode, .psn = 1, .dqpn = 17 };
    size_t trailer_len = roce_pad(c->payload_len) + ROCE_ICRC_LEN;
    uint8_t hdr[ROCE_MAX_HDR], trailer[ROCE_MAX_TRAILER];
    g_autofree uint8_t *payload = g_malloc0(c->payload_len + 1);
    g_autofree uint8_t *frame = NULL;
    struct iovec iov = { payload, c->payload_len };
    uint8_t dgid[RDMA_GID_LEN];
    size_t hdr_len, len;
    RocePacket pkt;
    uint16_t vlan;
    unsigned i;

    path4.vlan = path6.vlan = c->vlan;
    hdr_len = roce_build(hdr, c->ipv6 ? &path6 : &path4, &bth,
                         c->payload_len);
    for (i = 0; i < G_N_ELEMENTS(c->patch); i++) {
        patch(hdr, &c->patch[i]);
    }
    if (!c->ipv6 && !c->keep_checksum) {
        fix_checksum(hdr + IP4 + (c->vlan ? ROCE_VLAN_LEN : 0));
    }
    roce_icrc_trailer(hdr, hdr_len, !c->ipv6, &iov, 1, trailer);

    len = hdr_len + c->payload_len + trailer_len;
    frame = g_malloc(len);
    memcpy(frame, hdr, hdr_len);
    memcpy(frame + hdr_len, payload, c->payload_len);
    memcpy(frame + hdr_len + c->payload_len, trailer, trailer_len);

    g_assert_cmpint(roce_parse(frame, len, &pkt), ==, c->want);
    g_assert_true(roce_peek(frame, len, dgid, &vlan) ==
                  (c->want != NOT_ROCE));
    if (c->want == OK) {
        g_assert_true(roce_icrc_ok(&pkt));
    }
}

/* roce_peek() needs all bytes up to the UDP ports. */
static void test_peek_at_short_frames(void)
{
    static const uint8_t gid[] = { 0xfd, [15] = 1 };
    uint8_t dgid[RDMA_GID_LEN];
    uint16_t vlan;

    for (unsigned how = 0; how < 4; how++) {
        bool tagged = how & 1, ipv6 = how & 2;
        uint8_t frame[ROCE_PEEK_LEN] = {};
        uint8_t *ip = frame + (tagged ? TAG + 4 : TAG);
        size_t need = ip - frame + (ipv6 ? 40 : 20) + 4;

        memcpy(frame + 12, tagged ? "\x81\x00\x00\x07" : "", tagged ? 4 : 0);
        memcpy(ip - 2, ipv6 ? "\x86\xdd" : "\x08\x00", 2);
        ip[0] = ipv6 ? 0x60 : 0x45;
        ip[ipv6 ? 6 : 9] = 17;
        if (ipv6) {
            memcpy(ip + 8, gid, sizeof(gid));
            memcpy(ip + 24, gid, sizeof(gid));
        }
        frame[need - 2] = ROCE_UDP_PORT >> 8;
        frame[need - 1] = ROCE_UDP_PORT & 0xff;
        for (size_t len = 0; len <= sizeof(frame); len++) {
            g_assert_cmpint(roce_peek(frame, len, dgid, &vlan), ==,
                            len >= need);
        }
    }
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *name = g_strdup_printf("/wire/malformed/%s",
                                                cases[i].name);

        g_test_add_data_func(name, &cases[i], run_case);
    }
    g_test_add_func("/wire/malformed/peek-at-short-frames",
                    test_peek_at_short_frames);
    return g_test_run();
}
