/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: addresses in the requests of the guest's connection manager.
 */
#include "qemu/osdep.h"
#include <arpa/inet.h>
#include <sys/socket.h>
#include "qemu/bswap.h"
#include "gsi-fixture.h"

#define REQ 0x10
#define RTU 0x14
#define SIDR_REQ 0x17
#define LAP 0x19
/* Services of TCP's port 0x1d2f, of Linux's IPoIB, and of another kind */
#define TCP_SERVICE 0x0000000001061d2full
#define IPOIB_SERVICE 0x0000000000021d2full
#define OTHER_SERVICE 0x1000000000000001ull

/* The addresses in a request of the connection manager */
typedef struct Request {
    const char *name;
    uint16_t attr;
    uint64_t service;
    const char *primary;            /* GIDs; NULL: none */
    const char *alternate;
    uint8_t ip_version;
    const char *source;             /* in private data */
    bool passes;
} Request;

static void put_address(uint8_t *to, const char *text)
{
    memset(to, 0, 16);
    if (text && inet_pton(AF_INET6, text, to) != 1) {
        g_assert_cmpint(inet_pton(AF_INET, text, to + 12), ==, 1);
    }
}

static void fill_request(uint8_t mad[GSI_MAD_LEN], const Request *r)
{
    uint8_t *private_data = mad + (r->attr == SIDR_REQ ? 40 : 164);

    gsi_fill_mad(mad, 0);
    stw_be_p(mad + 16, r->attr);
    stq_be_p(mad + 32, r->service);
    if (r->attr == LAP) {
        put_address(mad + 48, r->alternate);
    } else if (r->attr != SIDR_REQ) {
        put_address(mad + 80, r->primary);
        put_address(mad + 124, r->alternate);
    }
    private_data[1] = r->ip_version << 4;
    put_address(private_data + 4, r->source);
}

/*
 * A guest cannot use the address of another guest, nor another one of the host.
 */
static void test_addresses(void)
{
    static const Request requests[] = {
        { "own IPv4", REQ, TCP_SERVICE, "::ffff:10.0.0.1", NULL, 4,
          "10.0.0.1", true },
        { "own IPv6", REQ, TCP_SERVICE, "fe80::5054:ff:fe12:3401", NULL, 6,
          "fe80::5054:ff:fe12:3401", true },
        { "own, with an alternate path", REQ, TCP_SERVICE, "::ffff:10.0.0.1",
          "fe80::5054:ff:fe12:3401", 4, "10.0.0.1", true },
        { "other IPv4", REQ, TCP_SERVICE, "::ffff:10.0.0.1", NULL, 4,
          "10.0.0.9" },
        { "other IPv6", REQ, TCP_SERVICE, "fe80::5054:ff:fe12:3401", NULL, 6,
          "fe80::9" },
        { "other IPv4 as IPv6", REQ, TCP_SERVICE, "::ffff:10.0.0.1", NULL, 6,
          "::ffff:10.0.0.9" },
        { "other of the host", REQ, TCP_SERVICE, "::ffff:10.0.0.1", NULL, 4,
          "10.0.0.2" },
        { "no address", REQ, TCP_SERVICE, "::ffff:10.0.0.1", NULL, 4,
          "0.0.0.0" },
        { "other of IPoIB", REQ, IPOIB_SERVICE, "::ffff:10.0.0.1", NULL, 4,
          "10.0.0.9" },
        { "other primary GID", REQ, TCP_SERVICE, "::ffff:10.0.0.9", NULL, 4,
          "10.0.0.1" },
        { "other alternate GID", REQ, TCP_SERVICE, "::ffff:10.0.0.1",
          "fe80::9", 4, "10.0.0.1" },
        { "other primary GID, no IP", REQ, OTHER_SERVICE, "::ffff:10.0.0.9" },
        { "data of a program", REQ, OTHER_SERVICE, "::ffff:10.0.0.1", NULL, 4,
          "10.0.0.9", true },
        { "another version", REQ, TCP_SERVICE, "::ffff:10.0.0.1", NULL, 5,
          "10.0.0.9", true },
        { "datagrams, own IPv4", SIDR_REQ, TCP_SERVICE, NULL, NULL, 4,
          "10.0.0.1", true },
        { "datagrams, other IPv4", SIDR_REQ, TCP_SERVICE, NULL, NULL, 4,
          "10.0.0.9" },
        { "datagrams, other IPv6", SIDR_REQ, TCP_SERVICE, NULL, NULL, 6,
          "fe80::9" },
        { "datagrams, data of a program", SIDR_REQ, OTHER_SERVICE, NULL, NULL,
          4, "10.0.0.9", true },
        { "another path, own", LAP, 0, NULL, "::ffff:10.0.0.1", 0, NULL,
          true },
        { "another path, other GID", LAP, 0, NULL, "::ffff:10.0.0.9" },
        { "another path, other of the host", LAP, 0, NULL,
          "::ffff:10.0.0.2" },
        { "no request", RTU, TCP_SERVICE, "::ffff:10.0.0.9", NULL, 4,
          "10.0.0.9", true },
    };
    g_autoptr(Gsi) g = gsi_new();

    fake_verbs_tell(g->v->fake, "gid 2 10.0.0.2");
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        uint8_t mad[GSI_MAD_LEN], next[GSI_MAD_LEN];
        const uint8_t *expected = requests[i].passes ? mad : next;
        GsiPacket p;

        g_test_message("%s", requests[i].name);
        fill_request(mad, &requests[i]);
        gsi_fill_mad(next, 99);
        gsi_post_mad(g, 1, i, mad);
        qrdma_expect(g->cq, i, RDMA_WC_SUCCESS);
        if (!requests[i].passes) {
            gsi_post_mad(g, 1, 99, next);
            qrdma_expect(g->cq, 99, RDMA_WC_SUCCESS);
        }
        g_assert_cmpint(recv(g->fd, &p, sizeof(p), 0), ==, sizeof(p));
        g_assert_cmpmem(p.mad, GSI_MAD_LEN, expected, GSI_MAD_LEN);
    }
}

const QRdmaTest verbs_cm_tests[] = {
    { "requests-name-own-addresses-only", test_addresses },
    {}
};
